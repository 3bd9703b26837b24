"""DLPack's exchange table with libraries that have or use one: torch's in, ours into TVM FFI."""

import gc
import re
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import CountedMemory, assert_freed_once
from support.processes import run_in_subprocess

DOOR = "dlpack_c_exchange_api"

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("complex64", "complex128"),
)

LAYOUTS = {
    "compact": lambda torch: torch.zeros((4, 3, 2)),
    "permuted": lambda torch: torch.zeros((4, 3, 2)).permute(2, 0, 1),
    "every second": lambda torch: torch.zeros((8, 6))[::2, 1::2],
    "with an offset": lambda torch: torch.zeros((6, 5))[2:, 1:],
    "a diagonal": lambda torch: torch.zeros((5, 5)).diagonal(),
    "0-d": lambda torch: torch.zeros(()),
    "0-d in a row": lambda torch: torch.zeros(5)[3],
    "shared with processes": lambda torch: torch.zeros((4, 3)).share_memory_(),
}


@pytest.fixture
def torch():
    torch = library("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no exchange table")
    return torch


@pytest.fixture
def tvm_ffi():
    return library("tvm_ffi")


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_of_torch_comes_through_the_table(torch, name):
    tensor = torch.ones((4, 3), dtype=torch.uint8).to(getattr(torch, name))
    storage = dlf.as_storage(tensor)
    assert (storage.door, storage.dtype.name) == (DOOR, name)
    assert storage.to_numpy().ctypes.data == tensor.data_ptr()
    assert np.array_equal(storage.to_numpy().astype(complex), np.ones((4, 3)))


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_of_torch_comes_through_the_table_as_it_is(torch, make):
    tensor = make(torch)
    storage = dlf.as_storage(tensor)
    assert (storage.door, address_of(storage)) == (DOOR, tensor.data_ptr())
    assert storage.shape == tuple(tensor.shape)
    assert storage.strides == tuple(4 * stride for stride in tensor.stride())


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_an_empty_tensor_comes_through_the_table(torch, shape):
    storage = dlf.as_storage(torch.zeros(shape))
    assert (storage.door, storage.shape) == (DOOR, shape)


def test_a_write_is_seen_in_the_tensor_and_in_the_storage(torch):
    tensor = torch.zeros((4, 3), dtype=torch.float64)
    storage = dlf.as_storage(tensor)
    storage.to_numpy()[2, 1] = 7.0
    tensor[0, 1] = 8.0
    assert (tensor[2, 1].item(), storage.to_numpy()[0, 1]) == (7.0, 8.0)


def test_a_tensor_taken_through_the_table_is_freed_once(torch):
    assert_freed_once(torch.from_dlpack, dlf.as_storage)


def test_a_tensor_taken_through_the_table_has_as_many_references_as_before(torch):
    tensor = torch.zeros(3)
    before = sys.getrefcount(tensor)
    for _ in range(100):
        dlf.as_storage(tensor)
    assert sys.getrefcount(tensor) == before


def negated(torch, *shape):
    return torch._neg_view(torch.ones(shape))


def complex_ones(torch, *shape):
    return torch.ones(shape, dtype=torch.complex64)


LAZY = {
    "parameter": (lambda torch: torch.nn.Parameter(torch.zeros(3)), "detach"),
    "requires_grad": (lambda torch: torch.zeros(3, requires_grad=True), "detach"),
    "result of a graph": (lambda torch: 2 * torch.zeros(3, requires_grad=True), "detach"),
    "conj": (lambda torch: complex_ones(torch, 3).conj(), "resolve_conj"),
    "conj, 0-d": (lambda torch: complex_ones(torch).conj(), "resolve_conj"),
    "conj, sliced": (lambda torch: complex_ones(torch, 6).conj()[::2], "resolve_conj"),
    "imaginary part of a conj": (lambda torch: complex_ones(torch, 3).conj().imag, "resolve_neg"),
    "negative": (lambda torch: negated(torch, 3), "resolve_neg"),
    "negative, 0-d": (lambda torch: negated(torch), "resolve_neg"),
    "negative, one element": (lambda torch: negated(torch, 1), "resolve_neg"),
    "negative, sliced": (lambda torch: negated(torch, 6)[::2], "resolve_neg"),
    "negative, restrided": (lambda torch: negated(torch, 6).as_strided((3,), (1,)), "resolve_neg"),
    "negative and conj": (
        lambda torch: torch._neg_view(complex_ones(torch, 3)).conj(),
        "resolve_conj",
    ),
}


