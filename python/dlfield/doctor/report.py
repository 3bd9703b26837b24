"""The report: everything that the doctor has found, as plain values with stable names."""

from __future__ import annotations

from typing import Any

from dlfield.doctor.libraries import Known, chosen
from dlfield.doctor.supervision import supervised
from dlfield.doctor.surroundings import surroundings
from dlfield.doctor.traps import traps

__all__ = ["SCHEMA", "report"]

#: Raised when a key gets another meaning or goes away; new keys may come at any time.
SCHEMA = 1


def report(only: tuple[str, ...] = (), *, imports: bool = True) -> dict[str, Any]:
    """Find everything out.

    Parameters
    ----------
    only
        Names of libraries; all of them by default.
    imports
        Whether libraries are imported and tried, and the driver of CUDA is asked, in a process of
        their own; else only the installed versions are read.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    sought = chosen(only)
    done: dict[str, Any] = {"schema": SCHEMA, "tried": imports, **surroundings(), "cuda": None}
    installed = {known.name: known for known in sought if known.installed() is not None}
    if imports:
        found = supervised(["CUDA", *installed])
        done["cuda"] = _of_cuda(found.pop("CUDA"))
    else:
        found = {}
    done["libraries"] = {name: _of(known, found.get(name)) for name, known in installed.items()}
    done["missing"] = [known.name for known in sought if known.name not in installed]
    done["traps"] = traps(done)
    done["faults"] = _faults(done["libraries"])
    done["ok"] = not done["faults"]
    return done


def _of(known: Known, found: dict[str, Any] | None) -> dict[str, Any]:
    """Give every library the same keys, whatever became of it."""
    return {"version": known.installed(), "error": None, "doors": [], **(found or {})}


def _of_cuda(found: dict[str, Any]) -> dict[str, Any]:
    """Say why there is no CUDA if its driver has ended the process."""
    reason = found["error"] + "; update the NVIDIA driver" if "error" in found else None
    return found if reason is None else {"version": None, "devices": [], "reason": reason}


def _faults(libraries: dict[str, dict[str, Any]]) -> list[str]:
    """Say what was tried and does not work, or not as it is known to."""
    faults = []
    for name, found in libraries.items():
        if found["error"] is not None:
            faults.append(f"{name}: {found['error']}")
        for door in found["doors"]:
            if door["result"] == "failed":
                faults.append(f"{name}: {door['direction']}, {door['name']}: {door['error']}")
            elif door["result"] not in ("not tried", door["expected"]):
                faults.append(
                    f"{name}: {door['direction']}, {door['name']}: expected "
                    f"{door['expected']!r}, got {door['result']!r}"
                )
    return faults
