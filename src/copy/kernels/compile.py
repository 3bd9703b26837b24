"""Compile layout.cu to layout.ptx, which is committed: processes need the driver, no compiler.

Run without an argument it writes layout.ptx; with `--check` it says whether that is needed.
"""

import argparse
import ctypes
import importlib.metadata
import sys
from ctypes import byref
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "layout.cu"
PTX = FOLDER / "layout.ptx"

# A driver takes PTX of its own version and of older ones, and compiles it for any newer GPU. This
# wheel writes version 8.0, that of the first drivers for CUDA 12, and the GPUs begin with Volta.
WHEEL, VERSION = "nvidia-cuda-nvrtc-cu12", "12.0.76"
OPTIONS = ("--gpu-architecture=compute_70", "--std=c++17", "--device-as-default-execution-space")

HEADER = "// Made of layout.cu by compile.py.\n"


class CompilerError(Exception):
    """The compiler is not the one that is needed, or it refused the source."""


def _library() -> ctypes.CDLL:
    installed = importlib.metadata.version(WHEEL)
    if installed != VERSION:
        raise CompilerError(
            f"compiler: expected {WHEEL} {VERSION}, got {installed}; another one writes other PTX"
        )
    files = importlib.metadata.files(WHEEL) or []
    (path,) = (file.locate() for file in files if file.name.startswith("libnvrtc.so"))
    return ctypes.CDLL(str(path))


def _call(nvrtc: ctypes.CDLL, name: str, *arguments: object) -> None:
    number = getattr(nvrtc, name)(*arguments)
    if number:
        raise CompilerError(f"{name}: expected 0, got {number}")


def _text(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _call(nvrtc, f"nvrtcGet{what}Size", program, byref(size))
    text = ctypes.create_string_buffer(size.value)
    _call(nvrtc, f"nvrtcGet{what}", program, text)
    return text.value.decode()


def compiled() -> str:
    """Return the PTX of layout.cu.

    Raises
    ------
    CompilerError
        If the wheel has another version, or the source is refused; then with the compiler's log.
    importlib.metadata.PackageNotFoundError
        If the wheel is not installed.
    """
    nvrtc, program = _library(), ctypes.c_void_p()
    source, name = SOURCE.read_bytes(), SOURCE.name.encode()
    _call(nvrtc, "nvrtcCreateProgram", byref(program), source, name, 0, None, None)
    options = (ctypes.c_char_p * len(OPTIONS))(*[option.encode() for option in OPTIONS])
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    log = _text(nvrtc, "ProgramLog", program)
    if failed:
        raise CompilerError(log)
    ptx = _text(nvrtc, "PTX", program)
    _call(nvrtc, "nvrtcDestroyProgram", byref(program))
    return ptx


def instructions(ptx: str) -> list[str]:
    """Return the lines that mean something: no comments, and no constants of the compiler's own."""
    lines = (line.partition("//")[0].rstrip() for line in ptx.splitlines())
    return [line for line in lines if line and "nv6target" not in line]


def is_current() -> bool:
    """Say whether layout.ptx is what layout.cu compiles to."""
    return PTX.is_file() and instructions(PTX.read_text()) == instructions(compiled())


def main() -> None:
    """Write layout.ptx, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if it is stale")
    if parser.parse_args().check:
        sys.exit(None if is_current() else f"{PTX}: expected what {SOURCE.name} compiles to")
    PTX.write_text(HEADER + "\n".join(instructions(compiled())) + "\n")


if __name__ == "__main__":
    main()
