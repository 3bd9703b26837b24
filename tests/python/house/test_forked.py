"""Snippets in forks, which tests of crashes run in."""

import os

import pytest

from support.processes import run_in_fork


def test_a_fork_that_crashes_is_a_failure_and_the_next_one_runs():
    with pytest.raises(pytest.fail.Exception, match=r"exit status -11\n"):
        run_in_fork("import ctypes; ctypes.string_at(0)")
    assert run_in_fork("print('here')") == "here"


def test_an_exception_of_a_snippet_is_a_failure_with_its_text():
    with pytest.raises(pytest.fail.Exception, match="ZeroDivisionError"):
        run_in_fork("1 / 0")


def test_a_warning_is_an_error_there():
    with pytest.raises(pytest.fail.Exception, match="UserWarning: of a snippet"):
        run_in_fork("import warnings; warnings.warn('of a snippet')")


def test_a_fork_ends_as_python_does():
    code = "import atexit; atexit.register(print, 'at the end')"
    assert run_in_fork(code) == "at the end"


def test_a_snippet_finds_dlfield_and_nothing_of_another_snippet():
    run_in_fork("import sys; sys.left = left = 1")
    code = "import sys; print('dlfield' in sys.modules, hasattr(sys, 'left'), 'left' in globals())"
    assert run_in_fork(code) == "True False False"


def test_a_snippet_runs_in_the_folder_and_environment_of_its_test(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DLFIELD_TEST_SNIPPET", "told")
    printed = run_in_fork("import os; print(os.getcwd(), os.environ['DLFIELD_TEST_SNIPPET'])")
    assert printed == f"{tmp_path} told"
    assert os.getcwd() == str(tmp_path)
