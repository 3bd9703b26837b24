"""What hands device memory to storages and takes it from them, in the words of each library.

Libraries are imported when one of their arrays is made: those that need a real driver are named in
the tests on the stand-in, too, and left out there.
"""

import functools
import gc
import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support import optional
from support.cuda.devices import Memory, OnDevice, read, write
from support.cuda.driver import call
from support.cuda.handed import address_of

# Read when JAX starts: it would take most of the memory for itself, and make float32 of everything.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("JAX_ENABLE_X64", "1")


def library(name):
    """Import a library, or skip the test that needs it, also where it finds no device."""
    found = optional.library(name)
    sees_a_device = SEES_A_DEVICE.get(name.partition(".")[0], lambda: True)
    if not sees_a_device():
        pytest.skip(f"{name} finds no device")
    return found


@functools.cache
def gpu_of_jax():
    import jax

    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        return None


@functools.cache
def torch_sees_a_device():
    import torch

    return torch.cuda.is_available()


@functools.cache
def cupy_sees_a_device():
    import cupy

    return cupy.cuda.is_available()


SEES_A_DEVICE = {"torch": torch_sees_a_device, "cupy": cupy_sees_a_device, "jax": gpu_of_jax}


@dataclass(frozen=True)
class Library:
    """How a library reads and writes its arrays, also those over foreign memory."""

    name: str
    address: Callable[[Any], int]
    read: Callable[[Any], np.ndarray]
    """The values, once everything on the device is done."""
    write: Callable[[Any, float], None] | None = None
    """Make every value this one. None: the library never writes."""


@dataclass(frozen=True)
class Producer:
    """A way to have an array on a device."""

    library: Library
    make: Callable[[np.ndarray], Any]
    used: Callable[[], int]
    """How much of the library's memory is in use: bytes, or blocks."""

    def __str__(self):
        return self.library.name


@dataclass(frozen=True)
class Consumer:
    """A way to have the array of a storage."""

    library: Library
    entry: str
    take: Callable[[Any], Any]
    refuses_read_only: bool = False

    def __str__(self):
        return self.entry


def finished(see):
    """Wait for the device before reading."""

    def seen(array):
        call("cuCtxSynchronize")
        return see(array)

    return seen


def at_address(address):
    """Look at, and write, contiguous float64 values by the driver's own functions."""
    return {
        "address": address,
        "read": lambda array: read(address(array), array.shape, np.float64),
        "write": lambda array, value: write(address(array), np.full(array.shape, value)),
    }


INTERFACE = Library("CUDA array interface", **at_address(lambda array: array.address))
CORE = Library("cuda.core", **at_address(lambda view: view.ptr))
NUMBA = Library("numba", **at_address(lambda array: array.device_ctypes_pointer.value))
STORAGE = Library("dlfield", **at_address(address_of))
TORCH = Library(
    "torch",
    lambda tensor: tensor.data_ptr(),
    finished(lambda tensor: tensor.cpu().numpy()),
    lambda tensor, value: tensor.fill_(value),
)
CUPY = Library(
    "cupy",
    lambda array: array.data.ptr,
    finished(lambda array: array.get()),
    lambda array, value: array.fill(value),
)
JAX = Library("jax", lambda array: array.unsafe_buffer_pointer(), finished(np.asarray))


_blocks = weakref.WeakSet()


def counted(memory):
    """Note a block of memory, to know later whether it is there."""
    _blocks.add(memory)
    return memory


def interface(values):
    array = OnDevice(values)
    counted(array.memory)
    return array


def core_view(values):
    core, utils = library("cuda.core"), library("cuda.core.utils")
    memory = counted(Memory(values.nbytes))
    write(memory.address, values)
    buffer = core.Buffer.from_handle(memory.address, values.nbytes, owner=memory)
    return utils.StridedMemoryView.from_buffer(buffer, values.shape, dtype=values.dtype)


def torch_tensor(values):
    return library("torch").tensor(values, device="cuda")


def jax_array(values):
    return library("jax").device_put(values, gpu_of_jax()).block_until_ready()


def numba_memory():
    return library("numba.cuda").current_context().memory_manager


PRODUCERS = [
    Producer(INTERFACE, interface, lambda: len(_blocks)),
    Producer(CORE, core_view, lambda: len(_blocks)),
    Producer(
        NUMBA,
        lambda values: library("numba.cuda").to_device(values),
        lambda: len(numba_memory().allocations),
    ),
    Producer(TORCH, torch_tensor, lambda: library("torch").cuda.memory_allocated()),
    Producer(
        CUPY,
        lambda values: library("cupy").asarray(values),
        lambda: library("cupy").get_default_memory_pool().used_bytes(),
    ),
    Producer(JAX, jax_array, lambda: gpu_of_jax().memory_stats()["bytes_in_use"]),
]

DEFAULT_STREAM = 1


def core_by(way):
    def take(storage):
        view = library("cuda.core.utils").StridedMemoryView
        return getattr(view, way)(storage, stream_ptr=DEFAULT_STREAM)

    return take


CONSUMERS = [
    Consumer(CORE, "cuda.core by DLPack", core_by("from_dlpack")),
    Consumer(CORE, "cuda.core by the interface", core_by("from_cuda_array_interface")),
    Consumer(NUMBA, "as_cuda_array", lambda s: library("numba.cuda").as_cuda_array(s)),
    Consumer(TORCH, "torch.from_dlpack", lambda s: library("torch").from_dlpack(s)),
    Consumer(
        TORCH,
        "torch.as_tensor",
        lambda s: library("torch").as_tensor(s, device="cuda"),
        refuses_read_only=True,
    ),
    Consumer(
        TORCH, "to_torch", lambda s: library("torch") and s.to_torch(), refuses_read_only=True
    ),
    Consumer(CUPY, "cupy.from_dlpack", lambda s: library("cupy").from_dlpack(s)),
    Consumer(CUPY, "cupy.asarray", lambda s: library("cupy").asarray(s)),
    Consumer(CUPY, "to_cupy", lambda s: library("cupy") and s.to_cupy(), refuses_read_only=True),
    Consumer(
        JAX,
        "jax.dlpack.from_dlpack",
        lambda s: library("jax.dlpack").from_dlpack(s),
        refuses_read_only=True,  # JAX asks for a capsule without that flag
    ),
    Consumer(JAX, "to_jax", lambda s: library("jax") and s.to_jax()),
]

NEED_A_DRIVER = {"torch", "cupy", "jax"}


def let_go():
    """Free all unreferenced memory, also what numba would keep for a while."""
    gc.collect()
    call("cuCtxSynchronize")
    if "numba.cuda" in sys.modules:
        numba_memory().deallocations.clear()
    call("cuCtxSynchronize")


def eventually(condition):
    """Return whether a condition comes to hold: a library may free memory on its own thread."""
    for _ in range(300):
        let_go()
        if condition():
            return True
        time.sleep(0.01)
    return False
