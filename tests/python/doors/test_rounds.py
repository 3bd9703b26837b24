"""Every path many times over: memory, objects, references and deleter counts stay flat."""

import pytest

from support.rounds import assert_flat, refused

#: Rounds of paths that cost about a microsecond, and of those that build a producer's capsule.
FAST, SLOW = 100_000, 20_000

TAKEN = {
    # what is done in a round with the producer p or the object of its kind
    "buffer": ("dlf.as_storage(array)", FAST),
    "bytes": ("dlf.as_storage(text)", FAST),
    "interface": ("dlf.as_storage(interface)", FAST),
    "interface with a buffer": ("dlf.as_storage(over_buffer)", FAST),
    "forged buffer": ("dlf.as_storage(forged)", SLOW),
    "versioned capsule": ("dlf.as_storage(p)", SLOW),
    "legacy capsule": ("dlf.as_storage(legacy)", SLOW),
    "old signature": ("dlf.as_storage(old)", SLOW),
    "storage": ("dlf.as_storage(own)", FAST),
    "memoryview of a storage": ("memoryview(own)", FAST),
    "interface of a storage": ("own.__array_interface__", FAST),
    "capsule that nobody takes": ("own.__dlpack__(max_version=(1, 0))", FAST),
    "legacy capsule that nobody takes": ("own.__dlpack__()", FAST),
    "capsule that is taken": ("dlf.as_storage(Handover(own.__dlpack__()))", FAST),
    "tensor that is released": ("release(consume(own.__dlpack__()))", SLOW),
    "copy": ("own.__dlpack__(copy=True)", FAST),
    "copy in another layout": ("dlf.storage(own, layout=(1, 0), alignment_size=64)", FAST),
    "domain view": ("own.domain_view", FAST),
}

REFUSED = {
    "nothing spoken": ("dlf.as_storage(3)", FAST),
    "format": ("dlf.as_storage(chars)", FAST),
    "forged buffer": ("dlf.as_storage(forged_liar)", SLOW),
    "interface": ("dlf.as_storage(lying_interface)", FAST),
    "interface with a small buffer": ("dlf.as_storage(too_small)", FAST),
    "tensor": ("dlf.as_storage(liar)", SLOW),
    "legacy tensor": ("dlf.as_storage(legacy_liar)", SLOW),
    "another name": ("dlf.as_storage(Handover(nameless))", FAST),
    "used capsule": ("dlf.as_storage(Handover(used))", FAST),
    "no capsule": ("dlf.as_storage(Handover(None))", FAST),
    "producer that raises": ("dlf.as_storage(raising)", FAST),
    "stream": ("own.__dlpack__(stream=7)", FAST),
    "device": ("own.__dlpack__(dl_device=(99, 0))", FAST),
    "read-only memory": ("readonly.__dlpack__()", FAST),
    "writable buffer": ("from_buffer(readonly)", FAST),
    "exception on its way": ("[].index(dlf.as_storage(p).__dlpack__())", SLOW),
}

SETTING = """
import array as arrays
import ctypes
from support.dlpack_structs import consume, release
from support.lying_buffers import Forged
from support.lying_producers import *

class Old(Producer):
    def __dlpack__(self):
        return self.capsule()

class Raising(Producer):
    def __dlpack__(self, **_):
        raise RuntimeError("of the producer")

p, legacy, old = Producer(), Producer(legacy=True), Old()
liar, legacy_liar, raising = Producer(), Producer(legacy=True), Raising()
liar.managed.dl_tensor.ndim = legacy_liar.managed.dl_tensor.ndim = 65
array, text, chars = arrays.array("d", [1, 2, 3]), b"text", (ctypes.c_char * 4)()
interface, over_buffer = Interface(), Interface(data=bytearray(32))
lying_interface, too_small = Interface(shape=(-1,)), Interface(data=bytearray(31))
forged, forged_liar = Forged(), Forged()
forged_liar.view.ndim = 65
own, readonly = dlf.zeros((3, 4), halo=(1, 1)), dlf.as_storage(b"text")
nameless, used = p.raw_capsule(None), p.raw_capsule(b"used_dltensor")
from_buffer = ctypes.c_char.from_buffer

producers, exporters = (p, legacy, old, liar, legacy_liar), (forged, forged_liar)
objects = (*producers, *exporters, array, text, interface, over_buffer, own, readonly, nameless)

def forget_requests():
    for one in producers:
        one.calls.clear()
    for one in exporters:
        one.asked.clear()

def forget():
    forget_requests()
    for one in producers + exporters:
        one.freed = 0

def after(n):
    if n % 1000 == 0:
        forget_requests()

def freed():
    return [one.freed for one in producers + exporters]
"""


RELEASING = ("versioned capsule", "legacy capsule", "old signature", "forged buffer")
RELEASING_TOO = ("tensor", "legacy tensor", "forged buffer", "exception on its way")


@pytest.mark.parametrize("path", TAKEN)
def test_imports_and_exports_leave_nothing_behind(path):
    what, rounds = TAKEN[path]
    assert_flat(SETTING, what, rounds, released=path in RELEASING)


@pytest.mark.parametrize("path", REFUSED)
def test_refused_imports_and_exports_leave_nothing_behind(path):
    what, rounds = REFUSED[path]
    body = refused(what, "TypeError, ValueError, BufferError, RuntimeError")
    assert_flat(SETTING, body, rounds, released=path in RELEASING_TOO)
