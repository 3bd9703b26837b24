"""The exchange table of storages: tensors over storages, and storages over tensors."""

import ctypes
import gc
import json
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import (
    READ_ONLY,
    Producer,
    call_on_a_bare_thread,
    capsule_name,
    contents,
    release,
)
from support.exchange_structs import ATTRIBUTE, NAME, Exchange, Table
from support.no_driver import NO_DRIVER, without_driver
from support.optional import library
from support.parameters import NUMPY_DTYPES
from support.processes import run_in_fork

OURS = Exchange(dlf.Storage)
DTYPES = pytest.mark.parametrize("dtype", NUMPY_DTYPES)


def described(tensor):
    """Return the fields of a tensor: address, shape, strides in elements, type, device, offset."""
    shape, strides = tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]
    dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    device = (tensor.device.device_type, tensor.device.device_id)
    return (tensor.data, shape, strides, dtype, device, tensor.byte_offset)


def outcome(statement):
    """Hand a tensor over in a process of its own: what was raised, and how often it was freed."""
    printed = run_in_fork(f"""
        import json
        import dlfield as dlf
        from support.dlpack_structs import *
        from support.exchange_structs import *

        ours, p = Exchange(dlf.Storage), Producer()
        t, error = p.managed.dl_tensor, None
        try:
            {statement}
        except Exception as raised:
            error = raised
        kept = p.freed
        release(p.managed)
        print(json.dumps([type(error).__name__, str(error), kept, p.freed]))
    """)
    return json.loads(printed)


def test_the_table_is_an_attribute_of_the_class_under_the_name_that_dlpack_gives_it():
    assert ATTRIBUTE in vars(dlf.Storage)
    assert capsule_name(dlf.Storage.__dlpack_c_exchange_api__) == NAME
    assert hasattr(dlf.zeros(3), ATTRIBUTE)


def test_storages_of_the_host_have_the_table_of_all_storages():
    tables = [Exchange(cls).table for cls in (dlf.Storage, dlf.CPUStorage)]
    assert ctypes.addressof(tables[0]) == ctypes.addressof(tables[1])


def test_the_table_is_of_dlpack_1_3_and_has_no_older_one():
    version, prev = OURS.table.version, OURS.table.prev_api
    assert (version.major, version.minor, prev) == (1, 3, None)


@pytest.mark.parametrize("name", [name for name, _ in Table._fields_[2:]])
def test_every_function_is_there(name):
    assert getattr(OURS.table, name)


LAYOUTS = {
    "C": {},
    "Fortran": {"layout": (2, 1, 0)},
    "padded": {"alignment_size": 64},
    "halo": {"halo": (1, 1, 1)},
}


@pytest.mark.parametrize("options", LAYOUTS.values(), ids=LAYOUTS)
def test_an_owning_tensor_describes_the_storage(options):
    storage = dlf.zeros((4, 3, 3), dtype="float32", **options).domain_view
    managed = OURS.tensor_of(storage)
    strides = [stride // 4 for stride in storage.strides]
    expected = (address_of(storage), list(storage.shape), strides, (2, 32, 1), (1, 0), 0)
    assert described(managed.dl_tensor) == expected
    assert (managed.version.major, managed.version.minor, managed.flags) == (1, 3, 0)
    release(managed)


@DTYPES
def test_every_dtype_is_spelled_as_numpy_spells_it(dtype):
    managed = OURS.tensor_of(dlf.zeros(3, dtype=dtype))
    capsule = np.zeros(3, dtype).__dlpack__(max_version=(1, 0))
    assert bytes(managed.dl_tensor.dtype) == bytes(contents(capsule).dl_tensor.dtype)
    release(managed)


def test_an_owning_tensor_of_read_only_memory_says_so():
    managed = OURS.tensor_of(dlf.as_storage(bytes(8)))
    assert managed.flags == READ_ONLY
    release(managed)


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_an_owning_tensor_without_elements_has_no_address(shape):
    managed = OURS.tensor_of(dlf.zeros(shape))
    assert (managed.dl_tensor.data, managed.dl_tensor.shape[: len(shape)]) == (None, list(shape))
    release(managed)


def test_an_owning_tensor_keeps_the_memory_until_its_deleter_is_called():
    producer = Producer()
    managed = OURS.tensor_of(dlf.as_storage(producer))
    gc.collect()
    assert producer.freed == 0
    release(managed)
    assert producer.freed == 1


def test_an_owning_tensor_may_be_released_on_a_thread_that_python_does_not_know():
    producer = Producer()
    managed = OURS.tensor_of(dlf.as_storage(producer))
    call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))
    assert producer.freed == 1


def test_an_owning_tensor_holds_the_memory_and_not_the_storage():
    storage = dlf.zeros(3)
    before = sys.getrefcount(storage)
    managed = OURS.tensor_of(storage)
    assert sys.getrefcount(storage) == before
    release(managed)
    assert sys.getrefcount(storage) == before


VIEWS = pytest.mark.parametrize("give", [OURS.tensor_of, OURS.view_of], ids=["owning", "borrowed"])


@VIEWS
def test_negative_strides_are_refused_by_the_exchange_table(give):
    with pytest.raises(BufferError, match="expected strides of at least 0, got"):
        give(dlf.as_storage(np.zeros((3, 4))[:, ::-1]))


@VIEWS
@pytest.mark.parametrize("other", [None, 3, np.zeros(3), dlf.Storage, type], ids=repr)
def test_another_object_is_refused_by_type(give, other):
    with pytest.raises(TypeError, match="DLPack exchange table: expected a Storage, got "):
        give(other)


NULL = "ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(ours.table.{})"


