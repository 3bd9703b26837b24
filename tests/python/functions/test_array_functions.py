"""NumPy's functions of storages that give views, truths, copies and models."""

import io

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.owners import tracked
from support.processes import run_in_subprocess

VALUES = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJK", halo=((0, 1), 1, 0), layout=(2, 0, 1))


def known(storage):
    return (storage.dims, storage.halo)


def steps(array):
    """Strides of the axes along which there is a next element."""
    return [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1]


# --- who decides ---------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [np.dot, np.linalg.inv, np.fft.fft])
def test_numpy_itself_comes_to_the_refusal(field, call):
    with pytest.raises(TypeError, match=call.__name__):
        call(*(field,) * (2 if call is np.dot else 1))


def test_a_masked_array_is_not_taken_for_its_elements():
    with pytest.raises(TypeError, match="no implementation found"):
        np.concatenate([dlf.zeros(3), np.ma.zeros(3)])


def test_an_array_that_knows_storages_is_asked():
    class Wrapped:
        def __array_function__(self, func, types, args, kwargs):
            return (func, dlf.CPUStorage in types)

    assert np.concatenate([dlf.zeros(3), Wrapped()]) == (np.concatenate, True)


def test_importing_dlfield_does_not_import_the_functions():
    code = "import sys, dlfield; print([one for one in sys.modules if 'dlfield._array' in one])"
    assert run_in_subprocess(code) == "[]"


# --- views ---------------------------------------------------------------------------------------

VIEWS = {
    "transpose": (lambda a: np.transpose(a), "KJI", [(0, 0), (1, 1), (0, 1)]),
    "transpose to": (lambda a: np.transpose(a, (1, 2, 0)), "JKI", [(1, 1), (0, 0), (0, 1)]),
    "moveaxis": (lambda a: np.moveaxis(a, 0, -1), "JKI", [(1, 1), (0, 0), (0, 1)]),
    "moveaxis of two": (
        lambda a: np.moveaxis(a, (0, -1), (1, 0)),
        "KIJ",
        [(0, 0), (0, 1), (1, 1)],
    ),
    "swapaxes": (lambda a: np.swapaxes(a, 0, -1), "KJI", [(0, 0), (1, 1), (0, 1)]),
    "expand_dims": (lambda a: np.expand_dims(a, 1), None, [(0, 1), (0, 0), (1, 1), (0, 0)]),
    "expand_dims twice": (lambda a: np.expand_dims(a, (0, -1)), None, None),
    "squeeze": (lambda a: np.squeeze(a[:1]), "JK", [(1, 1), (0, 0)]),
    "squeeze of one": (lambda a: np.squeeze(a[:1, :1], axis=1), "IK", [(0, 0), (0, 0)]),
    "squeeze of none": (lambda a: np.squeeze(a), "IJK", [(0, 1), (1, 1), (0, 0)]),
    "squeeze of all": (lambda a: np.squeeze(a[:1, :1, :1]), "", []),
}


@pytest.mark.source(
    "GDP-3",
    "Alternatives",
    "universal functions and other functions of NumPy are not implemented by storages",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages implement NumPy's function protocol (NEP 18)",
)
@pytest.mark.parametrize(("call", "dims", "halo"), VIEWS.values(), ids=VIEWS)
def test_what_moves_axes_is_a_view_with_names_and_halo(field, call, dims, halo):
    view, expected = call(field), call(field.to_numpy())
    assert address_of(view) == address_of(field)
    assert view.shape == expected.shape
    assert steps(view) == steps(expected)
    assert view.dims == (None if dims is None else tuple(dims))
    assert halo is None or view.halo == tuple(halo)


def test_a_write_to_a_view_is_seen_in_the_storage(field):
    np.moveaxis(field, 0, -1)[0, 0, 0] = 42
    assert field[0, 0, 0] == 42


def test_a_view_by_a_numpy_function_keeps_the_memory_and_frees_it_once():
    source, watch = tracked(np.zeros((1, 4)))
    view = np.squeeze(np.swapaxes(dlf.as_storage(source), 0, 1))
    del source
    assert not watch.freed
    del view
    assert watch.freed


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.moveaxis(a, 3, 0),
        lambda a: np.moveaxis(a, (0, 1), 0),
        lambda a: np.swapaxes(a, 0, -4),
        lambda a: np.expand_dims(a, 5),
        lambda a: np.squeeze(a, axis=1),
        lambda a: np.squeeze(a, axis=7),
        lambda a: np.broadcast_to(a, (2, 3, 5)),
        lambda a: np.stack([a], axis=4),
        lambda a: np.concatenate([a], axis=3),
    ],
)
def test_axes_that_numpy_refuses_are_refused_with_the_same_error(field, call):
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whichever it is
        call(field.to_numpy())
    with pytest.raises(type(expected.value)):
        call(field)


def test_a_broadcast_view_shares_memory_and_is_read_only():
    row = dlf.storage(np.arange(4.0)[None], dims="IJ", halo=(0, 1))
    spread = np.broadcast_to(row, (3, 4))
    assert (address_of(spread), spread.strides) == (address_of(row), (0, 8))
    assert known(spread) == (("I", "J"), ((0, 0), (1, 1)))
    assert spread.readonly
    row[0, 2] = 42
    assert spread[1, 2] == 42


