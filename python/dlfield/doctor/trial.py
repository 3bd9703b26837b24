"""The process in which libraries are tried: `python -m dlfield.doctor.trial NAME...`.

It imports each library and runs its probe. It writes one line of JSON when it begins with a
library, and one when it is through with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dlfield._core import DeviceUnavailable, cuda_driver, zeros
from dlfield.doctor.libraries import chosen
from dlfield.doctor.probes import PROBES
from dlfield.halo.mpi import loaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield.doctor.libraries import Known
    from dlfield.doctor.probes import Probe

__all__ = ["main"]

#: 144 bytes: some blocks of that size lie where JAX shares them.
SIZE = 18


def main(names: list[str]) -> None:
    """Try libraries by name; "CUDA" stands for its driver."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as lines:
        os.dup2(2, 1)  # what libraries print is no part of the answer

        def tell(name: str, found: object) -> None:
            lines.write(json.dumps([name, found]) + "\n")
            lines.flush()

        for name in names:
            tell(name, None)
            tell(name, _cuda() if name == "CUDA" else _tried(chosen((name,))[0]))


def _cuda() -> dict[str, Any]:
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


def _tried(known: Known) -> dict[str, Any]:
    """Import a library and run its probe: its part of the report."""
    found: dict[str, Any] = {"version": known.installed(), "error": None, "probe": None}
    if known.name == "mpi4py":
        with contextlib.suppress(ImportError):  # this process ends soon, and needs no MPI
            import_module("mpi4py").rc.initialize = False
    try:
        module = import_module(known.module)
    except BaseException as error:  # a library may raise anything, and one calls sys.exit
        return {**found, "error": _first_line(error)}
    found["version"] = str(getattr(module, "__version__", None) or known.installed())
    if known.name in _NOTED:
        _NOTED[known.name](found)
    if known.name in PROBES:
        found["probe"] = _probed(PROBES[known.name])
    return found


def _probed(probe: Probe) -> dict[str, Any]:
    done = {"name": probe.entry, "result": "not tried", "error": None}
    if probe.gpu and _cuda()["reason"]:
        return {**done, "error": "no GPU"}
    try:
        for module in probe.needs:
            import_module(module)
    except BaseException as error:  # of a module that the probe needs beside the library
        return {**done, "error": _first_line(error)}
    try:
        storage = zeros(SIZE, device="gpu", managed=None) if probe.gpu else zeros(SIZE)
        done["result"] = "shared" if probe.shares(storage) else "copies"
    except BaseException as error:  # a panic of a library in Rust is no Exception
        done.update(result="failed", error=_first_line(error))
    return done


def _first_line(error: BaseException) -> str:
    """Return the class of an error and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _x64_of_jax(found: dict[str, Any]) -> None:
    """Note if JAX has 64-bit types, and let it have them: the probe is a field of float64."""
    config = import_module("jax").config
    found["x64"] = bool(config.jax_enable_x64)
    config.update("jax_enable_x64", val=True)


def _library_of_mpi(found: dict[str, Any]) -> None:
    """Note which MPI mpi4py has, or why it has none."""
    found.update(library=None, reason=None, loaded=[])
    try:
        text = import_module("mpi4py.MPI").Get_library_version()
    except BaseException as error:  # not an ImportError alone: "cannot load MPI library"
        found["reason"] = _first_line(error)
    else:
        first = text.replace("\0", "").splitlines()[0]
        found.update(library=first.partition(", package")[0].strip(), loaded=loaded())


def _flags_of_gt4py(found: dict[str, Any]) -> None:
    """Note if GT4Py finds the compiler flags that it reads from setuptools before it compiles."""
    with contextlib.suppress(Exception):  # another GT4Py may read them elsewhere
        finds = import_module("dlfield.stencils.cartesian.internals").finds_compiler_flags()
        if finds is not None:
            found["compiler_flags"] = finds


_NOTED: dict[str, Callable[[dict[str, Any]], None]] = {
    "JAX": _x64_of_jax,
    "mpi4py": _library_of_mpi,
    "gt4py": _flags_of_gt4py,
}

if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # skips what libraries do at the end, such as joining threads
