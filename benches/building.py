"""Compiles the peers that are written in C++, once for this machine and these sources."""

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parent / "peers"
BUILT = Path(__file__).parents[1] / "target" / "bench"
COMPILER = "g++"
COMMAND = (COMPILER, "-O3", "-march=native", "-DNDEBUG", "-shared", "-fPIC", "-pthread")


def compiled(
    source: str, suffix: str = ".so", flags: Sequence[str] = (), more: Sequence[Path] = ()
) -> Path:
    """Compile a file of `peers/`, unless that was done before; give the shared library.

    Each library lies in a folder named after all that it was made of, this machine's CPU included:
    another one might not know its instructions.

    Raises
    ------
    ModuleNotFoundError
        Where there is no compiler, or it fails: then the peer is missing.
    """
    if not shutil.which(COMPILER):
        raise ModuleNotFoundError(f"a compiler ({COMPILER}) is missing")
    path = SOURCES / source
    library = BUILT / _made_of(path, flags, more) / f"{path.stem}{suffix}"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        _compile([*COMMAND, *flags, str(path), *map(str, more)], library)
    return library


def _made_of(source: Path, flags: Sequence[str], more: Sequence[Path]) -> str:
    parts = [*COMMAND, *flags, source.read_text("utf-8"), *map(str, more), _instructions()]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _instructions() -> str:
    """Return what `-march=native` depends on."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line for line in lines if line.lower().startswith(("flags", "features"))), "")


def _compile(command: Sequence[str], library: Path) -> None:
    # Under another name first: a library that was not finished must not count as one.
    unfinished = library.with_suffix(".unfinished")
    done = subprocess.run(
        [*command, "-o", str(unfinished)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        errors = (line for line in done.stderr.splitlines() if "error" in line)
        reason = next(errors, "no reason given").rpartition("error: ")[2]
        raise ModuleNotFoundError(f"{library.stem} does not compile: {reason}")
    unfinished.rename(library)
