"""The model of `make fortran-demo`: Fortran, Python alone and several ranks write the same bits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.fortran import run, succeeded
from support.optional import library, program
from support.ranks import SETTINGS

library("gt4py.cartesian.gtscript")
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "fortran"
FUNCTIONS = ("accelerate", "rise", "carry", "start", "exchange", "finish")
STEPS = "40"
BACKENDS = ("numpy", "gt:cpu_kfirst", "gt:cpu_ifirst")
#: An Open MPI with Fortran: that of the system. 4 calls shared memory "vader", 5 "sm".
MPIEXEC, MPIF90 = (f"/usr/bin/{name}" for name in ("mpiexec.openmpi", "mpif90.openmpi"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the library and of the program."""
    compiler, folder = program("gfortran"), tmp_path_factory.mktemp("model")
    targets = ",".join(f"stencils:{name}" for name in FUNCTIONS)
    command = [sys.executable, "-m", "dlfield", "fortran", targets, "--library", "model"]
    succeeded(run(*command, "--out", folder, folder=FOLDER, MODEL_BACKEND="numpy"))
    succeeded(run("sh", folder / "build.sh"))
    link(compiler, folder, "shallow")
    return folder


def link(compiler, folder, name, *options):
    linked = [f"-I{folder}", f"-L{folder}", "-lmodel", f"-Wl,-rpath,{folder}"]
    source = FOLDER / "shallow.F90"
    strict = ["-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-cpp"]
    succeeded(run(compiler, *options, *strict, source, *linked, "-o", folder / name, folder=folder))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_model_in_fortran_writes_the_bits_of_the_model_in_python(built, tmp_path, backend):
    succeeded(run(built / "shallow", STEPS, tmp_path / "fortran", MODEL_BACKEND=backend))
    command = [sys.executable, "shallow.py", STEPS, tmp_path / "python"]
    succeeded(run(*command, folder=FOLDER, MODEL_BACKEND=backend))
    fortran, python = (tmp_path / "fortran.0").read_bytes(), (tmp_path / "python").read_bytes()
    assert np.frombuffer(fortran).std() > 0.1
    assert fortran == python


def on_ranks(built, count, out, **settings):
    settings = {**SETTINGS, "OMPI_MCA_btl": "self,vader", "MODEL_BACKEND": "numpy", **settings}
    command = [MPIEXEC, "--oversubscribe", "-n", count, built / "shallow-mpi", STEPS, out]
    return run(*command, **settings)


@pytest.fixture(scope="module")
def with_mpi(built):
    library("mpi4py")
    for name in (MPIEXEC, MPIF90):
        program(name)
    link(MPIF90, built, "shallow-mpi", "-DWITH_MPI", "-Wno-error")
    return built


def test_the_model_writes_the_same_bits_on_one_and_on_two_ranks(with_mpi, tmp_path):
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("shallow_in_python", FOLDER / "shallow.py")
    shallow = module_from_spec(spec)
    spec.loader.exec_module(shallow)
    for count in (1, 2):
        succeeded(on_ranks(with_mpi, count, tmp_path / f"on{count}"))
    one = shallow.read([tmp_path / "on1.0"])
    two = shallow.read([tmp_path / "on2.0", tmp_path / "on2.1"])
    assert [field.tobytes() for field in one] == [field.tobytes() for field in two]


def test_another_mpi_of_mpi4py_is_refused(with_mpi, tmp_path):
    other = Path(sys.prefix) / "lib" / "libmpi.so.40"
    if not other.exists():
        pytest.skip("there is no MPI beside this Python")
    (tmp_path / "sitecustomize.py").write_text(
        "from dlfield.fortran import communicator\n"
        "communicator._loaded_version = lambda: 'Another MPI 1.0'\n"
    )
    path = os.pathsep.join([str(tmp_path), run_path()])
    done = on_ranks(with_mpi, 1, tmp_path / "out", PYTHONPATH=path)
    assert done.returncode != 0
    text = (
        "start: RuntimeError: communicator: expected mpi4py to use the MPI of the program, 'Another"
    )
    assert text in done.stderr


def run_path():
    from support.processes import beside_tests

    return beside_tests()["PYTHONPATH"]


def test_cmake_builds_the_library(built, tmp_path):
    cmake = program("cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(demo LANGUAGES Fortran C)\n"
        f"add_subdirectory({built} model)\nadd_executable(shallow {FOLDER / 'shallow.F90'})\n"
        "target_link_libraries(shallow model)\n"
    )
    subprocess.run([cmake, "-S", tmp_path, "-B", tmp_path / "b"], check=True, capture_output=True)
    subprocess.run([cmake, "--build", tmp_path / "b"], check=True, capture_output=True)
    done = run(tmp_path / "b" / "shallow", "2", tmp_path / "out", MODEL_BACKEND="numpy")
    succeeded(done)
    assert shutil.which("gfortran")
    assert (tmp_path / "out.0").stat().st_size == 96 * 64 * 2 * 2 * 8
