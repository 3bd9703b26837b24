"""Every kind of request for a buffer, of every layout, is answered as by NumPy (PEP 3118)."""

import ctypes

import dlfield as dlf
import numpy as np
import pytest

from support.lying_producers import PyBuffer
from support.parameters import NUMPY_DTYPES
from support.processes import run_in_fork

# Names and numbers of Include/object.h: the flags, and the requests that are made of them.
REQUESTS = {
    "SIMPLE": 0,
    "WRITABLE": 0x001,
    "FORMAT": 0x004,
    "ND": 0x008,
    "STRIDES": 0x018,
    "C_CONTIGUOUS": 0x038,
    "F_CONTIGUOUS": 0x058,
    "ANY_CONTIGUOUS": 0x098,
    "INDIRECT": 0x118,
    "CONTIG": 0x009,
    "CONTIG_RO": 0x008,
    "STRIDED": 0x019,
    "STRIDED_RO": 0x018,
    "RECORDS": 0x01D,
    "RECORDS_RO": 0x01C,
    "FULL": 0x11D,
    "FULL_RO": 0x11C,
    "WRITABLE and FORMAT": 0x005,
}

LAYOUTS = {
    "C order": lambda dtype: np.zeros((2, 3), dtype),
    "Fortran order": lambda dtype: np.zeros((2, 3), dtype, order="F"),
    "one line": lambda dtype: np.zeros(4, dtype),
    "a number": lambda dtype: np.zeros((), dtype),
    "no elements": lambda dtype: np.zeros((0, 3), dtype),
    "an extent of 1": lambda dtype: np.zeros((3, 1, 2), dtype),
    "gaps": lambda dtype: np.zeros((2, 6), dtype)[:, ::2],
    "backwards": lambda dtype: np.zeros(4, dtype)[::-1],
    "permuted": lambda dtype: np.zeros((2, 3, 4), dtype).transpose(1, 0, 2),
    "broadcast": lambda dtype: np.broadcast_to(np.zeros(3, dtype), (2, 3)),
    "read-only": lambda dtype: read_only(np.zeros((2, 3), dtype)),
}


def read_only(array):
    array.flags.writeable = False
    return array


def answer(exporter, flags):
    """Give all that a consumer sees, or None for a refusal."""
    view = PyBuffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    try:
        get(ctypes.py_object(exporter), ctypes.byref(view), ctypes.c_int(flags))
    except (BufferError, ValueError):  # NumPy raises the second
        return None
    shape = view.shape[: view.ndim] if view.shape else None
    strides = view.strides[: view.ndim] if view.strides else None
    if strides is not None and (0 in shape or 1 in shape):
        strides = [stride for stride, extent in zip(strides, shape, strict=True) if extent > 1]
        strides = strides if 0 not in shape else "without elements, any"
    seen = (view.len, view.itemsize, bool(view.readonly), view.ndim, shape, strides)
    seen += (view.format, bool(view.suboffsets))
    address = view.buf if view.len else None
    release(ctypes.byref(view))
    return (address, *seen)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("flags", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("dtype", [np.dtype(dtype) for dtype in NUMPY_DTYPES], ids=str)
def test_each_request_is_answered_as_by_numpy(dtype, flags, layout):
    array = layout(dtype)
    assert answer(dlf.as_storage(array), flags) == answer(array, flags)


@pytest.mark.parametrize("name", ["SIMPLE", "WRITABLE", "FORMAT"])
def test_python_can_ask_whether_plain_bytes_lie_in_fortran_order(name):
    run_in_fork(f"""
        import ctypes
        import dlfield as dlf
        from support.lying_producers import PyBuffer

        field, view = dlf.zeros((2, 3)), PyBuffer()
        request = ctypes.c_int({REQUESTS[name]})
        api = ctypes.pythonapi
        api.PyObject_GetBuffer(ctypes.py_object(field), ctypes.byref(view), request)
        for order in b"CFA":
            assert api.PyBuffer_IsContiguous(ctypes.byref(view), ctypes.c_char(order))
        api.PyBuffer_Release(ctypes.byref(view))
    """)
