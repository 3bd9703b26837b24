"""Attributes of other arrays that storages do not have: absent, with the way to what has them."""

import copy
import inspect
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.processes import run_in_subprocess

WAYS = {
    "sort": "numpy.sort(storage)",
    "ctypes": "storage.to_numpy()",
    "squeeze": "numpy.squeeze(storage)",
    "values": "storage.to_xarray()",
    "sel": "storage.to_xarray()",
    "numpy": "storage.to_torch()",
    "at": "storage.to_jax()",
    "get": "storage.to_cupy()",
}


@pytest.mark.parametrize(("name", "way"), WAYS.items())
def test_what_other_arrays_have_is_absent_with_the_way_out(name, way):
    storage = dlf.zeros(3)
    with refused(AttributeError, f"'CPUStorage' object has no attribute '{name}'", f"use {way}"):
        getattr(storage, name)
    assert not hasattr(storage, name)
    assert not hasattr(dlf.CPUStorage, name)
    assert name not in dir(storage)


def test_a_storage_lists_only_what_it_has():
    assert [name for name in dir(dlf.zeros(3)) if not hasattr(dlf.CPUStorage, name)] == []


def test_an_absent_property_keeps_its_own_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with refused(AttributeError, "'variable'", "use xarray"):
        _ = dlf.zeros(3, dims="K").variable


def test_what_no_array_has_is_absent_as_in_every_object():
    with refused(AttributeError, "'dlfield.CPUStorage' object has no attribute 'grib'"):
        _ = dlf.zeros(3).grib


def test_every_way_out_exists():
    from dlfield.storages.absent import _ELSEWHERE

    storage = dlf.zeros(3)
    assert all(callable(getattr(np, name)) for name in _ELSEWHERE["numpy.FUNCTION"].split())
    for method in ("to_numpy", "to_xarray", "to_torch", "to_jax", "to_cupy"):
        assert callable(getattr(storage, method))


def test_numpy_has_the_attributes_that_are_said_to_be_its_own():
    from dlfield.storages.absent import _ELSEWHERE

    added = {"mT"}  # of NumPy 2
    assert {name for name in _ELSEWHERE["NumPy"].split() if not hasattr(np.ndarray, name)} <= added


def test_members_can_be_listed_and_a_storage_copied():
    storage = dlf.zeros(3)
    assert {"shape", "flags", "rename"} <= dict(inspect.getmembers(storage)).keys()
    assert copy.deepcopy(storage).shape == (3,)


@pytest.mark.parametrize("method", ["torch", "jax"])
def test_without_a_library_its_door_says_what_to_install(method):
    said = run_in_subprocess(f"""
        import sys
        sys.modules["{method}"] = None
        import dlfield
        try:
            dlfield.zeros(3).to_{method}()
        except ImportError as error:
            print(error)
    """)
    assert said.endswith(f"pip install {method}, or use to_numpy()")
    assert said.startswith(f"to_{method}: expected ")


def test_the_names_of_dlfield_are_those_of_its_interface():
    unlisted = {"UNSET", "CUDASyncedGPUStorage", "CudaManagedGPUStorage", "GT4PySyncedGPUStorage"}
    assert (
        set(dir(dlf))
        == {*dlf.__all__, "annotations", "fortran", "halo", "testing", "xarray"} - unlisted
    )
    assert all(hasattr(dlf, name) for name in unlisted)


def test_every_name_of_dlfield_is_there_without_a_further_import():
    run_in_subprocess("import dlfield; [getattr(dlfield, name) for name in dir(dlfield)]")


# --- rename --------------------------------------------------------------------------------------


@pytest.fixture
def field():
    return dlf.zeros((2, 3, 4), dims="IJK", halo=(0, 1, (1, 0)))


def test_a_renamed_storage_shares_memory_and_halo(field):
    named = field.rename({"I": "lon", "K": "level"})
    assert named.dims == ("lon", "J", "level")
    assert (named.halo, named.ptr) == (field.halo, field.ptr)
    assert field.dims == ("I", "J", "K")


def test_names_may_be_keywords_and_change_places(field):
    assert field.rename(I="J", J="I").dims == ("J", "I", "K")
    assert field.rename().dims == field.dims


def test_a_name_that_the_storage_does_not_have_is_refused(field):
    with refused(ValueError, "('I', 'J', 'K')", "'L'"):
        field.rename(L="x")


def test_two_equal_names_are_refused(field):
    with refused(ValueError, "dims"):
        field.rename(I="J")


def test_a_storage_without_names_has_none_to_change():
    with refused(ValueError, "without", "as_storage(storage, dims=...)"):
        dlf.zeros(3).rename(I="x")
