"""`explain` of a bound stencil: what a call would do with its arguments, without doing it."""

import functools
import tracemalloc

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, Access, Axes, Boundary, Field

from support.dlpack_structs import Producer
from support.gt_objects import Synchronised
from support.no_driver import without_driver
from support.owners import tracked
from support.processes import run_in_subprocess
from support.stencils.stand_ins import GpuStandIn, StagingStandIn
from support.stencils.stand_ins import field as declared

SHAPE = (5, 4, 3)
VALUES = np.arange(60.0).reshape(SHAPE)

AROUND = Field[np.float64, Access["in"], Boundary[((1, 1), (0, 0), (0, 0))]]
WRITTEN = Field[np.float64, Access["out"]]
PLANE = Field[IJ, np.float64, Access["in"]]
ON_CELLS = Field[Axes["Cell", "K"], np.float64]


def difference(inp: AROUND, out: WRITTEN, *, scale: float = 1.0, origin, domain):
    raise AssertionError("explained, and run")


RUN = dlf.bind(difference)
PLACE = {"origin": (1, 0, 0), "domain": (3, 4, 3)}


def said(run, *args, **keywords):
    """Return the first line that is printed, and the others by the name that they begin with."""
    first, *lines = str(dlf.explain(run, *args, **keywords)).splitlines()
    return first, dict(line.strip().split(": ", 1) for line in lines)


def column(shape=SHAPE):
    """Return a column of a table: its strides are no multiple of its items."""
    return np.zeros(shape, [("value", "f8"), ("flag", "i4")])["value"]


# --- a call that would run ---------------------------------------------------------------------


def test_the_domain_is_said_by_axis():
    first, _ = said(RUN, VALUES, VALUES.copy(), **PLACE)
    assert (
        first
        == "<dlfield.bind(difference) of (inp, out, scale)>: domain I=3, J=4, K=3, bounds checked"
    )


def test_the_domain_of_halos_is_said_as_a_call_would_find_it():
    first, lines = said(RUN, dlf.as_storage(VALUES, dims="IJK", halo=(1, 1, 0)), np.zeros(SHAPE))
    assert first.endswith("domain I=3, J=2, K=3, bounds checked")
    assert "origin (1, 1, 0)" in lines["out"]


def test_each_field_has_a_line_with_access_door_shape_origin_and_copies():
    _, lines = said(RUN, VALUES, dlf.zeros(SHAPE), **PLACE)
    assert lines == {
        "inp": "read, through buffer, shape (5, 4, 3) as IJK, axes as they are, origin (1, 0, 0), "
        "not copied",
        "out": "write, through a storage of dlfield's own memory, shape (5, 4, 3) as IJK, axes as "
        "they are, origin (1, 0, 0), not copied",
    }


def test_the_door_is_that_of_each_argument():
    _, lines = said(RUN, Producer(VALUES.shape), np.zeros(SHAPE), **PLACE)
    assert "through dlpack" in lines["inp"]


def test_a_field_whose_axes_are_in_another_order_is_transposed():
    _, lines = said(RUN, dlf.as_storage(VALUES.T, dims="KJI"), np.zeros(SHAPE), **PLACE)
    assert "shape (3, 4, 5) as KJI, axes transposed by (2, 1, 0) to IJK" in lines["inp"]


def test_names_are_those_of_the_stencil():
    run = dlf.bind(difference, dims={"lon": "I", "lat": "J", "level": "K"})
    inp = dlf.as_storage(VALUES.T, dims=("level", "lat", "lon"))
    assert "as KJI, " in said(run, inp, np.zeros(SHAPE), **PLACE)[1]["inp"]


def test_names_of_several_letters_are_told_apart():
    def look(cells: ON_CELLS):
        pass

    first, lines = said(dlf.bind(look), np.zeros((7, 2)))
    assert first.endswith("domain Cell=7, K=2, bounds checked")
    assert "as Cell, K, " in lines["cells"]


def test_a_field_of_fewer_dimensions_has_an_origin_along_its_own():
    def spread(plane: PLANE, out: WRITTEN, *, origin, domain):
        pass

    _, lines = said(dlf.bind(spread), VALUES[..., 0], np.zeros(SHAPE), **PLACE)
    assert "shape (5, 4) as IJ" in lines["plane"]
    assert "origin (1, 0)" in lines["plane"]


