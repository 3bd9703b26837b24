"""Processes of their own that hold storages of every kind, some with work in flight."""

from support.cuda.stand_in import run

START = """
import atexit, builtins, gc, os, pickle, sys, threading, time
start()
import dlfield as dlf
VALUES = np.arange(12.0).reshape(3, 4)

def in_sync():
    pair = dlf.storage(VALUES, device="gpu")
    pair.synchronize()
    return pair

class Shown:
    def __init__(self):
        self.address = made("cuMemAlloc_v2", 24)
        self.__cuda_array_interface__ = {
            "shape": (3,), "typestr": "<f8", "data": (self.address, False), "version": 3,
        }

held = {
    "alone": dlf.ones((3, 4), device="gpu", managed=None),
    "device newer": dlf.ones((3, 4), device="gpu"),
    "host newer": dlf.storage(VALUES, device="gpu"),
    "in sync": in_sync(),
    "managed": dlf.ones((3, 4), device="gpu", managed="cuda"),
    "second": dlf.ones((3, 4), device=("gpu", 1)),
    "view": dlf.ones((5, 4), device="gpu")[1:].T,
    "foreign": dlf.as_storage(Shown(), managed=None),
    "array": in_sync().to_numpy(),
    "buffer": memoryview(dlf.ones((3, 4), device="gpu", managed="cuda")),
    "capsule": dlf.ones((3, 4), device="gpu", managed=None).__dlpack__(),
}
"""


def quiet(code, devices="2"):
    """Run a snippet that ends well and prints nothing."""
    assert run(code, DLFIELD_FAKE_CUDA_DEVICES=devices) == ""
