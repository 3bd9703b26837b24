"""NumPy's functions of random storages: values as NumPy has them, labels by a plain second rule."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support import operands as rules


@st.composite
def fields(draw, least=1, smallest=1):
    """A storage of numbers with at least one axis, and one of its axes."""
    names = draw(st.permutations(rules.NAMES))[: draw(st.integers(least, 3))]
    extents = {name: draw(st.integers(smallest, 5)) for name in names}
    storage = draw(rules.storages(extents))
    assume(storage.ndim >= least and storage.dtype != bool)
    storage = dlf.storage(storage)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    storage[...] = rng.integers(0, 9, storage.shape).astype(storage.dtype)
    return storage, draw(st.integers(0, storage.ndim - 1))


def by_name_or_number(data, storage, at):
    choices = [at, at - storage.ndim, *([storage.dims[at]] if storage.dims else [])]
    return data.draw(st.sampled_from(choices))


def check(found, wanted, storage, *, halo=None, dims=None):
    assert type(found) is dlf.CPUStorage
    np.testing.assert_array_equal(found.to_numpy(), wanted, strict=True)
    assert found.dims == (storage.dims if dims is None else dims)
    assert found.halo == halo
    assert not np.shares_memory(found, storage)


KEEPING = {
    "sort": np.sort,
    "stable sort": lambda a, axis: np.sort(a, axis, stable=True),
    "argsort": lambda a, axis: np.argsort(a, axis, "stable"),
    "partition": lambda a, axis: np.sort(np.partition(a, 0, axis), axis),
    "argpartition": lambda a, axis: np.argpartition(a, -1, axis=axis),
    "roll": lambda a, axis: np.roll(a, 2, axis),
    "gradient": lambda a, axis: np.gradient(a, 0.5, axis=axis),
    "unwrap": lambda a, axis: np.unwrap(a, axis=axis, period=4),
}


@pytest.mark.parametrize("call", KEEPING.values(), ids=KEEPING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_keeps_the_extent_keeps_all_labels(call, data):
    storage, at = data.draw(fields(smallest=2))
    storage = np.real(storage).astype(float) if call is KEEPING["unwrap"] else storage
    found = call(storage, axis=by_name_or_number(data, storage, at))
    check(found, call(storage.to_numpy(), axis=at), storage, halo=storage.halo)
    assert found.layout == storage.layout


PICKING = {
    "take": lambda a, axis, picks: np.take(a, picks, axis),
    "take and wrap": lambda a, axis, picks: np.take(a, [*picks, 7], axis=axis, mode="wrap"),
    "repeat": lambda a, axis, picks: np.repeat(a, 2, axis),
    "compress": lambda a, axis, picks: (
        np.compress([True, False, True][: a.ndim], a, axis)
        if max(picks, default=0) < 0
        else np.compress([True], a, axis)
    ),
    "reduceat": lambda a, axis, picks: np.add.reduceat(a, [0, *picks], axis),
}


@pytest.mark.parametrize("call", PICKING.values(), ids=PICKING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_picks_elements_keeps_the_name_of_the_axis(call, data):
    storage, at = data.draw(fields())
    picks = data.draw(st.lists(st.integers(0, storage.shape[at] - 1), max_size=4))
    axis = at if call is PICKING["compress"] else by_name_or_number(data, storage, at)
    found = call(storage, axis, picks)
    known = storage.halo is not None and not any(storage.halo[at])
    wanted = call(storage.to_numpy(), at, picks)
    check(found, wanted, storage, halo=storage.halo if known else None)


@settings(deadline=None)
@given(data=st.data())
def test_one_index_takes_the_axis_away(data):
    storage, at = data.draw(fields())
    index = data.draw(st.integers(-storage.shape[at], storage.shape[at] - 1))
    found = np.take(storage, index, by_name_or_number(data, storage, at))
    left = [axis for axis in range(storage.ndim) if axis != at]
    check(
        found,
        np.take(storage.to_numpy(), index, at),
        storage,
        halo=None if storage.halo is None else tuple(storage.halo[axis] for axis in left),
        dims=None if storage.dims is None else tuple(storage.dims[axis] for axis in left),
    )


@settings(deadline=None)
@given(data=st.data())
def test_indices_that_sort_a_field_take_it_in_order(data):
    storage, at = data.draw(fields())
    axis = by_name_or_number(data, storage, at)
    found = np.take_along_axis(storage, np.argsort(storage, axis), axis)
    check(found, np.sort(storage.to_numpy(), at), storage, halo=storage.halo)


@settings(deadline=None)
@given(data=st.data())
def test_a_difference_has_one_element_less_and_the_halo_of_the_field(data):
    storage, at = data.draw(fields(smallest=2))
    found = np.diff(storage, axis=by_name_or_number(data, storage, at))
    np.testing.assert_array_equal(found, np.diff(storage.to_numpy(), axis=at))
    assert (found.dims, found.dtype) == (storage.dims, storage.dtype)
    if storage.halo is not None and sum(storage.halo[at]) < storage.shape[at]:
        assert found.halo == storage.halo


@settings(deadline=None)
@given(data=st.data())
def test_a_part_of_a_split_has_the_halo_of_its_place(data):
    storage, at = data.draw(fields())
    sections = data.draw(st.integers(1, 4) | st.lists(st.integers(-6, 6), max_size=3))
    parts = np.array_split(storage, sections, by_name_or_number(data, storage, at))
    wanted = np.array_split(storage.to_numpy(), sections, at)
    starts = np.array_split(np.arange(storage.shape[at]), sections)
    for part, values, numbers in zip(parts, wanted, starts, strict=True):
        np.testing.assert_array_equal(part.to_numpy(), values, strict=True)
        assert part.dims == storage.dims
        if numbers.size:
            cut = slice(numbers[0], numbers[-1] + 1)
            assert np.shares_memory(part, storage)
            assert part.halo == storage[(*(slice(None),) * at, cut)].halo


@settings(deadline=None)
@given(data=st.data())
def test_an_integral_has_the_dims_that_stay(data):
    storage, at = data.draw(fields(least=2))
    steps = data.draw(st.sampled_from([None, np.linspace(0, 1, storage.shape[at]) ** 2]))
    found = np.trapezoid(storage, steps, 0.5, by_name_or_number(data, storage, at))
    np.testing.assert_allclose(found, np.trapezoid(storage.to_numpy(), steps, 0.5, at), rtol=1e-6)
    assert found.dims == tuple(name for name in storage.dims if name != storage.dims[at])


@settings(deadline=None)
@given(data=st.data())
def test_a_tile_has_names_and_no_halo(data):
    storage, _ = data.draw(fields())
    reps = tuple(data.draw(st.integers(1, 2)) for _ in range(storage.ndim))
    known = storage.halo is not None and not any(map(any, storage.halo))
    wanted = np.tile(storage.to_numpy(), reps)
    check(np.tile(storage, reps), wanted, storage, halo=storage.halo if known else None)


#: Calls, and the operands in the order in which their names count.
CHOICES = {
    "where": (lambda a, b, c: np.where(a > 3, b, c), (0, 1, 2)),
    "select": (lambda a, b, c: np.select([a > 3, b > 5], [b, c], 1), (0, 1, 1, 2)),
    "choose": (lambda a, b, c: np.choose((a > 3).astype(int), [b, c]), (0, 1, 2)),
    "clip": (lambda a, b, c: np.clip(a, b, c), (0, 1, 2)),
    "isclose": (lambda a, b, _: np.isclose(a, b), (0, 1)),
}


@pytest.mark.parametrize(("call", "order"), CHOICES.values(), ids=CHOICES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_choices_go_by_name_and_are_labelled_as_in_arithmetic(call, order, data):
    extents = {name: data.draw(st.integers(0, 4)) for name in data.draw(st.permutations("IJK"))}
    drawn = [data.draw(rules.storages(extents)) for _ in range(3)]
    operands = [np.real(one) if one.dtype.kind == "c" else one for one in drawn]
    dims = rules.expected_dims([operands[at] for at in order])
    if dims is None:
        with pytest.raises(ValueError, match="in the same order"):
            call(*operands)
        return
    found = call(*operands)
    used = [operands[at] if at in order else operands[0] for at in range(3)]
    # Copies, because NumPy's masked writes read an element of empty arrays.
    wanted = call(*(rules.aligned(one, dims).copy() for one in used))
    np.testing.assert_array_equal(found.to_numpy(), wanted, strict=True)
    assert (found.dims or ()) == dims
