"""NumPy's functions of storages that give what NumPy gives, and views and joins by name."""

import io

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4) % 7

GIVEN = {
    "nonzero": np.nonzero,
    "argwhere": np.argwhere,
    "flatnonzero": np.flatnonzero,
    "unique": lambda a: np.unique(a, return_counts=True),
    "unique_all": np.unique_all,
    "unique_counts": np.unique_counts,
    "unique_inverse": np.unique_inverse,
    "unique_values": np.unique_values,
    "union1d": lambda a: np.union1d(a, [3, 9]),
    "intersect1d": lambda a: np.intersect1d(a, [3, 9]),
    "setdiff1d": lambda a: np.setdiff1d(a, [3, 9]),
    "setxor1d": lambda a: np.setxor1d(a, [3, 9]),
    "ediff1d": np.ediff1d,
    "extract": lambda a: np.extract(a > 3, a),
    "histogram": lambda a: np.histogram(a, 3, weights=a + 1),
    "histogram_bin_edges": np.histogram_bin_edges,
    "histogram2d": lambda a: np.histogram2d(a.ravel(), a.ravel() % 2, 3),
    "histogramdd": lambda a: np.histogramdd([a.ravel(), a.ravel() % 2], 2),
    "bincount": lambda a: np.bincount(a.ravel().astype(int)),
    "cov": lambda a: np.cov(a.ravel(), a.ravel() % 2, bias=True),
    "corrcoef": lambda a: np.corrcoef(np.arange(12.0), dlf.storage([*range(6), *range(6)])),
    "lexsort": lambda a: np.lexsort((a.ravel(), a.ravel() % 2)),
    "trim_zeros": lambda a: np.trim_zeros(a.ravel()),
    "diag_indices_from": lambda a: np.diag_indices_from(a.ravel()[:1][None]),
    "tril_indices_from": lambda a: np.tril_indices_from(a.ravel()[None]),
    "triu_indices_from": lambda a: np.triu_indices_from(a.ravel()[None]),
    "array2string": np.array2string,
    "array_str": np.array_str,
    "array_repr": np.array_repr,
    "array_equiv": lambda a: np.array_equiv(a, a + 0),
    "can_cast": lambda a: np.can_cast(a.dtype, np.float32),
    "common_type": np.common_type,
    "min_scalar_type": np.min_scalar_type,
}


@pytest.mark.parametrize("call", GIVEN.values(), ids=GIVEN)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_it_gives_what_numpy_gives_of_the_values(call, data):
    extents = {name: data.draw(st.integers(2, 4)) for name in ("I", "J")}
    field = data.draw(rules.storages(extents).filter(lambda one: one.ndim))
    plain = dlf.storage(np.real(field).astype(float), layout=range(field.ndim))
    found, wanted = call(plain), call(plain.to_numpy())
    found, wanted = (one if isinstance(one, tuple) else (one,) for one in (found, wanted))
    for one, other in zip(found, wanted, strict=True):
        for got, expected in zip(*map(parts, (one, other)), strict=True):
            assert type(got) is type(expected)
            np.testing.assert_array_equal(got, expected)


def parts(one):
    return one if isinstance(one, list) else [one]


def test_values_that_go_together_have_the_same_names():
    field = dlf.storage(VALUES[:, :2, 0], dims="IJ")
    turned = field.transpose()
    for call in (
        lambda: np.histogram(field, weights=turned),
        lambda: np.extract(turned > 1, field),
        lambda: np.array_equiv(field, turned),
    ):
        with refused(ValueError, "dims agree, got", "('J', 'I')", "transpose or rename one"):
            call()


def test_values_of_unrelated_names_do_not_go_together():
    field, other = (dlf.storage(VALUES[:, :2, 0], dims=dims) for dims in ("IJ", "xy"))
    for function in (np.allclose, np.array_equal, np.vdot, np.histogram2d):
        with refused(ValueError, f"{function.__name__}: expected arrays whose dims agree"):
            function(field, other)


def test_a_text_file_has_the_values():
    np.savetxt(file := io.StringIO(), dlf.storage(VALUES[0], dims="JK"), "%d")
    assert file.getvalue() == "0 1 2 3\n4 5 6 0\n1 2 3 4\n"


def test_types_are_told_without_reading_values():
    field = dlf.ones(3, "float32")
    assert np.can_cast(field, np.float32)
    assert np.common_type(field, dlf.ones(1, "complex64")) == np.complex64
    assert np.min_scalar_type(field) == np.float32


# --- views ---------------------------------------------------------------------------------------


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJK", halo=((0, 1), 1, 0), layout=(2, 0, 1))


