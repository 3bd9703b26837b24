"""Points that stencils of gt4py.cartesian touch, read from their representation."""

import pytest

from support.optional import library

library("gt4py.cartesian")

from dlfield.stencils.cartesian import nodes  # noqa: E402 (after the skip)
from dlfield.stencils.cartesian.declare import declare  # noqa: E402
from dlfield.stencils.cartesian.internals import representation_of  # noqa: E402
from dlfield.stencils.footprint import Span  # noqa: E402

HERE = Span()


@pytest.fixture
def footprint(compiled):
    """The footprint of a definition by its name."""
    return lambda name, backend="numpy": declare(compiled(name, backend)).footprint


@pytest.fixture
def points(footprint):
    """The spans of a field that is read, else written."""

    def points(name, field):
        found = footprint(name).fields[field]
        return found.reads or found.writes

    return points


def test_offsets_widen_the_box_of_the_field_that_is_read(points):
    assert points("skewed", "inp") == (Span(above=1), Span(below=2), HERE)
    assert points("skewed", "out") == (HERE, HERE, HERE)


def test_a_field_that_is_read_ahead_alone_begins_behind_the_domain(points):
    assert points("ahead", "inp") == (Span(below=-1, above=2), HERE, Span(below=0, above=1))


def test_an_interval_at_the_start_reaches_past_the_end_of_a_shallow_domain(points):
    assert points("far_above", "inp")[2] == Span(below=-2, above_start=7, most_above=5)


def test_an_interval_at_the_end_reaches_below_a_shallow_domain(points):
    assert points("far_below", "inp")[2] == Span(above=-2, below_end=7, most_below=5)


def test_a_region_reaches_past_the_other_end_of_a_small_domain(points):
    along_i, along_j, along_k = points("across_the_domain", "inp")
    assert (along_i.above_start, along_i.most_above) == (4, 3)
    assert (along_j.below_end, along_j.most_below) == (4, 3)
    assert along_k == HERE


def test_a_region_outside_of_every_domain_touches_nothing(points):
    assert points("pruned_level", "inp")[2] == Span(above_start=1)


def test_a_region_asks_for_its_points_on_the_backend_numpy_alone(footprint):
    wide = footprint("east_of_edge")
    assert wide.smallest == (3, 1, 1)
    assert wide.reason == "as many as a region needs on the backend 'numpy'"
    compiled = footprint("east_of_edge", "gt:cpu_kfirst")
    assert (compiled.smallest, compiled.reason) == ((1, 1, 1), "")


@pytest.mark.parametrize(("name", "levels"), [("cumulate", 2), ("far_above_in_temporary", 5)])
def test_intervals_and_temporary_fields_ask_for_levels(footprint, name, levels):
    assert footprint(name).smallest == (1, 1, levels)
    assert footprint(name).reason == ""


@pytest.mark.parametrize("name", ["gathered", "gathered_in_function", "gathered_in_condition"])
def test_a_level_of_run_time_leaves_the_box_of_its_field_alone_incomplete(compiled, name):
    declaration = declare(compiled(name, "numpy"))
    fields = declaration.footprint.fields.items()
    assert {name: found.complete for name, found in fields} == {
        "inp": False,
        "out": True,
        "shift": True,
    }
    assert declaration.checked == "partly checked"


def test_a_temporary_field_widens_the_box_of_what_it_is_made_of(points):
    assert points("smoothed", "inp") == (Span(below=1), Span(above=2), HERE)


def test_reads_and_writes_follow_the_use_of_a_field(footprint):
    fields = footprint("skewed").fields
    assert (fields["inp"].writes, fields["out"].reads) == (None, None)
    updated = footprint("scaled").fields["field"]
    assert updated.reads == updated.writes == (HERE, HERE, HERE)


def test_a_field_that_is_not_used_has_no_box(footprint):
    spare = footprint("mixed").fields["spare"]
    assert (spare.reads, spare.writes) == (None, None)


def test_planes_columns_and_data_dimensions_have_a_span_for_each_axis_of_theirs(points):
    lengths = {name: len(points("mixed", name)) for name in ("field", "plane", "profile", "pair")}
    assert lengths == {"field": 3, "plane": 2, "profile": 1, "pair": 3}


POINTWISE = {
    "split": {"inp": True, "left": True, "right": True},
    "skewed": {"inp": False, "out": True},
    "component": {"inp": True, "out": True},
    "choose": {"steps": True, "land": True, "out": True},
    "chosen_beside": {"inp": True, "land": False, "out": True},
    "doubled_until": {"inp": True, "out": True},
    "doubled_edge": {"inp": True, "out": True},
    "cumulate": {"inp": True, "out": False},
    "gathered": {"inp": False, "out": True, "shift": True},
    "smoothed": {"inp": False, "out": True},
    "lowered": {"inp": False, "out": True},
    "counted": {"inp": True, "total": False},
    "scaled_plane": {"inp": True, "out": True},
}


@pytest.mark.parametrize("name", POINTWISE)
def test_a_field_is_pointwise_if_nothing_is_computed_from_another_point_of_it(footprint, name):
    found = {field: one.pointwise for field, one in footprint(name).fields.items()}
    assert found == POINTWISE[name]


COVERED = {
    "split": {"left", "right"},
    "choose": {"out"},
    "cumulate": {"out"},
    "lowest": set(),
    "written_above": set(),
    "far_above": {"out"},
    "component": set(),
    "doubled_edge": {"out"},
    "doubled_until": {"out"},
    "chosen_beside": set(),
    "raised_below_doubled_above": set(),
    "scaled": {"field"},
}


@pytest.mark.parametrize("name", COVERED)
def test_a_field_is_covered_if_it_is_written_without_a_condition_at_all_levels(footprint, name):
    found = footprint(name).fields.items()
    assert {field for field, one in found if one.covered} == COVERED[name]


def test_a_statement_keeps_its_expression_and_its_line(compiled):
    found = representation_of(compiled("doubled_until", "numpy"))
    loop = next(one for one in found.walk() if isinstance(one, nodes.Loop))
    out = nodes.Access("out", (0, 0, 0))
    doubled = nodes.Operation("*", (nodes.Constant("2.0", "float64"), out))
    assert loop == nodes.Loop(
        nodes.Operation("<", (out, nodes.Scalar("limit"))), (nodes.Assign(out, doubled, 5),), 4
    )


def test_a_level_of_run_time_keeps_the_expression_behind_it(compiled):
    found = representation_of(compiled("gathered", "numpy"))
    gathered = next(one for one in nodes.accesses(found) if one.name == "inp")
    assert gathered.offset == (0, 0, None)
    assert gathered.level == nodes.Access("shift", (0, 0, 0))
