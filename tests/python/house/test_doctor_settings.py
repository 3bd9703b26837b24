"""The lines of the doctor about the build, the machine and settings, each changed by its test."""

import io
import os
import platform
import sys
import tomllib
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest
from dlfield import _core
from dlfield.doctor import surroundings as module
from dlfield.doctor.report import report

from support.doctor import examined

ROOT = Path(__file__).parents[3]


def lines():
    out = io.StringIO()
    dlf.show_versions("NumPy", imports=False, file=out)
    return out.getvalue().splitlines()


def line(word):
    (found,) = [line[12:] for line in lines() if line[:12].strip() == word]
    return found


def keys():
    return report(("NumPy",), imports=False)


def program(folder, name, text="exit 0"):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def test_the_version_is_that_of_the_crate():
    with (ROOT / "Cargo.toml").open("rb") as file:
        version = tomllib.load(file)["package"]["version"]
    assert line("dlfield") == version == keys()["dlfield"]["version"]


def test_the_features_are_those_that_can_be_seen():
    features = keys()["dlfield"]["features"]
    assert ("arrow" in features) == hasattr(dlf.zeros(3), "to_arrow")
    assert "python" in features
    assert line("build") == f"{', '.join(features)}; {keys()['dlfield']['python_abi']}"


@pytest.mark.parametrize(
    ("name", "abi"),
    [
        ("_core.abi3.so", "abi3"),
        ("_core.cpython-313t-x86_64-linux-gnu.so", "cpython-313t-x86_64-linux-gnu"),
    ],
)
def test_the_abi_is_that_of_the_name_of_the_extension(monkeypatch, name, abi):
    monkeypatch.setattr(_core, "__file__", f"/somewhere/{name}")
    assert keys()["dlfield"]["python_abi"] == abi


def test_python_and_its_lock_are_told(monkeypatch):
    assert line("Python") == f"{platform.python_version()} (CPython)"
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert line("Python").endswith("(CPython, without GIL)")


def test_system_and_glibc_are_told(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.99"))
    assert line("system") == f"{platform.system()}, {platform.machine()}, glibc 2.99"


def test_without_a_known_libc_the_line_says_so(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keys()["system"]["libc"] is None
    assert line("system").endswith("unknown libc")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no processes")
def test_the_cpus_are_those_that_the_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert line("CPUs") == f"1 of {os.cpu_count()} usable"
    finally:
        os.sched_setaffinity(0, before)
    assert keys()["system"]["usable_cpus"] == len(before)


def test_the_registers_are_the_widest_of_the_processor():
    there = np._core._multiarray_umath.__cpu_features__  # NumPy asks the processor by itself
    widest = {
        "avx512": there.get("AVX512F") and (there.get("AVX512_SKX") or there.get("AVX512_KNL")),
        "avx2": there.get("AVX2"),
        "sse2": platform.machine() in ("x86_64", "AMD64"),
        "neon": platform.machine() in ("aarch64", "arm64"),
        "plain": True,
    }
    assert keys()["settings"]["registers"] == next(name for name, on in widest.items() if on)


def test_the_threads_are_those_that_are_set():
    before = dlf.get_num_threads()
    try:
        dlf.set_num_threads(3)
        assert line("copies").endswith(" registers, 3 threads")
        dlf.set_num_threads(1)
        assert line("copies").endswith(" registers, 1 thread")
    finally:
        dlf.set_num_threads(before)


def test_the_threads_follow_the_variable():
    done = examined("--no-import", "--only", "NumPy", DLFIELD_NUM_THREADS="7")
    assert "registers, 7 threads\n" in done.stdout
    assert "\nDLFIELD_NUM_THREADS=7\n" in done.stdout


def test_the_huge_pages_are_those_that_are_set(tmp_path, monkeypatch):
    choice = tmp_path / "enabled"
    choice.write_text("always madvise [never]\n")
    monkeypatch.setattr(module, "TRANSPARENT_HUGE_PAGES", choice)
    before = dlf.get_huge_pages()
    try:
        dlf.set_huge_pages(True)
        assert line("huge pages") == "asked for; system: never"
        dlf.set_huge_pages(False)
        choice.unlink()
        assert line("huge pages") == "not asked for; system: unknown"
    finally:
        dlf.set_huge_pages(before)


def test_the_pool_is_told_in_bytes():
    limit = dlf.get_pool_limit()
    try:
        dlf.set_pool_limit(64 << 20)
        dlf.empty(8 << 20, dtype="uint8")  # freed at once, and kept
        assert dlf.pool_bytes() > 0
        assert line("pool") == f"{dlf.pool_bytes()} bytes kept, at most {64 << 20}"
    finally:
        dlf.free_pool()
        dlf.set_pool_limit(limit)
    assert line("pool") == f"0 bytes kept, at most {limit}"


@pytest.mark.parametrize("name", module.VARIABLES)
def test_a_variable_is_told_if_it_is_set(monkeypatch, name):
    monkeypatch.setenv(name, "5")
    assert f"{name}=5" in lines()
    assert keys()["variables"][name] == "5"
    monkeypatch.delenv(name)
    assert name not in keys()["variables"]


def test_the_programs_are_those_on_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    names = {"compiler": "g++", "cmake": "cmake", "ninja": "ninja", "mpiexec": "mpiexec"}
    for word in names:
        assert line(word) == "none on PATH"
    paths = {word: program(tmp_path, name) for word, name in names.items()}
    for word, path in paths.items():
        assert line(word) == path


def test_the_compiler_is_that_of_cxx(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "my++ -O2")
    assert line("compiler") == "none on PATH"
    path = program(tmp_path, "my++")
    assert line("compiler") == path
    monkeypatch.setenv("CXX", "my++ '")
    assert line("compiler") == "none on PATH"


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("echo 'mpiexec (Open MPI) 5.0'; echo; echo Report", "mpiexec (Open MPI) 5.0"),
        (
            "printf 'HYDRA build details:\\n    Version:   4.2\\n'",
            "HYDRA build details: Version: 4.2",
        ),
    ],
)
def test_mpiexec_is_told_with_what_it_calls_itself(tmp_path, monkeypatch, says, told):
    path = program(tmp_path, "mpiexec", says)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert line("mpiexec") == f"{path} ({told})"


def test_the_ranks_of_a_launcher_are_told(monkeypatch):
    for name in module.LOCAL_RANKS:
        monkeypatch.delenv(name, raising=False)
    assert keys()["system"]["local_ranks"] == 1
    monkeypatch.setenv("MPI_LOCALNRANKS", "4")
    assert line("MPI ranks") == "4 on this machine"
