"""Methods of universal functions that are neither calls nor reductions: outer, at, reduceat."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4) % 7


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJK", halo=(0, 1, 0), layout=(2, 0, 1))


# --- outer ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_outer_has_the_dims_of_both(data):
    extents = dict(zip("IJK0", data.draw(st.lists(st.integers(0, 3), min_size=4)), strict=False))
    ufunc = data.draw(st.sampled_from([np.add, np.multiply, np.fmax, np.less, np.divmod]))
    first = data.draw(rules.storages({name: extents[name] for name in "IK"}))
    second = data.draw(rules.storages({name: extents[name] for name in "J0"}))
    if bool in (first.dtype, second.dtype) or np.complex64 in (first.dtype, second.dtype):
        return
    with np.errstate(all="ignore"):
        made = ufunc.outer(first, second)
        wanted = ufunc.outer(first.to_numpy(), second.to_numpy())
    for one, values in zip(
        *((x if isinstance(x, tuple) else (x,)) for x in (made, wanted)), strict=True
    ):
        np.testing.assert_array_equal(one.to_numpy(), values, strict=True)
        assert (one.dims or ()) == (*(first.dims or ()), *(second.dims or ()))
        if first.halo is not None and second.halo is not None:
            assert one.halo == (*first.halo, *second.halo)


def test_outer_without_names_goes_by_position():
    a, b = dlf.storage(np.arange(6.0).reshape(2, 3)), np.arange(4.0)
    for first, second in ((a, b), (b, a), (a, dlf.storage(b)), (a, [1, 2])):
        made = np.subtract.outer(first, second)
        wanted = np.subtract.outer(np.asarray(first), np.asarray(second))
        assert made.dims is None
        np.testing.assert_array_equal(made.to_numpy(), wanted)


def test_outer_with_a_number_keeps_the_labels(field):
    assert np.add.outer(field, 1).halo == field.halo
    assert np.add.outer(1, field).dims == field.dims


def test_outer_writes_into_an_output(field):
    out = dlf.zeros((2, 3, 4, 5), dims=(*"IJK", "0"))
    assert np.add.outer(field, dlf.ones(5, dims=("0",)), out=out) is out
    assert out[1, 2, 3, 4] == VALUES[1, 2, 3] + 1


def test_outer_has_the_dims_of_the_first_then_of_the_second_also_if_they_are_unrelated(field):
    line, level = dlf.storage([1.0, 2.0], dims="x"), dlf.storage([1.0, 2.0], dims="K")
    plane = field[:, :, 0]
    for first, second in ((plane, line), (line, plane), (level, plane), (plane, level)):
        made = np.subtract.outer(first, second)
        assert made.dims == first.dims + second.dims
        wanted = np.subtract.outer(first.to_numpy(), second.to_numpy())
        np.testing.assert_array_equal(made.to_numpy(), wanted)


def test_outer_of_shared_names_and_of_half_named_operands_is_refused(field):
    with refused(ValueError, "numpy.add.outer: expected operands without a shared name", "'K'"):
        np.add.outer(field, dlf.ones(4, dims="K"))
    with refused(ValueError, "expected dims in both operands or in none", "as_storage(array"):
        np.add.outer(field, np.ones(3))


# --- at ------------------------------------------------------------------------------------------


def test_at_adds_as_often_as_a_key_lists_an_element(field):
    expected = VALUES.copy()
    for key, values in ((([0, 0, 1],), 1), ((0, [1, 1, 1]), np.arange(4.0)), ((VALUES > 3,), 2.0)):
        np.add.at(field, key, values)
        np.add.at(expected, key, values)
    np.negative.at(field, ([0, 0],))
    np.negative.at(expected, ([0, 0],))
    np.testing.assert_array_equal(field.to_numpy(), expected)


def test_at_reads_storages_into_an_array(field):
    counts = np.zeros(7)
    np.add.at(counts, field[0].astype(int), field[1])
    wanted = np.zeros(7)
    np.add.at(wanted, VALUES[0].astype(int), VALUES[1])
    np.testing.assert_array_equal(counts, wanted)


def test_at_refuses_names_and_memory_that_is_read_only(field):
    with refused(ValueError, "numpy.add.at: expected a key and values without names", "('J', 'K')"):
        np.add.at(field, 0, field[1])
    with refused(BufferError, "numpy.add.at: expected a writable storage, got a read-only one"):
        np.add.at(dlf.as_storage(bytes(3)), [0], 1)
    np.testing.assert_array_equal(field.to_numpy(), VALUES)


# --- reduceat ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("axis", "at"), [("J", 1), (2, 2), (-3, 0)])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.logical_or])
def test_reduceat_keeps_the_name_of_the_axis(field, ufunc, axis, at):
    made = ufunc.reduceat(field, [0, 1, 0], axis)
    np.testing.assert_array_equal(
        made.to_numpy(), ufunc.reduceat(VALUES, [0, 1, 0], at), strict=True
    )
    assert made.dims == field.dims
    assert made.halo == (None if axis == "J" else field.halo)
    assert np.add.reduceat(field, [0], axis=axis, dtype="f4").dtype == np.float32


def test_reduceat_by_a_storage_of_indices_and_into_nothing_else(field):
    indices = dlf.storage([0, 1])
    np.testing.assert_array_equal(np.add.reduceat(field, indices), VALUES)
    assert type(np.add.reduceat(VALUES, indices)) is np.ndarray
    with refused(TypeError, "numpy.add.reduceat: expected out=None"):
        np.add.reduceat(field, [0], out=np.zeros((1, 3, 4)))
    with refused(ValueError, "expected an axis of the storage, got 'Z'"):
        np.add.reduceat(field, [0], "Z")
