"""Quantities of NDSL come in with names and halo, and storages make quantities over their memory.

With NDSL where it is installed, and with a double of it.
"""

import importlib.util
import sys

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field

from support import ndsl_double
from support.errors import refused

NUMPY, KJI = ndsl_double.BACKENDS


KINDS = ["double", *(["NDSL"] if importlib.util.find_spec("ndsl") else [])]


@pytest.fixture(params=KINDS)
def ndsl(request):
    if request.param == "NDSL":
        yield importlib.import_module("ndsl")
        return
    with ndsl_double.installed():
        yield importlib.import_module("ndsl")


def quantity(ndsl, values=None, dims=("i", "j", "k"), **options):
    values = np.zeros((6, 7, 5)) if values is None else values
    return ndsl.Quantity(values, dims, "K", backend=ndsl.Backend(NUMPY), **options)


def test_dims_origin_and_extent_become_dims_and_halo(ndsl):
    values = np.zeros((6, 7, 5))
    field = dlf.as_storage(quantity(ndsl, values, origin=(1, 2, 0), extent=(4, 4, 5)))
    assert field.dims == ("i", "j", "k")
    assert field.halo == ((1, 1), (2, 1), (0, 0))
    assert field.ptr == values.ctypes.data
    field[...] = 3
    assert values.min() == 3


def test_a_quantity_without_origin_has_no_halo(ndsl):
    field = dlf.as_storage(quantity(ndsl, np.zeros((4, 5)), ("i_interface", "k")))
    assert (field.dims, field.halo) == (("i_interface", "k"), ((0, 0), (0, 0)))


def test_get_dims_tells_the_names_of_a_quantity(ndsl):
    assert dlf.get_dims(quantity(ndsl)) == ("i", "j", "k")


def test_the_array_outlives_its_quantity(ndsl):
    field = dlf.as_storage(quantity(ndsl, np.full((2, 3), 7.0), ("i", "j")))
    assert field.to_numpy().tolist() == [[7.0] * 3] * 2


def test_a_bound_stencil_computes_on_the_domain_of_quantities(ndsl):
    def add_one(field, *, origin, domain):
        (i, j), (ni, nj, _) = origin["field"], domain
        field[i : i + ni, j : j + nj] += 1

    values = np.zeros((5, 6))
    dims = {"i": "I", "j": "J"}
    run = dlf.bind(add_one, fields={"field": Field[np.float64, "IJ"]}, dims=dims)
    run(quantity(ndsl, values, ("i", "j"), origin=(1, 2), extent=(3, 2)))
    expected = np.zeros((5, 6))
    expected[1:4, 2:4] = 1
    assert np.array_equal(values, expected)


def test_a_domain_outside_of_the_array_is_refused():
    wrong = ndsl_double.Quantity(
        np.zeros((4, 5)), ("i", "j"), "m", backend=ndsl_double.Backend(NUMPY), extent=(4, 6)
    )
    text = "Quantity: expected origin and extent of a domain inside shape [4, 5]", "[4, 6]"
    with refused(ValueError, *text):
        dlf.as_storage(wrong)


@pytest.mark.parametrize(("backend", "layout"), [(NUMPY, (0, 1, 2)), (KJI, (2, 1, 0))])
def test_a_storage_makes_a_quantity_over_its_memory(ndsl, backend, layout):
    halo = ((1, 1), (2, 1), (0, 0))
    field = dlf.zeros((6, 7, 5), dims="IJK", halo=halo, layout=layout)
    made = field.to_quantity("K", backend=backend)
    assert isinstance(made, ndsl.Quantity)
    assert (made.dims, made.units) == (("i", "j", "k"), "K")
    assert (tuple(made.origin), tuple(made.extent)) == ((1, 2, 0), (4, 4, 5))
    field[...] = 3
    assert (np.asarray(made) == 3).all()
    again = dlf.as_storage(made)
    assert (again.ptr, again.halo) == (field.ptr, halo)


def test_names_that_are_not_of_gt4py_stay(ndsl):
    field = dlf.zeros((4, 5), dims=("i_interface", "k"))
    assert field.to_quantity("m", backend=NUMPY).dims == ("i_interface", "k")


def test_a_layout_that_ndsl_would_copy_is_refused(ndsl):
    field = dlf.zeros((4, 5, 6), dims="IJK", layout=(2, 1, 0))
    with refused(ValueError, "to_quantity: expected a layout and a device", "got layout (2, 1, 0)"):
        field.to_quantity("m", backend=NUMPY)


def test_a_storage_without_names_or_halo_is_refused(ndsl):
    with refused(ValueError, "to_quantity: expected a storage with dims"):
        dlf.zeros((4, 5)).to_quantity("m", backend=NUMPY)
    unknown = dlf.zeros((6, 4), dims="IJ", halo=(2, 1))[::2]
    with refused(ValueError, "to_quantity: expected a storage with a known halo"):
        unknown.to_quantity("m", backend=NUMPY)


def test_without_ndsl_the_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "ndsl", None)
    with refused(ImportError, "to_quantity: needs NDSL"):
        dlf.zeros((4, 5), dims="IJ").to_quantity("m", backend=NUMPY)
