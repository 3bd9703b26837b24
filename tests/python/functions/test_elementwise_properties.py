"""Every universal function of NumPy on random storages: values, type, dims and labels."""

import warnings

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules


@st.composite
def calls(draw, named):
    ufunc = draw(st.sampled_from(rules.UFUNCS))
    names = draw(st.permutations(rules.NAMES))[:3]
    extents = {name: draw(st.integers(0, 4)) for name in names}
    given = [draw(rules.storages(extents, named=named)) for _ in range(ufunc.nin)]
    return ufunc, given


def of_numpy(ufunc, arrays):
    """What NumPy gives, as a tuple; None if it refuses the types or gives objects."""
    try:
        made = ufunc(*arrays)
    except TypeError:
        return None
    made = made if isinstance(made, tuple) else (made,)
    return None if any(one.dtype == object for one in map(np.asarray, made)) else made


@settings(max_examples=600, deadline=None)
@given(calls(named=True))
def test_a_universal_function_goes_by_name_and_labels_its_result(call):
    ufunc, operands = call
    dims = rules.expected_dims(operands)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        if dims is None:
            with pytest.raises((ValueError, TypeError)):
                ufunc(*operands)
            return
        check(ufunc, operands, dims, [rules.aligned(one, dims) for one in operands])


@settings(max_examples=400, deadline=None)
@given(calls(named=False))
def test_without_names_a_universal_function_goes_by_position(call):
    ufunc, operands = call
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        check(ufunc, operands, (), [one.to_numpy() for one in operands])


def check(ufunc, operands, dims, arrays):
    try:
        expected = of_numpy(ufunc, arrays)
    except ValueError:
        with pytest.raises(ValueError, match="negative integer powers"):
            ufunc(*operands)
        return
    if expected is None:
        with pytest.raises(TypeError):
            ufunc(*operands)
        return
    made = ufunc(*operands)
    made = made if isinstance(made, tuple) else (made,)
    assert len(made) == len(expected)
    for one, wanted in zip(made, map(np.asarray, expected), strict=True):
        assert type(one) is dlf.CPUStorage
        assert one.dtype == wanted.dtype
        np.testing.assert_array_equal(one.to_numpy(), wanted)
        check_labels(one, operands, dims)


def check_labels(made, operands, dims):
    shape = made.shape
    assert (made.dims or ()) == dims
    assert made.halo == rules.expected_halo(operands, dims, shape)
    assert getattr(made, "default_origin", None) == rules.expected_origin(operands, dims, shape)
    assert made.aligned_index == rules.expected_aligned_index(operands, dims, shape)
    assert made.layout == rules.expected_layout(operands, dims, shape)
    assert made.alignment_size == rules.expected_alignment(operands, made.dtype)
    assert not made.readonly
    assert not any(np.shares_memory(made, one) for one in operands)
