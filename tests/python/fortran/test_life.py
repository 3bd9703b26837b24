"""A view of an array lives as long as the call, unless the array is persistent."""

from pathlib import Path

import pytest

from support import optional
from support.fortran import run, succeeded

WAYS = ["storage", "view", "numpy", "slice", "capsule", "closure"]


@pytest.mark.parametrize("case", ["keep", "keep later"])
@pytest.mark.parametrize("how", WAYS)
def test_an_array_that_python_keeps_is_named(program, case, how):
    status, text = program.status(case, how)
    assert status == 3
    assert text.startswith(
        "keep: expected that nothing holds argument 'b' after the call, got a storage, view or "
        "export of it; "
    )


def test_an_array_that_is_kept_by_a_function_that_raises_is_named(program):
    status, text = program.status("keep", "raise")
    assert status == 2
    assert "ValueError: on purpose" in text
    assert "nothing holds argument 'b'" in text


def test_a_cycle_of_garbage_does_not_keep_an_array(program):
    assert program.status("keep", "cycle") == (0, "")


def test_a_call_after_one_that_kept_a_view_is_as_any_other(program):
    assert program.status("after keep") == (0, "")


def test_a_persistent_array_is_seen_by_later_calls(program):
    assert program.printed("persistent")[0] == ["changed", "T"]


def test_a_persistent_array_that_python_holds_is_not_deallocated(program):
    status, text = program.status("persistent")
    assert status == 1
    assert text.startswith("dlfield_deallocate: expected an array that Python does not hold")
    assert "argument 'state' of 'remember'" in text
    assert ["there", "T"] in program.printed("persistent")


def test_a_persistent_array_that_python_let_go_is_deallocated(program):
    assert ["then", "0", "F"] in program.printed("persistent")


def test_an_array_that_is_not_allocated_is_not_deallocated_again(program):
    assert ["again", "0"] in program.printed("persistent")


def test_an_array_that_comes_again_has_its_storage_until_it_is_forgotten(program):
    # The last is after `dlfield_forget`. A storage made then may have the address of one before.
    assert [line[1] for line in program.printed("again")][:4] == ["False", "True", "False", "False"]


def test_many_calls_leak_nothing(program):
    first, after_calls, once, twice = (int(line[1]) for line in program.printed("many"))
    assert after_calls - first < 100
    assert twice - once < 100


def test_threads_may_call_at_once(program):
    assert program.printed("threads") == [["changed", *"TTTTTTTT"]]


def test_a_hundred_calls_pass_valgrind(program):
    checked = optional.program("valgrind")
    suppressions = Path(__file__).resolve().parents[2] / "valgrind.supp"
    options = ["-q", "--error-exitcode=99", f"--suppressions={suppressions}"]
    done = run(checked, *options, program.folder / "program", "a few", PYTHONMALLOC="malloc")
    assert succeeded(done).split() == ["changed", "T"]
