"""The presets of dlfield are GT4Py's own, but where GT4Py contradicts the table of GDP-3."""

from itertools import product

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

registry = library("gt4py.storage.cartesian.layout_registry")
gt_storage = library("gt4py.storage")

BACKENDS = dict(sorted(registry.REGISTRY.items()))
CPU_BACKENDS = [name for name, info in BACKENDS.items() if info["device"] == "cpu"]
GPU_BACKENDS = [name for name, info in BACKENDS.items() if info["device"] == "gpu"]
GRIDS = ["IJK", "IJ", "IK", "JK", "I", "J", "K"]
DATA_DIMS = ["", "0", "01"]

#: Orders of the grid in which GT4Py gives the ranks of I, J, K to the axes by position. In GDP-3's
#: table a layout follows the meaning of each dimension.
ORDERS_THAT_GT4PY_IGNORES = ["KJI", "KIJ", "JKI", "JI", "KI", "KJ"]

every_backend = pytest.mark.parametrize("backend", BACKENDS)
data_dims = pytest.mark.parametrize("data", DATA_DIMS, ids=lambda data: data or "none")


def layout(backend, dims):
    """Return dlfield's layout for a backend, in host memory also where the backend is a GPU's."""
    shape = range(2, 2 + len(dims))
    return dlf.empty(shape, dims=dims, defaults=backend, device=None).layout


def layout_of_gt4py(backend, dims):
    return tuple(int(rank) for rank in BACKENDS[backend]["layout_map"](tuple(dims)))


def test_the_backends_are_those_that_dlfield_knows():
    """A backend that GT4Py adds or drops shows here."""
    with pytest.raises(ValueError, match="expected one of") as refusal:
        dlf.empty(2, defaults="no such backend")
    known = set(str(refusal.value).split("one of ")[1].split(", got")[0].split(", "))
    assert known - set(BACKENDS) == {"C", "F", "gtx86", "gtmc", "gtcuda"}
    assert set(BACKENDS) - known == set()


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "a backend's preset is fast on that backend"
)
@every_backend
@data_dims
@pytest.mark.parametrize("grid", GRIDS)
def test_the_layout_is_that_of_gt4py(backend, grid, data):
    assert layout(backend, grid + data) == layout_of_gt4py(backend, grid + data)


@every_backend
@data_dims
@pytest.mark.parametrize("grid", ORDERS_THAT_GT4PY_IGNORES)
def test_in_another_order_every_dimension_keeps_its_rank(backend, grid, data):
    in_order = "".join(sorted(grid)) + data
    rank_of = dict(zip(in_order, layout_of_gt4py(backend, in_order), strict=True))
    assert layout(backend, grid + data) == tuple(rank_of[dim] for dim in grid + data)


@every_backend
@pytest.mark.parametrize("grid", ORDERS_THAT_GT4PY_IGNORES)
def test_gt4py_still_goes_by_position_there(backend, grid):
    """Where this fails, GT4Py follows GDP-3, and the list of exceptions can go."""
    assert layout_of_gt4py(backend, grid) == layout_of_gt4py(backend, "".join(sorted(grid)))


@every_backend
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_without_names_i_j_k_are_assumed(backend, ndim):
    unnamed = dlf.empty((2, 3, 4)[:ndim], defaults=backend, device=None)
    assert unnamed.layout == layout_of_gt4py(backend, "IJK"[:ndim])


@pytest.mark.source(
    "Allocation note",
    "Introduction",
    "functions allocate in the best layout and alignment for a backend",
)
@every_backend
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "complex128"])
def test_the_alignment_is_that_of_gt4py_which_counts_items(backend, dtype):
    storage = dlf.empty((2, 3, 4), dtype, defaults=backend, device=None)
    items = BACKENDS[backend]["alignment"]
    assert storage.alignment_size == (items * np.dtype(dtype).itemsize if items > 1 else 1)


@pytest.mark.parametrize("option", ["backend", "defaults"])
@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_a_backend_for_the_cpu_has_its_fields_in_host_memory(name, option):
    assert type(dlf.empty((2, 3, 4), **{option: name})) is dlf.CPUStorage


@pytest.mark.parametrize("option", ["backend", "defaults"])
@pytest.mark.parametrize("name", GPU_BACKENDS)
def test_a_backend_for_the_gpu_has_no_fields_without_a_driver(name, option):
    with pytest.raises(dlf.DeviceUnavailable, match="expected the driver's library"):
        dlf.empty((2, 3, 4), **{option: name})


@pytest.mark.source(
    "Allocation note",
    "Introduction",
    "functions allocate in the best layout and alignment for a backend",
)
@pytest.mark.parametrize("backend", CPU_BACKENDS)
@data_dims
@pytest.mark.parametrize("grid", GRIDS)
def test_an_allocated_field_has_the_strides_of_gt4pys(backend, grid, data):
    dims = grid + data
    shape = tuple(range(2, 2 + len(dims)))
    theirs = gt_storage.empty(shape, "float32", backend=backend, dimensions=tuple(dims))
    ours = dlf.empty(shape, "float32", backend=backend, dims=dims)
    assert ours.strides == theirs.strides


@pytest.mark.parametrize("backend", CPU_BACKENDS)
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3), (2,)], ids=repr)
def test_the_dimensions_of_an_item_lie_where_gt4py_has_them(backend, shape):
    dtype = ("float32", (5,))
    theirs = gt_storage.empty(shape, dtype, backend=backend)
    assert dlf.empty(shape, dtype, backend=backend).strides == theirs.strides


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "a backend's preset is fast on that backend"
)
@every_backend
def test_gt4py_calls_the_layout_optimal(backend):
    for grid, data in product(GRIDS, DATA_DIMS):
        dims = grid + data
        storage = dlf.empty(range(2, 2 + len(dims)), dims=dims, defaults=backend, device=None)
        assert BACKENDS[backend]["is_optimal_layout"](storage.to_numpy(), tuple(dims)), dims


@pytest.mark.parametrize("names", ["IJK", "IJ", "K"])
def test_dims_may_be_the_axes_of_gtscript(names):
    gtscript = library("gt4py.cartesian.gtscript")
    axes = getattr(gtscript, names)
    axes = axes if isinstance(axes, list | tuple) else [axes]
    assert dlf.zeros((2,) * len(names), dims=axes).dims == tuple(names)


def test_a_layout_that_is_registered_with_gt4py_is_a_preset():
    info = gt_storage.layout.LayoutInfo(
        alignment=16,
        device="cpu",
        layout_map=gt_storage.layout.layout_maker_factory((1, 0, 2)),
        is_optimal_layout=lambda *_: True,
    )
    gt_storage.register("mine:jik", info)
    try:
        for dims in ["IJK", "JK", "IJ01"]:
            field = dlf.zeros((3,) * len(dims), dims=dims, backend="mine:jik")
            assert field.layout == tuple(map(int, info["layout_map"](tuple(dims))))
            assert field.alignment_size == 16 * 8
    finally:
        gt_storage.register("mine:jik", None)
