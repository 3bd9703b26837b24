"""The limits of a copy: `peers/limits.cpp`, called from Python.

Both functions copy as many bytes as the source has, one after the other as they lie in memory,
whatever the layout. ctypes gives up the interpreter meanwhile; a call costs it about a microsecond.
"""

import ctypes
from collections.abc import Callable
from functools import cache

from building import compiled
from timing import Missing


def limits(threads: int) -> dict[str, object]:
    """Return `memcpy(target, source)` and `stream(target, source)` with so many threads."""
    try:
        library = _library()
    except ModuleNotFoundError as missing:
        return dict.fromkeys(("memcpy", "stream"), Missing("a compiler", str(missing)))
    return {
        "memcpy": _copying(library.copy_plain, threads),
        "stream": _copying(library.copy_streaming, threads),
    }


def kind_of_stores() -> str:
    """Say how `stream` stores."""
    try:
        return _library().kind_of_stores().decode()
    except ModuleNotFoundError as missing:
        return str(missing)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(compiled("limits.cpp", flags=["-std=c++20"])))
    for function in (library.copy_plain, library.copy_streaming):
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        function.restype = None
    library.kind_of_stores.restype = ctypes.c_char_p
    return library


def _copying(function: Callable[..., None], threads: int) -> Callable[[object, object], None]:
    def copy(target: object, source: object) -> None:
        function(lowest(target), lowest(source), source.nbytes, threads)

    return copy


def lowest(array: object) -> int:
    """Where an array begins whose strides are all positive."""
    return array.__array_interface__["data"][0]
