"""Backends that take a stride of 1 along the horizontal for granted, as icon4py's do."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.next_programs import QUIET, K, OnCells, gtx, int32

dace = library("gt4py.next.program_processors.runners.dace")

pytestmark = [
    *(pytest.mark.filterwarnings(line) for line in QUIET),
    pytest.mark.filterwarnings("ignore:Library .* already loaded:UserWarning"),
]
SHAPE = (6, 4)
Cell = gtx.Dimension("Cell")
VALUES = np.random.default_rng(0).random(SHAPE)


@gtx.field_operator
def doubled_of(inp: OnCells) -> OnCells:
    return inp + inp


@gtx.program
def doubled(inp: OnCells, out: OnCells, cells: int32):
    doubled_of(inp, out=out, domain={Cell: (0, cells), K: (0, 4)})


#: What a backend is told.
UNIT = {"unstructured_horizontal_has_unit_stride": True}


def backend():
    """Return a backend as icon4py makes its own."""
    if hasattr(dace, "DaCeConfig"):  # new in GT4Py 1.2
        config = dace.DaCeConfig(auto_optimize=False, **UNIT)
        return dace.make_dace_toolchain(config, name_postfix="_unit_stride")
    return dace.make_dace_backend(gpu=False, auto_optimize=False, **UNIT)


def backend_of_gtfn():
    gtfn = library("gt4py.next.program_processors.runners.gtfn")
    if hasattr(gtfn, "GTFNConfig"):  # new in GT4Py 1.2
        return gtfn.make_gtfn_toolchain(gtfn.GTFNConfig(**UNIT))
    told = {f"otf_workflow__{name}": value for name, value in UNIT.items()}
    return gtfn.GTFNBackendFactory(**told)


def bound(**options):
    return dlf.bind(doubled.with_backend(backend()), **options)


TEXT = "expected a stride of 1 along Cell, for which 'doubled' is compiled, got strides of [4, 1]"


def test_memory_with_another_stride_is_refused_before_the_call_and_named():
    run, out = bound(), np.zeros(SHAPE, order="F")
    with refused(BufferError, f"argument 'inp': {TEXT} elements; pass a copy"):
        run(VALUES, out, 6)
    assert TEXT in str(dlf.explain(run, VALUES, out, 6).refusal)


def test_it_is_copied_where_that_is_allowed():
    run, out = bound(on_mismatch={"memory": "copy"}), np.zeros(SHAPE)
    with pytest.warns(dlf.MemoryCopyWarning, match="expected a stride of 1 along Cell"):
        run(VALUES, out, 6)
    assert np.array_equal(out, 2.0 * VALUES)


def test_what_the_stencil_makes_has_it():
    run = bound(dims={"cell": Cell, "level": K})
    inp = run.storage(dlf.as_storage(VALUES, dims=("cell", "level")))
    out = run.zeros(SHAPE)
    run(inp, out, 6)
    assert (out.dims, out.layout) == (("cell", "level"), (1, 0))
    assert np.array_equal(out.to_numpy(), 2.0 * VALUES)


def test_a_plain_backend_takes_any_order():
    run = dlf.bind(doubled.with_backend(dace.run_dace_cpu_noopt))
    assert all(field.unit_stride is None for field in run.declaration.fields)


def test_bindings_of_gtfn_that_were_told_so_are_checked():
    run = dlf.bind(doubled.with_backend(backend_of_gtfn()))
    with refused(BufferError, f"argument 'inp': {TEXT}"):
        run(VALUES, np.zeros(SHAPE), 6)
