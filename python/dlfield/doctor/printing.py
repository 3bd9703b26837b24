"""The report as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["text_of"]


def text_of(report: dict[str, Any], *, as_json: bool = False) -> str:
    """Write a report for people, or as JSON."""
    parts = (_head, _cuda, _programs, _libraries, _traps, _verdict)
    lines = (line for part in parts for line in part(report))
    return (json.dumps(report, indent=2) if as_json else "\n".join(lines)) + "\n"


def _line(word: str, text: object) -> str:
    return f"{word:<12}{text}"


def _head(report: dict[str, Any]) -> Iterator[str]:
    own, python, system = report["dlfield"], report["python"], report["system"]
    settings = report["settings"]
    yield _line("dlfield", own["version"])
    yield _line("build", f"{', '.join(own['features'])}; {own['python_abi']}")
    gil = "" if python["gil"] else ", without GIL"
    yield _line("Python", f"{python['version']} ({python['implementation']}{gil})")
    libc = system["libc"] or "unknown libc"
    yield _line("system", f"{system['platform']}, {system['machine']}, {libc}")
    yield _line("CPUs", f"{system['usable_cpus']} of {system['cpus']} usable")
    threads = _many(settings["threads"], "thread")
    yield _line("copies", f"{settings['registers']} registers, {threads}")
    asked = "asked for" if settings["huge_pages"] else "not asked for"
    yield _line("huge pages", f"{asked}; system: {system['huge_pages'] or 'unknown'}")
    yield _line("pool", f"{settings['pool_bytes']} bytes kept, at most {settings['pool_limit']}")
    if system["local_ranks"] > 1:
        yield _line("MPI ranks", f"{system['local_ranks']} on this machine")


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _cuda(report: dict[str, Any]) -> Iterator[str]:
    cuda = report["cuda"]
    if cuda is None:
        yield _line("CUDA", "not asked")
    elif cuda["version"] is None:
        yield _line("CUDA", f"none: {cuda['reason'].removeprefix('CUDA: ')}")
    else:
        devices = _many(len(cuda["devices"]), "device")
        yield _line("CUDA", f"driver for CUDA {cuda['version']}, {devices}")
        for number, device in enumerate(cuda["devices"]):
            size = f"{device['bytes'] / 2**30:.1f} GiB"
            shown = f"{device['name']}, {size}, compute capability {device['compute_capability']}"
            yield _line(f"  GPU {number}", shown)


def _programs(report: dict[str, Any]) -> Iterator[str]:
    for name in ("compiler", "cmake", "ninja", "mpiexec"):
        path = report["programs"][name]
        version = report["programs"]["mpiexec_version"] if name == "mpiexec" else None
        yield _line(name, (path or "none on PATH") + (f" ({version})" if version else ""))
    yield from (f"{name}={value}" for name, value in report["variables"].items())


def _libraries(report: dict[str, Any]) -> Iterator[str]:
    for name, found in report["libraries"].items():
        yield ""
        more = f", {found['library']}" if found.get("library") else ""
        yield f"{name} {found['version']}{more}"
        if found["error"] is not None:
            yield f"  does not work: {found['error']}"
        if (probe := found["probe"]) is not None:
            error = "" if probe["error"] is None else f": {probe['error']}"
            yield f"  {probe['name']:<30}  {probe['result']}{error}"
    if report["missing"]:
        yield from ("", f"not installed: {', '.join(report['missing'])}")


def _traps(report: dict[str, Any]) -> Iterator[str]:
    for trap in report["traps"]:
        yield from ("", f"trap {trap['name']}: {trap['what']}", f"  way out: {trap['way_out']}")


def _verdict(report: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield from (f"fault: {fault}" for fault in report["faults"])
    if report["ok"]:
        yield "All that was tried works." if report["tried"] else "Nothing was tried."
