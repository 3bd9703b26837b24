"""Outputs of gt4py.cartesian that are read at points where no statement has written them before."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    BACKWARD,
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    I,
    computation,
    horizontal,
    interval,
    region,
    stencil,
)

from support.derived import checked  # noqa: E402

# ruff: noqa: F841

F = Field[np.float64]
V = Field[(np.float64, (2,))]
P = Field[IJ, np.float64]
BACKENDS = ["numpy", "debug"]


def squared_above(a: F, b: F):
    with computation(PARALLEL):
        with interval(0, 1):
            b = a
        with interval(1, None):
            b = a + b * b


def level_above(a: F, b: F, o: F):
    with computation(PARALLEL), interval(0, -1):
        b = a
    with computation(PARALLEL), interval(0, -1):
        o = a * b[0, 0, 1]
    with computation(PARALLEL), interval(-1, None):
        o = a


def twice_above(a: F, b: F):
    with computation(FORWARD), interval(0, 1):
        b = a
    with computation(FORWARD), interval(1, None):
        if a > 0.9:
            b = b * a
            b = b + a


def behind_a_condition(a: F, b: F):
    with computation(PARALLEL), interval(...):
        if a > 0.5:
            b = a
    with computation(PARALLEL), interval(...):
        b = b * a


def in_a_second_condition(a: F, b: F):
    with computation(PARALLEL), interval(...):
        if a > 0.5:
            b = a
        if a > 0.2:
            b = b * b


def behind_a_row(a: F, b: F):
    with computation(PARALLEL), interval(...):
        with horizontal(region[I[0], :]):
            b = a
        b = b * a


def behind_another_component(a: F, b: V, c: F):
    with computation(PARALLEL), interval(...):
        b[0, 0, 0][0] = a
        c = b[0, 0, 0][1] * a


def before_the_next_level(a: F, b: P, c: F):
    with computation(FORWARD), interval(...):
        if a > 0.5:
            b = a
        c = b * a
        b = a


def behind_another_level(a: F, b: F, c: F):
    with computation(FORWARD), interval(0, -1):
        if a > 0.0:
            b[0, 0, 1] = a
        c = b * a


#: What derivatives refuse: a plane in each level, writing at other levels.
REFUSED = [before_the_next_level, behind_another_level]
UPDATES = [
    squared_above,
    level_above,
    twice_above,
    behind_a_condition,
    in_a_second_condition,
    behind_a_row,
    behind_another_component,
]


def upwards(a: F, b: F):
    with computation(FORWARD):
        with interval(0, 1):
            b = a
        with interval(1, None):
            b = b[0, 0, -1] * a


def in_parts(a: F, b: F, o: F):
    with computation(BACKWARD):
        with interval(-1, None):
            b = a
        with interval(0, -1):
            b = 2.0 * a
    with computation(PARALLEL), interval(...):
        o = b * b


def under_a_condition(a: F, b: F, o: F):
    with computation(PARALLEL), interval(...):
        if a > 1.0:
            b = a
            if b > 1.2:
                b = b * a
        else:
            b = 2.0 * a
        o = b * b


def in_no_region(a: F, b: F):
    with computation(PARALLEL), interval(0, 1):
        b = a
    with computation(PARALLEL), interval(1, None):
        with horizontal(region[I[0] - 3, :]):
            b = b + a
        b = 2.0 * a


def under_each_condition(a: F, b: F, o: F):
    with computation(PARALLEL), interval(...):
        if a > 1.0:
            b = a
        elif a > 0.5:
            b = 0.0
        else:
            b = -a
    with computation(PARALLEL), interval(...):
        o = b * b


def behind_its_component(a: F, b: V, c: F):
    with computation(PARALLEL), interval(...):
        b[0, 0, 0][0] = a
        b[0, 0, 0][1] = a
    with computation(PARALLEL), interval(...):
        c = b[0, 0, 0][1] * a


def in_one_row(a: F, b: F, c: F):
    with computation(PARALLEL), interval(...):
        with horizontal(region[I[0], :]):
            b = a
        c = a
        with horizontal(region[I[0], :]):
            c = b * a


def if_a_number_is_positive(a: F, b: F, c: F, n: float):
    with computation(PARALLEL), interval(...):
        c = a
        if n > 0.0:
            b = a
        if n > 0.0:
            c = b * a


OUTPUTS = [
    in_one_row,
    if_a_number_is_positive,
    upwards,
    in_parts,
    under_a_condition,
    in_no_region,
    under_each_condition,
    behind_its_component,
]


def name_of(definition):
    return getattr(definition, "__name__", None)


def access_of_b(definition, backend="numpy"):
    run = dlf.bind(stencil(backend=backend, definition=definition))
    (access,) = (one.access for one in run.declaration.fields if one.name == "b")
    return access


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("definition", UPDATES + REFUSED, ids=name_of)
def test_a_field_that_is_read_where_nothing_was_written_is_read_and_written(definition, backend):
    assert access_of_b(definition, backend) == "update"


@pytest.mark.parametrize("definition", OUTPUTS, ids=name_of)
def test_a_field_that_is_read_only_where_it_was_written_is_an_output(definition):
    assert access_of_b(definition) == "write"


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operator_takes_what_is_read_before_it_is_written(backend):
    torch = library("torch")
    run = dlf.bind(stencil(backend=backend, definition=squared_above))
    op = dlf.torch_op(run, f"before::squared_above_{backend}", adjoint="derive")
    a, b = (torch.full((1, 1, 3), value, dtype=torch.float64) for value in (1.0, 5.0))
    assert run.functional(a, b).ravel().tolist() == [1.0, 26.0, 26.0]
    assert op(a, b.requires_grad_()).ravel().tolist() == [1.0, 26.0, 26.0]
    op(a, b).sum().backward()
    assert b.grad.ravel().tolist() == [0.0, 10.0, 10.0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("definition", UPDATES, ids=name_of)
def test_derivatives_of_what_is_read_before_it_is_written_are_right(definition, backend):
    checked(stencil(backend=backend, definition=definition))


def test_what_is_read_before_it_is_written_may_be_one_array_with_an_input_at_the_same_points():
    both = np.full((1, 1, 3), 2.0)
    dlf.bind(stencil(backend="numpy", definition=squared_above))(both, both)
    assert both.ravel().tolist() == [2.0, 6.0, 6.0]
