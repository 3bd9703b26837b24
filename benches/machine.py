"""What the figures of a run depend on: the machine, the system, the versions, and the command."""

import os
import platform
import re
import subprocess
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from limits import kind_of_stores
from threads import cpus

LIBRARIES = (
    "dlfield",
    "numpy",
    "torch",
    "jax",
    "xarray",
    "gt4py",
    "numba",
    "apache-tvm-ffi",
    "nanobind",
    "cuda-core",
)
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def describe(command: Sequence[str]) -> dict[str, str]:
    """Return what is worth knowing, with neither names of machines nor paths."""
    return {
        "CPU": f"{cpu_model()} ({platform.machine()}), {cpus()} CPUs, {caches()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "transparent huge pages": huge_pages(),
        "limit of copies": kind_of_stores(),
        "system": system(),
        "Python": platform.python_version(),
        "libraries": versions(),
        "command": " ".join(command),
    }


class OthersAtWork:
    """How much other processes compute from now on: they share the memory that is measured."""

    def __init__(self) -> None:
        self._start = self._now()

    def __str__(self) -> str:
        wall, busy, own = (now - then for now, then in zip(self._now(), self._start, strict=True))
        return f"{max(0.0, busy - own) / wall:.1f} of {os.cpu_count()} CPUs"

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Return the seconds on the clock, those of all CPUs together, and our own."""
        total = Path("/proc/stat").read_text("utf-8").partition("\n")[0]
        user, nice, system, _, _, irq, softirq = map(int, total.split()[1:8])
        busy = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), busy, sum(os.times()[:4])


def cpu_model() -> str:
    """Name the CPU; where the kernel does not, lscpu may know."""
    text = Path("/proc/cpuinfo").read_text("utf-8")
    if found := re.search(r"^model name\s*: (.*)", text, re.M):
        return found[1]
    try:
        text = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return "CPU of unknown model"
    found = re.search(r"^Model name:\s*(.*)", text, re.M)
    return found[1] if found else "CPU of unknown model"


def caches() -> str:
    """Name the caches of data of the first CPU."""
    found = []
    for cache in sorted(CACHES.glob("index*")):
        level, kind, size = (
            (cache / name).read_text("utf-8").strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "caches unknown"


def huge_pages() -> str:
    """Return the setting of the kernel, which stands in brackets among all there are."""
    try:
        return re.search(r"\[(\w+)\]", HUGE_PAGES.read_text("utf-8"))[1]
    except OSError:
        return "none"


def system() -> str:
    """Name the distribution and the kernel, whose version is all that counts of its name."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, kernel {'.'.join(platform.release().split('.')[:2])}"


def versions() -> str:
    """Name the libraries that take part, with their versions."""
    found = []
    for library in LIBRARIES:
        try:
            found.append(f"{library} {metadata.version(library)}")
        except metadata.PackageNotFoundError:
            found.append(f"{library} missing")
    return ", ".join(found)
