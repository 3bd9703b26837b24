"""The messages of calls that are refused: each is raised as it is worded here.

The table of errors in docs/stencils.md has some of them.
"""

import re
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, Access, Alignment, Boundary, DefaultParameters, Field

from support.optional import library
from support.pages import matches

PAGE = Path(__file__).resolve().parents[2] / "docs" / "stencils.md"
ERRORS = PAGE.read_text("utf-8").partition("\n## Errors\n")[2].partition("\n## ")[0]
IN_TABLE = re.findall(r"^\| `(.+?)` \|", ERRORS, re.M)

pytestmark = [
    # GT4Py advises to compile programs of gt4py.next that Python runs.
    pytest.mark.filterwarnings("ignore:Field View Program:UserWarning"),
    pytest.mark.filterwarnings("ignore:Python is not running in optimized mode:UserWarning"),
]

SHAPE = (6, 6, 4)


AROUND = Field[np.float64, Access["in"], Boundary[((1, 1), (1, 1), (0, 0))]]
READ = Field[np.float64, Access["in"]]
WRITTEN = Field[np.float64, Access["out"]]


def bound(name="laplacian", *, place=True, options=None, **fields):
    """Bind a callable of this name that takes these fields and does nothing."""
    told = ", *, origin, domain" if place else ""
    scope = {}
    exec(f"def {name}({', '.join(fields)}{told}): pass", scope)
    return dlf.bind(scope[name], fields=fields, **(options or {}))


def laplacian(**options):
    return bound(inp=AROUND, out=WRITTEN, options=options)


def zeros(*shape, **options):
    return np.zeros(shape or SHAPE, **options)


def with_halo(width, *shape):
    return dlf.zeros(shape or SHAPE, dims="IJK", halo=(width, 1, 0))


