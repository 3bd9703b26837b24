"""Tests of everything that needs a GPU, on the stand-in for the driver or on a real one.

A process has one driver, so these run in a process of their own: `DLFIELD_TEST_CUDA=stand-in` or
`=real`, see the Makefile. Tests that need the stand-in (its counters, its late execution)
has the mark `stand_in`, what it cannot do has the mark `real`.
"""

import ctypes
import gc
import os
import sys

import pytest
from hypothesis import settings

WHICH = os.environ.get("DLFIELD_TEST_CUDA")
if WHICH not in ("stand-in", "real"):
    raise pytest.UsageError("tests/gpu: set DLFIELD_TEST_CUDA to stand-in or real (make test)")
os.environ.setdefault("DLFIELD_FAKE_CUDA_DEVICES", "2")  # read when the driver starts

from support.cuda import driver  # noqa: E402 -- loads the driver, before anybody else does
from support.forms import check_messages  # noqa: E402

check_messages()

settings.register_profile("dlfield", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("dlfield")


def pytest_collection_modifyitems(items):
    """Every test here needs a device; some need the other kind of driver, and are left out."""
    other = "real" if WHICH == "stand-in" else "stand_in"
    items[:] = [item for item in items if not item.get_closest_marker(other)]
    for item in items:
        item.add_marker(pytest.mark.gpu)


def finish():
    """Free what is no longer referenced; a pool frees when its stream reaches the release."""
    gc.collect()
    for number in range(driver.made("cuDeviceGetCount", kind=ctypes.c_int)):
        driver.call("cuCtxPushCurrent_v2", driver.made("cuDevicePrimaryCtxRetain", number))
        driver.call("cuCtxSynchronize")
        driver.made("cuCtxPopCurrent_v2")


@pytest.fixture
def cupy(monkeypatch):
    """CuPy on a real GPU, else its double, which dlfield then imports."""
    if WHICH == "real":
        from support.cuda.libraries import library

        return library("cupy")
    from support.cuda import cupy_double

    monkeypatch.setitem(sys.modules, "cupy", cupy_double)
    return cupy_double


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Every test gives back what it has allocated, and breaks nothing (on the stand-in)."""
    driver.start()
    finish()
    gc.freeze()  # collections then look at what the test makes, and not at every imported library
    if WHICH == "real":
        yield
        return
    before = driver.stats().live_bytes
    driver.reset()
    yield
    finish()
    after = driver.stats()
    assert after.violations == 0, "the stand-in has seen accesses that are not allowed"
    if not request.node.get_closest_marker("keeps_memory"):
        # Less may be there: what an earlier test that failed has held until now.
        assert after.live_bytes <= before, "device memory is left"
