"""Random expressions of five fields give what xarray gives, or are refused as the page says."""

import operator

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.optional import library

xr = library("xarray")

#: Functions of two fields: of storages or DataArrays, and of DataArrays around NumPy's arrays.
BINARY = {
    **{name: (getattr(operator, name),) * 2 for name in ("add", "sub", "mul", "truediv")},
    "maximum": (np.maximum, np.maximum),
    "less": (lambda a, b: (a < b) * 1.0,) * 2,
    "hypot": (np.hypot, np.hypot),
    "where": (lambda a, b: np.where(a > 1, a, b), lambda a, b: xr.where(a > 1, a, b)),
}
UNARY = [
    operator.neg,
    np.sqrt,
    lambda one: one**2,
    lambda one: 1 + one,
    lambda one: np.isfinite(one) * 2.0,
]


def leaves(extents, *, any_order):
    """A field of some names, of those of GT4Py in the order I, J, K, 0 or of all in any order."""
    known = [name for name in "IJK0" if name in extents]
    in_order = st.sets(st.sampled_from(known)).map(lambda some: [n for n in known if n in some])
    permuted = st.lists(st.sampled_from(sorted(extents)), unique=True)
    names = permuted if any_order else in_order
    return st.tuples(st.just("field"), names.map(tuple), st.integers(0, 99))


@st.composite
def expressions(draw, extents):
    """A tree of five fields: ("field", names, seed), (function, one), (name, left, right)."""
    any_order = draw(st.integers(0, 3)) == 0
    parts = [draw(leaves(extents, any_order=any_order)) for _ in range(5)]
    while len(parts) > 1:
        at = draw(st.integers(0, len(parts) - 2))
        name = draw(st.sampled_from(sorted(BINARY)))
        parts[at : at + 2] = [(name, parts[at], parts[at + 1])]
        if draw(st.integers(0, 4)) == 0:
            parts[at] = (draw(st.sampled_from(UNARY)), parts[at])
    return parts[0]


@st.composite
def cases(draw):
    extents = st.just(dict.fromkeys(rules.NAMES, 3)) | st.fixed_dictionaries(
        {name: st.integers(1, 4) for name in rules.NAMES}
    )
    extents = draw(extents)
    return extents, draw(expressions(extents))


def values_of(names, seed, extents):
    shape = tuple(extents[name] for name in names)
    return np.random.default_rng(seed).integers(0, 5, shape) / 2


def dims_of(tree):
    """The dims that the page says, or None where it says that the expression is refused."""
    if tree[0] == "field":
        return tree[1]
    named = [dims_of(part) for part in tree[1:]]
    if None in named:
        return None
    return rules.joined_dims([dims for dims in named if dims]) or (() if not any(named) else None)


def computed(tree, make, which):
    if tree[0] == "field":
        return make(*tree[1:])
    parts = [computed(part, make, which) for part in tree[1:]]
    function = BINARY[tree[0]][which] if isinstance(tree[0], str) else tree[0]
    return function(*parts)


def check(extents, tree):
    """Compare with xarray; True if the expression was computed, False if it was refused."""

    def storage(names, seed):
        return dlf.storage(values_of(names, seed, extents), dims=names)

    def array(names, seed):
        return xr.DataArray(values_of(names, seed, extents), dims=names)

    dims = dims_of(tree)
    with np.errstate(all="ignore"):
        if dims is None:
            with pytest.raises(ValueError, match=r"in the same order|share a dimension"):
                computed(tree, storage, 0)
            return False
        found, wanted = computed(tree, storage, 0), computed(tree, array, 1)
    assert found.dims == dims
    assert {*dims} == {*wanted.dims}
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.to_numpy(), wanted.transpose(*dims).to_numpy())
    return True


@settings(max_examples=300, deadline=None)
@given(cases())
def test_an_expression_of_five_fields_gives_what_xarray_gives_or_is_refused(case):
    check(*case)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_dataarrays_around_storages_give_what_they_give_around_arrays_or_are_refused(case):
    extents, tree = case

    def around(names, seed):
        field = dlf.storage(values_of(names, seed, extents), dims=names)
        return xr.DataArray(field, dims=names)

    def array(names, seed):
        return xr.DataArray(values_of(names, seed, extents), dims=names)

    with np.errstate(all="ignore"):
        wanted = computed(tree, array, 1)
        try:
            found = computed(tree, around, 1)
        except ValueError as error:
            texts = ("dims: expected", "shape: expected", "applied function returned")
            assert str(error).startswith(texts)  # noqa: PT017
            return
    xr.testing.assert_equal(found.as_numpy(), wanted)
