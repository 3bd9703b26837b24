"""Each function and class of the API pages has an example, which prints what it shows."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest
from dlfield import _core

from support.optional import library

DOCS = Path(__file__).resolve().parents[2] / "docs"
LISTED = re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text("utf-8"), re.M)
#: As `docs/conf.py` reads them.
TEXTS = (DOCS / "examples.txt").read_text("utf-8").split("\n\n")[1:]
COMPILED = {text.partition("\n")[0]: text.partition("\n")[2] for text in TEXTS}
NEEDED = {"gt4py.next": "gt4py.next", "to_xarray": "xarray"}


def found(name):
    """Return what a listed name stands for."""
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(f"dlfield.{module}") if module else dlf, own)


def _is_shown(one):
    """Tell functions and classes from modules and errors. GPUs are not everywhere."""
    is_error = inspect.isclass(one) and issubclass(one, Exception)
    return callable(one) and not is_error and "GPU" not in one.__name__


SHOWN = [name for name in LISTED if _is_shown(found(name))]


def example(name):
    text = COMPILED.get(name) or inspect.getdoc(found(name)).partition("\nExamples\n")[2]
    return text.partition("\nNotes\n")[0]


def test_the_examples_apart_are_those_of_compiled_functions():
    compiled = [name for name in SHOWN if getattr(_core, name, None) is found(name)]
    assert sorted(COMPILED) == sorted(compiled)


@pytest.mark.parametrize("name", SHOWN)
def test_each_function_and_class_has_an_example_that_prints_what_it_shows(name):
    text = example(name)
    assert ">>> " in text
    for part, needed in NEEDED.items():
        if part in text and "+SKIP" not in text:
            library(needed)
    kept = vars(dlf) | {"dlf": dlf, "np": np}
    test = doctest.DocTestParser().get_doctest(text, kept, name, None, 0)
    printed = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=printed.append)
    assert printed == []
