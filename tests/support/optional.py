"""Optional libraries and programs: a test that needs one is skipped where it is not installed."""

import importlib
import shutil

import pytest


def library(name):
    """Import a library, or skip the test, or the file, that needs it.

    A library that is installed and fails to import is an error.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        pytest.skip(f"{name} is not installed", allow_module_level=True)


def gt4py(*, since=(0,), before=(1000,)):
    """Skip the test, or the file, unless the installed version of GT4Py is in this range."""
    text = library("gt4py").__version__
    version = tuple(int(one) for one in text.split(".")[:2])
    if not since <= version < before:
        pytest.skip(f"gt4py {text} is another version", allow_module_level=True)


def program(*names):
    """Find the first of some programs that is installed, or skip the test, or the file."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"{' or '.join(names)} is not installed", allow_module_level=True)
    return found
