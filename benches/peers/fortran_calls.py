"""Functions that `fortran_calls.f90` calls: a stencil of ten fields, in several ways."""

import ctypes
import time
from typing import Any

import dlfield as dlf
import numpy as np
from calls import ten as definition
from dlfield.annotations import Field, I
from gt4py.cartesian import gtscript

run = dlf.bind(gtscript.stencil(backend="gt:cpu_ifirst", definition=definition))
A = Field[np.float64]


def declared(body: Any, count: int = 10) -> Any:
    """Declare a function of arrays whose body gets them in a tuple."""
    names = [f"f{number}" for number in range(count)]
    scope: dict[str, Any] = {"body": body}
    exec(f"def {body.__name__}({', '.join(names)}): body(({', '.join(names)}))", scope)
    made = scope[body.__name__]
    made.__annotations__, made.__module__ = dict.fromkeys(names, A), __name__
    return dlf.fortran.function(made)


def stencil_in_function(fields: tuple[Any, ...]) -> None:
    """Call the stencil."""
    run(*fields)


def with_copies(fields: tuple[Any, ...]) -> None:
    """Copy the arrays, call the stencil, and copy the result back, as without shared memory."""
    copies = [np.array(field, order="F") for field in map(np.asarray, fields)]
    run(*copies)
    np.asarray(fields[-1])[...] = copies[-1]


def timed(call: Any, fields: tuple[Any, ...], calls: int) -> int:
    """Return the nanoseconds of a call."""
    call(*fields)
    start = time.perf_counter_ns()
    for _ in range(calls):
        call(*fields)
    return (time.perf_counter_ns() - start) // calls


def in_python(fields: tuple[Any, ...]) -> None:
    """Print what the same call takes from Python."""
    print("in_python", timed(run, fields, CALLS[fields[0].shape]))


HUNDRED = [f"f{number}" for number in range(100)]
scope: dict[str, Any] = {}
exec(f"def nothing({', '.join(HUNDRED)}): pass", scope)
scope["nothing"].__annotations__ = dict.fromkeys(HUNDRED, A)
run_many = dlf.bind(scope["nothing"], backend="numpy")
CALLS = {(8, 8, 8): 300, (256, 256, 80): 2}


def many_in_python(fields: tuple[Any, ...]) -> None:
    """Print what the same call takes from Python."""
    print("many_in_python", timed(run_many, fields, 300))


POINTER = ctypes.c_void_p
KEPT: list[Any] = []


@dlf.fortran.function
def by_hand_at(address: Field[np.int64, I]) -> None:
    """Return the address of a function that is written by hand with ctypes."""

    def by_hand(addresses: Any, extents: Any) -> None:
        shape = tuple(extents[:3])
        arrays = []
        for one in addresses[:10]:
            memory = (ctypes.c_double * (shape[0] * shape[1] * shape[2])).from_address(one)
            arrays.append(np.frombuffer(memory).reshape(shape, order="F"))
        run(*arrays)

    of = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64))
    KEPT.append(of(by_hand))
    np.asarray(address)[0] = ctypes.cast(KEPT[-1], POINTER).value


fortran_call = declared(stencil_in_function)
copying = declared(with_copies)
python_call = declared(in_python)
many_python = declared(many_in_python, 100)
