"""The table of NumPy's functions: each is in one list, which decides what happens."""

import importlib

import dlfield as dlf
import numpy as np
import numpy.char
import numpy.fft
import numpy.polynomial
import numpy.strings
import pytest
from dlfield.functions.dispatch import implementation
from dlfield.functions.table import ARRAYS, REFUSED, STORAGES
from numpy.testing.overrides import get_overridable_numpy_array_functions

from support.function_tables import DOCUMENT, with_tables

LISTS = {"storages": STORAGES, "arrays": ARRAYS, "refused": REFUSED}
#: Functions that some versions of NumPy lack.
VARYING = {"cumulative_prod", "cumulative_sum", "in1d", "row_stack", "trapz", "unstack"}
VARYING |= {"polynomial.polynomial.polyvalnd"}


def qualified(function):
    module = function.__module__.replace("_scimath_impl", "scimath")
    return f"{module}.{function.__name__}"


FUNCTIONS = {
    qualified(one): one
    for one in get_overridable_numpy_array_functions()
    if one.__module__.partition(".")[0] == "numpy"
}


def names(rows):
    return [f"numpy.{name}" for row in rows for name in row.names.split()]


def test_every_function_of_numpy_is_in_one_list():
    listed = [name for rows in LISTS.values() for name in names(rows)]
    assert set(FUNCTIONS) - set(listed) == set()
    assert sorted(listed) == sorted(set(listed))


def test_every_listed_function_is_one_of_numpy():
    for name in {name for rows in LISTS.values() for name in names(rows)}:
        module, _, own = name.rpartition(".")
        short = name.removeprefix("numpy.")
        there = hasattr(importlib.import_module(module), own)
        assert there or short in VARYING or short.startswith("strings."), name


@pytest.mark.parametrize("name", [one for one in names((*STORAGES, *ARRAYS)) if one in FUNCTIONS])
def test_what_is_not_refused_is_there(name):
    assert implementation(FUNCTIONS[name]) is not None


@pytest.mark.source(
    "GDP-3",
    "Alternatives",
    "universal functions and other functions of NumPy are not implemented by storages",
)
@pytest.mark.parametrize("name", [one for one in names(REFUSED) if one in FUNCTIONS])
def test_what_is_refused_names_the_function_and_the_way_out(name):
    with pytest.raises(TypeError, match=r"use .*storage\.to_numpy\(\)") as caught:
        dlf.zeros(3).__array_function__(FUNCTIONS[name], (dlf.CPUStorage,), (), {})
    own = FUNCTIONS[name]
    start = f"{own.__module__}.{own.__name__}: expected an array, got a CPUStorage, which has no"
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda a: np.dot(a, a), '(a * b).sum("K") or numpy.multiply.outer'),
        (lambda a: np.append(a, a), "numpy.concatenate or numpy.take"),
        (lambda a: np.put(a, [0], 1), "storage[...] = values"),
        (lambda a: np.emath.sqrt(a), "storage.astype(complex)"),
    ],
)
def test_a_refusal_names_what_fields_have_instead(call, instead):
    with pytest.raises(TypeError) as caught:
        call(dlf.zeros(3))
    assert f"use {instead}, or storage.to_numpy()" in str(caught.value)


def test_a_function_that_the_table_does_not_know_is_refused():
    def new(a):
        raise AssertionError

    with pytest.raises(TypeError, match=r"new: expected an array, got a CPUStorage"):
        dlf.zeros(3).__array_function__(new, (dlf.CPUStorage,), (), {})


def test_the_page_shows_the_table():
    text = DOCUMENT.read_text("utf-8")
    assert with_tables(text) == text, "run `make pages`"