@pytest.mark.parametrize(("make", "advice"), LAZY.values(), ids=LAZY)
def test_a_tensor_whose_memory_is_not_its_value_is_refused_though_the_table_gives_it(
    torch, make, advice
):
    with refused(BufferError, f"tensor.{advice}()"):
        dlf.as_storage(make(torch))


WITHOUT_PLAIN_MEMORY = {
    "sparse": (lambda torch: torch.zeros(3).to_sparse(), "layout other than torch.strided"),
    "meta": (lambda torch: torch.zeros(3, device="meta"), "meta"),
    "zero": (lambda torch: torch._efficientzerotensor(3), "expected an address for 3 elements"),
    "freed": (lambda torch: emptied(torch.zeros(3)), "expected an address for 3 elements"),
    "bits": (lambda torch: torch.zeros(3, dtype=torch.uint8).view(torch.bits8), "Bit types"),
    "pairs": (
        lambda torch: torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "DLPack dtype: expected",
    ),
}


def emptied(tensor):
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(("make", "text"), WITHOUT_PLAIN_MEMORY.values(), ids=WITHOUT_PLAIN_MEMORY)
def test_a_tensor_without_plain_memory_is_refused_in_words(torch, make, text):
    with refused(BufferError, text):
        dlf.as_storage(make(torch))


@pytest.mark.usefixtures("torch")
def test_fake_tensors_and_those_inside_a_transform_are_refused_and_do_no_harm():
    printed = run_in_subprocess(
        """
        import dlfield as dlf, torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        def take(tensor):
            try:
                dlf.as_storage(tensor)
            except BufferError as error:
                print(error, end="|")
            return tensor

        with FakeTensorMode() as mode:
            take(mode.from_tensor(torch.zeros(3)))
            fake = torch.zeros(3)
        take(fake)
        torch.func.jvp(take, (torch.zeros(3),), (torch.zeros(3),))
        """,
        warnings="ignore",
    )
    texts = [".*expected one with values, got a FakeTensor"] * 2 + [".*without a tangent"]
    seen = printed.removesuffix("|").split("|")
    for text, one in zip(texts, seen, strict=True):
        assert re.match(text, one)


def test_a_subclass_with_functions_of_its_own_comes_through_the_table(torch):
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.zeros(3).as_subclass(Own)
    storage = dlf.as_storage(tensor)
    assert (storage.door, address_of(storage)) == (DOOR, tensor.data_ptr())


def test_what_the_functions_of_a_subclass_raise_passes_unchanged(torch):
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("of the subclass")

    tensor = torch.zeros(3).as_subclass(Refusing)
    with pytest.raises(RuntimeError, match="of the subclass"):
        dlf.as_storage(tensor)


def test_a_wrapper_around_a_tensor_of_tvm_ffi_comes_through_its_table(tvm_ffi):
    array = np.zeros((4, 3))
    wrapper = tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(array))
    storage = dlf.as_storage(wrapper)
    assert (storage.door, address_of(storage)) == (DOOR, array.ctypes.data)


def unchanged(tvm_ffi):
    """A function of TVM FFI, as its kernels are, that gives back what it is given."""
    return tvm_ffi.convert(lambda tensor: tensor)


