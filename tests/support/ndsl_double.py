"""A double of NDSL, which no package index has: as much of it as dlfield uses.

Written after NDSL 2026.03: `Quantity` keeps an array that suits its backend, and copies any other.
"""

import sys
import types
from dataclasses import dataclass
from unittest import mock

import numpy as np

BACKENDS = {"st:numpy:cpu:IJK": (0, 1, 2), "st:gt:cpu:KJI": (2, 1, 0)}


@dataclass(frozen=True)
class Backend:
    name: str


class Quantity:
    def __init__(
        self,
        data,
        dims,
        units,
        *,
        backend,
        origin=None,
        extent=None,
        allow_mismatch_float_precision=False,
        number_of_halo_points=0,
    ):
        assert allow_mismatch_float_precision or data.dtype == np.float64
        order = sorted(range(data.ndim), key=lambda axis: -data.strides[axis])
        wanted = [axis for axis in np.argsort(BACKENDS[backend.name]) if axis < data.ndim]
        self._data = data if order == wanted else data.copy()
        self.dims, self.units, self.n_halo = dims, units, number_of_halo_points
        self.origin = origin or (0,) * data.ndim
        self.extent = extent or tuple(np.subtract(data.shape, self.origin))

    @property
    def __array_interface__(self):
        return self._data.__array_interface__

    @property
    def __cuda_array_interface__(self):
        return self._data.__cuda_array_interface__

    @property
    def shape(self):
        return self._data.shape


Quantity.__module__ = "ndsl.quantity.quantity"


def installed():
    """Put the double in place of NDSL while a "with" block runs."""
    module = types.ModuleType("ndsl")
    module.Quantity, module.Backend = Quantity, Backend
    module.constants = types.SimpleNamespace(I_DIM="i", J_DIM="j", K_DIM="k")
    return mock.patch.dict(sys.modules, {"ndsl": module})
