"""Objects with GT4Py's data interface, as GDP-3 and its predecessors describe them."""

import numpy as np


class Described:
    """Describes an array by GT4Py's data interface, and counts the calls of its hooks."""

    def __init__(self, array, *, key=None, name="__gt_data_interface__", lazily=False, **entries):
        self.array = array
        self.calls = []
        self.entries = entries
        self.key, self.lazily = key, lazily
        self.reads = 0
        setattr(self, f"_serve_{name}", True)

    def describe(self):
        self.reads += 1
        return {**self.array.__array_interface__, **self.entries}

    def _devices(self):
        return {self.key: self.describe if self.lazily else self.describe()}

    def __getattr__(self, name):
        if name in ("__gt_data_interface__", "__gt_interface__") and f"_serve_{name}" in vars(self):
            return self._devices()
        raise AttributeError(name)


class Synchronised:
    """A field with hooks: records every call, and whether the memory was written by then."""

    def __init__(self, shape, *, refuses=(), **entries):
        self.array = np.zeros(shape)
        self.calls, self.refuses, self.entries = [], refuses, entries

    def _told(self, what):
        def note():
            self.calls.append((what, float(self.array.flat[0])))
            if what in self.refuses:
                raise RuntimeError(f"{what} refused")

        return note

    @property
    def told(self):
        return [what for what, _ in self.calls]

    @property
    def __gt_data_interface__(self):
        hooks = {name: self._told(name) for name in ("acquire", "touch", "release")}
        return {None: {**self.array.__array_interface__, **hooks, **self.entries}}
