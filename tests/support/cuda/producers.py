"""DLPack producers with memory of CUDA, which note how they are asked and when they are freed."""

import ctypes
import weakref
from contextlib import contextmanager
from functools import partial

import numpy as np

from support.cuda.devices import LEGACY, Memory, current, write, write_late
from support.cuda.driver import call, made
from support.cuda.order import device_count, follow, put_from
from support.dlpack_structs import DLDevice, Producer

CPU, CUDA, PINNED, ROCM, MANAGED = 1, 2, 3, 10, 13
VALUES = np.arange(4.0)


class OnGpu(Producer):
    """Four float64 numbers of a kind of memory, 0 to 3 unless others are still to be written.

    `late` is a stream on which 10 to 13 are written later; consumers are made to wait for it as the
    protocol says. With `reuses`, a stream, the memory has a new owner as soon as the deleter is
    called, which writes -1 there on that stream.
    """

    def __init__(self, *, kind=CUDA, device=0, announces=None, claims=None, **options):
        self.late, self.reuses = options.pop("late", None), options.pop("reuses", None)
        super().__init__((4,), **options)
        self.kind, self.device = kind, device
        self.announces = announces or (kind, device if kind == CUDA else 0)
        self.contexts = []  # numbers of the devices that were current when it was asked
        self.memory = _block(kind, device)
        tensor = self.managed.dl_tensor
        tensor.data, tensor.device = self.memory.address, DLDevice(*(claims or self.announces))
        if kind == CUDA:
            write(self.memory.address, VALUES, device)
        if self.late is not None:
            with current(device):
                self.memory.kept = write_late(self.memory.address, VALUES + 10, self.late)

    def _count(self, managed):
        super()._count(managed)
        if self.reuses is not None:
            put_from(self.reuses, self.memory.address, np.full(4, -1.0), self.device)

    def let_wait(self, stream=None):
        """Do what a producer does with the `stream` that it is given."""
        if self.late is not None and stream != -1:
            follow(LEGACY if stream is None else stream, self.late, self.device)

    def __dlpack_device__(self):
        return self.announces

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        self.contexts.append(made("cuCtxGetDevice", kind=ctypes.c_int))
        self.let_wait(keywords.get("stream"))
        return self.capsule()

    def let_go(self):
        """Free the memory when it is no longer used."""
        self.memory = None


class OfStreamAlone(OnGpu):
    """Knows DLPack as it was in 2021: the only keyword is `stream`."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


class OfNoKeywords(OnGpu):
    """Has DLPack's oldest signature: a call without keywords means the legacy stream."""

    def __dlpack__(self):
        return super().__dlpack__()


class WithoutCopy(OnGpu):
    """Knows versions and does not know `copy`."""

    def __dlpack__(self, *, stream=None, max_version=None):
        return super().__dlpack__(stream=stream, max_version=max_version)


class _Block:
    """Four numbers at an address, and what frees them, if anything does."""

    def __init__(self, start, free=None, owner=None):
        self.address, self.owner = start, owner
        if free:
            weakref.finalize(self, free, start)


def _block(kind, device):
    if kind == CUDA:
        return Memory(VALUES.nbytes, device)
    if kind == ROCM:
        return _Block(1 << 40)  # of which no driver is asked
    if kind == CPU:
        return _Block(VALUES.ctypes.data, owner=VALUES)
    with current(device):
        if kind == PINNED:
            start = made("cuMemHostAlloc", VALUES.nbytes, 1)
            block = _Block(start, partial(call, "cuMemFreeHost"))
        else:
            block = _Block(
                made("cuMemAllocManaged", VALUES.nbytes, 1), partial(call, "cuMemFree_v2")
            )
        ctypes.memmove(block.address, VALUES.ctypes.data, VALUES.nbytes)
    return block


@contextmanager
def workshop():
    """Return what makes producers. Their memory goes at the end, once all devices are idle.

    A deleter frees nothing: the structs of `Producer` live for ever, so that a deleter that is
    called twice, or late, is counted and does no harm.
    """
    producers = []

    def make(cls=OnGpu, **options):
        producers.append(cls(**options))
        return producers[-1]

    try:
        yield make
    finally:
        for device in range(device_count()):
            with current(device):
                call("cuCtxSynchronize")
        for producer in producers:
            producer.let_go()
