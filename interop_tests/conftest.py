"""Fixtures, and the settings that the libraries need before they are imported."""

import os
import sys

# JAX makes float32 of everything unless told otherwise, before it is imported.
os.environ["JAX_ENABLE_X64"] = "1"
# The fields are tiny: a stencil's threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# GT4Py calls cmake and ninja as commands; they are beside this Python.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

import functools

import pytest

from .support import library

BACKENDS = ("numpy", "gt:cpu_kfirst", "gt:cpu_ifirst")


def pytest_configure(config):
    # GT4Py advises to allocate every field with its own allocator. These tests hand it fields of
    # every layout on purpose, and what is advice about speed says nothing about right or wrong.
    config.addinivalue_line("filterwarnings", "ignore:The layout of the field:UserWarning")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture(scope="session")
def compiled():
    """A stencil of `stencils.py` by name and backend; compiled once, and kept in GT4Py's cache."""
    gtscript = library("gt4py.cartesian.gtscript")
    from . import stencils

    @functools.cache
    def compiled(name, backend):
        return gtscript.stencil(backend=backend, definition=getattr(stencils, name))

    return compiled


@pytest.fixture
def xr():
    return library("xarray")
