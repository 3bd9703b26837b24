"""Levels that a stencil reaches and GT4Py does not tell: read from its own representation."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.cartesian")

from dlfield.stencils.cartesian.declare import declare  # noqa: E402 (after the skip)


def levels(n):
    return np.arange(4.0 * n).reshape(2, 2, n)


def untouched(n):
    return np.full((2, 2, n), -1.0)


@pytest.mark.parametrize("above", [0, 3])
def test_a_level_that_an_interval_reads_past_the_next_one_must_exist(compiled, backend, above):
    run, out = dlf.bind(compiled("far_above", backend)), untouched(3)
    with refused(ValueError, "argument 'inp'", "points 2 to 7 along K", f"got 0 to {3 + above}"):
        run(levels(3 + above), out, domain=(2, 2, 3))
    assert (out == -1.0).all()


def test_a_field_that_has_all_levels_past_an_interval_is_taken(compiled, backend):
    inp, out = levels(7), untouched(3)
    dlf.bind(compiled("far_above", backend))(inp, out)
    np.testing.assert_array_equal(out, inp[..., [5, 6, 2]])


def test_levels_inside_of_a_deep_domain_ask_for_no_more(compiled, backend):
    inp, out = levels(9), untouched(9)
    dlf.bind(compiled("far_above", backend))(inp, out)
    np.testing.assert_array_equal(out, inp[..., [5, 6, *range(2, 9)]])


def test_a_level_that_an_interval_reads_below_the_one_before_must_exist(compiled, backend):
    run, out = dlf.bind(compiled("far_below", backend)), untouched(3)
    with refused(ValueError, "argument 'inp'", "points -4 to 1 along K", "got -3 to 3"):
        run(levels(6), out, domain=(2, 2, 3), origin={"inp": (0, 0, 3), "out": (0, 0, 0)})
    assert (out == -1.0).all()
    run(levels(7), out, domain=(2, 2, 3), origin={"inp": (0, 0, 4), "out": (0, 0, 0)})
    np.testing.assert_array_equal(out, levels(7)[..., [4, 0, 1]])


def test_levels_of_a_temporary_field_that_a_shallow_domain_does_not_have_are_refused(
    compiled, backend
):
    run, out = dlf.bind(compiled("far_above_in_temporary", backend)), untouched(4)
    with refused(ValueError, "domain of", "at least 5 points along K, got 4"):
        run(levels(4), out)
    assert (out == -1.0).all()
    deep = untouched(5)
    run(levels(5), deep)
    np.testing.assert_array_equal(deep, levels(5)[..., [4, 1, 2, 3, 4]])


def test_a_domain_without_points_asks_for_no_levels(compiled, backend):
    dlf.bind(compiled("far_above", backend))(np.zeros((0, 2, 3)), np.zeros((0, 2, 3)))


@pytest.mark.parametrize(("shape", "name"), [((3, 4, 1), "I"), ((4, 2, 1), "J")])
def test_points_that_a_region_reads_past_the_other_end_of_the_domain_must_exist(
    compiled, backend, shape, name
):
    out = np.full(shape, -1.0)
    with refused(ValueError, "argument 'inp'", f"along {name}, which 'across_the_domain' reads"):
        dlf.bind(compiled("across_the_domain", backend))(np.ones(shape), out)
    assert (out == -1.0).all()


def test_points_that_a_region_reads_inside_of_a_large_domain_ask_for_no_halo(compiled, backend):
    inp, out = np.arange(16.0).reshape(4, 4, 1), np.zeros((4, 4, 1))
    dlf.bind(compiled("across_the_domain", backend))(inp, out)
    expected = inp.copy()
    expected[0], expected[:, -1] = inp[3], inp[:, 0]
    np.testing.assert_array_equal(out, expected)


def test_a_domain_smaller_than_a_region_is_refused_where_gt4py_writes_outside_of_it(compiled):
    inp, out = np.ones((7, 1, 1)), np.full((7, 1, 1), -1.0)
    run = dlf.bind(compiled("east_of_edge", "numpy"))
    with refused(ValueError, "domain of 'east_of_edge'", "at least 3 points along I", "got 2"):
        run(inp, out, domain=(2, 1, 1), origin=(1, 0, 0))
    assert (out == -1.0).all()
    run(inp, out, domain=(3, 1, 1), origin=(1, 0, 0))
    assert (out[1:4] == 2.0).all()


def test_a_region_is_not_widened_by_what_nothing_uses(compiled):
    inp, out = np.ones((7, 1, 1)), np.full((7, 1, 1), -1.0)
    run = dlf.bind(compiled("unused_beside", "numpy"))
    with refused(ValueError, "domain of 'unused_beside'", "at least 3 points along I", "got 2"):
        run(inp, out, domain=(2, 1, 1))
    assert (out == -1.0).all()
    with pytest.raises(ValueError, match="could not broadcast"):
        compiled("unused_beside", "numpy")(inp, out, domain=(2, 1, 1))
    run(inp, out, domain=(4, 1, 1))
    np.testing.assert_array_equal(out[:5, 0, 0], [2.0, 2.0, 2.0, 0.5, -1.0])


@pytest.mark.parametrize("backend", ["debug", "gt:cpu_kfirst"])
def test_a_domain_smaller_than_a_region_asks_for_the_points_of_the_domain(compiled, backend):
    inp, out = np.arange(3.0).reshape(3, 1, 1), np.zeros((2, 1, 1))
    run = dlf.bind(compiled("east_of_edge", backend))
    run(inp, out, domain=(2, 1, 1))
    np.testing.assert_array_equal(out[:, 0, 0], [2.0, 4.0])
    with refused(ValueError, "argument 'inp'", "points 0 to 3 along I", "got 0 to 2"):
        run(inp[:2], out, domain=(2, 1, 1))


def test_a_region_that_reads_where_it_writes_may_be_computed_in_place(compiled, backend):
    field = np.ones((3, 1, 1))
    dlf.bind(compiled("doubled_edge", backend))(field, field)
    np.testing.assert_array_equal(field[:, 0, 0], [2.0, 2.0, 1.0])


def test_a_region_outside_of_every_domain_asks_for_no_levels(compiled):
    out = untouched(2)
    dlf.bind(compiled("pruned_level", "numpy"))(levels(2), out)
    np.testing.assert_array_equal(out, levels(2))


def test_levels_that_numpy_slices_for_a_region_without_points_must_exist(compiled):
    out = untouched(2)
    run = dlf.bind(compiled("sliced_level", "numpy"))
    with refused(ValueError, "argument 'inp'", "-1 to 2 along K, which 'sliced_level' reads"):
        run(levels(2), out)
    np.testing.assert_array_equal(out, untouched(2))
    with pytest.raises(ValueError, match="could not broadcast"):
        compiled("sliced_level", "numpy")(levels(2), out)
    out = untouched(3)
    run(levels(3), out)
    np.testing.assert_array_equal(out, levels(3))


@pytest.mark.parametrize("backend", ["debug", "gt:cpu_kfirst"])
def test_a_region_without_points_asks_for_no_levels_where_gt4py_asks_for_each_point(
    compiled, backend
):
    out = untouched(2)
    dlf.bind(compiled("sliced_level", backend))(levels(2), out)
    np.testing.assert_array_equal(out, levels(2))


def test_explain_tells_what_a_call_reads_and_where_it_may_read_more(compiled, backend):
    run = dlf.bind(compiled("gathered", backend))
    explanation = dlf.explain(run, levels(3), untouched(3), np.zeros((2, 2, 3), np.int32))
    plan, lines = explanation.plan, str(explanation).splitlines()
    assert plan.checked == "partly checked"
    assert [name for name, field in plan.fields.items() if not field.complete] == ["inp"]
    assert plan.fields["shift"].reads == plan.fields["out"].writes == ((0, 2), (0, 2), (0, 3))
    assert [line for line in lines if "footprint incomplete" in line] == [
        line for line in lines if line.startswith("  inp:")
    ]


def test_a_field_that_is_not_gathered_may_be_written_where_it_is_read(compiled, backend):
    """Only `inp` is read at levels of run time; `shift` is read where `out` is written."""
    inp, shift = np.arange(12, dtype=np.int32).reshape(2, 2, 3), np.zeros((2, 2, 3), np.int32)
    dlf.bind(compiled("gathered_ints", backend))(inp, shift, shift)
    np.testing.assert_array_equal(shift, inp)


def unread(stencil):
    """Return a stencil of the same code whose definition cannot be had, as of a foreign one."""
    kind = type(stencil)
    return type(kind.__name__, (kind,), {"definition_func": None, "_instance": None})()


def test_a_stencil_without_its_definition_computes_between_separate_fields(compiled):
    run = dlf.bind(unread(compiled("split", "numpy")))
    left, right = untouched(3), untouched(3)
    run(levels(3), left, right)
    np.testing.assert_array_equal(right, levels(3) - 1.0)
    plan = dlf.explain(run, levels(3), left, right).plan
    assert (plan.checked, plan.fields["inp"].complete) == ("partly checked", False)


def test_a_stencil_without_its_definition_does_not_compute_in_place(compiled):
    field, spare = levels(3), untouched(3)
    with refused(BufferError, "arguments 'inp' and 'left'", "arrays that overlap"):
        dlf.bind(unread(compiled("split", "numpy")))(field, field, spare)
    dlf.bind(compiled("split", "numpy"))(field, field, spare)


def test_a_definition_that_was_compiled_again_with_other_externals_is_not_believed():
    gtscript = library("gt4py.cartesian.gtscript")
    from support.stencils.cartesian import by_external

    five = gtscript.stencil(backend="numpy", definition=by_external, externals={"LEVELS": 5})
    seven = gtscript.stencil(backend="numpy", definition=by_external, externals={"LEVELS": 7})
    assert declare(seven).footprint.fields["inp"].reads[2].above_start == 8
    assert declare(seven).checked == "checked"
    assert not declare(five).footprint.fields["inp"].complete
    assert declare(five).checked == "partly checked"
