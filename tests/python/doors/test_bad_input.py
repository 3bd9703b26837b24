"""Wrong arguments: every function refuses them in one clear way, and nothing stays allocated."""

import re
from functools import partial
from types import MappingProxyType

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations

from support.no_driver import NO_DRIVER, without_driver
from support.parameters import readable
from support.processes import run_in_subprocess

MAKERS = {
    "empty": lambda **options: dlf.empty((4, 5), **options),
    "zeros": lambda **options: dlf.zeros((4, 5), **options),
    "ones": lambda **options: dlf.ones((4, 5), **options),
    "full": lambda **options: dlf.full((4, 5), 7, **options),
    "empty_like": lambda **options: dlf.empty_like(np.zeros((4, 5)), **options),
    "zeros_like": lambda **options: dlf.zeros_like(np.zeros((4, 5)), **options),
    "full_like": lambda **options: dlf.full_like(np.zeros((4, 5)), 7, **options),
    "storage": lambda **options: dlf.storage(np.zeros((4, 5)), **options),
    "storage without data": lambda **options: dlf.storage(shape=(4, 5), **options),
    "Storage": lambda **options: dlf.Storage(np.zeros((4, 5)), **options),
    "as_storage": lambda **options: dlf.as_storage(np.zeros((4, 5)), **options),
}
#: What makes storages of a shape.
OF_A_SHAPE = {
    "empty": dlf.empty,
    "zeros": dlf.zeros,
    "ones": dlf.ones,
    "full": lambda shape, dtype=None: dlf.full(shape, 1, dtype),
    "storage": lambda shape, dtype=None: dlf.storage(shape=shape, dtype=dtype),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
every_maker_of_a_shape = pytest.mark.parametrize("make", OF_A_SHAPE.values(), ids=OF_A_SHAPE)

PRESETS = "C, F, numpy, debug, gt:cpu_kfirst, gt:cpu_ifirst, gt:gpu, .*gtx86, gtmc, gtcuda"
REFUSALS = [
    ({"layout": (0, 0)}, ValueError, "layout: expected a permutation"),
    ({"layout": (1, 2)}, ValueError, "layout: expected a permutation"),
    ({"layout": (-1, 0)}, ValueError, "layout: expected a permutation"),
    ({"layout": (0, 1, 2)}, ValueError, "layout: expected a permutation"),
    ({"layout": (0.0, 1.0)}, TypeError, "layout: expected an int"),
    ({"layout": "01"}, TypeError, "layout: expected the rank of each stride"),
    ({"aligned_index": (4, 0)}, ValueError, r"index inside shape \[4, 5\], got 4 on axis 0"),
    ({"aligned_index": (0, -1)}, ValueError, r"index inside shape \[4, 5\], got -1 on axis 1"),
    ({"aligned_index": (0,)}, ValueError, "aligned_index: expected one entry for each of the 2"),
    ({"halo": (-1, 0)}, ValueError, r"halo: expected widths of at least 0 .* got \(-1, -1\)"),
    ({"halo": (0, (2, 4))}, ValueError, r"halo: .*fit in extent 5, got \(2, 4\) on axis 1"),
    ({"halo": (2**63 - 1, 0)}, ValueError, "halo: expected widths .*fit in extent 4"),
    ({"halo": (1,)}, ValueError, "halo: expected one entry for each of the 2 dimensions"),
    ({"halo": (1, 1, 1)}, ValueError, "halo: expected one entry for each of the 2 dimensions"),
    ({"halo": ((1, 1, 1), 0)}, ValueError, "halo: expected an int or a pair"),
    ({"halo": 1}, TypeError, "halo: expected a sequence with an int or a pair"),
    ({"halo": (0.5, 0)}, TypeError, "halo: expected"),
    ({"halo": (0, 1), "dims": "I0"}, ValueError, "halo: expected 0 for the data dimension '0'"),
    ({"alignment_size": 0}, ValueError, "alignment_size: expected at least 1 byte, got 0"),
    ({"alignment_size": -64}, ValueError, "alignment_size: expected at least 1 byte, got -64"),
    ({"alignment_size": 12}, ValueError, "alignment_size: expected .*12"),
    ({"alignment_size": 2**64}, ValueError, "alignment_size: expected an int of 64 bits"),
    ({"alignment_size": 64.0}, TypeError, "alignment_size: expected an int, got 64.0"),
    ({"backend": "numpy", "layout": (0, 1)}, ValueError, "backend: expected no 'layout' beside it"),
    (
        {"backend": "numpy", "alignment_size": 1},
        ValueError,
        "backend: expected no 'alignment_size'",
    ),
    ({"backend": "numpy", "device": "cpu"}, ValueError, "backend: expected no 'device' beside it"),
    ({"backend": "numpy", "defaults": "C"}, ValueError, "no 'defaults' .*got both; use defaults="),
    ({"backend": "gt:cpu"}, ValueError, f"backend: expected one of {PRESETS}, got 'gt:cpu'"),
    (
        {"defaults": "c"},
        ValueError,
        f"defaults: expected one of {PRESETS}, got 'c'; did you mean 'C'",
    ),
    ({"backend": "gt:cpu_Ifirst"}, ValueError, "got 'gt:cpu_Ifirst'; did you mean 'gt:cpu_ifirst'"),
    ({"backend": "GT-CPU-kfirst"}, ValueError, "; did you mean 'gt:cpu_kfirst'"),
    ({"backend": 3}, TypeError, "backend: expected a name, got 3"),
    ({"device": "cuda"}, ValueError, r"'gpu' or \('gpu', n\), got 'cuda'"),
    ({"device": ("gpu", -1)}, ValueError, r"'gpu' or \('gpu', n\), got \('gpu', -1\)"),
    ({"device": 0}, ValueError, "device: expected None, 'cpu', 'gpu'"),
    ({"managed": "python"}, ValueError, "managed: expected None, 'gt4py' or 'cuda', got 'python'"),
    ({"dims": "JJ"}, ValueError, "dims: expected distinct names, got 'J' twice"),
    ({"dims": "IJK"}, ValueError, "dims: expected one entry for each of the 2 dimensions"),
    ({"dims": ()}, ValueError, "dims: expected one entry for each of the 2 dimensions"),
    ({"dims": ("I", 1)}, TypeError, "dims: expected"),
    ({"dims": 2}, TypeError, "dims: expected a sequence of names"),
    ({"default_origin": (0, 6)}, ValueError, "default_origin: expected at most 5 for axis 1"),
    ({"default_origin": (0,)}, ValueError, "default_origin: expected one entry"),
]


#: What asks for a GPU, of host memory that is laid out for one.
ON_A_GPU = [
    {"backend": "gt:gpu"},
    {"defaults": "gt:gpu"},
    {"device": "gpu"},
    {"device": ("gpu", 1)},
    {"device": "gpu", "managed": None},
    {"device": "gpu", "managed": "cuda"},
]

#: What holds values in no order, or holds them behind its keys.
NO_SEQUENCES = [{0, 1}, frozenset({0, 1}), {0: "I", 1: "J"}, MappingProxyType({0: 1, 1: 0})]


def refused(error, text, make, *arguments, **options):
    """Check that a call is refused, and that it leaves nothing behind."""
    before = live_allocations()
    with pytest.raises(error, match=text):
        make(*arguments, **options)
    assert live_allocations() <= before


@every_maker
@pytest.mark.parametrize(("options", "error", "text"), REFUSALS, ids=readable)
def test_an_option_that_cannot_hold_is_refused_by_everything_that_takes_it(
    make, options, error, text
):
    refused(error, text, make, **options)


@without_driver
@every_maker
@pytest.mark.parametrize("options", ON_A_GPU, ids=readable)
def test_a_gpu_is_refused_without_a_driver_by_everything_that_takes_one(make, options):
    if make is MAKERS["as_storage"]:  # which looks at the layout first
        make = partial(dlf.as_storage, dlf.zeros((4, 5), defaults="gt:gpu", device=None).to_numpy())
    refused(dlf.DeviceUnavailable, f"^{re.escape(NO_DRIVER)}$", make, **options)


@every_maker
@pytest.mark.parametrize("value", NO_SEQUENCES, ids=repr)
@pytest.mark.parametrize("option", ["aligned_index", "default_origin", "dims", "halo", "layout"])
def test_a_set_or_a_mapping_is_not_accepted_as_a_sequence(make, option, value):
    if option == "halo" and not isinstance(value, set | frozenset):  # widths by name
        refused(ValueError, "halo: expected dims for widths by name", make, halo=value)
    else:
        refused(TypeError, f"{option}: expected a sequence", make, **{option: value})
    refused(TypeError, "halo: expected", make, halo=(0, value))


@every_maker_of_a_shape
@pytest.mark.parametrize("shape", NO_SEQUENCES, ids=repr)
def test_a_set_or_a_mapping_is_not_accepted_as_a_shape(make, shape):
    refused(TypeError, "shape: expected a sequence of ints or an int", make, shape)


@every_maker
@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("default_parameters", "its name is defaults"),
        ("axes", "name the dimensions with dims"),
        ("dimensions", "name the dimensions with dims"),
        ("mask", "name the dimensions with dims"),
        ("ndims", "name the dimensions with dims"),
        ("gpu", "use device='gpu'"),
        ("layout_map", "its name is layout"),
        ("alignment", "use alignment_size, in bytes"),
        ("managed_memory", "use managed='cuda'"),
        ("order", "use defaults='C' or 'F'"),
        ("halos", r"managed; did you mean 'halo'\?$"),
    ],
)
def test_an_unknown_option_is_answered_with_the_right_one(make, name, way_out):
    refused(TypeError, f"option '{name}': expected one of .*{way_out}", make, **{name: 1})


