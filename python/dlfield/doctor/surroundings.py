"""What the doctor reads without an import: the build, Python, the machine, variables, programs."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from dlfield import _core

__all__ = ["surroundings"]

#: Variables that change what dlfield and the libraries around it do.
VARIABLES = (
    "DLFIELD_NUM_THREADS",
    "DLFIELD_HUGE_PAGES",
    "DLFIELD_COPIES",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "JAX_ENABLE_X64",
    "JAX_PLATFORMS",
    "CXX",
    "GT_CACHE_ROOT",
    "GT4PY_BUILD_CACHE_DIR",
    "GT4PY_BUILD_CACHE_LIFETIME",
    "GT4PY_EXTRA_COMPILE_OPT_FLAGS",
)

#: How many ranks of MPI a launcher has started on this machine: Open MPI, MPICH and Intel, Slurm.
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")

TRANSPARENT_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def surroundings() -> dict[str, Any]:
    """Return the parts of the report that need no library."""
    return {
        "dlfield": _build(),
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        },
        "system": {
            "platform": platform.system(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip() or None,
            "cpus": os.cpu_count(),
            "usable_cpus": _usable_cpus(),
            "huge_pages": _huge_pages_of_the_system(),
            "local_ranks": _local_ranks(),
        },
        "settings": {
            "registers": _core.copy_registers(),
            "threads": _core.get_num_threads(),
            "huge_pages": _core.get_huge_pages(),
            "pool_limit": _core.get_pool_limit(),
            "pool_bytes": _core.pool_bytes(),
        },
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "programs": {
            "compiler": shutil.which(_compiler()),
            "cmake": shutil.which("cmake"),
            "ninja": shutil.which("ninja"),
            "mpiexec": shutil.which("mpiexec"),
            "mpiexec_version": _version_of_mpiexec(),
        },
    }


def _build() -> dict[str, Any]:
    suffix = Path(_core.__file__ or "").name.partition(".")[2]  # abi3.so, cpython-313t-...so
    return {
        "version": _core.__version__,
        "features": list(_core.build_features()),
        "python_abi": suffix.partition(".")[0],
    }


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _huge_pages_of_the_system() -> str | None:
    """Return the choice of the system: always, madvise or never; None if it has none."""
    try:
        text = TRANSPARENT_HUGE_PAGES.read_text("utf-8")
    except OSError:
        return None
    return text.partition("[")[2].partition("]")[0] or None


def _local_ranks() -> int:
    texts = (os.environ.get(name, "") for name in LOCAL_RANKS)
    return next((int(text) for text in texts if text.isdecimal()), 1)


def _compiler() -> str:
    """Name the program that compiles stencils."""
    words: list[str] = []
    with suppress(ValueError):  # a quote that is not closed
        words = shlex.split(os.environ.get("CXX", ""))
    return words[0] if words else "g++"


def _version_of_mpiexec() -> str | None:
    """Return what the launcher on PATH calls itself; None if there is none, or it does not say."""
    program = shutil.which("mpiexec")
    if program is None:
        return None
    try:
        quiet: Any = {"stdin": subprocess.DEVNULL, "errors": "replace", "timeout": 20}
        done = subprocess.run([program, "--version"], capture_output=True, check=False, **quiet)
    except (OSError, subprocess.TimeoutExpired):
        return None
    first, _, rest = done.stdout.strip().partition("\n")
    if first.endswith(":"):  # MPICH: "HYDRA build details:", and the version in the next line
        first = f"{first} {' '.join(rest.partition(chr(10))[0].split())}"
    return first or None
