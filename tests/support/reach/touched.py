"""Which points a stencil of GT4Py touches, seen while its backend "debug" computes.

That backend computes point by point in Python, through a class that finds the element for an index.
Here another class takes its place, which notes every index before it does the same.
"""

import functools

import numpy as np

from support.reach.boxes import NOWHERE

#: Points around a temporary field: what leaves it is seen, and goes no further.
MARGIN = 16


class Watch:
    """Notes what fields are touched, while a "with" block runs a stencil of "debug"."""

    def __init__(self, stencil, arrays):
        self.code = type(stencil).run.__globals__["computation"]
        self.names = {id(array): name for name, array in arrays.items()}
        #: By name of the field, for each dimension the first point, counted from the origin, and
        #: the end behind the last one.
        self.boxes = {}
        self.temporary_left = False

    def __enter__(self):
        self.kept, self.code.Field = self.code.Field, functools.partial(_Noting, self)
        self.code.Field.empty = functools.partial(_Noting.empty, self)
        return self

    def __exit__(self, *raised):
        self.code.Field = self.kept


class _Noting:
    def __init__(self, watch, array, origin, dims, *, temporary=False):
        self.watch, self.array, self.origin = watch, array, tuple(origin)
        self.temporary, self.present = temporary, dims
        self.spatial = sum(dims)
        self.box = [NOWHERE] * self.spatial
        if not temporary:
            watch.boxes[watch.names[id(array)]] = self.box

    @staticmethod
    def empty(watch, shape, dtype, origin, dims):
        around = [n + 2 * MARGIN if axis < sum(dims) else n for axis, n in enumerate(shape)]
        made = _Noting(watch, np.full(around, np.nan, dtype), origin, dims, temporary=True)
        made.shape = shape
        return made

    def place(self, key):
        key = key if isinstance(key, tuple) else (key,)
        for axis, point in enumerate(key[: self.spatial]):
            low, high = self.box[axis]
            self.box[axis] = min(low, point), max(high, point + 1)
            if self.temporary and not 0 <= point + self.origin[axis] < self.shape[axis]:
                self.watch.temporary_left = True
        moved = MARGIN if self.temporary else 0
        spatial = zip(key[: self.spatial], self.origin, strict=False)
        return (*(point + at + moved for point, at in spatial), *key[self.spatial :])

    def __getitem__(self, key):
        return self.array[self.place(key)]

    def __setitem__(self, key, value):
        self.array[self.place(key)] = value