def test_an_axis_that_is_broadcast_has_no_halo_and_one_in_front_no_name():
    part = dlf.zeros((3, 4), dims="IJ", halo=(1, 1))[:1]
    assert known(np.broadcast_to(part, (2, 4))) == (("I", "J"), ((0, 0), (1, 1)))
    assert known(np.broadcast_to(part, (5, 1, 4))) == (None, ((0, 0), (1, 0), (1, 1)))


# --- shape and type ------------------------------------------------------------------------------


def test_shape_and_type_are_given_without_reading_values(field):
    assert (np.shape(field), np.ndim(field), np.size(field)) == ((2, 3, 4), 3, 24)
    assert (np.size(field, -1), np.size(field, axis=0)) == (4, 2)
    assert np.result_type(field, np.float32, dlf.zeros(1, "complex64")) == np.complex128
    assert np.result_type(dlf.zeros(3, "float32"), 1.5) == np.float32
    assert (np.iscomplexobj(field), np.isrealobj(field)) == (False, True)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Attributes",
    "`np.all` and `np.any` of a storage are those of its values",
)
@pytest.mark.parametrize("call", [np.all, np.any], ids=["all", "any"])
@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}], ids=str)
def test_all_and_any_are_those_of_the_values(field, call, options):
    answer = call(field, **options)
    np.testing.assert_array_equal(answer, call(VALUES, **options))
    assert isinstance(answer, dlf.Storage) == bool(options)


@pytest.mark.parametrize("equal", [np.array_equal, np.allclose])
def test_storages_are_compared_by_value(field, equal):
    assert equal(field, VALUES)
    assert equal(VALUES.tolist(), field)
    assert equal(field, field.copy())
    assert not equal(field, VALUES + 1)
    assert not equal(field, dlf.ones_like(field))
    first, second = ("a1", "a2") if equal is np.array_equal else ("a", "b")
    assert equal(**{first: field, second: VALUES})


def test_array_equal_is_false_for_another_shape_and_knows_nan(field):
    assert not np.array_equal(field, field[0])
    assert not np.array_equal(dlf.full(2, np.nan), dlf.full(2, np.nan))
    assert np.array_equal(dlf.full(2, np.nan), dlf.full(2, np.nan), equal_nan=True)


@pytest.mark.parametrize("equal", [np.array_equal, np.allclose])
def test_equality_ignores_the_order_of_names(equal):
    square = dlf.zeros((3, 3), dims="IJ")
    with pytest.raises(ValueError, match=r"dims agree, got \('I', 'J'\) and \('J', 'I'\)"):
        equal(square, square.T)


def test_addresses_are_compared(field):
    assert np.shares_memory(field, field.T)
    assert np.may_share_memory(field[:, 0], field.to_numpy())
    assert not np.shares_memory(field, field.copy())


def test_values_are_saved_to_a_file(field):
    one, several = io.BytesIO(), io.BytesIO()
    np.save(one, field)
    np.savez(several, a=field, b=field[0])
    one.seek(0)
    several.seek(0)
    np.testing.assert_array_equal(np.load(one), VALUES, strict=True)
    np.testing.assert_array_equal(np.load(several)["b"], VALUES[0], strict=True)


def test_functions_of_numpy_testing_take_storages(field):
    np.testing.assert_array_equal(field, VALUES)
    np.testing.assert_allclose(VALUES, field)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(field, VALUES + 1)


# --- writing, copies, models ---------------------------------------------------------------------


def test_copyto_writes_by_name(field):
    np.copyto(field, dlf.storage(VALUES.T + 1, dims="KJI"))
    np.testing.assert_array_equal(field.to_numpy(), VALUES + 1)


def test_copyto_writes_where_a_mask_says(field):
    np.copyto(field, -1, where=VALUES > 3)
    np.testing.assert_array_equal(field.to_numpy(), np.where(VALUES > 3, -1, VALUES))


def test_copyto_reads_a_storage(field):
    target = np.zeros(VALUES.shape)
    np.copyto(target, field, where=dlf.storage(VALUES > 3))
    np.testing.assert_array_equal(target, np.where(VALUES > 3, VALUES, 0))


@pytest.mark.parametrize("src", [1.5, [1.5], np.full(3, 1.5), dlf.full(3, 1.5)], ids=type)
def test_copyto_casts_by_the_rule_of_numpy(src):
    whole = dlf.zeros(3, "int32")
    with pytest.raises(TypeError, match="cast"):
        np.copyto(whole, src)
    np.copyto(whole, src, casting="unsafe")
    assert whole.to_numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("where", [True, np.array([True, False, True])], ids=["all", "mask"])
def test_copyto_does_not_write_read_only_memory(where):
    storage = dlf.as_storage(bytes(3))
    with pytest.raises(BufferError, match="read-only"):
        np.copyto(storage, 1, where=where)
    assert storage.to_numpy().tolist() == [0, 0, 0]


