"""Types of elements and of scalars: their names in Python, Fortran and C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["FIELDS", "MAX_RANK", "SCALARS", "Communicator", "Kind", "scalar_name"]

if TYPE_CHECKING:
    Communicator = Any
else:

    class Communicator:
        """Annotation of a communicator of MPI: an integer in Fortran, one of mpi4py in Python.

        Examples
        --------
        >>> import dlfield as dlf
        >>> @dlf.fortran.function
        ... def begin(comm: dlf.fortran.Communicator):
        ...     print(comm.Get_size())
        """


#: Fortran 2008 has 15; Fortran 2003, and some compilers, have 7.
MAX_RANK = 7


@dataclass(frozen=True)
class Kind:
    """A type.

    Attributes
    ----------
    name
        NumPy's or Python's name of the type, or "comm".
    fortran
        The type of a dummy argument.
    c
        The type of an element in C.
    code
        The number that stands for it in a description of an array.
    convert
        Name of the NumPy type that converts the value from C for Python; empty if none does.
    """

    name: str
    fortran: str
    c: str
    code: int = 0
    convert: str = ""


#: Elements of arrays.
FIELDS = {
    kind.name: kind
    for kind in (
        Kind("float32", "real(c_float)", "float", 1),
        Kind("float64", "real(c_double)", "double", 2),
        Kind("int32", "integer(c_int32_t)", "int32_t", 3),
        Kind("int64", "integer(c_int64_t)", "int64_t", 4),
        Kind("bool", "logical(c_bool)", "bool", 5),
        Kind("complex64", "complex(c_float_complex)", "float", 6),
        Kind("complex128", "complex(c_double_complex)", "double", 7),
    )
}

#: Scalars. A logical and a communicator have Fortran's default kind; an `int` is integer(c_int).
SCALARS = {
    kind.name: kind
    for kind in (
        Kind("float32", "real(c_float)", "float", convert="float32"),
        Kind("float64", "real(c_double)", "double", convert="float64"),
        Kind("int32", "integer(c_int32_t)", "int32_t", convert="int32"),
        Kind("int64", "integer(c_int64_t)", "int64_t", convert="int64"),
        Kind("complex64", "complex(c_float_complex)", "float", convert="complex64"),
        Kind("complex128", "complex(c_double_complex)", "double", convert="complex128"),
        Kind("bool", "logical", "bool"),
        Kind("int", "integer(c_int)", "int32_t"),
        Kind("float", "real(c_double)", "double"),
        Kind("complex", "complex(c_double_complex)", "double"),
        Kind("str", "character(*)", "char"),
        Kind("comm", "integer", "int32_t"),
    )
}

_COMMUNICATORS = ("Communicator", "Comm", "Intracomm", "Cartcomm")
_PYTHON = {bool: "bool", int: "int", float: "float", complex: "complex", str: "str"}


def scalar_name(annotation: Any) -> str | None:
    """Return the name of a scalar's type in `SCALARS`, or None for any other annotation."""
    if isinstance(annotation, type) and annotation in _PYTHON:
        return _PYTHON[annotation]
    if annotation is Communicator or getattr(annotation, "__module__", "") == "mpi4py.MPI":
        return "comm" if getattr(annotation, "__name__", "") in _COMMUNICATORS else None
    import numpy as np

    try:
        name = np.dtype(annotation).name
    except (TypeError, ValueError):
        return None
    return name if annotation is not None and name in SCALARS else None
