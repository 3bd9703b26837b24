"""The recipe for pools, `examples/recipes/cupy_pool.py`, with CuPy or a double of it."""

import gc
import runpy
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

from support.cuda import cupy_double
from support.cuda.libraries import library

PROGRAM = Path(__file__).parents[3] / "examples" / "recipes" / "cupy_pool.py"
FIELD = 64 * 64 * 40 * 8
PRINTED = [
    f"a field: {FIELD} bytes of the pool",
    f"a view of it: {FIELD} bytes",
    "nothing: 0 bytes",
    "sum 201840.0, expected 201840.0",
]


def run(monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", [str(PROGRAM), *options])
    runpy.run_path(str(PROGRAM), run_name="__main__")


@pytest.mark.real
@pytest.mark.filterwarnings("default")  # what CuPy warns of is CuPy's
def test_memory_goes_back_to_the_pool_of_cupy(monkeypatch, capsys):
    library("cupy")
    run(monkeypatch)
    assert capsys.readouterr().out.splitlines() == PRINTED


@pytest.mark.real
@pytest.mark.filterwarnings("default")
def test_a_pool_of_rmm_serves_fields(monkeypatch, capsys):
    library("rmm")
    cupy = library("cupy")
    allocator = cupy.cuda.get_allocator()
    try:
        run(monkeypatch, "--rmm")
    finally:
        cupy.cuda.set_allocator(allocator)
    assert capsys.readouterr().out.splitlines() == PRINTED[-1:]


class Pool:
    """Stands for CuPy's pool: it knows the arrays that were made, while their memory is in use."""

    def __init__(self):
        self.blocks, self.allocators = [], []

    def zeros(self, shape):
        array = cupy_double.asarray(np.zeros(shape))
        self.blocks.append((weakref.ref(array.data.mem), array.nbytes))
        return array

    def used_bytes(self):
        gc.collect()
        return sum(nbytes for block, nbytes in self.blocks if block() is not None)


@pytest.fixture
def pool(monkeypatch):
    pool, double = Pool(), types.ModuleType("cupy")
    vars(double).update(vars(cupy_double))
    double.zeros, double.get_default_memory_pool = pool.zeros, lambda: pool
    own = {**vars(cupy_double.cuda), "set_allocator": pool.allocators.append}
    double.cuda = types.SimpleNamespace(**own)
    monkeypatch.setitem(sys.modules, "cupy", double)
    return pool


@pytest.mark.stand_in
def test_memory_goes_back_to_the_pool_of_a_double_of_cupy(pool, monkeypatch, capsys):
    run(monkeypatch)
    assert capsys.readouterr().out.splitlines() == PRINTED
    assert pool.used_bytes() == 0


@pytest.mark.stand_in
def test_rmm_is_asked_for_a_pool_before_cupy_allocates(pool, monkeypatch, capsys):
    asked = []

    def reinitialize(*, pool_allocator, initial_pool_size):
        assert pool.blocks == []
        asked.append((pool_allocator, initial_pool_size % 256))

    rmm = types.ModuleType("rmm")
    allocators = types.ModuleType("rmm.allocators.cupy")
    rmm.reinitialize, allocators.rmm_cupy_allocator = reinitialize, object()
    for module in (rmm, types.ModuleType("rmm.allocators"), allocators):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    run(monkeypatch, "--rmm")
    assert asked == [(True, 0)]
    assert pool.allocators == [allocators.rmm_cupy_allocator]
    assert capsys.readouterr().out.splitlines() == PRINTED[-1:]
