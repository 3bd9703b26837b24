"""The origin and the aligned point of a result."""

import dlfield as dlf
import numpy as np
import pytest

from support.stencils.stand_ins import StandIn, field


@pytest.fixture
def aligned():
    return dlf.ones((6, 6), dims="IJ", aligned_index=(3, 2), alignment_size=64)


OPERATIONS = {
    "an operator": lambda one: one * 2,
    "of the same": lambda one: one + one,
    "where": lambda one: np.where(one > 0, one, 0),
    "a function": np.sqrt,
    "accumulated": lambda one: np.cumsum(one, "I"),
}


@pytest.mark.source(
    "GDP-3 draft",
    "Output Storage Parameters",
    "origin and aligned point of a result are the largest of its inputs'",
)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_the_aligned_point_stays(aligned, operation):
    made = operation(aligned)
    assert made.aligned_index == (3, 2)
    assert made[3:, 2:].ptr % 64 == 0


def test_a_reduction_keeps_the_aligned_point_of_the_dims_that_stay(aligned):
    assert aligned.sum("I").aligned_index == (2,)
    assert aligned.max("J", keepdims=True).aligned_index == (3, 0)


@pytest.mark.source(
    "GDP-3 draft",
    "Output Storage Parameters",
    "origin and aligned point of a result are the largest of its inputs'",
)
def test_the_aligned_point_is_the_largest_and_by_default_the_lower_halo(aligned):
    other = dlf.ones((6, 6), dims="IJ", halo=((1, 1), (3, 0)))
    for made in (aligned + other, other + aligned):
        assert (made.aligned_index, made.halo) == ((3, 3), ((1, 1), (3, 0)))
    profile = dlf.ones(6, dims="J", aligned_index=(4,))
    assert (aligned + profile).aligned_index == (3, 4)


@pytest.mark.source(
    "GDP-3 draft",
    "Output Storage Parameters",
    "origin and aligned point of a result are the largest of its inputs'",
)
def test_a_field_without_an_origin_begins_at_its_lower_halo():
    wide = dlf.ones((8, 8), dims="IJ", halo=(2, 2))
    moved = dlf.ones((8, 8), dims="IJ", default_origin=(1, 3))
    assert (wide + moved).default_origin == (moved + wide).default_origin == (2, 3)
    assert not hasattr(wide + 1, "default_origin")


def test_a_stencil_takes_the_sum_of_a_halo_and_an_origin():
    wide = dlf.ones((8, 8, 2), dims="IJK", halo=(2, 2, 0))
    moved = dlf.ones((8, 8, 2), dims="IJK", default_origin=(1, 1, 0))
    made = wide + moved
    stencil = StandIn(inp=field("READ"), out=field("WRITE"))
    dlf.bind(stencil)(made, made.copy())
    assert stencil.origin == {"inp": (2, 2, 0), "out": (2, 2, 0)}
