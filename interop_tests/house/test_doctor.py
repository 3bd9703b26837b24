"""The doctor on this machine: what it says of real libraries is what they say of themselves."""

import importlib
import os
import subprocess
import sys

import pytest
from dlfield.doctor.libraries import LIBRARIES
from dlfield.doctor.probes import PROBES

from support.doctor import examined, fake, found
from support.optional import library


@pytest.fixture(scope="module")
def report():
    return found()


def names(report):
    return [trap["name"] for trap in report["traps"]]


def test_all_that_is_tried_here_works(report):
    assert report["faults"] == []


@pytest.mark.parametrize("known", LIBRARIES[1:], ids=lambda known: known.name)
def test_the_version_is_that_of_the_module(report, known):
    if known.name not in report["libraries"]:
        assert known.name in report["missing"]
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(known.module)
        return
    version = getattr(library(known.module), "__version__", None) or known.installed()
    assert report["libraries"][known.name]["version"] == version


@pytest.mark.parametrize("name", PROBES)
def test_every_library_with_a_probe_shares_or_says_why_it_was_not_tried(report, name):
    if name not in report["libraries"]:
        pytest.skip(f"{name} is not installed")
    probe = report["libraries"][name]["probe"]
    assert probe["result"] in ("shared", "not tried")
    assert (probe["result"] == "shared") == (probe["error"] is None)


def test_jax_is_a_trap_unless_it_has_64_bit_types_and_works_either_way(tmp_path):
    library("jax")
    off = found("--only", "JAX", JAX_ENABLE_X64="0")
    on = found("--only", "JAX", JAX_ENABLE_X64="1")
    assert "jax-x64" in names(off)
    assert "jax-x64" not in names(on)
    assert off["ok"]
    assert on["ok"]


def test_dace_is_a_trap_without_the_flag():
    library("dace")
    if not library("gt4py").__version__.startswith("1.1."):
        pytest.skip("needed by gt4py 1.1 alone")
    only = ("--no-import", "--only", "gt4py", "--only", "dace")
    assert "dace-flags" in names(found(*only, GT4PY_EXTRA_COMPILE_OPT_FLAGS=""))
    assert "dace-flags" not in names(found(*only, GT4PY_EXTRA_COMPILE_OPT_FLAGS="-std=c++20"))


def test_gt4py_finds_the_flags_that_it_compiles_with():
    library("gt4py")
    assert "new-setuptools" not in names(found("--only", "gt4py"))


def test_a_path_without_programs_is_a_trap_for_gt4py(tmp_path):
    library("gt4py")
    only = ("--no-import", "--only", "gt4py")
    assert {"no-compiler", "no-cmake"} <= set(names(found(*only, PATH=str(tmp_path))))
    assert not {"no-compiler", "no-cmake"} & set(names(found(*only)))


def test_the_library_of_mpi_is_the_one_that_mpi4py_has(report):
    library("mpi4py")
    code = "import mpi4py; mpi4py.rc.initialize = False\n"
    code += "from mpi4py import MPI; print(MPI.Get_library_version())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(report["libraries"]["mpi4py"]["library"])


def test_mpi4py_without_an_mpi_is_a_trap_and_no_fault(tmp_path):
    library("mpi4py")
    # The system may have an Open MPI: a library with MPICH's interface is not beside it.
    nowhere = {"MPI4PY_LIBMPI": str(tmp_path / "libmpi.so"), "MPI4PY_MPIABI": "mpich"}
    report = found("--only", "mpi4py", **nowhere)
    assert "no-mpi" in names(report)
    assert report["libraries"]["mpi4py"]["library"] is None
    assert report["ok"]
    assert report["libraries"]["mpi4py"]["probe"]["result"] == "not tried"


def test_the_launcher_of_another_mpi_is_a_trap(tmp_path):
    library("mpi4py")
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\nprintf 'HYDRA build details:\\n    Version: 4.2\\n'\n")
    launcher.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    report = found("--only", "mpi4py", PATH=path)
    if "Open MPI" not in report["libraries"]["mpi4py"]["library"]:
        pytest.skip("mpi4py has another MPI than Open MPI")
    assert "other-mpiexec" in names(report)


def test_a_library_that_breaks_is_a_fault_beside_others_that_work(tmp_path):
    library("xarray")
    fakes = fake(tmp_path, "zarr", "raise RuntimeError('no luck')")
    done = examined("--only", "zarr", "--only", "xarray", fakes=fakes)
    assert done.returncode == 1
    assert "\n  does not work: RuntimeError: no luck\n" in done.stdout
    assert "\nfault: zarr: RuntimeError: no luck\n" in done.stdout
    assert "xr.DataArray" in done.stdout