VIEWS = {
    "rollaxis": (lambda a: np.rollaxis(a, 2), lambda a: np.rollaxis(a, "K"), "KIJ"),
    "rollaxis to": (lambda a: np.rollaxis(a, 0, 3), lambda a: np.rollaxis(a, "I", 3), "JKI"),
    "moveaxis": (
        lambda a: np.moveaxis(a, (0, 1), (1, 0)),
        lambda a: np.moveaxis(a, ("I", "J"), (1, 0)),
        "JIK",
    ),
    "swapaxes": (lambda a: np.swapaxes(a, 0, 2), lambda a: np.swapaxes(a, "I", axis2="K"), "KJI"),
    "flip": (lambda a: np.flip(a, (0, 2)), lambda a: np.flip(a, ("K", "I")), "IJK"),
    "fliplr": (np.fliplr, np.fliplr, "IJK"),
    "flipud": (np.flipud, np.flipud, "IJK"),
    "rot90": (lambda a: np.rot90(a, 1, (0, 2)), lambda a: np.rot90(a, 1, ("I", "K")), "KJI"),
    "squeeze": (lambda a: np.squeeze(a[:1], 0), lambda a: np.squeeze(a[:1], "I"), "JK"),
    "atleast_3d": (np.atleast_3d, np.atleast_3d, "IJK"),
    "atleast_2d": (lambda a: np.atleast_2d(a[0, 0]), lambda a: np.atleast_2d(a[0, 0]), None),
    "linalg.matrix_transpose": (np.linalg.matrix_transpose, np.linalg.matrix_transpose, "IKJ"),
    "windows": (
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, "K"),
        None,
    ),
}


@pytest.mark.parametrize(("call", "named", "dims"), VIEWS.values(), ids=VIEWS)
def test_axes_of_views_have_names(field, call, named, dims):
    for view in (call(field), named(field)):
        np.testing.assert_array_equal(view.to_numpy(), call(VALUES), strict=True)
        assert np.shares_memory(view, field)
        assert view.dims == (None if dims is None else tuple(dims))


PARTS = {
    "split": (lambda a: np.split(a, 3, 1), lambda a: np.split(a, 3, "J")),
    "array_split": (lambda a: np.array_split(a, 3, 2), lambda a: np.array_split(a, 3, "K")),
    "hsplit": (lambda a: np.hsplit(a, [1]), lambda a: np.hsplit(a, [1])),
    "vsplit": (lambda a: np.vsplit(a, 2), lambda a: np.vsplit(a, 2)),
    "dsplit": (lambda a: np.dsplit(a, 2), lambda a: np.dsplit(a, 2)),
    "unstack": (lambda a: np.unstack(a, axis=1), lambda a: np.unstack(a, axis="J")),
}


@pytest.mark.parametrize(("call", "named"), PARTS.values(), ids=PARTS)
def test_parts_are_views(field, call, named):
    for parts in (call(field), named(field)):
        for part, wanted in zip(parts, call(VALUES), strict=True):
            np.testing.assert_array_equal(part.to_numpy(), wanted, strict=True)
            assert np.shares_memory(part, field)
            assert part.dims == (tuple("IJK") if part.ndim == 3 else ("I", "K"))


def test_parts_that_numpy_refuses_are_refused(field):
    with pytest.raises(ValueError, match="equal division"):
        np.split(field, 2, "J")
    with refused(ValueError, "numpy.vsplit: expected a storage of at least 2 dimensions, got 1"):
        np.vsplit(field[0, 0], 2)


def test_a_writable_view_of_windows_is_refused(field):
    with refused(ValueError, "sliding_window_view: expected writeable=False"):
        np.lib.stride_tricks.sliding_window_view(field, 2, 0, writeable=True)


# --- joins, and what moves -----------------------------------------------------------------------


def test_stacks_join_along_axes_that_are_there(field):
    row = field[0, 0]
    for call, array in (
        (np.hstack, field),
        (np.vstack, field),
        (np.dstack, field),
        (np.hstack, row),
    ):
        joined = call([array, array])
        np.testing.assert_array_equal(joined.to_numpy(), call([array.to_numpy()] * 2), strict=True)
        assert joined.dims == array.dims
    for call in (np.vstack, np.dstack):
        joined = call([row, row])
        np.testing.assert_array_equal(joined.to_numpy(), call([row.to_numpy()] * 2), strict=True)
        assert joined.dims is None
    assert np.concatenate([field, field], "K").shape == (2, 3, 8)


