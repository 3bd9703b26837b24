"""The extension module of examples/rust_kernel: how to load it, and what its functions compute."""

import functools
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "rust_kernel"
ENVIRONMENT = "DLFIELD_RUST_KERNEL"
LIBRARY = Path(os.environ.get(ENVIRONMENT, EXAMPLE / "target" / "release" / "librust_kernel.so"))
SHAPE = (6, 7, 3)
VALUES = np.random.default_rng(seed=11).random(SHAPE)


def load(path):
    """Import the extension module from where cargo leaves it."""
    if not path.exists():
        pytest.fail(
            f"expected the library of examples/rust_kernel, got no {path}: make test builds it"
        )
    spec = importlib.util.spec_from_file_location("rust_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def built():
    """Return the extension module that cargo has left."""
    return load(LIBRARY)


def untouched(shape=SHAPE):
    """Make what an output is before anything was written to it."""
    return np.full(shape, -1.0)


def reference(values):
    """Return what NumPy makes of `values`, with -1 where `laplacian` must not write."""
    out = untouched(values.shape)
    west, east = values[:-2, 1:-1], values[2:, 1:-1]
    south, north = values[1:-1, :-2], values[1:-1, 2:]
    out[1:-1, 1:-1] = west + east + south + north - 4.0 * values[1:-1, 1:-1]
    return out


class Told:
    """An array whose hooks of GDP-3 write a log; `at` has functions that they call."""

    def __init__(self, array, *, log=None, name="", at=None, **entries):
        self.array, self.entries = array, entries
        self.log = [] if log is None else log
        self.name, self.at = name, at or {}

    def _telling(self, what):
        def tell():
            self.log.append(f"{what} {self.name}".strip())
            self.at.get(what, lambda: None)()

        return tell

    @property
    def __gt_data_interface__(self):
        hooks = {what: self._telling(what) for what in ("acquire", "touch", "release")}
        return {None: {**self.array.__array_interface__, **hooks, **self.entries}}
