"""Inputs that share memory with outputs: where GT4Py does not say how far a field is read."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused

SHAPE = (3, 2, 6)
VALUES = np.arange(36.0).reshape(SHAPE)
SHIFTS = np.full(SHAPE, -1, np.int32)


def shift_down():
    shifts = SHIFTS.copy()
    shifts[..., 0] = 0
    return shifts


AT_RUN_TIME = ("gathered", "gathered_in_function", "gathered_in_condition")


@pytest.mark.parametrize("name", AT_RUN_TIME)
@pytest.mark.parametrize("rows", [slice(0, 3), slice(1, 4)], ids=["same", "shifted"])
def test_an_input_read_at_indices_of_run_time_must_not_share_memory_with_an_output(
    compiled, backend, name, rows
):
    run = dlf.bind(compiled(name, backend))
    memory = np.zeros((4, 2, 6))
    with refused(BufferError, "arguments 'inp' and 'out'", "arrays that overlap", "pass a copy"):
        run(memory[:3], memory[rows], shift_down())
    assert not memory.any()


@pytest.mark.parametrize("name", AT_RUN_TIME)
def test_an_input_read_at_indices_of_run_time_may_lie_apart_from_the_output(
    compiled, backend, name
):
    out = np.zeros(SHAPE)
    dlf.bind(compiled(name, backend))(VALUES, out, shift_down())
    expected = np.concatenate([VALUES[..., :1], VALUES[..., :-1]], axis=2)
    np.testing.assert_array_equal(out, expected)


def test_a_call_in_place_that_reads_around_a_point_is_refused_with_the_reach(compiled, backend):
    field = np.zeros((5, 6, 2))
    text = (
        "got arrays that overlap, 'inp' is read with a reach of 1 along I, 2 along J; pass a copy"
    )
    with refused(BufferError, "arguments 'inp' and 'out'", text):
        dlf.bind(compiled("skewed", backend))(field, field, origin=(0, 2, 0), domain=(4, 4, 2))


@pytest.mark.filterwarnings("ignore:Absolute indexing:UserWarning")
def test_levels_that_are_numbered_from_the_bottom_must_not_share_memory_with_an_output(compiled):
    field = VALUES.copy()
    with refused(BufferError, "arguments 'inp' and 'out'", "arrays that overlap"):
        dlf.bind(compiled("from_level_two", "debug"))(field, field)


@pytest.mark.parametrize("name", ["scaled_at_constants", "component"])
def test_constants_and_data_dimensions_in_brackets_leave_a_call_in_place(compiled, backend, name):
    shape = (*SHAPE, 2) if name == "component" else SHAPE
    field = np.ones(shape)
    dlf.bind(compiled(name, backend))(field, field, 0)
    assert (field == 2.0).any()


@pytest.mark.parametrize("name", ["doubled_edge", "doubled_until"])
def test_a_stencil_that_computes_each_point_from_itself_may_run_in_place(compiled, backend, name):
    field, apart = VALUES + 1.0, np.zeros(SHAPE)
    run = dlf.bind(compiled(name, backend))
    scalars = {"limit": 9.0} if name == "doubled_until" else {}
    run(field, apart, **scalars)
    run(field, field, **scalars)
    np.testing.assert_array_equal(field, apart)


def test_an_input_that_is_read_after_an_output_was_written_must_not_be_one_memory_with_it(
    compiled, backend
):
    run = dlf.bind(compiled("raised_then_doubled", backend))
    field, other = VALUES.copy(), np.zeros(SHAPE)
    with refused(BufferError, "arguments 'inp' and 'raised'", "arrays that overlap"):
        run(field, field, other)
    run(field, other, field)
    np.testing.assert_array_equal(other, VALUES + 100.0)
    np.testing.assert_array_equal(field, 2.0 * VALUES)


def test_levels_that_lie_apart_may_be_written_before_others_are_read(compiled, backend):
    field, doubled = VALUES.copy(), np.zeros(SHAPE)
    dlf.bind(compiled("raised_below_doubled_above", backend))(field, field, doubled)
    np.testing.assert_array_equal(field[..., :2], VALUES[..., :2] + 100.0)
    np.testing.assert_array_equal(doubled[..., 2:], 2.0 * VALUES[..., 2:])


def test_a_plane_that_is_read_at_a_level_above_must_not_be_one_memory_with_what_was_written(
    compiled, backend
):
    plane = np.ones(SHAPE[:2])
    with refused(BufferError, "arguments 'plane' and 'out'", "arrays that overlap"):
        dlf.bind(compiled("plane_below_and_above", backend))(plane, plane, VALUES.copy())


@pytest.mark.parametrize("name", ["smoothed", "lowered"])
def test_a_temporary_field_that_carries_a_value_elsewhere_keeps_memory_apart(
    compiled, backend, name
):
    field = np.ones((5, 5, 6))
    with refused(BufferError, "arguments 'inp' and 'out'", "arrays that overlap"):
        dlf.bind(compiled(name, backend))(field, field, origin=(1, 0, 0), domain=(3, 3, 6))
    assert (field == 1.0).all()
