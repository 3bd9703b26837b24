"""Programs called twice: as their authors call them, by GT4Py alone, and bound, by any library.

Arguments are made of `Values`, which have names and a first point; scalars stay as they are. Tuples
and NamedTuples may hold them.
"""

from dataclasses import dataclass

import dlfield as dlf
import numpy as np

from support.optional import library


@dataclass(frozen=True)
class Values:
    """Values of a field."""

    dims: tuple[str, ...]
    array: np.ndarray
    #: Index of the first point along each axis; 0 if it is left out.
    first: tuple[int, ...] = ()

    @property
    def starts(self):
        return self.first or (0,) * self.array.ndim


def spread(*extents, dims, first=(), low=-1.0, high=1.0, dtype="f8"):
    """Make values that differ from those of other shapes and names."""
    numbers = np.random.default_rng([*extents, *map(ord, "".join(dims))])
    return Values(tuple(dims), numbers.uniform(low, high, extents).astype(dtype), first)


def empty(*extents, dims, first=(), dtype="f8"):
    """Make values that a program overwrites."""
    return Values(tuple(dims), np.full(extents, -1.0, dtype), first)


def mapped(change, value, name=""):
    """Change every `Values` in an argument; `change` gets its name, too."""
    if isinstance(value, Values):
        return change(name, value)
    if isinstance(value, tuple):
        parts = (mapped(change, one, f"{name}[{at}]") for at, one in enumerate(value))
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def of_numpy(values):
    return values.array.copy()


def of_storage(values):
    """Hold values in a storage, its axes the other way round in memory."""
    return dlf.storage(np.asfortranarray(values.array), dims=values.dims)


def of_torch(values):
    return library("torch").tensor(values.array)


def of_xarray(values):
    """Hold values in a DataArray, its axes the other way round."""
    array = library("xarray").DataArray(values.array.copy(), dims=values.dims)
    return array.transpose(*reversed(values.dims))


HELD = {"numpy": of_numpy, "storage": of_storage, "torch": of_torch, "xarray": of_xarray}


def field_of(dimensions):
    """Return a function that holds values in a field of gt4py.next, whose dimensions have names."""
    gtx = library("gt4py.next")
    by_name = {dim.value: dim for dim in dimensions}

    def of_field(values):
        ends = zip(values.dims, values.starts, values.array.shape, strict=True)
        ranges = {by_name[dim]: (first, first + count) for dim, first, count in ends}
        return gtx.as_field(gtx.domain(ranges), values.array)

    return of_field


def read(values, held):
    """Return what is held now, its axes in the order of the values."""
    if type(held).__module__.startswith("xarray"):
        return held.transpose(*values.dims).values
    if hasattr(held, "ndarray"):
        return held.ndarray
    return held.to_numpy() if hasattr(held, "to_numpy") else np.asarray(held)


class Call:
    """Arguments of one call, held by one library."""

    def __init__(self, arguments, hold):
        self.held = {}

        def keep(name, values):
            self.held[name] = values, hold(values)
            return self.held[name][1]

        self.arguments = {name: mapped(keep, one, name) for name, one in arguments.items()}

    def results(self):
        return {name: read(values, held).copy() for name, (values, held) in self.held.items()}


def origins(arguments):
    """Return `origin=` for arrays of fields that do not begin at 0."""
    found = {}

    def note(name, values):
        if any(values.starts):
            found[name] = tuple(-first for first in values.starts)

    for name, one in arguments.items():
        mapped(note, one, name)
    return {"origin": found} if found else {}


def check_same(own, bound, arguments, author, hold, **options):
    """Compare every field after a call of GT4Py's own and after a bound one, bit for bit.

    Parameters
    ----------
    own
        Calls GT4Py with the arguments by name, and `options`.
    bound
        Calls what is bound.
    arguments
        `Values`, tuples of them, and scalars, by name.
    author
        Holds values as GT4Py takes them.
    hold
        Holds values for the bound call.
    options
        Given to both calls.
    """
    expected, got = Call(arguments, author), Call(arguments, hold)
    own(**expected.arguments, **options)
    bound(**got.arguments, **options)
    before, found = Call(arguments, of_numpy).results(), got.results()
    for name, one in expected.results().items():
        np.testing.assert_array_equal(found[name], one, err_msg=name)
    assert any((found[name] != before[name]).any() for name in found), "nothing was computed"
