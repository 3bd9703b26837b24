"""Expectations of a machine without a CUDA driver."""

import ctypes
from contextlib import contextmanager

import dlfield as dlf
import pytest

#: The error of everything that needs a GPU, without a driver.
NO_DRIVER = (
    "CUDA: expected the driver's library (libcuda.so.1), got none on the loader's path; "
    "install the NVIDIA driver, or use host memory"
)


def _has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


#: For tests that need a machine without a driver: an installed one cannot be hidden.
without_driver = pytest.mark.skipif(_has_driver(), reason="a CUDA driver is installed")


@contextmanager
def no_driver(about=""):
    """Expect the error of a machine without a driver, after the text `about`."""
    with pytest.raises(dlf.DeviceUnavailable) as caught:
        yield caught
    assert str(caught.value) == about + NO_DRIVER
