"""`skewed` for every kind of stencil, each noting what it is given; and fields of users' classes.

What a stencil is given is looked at behind dlfield, just before it computes: that nothing was
copied on the way is then a matter of comparing addresses.
"""

import copy
import itertools
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from dlfield import annotations as dla

from support.stencils.arguments import (
    LABELS,
    Held,
    Interface,
    Producer,
    data_array,
    jax_array,
    named,
    numpy_behind,
    read_only,
)
from support.stencils.cartesian import SKEWED_HALO
from support.stencils.next_programs import I, J, K, gtx
from support.stencils.recorder import Recorder

SHAPE, DOMAIN, ORIGIN = (5, 6, 4), (4, 4, 4), (0, 2, 0)


@dataclass(frozen=True)
class Spied:
    """A stencil to bind, and where the arrays lay that it was given at its last run."""

    stencil: Any
    addresses: Callable[[], Mapping[str, int]]
    """Of element (0, 0, 0) of what was passed, by name."""


# --- stencils ------------------------------------------------------------------------------------


class Spy(Recorder):
    """A stencil of gt4py.cartesian that notes what it is run with, and then computes."""

    def __init__(self, stencil):
        super().__init__(stencil, backend=stencil.backend)
        self.computing = stencil

    def run(self, **given):
        super().run(**given)
        self.computing.run(**given)

    def addresses(self):
        arrays = self.calls[-1].arguments.items()
        return {name: array.__array_interface__["data"][0] for name, array in arrays}


def of_cartesian(stencil):
    spy = Spy(stencil)
    return Spied(spy, spy.addresses)


#: The fields of `skewed`, declared for a callable as GT4Py derives them from a stencil.
Read: Any = dla.Field[np.float64, dla.Access["in"], dla.Boundary[(*SKEWED_HALO[:2], (0, 0))]]
Written: Any = dla.Field[np.float64, dla.Access["out"]]


def of_callable():
    seen = {}

    def skewed(inp: Read, out: Written, origin, domain):
        def part(array, name, i=0, j=0):
            starts = np.add(origin[name], (i, j, 0))
            return array[tuple(slice(at, at + n) for at, n in zip(starts, domain, strict=True))]

        seen.update(inp=inp.ctypes.data, out=out.ctypes.data)
        east, south = part(inp, "inp", i=1), part(inp, "inp", j=-2)
        part(out, "out")[...] = east + 2.0 * south + 3.0 * part(inp, "inp")

    return Spied(skewed, lambda: seen)


def of_next(operator):
    """Note what a field operator is called with; its `out` was cut to the domain by then."""
    seen = {}

    class Noting(type(operator)):
        def __call__(self, *args, **given):
            seen.update(given)
            return super().__call__(*args, **given)

    noting = copy.copy(operator)
    object.__setattr__(noting, "__class__", Noting)

    def addresses():
        inp, out = seen["inp"].ndarray, seen["out"].ndarray
        before = sum(at * stride for at, stride in zip(ORIGIN, out.strides, strict=True))
        return {"inp": inp.ctypes.data, "out": out.ctypes.data - before}

    return Spied(noting, addresses)


# --- fields --------------------------------------------------------------------------------------


class Holding:
    """An object that has an array, and is none."""

    def __init__(self, array):
        self.array = array


class DataInterface(Holding):
    @property
    def __gt_data_interface__(self):
        return {None: {**self.array.__array_interface__, "dims": ("K", "I", "J")}}


class DataInterfaceOnRequest(Holding):
    @property
    def __gt_interface__(self):
        return {"cpu": lambda: {**self.array.__array_interface__, "dims": "KIJ"}}


class Wrapper:
    """What libraries of fields have: an array as `.ndarray`, and names."""

    __gt_dims__ = ("K", "I", "J")

    def __init__(self, array):
        self.ndarray = array


class OnlyDLPack(Holding):
    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyDLPackWithNames(OnlyDLPack):
    __gt_dims__ = "KIJ"


def only_buffer(values):
    array = np.array(values, order="F")
    return Held(pickle.PickleBuffer(array), array.ctypes.data, array.copy)


def next_field_over_jax(values):
    """Hold what gt4py.next itself makes of a JAX array; no compiled backend of it takes that."""
    from gt4py.next.embedded import nd_array_field

    held = jax_array(values)
    domain = gtx.domain(dict(zip((I, J, K), values.shape, strict=True)))
    field = nd_array_field.JaxArrayField(domain, held.array)
    return Held(field, held.address, held.read)


def read_only_behind(wrap):
    def hold(values):
        held = read_only(values)
        return Held(wrap(held.array), held.address, held.read)

    return hold


#: What `arguments.EVERY` has not.
WRITABLE = [
    Producer("__gt_data_interface__", named(DataInterface)),
    Producer("__gt_interface__", named(DataInterfaceOnRequest)),
    Producer(".ndarray", named(Wrapper)),
    Producer("__dlpack__ only", lambda values: numpy_behind(OnlyDLPack, values)),
    Producer("__dlpack__ and names", named(OnlyDLPackWithNames)),
    Producer("buffer only", only_buffer),
    *(
        Producer(
            "xarray, labels " + "".join(order),
            lambda values, order=order: data_array(values, order, list(LABELS)),
            dims=LABELS,
        )
        for order in itertools.permutations("IJK")
    ),
]

READ_ONLY = [
    Producer("gt4py.next field over jax", next_field_over_jax, readonly=True),
    Producer("__array_interface__, read-only", read_only_behind(Interface), readonly=True),
    Producer("__dlpack__ only, read-only", read_only_behind(OnlyDLPack), readonly=True),
    Producer("buffer only, read-only", read_only_behind(pickle.PickleBuffer), readonly=True),
]
