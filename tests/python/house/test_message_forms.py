"""The check of messages behind `pytest.raises`: what it finds, and what it leaves alone."""

import dlfield as dlf
import pytest

from support.forms import PACKAGE


def compiled(message):
    """Raise as compiled code does: the innermost line of the traceback only calls."""
    paused = (None for _ in "a")
    next(paused)
    paused.throw(ValueError(message))


GOOD = (
    "halo: expected widths of at least 0, got -1",
    "memory on cuda:0: needs the driver; install it",
    "array: expected one that lies in order; make a copy, for example storage(x, layout=...)",
    "'CPUStorage' object has no attribute 'real'; use storage.to_numpy()",
)
NAMELESS = ("expected an array, got an int", "the halo is too wide", "halo")
ARTEFACTS = (
    "halo: expected 2 bytes, got Some(3)",
    "dims: expected names, got Field { dims: None }",
    "halo: expected widths, got none.",
    "halo: expected widths, got none; ",
    "to_xarray: needs xarray",
)


@pytest.mark.parametrize("message", GOOD)
def test_a_message_that_names_its_argument_first_passes(message):
    with pytest.raises(ValueError, match=r"."):
        compiled(message)


@pytest.mark.parametrize("message", NAMELESS)
def test_a_message_that_names_nothing_fails_the_test_that_expects_it(message):
    with (
        pytest.raises(AssertionError, match="names no argument"),
        pytest.raises(ValueError, match=r"."),
    ):
        compiled(message)


@pytest.mark.parametrize("message", ARTEFACTS)
def test_a_message_with_the_notation_of_rust_a_full_stop_or_no_way_out_fails_too(message):
    with (
        pytest.raises(AssertionError, match="not for users"),
        pytest.raises(ValueError, match=r"."),
    ):
        compiled(message)


def test_messages_of_tests_and_of_python_may_have_any_form():
    with pytest.raises(ValueError, match="on purpose"):
        raise ValueError("on purpose")
    with pytest.raises(TypeError, match="missing 1 required"):
        dlf.zeros()


def test_an_error_that_is_not_the_expected_one_goes_on():
    with pytest.raises(IndexError, match="another"), pytest.raises(ValueError, match=r"."):
        raise IndexError("another")


def test_no_text_of_the_package_says_that_it_got_what_is_absent():
    said = [path.name for path in PACKAGE.rglob("*.py") if "got none" in path.read_text("utf-8")]
    assert said == []
