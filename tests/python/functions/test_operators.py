"""Operators, comparisons and universal functions of storages in host memory."""

import operator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.operands import VALUES, field, same

BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
]
COMPARISONS = ["lt", "le", "eq", "ne", "ge", "gt"]


@pytest.mark.source(
    "GDP-3 draft", "Universal Functions", "operators and universal functions work on storages"
)
@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS])
@pytest.mark.parametrize(
    "other", [2, True, VALUES, VALUES.tolist(), np.int8(2), field(VALUES[::-1])], ids=type
)
def test_operators_and_comparisons_compute_what_numpy_computes(name, other):
    compute = getattr(operator, name)
    plain = other.to_numpy() if isinstance(other, dlf.Storage) else other
    same(
        compute(field(), other), compute(VALUES, np.asarray(plain) if plain is not other else other)
    )


@pytest.mark.source(
    "GDP-3 draft", "Universal Functions", "operators and universal functions work on storages"
)
@pytest.mark.parametrize("name", ["add", "hypot", "arctan2", "maximum", "logical_and", "ldexp"])
def test_universal_functions_compute_what_numpy_computes(name):
    compute = getattr(np, name)
    same(compute(field(), VALUES), compute(VALUES, VALUES))
    same(compute(VALUES, field()), compute(VALUES, VALUES))


@pytest.mark.source(
    "GDP-3 draft",
    "Implementation",
    "universal functions come from NumPy's mixin, `__array_ufunc__` and `__array_function__`",
)
def test_operators_are_compiled_and_no_mixin():
    assert not isinstance(field(), np.lib.mixins.NDArrayOperatorsMixin)
    assert callable(field().__array_ufunc__)
    assert callable(field().__array_function__)


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS])
@pytest.mark.parametrize("other", [2, VALUES, np.int8(2)], ids=type)
def test_they_do_on_the_right_side_too(name, other):
    compute = getattr(operator, name)
    same(compute(other, field()), compute(other, VALUES))


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "ifloordiv", "imod", "ipow", "iand"])
def test_operators_in_place_write_into_the_same_memory_and_keep_the_labels(name):
    storage = field(halo=((1, 0), (0, 1)), layout=(1, 0))
    before, address, expected = storage, storage.ptr, VALUES.copy()
    storage = getattr(operator, name)(storage, 2)
    same(storage, getattr(operator, name)(expected, 2))
    assert storage is before
    assert (storage.ptr, storage.halo, storage.layout) == (address, ((1, 0), (0, 1)), (1, 0))


@pytest.mark.parametrize("name", ["ilshift", "irshift", "ior", "ixor"])
def test_operators_on_bits_work_in_place(name):
    same(getattr(operator, name)(field(), 1), getattr(operator, name)(VALUES.copy(), 1))


def test_true_division_is_refused_in_place_for_whole_numbers():
    storage = field()
    with pytest.raises(TypeError, match="Cannot cast"):
        storage /= 2
    same(storage, VALUES)


def test_divmod_gives_two_storages():
    for found, wanted in zip(divmod(field(), 4), divmod(VALUES, 4), strict=True):
        same(found, wanted)
    for found, wanted in zip(divmod(20, field()), divmod(20, VALUES), strict=True):
        same(found, wanted)


@pytest.mark.parametrize("operation", [operator.neg, operator.pos, abs, operator.invert])
def test_unary_operators_give_storages(operation):
    same(operation(field()), operation(VALUES))


def test_round_takes_decimals():
    values = np.array([[1.26, -2.5], [3.44, 0.05]])
    same(round(field(values), 1), np.round(values, 1))
    same(round(field(values)), np.round(values))


def test_the_third_operand_of_pow_is_refused():
    with refused(TypeError, "pow: expected two operands", "(a ** b) % c"):
        pow(field(), 2, 3)


@pytest.mark.parametrize("compute", [operator.matmul, operator.imatmul, np.matmul, np.vecdot])
def test_products_of_matrices_are_refused(compute):
    with refused(TypeError, "expected a function that works element by element", "to_numpy()"):
        compute(field(), field())


CONVERSIONS = [int, float, complex]


@pytest.mark.parametrize("convert", [bool, *CONVERSIONS])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_is_a_number_and_not_the_text_of_one(convert, shape):
    assert convert(dlf.full(shape, ord("5"), "uint8")) == convert(53)


