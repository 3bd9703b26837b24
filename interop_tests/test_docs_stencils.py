"""`docs/stencils.md`: its Python prints what is shown, and each of its errors is raised."""

import re
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, Access, Alignment, Boundary, DefaultParameters, Field

from support.optional import library
from support.pages import matches, python_blocks, run_blocks
from support.processes import one_at_a_time

DOCS = Path(__file__).resolve().parent.parent / "docs"
TEXT = (DOCS / "stencils.md").read_text("utf-8")
ERRORS = re.findall(r"^\| `(.+?)` \|", TEXT.partition("\n## Errors\n")[2], re.M)

pytestmark = [
    # Of programs of gt4py.next that Python runs, which is advice about speed.
    pytest.mark.filterwarnings("ignore:Field View Program:UserWarning"),
    pytest.mark.filterwarnings("ignore:Python is not running in optimized mode:UserWarning"),
    # A block asks for a copy.
    pytest.mark.filterwarnings("ignore::dlfield.MemoryCopyWarning"),
]


def test_every_block_of_the_stencils_page_prints_what_it_says(tmp_path, monkeypatch):
    for name in ("gt4py", "jax", "torch", "xarray"):
        library(name)
    run_blocks(python_blocks(TEXT), "docs_stencils", tmp_path, monkeypatch)


# --- the errors --------------------------------------------------------------------------------

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


#: What raises each error, by how its text begins in the table.
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

    dlf.bind(programs.running_sum)


RAISES = {
    "argument 'inp': expected dtype": lambda: laplacian()(zeros(dtype="f4"), zeros(), **IN),
    "argument 'inp': expected 3 dimensions": lambda: laplacian()(zeros(6, 6), zeros(), **IN),
    "argument 'inp': expected dims": lambda: laplacian()(xarray_named("a", "b", "c"), zeros()),
    "dims: expected 'I'": lambda: laplacian(dims={"lon": "X"}),
    "argument 'out': expected 4 points between": lambda: laplacian()(
        with_halo(1), with_halo(1, 7, 6, 4)
    ),
    "argument 'out': expected 4 points (the": lambda: laplacian()(with_halo(1), zeros(5, 6, 4)),
    "argument 'inp': expected a known halo": lambda: laplacian()(with_halo(1)[::2], zeros()),
    "argument 'inp': expected an origin": lambda: laplacian()(zeros(), zeros()),
    "argument 'inp': expected at least 1 + 5": lambda: laplacian()(
        zeros(), zeros(), origin=(1, 1, 0), domain=(5, 4, 4)
    ),
    "argument 'inp': expected points": lambda: next_program("laplacian", 4, (4, 5, 3)),
    "argument 'out': expected points 1": lambda: operator(
        "next_level", zeros(6, 5, 3), out=zeros(5, 5, 3), domain={"I": (1, 6), "J": 5, "K": 2}
    ),
    "argument 'out[1]': expected points": lambda: operator(
        "both_ways", zeros(5, 5, 3), out=(zeros(5, 5, 3), zeros(4, 5, 3))
    ),
    "argument 'wind': expected a tuple": lambda: operator(
        "blown", zeros(5, 5, 3), out=zeros(5, 5, 3)
    ),
    "fields: expected the fields": scan_without_fields,
    "argument 'out': expected a domain of 0": lambda: next_program("laplacian", -1, (6, 7, 3)),
    "offset_provider['E2C']: expected a row": lambda: on_edges(5, right=True),
    "offset_provider['E2C']: expected indices of": lambda: on_edges(4, right=False),
    "offset_provider['E2C']: expected indices below": a_table_written_larger,
    "offset_provider['E2C']: expected indices from": lambda: on_two_edges([[0, 1], [5, 2]], 7),
    "offset_provider['E2C']: expected a neighbour everywhere": lambda: on_two_edges(
        [[0, 1], [5, -1]], skip_value=-1
    ),
    "offset_provider['E2C']: expected rows along": a_table_with_its_dimensions_swapped,
    "offset_provider: expected a mapping": lambda: operator(
        "next_level", zeros(5, 5, 3), out=zeros(5, 5, 2), offset_provider="E2C"
    ),
    "domain: expected an end": lambda: operator(
        "next_level", zeros(5, 5, 3), out=zeros(5, 5, 3), domain={"I": (4, 1), "J": 5, "K": 2}
    ),
    "bind: expected a definition": a_definition_without_its_decorator,
    "offset_provider['E2C']: expected a connectivity": a_table_by_itself,
    "offset_provider['E2C']: expected a neighbour 1": second_cells_of_a_boundary,
    "domain: expected one for all": lambda: operator(
        "both_ways", zeros(), out=(zeros(), zeros()), domain=({}, {})
    ),
    "offset_provider: expected 'E2C'": lambda: on_edges(4, right=None),
    "argument 'inp': expected a domain=": lambda: laplacian()(
        with_halo(1), zeros(), origin={"inp": (2, 1, 0)}
    ),
    "argument 'out': expected 6 points": lambda: bound("blur", place=False, inp=READ, out=WRITTEN)(
        zeros(), zeros(5, 6, 4)
    ),
    "domain of 'laplacian'": lambda: bound(inp=READ, out=WRITTEN)(zeros(0, 6, 4), zeros()),
    "domain: expected 3 numbers": lambda: laplacian()(zeros(), zeros(), domain=(4,)),
    "domain: expected none": untold,
    "argument 'out': expected a writable": jax_output,
    "argument 'out': expected an output with": lambda: laplacian()(
        zeros(), np.lib.stride_tricks.as_strided(zeros(), SHAPE, (0, 32, 8)), **IN
    ),
    "arguments 'inp' and 'out'": with_itself,
    "arguments 'left' and 'right'": outputs_in_one,
    "argument 'inp': expected items": lambda: laplacian()(misaligned(), zeros(), **IN),
    "argument 'field': expected memory": lambda: in_order(DefaultParameters["F"]),
    "argument 'field': expected the first": off_its_boundary,
    "argument 'inp': expected memory of a GPU": on_a_gpu,
    "argument 'scale'": scalar_of_another_type,
    "laplacian(inp, out)": lambda: laplacian()(zeros()),
    "bind: expected a stencil": lambda: dlf.bind(1),
    "bind: expected a field": lambda: dlf.bind(lambda inp, out: None),
    "like: expected": lambda: bound(inp=READ, out=WRITTEN).functional(zeros(), like="tf"),
    "domain: expected a field": spread,
}