def misaligned():
    return np.zeros(6 * 6 * 4 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(SHAPE)


def xarray_named(*names):
    return library("xarray").DataArray(zeros(), dims=names)


def with_itself():
    array = zeros()
    return laplacian()(array, array, origin=(1, 1, 0), domain=(4, 4, 4))


def outputs_in_one():
    array = zeros()
    return bound("split", left=WRITTEN, right=WRITTEN)(array, array)


def untold():
    return bound("slopes", place=False, inp=READ, out=WRITTEN)(zeros(), zeros(), domain=SHAPE)


def scalar_of_another_type():
    def scaled(field: WRITTEN, scale: float):
        raise AssertionError("refused, and run")

    return dlf.bind(scaled)(zeros(), 2)


def on_a_gpu():
    run = bound(inp=READ, out=WRITTEN, options={"backend": "gt:gpu"})
    return run(zeros(), zeros())


def in_order(annotation, **options):
    return bound(field=Field[np.float64, annotation], options=options)(zeros())


def off_its_boundary():
    array = dlf.zeros((6, 6, 5), alignment_size=64).to_numpy()[..., 1:]
    return bound(field=Field[np.float64, Alignment[8]])(array)


def jax_output():
    return laplacian()(zeros(), library("jax.numpy").zeros(SHAPE), **IN)


def spread():
    plane = Field[IJ, np.float64, Access["in"]]
    return bound("spread", plane=plane, out=WRITTEN).functional(zeros(6, 6))


IN = {"origin": (1, 1, 0), "domain": (4, 4, 4)}


def next_program(name, points, shape):
    """Call a program on `points` along I; its input has no halo."""
    from support.stencils import next_programs as programs

    sizes = [np.int32(one) for one in (points, 5, 3)]
    dlf.bind(programs.on("embedded", name))(np.ones(shape), np.ones((9, 9, 9)), *sizes)


def on_edges(edges, *, right):
    """Sum over cells, with the right table, with one of a negative index, or without one."""
    from support.stencils import next_programs as programs

    given = programs.connectivities() if right is not None else {}
    if right is False:
        given["E2C"].ndarray[0, 0] = -1
    run = dlf.bind(programs.on("embedded", "to_edges"), offset_provider=given)
    run(np.ones((3, 2)), np.ones((edges, 2)))


def second_cells_of_a_boundary():
    from support.stencils import next_programs as programs

    rows = np.array([[0, 1], [1, -1], [2, 0], [0, 2]], dtype=np.int32)
    dims = (programs.Edge, programs.E2CDim)
    given = programs.gtx.as_connectivity(dims, programs.Cell, rows, skip_value=-1)
    cells, edges = np.ones((3, 2)), np.ones((4, 2))
    operator("second_cell", cells, out=edges, offset_provider={"E2C": given})


def a_table_written_larger():
    from support.stencils import next_programs as programs

    rows = np.array([[0, 1], [5, 2]], dtype=np.int32)
    table = programs.gtx.as_connectivity((programs.Edge, programs.E2CDim), programs.Cell, rows)
    run = dlf.bind(programs.on("embedded", "sums_to_edges"), offset_provider={"E2C": table})
    run(np.ones((9, 2)), np.ones((2, 2)), 2, 2)
    table.ndarray[0, 0] = 7
    run(np.ones((9, 2)), np.ones((2, 2)), 2, 2)


def on_two_edges(rows, write=None, **options):
    """Sum over cells on a domain that is compiled in, twice, the second time with another index."""
    from support.stencils import next_programs as programs

    gtx, data = programs.gtx, np.array(rows, dtype=np.int32)
    table = gtx.as_connectivity((programs.Edge, programs.E2CDim), programs.Cell, data, **options)
    static = programs.sums_to_edges.with_compilation_options(static_params=("count", "levels"))
    run = dlf.bind(static.with_backend(gtx.itir_python), offset_provider={"E2C": table})
    run(np.ones((9, 2)), np.ones((2, 2)), 2, 2)
    table.ndarray[0, 0] = write
    run(np.ones((9, 2)), np.ones((2, 2)), 2, 2)


def a_table_with_its_dimensions_swapped():
    from support.stencils import next_programs as programs

    dims = (programs.Cell, programs.E2CDim)
    given = programs.gtx.as_connectivity(dims, programs.Edge, programs.TABLE)
    operator("sum_over_cells", zeros(3, 2), out=zeros(4, 2), offset_provider={"E2C": given})


def a_definition_without_its_decorator():
    from support.stencils import next_programs as programs

    dlf.bind(programs.lift.definition_stage.definition)


def a_table_by_itself():
    from support.stencils import next_programs as programs

    run = dlf.bind(programs.on("embedded", "to_edges"), offset_provider={"E2C": programs.TABLE})
    run(np.ones((3, 2)), np.ones((4, 2)))


def operator(name, *inputs, out, **options):
    """Call an operator of gt4py.next."""
    from support.stencils import next_programs as programs

    given = {"out": out, **options}
    dlf.bind(programs.on("embedded", name))(*inputs, **given)


def scan_without_fields():
    from support.stencils import next_programs as programs

    dlf.bind(programs.running_sum, fields={"value": programs.IJK})


#: What raises each message; three dots stand for anything.
RAISES = {
    "argument 'inp': expected dtype float64, got float32; ...": lambda: laplacian()(
        zeros(dtype="f4"), zeros(), **IN
    ),
    "argument 'inp': expected 3 dimensions ('I', 'J', 'K'), got 2 ...": lambda: laplacian()(
        zeros(6, 6), zeros(), **IN
    ),
    ("argument 'inp': expected dims ('I', 'J', 'K') in any order, got ..."): lambda: laplacian()(
        xarray_named("a", "b", "c"), zeros()
    ),
    "dims: expected 'I', 'J', 'K' or a data dimension such as '0' for 'lon', got 'X'": lambda: (
        laplacian(dims={"lon": "X"})
    ),
    (
        "argument 'out': expected 4 points between the halos along I, as in 'inp', got 5; ..."
    ): lambda: laplacian()(with_halo(1), with_halo(1, 7, 6, 4)),
    (
        "argument 'out': expected 4 points (the domain) or 6 (with halo) along I, got 5 and "
        "no halo; ..."
    ): lambda: laplacian()(with_halo(1), zeros(5, 6, 4)),
    (
        "argument 'inp': expected a known halo, got a view whose halo is unknown; pass origin="
    ): lambda: laplacian()(with_halo(1)[::2], zeros()),
    (
        "argument 'inp': expected points -1 to 6 along I, which 'laplacian' reads, got 0 to 6 ..."
    ): lambda: laplacian()(zeros(), zeros()),
    (
        "argument 'out': expected points 1 to 6 along I, which 'next_level' writes, got 0 to 5 ..."
    ): lambda: operator(
        "next_level", zeros(6, 5, 3), out=zeros(5, 5, 3), domain={"I": (1, 6), "J": 5, "K": 2}
    ),
    (
        "argument 'out[1]': expected points 0 to 5 along I, as in 'out[0]', got 0 to 4 ...; "
        "pass domain="
    ): lambda: operator("both_ways", zeros(5, 5, 3), out=(zeros(5, 5, 3), zeros(4, 5, 3))),
    ("argument 'wind': expected a tuple of 2, got ...; pass its parts together"): lambda: operator(
        "blown", zeros(5, 5, 3), out=zeros(5, 5, 3)
    ),
    ("fields: needs 'out' of 'running_sum', a scan operator, ..."): scan_without_fields,
    ("argument 'out': expected a domain of 0 points or more along I, got -1; ..."): lambda: (
        next_program("laplacian", -1, (6, 7, 3))
    ),
    (
        "offset_provider['E2C']: expected a row for each of the points 0 to 5 along Edge, got"
        " 4 rows; ..."
    ): lambda: on_edges(5, right=True),
    (
        "offset_provider['E2C']: expected indices of at least 0, got -1 and no skip value; ..."
    ): lambda: on_edges(4, right=False),
    (
        "offset_provider['E2C']: expected indices below 6, as when it was first used, ..."
    ): a_table_written_larger,
    (
        "offset_provider['E2C']: expected indices from 0 to below 6 for the points 0 to 2 "
        "along Edge, as when they were first used, ..."
    ): lambda: on_two_edges([[0, 1], [5, 2]], 7),
    (
        "offset_provider['E2C']: expected a neighbour everywhere for the points 0 to 2 along "
        "Edge, got the skip value, ..."
    ): lambda: on_two_edges([[0, 1], [5, -1]], skip_value=-1),
    (
        "offset_provider['E2C']: expected rows along Edge or K, got rows along Cell; ..."
    ): a_table_with_its_dimensions_swapped,
    (
        "offset_provider: expected a mapping of names to connectivities, got an object of type ..."
    ): lambda: operator("next_level", zeros(5, 5, 3), out=zeros(5, 5, 2), offset_provider="E2C"),
    ("domain: expected an end of at least 4 along I, its first point, got 1; ..."): lambda: (
        operator(
            "next_level", zeros(5, 5, 3), out=zeros(5, 5, 3), domain={"I": (4, 1), "J": 5, "K": 2}
        )
    ),
    (
        "bind: expected a definition with its decorator, got 'lift', whose parameter 'inp' is"
        " of gt4py.next, without; ..."
    ): a_definition_without_its_decorator,
    (
        "offset_provider['E2C']: expected a connectivity, got an object of type 'ndarray'; ..."
    ): a_table_by_itself,
    (
        "offset_provider['E2C']: expected a neighbour 1 of all points 0 to 4 along Edge, got "
        "the skip value; ..."
    ): second_cells_of_a_boundary,
    "domain: expected one for all outputs, got 2; ...": lambda: operator(
        "both_ways", zeros(), out=(zeros(), zeros()), domain=({}, {})
    ),
    "offset_provider: expected 'E2C', got none; ...": lambda: on_edges(4, right=None),
    (
        "argument 'inp': expected a domain= beside an origin other than the lower halo, got "
        "origin [2, 1, 0] alone"
    ): lambda: laplacian()(with_halo(1), zeros(), origin={"inp": (2, 1, 0)}),
    (
        "argument 'out': expected 6 points with a halo of (0, 0) along I, as 'inp' has, since"
        " 'blur' is not told where to compute, got 5 with (0, 0); ..."
    ): lambda: bound("blur", place=False, inp=READ, out=WRITTEN)(zeros(), zeros(5, 6, 4)),
    ("domain of 'laplacian': expected at least 1 point along I, got 0 ..."): lambda: bound(
        inp=READ, out=WRITTEN
    )(zeros(0, 6, 4), zeros()),
    "domain: expected 3 numbers for I, J, K, got [4]": lambda: laplacian()(
        zeros(), zeros(), domain=(4,)
    ),
    ("domain: expected none for 'slopes', which has no parameter for it, got one; ..."): untold,
    ("argument 'out': expected a writable output, got an immutable JAX array; ..."): jax_output,
    ("argument 'out': expected an output with an element for every index, ..."): lambda: (
        laplacian()(zeros(), np.lib.stride_tricks.as_strided(zeros(), SHAPE, (0, 32, 8)), **IN)
    ),
    (
        "arguments 'inp' and 'out': expected an input that is read apart from where the "
        "output is written, ..."
    ): with_itself,
    ("arguments 'left' and 'right': expected outputs at different points, ..."): outputs_in_one,
    "argument 'inp': expected items aligned to 8 bytes, got ...": lambda: laplacian()(
        misaligned(), zeros(), **IN
    ),
    ("argument 'field': expected memory ordered as [2, 1, 0], got strides of ..."): lambda: (
        in_order(DefaultParameters["F"])
    ),
    (
        "argument 'field': expected the first point of the domain in every row on a boundary "
        "of 64 bytes, ..."
    ): off_its_boundary,
    "argument 'inp': expected memory of a GPU, got cpu; ...": on_a_gpu,
    (
        "argument 'scale': expected a scalar of float64, got 2 of type int; ..."
    ): scalar_of_another_type,
    "laplacian: expected an argument 'out', got none; the arguments are inp, out": lambda: (
        laplacian()(zeros())
    ),
    (
        "bind: expected a stencil made by gtscript.stencil, a gt4py.next program, or a "
        "callable with dlfield.annotations, got int; ..."
    ): lambda: dlf.bind(1),
    ("bind: needs a field among the parameters of '<lambda>'; ..."): lambda: dlf.bind(
        lambda inp, out: None
    ),
    (
        "like: expected one of cupy, jax, numpy, storage, torch, xarray or an array, got 'tf'"
    ): lambda: bound(inp=READ, out=WRITTEN).functional(zeros(), like="tf"),
    ("domain: needs a field that has K, as the output 'out' has; ..."): spread,
}


@pytest.mark.parametrize("text", RAISES)
def test_a_refused_call_says_what_was_expected_and_what_it_got(text):
    with pytest.raises((BufferError, TypeError, ValueError)) as caught:
        RAISES[text]()
    first_lines = str(caught.value).partition("\n  field ")[0]
    assert matches(text, first_lines), str(caught.value)


@pytest.mark.parametrize("text", IN_TABLE)
def test_each_error_of_the_stencils_page_is_raised(text):
    assert text in RAISES


def test_a_program_is_called_without_a_domain():
    library("gt4py.next")
    from support.stencils.next_programs import lift

    with pytest.raises(TypeError, match="domain: expected none for 'lift'"):
        dlf.bind(lift)(zeros(), zeros(), domain=SHAPE)