@pytest.mark.parametrize("convert", [*CONVERSIONS, operator.index])
@pytest.mark.parametrize("shape", [(2,), (0,)])
def test_only_one_element_converts_to_a_number(convert, shape):
    with pytest.raises(TypeError, match=r"expected one element, .*to_numpy\(\)"):
        convert(dlf.zeros(shape, "int8"))


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_only_an_element_without_dimensions_is_an_index_as_in_numpy(shape):
    assert operator.index(dlf.full((), 3, "int8")) == 3
    with refused(TypeError, "__index__: expected no dimensions", "use storage.item()"):
        operator.index(dlf.full(shape, 3, "int8"))


@pytest.mark.parametrize("indices", [[3], [[3]], [1, 3]])
def test_a_storage_indexes_an_array_as_its_values_do(indices):
    values = np.arange(5)
    found = values[dlf.as_storage(np.array(indices))]
    assert found.tolist() == values[np.array(indices)].tolist()


@pytest.mark.parametrize("convert", [bool, operator.not_])
@pytest.mark.parametrize("shape", [(2,), (0,)])
def test_the_truth_of_several_elements_is_ambiguous_as_in_numpy(convert, shape):
    with refused(ValueError, "bool: expected one element", "use storage.any() or storage.all()"):
        convert(dlf.zeros(shape, "int8"))


def test_a_fraction_cannot_be_an_index():
    with pytest.raises(TypeError):
        operator.index(dlf.full((), 1.5))


def test_membership_compares_elements():
    assert 6 in field()
    assert 7 not in field()


def test_storages_are_not_hashable_as_arrays_are_not():
    with pytest.raises(TypeError, match="unhashable"):
        hash(field())


def test_equal_is_never_quietly_false():
    same(field() == VALUES, np.ones((2, 3), bool))
    same(field() == None, np.zeros((2, 3), bool))  # noqa: E711
    same(field() == "text", np.zeros((2, 3), bool))
    with refused(ValueError, "one extent of 'I'"):
        _ = field() == dlf.zeros((5, 3), dims="IJ")


# --- names ---------------------------------------------------------------------------------------


def test_another_extent_under_one_name_is_refused_also_beside_one():
    for extent in (1, 5):
        with refused(ValueError, f"one extent of 'I' in all operands, got 2 and {extent}"):
            field() + dlf.zeros(extent, dims="I")


def test_unrelated_names_are_refused_with_the_line_that_renames():
    with refused(ValueError, "operands that share a dimension", 'rename({"lon": '):
        field() + dlf.zeros(2, dims=("lon",))


def test_without_any_names_all_go_by_position():
    made = dlf.ones((2, 3)) + dlf.ones(3)
    assert (made.shape, made.dims) == ((2, 3), None)
    with refused(ValueError, "[2, 3] and [2]", "give the storages dims"):
        dlf.ones((2, 3)) + dlf.ones(2)


# --- what a result is -----------------------------------------------------------------------------


@pytest.mark.source(
    "GDP-3 draft",
    "Output Storage Parameters",
    "origin and aligned point of a result are the largest of its inputs'",
    "the alignment of a result is the least common multiple of its inputs'",
    "the type of a result is the one that NumPy gives",
)
def test_a_result_has_the_labels_of_its_operands():
    one = field(VALUES.astype("float32"), layout=(1, 0), alignment_size=16, default_origin=(1, 0))
    two = field(default_origin=(0, 2), alignment_size=24, dtype="float64")
    made = one * two
    assert (made.layout, made.default_origin, made.dtype) == ((1, 0), (1, 2), np.float64)
    assert (made.alignment_size, made.strides) == (48, (8, 48))


@pytest.mark.source(
    "GDP-3 draft",
    "Output Storage Parameters",
    "the layout of a result is that of the first storage",
)
def test_the_layout_of_a_result_is_that_of_the_first_storage_with_all_dimensions():
    plane, whole = dlf.zeros((2, 3), dims="IJ", layout=(1, 0)), dlf.zeros((2, 3, 4), dims="IJK")
    other = dlf.zeros((2, 3, 4), dims="IJK", layout=(2, 1, 0))
    assert (plane + whole).layout == whole.layout
    assert (whole + other).layout == whole.layout
    assert (plane + other + whole).layout == other.layout


