"""The report: everything that the doctor has found, as plain values with stable names."""

from __future__ import annotations

from typing import Any

from dlfield.doctor.libraries import Known, chosen
from dlfield.doctor.supervision import supervised
from dlfield.doctor.surroundings import surroundings
from dlfield.doctor.traps import traps

__all__ = ["SCHEMA", "report"]

#: Raised when a key gets another meaning or goes away; new keys may come at any time.
SCHEMA = 2


def report(only: tuple[str, ...] = (), *, imports: bool = True) -> dict[str, Any]:
    """Return the report. Without imports, only the versions that are installed are read."""
    sought = chosen(only)
    done: dict[str, Any] = {"schema": SCHEMA, "tried": imports, **surroundings(), "cuda": None}
    installed = {known.name: known for known in sought if known.installed() is not None}
    found = supervised(["CUDA", *installed]) if imports else {}
    if imports:
        done["cuda"] = _of_cuda(found["CUDA"])
    done["libraries"] = {name: _entry(known, found.get(name)) for name, known in installed.items()}
    done["missing"] = [known.name for known in sought if known.name not in installed]
    done["traps"] = traps(done)
    done["faults"] = _faults(done["libraries"])
    done["ok"] = not done["faults"]
    return done


def _entry(known: Known, found: dict[str, Any] | None) -> dict[str, Any]:
    """Return the entry of one library; its keys are always the same."""
    return {"version": known.installed(), "error": None, "probe": None, **(found or {})}


def _of_cuda(found: dict[str, Any]) -> dict[str, Any]:
    """Return what the driver told, or why there is no CUDA if it ended the process."""
    if "error" not in found:
        return found
    return {"version": None, "devices": [], "reason": f"{found['error']}; update the NVIDIA driver"}


def _faults(libraries: dict[str, dict[str, Any]]) -> list[str]:
    """Return a text for each library that does not work, or copies."""
    faults = []
    for name, found in libraries.items():
        if found["error"] is not None:
            faults.append(f"{name}: {found['error']}")
        probe = found["probe"] or {"result": None}
        if probe["result"] in ("failed", "copies"):
            error = probe["error"] or "expected shared memory, got a copy"
            faults.append(f"{name}: {probe['name']}: {error}")
    return faults
