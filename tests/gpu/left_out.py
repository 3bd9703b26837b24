"""Leave out every wait for a GPU, one at a time, and see whether a test fails without it.

In the sources a wait, by an event or of the host, is a line of its own that ends in `// WAIT` and
a reason. The environment says which wait is left out of a copy of the crate, which is built once,
unoptimised and beside the one in use. Then, for each of them, tests/device.rs and the tests of
tests/gpu run until the first one fails. What no test notices is printed, and the exit status is 1.
Run by `make cuda-waits`; arguments are parts of file names to restrict it to.

The file whose test noticed a wait is remembered in target/cuda-waits, and runs first the next time.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / "target" / "cuda-waits"
CRATE, PYTHON, BUILD = WORK / "crate", WORK / "python", WORK / "build"
NOTICED_BY = WORK / "noticed-by.json"
MARK = "// WAIT"
FEATURES = "cuda,arrow,ndarray"  # as in the wheel, together with "python"
VARIABLE = "DLFIELD_LEFT_OUT"
STAND_IN = ROOT / "tests" / "fake_cuda" / "target" / "release" / "libfake_cuda.so"
KERNEL = Path("examples", "rust_kernel")  # an extension module with a dlfield of its own

#: Added to the copy of the crate.
SWITCH = f"""
/// True for the number of the wait that is left out.
pub(crate) fn is_left_out(number: usize) -> bool {{
    static NUMBER: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("{VARIABLE}").ok()?.parse().ok()) == Some(number)
}}
"""

TESTS = ROOT / "tests" / "gpu"
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
#: A test that failed, by pytest or cargo; the names of pytest's may have spaces.
FAILED = re.compile(
    r"^(?:FAILED|ERROR) ([^:\s]+::\w+(?:\[.*?\](?= - |$))?)|^test (.+) \.\.\. FAILED", re.MULTILINE
)
#: Parts of the names of files that notice most waits: these run first.
LIKELY = ("order", "waits", "streams", "sync", "release", "copies")


def main(parts):
    """Build once, test as it is, then once without each wait."""
    prepare()
    waits = [wait for wait in add_switches() if not parts or any(part in wait[1] for part in parts)]
    if not waits:
        sys.exit("no such wait")
    crate_tests = build()
    failed = first_failure(crate_tests, None)
    if failed:
        sys.exit(f"a test fails with every wait in place: {failed}")
    unnoticed = [wait for wait in waits if not is_noticed(crate_tests, *wait)]
    print(f"{len(waits)} waits, {len(unnoticed)} that no test notices")
    sys.exit(1 if unnoticed else 0)


def prepare():
    """Copy what is built, so that the sources stay as they are."""
    shutil.rmtree(CRATE, ignore_errors=True)
    CRATE.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / name, CRATE)
    shutil.copytree(ROOT / "src", CRATE / "src")
    (CRATE / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "device.rs", CRATE / "tests")
    shutil.copytree(ROOT / KERNEL, CRATE / KERNEL, ignore=shutil.ignore_patterns("target"))
    shutil.rmtree(PYTHON, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "dlfield", PYTHON / "dlfield", ignore=_no_extension)


def _no_extension(_folder, names):
    return [name for name in names if name.endswith((".so", ".pyd")) or name == "__pycache__"]


def add_switches():
    """Put a switch around every wait of the copy; return their numbers, places and reasons."""
    waits = []
    for path in sorted((CRATE / "src").rglob("*.rs")):
        lines = path.read_text().splitlines()
        for index, line in enumerate(lines):
            if MARK in line:
                place = f"{path.relative_to(CRATE)}:{index + 1}"
                waits.append((len(waits), place, line.partition(MARK)[2].strip()))
                lines[index] = switched(line, waits[-1][0])
        path.write_text("\n".join(lines) + "\n")
    with (CRATE / "src" / "lib.rs").open("a") as crate:
        crate.write(SWITCH)
    return waits


def switched(line, number):
    """Return the line of a wait with the switch of this number."""
    code = line.partition(MARK)[0].strip()
    left_out = f"crate::is_left_out({number})"
    if code.endswith(";"):
        return f"if !{left_out} {{ {code} }}"
    pattern, arrow, wait = code.rpartition("=> ")
    comma = "," if arrow else ""
    return f"{pattern}{arrow}if {left_out} {{ Ok(()) }} else {{ {wait.rstrip(',')} }}{comma}"


def build():
    """Build extension, example and the tests of the crate; return the program of the latter."""
    cargo("build", "--lib", "--features", f"python,{FEATURES}")
    cargo("build", "--manifest-path", str(KERNEL / "Cargo.toml"))
    shutil.copy(BUILD / "debug" / "libdlfield.so", PYTHON / "dlfield" / "_core.abi3.so")
    options = ("--no-run", "--message-format=json", "--test", "device", "--features", FEATURES)
    built = [json.loads(line) for line in cargo("test", *options).splitlines()]
    return next(one["executable"] for one in built if one.get("executable"))


def cargo(command, *options):
    """Run cargo on the copy, without debug information, and return what it prints."""
    command = ["cargo", command, "--quiet", *options, "--target-dir", str(BUILD)]
    settings = {"RUSTFLAGS": "-Awarnings", "CARGO_PROFILE_DEV_DEBUG": "false"}
    settings["PYO3_BUILD_EXTENSION_MODULE"] = "1"
    done = subprocess.run(
        command, env={**os.environ, **settings}, stdout=subprocess.PIPE, check=True, cwd=CRATE
    )
    return done.stdout.decode()


def is_noticed(crate_tests, number, place, reason):
    """Whether a test fails without this wait."""
    remembered = json.loads(NOTICED_BY.read_text()) if NOTICED_BY.exists() else {}
    key = f"{place.partition(':')[0]} {reason}"
    failed = first_failure(crate_tests, number, remembered.get(key))
    if failed:
        NOTICED_BY.write_text(json.dumps({**remembered, key: failed.partition("::")[0]}))
    outcome = f"noticed by {failed}" if failed else "NOTICED BY NO TEST"
    print(f"{place} ({reason}): {outcome}", flush=True)
    return bool(failed)


def first_failure(crate_tests, number, remembered=None):
    """Run the tests without a wait, and give the name of the first that fails, also by itself."""
    environment = {**os.environ, "DLFIELD_TEST_CUDA": "stand-in", "PYTHONPATH": str(PYTHON)}
    environment["DLFIELD_FAKE_CUDA"] = str(STAND_IN)
    environment["DLFIELD_RUST_KERNEL"] = str(BUILD / "debug" / "librust_kernel.so")
    if number is not None:
        environment[VARIABLE] = str(number)
    if failed := failure([crate_tests], environment):
        return failed
    for tests in stages(remembered):
        command = [*PYTEST, *tests]
        while failed := failure(command, environment):
            if "::" not in failed or failure([*PYTEST, failed], environment):
                return failed
            command += ["--deselect", failed]  # fails only now and then, on a busy machine
    return None


def stages(remembered):
    """Yield what pytest runs, one time after the other: tests that need other libraries last."""
    if remembered and (ROOT / remembered).is_file():
        yield [remembered]
    files = sorted(TESTS.glob("test_*.py"), key=lambda file: not is_likely(file.stem))
    yield [str(file) for file in files]
    yield [str(TESTS / "interop")]


def is_likely(name):
    """Whether most tests of a file are about waits."""
    return any(part in name for part in LIKELY)


def failure(command, environment):
    """Run tests; return the name of the first that fails, None if there is none."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode == 0:
        return None
    if found := FAILED.search(done.stdout):
        return found[1] or found[2]
    if command[0] == sys.executable and done.returncode > 1:
        sys.exit(f"the tests cannot run:\n{done.stdout}{done.stderr}")
    return f"the end of its process with status {done.returncode}"


if __name__ == "__main__":
    main(sys.argv[1:])
