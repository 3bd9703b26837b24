"""The exchange table of storages: memory for the results of others, and the stream to fill it."""

import ctypes
import re
import threading

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import contents, release
from support.exchange_structs import ALLOCATOR, ALLOCATOR_WITHOUT_GIL, Exchange, prototype
from support.no_driver import NO_DRIVER, without_driver
from support.parameters import NUMPY_DTYPES
from support.processes import run_in_fork

OURS = Exchange(dlf.Storage)


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4, 5), (1,) * 64])
def test_the_allocator_gives_memory_of_that_shape_in_c_order(shape):
    code, managed, said = OURS.allocate(prototype(shape))
    assert (code, said, managed.flags, managed.version.major) == (0, [], 0, 1)
    tensor, ndim = managed.dl_tensor, len(shape)
    assert (tensor.ndim, tensor.shape[:ndim]) == (ndim, list(shape))
    assert [8 * stride for stride in tensor.strides[:ndim]] == list(dlf.zeros(shape).strides)
    release(managed)


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_the_allocator_gives_writable_memory_of_that_type_on_a_boundary_of_64_bytes(dtype):
    made = contents(np.zeros(3, dtype).__dlpack__(max_version=(1, 0))).dl_tensor.dtype
    _code, managed, _said = OURS.allocate(prototype((3, 5), made))
    storage = OURS.object_over(ctypes.addressof(managed))
    assert (storage.dtype, address_of(storage) % 64, storage.readonly) == (dtype, 0, False)
    storage.to_numpy()[...] = 1
    assert storage.to_numpy().all()


def test_what_the_allocator_gives_belongs_to_the_caller_alone():
    first, second = (OURS.allocate(prototype())[1] for _ in range(2))
    ctypes.memset(first.dl_tensor.data, 1, 96)
    ctypes.memset(second.dl_tensor.data, 2, 96)
    release(second)
    assert ctypes.string_at(first.dl_tensor.data, 96) == b"\1" * 96
    release(first)


def test_released_memory_of_the_allocator_is_free():
    grown = run_in_fork("""
        import dlfield as dlf
        from support.dlpack_structs import release
        from support.exchange_structs import *
        from support.lying_producers import resident

        ours, before = Exchange(dlf.Storage), resident()
        for _ in range(20):
            managed = ours.allocate(prototype((1 << 20, 4)))[1]
            ctypes.memset(managed.dl_tensor.data, 1, 32 << 20)
            release(managed)
        print(resident() - before)
    """)
    assert int(grown) < 64 << 10  # KiB, of 640 MiB


def spoilt(**changes):
    made = prototype()
    for field, value in changes.items():
        setattr(made, field, value)
    return made


UNMADE = {
    "no prototype": (None, "BufferError", "expected a prototype, got NULL"),
    "CUDA": pytest.param(prototype(device=(2, 1)), "RuntimeError", NO_DRIVER, marks=without_driver),
    "ROCm": (prototype(device=(10, 1)), "RuntimeError", "or a CUDA device, got rocm:1"),
    "unknown device": (prototype(device=(77, 0)), "BufferError", "got code 77"),
    "unknown dtype": (prototype(dtype=(99, 64, 1)), "BufferError", "got code 99"),
    "lanes": (prototype(dtype=(2, 32, 4)), "BufferError", "4 lanes"),
    "negative ndim": (spoilt(ndim=-1), "BufferError", "got -1"),
    "65 dimensions": (spoilt(ndim=65), "BufferError", "got 65"),
    "no shape": (spoilt(shape=None), "BufferError", "2 extents, got NULL"),
    "negative extent": (prototype((3, -4)), "ValueError", "got -4"),
    "too many elements": (prototype((2**40, 2**40)), "ValueError", "got"),
    "too many bytes": (prototype((2**61,)), "ValueError", "got"),
    "too much memory": (prototype((2**55,)), "MemoryError", "bytes"),
}
BOTH = pytest.mark.parametrize(
    "kind", [ALLOCATOR, ALLOCATOR_WITHOUT_GIL], ids=["with the GIL", "without the GIL"]
)


@BOTH
@pytest.mark.parametrize(("asked", "error", "text"), UNMADE.values(), ids=UNMADE)
def test_a_failed_allocation_calls_set_error_once(kind, asked, error, text):
    code, managed, said = OURS.allocate(asked, kind=kind)
    assert (code, managed, len(said)) == (-1, None, 1)
    context, name, message = said[0]
    assert (context, name.decode()) == (0xC0FFEE, error)
    assert text in message.decode()


@BOTH
def test_the_allocator_may_be_called_from_another_thread(kind):
    answers = []

    def work():
        answers.extend(OURS.allocate(asked, kind=kind) for asked in (prototype(), None))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (code, managed, said), (failed, nothing, told) = answers
    assert (code, said, failed, nothing, len(told)) == (0, [], -1, None, 1)
    release(managed)


def test_a_caller_without_a_set_error_gets_the_answer_alone():
    printed = run_in_fork("""
        import dlfield as dlf
        from support.exchange_structs import *

        call = ALLOCATOR(Exchange(dlf.Storage).table.managed_tensor_allocator)
        print(call(None, Room(), None, SET_ERROR()))
    """)
    assert printed == "-1"


@pytest.mark.parametrize("device", [(1, 0), (1, 7), (3, 0), (11, 1), (13, 2)])
def test_host_memory_has_no_stream(device):
    assert OURS.stream(*device) == (0, None)


@pytest.mark.parametrize(
    ("device", "error", "text"),
    [
        pytest.param(
            *((2, 0), dlf.DeviceUnavailable, f"^{re.escape(NO_DRIVER)}$"), marks=without_driver
        ),
        ((10, 3), dlf.DeviceUnavailable, "got rocm:3"),
        ((2, -1), BufferError, "got code 2 with id -1"),
        ((0, 0), BufferError, "got code 0"),
        ((-1, 0), BufferError, "got code -1"),
    ],
)
def test_the_stream_of_a_device_that_is_not_here_is_refused(device, error, text):
    with pytest.raises(error, match=text):
        OURS.stream(*device)
