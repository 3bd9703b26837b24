"""Stencils that read what GT4Py's backends do not compute."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

library("gt4py.cartesian")

from dlfield.stencils.cartesian import declare, internals  # noqa: E402 (after the skip)
from dlfield.stencils.cartesian.around import computed, joins_loops, told  # noqa: E402
from dlfield.stencils.cartesian.internals import representation_of_definition  # noqa: E402
from dlfield.stencils.cartesian.lost import perhaps_lost  # noqa: E402
from gt4py.cartesian import gtscript  # noqa: E402
from gt4py.cartesian.gtc.passes.oir_optimizations.vertical_loop_merging import (  # noqa: E402
    AdjacentLoopMerging,
)
from gt4py.cartesian.gtc.passes.oir_pipeline import DefaultPipeline  # noqa: E402
from gt4py.cartesian.gtscript import (  # noqa: E402
    BACKWARD,
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    computation,
    interval,
)

from support.processes import one_at_a_time  # noqa: E402

# ruff: noqa: F841

F = Field[np.float64]
pytestmark = [
    pytest.mark.filterwarnings("ignore:2D temporaries is an experimental feature"),
    # dace warns of `dropped` when it compiles it.
    pytest.mark.filterwarnings("ignore:WARNING. Use of uninitialized transient"),
    pytest.mark.filterwarnings("ignore:Tried to remove `None`"),
]


def joined(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp
    with computation(PARALLEL), interval(0, 1):
        below = 3.0 * inp
    with computation(PARALLEL), interval(1, 2):
        out = below[1, 0, -1]


def joined_downwards(inp: F, out: F):
    with computation(BACKWARD), interval(-1, None):
        top = inp
        out = inp
    with computation(BACKWARD), interval(0, -1):
        out = top[0, -2, 1] if inp > 2.0 else inp


def carried(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        before = 3.0 * inp
        found = inp
    with computation(FORWARD), interval(1, None):
        found = before[0, 0, -1]
        before = inp[1, 0, 0]
    with computation(PARALLEL), interval(...):
        out = found[1, 0, 0]


def carried_in_a_plane(inp: F, out: F):
    with computation(FORWARD), interval(0, 1):
        plane: Field[IJ, np.float64] = 3.0 * inp
        found = inp
    with computation(FORWARD), interval(1, None):
        found = plane
        plane = inp
    with computation(PARALLEL), interval(...):
        out = found[1, 0, 0]


def other_levels(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        value = inp
    with computation(PARALLEL), interval(0, 1):
        value = 3.0 * inp
    with computation(PARALLEL), interval(1, None):
        out = value[1, 0, 0]


def written_again(inp: F, out: F):
    with computation(FORWARD), interval(0, 1):
        first = inp
        value = inp
    with computation(FORWARD), interval(1, None):
        value = first[0, 0, -1]
        first = inp
    with computation(PARALLEL), interval(...):
        value = value[0, 0, 0] + 1.0
    with computation(PARALLEL), interval(...):
        other = inp
    with computation(PARALLEL), interval(...):
        out = value + other[1, 0, 0]


def accumulated(inp: F, out: F):
    with computation(FORWARD):
        with interval(0, 1):
            total = inp
        with interval(1, None):
            total = total[0, 0, -1] + inp
    with computation(BACKWARD):
        with interval(-1, None):
            back = total
        with interval(0, -1):
            back = total - 0.5 * back[0, 0, 1]
    with computation(PARALLEL), interval(...):
        out = back[1, 0, 0] - back[-1, 0, 0]


def read_ahead(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        value = 3.0 * inp
        found = inp
    with computation(FORWARD), interval(0, -1):
        found = value[0, 0, 1]
        value = inp
    with computation(PARALLEL), interval(...):
        out = found[1, 0, 0] + value[1, 0, 0]


def in_two_steps(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        before = 3.0 * inp
        found = inp
        square = inp * inp
    with computation(FORWARD), interval(1, None):
        found = before[0, 0, -1]
        before = square
    with computation(PARALLEL), interval(...):
        out = found[1, 0, 0]


def reused(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        value = inp
    with computation(PARALLEL), interval(...):
        beside = value[1, 0, 0]
    with computation(PARALLEL), interval(...):
        value = 2.0 * inp
        out = value + beside


def widened_by_another_level(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        value = inp
        out = inp
    with computation(FORWARD), interval(0, 1):
        out = value[1, 0, 0]
    with computation(FORWARD), interval(1, None):
        value = 2.0 * inp
        out = value


def at_other_points(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        before = 3.0 * inp
        found = inp
    with computation(FORWARD), interval(1, None):
        found = before[0, 0, -1]
        before = inp
    with computation(PARALLEL), interval(...):
        out = found + 0.0 * before[1, 0, 0]


def ahead_at_other_points(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        value = 3.0 * inp
        found = inp
    with computation(FORWARD), interval(0, -1):
        value = inp
        found = value[0, 0, 1]
    with computation(PARALLEL), interval(...):
        out = found + 0.0 * value[1, 0, 0]


def dropped(inp: F, out: F):
    with computation(PARALLEL), interval(0, 2):
        tripled = 3.0 * inp
        beside = tripled[1, 0, 0] + 1.0
        out = beside
    with computation(PARALLEL), interval(2, 3):
        out = tripled[0, 0, -1]
    with computation(PARALLEL), interval(3, 4):
        out = tripled[0, 0, -2]


def kept(inp: F, out: F):
    with computation(PARALLEL), interval(0, 2):
        tripled = 3.0 * inp
        beside = tripled[1, 0, 0] + 1.0
        out = beside
    with computation(FORWARD), interval(2, 3):
        out = tripled[0, 0, -1]
    with computation(FORWARD), interval(3, 4):
        out = tripled[0, 0, -2]


def merged(inp: F, out: F):
    with computation(PARALLEL), interval(0, 2):
        tripled = 3.0 * inp
        out = tripled + 1.0
    with computation(PARALLEL), interval(2, 3):
        out = tripled[0, 0, -1]
    with computation(PARALLEL), interval(3, 4):
        out = tripled[0, 0, -2]


def updated(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        flux = 2.0 * inp
        change = flux[1, 0, 0] - flux
        flux = flux + change
        out = flux[1, 0, 0] + flux


def limited(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        flux = 2.0 * inp
        change = flux[1, 0, 0] - flux
        if change > 0.5:
            flux = 0.0
        out = flux[1, 0, 0] + flux


def one_of_two(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        flux = 2.0 * inp
        change = flux[1, 0, 0] - flux
        if change > 0.5:  # noqa: SIM108 (what is tested)
            found = 0.0
        else:
            found = flux
        out = found[1, 0, 0] + found


def limited_at_once(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        flux = 2.0 * inp
        flux = flux if flux > 0.5 else 0.0
        out = flux[1, 0, 0] + flux


LEFT_OUT = [
    (joined, "numpy"),
    (joined_downwards, "numpy"),
    (carried, "numpy"),
    (carried, "debug"),
    (carried_in_a_plane, "numpy"),
    (joined, "dace:cpu"),
    (in_two_steps, "gt:cpu_kfirst"),
]
COMPUTED = [
    (joined, "debug"),
    (other_levels, "numpy"),
    (written_again, "numpy"),
    (accumulated, "numpy"),
    (read_ahead, "numpy"),
    (reused, "numpy"),
    (at_other_points, "numpy"),
    (dropped, "debug"),
    (kept, "numpy"),
    (merged, "numpy"),
    (merged, "gt:cpu_kfirst"),
    (updated, "debug"),
    (one_of_two, "numpy"),
    (limited_at_once, "numpy"),
    (limited_at_once, "gt:cpu_kfirst"),
]


def compiled(definition, backend, **options):
    with one_at_a_time(f"{definition.__name__}-{backend}".replace(":", "-")):
        return gtscript.stencil(backend=backend, definition=definition, **options)


def ids(one):
    return getattr(one, "__name__", str(one))


def unlike_zeros(shape, dtype=float, **options):
    made = np.zeros(shape, dtype, **options)
    made.fill(np.nan if made.dtype.kind == "f" else 1)
    return made


def run_beside_nothing(stencil, monkeypatch):
    """Run a stencil of GT4Py, to which memory that nobody has written is NaN."""
    inp, out = np.full((9, 9, 4), 5.0), np.zeros((9, 9, 4))
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", unlike_zeros)
        stencil(inp, out, origin=(3, 3, 0), domain=(3, 3, 4))
    return out


@pytest.mark.parametrize(("definition", "backend"), LEFT_OUT, ids=ids)
def test_bind_refuses_a_stencil_that_reads_what_its_backend_does_not_compute(definition, backend):
    stencil = compiled(definition, backend)
    with pytest.raises(ValueError, match=rf"wherever it is read.* got '{backend}', which computes"):
        dlf.bind(stencil)


@pytest.mark.parametrize(
    ("definition", "backend", "right"),
    [
        (joined, "numpy", [5.0, 15.0, 5.0, 5.0]),
        (joined, "dace:cpu", [5.0, 15.0, 5.0, 5.0]),
        (joined_downwards, "numpy", [5.0, 5.0, 5.0, 5.0]),
        (carried, "numpy", [5.0, 15.0, 5.0, 5.0]),
        (carried_in_a_plane, "numpy", [5.0, 15.0, 5.0, 5.0]),
        (in_two_steps, "gt:cpu_kfirst", [5.0, 15.0, 25.0, 25.0]),
        (at_other_points, "debug", [5.0, 15.0, 5.0, 5.0]),
        (at_other_points, "gt:cpu_kfirst", [5.0, 15.0, 5.0, 5.0]),
        (ahead_at_other_points, "debug", [15.0, 15.0, 15.0, 5.0]),
        (ahead_at_other_points, "gt:cpu_kfirst", [15.0, 15.0, 15.0, 5.0]),
        (dropped, "numpy", [16.0, 16.0, 15.0, 15.0]),
        (dropped, "dace:cpu", [16.0, 16.0, 15.0, 15.0]),
        (dropped, "gt:cpu_kfirst", [16.0, 16.0, 15.0, 15.0]),
        (updated, "numpy", [20.0, 20.0, 20.0, 20.0]),
        (limited, "numpy", [20.0, 20.0, 20.0, 20.0]),
    ],
    ids=ids,
)
def test_what_bind_refuses_is_wrong_in_gt4py(definition, backend, right, monkeypatch):
    out = run_beside_nothing(compiled(definition, backend), monkeypatch)
    assert not np.array_equal(out[3:6, 3:6], np.broadcast_to(right, (3, 3, 4)))


@pytest.mark.parametrize(
    ("definition", "line"), [(at_other_points, 6), (ahead_at_other_points, 7)], ids=ids
)
@pytest.mark.parametrize("backend", ["debug", "gt:cpu_kfirst"])
def test_bind_refuses_a_stencil_whose_loop_is_not_computed_level_by_level(
    definition, line, backend
):
    text = rf"one level after the other, got '{backend}', which computes 'found' \(line {line}\)"
    with pytest.raises(ValueError, match=text):
        dlf.bind(compiled(definition, backend))


@pytest.mark.parametrize(
    ("definition", "written", "backend"),
    [
        (dropped, r"'tripled' \(line 3\)", "numpy"),
        (dropped, r"'tripled' \(line 3\)", "dace:cpu"),
        (dropped, r"'tripled' \(line 3\)", "gt:cpu_kfirst"),
        (updated, r"'flux' \(line 5\)", "numpy"),
        (limited, r"'flux' \(line 6\)", "numpy"),
    ],
    ids=ids,
)
def test_bind_refuses_a_stencil_whose_backend_drops_what_is_read(definition, written, backend):
    text = rf"keeps {written} for all that reads it, got '{backend}', which computes it anew"
    with pytest.raises(ValueError, match=text):
        dlf.bind(compiled(definition, backend))


def test_bind_refuses_a_stencil_whose_backend_writes_outside_of_the_domain(monkeypatch):
    stencil = compiled(reused, "gt:cpu_kfirst")
    text = r"writes 'out' \(line 8\) in the domain, got 'gt:cpu_kfirst', which also writes 0 and 1"
    with pytest.raises(ValueError, match=text):
        dlf.bind(stencil)
    assert run_beside_nothing(stencil, monkeypatch)[6, 3, 0] != 0.0  # the domain is 3 to 5


def test_an_array_that_numpy_slices_beside_the_domain_has_those_points():
    run = dlf.bind(compiled(widened_by_another_level, "numpy"))
    assert run.declaration.reach()["I"] == (0, 1)


@pytest.mark.parametrize(("definition", "backend"), COMPUTED, ids=ids)
def test_bind_takes_a_stencil_whose_backend_computes_what_is_read(definition, backend):
    dlf.bind(compiled(definition, backend))


@pytest.mark.parametrize(
    ("definition", "right"),
    [
        (other_levels, [0.0, 5.0, 5.0, 5.0]),
        (written_again, [11.0, 11.0, 11.0, 11.0]),
        (accumulated, [0.0, 0.0, 0.0, 0.0]),
        (read_ahead, [20.0, 20.0, 20.0, 20.0]),
        (reused, [15.0, 15.0, 15.0, 15.0]),
        (at_other_points, [5.0, 15.0, 5.0, 5.0]),
        (ahead_at_other_points, [15.0, 15.0, 15.0, 5.0]),
        (kept, [16.0, 16.0, 15.0, 15.0]),
        (merged, [16.0, 16.0, 15.0, 15.0]),
        (one_of_two, [20.0, 20.0, 20.0, 20.0]),
        (limited_at_once, [20.0, 20.0, 20.0, 20.0]),
    ],
    ids=ids,
)
def test_what_bind_takes_is_right_beside_memory_that_nobody_has_written(
    definition, right, monkeypatch
):
    out = run_beside_nothing(compiled(definition, "numpy"), monkeypatch)
    np.testing.assert_array_equal(out[3:6, 3:6], np.broadcast_to(right, (3, 3, 4)))
    assert out.sum() == out[3:6, 3:6].sum()


class OwnPasses:
    """The usual passes, by a class of one's own."""

    def run(self, oir):
        return DefaultPipeline().run(oir)


