"""A compilation that takes long is told on stderr, in one line."""

import time

import pytest
from dlfield.stencils import compilation


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(compilation, "_PATIENCE", 0.05)


def until_told(capsys):
    for _ in range(200):
        if told := capsys.readouterr().err:
            return told
        time.sleep(0.01)
    return ""


def test_a_slow_compilation_says_one_line(capsys):
    with compilation.compiling("smooth", "gt:cpu_ifirst"):
        told = until_told(capsys)
        time.sleep(0.1)
    assert told == "dlfield: GT4Py is compiling 'smooth' for gt:cpu_ifirst, 0 s so far\n"
    assert capsys.readouterr().err == ""


@pytest.fixture
def patience(monkeypatch):
    """Return more seconds than a compilation without work takes, on a busy machine too."""
    monkeypatch.setattr(compilation, "_PATIENCE", 0.5)
    return 0.5


def test_a_compilation_that_has_ended_says_nothing(capsys, patience):
    with compilation.compiling("smooth", "numpy"):
        pass
    time.sleep(2 * patience)
    assert capsys.readouterr().err == ""


def test_a_compilation_that_has_failed_says_nothing(capsys, patience):
    with pytest.raises(SystemExit), compilation.compiling("smooth", "numpy"):
        raise SystemExit
    time.sleep(2 * patience)
    assert capsys.readouterr().err == ""


def test_a_compilation_in_another_process_that_has_ended_says_nothing(capsys):
    compilation.say_if_slow("smooth", "gtfn", lambda: False).join()
    assert capsys.readouterr().err == ""


def test_the_log_has_begin_and_end(caplog):
    with caplog.at_level("INFO", "dlfield"), compilation.compiling("smooth", "numpy"):
        pass
    assert [one.message.partition(" in ")[0] for one in caplog.records] == [
        "compiling smooth for numpy",
        "compiled smooth for numpy",
    ]