def test_a_function_is_given_a_tensor_over_the_storage(tvm_ffi):
    def inspect(tensor):
        np.from_dlpack(tensor)[2, 1] = 7.0
        return f"{tensor.data_ptr()} {tuple(tensor.shape)} {tuple(tensor.strides)} {tensor.dtype}"

    storage = dlf.zeros((4, 3), layout=(1, 0))
    said = tvm_ffi.convert(inspect)(storage)
    assert said == f"{address_of(storage)} (4, 3) (1, 4) float64"
    assert storage.to_numpy()[2, 1] == 7.0


def test_what_a_function_makes_of_a_storage_comes_back_as_a_storage(tvm_ffi):
    storage = dlf.zeros((4, 3), layout=(1, 0), dtype="int16")
    back = unchanged(tvm_ffi)(storage)
    assert (type(back), back.door) == (dlf.CPUStorage, DOOR)
    assert (back.shape, back.strides, back.dtype) == ((4, 3), (2, 8), np.int16)
    assert address_of(back) == address_of(storage)


def test_a_registered_function_gives_storages_too(tvm_ffi):
    name = "dlfield.tests.unchanged"
    tvm_ffi.register_global_func(name, lambda tensor: tensor)
    try:
        storage = dlf.zeros(3)
        assert address_of(tvm_ffi.get_global_func(name)(storage)) == address_of(storage)
    finally:
        tvm_ffi.remove_global_func(name)


def test_storages_in_a_list_come_back_as_storages(tvm_ffi):
    storages = [dlf.zeros(3), dlf.zeros(5)]
    back = tvm_ffi.convert(lambda *tensors: list(tensors))(*storages)
    assert [type(one) for one in back] == [dlf.CPUStorage] * 2
    assert [address_of(one) for one in back] == [address_of(one) for one in storages]


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_storages_go_through_a_function(tvm_ffi, shape):
    assert unchanged(tvm_ffi)(dlf.zeros(shape)).shape == shape


def test_what_a_function_makes_of_a_tensor_of_torch_comes_back_as_one(tvm_ffi, torch):
    tensor = torch.zeros(3)
    back = unchanged(tvm_ffi)(tensor)
    assert (type(back), back.data_ptr()) == (torch.Tensor, tensor.data_ptr())


def test_a_storage_that_went_through_a_function_is_freed_once(tvm_ffi):
    assert_freed_once(dlf.as_storage, unchanged(tvm_ffi))


def test_a_tensor_that_a_function_has_kept_is_freed_once(tvm_ffi):
    def keep(storage):
        kept = []
        tvm_ffi.convert(kept.append)(storage)
        return kept

    assert_freed_once(dlf.as_storage, keep)


def test_a_function_that_raises_keeps_no_memory(tvm_ffi):
    def fail(tensor):
        raise ValueError("inside")

    memory = CountedMemory()
    storage = dlf.as_storage(memory)
    with pytest.raises(ValueError, match="inside"):
        tvm_ffi.convert(fail)(storage)
    del storage
    gc.collect()
    assert memory.deletions == 1


def test_a_storage_that_cannot_go_out_is_refused_in_our_words_and_keeps_nothing(tvm_ffi):
    array = np.zeros(3)
    before = sys.getrefcount(array)
    with pytest.raises(BufferError, match="expected strides of at least 0"):
        unchanged(tvm_ffi)(dlf.as_storage(array[::-1]))
    assert sys.getrefcount(array) == before


def test_a_storage_has_as_many_references_as_before_it_was_handed_over(tvm_ffi):
    storage, function = dlf.zeros(3), unchanged(tvm_ffi)
    before = sys.getrefcount(storage)
    for _ in range(100):
        function(storage)
    assert sys.getrefcount(storage) == before


def test_a_function_that_is_given_a_read_only_storage_gives_back_a_writable_one(tvm_ffi):
    storage = dlf.as_storage(bytes(8))
    back = unchanged(tvm_ffi)(storage)
    assert address_of(back) == address_of(storage)
    assert (storage.readonly, back.readonly) == (True, False)
