"""Calls of gt4py.next that would leave an array are refused before anything is acquired."""

import sys
import warnings
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

from dlfield.stencils.next import footprint, walk  # noqa: E402 (after the skip)
from gt4py.next import astype, broadcast  # noqa: E402

from support.stencils.next_programs import (  # noqa: E402
    BACKENDS,
    E2C,
    QUIET,
    TABLE,
    Cell,
    E2CDim,
    Edge,
    K,
    Level,
    OnCells,
    OnEdges,
    as_offset,
    connectivities,
    gtx,
    int32,
    neighbor_sum,
    on,
    running_sum,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

SIZES = dict(zip(("ni", "nj", "nk"), np.array((4, 5, 3), dtype=np.int32), strict=True))


@pytest.fixture(params=BACKENDS)
def run(request):
    return lambda name, **options: dlf.bind(on(request.param, name), **options)


def table(rows, skip_value=None):
    data = np.array(rows, dtype=np.int32)
    domain = {Edge: data.shape[0], E2CDim: data.shape[1]}
    return {"E2C": gtx.as_connectivity(domain, codomain=Cell, data=data, skip_value=skip_value)}


def untouched(*shape):
    return np.full(shape, -1.0)


def test_an_output_shorter_than_the_domain_of_a_program_is_refused(run):
    memory = untouched(6, 7, 3)
    with refused(ValueError, "argument 'out': expected points 0 to 4 along I", "got 0 to 3"):
        run("laplacian")(np.ones((6, 7, 3)), memory[:3], **SIZES, origin={"inp": (1, 1, 0)})
    assert (memory == -1.0).all()


def test_an_input_without_the_points_that_offsets_reach_is_refused(run):
    out = untouched(4, 5, 3)
    with refused(ValueError, "argument 'inp': expected points -1 to 5 along I", "got 0 to 4"):
        run("laplacian")(np.ones((4, 5, 3)), out, **SIZES)
    assert (out == -1.0).all()


def test_scalars_that_make_a_domain_larger_are_checked_in_the_next_call(run):
    laplacian, inp, out = run("laplacian"), np.ones((6, 7, 3)), untouched(4, 5, 3)
    for _ in range(3):
        laplacian(inp, out, **SIZES, origin={"inp": (1, 1, 0)})
    out[...] = -1.0
    with refused(ValueError, "argument 'inp': expected points -1 to 6 along I", "got -1 to 5"):
        laplacian(inp, out, **{**SIZES, "ni": np.int32(5)}, origin={"inp": (1, 1, 0)})
    assert (out == -1.0).all()


def test_a_connectivity_without_a_row_for_every_point_of_the_output_is_refused(run):
    edges = untouched(5, 2)
    with refused(ValueError, "offset_provider['E2C']", "0 to 5 along Edge", "got 4 rows"):
        run("to_edges", offset_provider=connectivities())(np.ones((3, 2)), edges)
    assert (edges == -1.0).all()


def test_an_index_of_a_connectivity_behind_its_source_is_refused(run):
    edges = untouched(4, 2)
    with refused(ValueError, "argument 'cells': expected points 0 to 3 along Cell", "got 0 to 2"):
        run("to_edges", offset_provider=connectivities())(np.ones((2, 2)), edges)
    assert (edges == -1.0).all()


def test_a_negative_index_that_is_no_skip_value_is_refused(run):
    with refused(ValueError, "expected indices of at least 0, got -1 and no skip value"):
        run("to_edges", offset_provider=table([[0, -1]]))(np.ones((2, 2)), untouched(1, 2))


def test_neighbours_that_are_skipped_are_no_indices(run):
    edges = untouched(2, 2)
    given = table([[0, -1], [1, 0]], skip_value=-1)
    run("to_edges", offset_provider=given)(np.array([[1.0, 2.0], [3.0, 4.0]]), edges)
    np.testing.assert_array_equal(edges, [[1.0, 2.0], [4.0, 6.0]])


def test_a_neighbour_that_is_asked_for_by_its_number_must_not_be_skipped(run):
    cells, edges = np.array([[1.0, 2.0], [3.0, 4.0]]), untouched(2, 2)
    second = run("second_cell", offset_provider=table([[0, -1], [1, 0]], skip_value=-1))
    with refused(ValueError, "a neighbour 1 of all points 0 to 2 along Edge, got the skip"):
        second(cells, out=edges)
    assert (edges == -1.0).all()
    second(cells, out=edges, domain={Edge: (1, 2), K: (0, 2)})
    np.testing.assert_array_equal(edges, [[-1.0, -1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("second_cell", [[2.0, 3.0], [0.0, 1.0]]), ("sum_over_cells", [[2, 4]] * 2)],
)
def test_an_operator_takes_an_input_that_begins_at_the_first_cell_it_reads(run, name, expected):
    begins_at_two = gtx.domain({Cell: (2, 4), K: (0, 2)})
    cells = gtx.as_field(begins_at_two, np.arange(4.0).reshape(2, 2))
    edges = untouched(2, 2)
    run(name, offset_provider=table([[2, 3], [3, 2]]))(cells, out=edges)
    np.testing.assert_array_equal(edges, expected)


def test_a_table_that_is_written_between_two_calls_is_checked_again(run):
    given, cells, edges = connectivities(), np.ones((3, 2)), untouched(4, 2)
    sums = run("to_edges", offset_provider=given)
    for _ in range(3):
        sums(cells, edges)
    given["E2C"].ndarray[0, 0] = 7
    edges[...] = -1.0
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell"):
        sums(cells, edges)
    assert (edges == -1.0).all()
    given["E2C"].ndarray[0, 0] = TABLE[0, 0]
    sums(cells, edges)
    np.testing.assert_allclose(edges, cells[TABLE].sum(axis=1))


def test_an_offset_without_its_connectivity_is_refused(run):
    with refused(ValueError, "offset_provider: expected 'E2C', got none"):
        run("to_edges")(np.ones((3, 2)), untouched(4, 2))


@gtx.field_operator
def doubled(cells: OnCells) -> OnCells:
    return 2.0 * cells


@gtx.field_operator
def sum_of_doubled(cells: OnCells) -> OnEdges:
    return neighbor_sum(doubled(cells)(E2C), axis=E2CDim)


@gtx.field_operator
def difference_in_pair(pair: tuple[OnCells, OnEdges]) -> OnEdges:
    cells, edges = pair
    return cells(E2C[1]) - cells(E2C[0]) + edges


@gtx.field_operator
def sum_of_sums(cells: OnCells, others: OnCells) -> OnEdges:
    return neighbor_sum((cells + others)(E2C), axis=E2CDim)


@gtx.field_operator
def sum_of_columns(cells: OnCells) -> OnEdges:
    return neighbor_sum(running_sum(cells)(E2C), axis=E2CDim)


@gtx.field_operator
def sum_of_broadcast(flat: gtx.Field[gtx.Dims[Cell], gtx.float64]) -> OnEdges:
    return neighbor_sum(broadcast(flat, (Cell, K))(E2C), axis=E2CDim)


@gtx.field_operator
def both_scaled(cells: OnCells, others: OnCells) -> tuple[OnCells, OnCells]:
    return 2.0 * cells, 3.0 * others


@gtx.field_operator
def sum_of_second(cells: OnCells, others: OnCells) -> OnEdges:
    return neighbor_sum(both_scaled(cells, others)[1](E2C), axis=E2CDim)


#: Three edges between four cells; the first two edges touch the first three cells.
LONG = [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("backend", ["roundtrip", "gtfn_cpu"])
def test_a_value_of_one_field_needs_the_points_that_are_read_of_it(backend):
    run = dlf.bind(sum_of_doubled.with_backend(BACKENDS[backend]), offset_provider=table(LONG))
    cells, edges = np.array([[1.0], [2.0], [4.0]]), untouched(2, 1)
    run(cells, out=edges)
    np.testing.assert_array_equal(edges, [[6.0], [12.0]])
    with refused(ValueError, "argument 'cells': expected points 0 to 3 along Cell", "got 0 to 2"):
        run(cells[:2], out=edges)


@pytest.mark.parametrize("backend", ["roundtrip", "gtfn_cpu"])
def test_a_field_that_is_broadcast_needs_the_points_that_are_read_of_it(backend):
    run = dlf.bind(sum_of_broadcast.with_backend(BACKENDS[backend]), offset_provider=table(LONG))
    flat, edges = np.array([1.0, 2.0, 4.0]), untouched(2, 1)
    run(flat, out=edges)
    np.testing.assert_array_equal(edges, [[3.0], [6.0]])
    with refused(ValueError, "argument 'flat': expected points 0 to 3 along Cell", "got 0 to 2"):
        run(flat[:2], out=edges)


def test_a_part_of_the_result_of_an_operator_needs_all_points_of_the_mesh():
    run = dlf.bind(sum_of_second.with_backend(gtx.itir_python), offset_provider=table(LONG))
    edges = untouched(2, 1)
    with refused(ValueError, "argument 'others': expected points 0 to 4 along Cell"):
        run(np.ones((3, 1)), np.ones((3, 1)), out=edges)
    run(np.ones((3, 1)), np.ones((4, 1)), out=edges)
    np.testing.assert_array_equal(edges, [[6.0], [6.0]])


def test_a_field_in_a_tuple_needs_the_points_that_are_read_of_it():
    run = dlf.bind(difference_in_pair.with_backend(gtx.itir_python), offset_provider=table(LONG))
    edges = untouched(2, 1)
    run((np.array([[1.0], [2.0], [4.0]]), np.ones((2, 1))), out=edges)
    np.testing.assert_array_equal(edges, [[2.0], [3.0]])


@gtx.field_operator
def scaled_beside(cells: OnCells, others: OnCells, scale: gtx.float64) -> OnCells:
    doubled, converted = astype((cells + cells, scale), gtx.float64)
    return doubled + others * (converted * scale)


def test_a_scalar_in_a_tuple_beside_a_field_leaves_its_points_known():
    run, out = dlf.bind(scaled_beside.with_backend(gtx.itir_python)), untouched(2, 1)
    plan = run.plan(np.ones((2, 1)), np.ones((2, 1)), 2.0, out=out)
    assert (plan.checked, {one.complete for one in plan.fields.values()}) == ("checked", {True})
    run(np.ones((2, 1)), np.ones((2, 1)), 2.0, out=out)
    np.testing.assert_array_equal(out, [[6.0], [6.0]])


@gtx.field_operator
def part_at_offsets(
    levels: OnCells, others: OnCells, offsets: gtx.Field[gtx.Dims[Cell, K], int32]
) -> OnCells:
    pair = (levels + levels, others + others)
    return pair[0](as_offset(Level, offsets)) + pair[1]


def test_a_part_of_a_tuple_at_an_offset_of_values_leaves_the_other_part_known():
    run = dlf.bind(part_at_offsets.with_backend(gtx.itir_python))
    fields = run.plan(
        np.ones((2, 3)), np.ones((2, 3)), np.zeros((2, 3), dtype=np.int32), out=untouched(2, 3)
    ).fields
    assert (fields["levels"].complete, fields["others"].complete) == (False, True)


@gtx.field_operator
def returned_early(levels: OnCells, first: bool, second: bool) -> OnCells:  # noqa: FBT001
    if first:
        above = levels(K + 1)
        if second:
            return above + 1.0
        result = above + 2.0
    else:
        result = levels + 3.0
    return result


@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("backend", ["roundtrip", "gtfn_cpu"])
def test_an_operator_that_returns_early_needs_the_points_of_every_return(backend, second):
    run = dlf.bind(returned_early.with_backend(BACKENDS[backend]))
    levels, out = np.array([[1.0, 2.0, 4.0]]), untouched(1, 2)
    run(levels, True, second, out=out)  # noqa: FBT003
    np.testing.assert_array_equal(out, levels[:, 1:] + (1.0 if second else 2.0))
    with refused(ValueError, "argument 'levels': expected points 0 to 3 along K", "got 0 to 2"):
        run(levels[:, :2], True, second, out=out)  # noqa: FBT003


@pytest.mark.parametrize(
    ("of", "backend"),
    [(sum_of_sums, "roundtrip"), (sum_of_columns, "roundtrip"), (sum_of_doubled, "embedded")],
    ids=["of_two_fields", "of_a_scan", "embedded"],
)
def test_a_value_that_gt4py_stores_needs_all_points_of_the_mesh(of, backend):
    run = dlf.bind(of.with_backend(BACKENDS[backend]), offset_provider=table(LONG))
    cells, edges = (np.ones((3, 1)),) * (2 if of is sum_of_sums else 1), untouched(2, 1)
    with refused(ValueError, "argument 'cells': expected points 0 to 4 along Cell", "got 0 to 3"):
        run(*cells, out=edges)
    assert (edges == -1.0).all()


def test_no_second_call_derives_anything(run, monkeypatch):
    lift, inp, out = run("lift"), np.ones((2, 3, 4)), untouched(2, 3, 4)
    for _ in range(2):
        lift(inp, out)
    monkeypatch.setattr("dlfield.stencils.next.footprint.accesses", None)
    for _ in range(3):
        lift(inp, out)


def test_a_repeated_call_runs_no_python_of_dlfields(run):
    lift, inp, out = run("lift"), np.ones((2, 3, 4)), untouched(2, 3, 4)
    for _ in range(3):
        lift(inp, out)
    files = set()
    sys.setprofile(lambda frame, *_: files.add(frame.f_code.co_filename))
    lift(inp, out)
    sys.setprofile(None)
    assert files
    assert not [name for name in files if Path(dlf.__file__).parent in Path(name).parents]


def test_a_program_of_unknown_numbers_warns_once_and_runs(monkeypatch):
    monkeypatch.setattr(walk, "_ARITHMETIC", {})
    footprint._warned.clear()
    lift = dlf.bind(on("embedded", "lift"))
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for points in (4, 5):
            out = untouched(2, 3, points)
            lift(np.ones((2, 3, points)), out)
            assert (out[..., :-1] == 1.0).all()
    (warning,) = (str(one.message) for one in shown if "representation" in str(one.message))
    assert warning.startswith("lift: expected a representation that tells which points are read")


def test_a_compiled_program_of_unknown_numbers_is_refused_when_it_is_called(monkeypatch):
    monkeypatch.setattr(walk, "_ARITHMETIC", {})
    lift, out = dlf.bind(on("gtfn_cpu", "lift")), untouched(2, 3, 4)
    with refused(ValueError, "lift: expected a program that dlfield understands", "unchecked=True"):
        lift(np.ones((2, 3, 4)), out)
    assert (out == -1.0).all()


def program_named_twice():
    @gtx.program
    def twice(cells: OnCells, out: OnCells):
        doubled(cells, out=out)

    return twice


def test_each_of_two_programs_of_one_name_warns_that_it_is_not_checked(monkeypatch):
    def unknown(*_):
        raise walk.UnknownError("it")

    monkeypatch.setattr(walk._Walk, "statement", unknown)
    for program in (program_named_twice(), program_named_twice()):
        with pytest.warns(UserWarning, match="twice: expected a representation"):
            dlf.bind(program)(np.ones((3, 2)), untouched(3, 2))


def incomplete(run, *args, **keywords):
    """Name the fields whose footprint `explain` calls incomplete; a notebook shows them in bold."""
    explanation = dlf.explain(run, *args, **keywords)
    lines = [line for line in str(explanation).splitlines() if "footprint incomplete" in line]
    html = explanation._repr_html_()
    assert html.count("<b>footprint incomplete</b>") == len(lines)
    assert (">footprint</th>" in html) == (lines != [])
    return [line.split(":")[0].strip() for line in lines]


def test_explain_knows_the_footprint_of_what_the_walk_has_found(run):
    wide, out = np.ones((6, 7, 3)), untouched(4, 5, 3)
    assert incomplete(run("laplacian"), wide, out, **SIZES, origin={"inp": (1, 1, 0)}) == []


def test_explain_calls_the_footprint_of_a_field_that_is_read_at_an_offset_of_values_incomplete():
    run = dlf.bind(on("embedded", "gathered_of"), offset_provider={"Level": K})
    by, inp = np.zeros((2, 3, 4), dtype=np.int32), np.ones((2, 3, 4))
    assert incomplete(run, inp, by, out=untouched(2, 3, 4)) == ["inp"]


@gtx.field_operator
def at_level_beside(cells: OnCells, by: gtx.Field[gtx.Dims[Edge, K], int32]) -> OnEdges:
    return cells(E2C[1])(as_offset(Level, by))


@pytest.fixture(params=["roundtrip", "gtfn_cpu"])
def beside(request):
    operator = at_level_beside.with_backend(BACKENDS[request.param])
    return dlf.bind(operator, offset_provider=table(LONG))


def test_a_neighbour_at_an_offset_of_values_is_what_gt4py_computes(beside):
    cells, edges = np.arange(12.0).reshape(4, 3), untouched(2, 3)
    by = np.array([[2, 1, 0], [0, -1, -2]], dtype=np.int32)
    beside(cells, by, out=edges)
    np.testing.assert_array_equal(edges, [[5.0, 5.0, 5.0], [6.0, 6.0, 6.0]])


def test_an_offset_of_values_along_levels_leaves_the_points_of_the_mesh_known(beside):
    edges = untouched(2, 3)
    with refused(ValueError, "argument 'cells': expected points 1 to 3 along Cell", "got 0 to 2"):
        beside(np.ones((2, 3)), np.zeros((2, 3), dtype=np.int32), out=edges)
    assert (edges == -1.0).all()
