"""Runs the suites of `suites.toml` one after another, and prints how they went.

``python -m support.peers [--sources FOLDER] [--bare] [NAME ...]``
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import nanobind

from support.peers.suites import SUITES, Suite

#: Pytest with the suite's own settings left out, which name plugins that are not here.
PYTEST = ("-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", "-W", "ignore")


def compiled(folder: Path, source: str, target: str) -> None:
    """Compile an extension module of nanobind's tests with the nanobind of the checkout."""
    robin_map = Path(nanobind.include_dir()).parent / "ext" / "robin_map" / "include"
    includes = [folder / "include", robin_map, sysconfig.get_path("include")]
    made = Path(target, f"{Path(source).stem}_ext.so")
    command = ["g++", "-std=c++17", "-shared", "-fPIC", *(f"-I{one}" for one in includes)]
    subprocess.run([*command, "src/nb_combined.cpp", source, "-o", made], cwd=folder, check=True)


def run(name: str, suite: Suite, folder: Path, *, bare: bool) -> dict:
    """Run one suite, and return its counts; bare without what is known to fail."""
    with tempfile.TemporaryDirectory() as scratch:
        counts = Path(scratch, "counts.json")
        files = [str(folder / one) for one in suite.files]
        command = [sys.executable, *PYTEST, "-p", "support.peers.plugin", "--peer", name]
        command += ["--counts", str(counts), "--rootdir", str(folder), *files]
        command += [*suite.options, *(["-k", suite.select] if suite.select else [])]
        command += ["--bare"] if bare else []
        environment = os.environ | suite.environment
        if suite.extension:
            compiled(folder, suite.extension, scratch)
            paths = [environment.get("PYTHONPATH", ""), scratch, str(folder / "tests")]
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        done = subprocess.run(command, env=environment, cwd=scratch, check=False)
        if counts.exists():
            return json.loads(counts.read_text())
        ended = [f"pytest ended with {done.returncode}"]
        return {"counts": {}, "unexplained": ended, "unmet": [], "storages": None}


def main() -> int:
    """Run what is asked for; 1 if a failure is not explained, or an explanation not met."""
    parser = argparse.ArgumentParser(prog="python -m support.peers")
    parser.add_argument("--sources", type=Path, help="folder of checkouts")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*SUITES, []])
    parser.add_argument("--bare", action="store_true", help="show the listed deviations, too")
    asked = parser.parse_args()
    rows, bad = [], []
    for name in asked.names or SUITES:
        suite = SUITES[name]
        folder = suite.folder(asked.sources)
        if folder is None:
            rows.append(f"| {suite.title} | not here ||||")
            continue
        found = run(name, suite, folder, bare=asked.bare)
        counts = (
            found["counts"].get(one, 0) for one in ("passed", "deviates", "skipped", "failed")
        )
        rows.append(f"| {suite.title} | {' | '.join(map(str, counts))} |")
        bad += [] if found["storages"] else [f"{name}: no test has got a storage"]
        bad += [f"{name}: {one}" for one in found["unexplained"]]
        bad += [f"{name}: no test fails as {one} says" for one in found["unmet"]]
    print("| suite | passed | deviates | skipped | unexplained |", *rows, *bad, sep="\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
