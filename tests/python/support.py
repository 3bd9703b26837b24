"""Helpers of the tests: optional libraries, processes of their own, and who was freed when."""

import ctypes
import gc
import importlib
import subprocess
import sys
import textwrap
import weakref
from contextlib import contextmanager
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

#: Types that NumPy itself has. The others come from ml_dtypes.
NUMPY_DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
ML_DTYPES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


#: What everything that needs a GPU says where there is no driver.
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


#: For what holds where there is no driver. One that is installed cannot be hidden from a process.
without_driver = pytest.mark.skipif(_has_driver(), reason="a CUDA driver is installed")


@contextmanager
def no_driver(about=""):
    """Expect the refusal of a machine without a driver, with what it is about before it."""
    with pytest.raises(dlf.DeviceUnavailable) as caught:
        yield caught
    assert str(caught.value) == about + NO_DRIVER


def readable(value):
    """Name a parameter in a test's name."""
    return value.__name__ if isinstance(value, type) else str(value)


def import_or_skip(name):
    """Give a library that is optional, or skip the test where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        pytest.skip(f"{name} is not installed")


#: What a storage knows of itself, but for its values, its place in memory and its origin.
KNOWN = ("shape", "dtype", "dims", "halo", "layout", "alignment_size", "aligned_index")

#: Views of a field of two dimensions and 6 by 7 points with a halo, as hard to copy as they come.
VIEWS = {
    "part": lambda field: field[1:, 2:5],
    "reversed": lambda field: field[::-1],
    "thinned out": lambda field: field[::2, ::-3],
    "transposed": lambda field: field.T,
    "row": lambda field: field[3],
    "nothing": lambda field: field[:0],
    "domain": lambda field: field.domain_view,
}
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def run_in_subprocess(code):
    """Run a snippet that may end the process, beside these helpers, and give what it printed."""
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", textwrap.dedent(code)]
    folder = Path(__file__).parent
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=120, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"exit status {done.returncode}\n{code}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


class Watch:
    """Says whether an object is gone."""

    def __init__(self, watched):
        self._watched = weakref.ref(watched)

    @property
    def freed(self):
        gc.collect()
        return self._watched() is None


class Tracked(np.ndarray):
    """An array that can be watched, which plain arrays cannot be once they are views."""


def tracked(array):
    """Give a view of an array, and its watch. The view is the last owner that Python can see."""
    view = np.array(array).view(Tracked)
    return view, Watch(view)


def address(exporter):
    """Address of the first element, as the array interface says it."""
    return exporter.__array_interface__["data"][0]


def address_of_buffer(exporter):
    """Address of the first byte of a contiguous and writable buffer, found without dlfield."""
    return ctypes.addressof(ctypes.c_char.from_buffer(exporter))


def address_of_bytes(text):
    """Address of the bytes of an immutable buffer, found without dlfield."""
    return np.frombuffer(text, np.uint8).ctypes.data