def test_what_moves_elements_takes_names(field):
    np.testing.assert_array_equal(
        np.roll(field, (1, 2), ("I", "K")), np.roll(VALUES, (1, 2), (0, 2))
    )
    padded = np.pad(field, {"K": (1, 2)})
    np.testing.assert_array_equal(padded, np.pad(VALUES, [(0, 0), (0, 0), (1, 2)]))
    assert padded.halo == ((0, 1), (1, 1), (1, 2))
    assert np.size(field, "J") == 3


@pytest.mark.parametrize("call", [np.tril, np.triu])
def test_triangles_keep_all_labels(field, call):
    made = call(field, 1)
    np.testing.assert_array_equal(made.to_numpy(), call(VALUES, 1), strict=True)
    assert (made.dims, made.halo, made.layout) == (field.dims, field.halo, field.layout)
    with refused(
        ValueError, f"numpy.{call.__name__}: expected a storage of at least 2 dimensions, got 1"
    ):
        call(field[0, 0])


def test_gradients_of_several_axes_are_one_storage_each(field):
    for found, wanted in zip(np.gradient(field), np.gradient(VALUES), strict=True):
        np.testing.assert_array_equal(found.to_numpy(), wanted, strict=True)
        assert (found.dims, found.halo) == (field.dims, field.halo)
    places = dlf.storage([0.0, 1.0, 4.0], dims="J")
    wanted = np.gradient(VALUES, [0.0, 1.0, 4.0], axis=1)
    np.testing.assert_array_equal(np.gradient(field, places, axis="J").to_numpy(), wanted)
    found = np.gradient(VALUES, places, axis=1)
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_differences_with_ends_and_of_higher_order(field):
    np.testing.assert_array_equal(np.diff(field, 2, "K"), np.diff(VALUES, 2))
    np.testing.assert_array_equal(np.diff(field > 3, axis="K"), np.diff(VALUES > 3))
    ends = {"prepend": 0, "append": VALUES[..., :2]}
    np.testing.assert_array_equal(np.diff(field, **ends), np.diff(VALUES, **ends))
    assert np.diff(field, 0) is field
    with refused(ValueError, "numpy.diff: expected n of at least 0, got -1"):
        np.diff(field, -1)


def test_indices_may_be_a_storage_or_have_several_dimensions(field):
    indices = dlf.storage([[2, 0], [1, 1]])
    made = np.take(field, indices, "J")
    np.testing.assert_array_equal(made.to_numpy(), np.take(VALUES, [[2, 0], [1, 1]], 1))
    assert (made.dims, made.halo) == (None, None)
    assert type(np.take(VALUES, indices[0], 1)) is np.ndarray
    np.testing.assert_array_equal(np.repeat(field, [1, 0, 2], "J"), np.repeat(VALUES, [1, 0, 2], 1))


@pytest.mark.parametrize(
    "call", [lambda a: np.take(a, [0]), lambda a: np.repeat(a, 2), lambda a: np.sort(a, None)]
)
def test_an_axis_is_needed_where_numpy_would_put_all_in_a_row(field, call):
    with refused(TypeError, "needs an axis of a storage of 3 dimensions", "ravel()"):
        call(field)
    assert call(field[0, 0]).dims == ("K",)


@pytest.mark.parametrize("axis", [(0, 1), ("I", "J"), ["K"], (), {0}, range(2), True, 0.0])
@pytest.mark.parametrize(
    "call",
    [
        lambda a, axis: np.sort(a, axis=axis),
        lambda a, axis: np.take(a, [0], axis=axis),
        lambda a, axis: np.diff(a, axis=axis),
        lambda a, axis: np.concatenate([a, a], axis=axis),
        lambda a, axis: np.split(a, 2, axis=axis),
        lambda a, axis: np.unstack(a, axis=axis),
    ],
)
def test_several_axes_are_refused_where_numpy_takes_one(field, call, axis):
    with refused(TypeError, f"axis: expected one axis, got {axis!r}; pass one name or number"):
        call(field, axis)


@pytest.mark.parametrize(
    "call",
    [lambda a, axis: np.sort(a, axis), lambda a, axis: np.take(a, [0], axis), np.flip, np.squeeze],
)
def test_a_name_that_the_storage_lacks_is_no_axis(field, call):
    with refused(ValueError, "expected an axis of the storage, got 'Z'", "('I', 'J', 'K')"):
        call(field, "Z")
    with refused(ValueError, "got 'I' of one without dims"):
        call(dlf.zeros((1, 1)), "I")


@pytest.mark.parametrize("call", [np.take, np.compress])
def test_a_result_is_not_put_into_an_array_that_is_there(field, call):
    with refused(TypeError, "expected out=None, got an array"):
        call(
            field if call is np.take else [True], [0] if call is np.take else field, 0, np.zeros(3)
        )
