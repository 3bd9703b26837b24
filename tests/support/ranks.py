"""Tests that run on several ranks of MPI: one start of MPI for all tests of a file.

`on_ranks(2, 4)` makes a test of a function that takes a communicator. When pytest comes to the
first test of a file with so many ranks, all of them run, one after the other, in one call of
`mpiexec`. Each rank tells how each test ended, and every test of pytest shows its own.

``DLFIELD_TEST_MPI_PYTHON`` names the Python of another environment, whose MPI is used instead.
"""

import faulthandler
import functools
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path

import pytest

from support.forms import check_messages
from support.processes import beside_tests

PYTHON = Path(os.environ.get("DLFIELD_TEST_MPI_PYTHON", sys.executable))
MPIEXEC = PYTHON.with_name("mpiexec")
#: Everything stays on this machine, and there may be more ranks than cores. Variables that an MPI
#: does not know have no effect.
SETTINGS = {
    "HWLOC_COMPONENTS": "-gl",
    "MPICH_INTERFACE_HOSTNAME": "127.0.0.1",
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_pml": "ob1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
#: Seconds for all tests of a file on one number of ranks.
PATIENCE = 240


def mpi_is_needed():
    """Skip the test, or the file, unless ranks can be started; `on_ranks` does."""
    if importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists():
        pytest.skip("mpi4py or an mpiexec beside Python is not installed", allow_module_level=True)


def is_needed_beside_mpi(module):
    """Skip the test, or the file, unless the Python of the ranks has a module."""
    mpi_is_needed()
    command = [str(PYTHON), "-c", f"import {module}"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{module} is not installed beside this MPI", allow_module_level=True)


def end_of_ranks(count, code, *options, **settings):
    """Run a snippet on some ranks, and give how it ended."""
    command = ["-X", "faulthandler", *options, "-c", textwrap.dedent(code)]
    return started(count, command, timeout=120, **settings)


def started(count, command, *, timeout, **settings):
    """Run Python with some arguments on some ranks, and give how they ended."""
    return subprocess.run(
        [str(MPIEXEC), "-n", str(count), str(PYTHON), *command],
        env=beside_tests(**SETTINGS, **settings),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def on_ranks(*counts):
    """Make a test for each number of ranks out of a function that takes a communicator."""

    def decorate(function):
        @pytest.mark.parametrize("ranks", counts)
        def test(ranks):
            mpi_is_needed()
            outcome = _outcomes(inspect.getfile(function), ranks)
            if (text := outcome.get(function.__name__, outcome.get("", "it did not run"))) != "":
                pytest.fail(text, pytrace=False)

        test.__name__ = test.__qualname__ = function.__name__
        test.__doc__, test.__module__ = function.__doc__, function.__module__
        test.on_ranks = (function, counts)
        return test

    return decorate


@functools.cache
def _outcomes(file, count):
    """Run all tests of a file for a number of ranks. Give the failures of each, in one text."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["-X", "faulthandler", "-m", "mpi4py", "-m", "support.ranks", file, folder]
        try:
            done = started(count, command, timeout=PATIENCE + 30)
        except subprocess.TimeoutExpired as error:
            return {"": f"no end after {error.timeout} s\n{error.stdout!r}\n{error.stderr!r}"}
        reports = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
    if done.returncode or len(reports) != count:
        return {"": f"exit status {done.returncode}\n{done.stdout}{done.stderr}"}
    names = reports[0].keys()
    return {name: "".join(report.get(name, "missing") for report in reports) for name in names}


def _run(file, folder):
    """Run on each rank: all tests of a file that have as many ranks as there are."""
    from mpi4py import MPI

    check_messages()
    comm, report = MPI.COMM_WORLD, {}
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    marked = [one.on_ranks for one in vars(module).values() if hasattr(one, "on_ranks")]
    for function, counts in marked:
        if comm.size in counts:
            print(f"rank {comm.rank}: {function.__name__}", file=sys.stderr, flush=True)
            begin = MPI.Wtime()
            report[function.__name__] = _ended(function, comm)
            print(f"  {MPI.Wtime() - begin:.1f} s", file=sys.stderr, flush=True)
    Path(folder, f"{comm.rank:04}").write_text(json.dumps(report))


def _ended(function, comm):
    """Run one test. A rank that fails alone may leave the others waiting: the timeout ends them."""
    try:
        function(comm)
    except (Exception, pytest.fail.Exception):
        text = f"rank {comm.rank}:\n{traceback.format_exc()}\n"
        print(text, file=sys.stderr, flush=True)
        return text
    finally:
        comm.Barrier()
    return ""


if __name__ == "__main__":
    _run(*sys.argv[1:])
