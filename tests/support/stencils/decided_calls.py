"""Calls of stencils that are decided by hand: taken, or refused.

A row of a table names a stencil, makes the arrays of a call, and says what becomes of it. A call
that is taken is repeated point by point, on a copy of each argument, by a reference that ends with
an IndexError where a point lies outside of an array. So a row that is decided wrongly fails, too.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Taken:
    """A call that computes what the reference computes."""


@dataclass(frozen=True)
class Refused:
    """A call that raises an error with these texts and writes nothing."""

    error: type[Exception]
    texts: tuple[str, ...]


TAKEN = Taken()


def value_error(*texts):
    return Refused(ValueError, texts)


def type_error(*texts):
    return Refused(TypeError, texts)


def buffer_error(*texts):
    return Refused(BufferError, texts)


@dataclass(frozen=True)
class Row:
    """A call of a stencil, and its decision."""

    #: A sentence that can be false.
    name: str
    stencil: str
    #: Makes the arguments by name, new ones for each call.
    arguments: Callable[[], dict[str, Any]]
    decision: Taken | Refused
    #: `origin=`, `domain=`, `offset_provider=`.
    options: dict[str, Any] = field(default_factory=dict)
    #: Numbers of points that are computed, or pairs of ends; by default those of `domain=`.
    points: tuple | None = None
    #: By default every one that the table knows for the stencil.
    backends: tuple[str, ...] = ()

    def __str__(self):
        return self.name.replace(" ", "_")

    @property
    def ranges(self):
        points = self.options["domain"] if self.points is None else self.points
        return [range(*one) if isinstance(one, tuple) else range(one) for one in points]

    def origin(self, name, array):
        """Return the index of point 0 of an argument, in the order of its axes."""
        given = self.options.get("origin", ())
        given = given.get(name, given.get("_all_", ())) if isinstance(given, dict) else given
        return (*given, *(0,) * array.ndim)[: array.ndim]


def numbers(name, *shape, dtype="f8"):
    """Make whole numbers, whose sums are exact, other ones for each name."""
    seed = zlib.crc32(name.encode())
    return np.random.default_rng(seed).integers(1, 99, shape).astype(dtype)


def made(**shapes):
    """Return a function that makes an array for each name."""
    return lambda: {name: numbers(name, *shape) for name, shape in shapes.items()}


class Points:
    """Elements of an array by points that count from an origin. None is outside of it."""

    def __init__(self, array, origin):
        self.array, self.origin = array, origin

    def _place(self, point):
        point = point if isinstance(point, tuple) else (point,)
        place = tuple(at + first for at, first in zip(point, self.origin, strict=True))
        if not all(0 <= at < extent for at, extent in zip(place, self.array.shape, strict=True)):
            raise IndexError(f"{point} is outside of {self.array.shape} from {self.origin}")
        return place

    def __getitem__(self, point):
        return self.array[self._place(point)]

    def __setitem__(self, point, value):
        self.array[self._place(point)] = value


def grid(*ranges):
    return product(*ranges)


def is_array(value):
    return isinstance(value, np.ndarray)


def copies(arguments):
    return {name: one.copy() for name, one in arguments.items() if is_array(one)}


def expected_of(row, arguments, reference):
    """Return copies of all arrays, computed by a reference as if none shared memory."""
    arrays = copies(arguments)
    points = {name: Points(one, row.origin(name, one)) for name, one in arrays.items()}
    scalars = {name: one for name, one in arguments.items() if not is_array(one)}
    reference(*row.ranges, **points, **scalars)
    return arrays


def apart_from(written, arguments):
    """Name the arrays that share no memory with those that are written."""
    outputs = [arguments[name] for name in written]
    return [
        name
        for name, one in arguments.items()
        if is_array(one) and not any(np.shares_memory(one, out) for out in outputs)
    ]


def check_same(arguments, expected, names):
    for name in names:
        np.testing.assert_array_equal(arguments[name], expected[name], err_msg=name)
