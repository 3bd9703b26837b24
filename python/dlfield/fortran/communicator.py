"""Converts a communicator of Fortran to one of mpi4py, which must use the same MPI library."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["communicator"]


def communicator(handle: int) -> Any:
    """Return mpi4py's communicator for a handle of Fortran; a Cartesian one is a Cartcomm.

    Raises RuntimeError if mpi4py uses another MPI library than the program.
    """
    from mpi4py import MPI

    _check_library(MPI.Get_library_version())
    return MPI.Comm.f2py(handle)


def _check_library(of_mpi4py: str) -> None:
    """Compare mpi4py's MPI library with the one that the program has loaded."""
    loaded = _loaded_version()
    used = of_mpi4py.strip("\0\n ")
    if loaded is not None and loaded != used:
        raise RuntimeError(
            f"communicator: expected mpi4py to use the MPI of the program, '{loaded}', got "
            f"'{used}'; build mpi4py with that MPI, or set MPI4PY_LIBMPI to its library file"
        )


def _loaded_version() -> str | None:
    program = ctypes.CDLL(None)
    if not hasattr(program, "MPI_Get_library_version"):
        return None
    text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
    program.MPI_Get_library_version(text, ctypes.byref(length))
    return text.value.decode("utf-8", "replace").strip("\0\n ")