def test_passes_of_a_class_of_ones_own_that_drop_a_value_are_known():
    stencil = compiled(limited, "numpy")
    builder = internals._builder_of(stencil)
    builder.options.backend_opts["oir_pipeline"] = OwnPasses()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internals, "_builder_of", lambda _: builder)
        assert perhaps_lost(internals.merged(stencil)) is not None


def test_what_a_block_changes_itself_is_known_without_the_passes_that_take_long(monkeypatch):
    monkeypatch.setattr(declare, "stages_of", lambda _: pytest.fail("ran all passes"))
    dlf.bind(compiled(limited_at_once, "numpy"))


def test_the_error_names_the_variable_its_line_the_points_and_what_to_do():
    text = (
        r"'joined': expected a backend that computes 'below' \(line 5\) wherever it is read, "
        r"0 and 1 points beside the domain along I, 0 and 0 along J, got 'numpy', which computes "
        r"only 0 and 0 points beside the domain along I, 0 and 0 along J, and beyond them reads "
        r"whatever the memory holds; compile it for 'gt:cpu_kfirst' or 'gt:cpu_ifirst'"
    )
    with pytest.raises(ValueError, match=text):
        dlf.bind(compiled(joined, "numpy"))


def test_loops_that_passes_of_ones_own_keep_apart_are_bound():
    kept = DefaultPipeline(skip=[AdjacentLoopMerging])
    run = dlf.bind(compiled(joined, "numpy", oir_pipeline=kept))
    inp = np.arange(60.0).reshape(5, 4, 3)
    out = np.zeros((4, 4, 3))
    run(inp, out, origin={"_all_": (0, 0, 0)}, domain=(4, 4, 3))
    np.testing.assert_array_equal(out[..., 1], 3.0 * inp[1:, :, 0])


