"""Producers of Arrow's C device interface with memory of CUDA."""

import ctypes

import numpy as np

from support.arrow_structs import Producer
from support.cuda.devices import current, write_late
from support.cuda.driver import call, event
from support.cuda.order import put_from
from support.cuda.producers import CUDA, VALUES, OnGpu


class OfArrow(Producer):
    """Four float64 numbers of a kind of memory, 0 to 3 unless others are still to be written.

    `late` is a stream, of the device `on`, on which 10 to 13 are written later; `sync_event` comes
    after it, and goes when the array is released. With `reuses`, a stream, the memory then has a
    new owner, which writes -1 there on that stream.
    """

    def __init__(self, *, kind=CUDA, device=0, late=None, on=None, reuses=None):
        super().__init__()
        self.owner, self.reuses, self.event = OnGpu(kind=kind, device=device), reuses, None
        self.memory, self.source = self.owner.memory, None
        self.device.device_type, self.device.device_id = kind, device
        self.buffers[1] = self.memory.address
        if late is not None:
            with current(device if on is None else on):
                self.memory.kept = write_late(self.memory.address, VALUES + 10, late)
                self.record(late)

    def record(self, stream):
        """Let the end of what is on a stream now be what consumers wait for."""
        self.event = ctypes.c_uint64(event())
        call("cuEventRecord", self.event.value, stream)
        self.device.sync_event = ctypes.addressof(self.event)

    def _free_array(self, address):
        super()._free_array(address)
        if self.reuses is not None:
            put_from(self.reuses, self.memory.address, np.full(4, -1.0), self.owner.device)
        if self.event is not None:
            call("cuEventDestroy_v2", self.event.value)
            self.event = None

    def let_go(self):
        """Free the memory when it is no longer used."""
        self.memory = self.source = None
        self.owner.let_go()