@pytest.mark.parametrize("make", [dlf.storage, dlf.Storage, dlf.CPUStorage])
@pytest.mark.parametrize("name", ["dimensions", "halos", "dtipe"])
def test_a_misspelt_option_of_storage_names_its_own_options_too(make, name):
    refused(
        TypeError,
        f"option '{name}': expected one of copy, dtype, like, shape, al",
        make,
        **{name: 1},
    )


@pytest.mark.parametrize("copy", [None, 1, "no"], ids=repr)
def test_copy_is_yes_or_no(copy):
    text = f"^copy: expected True or False, got {copy!r}"
    refused(TypeError, text, dlf.storage, np.zeros(2), copy=copy)


@pytest.mark.parametrize("copy", [0, 1, "no"], ids=repr)
def test_copy_for_jax_is_yes_or_no_or_nothing(copy):
    text = f"^copy: expected True, False or None, got {copy!r}"
    refused(TypeError, text, dlf.zeros(2).to_jax, copy=copy)


@pytest.mark.parametrize("name", ["dtype", "copy"])
def test_options_that_would_copy_are_refused_without_a_copy(name):
    text = rf"option '{name}': .*only storage\(...\) converts and copies"
    refused(TypeError, text, dlf.as_storage, np.zeros(2), **{name: True})


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 24, 64, 4096])
def test_an_alignment_may_be_any_multiple_or_divisor_of_an_item(size):
    assert dlf.empty((2, 3), "float64", alignment_size=size).alignment_size == size