def test_loops_that_the_usual_passes_join_are_refused_also_where_they_are_named():
    with pytest.raises(ValueError, match="wherever it is read"):
        dlf.bind(compiled(joined, "numpy", oir_pipeline=DefaultPipeline()))


def test_a_compiled_backend_reads_as_far_as_bind_says():
    run = dlf.bind(compiled(carried, "gt:cpu_kfirst"))
    assert run.declaration.reach()["I"] == (0, 2)
    inp = np.random.default_rng(0).random((7, 4, 5))
    out = np.zeros((5, 4, 5))
    run(inp, out, origin={"_all_": (0, 0, 0)}, domain=(5, 4, 5))
    np.testing.assert_array_equal(out[..., 2:], inp[2:, :, 1:-1])


@pytest.mark.parametrize(
    "definition", [carried, written_again, accumulated, read_ahead, in_two_steps, reused], ids=ids
)
def test_points_of_blocks_are_those_of_gt4py_where_it_joins_nothing(definition):
    found = representation_of_definition(definition)
    assert computed(found, joins=False) == told(found)


@pytest.mark.parametrize(
    ("backend", "joins"),
    [("numpy", True), ("dace:cpu", True), ("dace:gpu", True), ("debug", False), ("gt:gpu", None)],
)
def test_numpy_and_dace_join_loops(backend, joins):
    assert joins_loops(backend) is joins


def test_the_checker_has_a_finding_for_it():
    stencil = compiled(joined, "numpy")
    inp, out = np.zeros((6, 4, 3)), np.zeros((6, 4, 3))
    with (
        pytest.warns(dlf.RefusedCallWarning, match="'below'"),
        dlf.checking(summary=False) as found,
    ):
        stencil(inp, out, origin=(0, 0, 0), domain=(4, 4, 3))
    assert len(found.findings) == 1
