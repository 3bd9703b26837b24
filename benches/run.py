"""What dlfield takes beside its peers and the limits of the machine: `make bench`.

Prints a table per area and writes each as CSV, and all of them as one page of Markdown, into
`benches/results/`. Times are medians of rounds in which all candidates take turns, ratios medians
of the ratios of each round. A library that is missing is named where it would be a peer.

    make bench                                          everything
    make bench BENCH="copies allocation"                some areas
    make bench BENCH="--quick"                          whether it runs: the figures mean little
    make bench BENCH="copies --plot target/copies.png"    also a plot of the copies
    make bench BENCH="instructions --only as_storage"   some cases, counted in instructions
"""

import argparse
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Libraries read these as they load. A stencil's fields are tiny: a second thread would only be
# waited for. Nor may threads that are done keep a CPU busy while the next candidate runs.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
# JAX then looks for no GPU, which takes its time.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from machine import OthersAtWork, describe
from tables import Row, markdown, print_table, write_csv
from timing import EFFORT

RESULTS = Path(__file__).parent / "results"
AREAS = (
    "exchange",
    "arithmetic",
    "sizes",
    "calls",
    "next_calls",
    "operators",
    "derivatives",
    "allocation",
    "copies",
    "batch",
    "halo",
    "memory",
    "starts",
    "fortran",
    "startup",
    "instructions",
)
"""Modules of this folder, each with a function `tables`."""


def main() -> None:
    """Measure the areas that are asked for, and write down what was found."""
    options = _options()
    if options.quick:
        EFFORT.hurry()
    EFFORT.only = options.only
    facts = describe(_command(options))
    print("\n".join(f"{name}: {fact}" for name, fact in facts.items()))
    kept: dict[str, list[Row]] = {}
    page = [text for area in options.areas or AREAS for text in measure(area, kept)]
    keep(options.out, [heading(facts), *page], kept)
    if options.plot:
        draw(kept.get("copies", []), options.plot)


def measure(area: str, kept: dict[str, list[Row]]) -> Iterator[str]:
    """Measure one area, print its tables, keep its rows, and give its part of the page."""
    others = OthersAtWork()
    try:
        measured = importlib.import_module(area).tables()
    except ModuleNotFoundError as missing:  # what the whole area cannot do without
        print(f"\n{area}: not measured, {missing}")
        yield f"## {area}\n\nNot measured: {missing}.\n"
        return
    for table, rows in measured:
        print_table(table)
        kept.setdefault(area, []).extend(rows)
        yield markdown(table)
    meanwhile = f"Meanwhile other processes used {others}."
    print(f"\n{meanwhile}")
    yield f"{meanwhile}\n"


def heading(facts: dict[str, str]) -> str:
    """Begin the page with what its figures depend on."""
    lines = [f"- {name}: {fact}" for name, fact in facts.items()]
    return "\n".join(["# Measurements", "", *lines, ""])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("areas", nargs="*", metavar="area", help=f"some of: {', '.join(AREAS)}")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--only", default="", help="instructions of cases that contain this text")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for what is written")
    parser.add_argument("--plot", type=Path, help="draw the copies into this PNG")
    options = parser.parse_args()
    if unknown := set(options.areas) - set(AREAS):
        parser.error(f"unknown area: {', '.join(sorted(unknown))}; one of {', '.join(AREAS)}")
    return options


def _command(options: argparse.Namespace) -> list[str]:
    """Spell the command by what changes the figures."""
    words = [*options.areas, *(["--quick"] if options.quick else [])]
    words += ["--only", options.only] if options.only else []
    return ["make bench", *([f'BENCH="{" ".join(words)}"'] if words else [])]


def keep(folder: Path, page: list[str], kept: dict[str, list[Row]]) -> None:
    """Write a CSV file per area, and one page with all tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for area, rows in kept.items():
        write_csv(folder / f"{area}.csv", rows)
    (folder / "tables.md").write_text("\n".join(page), "utf-8")
    files = [f"{area}.csv" for area in kept] + ["tables.md"]
    print(f"\nwritten to {os.path.relpath(folder)}: {', '.join(files)}")


def draw(rows: list[Row], path: Path) -> None:
    """Plot the copies, if there is something to plot, and something to plot it with."""
    try:
        from plot import plot
    except ModuleNotFoundError as missing:
        print(f"no plot: {missing.name} is missing; it is in the dependency group `bench`")
        return
    if not rows:
        sys.exit("no plot: the area `copies` was not measured")
    plot(rows, path)
    print(f"plotted to {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
