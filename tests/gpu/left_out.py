"""Leave out every wait for a GPU, one at a time, and see whether a test fails without it.

In the sources a wait, by an event or of the host, is a line of its own that ends in `// WAIT` and
a reason. For each of them the extension is built without that line, unoptimised and beside the one
in use, and the tests of tests/gpu run until the first one fails. What no test notices is printed,
and the exit status is 1. Run by `make cuda-waits`; arguments are parts of file names to restrict it
to.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / "target" / "cuda-waits"
CRATE, PYTHON, BUILD = WORK / "crate", WORK / "python", WORK / "build"
MARK = "// WAIT"
FEATURES = "python,cuda,arrow,ndarray"  # as in the wheel


def main(parts):
    """Build and test once as it is, then once without each wait."""
    prepare()
    waits = [wait for wait in find() if not parts or any(part in str(wait[0]) for part in parts)]
    if not waits:
        sys.exit("no such wait")
    failed = first_failure()
    if failed:
        sys.exit(f"a test fails with every wait in place: {failed}")
    unnoticed = [wait for wait in waits if not is_noticed(*wait)]
    print(f"{len(waits)} waits, {len(unnoticed)} that no test notices")
    sys.exit(1 if unnoticed else 0)


def prepare():
    """Copy what is built, so that the sources stay as they are."""
    shutil.rmtree(CRATE, ignore_errors=True)
    CRATE.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / name, CRATE)
    shutil.copytree(ROOT / "src", CRATE / "src")
    shutil.rmtree(PYTHON, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "dlfield", PYTHON / "dlfield", ignore=_no_extension)


def _no_extension(_folder, names):
    return [name for name in names if name.endswith((".so", ".pyd")) or name == "__pycache__"]


def find():
    """Return file and line number of every wait."""
    for path in sorted((CRATE / "src").rglob("*.rs")):
        for number, line in enumerate(path.read_text().splitlines()):
            if MARK in line:
                yield path, number


def without(line):
    """Return the line without its wait."""
    code, _, reason = line.partition(MARK)
    code = code.rstrip()
    indent = re.match(r"\s*", code).group()
    if code.endswith(";"):
        return f"{indent}// left out:{reason}"
    if "=>" in code:
        return code[: code.index("=>")] + "=> Ok(()),"
    return f"{indent}Ok(())" if "Ok(" in code else f"{indent}Ok::<(), crate::error::Error>(())"


def is_noticed(path, number):
    """Whether a test fails without this wait."""
    text = path.read_text()
    lines = text.splitlines()
    reason = lines[number].partition(MARK)[2].strip()
    lines[number] = without(lines[number])
    path.write_text("\n".join(lines) + "\n")
    try:
        failed = first_failure()
    finally:
        path.write_text(text)
    where = f"{path.relative_to(CRATE)}:{number + 1} ({reason})"
    outcome = f"noticed by {failed}" if failed else "NOTICED BY NO TEST"
    print(f"{where}: {outcome}", flush=True)
    return bool(failed)


def first_failure():
    """Build, run the tests, and give the name of the first that fails."""
    command = ["cargo", "build", "--quiet", "--lib", "--features", FEATURES]
    environment = {**os.environ, "RUSTFLAGS": "-Awarnings"}
    command += ["--manifest-path", str(CRATE / "Cargo.toml"), "--target-dir", str(BUILD)]
    subprocess.run(command, env=environment, check=True)
    shutil.copy(BUILD / "debug" / "libdlfield.so", PYTHON / "dlfield" / "_core.abi3.so")
    environment = {**os.environ, "DLFIELD_TEST_CUDA": "stand-in", "PYTHONPATH": str(PYTHON)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [str(ROOT / "tests" / "gpu")]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found.group(1) if found else f"exit status {done.returncode}"


if __name__ == "__main__":
    main(sys.argv[1:])