@pytest.mark.parametrize("name", ["managed_tensor_from_py", "dltensor_from_py"])
def test_no_object_is_refused(name):
    call = NULL.format(name + "_object_no_sync")
    assert outcome(f"{call}(None, ctypes.addressof(Versioned()))")[0] == "TypeError"


def test_a_borrowed_tensor_describes_the_storage():
    storage = dlf.zeros((4, 3), layout=(1, 0))
    expected = (address_of(storage), [4, 3], [1, 4], (2, 64, 1), (1, 0), 0)
    assert described(OURS.view_of(storage)) == expected


def test_a_borrowed_tensor_points_to_the_same_shape_and_strides_each_time():
    storage = dlf.zeros((4, 3, 2, 2, 2, 2, 2, 2))
    first = OURS.view_of(storage)
    others = [dlf.zeros((4, 3, 2, 2, 2, 2, 2, 2)) for _ in range(100)]
    again = OURS.view_of(storage)
    assert bytes(first) == bytes(again)
    assert [described(OURS.view_of(one))[1:] for one in others] == [described(first)[1:]] * 100


def test_a_borrowed_tensor_keeps_nothing_alive():
    producer = Producer()
    storage = dlf.as_storage(producer)
    OURS.view_of(storage)
    del storage
    gc.collect()
    assert producer.freed == 1


def test_a_borrowed_tensor_of_a_scalar_has_an_address_and_no_dimensions():
    storage = dlf.full((), 7.0)
    view = OURS.view_of(storage)
    assert (view.ndim, view.data, ctypes.c_double.from_address(view.data).value) == (
        *(0, address_of(storage)),
        7.0,
    )


def test_a_borrowed_tensor_without_elements_has_no_address():
    storage = dlf.zeros((0, 3))
    view = OURS.view_of(storage)
    assert (view.data, view.shape[:2]) == (None, [0, 3])


def test_read_only_memory_is_not_lent_since_a_plain_tensor_cannot_say_so():
    with pytest.raises(BufferError, match="expected writable memory, got read-only memory"):
        OURS.view_of(dlf.as_storage(bytes(8)))


def test_a_storage_is_made_over_a_foreign_tensor():
    producer = Producer((3, 4))
    storage = OURS.object_over(producer.address)
    assert type(storage) is dlf.CPUStorage
    assert (storage.shape, storage.dims, storage.door) == ((3, 4), None, "dlpack_c_exchange_api")
    storage.to_numpy()[2, 1] = 70.0
    assert (address_of(storage), producer.values[9]) == (ctypes.addressof(producer.values), 70.0)


def test_a_storage_over_a_foreign_tensor_frees_it_once():
    producer = Producer()
    view = OURS.object_over(producer.address).to_numpy()
    gc.collect()
    assert producer.freed == 0
    del view
    gc.collect()
    assert producer.freed == 1


def test_the_caller_gets_the_one_reference_to_a_new_storage():
    storage, other = OURS.object_over(Producer().address), dlf.zeros(3)
    assert sys.getrefcount(storage) == sys.getrefcount(other)


def test_a_storage_over_a_read_only_tensor_is_read_only():
    assert OURS.object_over(Producer(flags=READ_ONLY).address).readonly


@pytest.mark.parametrize("device", [3, 11, 13])
def test_a_storage_is_made_over_memory_that_the_host_shares_with_a_device(device):
    producer = Producer()
    producer.managed.dl_tensor.device.device_type = device
    assert OURS.object_over(producer.address).shape == (3, 4)


def test_a_tensor_of_a_storage_becomes_a_storage_over_the_same_memory():
    storage = dlf.ones((4, 3), layout=(1, 0))
    managed = OURS.tensor_of(storage)
    back = OURS.object_over(ctypes.addressof(managed))
    assert (address_of(back), back.strides) == (address_of(storage), storage.strides)


REFUSED = {
    "ndim": ("t.ndim = -1", "BufferError", "got -1"),
    "data": ("t.data = None", "BufferError", "expected an address"),
    "shape": ("t.shape = None", "BufferError", "got NULL"),
    "extent": ("p.shape[0] = -3", "BufferError", "got -3"),
    "overflow": ("p.shape[0] = 2**62", "BufferError", "got"),
    "dtype": ("t.dtype.code = 3", "BufferError", "got code 3"),
    "version": ("p.managed.version.major = 2", "BufferError", "expected major version 1"),
    "unknown device": ("t.device.device_type = 77", "BufferError", "got code 77"),
    "CUDA": pytest.param(
        "t.device.device_type = 2",
        *("DeviceUnavailable", f"memory on cuda:0: {NO_DRIVER}"),
        marks=without_driver,
    ),
}


@pytest.mark.parametrize(("statement", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_a_tensor_that_is_refused_is_still_the_callers_to_release(statement, error, text):
    raised, said, kept, freed = outcome(f"{statement}; ours.object_over(p.address)")
    assert (raised, kept, freed) == (error, 0, 1)
    assert text in said


@pytest.mark.parametrize("at", ["None", "p.address + 4"])
def test_a_pointer_to_another_object_is_refused(at):
    call = NULL.format("managed_tensor_to_py_object_no_sync")
    raised, said, *_ = outcome(f"{call}({at}, ctypes.addressof(Versioned()))")
    assert (raised, "expected a tensor, got" in said) == ("BufferError", True)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_types_that_numpy_lacks_go_out_and_come_back(name):
    ml_dtypes = library("ml_dtypes")
    storage = dlf.zeros(3, dtype=getattr(ml_dtypes, name))
    back = OURS.object_over(ctypes.addressof(OURS.tensor_of(storage)))
    assert back.dtype == storage.dtype