def test_the_halo_of_a_result_is_the_largest_or_unknown():
    wide, other = field(halo=((1, 0), (0, 2))), field(halo=((0, 1), (1, 0)))
    assert (wide + other).halo == ((1, 1), (1, 2))
    assert (wide + field(halo=((0, 2), (0, 0)))).halo is None
    assert (wide + field()[:, ::2].rename(J="K")).halo == ((1, 0), (0, 2), (0, 0))
    other.halo = None
    assert (wide + other).halo is None


def test_a_comparison_gives_truths():
    assert (field() > 2).dtype == bool


OTHERS = [
    *(2, 2.0, True, np.bool(True), np.int8(2), np.longlong(2), np.float32(2), np.float64(2)),
    *(np.array(2, "int16"), np.array(2.0), VALUES.astype("float32"), VALUES.astype(">f8")),
]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_the_type_of_a_result_is_numpys_whatever_was_computed_before(dtype):
    values = VALUES.astype(dtype)
    for other in OTHERS * 2:
        same(field(values) + other, values + other)


def test_a_result_of_objects_is_refused():
    with refused(TypeError, "expected a result of numbers, got object", "to_numpy()"):
        np.add(field(), object())


# --- out, where, dtype ----------------------------------------------------------------------------


@pytest.mark.source(
    "GDP-3 draft",
    "Broadcasting",
    "an output with more dimensions gets the result along all of them",
)
def test_out_may_have_more_dims_than_the_result():
    out = dlf.zeros((2, 3, 4), "int32", dims="IJK")
    assert np.add(field(), 1, out=out) is out
    np.testing.assert_array_equal(out, np.broadcast_to(VALUES[:, :, None] + 1, (2, 3, 4)))
    out = dlf.zeros((4, 2, 3), "int32")
    assert np.negative(dlf.storage(VALUES), out=out) is out
    np.testing.assert_array_equal(out, np.broadcast_to(-VALUES, (4, 2, 3)))


def test_out_may_be_one_of_the_operands():
    storage = field()
    np.add(storage, storage[::-1], out=storage)
    np.testing.assert_array_equal(storage, VALUES + VALUES[::-1])


def test_out_gives_the_others_of_several_results_its_dims():
    out = dlf.zeros((2, 3, 2), dims="IJK")
    fraction, whole = np.modf(field() / 2, out=(out, None))
    assert fraction is out
    np.testing.assert_array_equal(whole[:, :, 1], np.modf(VALUES / 2)[1])


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (dlf.zeros(2, "int32", dims="I"), ["out: expected a storage with the dimension 'J'"]),
        (dlf.zeros((3, 2), "int32", dims="JI"), ["in the same order"]),
        (dlf.zeros((2, 5), "int32", dims="IJ"), ["one extent of 'J'"]),
        (dlf.zeros((1, 3), "int32"), ["whose shape [2, 3] can be broadcast", "[1, 3]"]),
        (np.zeros((2, 1), "int32"), ["result's shape [2, 3]", "[2, 1]"]),
    ],
)
def test_an_out_that_does_not_fit_is_refused_and_not_written(out, words):
    with refused(ValueError, *words):
        np.add(field(), 1, out=out)
    assert not np.asarray(out).any()


def test_out_is_a_storage_or_an_array():
    with refused(TypeError, "expected a storage or a NumPy array as out", "as_storage(array)"):
        np.add(field(), 1, out=[1])
    with pytest.raises(ValueError, match="exactly one entry per ufunc output"):
        np.modf(field(), out=(None,))


def test_a_read_only_storage_is_not_written():
    array = VALUES.copy()
    array.flags.writeable = False
    storage = dlf.as_storage(array)
    with pytest.raises(BufferError, match="read-only"):
        storage += 1
    with pytest.raises(BufferError, match="read-only"):
        np.add(1, 2, out=storage)
    same(storage + 0, VALUES)


def test_in_place_more_dims_are_refused_and_nothing_is_written():
    profile = dlf.zeros(4, dims="K")
    with refused(ValueError, "with the dimension 'I'", "('K',)"):
        profile += dlf.ones((2, 4), dims="IK")
    assert not profile.any()
    storage = dlf.zeros((2, 4), dims="IK")
    storage += dlf.storage([1.0, 2, 3, 4], dims="K")
    assert storage.tolist() == [[1, 2, 3, 4]] * 2


