"""Fields of gt4py.next over memory of a GPU, which are fields of CuPy's arrays."""

import ast
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.processes import run_in_subprocess

#: GT4Py looks for CuPy when it is imported: the double has to be there before.
PROLOGUE = """
import sys
from support.cuda import driver
driver.start()
if not driver.REAL:
    from support.cuda import cupy_double
    sys.modules["cupy"] = cupy_double
import dlfield as dlf
import gt4py.next as gtx
import numpy as np
from gt4py._core.definitions import Device, DeviceType

I, J = gtx.Dimension("I"), gtx.Dimension("J")
VALUES = np.arange(12.0).reshape(3, 4)
address = lambda owner: owner.__cuda_array_interface__["data"][0]

def ranges(field):
    return {one.dim.value: (one.unit_range.start, one.unit_range.stop) for one in field.domain}

found = {}
"""

FACTS = """
alone = dlf.storage(VALUES, dims="JI", halo=(1, 0), device="gpu", managed=None)
field = dlf.as_field(alone)
found["class"] = type(field).__name__
found["ranges"] = ranges(field)
found["address"] = address(field.ndarray) == address(alone)
found["values"] = field.asnumpy().tolist()
back = dlf.from_field(field)
found["back"] = type(back).__name__, back.dims, back.halo, address(back) == address(alone)
found["above"] = ranges(dlf.as_field(alone, domain={I: (5, 9), J: (2, 5)}))
found["again"] = ranges(dlf.as_field(dlf.from_field(dlf.as_field(alone, origin=(-2, -5)))))

pair = dlf.storage(VALUES, dims="IJ", device="gpu")
pair.to_numpy()[0, 0] = 7.0
pair.set_host_modified()
field = dlf.as_field(pair)
found["pair"] = type(field).__name__, field.asnumpy()[0, 0].item()
found["host"] = type(dlf.as_field(dlf.as_storage(pair, device="cpu"))).__name__
unified = dlf.zeros((3, 4), dims="IJ", device="gpu", managed="cuda")
found["unified"] = type(dlf.as_field(unified)).__name__
found["cupy"] = ranges(dlf.as_field(field.ndarray, (I, J)))
"""

ALLOCATED = """
import gc
from support.cuda.devices import current

def made(allocator, **options):
    field = gtx.empty({I: (-3, 10), J: (0, 5)}, allocator=allocator, **options)
    first = address(field.ndarray) + 3 * field.ndarray.strides[0]
    aligned = (first % 128, (first + field.ndarray.strides[1]) % 128)
    return type(field).__name__, aligned, dlf.from_field(field).device_id

found["default"] = made(dlf.field_allocator(device="gpu"))
found["preset"] = made(dlf.field_allocator("gt:gpu"))
found["unified"] = made(dlf.field_allocator("gt:gpu", managed="cuda"))
gpu = lambda number: Device(DeviceType.CUDA, number)
if not driver.REAL:
    found["second"] = made(dlf.field_allocator(device="gpu"), device=gpu(1))[2]
    found["fixed"] = made(dlf.field_allocator(device=("gpu", 1)))[2]
    try:
        made(dlf.field_allocator(device=("gpu", 0)), device=gpu(1))
    except ValueError as error:
        found["another"] = str(error)

def live():
    gc.collect()
    with current(0):
        driver.call("cuCtxSynchronize")  # memory is freed in the order of the stream
    return driver.stats().live_bytes

if not driver.REAL:
    before = live()
    kept = gtx.empty({I: 1 << 20}, allocator=dlf.field_allocator(device="gpu"))
    during = live()
    del kept
    found["freed"] = during - before >= 8 << 20, live() <= before
"""


def facts(code):
    library("gt4py.next")
    printed = run_in_subprocess(f"{PROLOGUE}{code}\nprint(found)", warnings="ignore")
    return ast.literal_eval(printed.splitlines()[-1])


@pytest.fixture(scope="module")
def found():
    return facts(FACTS)


@pytest.fixture(scope="module")
def allocated():
    return facts(ALLOCATED)


def test_a_storage_on_a_gpu_becomes_a_field_over_its_own_memory(found):
    assert (found["class"], found["address"]) == ("CuPyArrayField", True)
    assert found["ranges"] == {"I": (0, 4), "J": (-1, 2)}
    assert found["values"] == np.arange(12.0).reshape(3, 4).T.tolist()


def test_the_storage_comes_back_from_the_field(found):
    assert found["back"] == ("GPUStorage", ("I", "J"), ((0, 0), (1, 0)), True)


def test_a_field_on_a_gpu_keeps_its_domain(found):
    assert found["above"] == {"I": (5, 9), "J": (2, 5)}
    assert found["again"] == {"I": (5, 9), "J": (2, 5)}


def test_the_field_of_a_pair_is_the_buffer_of_the_gpu_up_to_date(found):
    assert found["pair"] == ("CuPyArrayField", 7.0)


def test_the_host_side_of_a_pair_is_a_field_of_numpy(found):
    assert found["host"] == "NumPyArrayField"


def test_memory_that_both_sides_reach_becomes_a_field_of_cupy(found):
    assert found["unified"] == "CuPyArrayField"


def test_an_array_of_cupy_becomes_a_field(found):
    assert found["cupy"] == {"I": (0, 3), "J": (0, 4)}


@pytest.mark.parametrize("option", ["default", "preset", "unified"])
def test_rows_of_an_allocated_field_are_aligned_at_the_index_0(allocated, option):
    assert allocated[option] == ("CuPyArrayField", (0, 0), 0)


@pytest.mark.stand_in
def test_gt4py_s_device_decides_the_gpu_unless_the_allocator_has_one(allocated):
    assert (allocated["second"], allocated["fixed"]) == (1, 1)
    assert allocated["another"].startswith("device: expected GPU 0, got 1")


@pytest.mark.stand_in
def test_the_memory_of_an_allocated_field_is_freed_with_it(allocated):
    assert allocated["freed"] == (True, True)


@pytest.fixture
def without_cupy(monkeypatch):
    """Importing CuPy fails, whether it is installed or not."""
    library("gt4py.next")
    nd_array_field = library("gt4py.next.embedded.nd_array_field")
    monkeypatch.delattr(nd_array_field, "CuPyArrayField", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_without_cupy_a_storage_on_a_gpu_cannot_become_a_field(managed):
    storage = dlf.zeros((3, 4), dims="IJ", device="gpu", managed=managed)
    with refused(dlf.DeviceUnavailable, "as_field: needs CuPy", "install cupy"):
        dlf.as_field(storage)


@pytest.mark.usefixtures("without_cupy")
def test_without_cupy_there_is_no_allocator_for_a_gpu():
    with refused(dlf.DeviceUnavailable, "field_allocator: needs CuPy", "install cupy"):
        dlf.field_allocator(device="gpu")