@pytest.mark.parametrize("size", [3, 5, 7, 12, 20, 100])
def test_no_other_alignment_can_be_met(size):
    text = f"multiple or a divisor of the item size 8 of float64 .*got {size}"
    refused(ValueError, text, dlf.empty, (2, 3), "float64", alignment_size=size)


NO_STORAGE_DTYPES = [
    object,
    "S3",
    "U3",
    "V8",
    "datetime64[s]",
    "timedelta64[s]",
    np.longdouble,
    np.clongdouble,
    [("a", "f4")],
    ">f8",
]


@every_maker_of_a_shape
@pytest.mark.parametrize("dtype", NO_STORAGE_DTYPES, ids=str)
def test_a_dtype_that_no_storage_has_is_refused(make, dtype):
    refused(ValueError, "dtype: expected", make, (2,), dtype)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("U5", "got <U5; choose one of these"),
        ("S3", r"got \|S3; choose"),
        ("V4", r"got \|V4; choose"),
        (object, "got object; choose"),
        ("M8[s]", r"got datetime64\[s\]; choose"),
        ([("a", "f4")], r"a type with fields, \[\('a', '<f4'\)\]; make a storage for each field"),
    ],
    ids=readable,
)
def test_a_type_that_no_storage_has_is_called_as_numpy_calls_it(dtype, text):
    refused(ValueError, text, dlf.zeros, 2, dtype)


@pytest.mark.parametrize("make", [dlf.zeros_like, dlf.storage], ids=["zeros_like", "storage"])
@pytest.mark.parametrize("dtype", NO_STORAGE_DTYPES, ids=str)
def test_no_model_and_no_data_is_turned_into_one(make, dtype):
    refused(ValueError, "dtype: expected", make, np.zeros(2), dtype=dtype)


@pytest.mark.parametrize("make", [dlf.storage, dlf.as_storage])
@pytest.mark.parametrize("dtype", NO_STORAGE_DTYPES[:-1], ids=str)
def test_data_of_such_a_dtype_is_refused(make, dtype):
    refused(
        BufferError,
        "bool, int8.*(convert with astype|a copy of one of its fields)|"
        "expected numbers, got .*convert it with astype",
        make,
        np.zeros(2, dtype),
    )


