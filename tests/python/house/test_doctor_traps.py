"""Traps: each is found where it is, not where it is not, says the way out, and fails nothing."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import dlfield as dlf
import pytest
from dlfield.doctor.report import report
from dlfield.doctor.traps import traps

from support.doctor import examined, fake, found

ROOT = Path(__file__).parents[3]
WORKING = {"version": "1", "error": None, "probe": None}


@pytest.fixture
def seen(monkeypatch):
    """A report without a trap: of this machine, with settings that fit it."""
    for name in ("GT4PY_EXTRA_COMPILE_OPT_FLAGS", "OMP_NUM_THREADS", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "jax", raising=False)  # other tests may have set it, and
    monkeypatch.setattr("dlfield.doctor.traps.loaded", list)  # loaded an MPI
    seen = report(("Python",), imports=False)
    seen["settings"]["threads"] = seen["system"]["local_ranks"] = 1
    seen["system"].update(huge_pages="madvise", libc="glibc 2.36")
    seen["programs"].update(dict.fromkeys(("compiler", "cmake", "ninja"), "/usr/bin/one"))
    assert traps(seen) == []
    return seen


def names(report):
    return [trap["name"] for trap in traps(report)]


def way_out(report):
    (trap,) = traps(report)
    return trap["way_out"]


def test_jax_without_64_bit_types_is_a_trap(seen):
    seen["libraries"]["JAX"] = {**WORKING, "x64": False}
    assert "JAX_ENABLE_X64=1" in way_out(seen)
    seen["libraries"]["JAX"]["x64"] = True
    assert names(seen) == []


def test_jax_counts_as_the_program_that_asks_has_set_it(seen, monkeypatch):
    seen["libraries"]["JAX"] = {**WORKING, "x64": False}
    jax = SimpleNamespace(config=SimpleNamespace(jax_enable_x64=True))
    monkeypatch.setitem(sys.modules, "jax", jax)
    assert names(seen) == []
    jax.config.jax_enable_x64 = False
    seen["libraries"]["JAX"]["x64"] = True
    assert names(seen) == ["jax-x64"]


def test_a_jax_that_does_not_work_is_no_trap(seen):
    seen["libraries"]["JAX"] = {**WORKING, "error": "RuntimeError"}
    assert names(seen) == []


@pytest.mark.parametrize(
    ("version", "flags", "trapped"),
    [
        ("1.1.12", None, True),
        ("1.1.12", "-O3 -std=c++17", True),
        ("1.1.12", "-O3 -std=c++20", False),
        ("1.1.12", "-std=gnu++23", False),
        ("1.2.0", None, False),
    ],
)
def test_dace_needs_the_flag_with_gt4py_1_1(seen, version, flags, trapped):
    seen["libraries"] = {"gt4py": {**WORKING, "version": version}, "dace": WORKING}
    if flags is not None:
        seen["variables"]["GT4PY_EXTRA_COMPILE_OPT_FLAGS"] = flags
    assert names(seen) == (["dace-flags"] if trapped else [])
    del seen["libraries"]["dace"]
    assert names(seen) == []


def test_a_setuptools_without_the_flags_that_gt4py_reads_is_a_trap(seen):
    seen["libraries"]["gt4py"] = {**WORKING, "compiler_flags": False}
    assert names(seen) == ["new-setuptools"]
    assert "setuptools<84" in way_out(seen)
    for here in ({"compiler_flags": True}, {}):
        seen["libraries"]["gt4py"] = {**WORKING, **here}
        assert names(seen) == []


@pytest.mark.parametrize(
    ("reads", "flags", "noted"),
    [
        ("distutils.sysconfig._config_vars", "None", False),
        ("distutils.sysconfig._config_vars", "{}", True),
        ("distutils.sysconfig.get_config_vars()", "None", None),
    ],
)
def test_the_flags_are_looked_for_where_gt4py_reads_them(tmp_path, reads, flags, noted):
    folder = tmp_path / "gt4py" / "cartesian" / "backend"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").touch()
    (tmp_path / "gt4py" / "next.py").touch()
    (folder / "pyext_builder.py").write_text(
        "class distutils:\n"
        f"    class sysconfig: _config_vars = {flags}\n"
        f"def build_pybind_ext(): return {reads}\n"
    )
    gt4py = found("--only", "gt4py", fakes=tmp_path)["libraries"]["gt4py"]
    assert gt4py.get("compiler_flags") is noted


def test_no_compiler_is_a_trap_for_stencils_alone(seen):
    seen["programs"]["compiler"] = None
    assert names(seen) == []
    seen["libraries"]["gt4py"] = WORKING
    assert names(seen) == ["no-compiler"]
    assert "(g++)" in traps(seen)[0]["what"]
    seen["variables"]["CXX"] = "icpx"
    assert "(icpx)" in traps(seen)[0]["what"]


@pytest.mark.parametrize("missing", [("cmake",), ("ninja",), ("cmake", "ninja")])
def test_no_cmake_or_ninja_is_a_trap_that_names_what_is_missing(seen, missing):
    seen["libraries"]["gt4py"] = WORKING
    seen["programs"].update(dict.fromkeys(missing))
    (trap,) = traps(seen)
    assert trap["name"] == "no-cmake"
    assert trap["what"].startswith(f"no {' and no '.join(missing)} on PATH")


def of_mpi(**found):
    return {**WORKING, "library": "Open MPI v5.0", "reason": None, "loaded": [], **found}


def test_mpi4py_without_an_mpi_is_a_trap_with_the_reason(seen):
    reason = "RuntimeError: cannot load MPI library"
    seen["libraries"]["mpi4py"] = of_mpi(library=None, reason=reason)
    assert names(seen) == ["no-mpi"]
    assert reason in traps(seen)[0]["what"]


def test_two_libraries_of_mpi_are_a_trap_and_the_parts_of_one_are_not(seen):
    seen["programs"]["mpiexec_version"] = None
    one = ["/one/lib/libmpi.so.40", "/one/lib/libmpi_mpifh.so.40"]
    seen["libraries"]["mpi4py"] = of_mpi(loaded=one)
    assert names(seen) == []
    seen["libraries"]["mpi4py"] = of_mpi(loaded=[*one, "/other/lib/libmpi.so.12"])
    assert names(seen) == ["two-mpis"]
    assert "/one/lib, /other/lib" in traps(seen)[0]["what"]


@pytest.mark.parametrize(
    ("library", "launcher", "trapped"),
    [
        ("Open MPI v5.0.11", "mpiexec (Open MPI) 5.0.11", False),
        ("Open MPI v5.0.11", "mpirun (Open MPI) 4.1", False),
        ("Open MPI v5.0.11", "HYDRA build details: Version: 4.2", True),
        ("MPICH Version: 4.2", "HYDRA build details: Version: 4.2", False),
        ("MPICH Version: 4.2", "mpiexec (OpenRTE) 4.1", True),
        ("Open MPI v5.0.11", None, False),
        ("Open MPI v5.0.11", "a launcher of the centre", False),
    ],
)
def test_a_launcher_of_another_mpi_is_a_trap(seen, library, launcher, trapped):
    seen["libraries"]["mpi4py"] = of_mpi(library=library)
    seen["programs"]["mpiexec_version"] = launcher
    assert names(seen) == (["other-mpiexec"] if trapped else [])


def test_more_threads_than_cpus_are_a_trap(seen):
    seen["system"]["usable_cpus"] = 2
    seen["settings"]["threads"] = 2
    seen["system"]["cpus"] = 4
    assert names(seen) == []
    seen["settings"]["threads"] = 3
    assert way_out(seen).startswith("dlf.set_num_threads(2)")


def test_the_threads_of_all_ranks_count(seen):
    seen["system"].update(usable_cpus=8, cpus=8, local_ranks=4)
    seen["settings"]["threads"] = 2
    assert names(seen) == []
    seen["settings"]["threads"] = 8
    assert way_out(seen).startswith("export OMP_NUM_THREADS=2 ")


@pytest.mark.parametrize(("text", "trapped"), [("4", False), ("4,2", False), ("many", True)])
def test_a_number_of_threads_that_is_none_is_a_trap(seen, text, trapped):
    seen["variables"]["OMP_NUM_THREADS"] = text
    assert names(seen) == (["omp-num-threads"] if trapped else [])


def test_huge_pages_that_the_system_never_gives_are_a_trap_if_asked_for(seen):
    seen["system"]["huge_pages"] = "never"
    seen["settings"]["huge_pages"] = True
    assert names(seen) == ["no-huge-pages"]
    seen["settings"]["huge_pages"] = False
    assert names(seen) == []


@pytest.mark.parametrize(
    ("libc", "trapped"),
    [("glibc 2.17", True), ("glibc 2.28", False), ("glibc 2.100", False), (None, False)],
)
def test_a_glibc_older_than_the_wheels_is_a_trap(seen, libc, trapped):
    seen["system"]["libc"] = libc
    assert names(seen) == (["old-glibc"] if trapped else [])


@pytest.mark.parametrize(
    ("reason", "trapped"),
    [
        ("CUDA: expected the driver's library (libcuda.so.1), got none; install it", False),
        ("CUDA: expected a build of dlfield with the feature 'cuda', got one; use host", False),
        ("CUDA: expected a driver for CUDA 12.0 or later, got one without x; update it", True),
        ("CUDA: expected a device, got a driver without any; use host memory", True),
    ],
)
def test_a_driver_that_is_there_and_of_no_use_is_a_trap(seen, reason, trapped):
    seen["cuda"] = {"version": None, "devices": [], "reason": reason}
    assert names(seen) == (["cuda-driver"] if trapped else [])
    if trapped:
        assert way_out(seen) == reason.rpartition("; ")[2]


def test_a_trap_is_printed_with_its_way_out_and_does_not_fail():
    done = examined("--no-import", "--only", "Python", OMP_NUM_THREADS="many")
    assert done.returncode == 0
    assert "\ntrap omp-num-threads: OMP_NUM_THREADS='many' is not a number" in done.stdout
    assert "\n  way out: export OMP_NUM_THREADS=" in done.stdout


def test_the_settings_of_this_process_lead_to_the_trap():
    before = dlf.get_num_threads()
    try:
        dlf.set_num_threads(len(os.sched_getaffinity(0)) + 1)
        assert "too-many-threads" in names(report(("Python",), imports=False))
    finally:
        dlf.set_num_threads(before)


def test_the_glibc_of_this_process_leads_to_the_trap(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.17"))
    assert "old-glibc" in names(report(("Python",), imports=False))


def test_two_libraries_that_this_process_has_loaded_lead_to_the_trap(tmp_path):
    library = shutil.which("cc") or shutil.which("g++")
    if library is None:
        pytest.skip("no C compiler")
    paths = [tmp_path / name / "libmpi.so" for name in ("one", "other")]
    for path in paths:
        path.parent.mkdir()
        subprocess.run([library, "-shared", "-x", "c", os.devnull, "-o", path], check=True)
    fake(tmp_path, "ghex", f"import ctypes\nfor p in {list(map(str, paths))}: ctypes.CDLL(p)")
    mpi = "class rc: initialize = True\n"
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text(mpi)
    (tmp_path / "mpi4py" / "MPI.py").write_text(
        "import ghex, mpi4py\nassert not mpi4py.rc.initialize\n"
        "def Get_library_version(): return 'MPICH Version: 4.2\\0'\n"
    )
    seen = found("--only", "mpi4py", fakes=tmp_path)
    assert seen["libraries"]["mpi4py"]["library"] == "MPICH Version: 4.2"
    assert "two-mpis" in [trap["name"] for trap in seen["traps"]]


def test_the_page_lists_the_traps_that_there_are():
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    section = page.partition("## Traps")[2].partition("## JSON")[0]
    code = (ROOT / "python" / "dlfield" / "doctor" / "traps.py").read_text("utf-8")
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    listed = set(re.findall("`([a-z0-9-]+)`", " ".join(cells)))
    assert listed == set(re.findall(r'Trap\(\s*"([a-z0-9-]+)"', code))
