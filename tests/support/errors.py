"""Expectations of exceptions: those that are raised, and those that cannot be."""

import sys
from contextlib import contextmanager

import pytest


@contextmanager
def refused(error, *texts):
    """Expect an error whose text, with its notes, contains all of `texts`; give what was caught."""
    with pytest.raises(error) as caught:
        yield caught
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    for text in texts:
        assert text in message, message


@contextmanager
def unraisable():
    """Return the texts of exceptions that could not be raised."""
    reported, before = [], sys.unraisablehook
    sys.unraisablehook = lambda args: reported.append(str(args.exc_value))
    try:
        yield reported
    finally:
        sys.unraisablehook = before
