"""Storages that dlfield allocates: values, types, and the memory behind them."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.parameters import ML_DTYPES, NUMPY_DTYPES, readable
from support.processes import run_in_subprocess


@pytest.mark.source("GDP-3", "Storage Creation", "`zeros(shape, dtype, **options)` holds zeros")
@pytest.mark.source("Allocation note", "Allocation", "`zeros(shape, dtype, **options)` holds zeros")
def test_zeros_holds_zeros_in_c_order():
    storage = dlf.zeros((2, 3, 4))
    assert not storage.to_numpy().any()
    assert (storage.shape, storage.strides) == ((2, 3, 4), (96, 32, 8))


@pytest.mark.source("GDP-3", "Storage Creation", "`ones(shape, dtype, **options)` holds ones")
@pytest.mark.source("Allocation note", "Allocation", "`ones(shape, dtype, **options)` holds ones")
def test_ones_holds_ones_of_the_type_asked_for():
    storage = dlf.ones((2, 3), "int16")
    np.testing.assert_array_equal(storage.to_numpy(), np.ones((2, 3), "int16"), strict=True)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`full(shape, fill_value, dtype, **options)` holds one number"
)
@pytest.mark.source(
    "Allocation note", "Allocation", "`full(shape, fill_value, dtype, **options)` holds one number"
)
def test_full_holds_the_value_everywhere_also_beside_padding():
    storage = dlf.full((5, 7), 2.5, alignment_size=64)
    np.testing.assert_array_equal(storage.to_numpy(), np.full((5, 7), 2.5), strict=True)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`empty(shape, dtype, **options)` leaves the values undefined"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`empty`, `zeros`, `ones`, `full` and `storage` allocate"
)
@pytest.mark.source(
    "Allocation note", "Allocation", "`empty(shape, dtype, **options)` leaves the values undefined"
)
def test_empty_gives_writable_memory_of_its_own():
    one, other = dlf.empty((3,)), dlf.empty((3,))
    one.to_numpy()[:] = 1
    other.to_numpy()[:] = 2
    assert one.to_numpy().tolist() == [1, 1, 1]
    assert not one.readonly


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`dtype` of `empty`, `zeros` and `ones` is float64 unless given"
)
@pytest.mark.source(
    "Allocation note",
    "Allocation",
    "`dtype` is anything that NumPy takes for one, and float64 unless given",
)
@pytest.mark.parametrize("make", [dlf.empty, dlf.zeros, dlf.ones], ids=lambda make: make.__name__)
@pytest.mark.parametrize("nothing", [{}, {"dtype": None}, {"dtype": dlf.UNSET}], ids=repr)
def test_float64_is_what_no_dtype_means(make, nothing):
    assert make((2,), **nothing).dtype == np.float64


@pytest.mark.source(
    "GDP-3", "Functionality", "the supported types are those of both NumPy and CuPy"
)
@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` is anything that NumPy takes for one")
@pytest.mark.source(
    "GDP-3 draft", "Supported Functionality", "the supported types are those of both NumPy and CuPy"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`dtype` is anything that NumPy takes for one"
)
@pytest.mark.source(
    "Allocation note",
    "Allocation",
    "`dtype` is anything that NumPy takes for one, and float64 unless given",
)
@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_numpy_type_is_filled_as_numpy_fills_it(name):
    made = dlf.full((3,), 1, name)
    np.testing.assert_array_equal(made.to_numpy(), np.full((3,), 1, name), strict=True)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_every_ml_dtype_is_filled_as_numpy_fills_it(name):
    dtype = np.dtype(getattr(library("ml_dtypes"), name))
    made = dlf.full((3,), 2, dtype)
    assert made.dtype == dtype
    assert made.to_numpy().astype(float).tolist() == [2.0, 2.0, 2.0]


def test_full_converts_the_value_as_numpy_does():
    assert dlf.full((1,), 2.75, int).to_numpy()[0] == 2
    assert dlf.full((1,), 1 + 2j, "complex64").to_numpy()[0] == np.complex64(1 + 2j)
    with pytest.raises(OverflowError):
        dlf.full((1,), 300, "uint8")


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`full(shape, fill_value, dtype, **options)` holds one number"
)
def test_full_refuses_what_is_more_than_one_number():
    with pytest.raises(ValueError, match="fill_value: expected one number"):
        dlf.full((2,), [1.0, 2.0])


@pytest.mark.source("GDP-3", "Storage Creation", "`shape` has one extent for each dimension")
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "`shape` is a sequence of ints")
@pytest.mark.source("Allocation note", "Allocation", "`shape` has one extent for each dimension")
@pytest.mark.parametrize("shape", [3, np.int64(3), (3,), [3], np.array([3])], ids=repr)
def test_a_shape_is_read_as_numpy_reads_it(shape):
    assert dlf.empty(shape).shape == np.empty(shape).shape


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (3, 0, 2), (1, 1)], ids=repr)
def test_empty_and_zero_dimensional_shapes_are_legal(shape):
    storage = dlf.zeros(shape)
    assert storage.shape == shape
    assert storage.size == storage.to_numpy().size
    assert storage.nbytes == 8 * storage.size


def test_sixty_four_dimensions_are_legal_and_one_more_is_refused():
    assert dlf.zeros((1,) * 64).ndim == 64
    with pytest.raises(ValueError, match="at most 64 dimensions"):
        dlf.zeros((1,) * 65)


@pytest.mark.source("GDP-3", "Storage Creation", "`shape` has one extent for each dimension")
@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ((2, -1), ValueError, "got -1 on axis 1"),
        ((2.0,), TypeError, "shape: expected an int, got 2.0"),
        ((True,), TypeError, "shape: expected an int, got True"),
        (True, TypeError, "shape: expected an int, got True"),
        (None, TypeError, "shape: expected a sequence of ints"),
        ((2**64,), ValueError, "shape: expected an int of 64 bits"),
        ("23", TypeError, "shape: expected an int, got '2'"),
    ],
    ids=readable,
)
def test_a_shape_that_numpy_refuses_is_refused(shape, error, text):
    with pytest.raises(error, match=text):
        dlf.empty(shape)


def test_an_exception_of_an_extent_passes_unchanged():
    class Interrupted:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dlf.empty((2, Interrupted()))


@pytest.mark.source(
    "GDP-3", "Functionality", "the supported types are those of both NumPy and CuPy"
)
@pytest.mark.parametrize(
    "dtype", [object, "S3", "U3", "V8", "datetime64[s]", np.longdouble, [("a", "f4")]], ids=str
)
def test_a_type_that_no_storage_can_hold_is_refused(dtype):
    with pytest.raises(ValueError, match=r"dtype: expected (bool, int8|one type)"):
        dlf.empty((2,), dtype)


def test_values_of_a_type_that_no_storage_can_hold_are_converted_to_one_that_it_can():
    made = dlf.storage(np.arange(3, dtype=np.longdouble), dtype="f4")
    assert (made.dtype, made.tolist()) == (np.float32, [0.0, 1.0, 2.0])


def test_a_byte_swapped_type_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"native byte order.*newbyteorder"):
        dlf.empty((2,), ">f8")


@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` is anything that NumPy takes for one")
def test_what_numpy_knows_no_type_for_raises_what_numpy_raises():
    with pytest.raises(TypeError, match="data type 'nonsense' not understood"):
        dlf.empty((2,), "nonsense")


@pytest.mark.parametrize("extent", [0, 1, 7, 1000, 2**19 - 1, 2**19, 2**20 + 3])
def test_the_first_element_lies_on_64_bytes_at_every_size(extent):
    for make in (dlf.empty, dlf.zeros, dlf.ones):
        assert address_of(make((extent,))) % 64 == 0


def test_zeros_of_four_gibibytes_touches_no_page():
    grown = run_in_subprocess("""
        import dlfield as dlf

        def resident():
            with open("/proc/self/statm") as statm:
                return int(statm.read().split()[1]) * 4096

        small = dlf.zeros((8,))
        before = resident()
        large = dlf.zeros((512, 1024, 1024))
        print(resident() - before)
        assert large.nbytes == 4 << 30
    """)
    assert int(grown) < 1 << 20


def test_beyond_four_gibibytes_strides_and_the_last_element_are_right():
    storage = dlf.empty((1536, 1024, 1024), "float32")
    assert (storage.nbytes, storage.strides) == (6 << 30, (4 << 20, 4096, 4))
    array = storage.to_numpy()
    array[-1, -1, -1], array[0, 0, 0] = 2, 1
    assert (array[-1, -1, -1], array[0, 0, 0]) == (2, 1)


@pytest.mark.parametrize(
    "shape", [(2**60,), (2**63 - 1,), (2**32, 2**32), (0, 2**62, 2**62), (2**31, 2**31, 2)]
)
def test_more_bytes_than_an_address_counts_are_refused(shape):
    with pytest.raises(ValueError, match=f"and {2**63 - 1} bytes"):
        dlf.empty(shape)


def test_padding_may_not_push_the_bytes_over_the_limit():
    with pytest.raises(ValueError, match=f"and {2**63 - 1} bytes"):
        dlf.empty((2**57 + 1, 1), "float32", alignment_size=64)


def test_memory_that_the_system_has_not_is_a_memory_error():
    with pytest.raises(MemoryError, match=str(2**60)):
        dlf.empty((2**60,), "uint8")


@pytest.mark.parametrize("shape", [(), 5, (0, 5), (5, 0), (3, 1, 4), (2,) * 8], ids=repr)
@pytest.mark.parametrize("make", [dlf.empty, dlf.zeros])
def test_nothing_wished_for_is_the_same_as_every_option_left_open(make, shape):
    known = ("strides", "layout", "dims", "halo", "alignment_size", "aligned_index", "dtype")
    short, whole = make(shape), make(shape, dims=dlf.UNSET)
    assert short.shape == whole.shape
    assert [getattr(short, one) for one in known] == [getattr(whole, one) for one in known]
    assert short.T.layout == whole.T.layout
