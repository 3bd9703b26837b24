"""Arrays between pages that nobody may touch: a process that does is killed."""

import ctypes
import math
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NOTHING = 0  # PROT_NONE, which mmap does not name


def guarded(values, order, *, at_end):
    """Copy values between two guard pages.

    Parameters
    ----------
    values
        Any array.
    order
        "C" or "F".
    at_end
        True if the last byte lies before the upper page, False if the first one lies behind the
        lower page.
    """
    size = values.dtype.itemsize * math.prod(values.shape)
    inner = max(PAGE, -(-size // PAGE) * PAGE)
    memory = mmap.mmap(-1, inner + 2 * PAGE)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (first, first + PAGE + inner):
        if _libc.mprotect(page, PAGE, _NOTHING):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = PAGE + (inner - size if at_end else 0)
    array = np.ndarray(values.shape, values.dtype, memory, offset, order=order)
    array[...] = values
    return array
