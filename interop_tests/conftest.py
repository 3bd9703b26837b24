"""Fixtures, and the settings that the libraries need before they are imported."""

import os
import sys

# JAX converts everything to float32 unless this is set before it is imported.
os.environ["JAX_ENABLE_X64"] = "1"
# The fields are tiny: a stencil's threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# GT4Py calls cmake and ninja as commands; they are beside this Python.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

import functools

import pytest

from support.forms import check_messages
from support.garbage import libraries_are_not_searched as libraries_are_not_searched
from support.optional import library
from support.processes import one_at_a_time

check_messages()
BACKENDS = ("numpy", "gt:cpu_kfirst", "gt:cpu_ifirst")


def pytest_configure(config):
    # GT4Py advises to allocate every field with its own allocator. These tests hand it fields of
    # every layout on purpose, and advice about speed does not concern correctness.
    config.addinivalue_line("filterwarnings", "ignore:The layout of the field:UserWarning")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture(scope="session")
def compiled():
    """A stencil of `support.stencils.cartesian` by name and backend, compiled once and cached.

    GT4Py does not keep two processes from compiling one stencil at once.
    """
    gtscript = library("gt4py.cartesian.gtscript")
    from support.stencils import cartesian

    @functools.cache
    def compiled(name, backend):
        with one_at_a_time(f"{name}-{backend}".replace(":", "-")):
            return gtscript.stencil(backend=backend, definition=getattr(cartesian, name))

    return compiled


@pytest.fixture
def xr():
    return library("xarray")