def test_an_array_is_written_in_place_by_position():
    array = np.ones((3, 2))
    array += dlf.storage(VALUES.T, dims="IJ")
    assert array.tolist() == (VALUES.T + 1).tolist()
    with refused(ValueError, "array without names of shape [2]", "got shape [3, 2]"):
        array += dlf.ones(2, dims="J")
    assert array.tolist() == (VALUES.T + 1).tolist()


def test_where_goes_by_name_and_leaves_the_rest_of_out():
    out = dlf.zeros((2, 3), "int32", dims="IJ")
    np.add(field(), 10, out=out, where=dlf.storage([False, True, False], dims="J"))
    assert out.tolist() == [[0, 12, 0], [0, 15, 0]]
    made = np.add(field(), 10, where=VALUES > 0)
    same(made, VALUES + 10)


def test_dtype_casting_and_order_mean_what_they_mean_in_numpy():
    same(np.add(field(), 1, dtype="float32"), np.add(VALUES, 1, dtype="float32"))
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(field(), 1.5, dtype="int32")
    same(np.add(field(), 1.5, dtype="int32", casting="unsafe"), VALUES + 1)
    with refused(TypeError, "expected order='K'", "out="):
        np.add(field(), 1, order="F")
    with pytest.raises(TypeError, match="nonsense"):
        np.add(field(), 1, nonsense=1)


def test_a_whole_number_that_does_not_fit_is_an_overflow():
    with pytest.raises(OverflowError):
        field(dtype="int8") + 1000
    same(field(dtype="int8") < 1000, np.ones((2, 3), bool))


def test_an_error_in_the_middle_says_that_elements_may_be_written():
    storage = dlf.storage([1.0, 0.0])
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError) as caught:
        storage /= dlf.zeros(2)
    assert caught.value.__notes__ == ["out: some elements may have been written before the error"]


# --- types, priority -----------------------------------------------------------------------------


def test_types_of_ml_dtypes_compute():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    storage = dlf.full((2, 3), 1.5, ml_dtypes.bfloat16)
    assert (storage + storage).dtype == ml_dtypes.bfloat16
    assert (storage * 2 == 3).all()


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Devices",
    "`__array_priority__` is 11 for synchronised storages and 10 for the others",
)
def test_priority_is_that_of_the_draft():
    assert field().__array_priority__ == 10


def test_a_subclass_of_numpys_array_is_an_output(tmp_path):
    for out in (np.memmap(tmp_path / "values", "f8", "w+", shape=3), np.zeros(3).view(np.recarray)):
        np.add(dlf.ones(3), 1, out=out)
        out += dlf.ones(3)
        np.testing.assert_array_equal(np.asarray(out), [3.0, 3.0, 3.0])
    with pytest.raises(TypeError, match="expected a storage or a NumPy array as out, got a Masked"):
        np.add(dlf.ones(3), 1, out=np.ma.zeros(3))


def labelled():
    """Storages that differ in one thing each: dims, halo, origin, order, alignment."""
    shape = (3, 4, 5)
    return [
        dlf.ones(shape, dims="IJK"),
        dlf.ones(shape, dims="IJK", halo=(1, 1, 1)),
        dlf.ones(shape, dims="IJK", halo=(1, 1, 1), default_origin=(0, 1, 2)),
        dlf.ones(shape, dims="IJK", layout=(2, 1, 0)),
        dlf.ones(shape, dims="IJK", alignment_size=64),
        dlf.ones(shape, dims=["I", "J", "lev"]),
        dlf.ones(shape),
        dlf.ones((5,), dims="K"),
        dlf.ones((5, 3), dims="KI"),
        dlf.as_storage(np.ones((5, 4, 3)).T, dims="IJK"),
    ]


def described(function, *operands):
    """Compute, and say everything about the result but its values: or what the error says."""
    try:
        result = function(*operands)
    except (TypeError, ValueError) as error:
        return str(error)
    return repr(result), result.strides, getattr(result, "default_origin", None)


@pytest.mark.parametrize("function", [np.add, np.greater], ids=lambda one: one.__name__)
def test_a_result_has_the_same_labels_whatever_was_computed_before(function):
    pairs = [*product(labelled(), repeat=2)]
    for a, b in pairs:
        again = {described(function, a, b), described(function, a, b)}
        with ThreadPoolExecutor(1) as pool:  # a new thread has computed nothing before
            assert again == {pool.submit(described, function, a, b).result()}