def test_a_field_that_would_be_copied_comes_with_the_reason():
    run = dlf.bind(difference, on_mismatch="copy")
    misaligned = np.zeros(60 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(SHAPE)
    _, lines = said(run, misaligned, np.zeros(SHAPE), **PLACE)
    assert ", copied: expected items aligned to 8 bytes, got ones" in lines["inp"]
    assert lines["out"].endswith(", not copied")


def test_a_field_that_no_stride_in_elements_describes_would_be_copied():
    run = dlf.bind(difference, on_mismatch="copy")
    _, lines = said(run, column(), np.zeros(SHAPE), **PLACE)
    assert ", copied: stride of axis 1: expected a multiple of the item size 8" in lines["inp"]


def test_a_layout_that_is_slow_has_a_line_with_what_is_fast():
    run = dlf.bind(difference, backend="gt:cpu_ifirst")
    _, lines = said(run, VALUES, dlf.zeros(SHAPE, backend="gt:cpu_ifirst"), **PLACE)
    assert (
        "'inp': expected memory in the order ('K', 'J', 'I'), largest stride first, with which"
        in (lines["slow"])
    )


def test_a_layout_that_is_slow_warns_in_a_call_and_not_here(recwarn):
    run = dlf.bind(difference, backend="gt:cpu_ifirst")
    assert dlf.explain(run, VALUES, VALUES.copy(), **PLACE).plan.slow
    assert not recwarn.list


def test_a_field_that_the_stencil_does_not_use_need_not_be_given():
    stencil = GpuStandIn(inp=declared("NONE"), out=declared("NONE"))
    assert said(dlf.bind(stencil))[1] == {"inp": "unused, not given", "out": "unused, not given"}


def test_what_is_printed_is_there_as_numbers():
    plan = dlf.explain(RUN, VALUES, dlf.zeros(SHAPE), **PLACE).plan
    assert (plan.axes, plan.domain) == (("I", "J", "K"), (3, 4, 3))
    inp = plan.fields["inp"].given
    assert (inp.shape, inp.strides, inp.origin) == (SHAPE, (12, 3, 1), (1, 0, 0))
    assert (inp.door, inp.dims, inp.axes, inp.copy) == ("buffer", None, (0, 1, 2), None)


def test_times_that_a_call_asks_for_change_nothing():
    assert dlf.explain(RUN, VALUES, np.zeros(SHAPE), exec_info={}, **PLACE).refusal is None


def test_a_field_may_have_the_name_of_an_argument_of_explain():
    def look(data: WRITTEN, backend: WRITTEN):
        pass

    run = dlf.bind(look)
    assert set(said(run, data=np.zeros(SHAPE), backend=np.zeros(SHAPE))[1]) == {"data", "backend"}


# --- a call that would be refused --------------------------------------------------------------

REFUSED = {
    "bounds": ((VALUES, np.zeros(SHAPE)), {}, ValueError, "expected points -1 to 5"),
    "dtype": ((VALUES.astype("f4"), np.zeros(SHAPE)), {}, ValueError, "expected dtype float64"),
    "no array": (([1.0], np.zeros(SHAPE)), {}, TypeError, "got an object of type 'list'"),
    "missing": ((VALUES,), PLACE, TypeError, "expected an argument 'out', got none"),
    "unknown": ((VALUES,), {"colour": 1}, TypeError, "got 'colour'"),
    "scalar": ((VALUES, np.zeros(SHAPE)), {"scale": "2"}, ValueError, "a scalar of float64"),
    "overlap": ((VALUES, VALUES), PLACE, BufferError, "got arrays that overlap"),
    "origin": ((VALUES, np.zeros(SHAPE)), {"origin": (1,)}, ValueError, "expected 3 numbers"),
    "memory": ((column(), np.zeros(SHAPE)), PLACE, BufferError, 'on_mismatch={"memory": "copy"}'),
}


@pytest.mark.parametrize(("args", "keywords", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_a_call_that_would_be_refused_is_explained_by_its_error(args, keywords, error, text):
    explanation = dlf.explain(RUN, *args, **keywords)
    assert explanation.plan is None
    assert text in str(explanation)
    assert f": refused\n  {error.__name__}: " in str(explanation)
    with pytest.raises(error) as caught:
        RUN(*args, **keywords)
    assert str(caught.value) == str(explanation.refusal)


def test_what_a_producer_raises_is_the_answer():
    class Broken(Producer):
        def __dlpack__(self, **_keywords):
            raise RuntimeError("no memory today")

    assert "RuntimeError: no memory today" in str(dlf.explain(RUN, Broken(), np.zeros(SHAPE)))


def test_halos_that_contradict_are_shown_as_the_table_of_the_error():
    inp, out = (dlf.zeros(SHAPE, dims="IJK", halo=(width, 0, 0)) for width in (1, 2))
    assert str(dlf.explain(RUN, inp, out)).splitlines()[2:] == [
        "  field  I               J  K",
        "  inp    5, halo (1, 1)  4  3",
        "  out    5, halo (2, 2)  4  3",
    ]


@without_driver
def test_a_copy_to_a_device_that_nobody_can_make_is_explained_as_refused():
    fields = {"inp": declared("READ"), "out": declared("WRITE")}
    run = dlf.bind(GpuStandIn(**fields), on_mismatch="copy")
    with pytest.raises(dlf.DeviceUnavailable):
        run(VALUES, np.zeros(SHAPE))
    assert isinstance(dlf.explain(run, VALUES, np.zeros(SHAPE)).refusal, dlf.DeviceUnavailable)


# --- nothing happens ---------------------------------------------------------------------------


def test_nothing_is_run():
    out = np.full(SHAPE, -1.0)
    assert dlf.explain(RUN, VALUES, out, **PLACE).refusal is None
    assert (out == -1.0).all()


def test_nothing_is_acquired_touched_or_released():
    inp, out = Synchronised(SHAPE), Synchronised(SHAPE)
    assert dlf.explain(RUN, inp, out, **PLACE).refusal is None
    assert inp.told == out.told == []


def test_nothing_is_copied_to_a_device():
    stencil = StagingStandIn(inp=declared("READ"), out=declared("WRITE"))
    _, lines = said(dlf.bind(stencil, on_mismatch="copy"), VALUES, np.zeros(SHAPE))
    assert "copied: expected memory of a GPU, got cpu" in lines["inp"]
    assert stencil.made == []


def test_an_object_like_a_stencil_is_explained_where_gt4py_is_not_installed():
    printed = run_in_subprocess("""
        import sys

        sys.modules["gt4py"] = None

        import dlfield as dlf
        import numpy as np
        from support.stencils.stand_ins import StandIn, field

        run = dlf.bind(StandIn(inp=field("READ"), out=field("WRITE")))
        print(dlf.explain(run, np.zeros((5, 4, 3)), np.zeros((5, 4, 3))))
    """)
    assert "out: " in printed


def allocated(call):
    """Return the most bytes that NumPy held at once for a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_nothing_is_copied_because_of_how_it_lies():
    run = dlf.bind(difference, on_mismatch="copy")
    misaligned = np.zeros(1_000_000 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(100, 100, 100)
    out = np.zeros((100, 100, 100))
    place = {"origin": (1, 0, 0), "domain": (98, 100, 100)}
    assert allocated(lambda: dlf.explain(run, misaligned, out, **place)) < 1_000_000


def test_no_page_is_written_because_no_stride_describes_an_argument():
    run_in_subprocess(
        """
        import resource
        import dlfield as dlf, numpy as np
        from dlfield.annotations import Access, Field

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        run = dlf.bind(lambda inp: None, fields={"inp": Field[float]}, on_mismatch="copy")
        column = np.zeros((200, 200, 200), "u1,f8")["f1"]
        column[...] = 1.0
        dlf.explain(run, column[:2, :2])
        before = peak()
        assert "copied" in str(dlf.explain(run, column))
        assert peak() - before < 8 * 1024, "KiB; the values take 64 MiB"
        """
    )


def test_an_explanation_keeps_no_argument():
    array, watch = tracked(VALUES)
    explanation = dlf.explain(RUN, array, np.zeros(SHAPE), **PLACE)
    del array
    assert watch.freed
    assert explanation.plan.domain == (3, 4, 3)


# --- wrong use ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "keywords", "got"),
    [((1,), {}, "a further argument"), ((), {"out": 1}, "out"), ((), {"origin": 0}, "origin")],
)
def test_an_array_is_explained_alone(args, keywords, got):
    said = f"explain: expected an array alone, or a bound stencil, got {got}"
    with pytest.raises(TypeError, match=said):
        dlf.explain(VALUES, *args, **keywords)


def test_a_stencil_that_is_not_bound_is_explained_as_no_array():
    assert dlf.explain(difference).storage is None


def test_a_preset_to_compare_with_is_no_argument_of_a_stencil():
    explanation = dlf.explain(RUN, VALUES, np.zeros(SHAPE), backend="numpy")
    assert "got 'backend'" in str(explanation.refusal)


def test_a_call_whose_outputs_are_to_be_made_is_explained_too():
    told = dlf.explain(RUN, VALUES, functional=True, **PLACE)
    assert told.refusal is None
    assert "out: write, not given" in " ".join(str(told).split())
    assert isinstance(dlf.explain(RUN, VALUES, **PLACE).refusal, TypeError)


def test_a_halo_and_a_framework_of_a_functional_call_are_options_here_too():
    told = dlf.explain(RUN, VALUES, functional=True, halo={"I": 1}, like="torch")
    assert told.refusal is None
    assert (told.plan.domain, told.plan.fields["inp"].given.origin) == ((3, 4, 3), (1, 0, 0))


def test_a_partial_tells_a_functional_call_where_to_compute():
    run = dlf.bind(functools.partial(difference, **PLACE))
    assert dlf.explain(run, VALUES, functional=True).plan.domain == (3, 4, 3)
