"""`python -m dlfield check`: runs a program as Python does, and its status tells of findings."""

import functools
import json
import subprocess
import sys

import pytest

from support import planted_model
from support.optional import library
from support.processes import beside_tests, end_of_module

library("gt4py.cartesian.gtscript")
library("gt4py.next")

SCRIPT = planted_model.__file__


@functools.cache
def checked(*arguments):
    return end_of_module("dlfield", "check", *arguments)


@pytest.fixture
def script(tmp_path):
    """Write a script that says how it was started, and return its path."""
    path = tmp_path / "program.py"

    def written(text):
        path.write_text(f"import json, sys\nprint(json.dumps([sys.argv, sys.path[0]]))\n{text}")
        return str(path)

    return written


def test_a_model_with_three_planted_mistakes_ends_with_status_1_and_its_lines():
    ended = checked(SCRIPT, "3")
    summary = ended.stderr[ended.stderr.index("dlfield check:") :].splitlines()
    assert ended.returncode == 1
    assert summary[0] == "dlfield check: 3 stencils, 12 calls checked, 3 findings"
    places = [f"  {SCRIPT}:{line}: " for line in planted_model.planted_lines()]
    assert all(map(str.startswith, summary[1:], places))


def test_the_model_prints_what_it_prints_without_a_check():
    command = [sys.executable, SCRIPT, "3"]
    plain = subprocess.run(command, capture_output=True, text=True, env=beside_tests(), check=True)
    assert checked(SCRIPT, "3").stdout == plain.stdout


def test_a_module_is_run_with_its_arguments_as_python_runs_it():
    ended = checked("-m", "support.planted_model", "2")
    assert ended.returncode == 1
    assert "8 calls checked, 3 findings" in ended.stderr


def test_with_error_the_program_ends_at_the_first_finding():
    ended = checked("--error", SCRIPT)
    assert ended.returncode == 1
    assert "BufferError: arguments 'u_now' and 'u_out'" in ended.stderr
    assert "2 calls checked, 1 finding" in ended.stderr


def test_a_program_without_findings_ends_with_status_0(script):
    ended = checked(script(""))
    assert ended.returncode == 0
    assert "0 findings" in ended.stderr


def test_a_script_gets_its_arguments_and_its_folder_on_the_path(script, tmp_path):
    path = script("")
    ended = checked(path, "--error", "-m", "x")
    assert json.loads(ended.stdout) == [[path, "--error", "-m", "x"], str(tmp_path)]


@pytest.mark.parametrize(("text", "status"), [("sys.exit()", 0), ("sys.exit(3)", 3)])
def test_the_status_of_a_program_is_its_own(script, text, status):
    assert checked(script(text)).returncode == status


def test_an_exception_of_the_program_is_shown_and_gives_status_1(script):
    ended = checked(script("1 / 0"))
    assert ended.returncode == 1
    assert "ZeroDivisionError" in ended.stderr
    assert "dlfield check:" in ended.stderr


def test_nothing_to_run_is_an_error_of_usage():
    ended = checked()
    assert ended.returncode == 2
    assert "needs a script, or -m and a module" in ended.stderr


def test_the_doctor_names_the_checker():
    assert "python -m dlfield check" in end_of_module("dlfield", "--help").stdout


LATER = """
import threading, time
import numpy as np
from support import planted_model

def later():
    time.sleep(0.3)
    planted_model.Model().run(2)

threading.Thread(target=later).start()
"""


def test_calls_of_threads_that_outlive_the_last_line_are_checked(script):
    ended = checked(script(LATER))
    assert ended.returncode == 1
    assert "8 calls checked, 3 findings" in ended.stderr


KEPT = """
import sys
from concurrent.futures import ThreadPoolExecutor
sys.pool = ThreadPoolExecutor(1)
sys.pool.submit(int)
"""


def test_an_executor_that_is_kept_does_not_keep_the_program(script):
    ended = checked(script(KEPT))
    assert ended.returncode == 0
    assert "0 findings" in ended.stderr


@pytest.mark.parametrize("arguments", [("missing.py",), ("-m", "missing.module")])
def test_a_program_that_is_missing_is_a_wrong_option(arguments):
    ended = checked(*arguments)
    assert ended.returncode == 2
    assert arguments[-1] in ended.stderr
    assert "Traceback" not in ended.stderr
