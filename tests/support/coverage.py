"""Which lines of the crate tests have reached: `python -m support.coverage lines.info`.

It reads what llvm-cov writes as lcov, leaves out the tests that stand in the files themselves, and
prints a line for each folder of `src`, then the lines that were not reached. `make coverage` runs
it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCES = Path(__file__).parents[2] / "src"


def counts(report: str) -> dict[Path, dict[int, int]]:
    """Return how often each line of each file of the crate was run, without tests."""
    found: dict[Path, dict[int, int]] = {}
    for record in report.split("end_of_record"):
        lines = record.split()
        path = next((Path(line[3:]) for line in lines if line.startswith("SF:")), None)
        if path is None or not path.is_relative_to(SOURCES) or _is_of_tests(path):
            continue
        end = _first_of_tests(path)
        pairs = (line[3:].split(",") for line in lines if line.startswith("DA:"))
        found[path.relative_to(SOURCES)] = {
            int(number): int(count) for number, count in pairs if int(number) < end
        }
    return found


def _is_of_tests(path: Path) -> bool:
    module = path.parent / "mod.rs"
    return module.exists() and f"#[cfg(test)]\nmod {path.stem};" in module.read_text("utf-8")


def _first_of_tests(path: Path) -> int:
    lines = path.read_text("utf-8").splitlines()
    return next((at for at, line in enumerate(lines, 1) if line == "#[cfg(test)]"), len(lines) + 1)


def table(found: dict[Path, dict[int, int]]) -> Iterator[str]:
    """Describe each folder: lines that were run, lines that can be run, and per cent."""
    folders: dict[str, list[int]] = defaultdict(list)
    for path, lines in found.items():
        folders[path.parts[0]].extend(lines.values())
    for folder, runs in sorted(folders.items()):
        reached = sum(map(bool, runs))
        yield f"{folder:24} {reached:6} of {len(runs):6}  {reached / max(1, len(runs)):7.1%}"


def missed(found: dict[Path, dict[int, int]]) -> Iterator[str]:
    """Name the lines that no test reaches, one file a line."""
    for path, lines in sorted(found.items()):
        if numbers := [number for number, count in sorted(lines.items()) if not count]:
            yield f"src/{path}: {', '.join(_ranges(numbers))}"


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    first = last = None
    for number in numbers:
        if last is not None and number != last + 1:
            yield f"{first}" if first == last else f"{first}-{last}"
            first = None
        first, last = number if first is None else first, number
    if last is not None:
        yield f"{first}" if first == last else f"{first}-{last}"


if __name__ == "__main__":
    of_lines = counts(Path(sys.argv[1]).read_text("utf-8"))
    print(*table(of_lines), "", *missed(of_lines), sep="\n")