def test_a_copy_is_a_storage_of_its_own(field):
    copied = np.copy(field)
    assert known(copied) == known(field)
    assert (copied.layout, np.shares_memory(copied, field)) == ((2, 0, 1), False)
    assert np.array_equal(copied, field)


@pytest.mark.parametrize(("order", "layout"), [("C", (0, 1, 2)), ("F", (2, 1, 0))])
def test_an_order_is_a_layout(field, order, layout):
    for made in (
        np.copy(field, order),
        np.zeros_like(field, order=order),
        field.astype(int, order),
    ):
        assert (made.layout, known(made)) == (layout, known(field))


def test_another_type_keeps_names_halo_and_layout(field):
    whole = field.astype("int32")
    assert (known(whole), whole.layout, whole.dtype) == (known(field), (2, 0, 1), np.int32)
    assert np.array_equal(whole, VALUES.astype("int32"))
    assert field.astype(float, copy=False) is field
    assert not np.shares_memory(field.astype(float), field)
    with pytest.raises(TypeError, match=r"rule 'safe', got float64; pass casting='unsafe'"):
        field.astype("int8", casting="safe")


@pytest.mark.parametrize("name", ["empty", "zeros", "ones"])
@pytest.mark.parametrize("dtype", [None, "int16"])
def test_a_model_gives_kind_names_halo_and_layout(field, name, dtype):
    made = getattr(np, f"{name}_like")(field, dtype=dtype)
    assert (known(made), made.layout) == (known(field), field.layout)
    assert made.dtype == (dtype or np.float64)
    if name != "empty":
        assert np.all(made.to_numpy() == getattr(np, name)(()))


def test_a_model_of_another_shape_does_not_give_its_halo(field):
    wide = np.full_like(field, 7, shape=(5, 3, 4))
    assert (known(wide), wide.layout) == (((*"IJK",), ((0, 0),) * 3), field.layout)
    assert wide.to_numpy().tolist() == np.full((5, 3, 4), 7.0).tolist()
    with pytest.raises(TypeError, match="float"):
        np.zeros_like(field, shape=(2.5, 3))
    flat = np.zeros_like(field, shape=6)
    assert (flat.shape, known(flat)) == ((6,), (None, ((0, 0),)))


@pytest.mark.parametrize(
    "call",
    [
        np.flip,
        np.squeeze,
        np.transpose,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
        lambda a: np.expand_dims(a, 0),
        lambda a: np.pad(a, 1),
        lambda a: np.roll(a, 1),
        lambda a: np.tile(a, 2),
        lambda a: np.vstack([a, a]),
    ],
)
def test_a_storage_without_axes_becomes_what_numpy_makes_of_it(call):
    found = call(dlf.storage(np.array(3.0)))
    assert isinstance(found, dlf.CPUStorage)
    np.testing.assert_array_equal(found.to_numpy(), call(np.array(3.0)), strict=True)


@pytest.mark.parametrize("extents", [(1,), (0,), (3,), (1, 1), (0, 2), (2, 1, 3)])
def test_views_of_all_extents_have_the_elements_that_numpy_has(extents):
    values = np.arange(float(np.prod(extents))).reshape(extents)
    field = dlf.as_storage(values)
    calls = [
        np.flip,
        np.flipud,
        np.squeeze,
        lambda a: np.moveaxis(a, 0, -1),
        lambda a: np.moveaxis(np.flip(a, 0), -1, 0),
        *(lambda a, at=at: np.array_split(a, 2, at) for at in range(len(extents))),
    ]
    for call in calls:
        found, wanted = call(field), call(values)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, list) else [(found, wanted)]
        for view, array in pairs:
            np.testing.assert_array_equal(view.to_numpy(), array, strict=True)
            assert np.shares_memory(view, values) == bool(array.size)


def test_an_axis_that_a_split_lacks_is_refused_as_by_numpy():
    for axis in (1, -2):
        with pytest.raises(np.exceptions.AxisError, match="out of bounds"):
            np.split(dlf.zeros(4), 2, axis)


def test_a_type_conversion_without_need_gives_the_storage_itself_in_its_own_order():
    own = dlf.zeros((3, 4))
    assert own.astype(own.dtype, order="C", copy=False) is own
    assert own.astype(own.dtype, order="F", copy=False) is not own


def test_an_integral_refuses_points_with_other_names():
    y = dlf.storage(VALUES[0], dims="IJ")
    with pytest.raises(ValueError, match="trapezoid: expected arrays whose dims agree"):
        np.trapezoid(y, y.transpose("J", "I"), axis="I")
    with pytest.raises(ValueError, match="trapezoid: expected arrays whose dims agree"):
        np.trapezoid(y, dlf.ones(4, dims="I"), axis="J")


def test_the_points_of_an_integral_may_have_fewer_axes():
    points = VALUES[0] ** 2
    got = np.trapezoid(dlf.storage(VALUES), dlf.storage(points), axis=-1)
    np.testing.assert_array_equal(got.to_numpy(), np.trapezoid(VALUES, points, axis=-1))
