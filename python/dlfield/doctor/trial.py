"""Tries one library: imports it, and goes through its doors in both directions."""

from __future__ import annotations

import contextlib
import timeit
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dlfield._core import DeviceUnavailable, cuda_driver
from dlfield.doctor.further import FURTHER, Addressed
from dlfield.doctor.pairs import Pair
from dlfield.doctor.sides import CONSUMERS, PRODUCERS
from dlfield.doctor.words import STORAGE
from dlfield.halo.mpi import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dlfield.doctor.libraries import Known
    from dlfield.doctor.words import Foreign

__all__ = ["cuda", "tried"]

NOT_TRIED = "not tried"


def first_line(error: BaseException) -> str:
    """Give the class of an error and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def tried(known: Known) -> dict[str, Any]:
    """Import a library and try its doors: its part of the report."""
    found: dict[str, Any] = {"version": known.installed(), "error": None, "doors": []}
    if known.name == "mpi4py":
        with contextlib.suppress(ImportError):  # this process ends soon, and needs no MPI
            import_module("mpi4py").rc.initialize = False
    try:
        module = import_module(known.module)
    except BaseException as error:  # a library may raise anything, and one calls sys.exit
        return {**found, "error": first_line(error)}
    found["version"] = _version(module, known)
    if known.name in _SETTLED:
        _SETTLED[known.name](found)
    found["doors"] = [_door(pair, known) for pair in _pairs(known)]
    return found


def cuda() -> dict[str, Any]:
    """Ask the driver of CUDA for its version and devices."""
    try:
        version, devices = cuda_driver()
    except DeviceUnavailable as error:
        return {"version": None, "devices": [], "reason": str(error)}
    shown = [
        {"name": name, "bytes": size, "compute_capability": f"{major}.{minor}"}
        for name, size, (major, minor) in devices
    ]
    return {"version": "{}.{}".format(*version), "devices": shown, "reason": None}


def _version(module: Foreign, known: Known) -> str | None:
    version = getattr(module, "__version__", None)
    return str(version) if version is not None else known.installed()


def _x64_of_jax(found: dict[str, Any]) -> None:
    """Note if JAX has 64-bit types, and let it have them: fields of float64 are tried."""
    config = import_module("jax").config
    found["x64"] = bool(config.jax_enable_x64)
    config.update("jax_enable_x64", val=True)


def _library_of_mpi(found: dict[str, Any]) -> None:
    """Note which MPI mpi4py has, or why it has none."""
    found.update(library=None, reason=None, loaded=[])
    try:
        text = import_module("mpi4py.MPI").Get_library_version()
    except BaseException as error:  # not an ImportError alone: "cannot load MPI library"
        found["reason"] = first_line(error)
    else:
        first = text.replace("\0", "").splitlines()[0]
        found.update(library=first.partition(", package")[0].strip(), loaded=loaded())


def _flags_of_gt4py(found: dict[str, Any]) -> None:
    """Note if GT4Py finds the compiler flags that it reads from setuptools before it compiles."""
    with contextlib.suppress(Exception):  # another GT4Py may read them elsewhere
        finds = import_module("dlfield.stencils.cartesian.internals").finds_compiler_flags()
        if finds is not None:
            found["compiler_flags"] = finds


_SETTLED: dict[str, Callable[[dict[str, Any]], None]] = {
    "JAX": _x64_of_jax,
    "mpi4py": _library_of_mpi,
    "gt4py": _flags_of_gt4py,
}


def _pairs(known: Known) -> Iterator[Pair]:
    """Give its arrays into dlfield, then storages into it."""
    storage = next(side for side in PRODUCERS if side.library is STORAGE)
    taken = next(side for side in CONSUMERS if side.library is STORAGE)
    sides = known.sides
    yield from (Pair(side, taken) for side in PRODUCERS if side.library.name in sides)
    yield from (Pair(storage, side) for side in CONSUMERS if side.library.name in sides)
    for pair in FURTHER:
        if {pair.producer.library.name, pair.consumer.library.name} & set(sides):
            yield pair


def _door(pair: Pair, known: Known) -> dict[str, Any]:
    """Try a pair, and time the exchange."""
    into = pair.producer.library.name in known.sides
    name = pair.producer.library.name if into else pair.consumer.entry
    done: dict[str, Any] = {"direction": "in" if into else "out", "name": name}
    done |= {"result": NOT_TRIED, "expected": str(pair.expected), "ns": None, "error": None}
    try:
        if isinstance(pair, Addressed) and pair.gpu and cuda()["reason"]:
            return {**done, "error": "no GPU"}
        for module in pair.modules:
            import_module(module)
    except BaseException as error:  # of one beside the library, which was imported
        return {**done, "error": first_line(error)}
    try:
        done["result"] = str(pair.measured())
        done["ns"] = round(_nanoseconds(pair, into=into))
    except BaseException as error:  # a panic of a library in Rust is no Exception
        done.update(result="failed", error=first_line(error))
    return done


def _nanoseconds(pair: Pair, *, into: bool) -> float:
    """Time one exchange, the array and the storage being there: the best of five rounds."""
    array = pair.producer.own()
    exchange: Callable[[Any], Any] = pair.producer.storage
    if not into:
        array, exchange = pair.producer.storage(array), pair.consumer.take
    timer = timeit.Timer("exchange(array)", globals={"exchange": exchange, "array": array})
    loops = max(1, min(1000, int(1e-3 / max(timer.timeit(1), 1e-9))))
    return min(timer.repeat(5, loops)) / loops * 1e9
