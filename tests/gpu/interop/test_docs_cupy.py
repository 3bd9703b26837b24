"""The example for CuPy in `docs/frameworks.md`: on a real GPU with CuPy, elsewhere with a double.

The double lets the text run on the stand-in for the driver: what it gives to dlfield and takes from
it is real, by cuda.core, and its arithmetic is done on the host.
"""

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, OnDevice, read, write
from support.cuda.libraries import library

TEXT = (Path(__file__).parents[3] / "docs" / "frameworks.md").read_text("utf-8")
[EXAMPLE] = re.findall(r"^## CuPy\n.*?^```python\n(.*?)^```", TEXT, re.M | re.S)


def run():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(EXAMPLE, "frameworks.md", "exec"), {"dlf": dlf, "np": np})
    assert printed.getvalue().splitlines() == re.findall(r"^# -> (.*)$", EXAMPLE, re.M)


@pytest.mark.real
@pytest.mark.filterwarnings("default")  # what CuPy warns of is CuPy's
def test_the_example_prints_what_it_says():
    library("cupy")
    run()


class Array(OnDevice):
    """Stands for an array of CuPy."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.address)


class Shared:
    """Stands for an array of CuPy over the memory of another."""

    def __init__(self, source):
        view = library("cuda.core.utils").StridedMemoryView
        self.view = view.from_dlpack(source, stream_ptr=LEGACY)
        self.data = types.SimpleNamespace(ptr=self.view.ptr)

    def __iadd__(self, value):
        *outer, last = self.view.shape
        strides = self.view.strides or np.cumprod([1, *self.view.shape[:0:-1]])[::-1]
        assert strides[-1] == 1
        for index in np.ndindex(*outer):
            row = self.data.ptr + 8 * int(np.dot(index, strides[:-1]))
            write(row, read(row, (last,), np.float64) + value)
        return self


@pytest.mark.stand_in
def test_the_example_prints_what_it_says_with_a_double_of_cupy(monkeypatch):
    double = types.SimpleNamespace(
        full=lambda shape, value: Array(np.full(shape, value)),
        from_dlpack=Shared,
    )
    monkeypatch.setitem(sys.modules, "cupy", double)
    run()