@pytest.mark.parametrize("text", ERRORS)
def test_each_error_of_the_table_is_raised_with_its_text(text):
    [raises] = [call for begin, call in RAISES.items() if text.startswith(begin)]
    with pytest.raises((BufferError, TypeError, ValueError)) as caught:
        raises()
    first_lines = str(caught.value).partition("\n  field ")[0]
    assert matches(text, first_lines), str(caught.value)


def test_no_error_is_raised_here_that_the_table_does_not_have():
    assert [begin for begin in RAISES if not any(text.startswith(begin) for text in ERRORS)] == []


def test_a_program_is_called_without_a_domain():
    library("gt4py.next")
    from support.stencils.next_programs import lift

    with pytest.raises(TypeError, match="domain: expected none for 'lift'"):
        dlf.bind(lift)(zeros(), zeros(), domain=SHAPE)


# --- the other statements ----------------------------------------------------------------------


def test_the_page_is_right_that_binding_compiles_a_lazy_stencil():
    gtscript = library("gt4py.cartesian.gtscript")
    from support.stencils import cartesian

    lazy = gtscript.lazy_stencil(backend="numpy", definition=cartesian.split)
    with one_at_a_time("split-numpy"):
        run = dlf.bind(lazy)
    left, right = zeros(), zeros()
    run(zeros(), left, right)
    assert (left == 1.0).all()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([\w.]*#[\w-]+)\)", TEXT))))
def test_a_link_has_its_heading(link):
    page, anchor = link.split("#")
    headings = re.findall(r"^#+ (.*)$", (DOCS / (page or "stencils.md")).read_text("utf-8"), re.M)
    assert anchor in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]


@pytest.mark.parametrize("name", ["DeviceCopyWarning", "LayoutWarning", "MemoryCopyWarning"])
def test_each_warning_is_listed(name):
    assert f"| `dlf.{name}` |" in TEXT