def test_byte_swapped_data_is_refused_with_the_way_out():
    text = r"native byte order.*newbyteorder\('='\)"
    refused(BufferError, text, dlf.as_storage, np.zeros(2, ">f8"))


@every_maker_of_a_shape
@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ((2.0,), TypeError, "shape: expected an int, got 2.0"),
        ((np.float64(2),), TypeError, "shape: expected an int, got np.float64"),
        (2.0, TypeError, "shape: expected a sequence of ints or an int, got 2.0"),
        ((None,), TypeError, "shape: expected an int, got None"),
        ((True,), TypeError, "shape: expected an int, got True"),
        ((2, (3,)), TypeError, r"shape: expected an int, got \(3,\)"),
        ("23", TypeError, "shape: expected an int, got '2'"),
        ((2, -1), ValueError, r"shape: expected extents of at least 0, got -1 on axis 1"),
        ((2**64,), ValueError, "shape: expected an int of 64 bits"),
        ((2**60,), ValueError, f"at most 64 dimensions and {2**63 - 1} bytes"),
        ((2**32, 2**31), ValueError, f"at most 64 dimensions and {2**63 - 1} bytes"),
        ((1,) * 65, ValueError, "at most 64 dimensions"),
    ],
    ids=readable,
)
def test_a_bad_shape_is_named_in_the_error(make, shape, error, text):
    refused(error, text, make, shape)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 300),
        ("uint8", -1),
        ("int64", 2**63),
        ("int32", float("nan")),
        ("int32", float("inf")),
        ("int32", None),
        ("float32", 1j),
        ("float64", "text"),
        ("float64", object()),
        ("int16", "2.5"),
    ],
    ids=readable,
)
def test_a_value_that_does_not_fit_raises_what_numpy_raises(dtype, value):
    with pytest.raises((ValueError, TypeError, OverflowError)) as numpys:
        np.array(value, dtype)
    text = (
        f"^fill_value: expected a number that {dtype} holds, got .*{re.escape(str(numpys.value))}"
    )
    refused(numpys.type, text, dlf.full, (2,), value, dtype)
    refused(numpys.type, text, dlf.full_like, np.zeros(2, dtype), value)


@pytest.mark.parametrize("digits", [400, 4000, 5000])
def test_the_refusal_of_a_large_number_is_short(digits):
    number = 10**digits
    for make in (lambda: dlf.full(3, number), lambda: dlf.full(3, number, "int8")):
        with pytest.raises(OverflowError, match=r"^fill_value: expected a number that") as caught:
            make()
        assert len(str(caught.value)) < 300
    with pytest.raises(ValueError, match=r"^shape: expected an int of 64 bits, got") as caught:
        dlf.zeros(number)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [[1, 2], np.zeros(3), [], ((1,), (2,))], ids=repr)
def test_a_value_is_one_number(value):
    refused(ValueError, "fill_value: expected one number", dlf.full, (2,), value)
    refused(ValueError, "fill_value: expected one number", dlf.full_like, np.zeros(2), value)


def test_memory_that_there_is_not_is_a_memory_error_and_leaves_nothing():
    text = run_in_subprocess("""
        import resource

        import dlfield as dlf
        import numpy as np
        from dlfield._core import live_allocations

        with open("/proc/self/statm") as statm:
            taken = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 40), resource.RLIM_INFINITY))
        shape = (1 << 20, 1 << 23)
        model = np.broadcast_to(np.zeros(1), shape)  # takes no memory
        for make in (
            lambda: dlf.empty(shape),
            lambda: dlf.zeros(shape),
            lambda: dlf.ones(shape),
            lambda: dlf.full(shape, 2),
            lambda: dlf.storage(shape=shape),
            lambda: dlf.storage(model),
            lambda: dlf.zeros_like(model),
            lambda: dlf.as_storage(model).copy(),
            lambda: dlf.empty((2, 2), alignment_size=1 << 46),
        ):
            try:
                make()
            except MemoryError as error:
                print(live_allocations(), error)
        print(dlf.ones(3).to_numpy().sum())
    """)
    *refusals, after = text.splitlines()
    assert len(refusals) == 9
    for refusal in refusals:
        assert refusal.startswith("0 out of memory: expected ")
    assert after == "3.0"
