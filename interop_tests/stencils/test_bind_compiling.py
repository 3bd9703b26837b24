"""What `bind` says while GT4Py compiles, and where the compiler fails."""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library
from support.processes import printed_by
from support.stencils.next_programs import on

gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: E402

SHAPE = (3, 2, 4)


def lazy(**options):
    @gtscript.lazy_stencil(backend="gt:cpu_kfirst", **options)
    def unlucky(inp: Field[np.float64], out: Field[np.float64]):
        with computation(PARALLEL), interval(...):
            out = inp + 1.0  # noqa: F841

    return unlucky


@pytest.fixture
def broken(monkeypatch):
    """Make every compiler fail."""
    monkeypatch.setenv("CXX", "/bin/false")
    monkeypatch.setenv("CC", "/bin/false")


@pytest.mark.usefixtures("broken")
def test_a_compiler_that_fails_is_an_ordinary_error():
    with pytest.raises(RuntimeError, match=r"bind: needs a compiler that works, got .*/bin/false"):
        dlf.bind(lazy(rebuild=True))


@pytest.mark.usefixtures("broken")
def test_a_compiler_that_fails_in_a_thread_is_not_lost():
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="/bin/false"):
        pool.submit(dlf.bind, lazy(rebuild=True)).result()


CALL = """
import warnings
import numpy as np
import dlfield as dlf
from support.stencils.next_programs import on
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    dlf.bind(on("gtfn_cpu", "lift"))(np.zeros((6, 5, 4)), np.zeros((6, 5, 4)))
print([str(one.message) for one in caught if "annotations" in str(one.message)])
"""


def test_a_compiled_program_of_gt4py_next_brings_no_warning_of_dlfields_own_hook():
    assert printed_by("-c", CALL).strip() == "[]"


def test_a_compilation_of_gt4py_next_is_logged(caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, "dlfield"):
        warnings.simplefilter("ignore")
        run = dlf.bind(on("gtfn_cpu", "lift").with_compilation_options(enable_jit=True))
        run(np.zeros((6, 5, 4)), np.zeros((6, 5, 4)))
    assert "compiling lift for run_gtfn_cpu" in caplog.text
