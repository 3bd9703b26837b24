"""The number of threads of a large copy: its variables, and setting it again."""

import os

import dlfield as dlf
import pytest

from support.processes import run_in_subprocess


@pytest.fixture(autouse=True)
def as_before():
    before = dlf.get_num_threads()
    yield
    dlf.set_num_threads(before)


def in_process(then="print(dlf.get_num_threads())", **environment):
    """Return what a process prints that has these variables, and none other about threads."""
    return run_in_subprocess(f"""
        import os
        import warnings

        for name in ("DLFIELD_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.pop(name, None)
        os.environ.update({environment!r})

        with warnings.catch_warnings(record=True, action="always") as warned:
            import dlfield as dlf

        {then}
    """)


def test_the_number_that_is_set_is_the_number_there_is():
    for number in (1, 7, 2):
        dlf.set_num_threads(number)
        assert dlf.get_num_threads() == number


@pytest.mark.parametrize("number", [0, -1, -(2**40)])
def test_less_than_one_thread_is_refused_by_name(number):
    dlf.set_num_threads(3)
    with pytest.raises(ValueError, match=rf"num_threads: expected at least 1, got {number}$"):
        dlf.set_num_threads(number)
    assert dlf.get_num_threads() == 3


@pytest.mark.parametrize("number", [2.0, "2", None, [2]], ids=repr)
def test_a_number_of_threads_must_be_an_integer(number):
    dlf.set_num_threads(3)
    with pytest.raises(TypeError, match="num_threads: expected an int, got"):
        dlf.set_num_threads(number)
    assert dlf.get_num_threads() == 3


def test_dlfields_variable_counts_before_openmps():
    assert in_process(DLFIELD_NUM_THREADS="5", OMP_NUM_THREADS="2") == "5"


@pytest.mark.parametrize("text", ["4", " 4 ", "4,2,1"])
def test_openmps_variable_counts_if_there_is_no_other(text):
    assert in_process(OMP_NUM_THREADS=text) == "4"


@pytest.mark.parametrize("text", ["", "0", "-2", "many", "1.5"])
def test_a_variable_that_holds_no_number_of_threads_does_not_count(text):
    assert in_process(DLFIELD_NUM_THREADS=text, OMP_NUM_THREADS="3") == "3"


@pytest.mark.parametrize("text", ["0", "many"])
def test_a_variable_that_holds_no_number_of_threads_is_warned_of_by_name(text):
    printed = in_process("print(*[one.message for one in warned])", DLFIELD_NUM_THREADS=text)
    expected = "DLFIELD_NUM_THREADS: expected a number of at least 1"
    assert printed == f"{expected}, got '{text}'; it is not used"


def test_a_variable_that_holds_a_number_is_not_warned_of():
    assert in_process("print(len(warned))", DLFIELD_NUM_THREADS="2", OMP_NUM_THREADS="many") == "0"


def test_without_variables_there_are_at_most_as_many_threads_as_cpus():
    assert 1 <= int(in_process()) <= os.cpu_count()


def test_what_is_set_counts_before_the_environment():
    setting = "dlf.set_num_threads(6); print(dlf.get_num_threads())"
    assert in_process(setting, DLFIELD_NUM_THREADS="5") == "6"
