"""What the driver is asked for where something is copied: few calls, and none without need."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cuda.places import (
    HOST,
    MANAGED,
    Block,
    Plan,
    Shown,
    asked,
    assign,
    field,
    plans,
    shapes,
)

pytestmark = pytest.mark.stand_in
SHAPE = (10, 40, 48)


#: How many copies up, down and across it takes from one side to another.
ONE_COPY = {
    (HOST, 0): (1, 0, 0),
    (0, HOST): (0, 1, 0),
    (0, 0): (0, 0, 1),
    (0, 1): (0, 0, 1),
    (MANAGED, 0): (0, 0, 1),
    (1, MANAGED): (0, 0, 1),
    (MANAGED, MANAGED): (0, 0, 1),
}
every_way = pytest.mark.parametrize(("source", "target"), ONE_COPY, ids=str)
#: What rows take: copies as above, and kernels. In memory of one device a kernel is faster than the
#: driver; between two they go by memory without gaps.
OF_ROWS = {
    way: (copies, 0) if HOST in way or way == (MANAGED, MANAGED) else ((0, 0, 0), 1)
    for way, copies in ONE_COPY.items()
    if set(way) != {0, 1}
}
every_way_of_rows = pytest.mark.parametrize(("source", "target"), OF_ROWS, ids=str)


@every_way
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1)])
def test_equal_layouts_are_one_copy(source, target, layout):
    here, there = (field(place, SHAPE, layout=layout) for place in (source, target))
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert (copies, kernels) == (ONE_COPY[source, target], 0)


@every_way_of_rows
@pytest.mark.parametrize("halo", [(3, 3, 0), (1, 2, 3), (0, 3, 3)])
def test_the_inner_part_of_a_field_is_one_copy_or_kernel(source, target, halo):
    here, there = (field(place, SHAPE, halo=halo).domain_view for place in (source, target))
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert (copies, kernels) == OF_ROWS[source, target]


@every_way_of_rows
def test_rows_with_padding_are_one_copy_or_kernel(source, target):
    here = field(source, (50, 43), alignment_size=128)
    there = field(target, (50, 43))
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert (copies, kernels) == OF_ROWS[source, target]


def test_rows_of_single_bytes_are_left_to_the_driver():
    here = field(0, (50, 301), dtype="uint8", halo=((0, 0), (1, 0))).domain_view
    there = field(0, (50, 300), dtype="uint8")
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert (copies, kernels) == ((0, 0, 1), 0)


@every_way
@pytest.mark.parametrize("order", [(0, 2, 1), (1, 2, 0), (2, 0, 1), (2, 1, 0)], ids=str)
def test_another_fastest_dimension_is_one_kernel_and_at_most_one_copy(source, target, order):
    here, there = field(source, SHAPE), field(target, SHAPE, layout=order)
    copies, kernels, _ = asked(lambda: assign(there, here))
    elsewhere = HOST in (source, target) or {source, target} == {0, 1}
    assert (sum(copies), kernels) == (1 if elsewhere else 0, 1)


@pytest.mark.parametrize("number", [0, 1])
def test_short_rows_on_a_device_are_one_kernel(number):
    here, there = (field(number, (30, 40, 4), halo=(0, 1, 1)).domain_view for _ in range(2))
    assert asked(lambda: assign(there, here)) == ((0, 0, 0), 1, 0)


@pytest.mark.parametrize("source", [0, 1])
def test_short_rows_in_many_planes_are_not_left_to_the_copy_engine(source):
    here, there = field(source, (300, 2, 2)), field(0, (300, 4, 4), halo=(0, 1, 1)).domain_view
    assert asked(lambda: assign(there, here))[1] == 1


@pytest.mark.parametrize("source", [HOST, 1])
def test_short_rows_from_elsewhere_come_in_one_copy_and_are_spread_by_a_kernel(source):
    here, there = field(source, (30, 38, 2)), field(0, (30, 40, 4), halo=(0, 1, 1)).domain_view
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert (sum(copies), kernels) == (1, 1)


@every_way
def test_of_no_elements_nothing_is_asked(source, target):
    here, there = (field(place, (5, 0, 3)) for place in (source, target))
    assert asked(lambda: assign(there, here)) == ((0, 0, 0), 0, 0)
    here, there = (field(place, SHAPE)[:, 7:7] for place in (source, target))
    assert asked(lambda: assign(there, here)) == ((0, 0, 0), 0, 0)


VIEWS = {
    "reversed": lambda one: one[::-1, :, ::-1],
    "thinned out": lambda one: one[::2, ::3, ::2],
    "rows backwards": lambda one: one[:, ::-1],
    "transposed backwards": lambda one: one.T[::-1],
    "column": lambda one: one[:, :, 3],
    "plane": lambda one: one[:, 3],
}


@every_way
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_an_awkward_part_takes_few_calls(source, target, view):
    here, there = (view(field(place, SHAPE)) for place in (source, target))
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert sum(copies) + kernels <= 8


@every_way
def test_elements_that_are_repeated_take_few_calls(source, target):
    here, there = field(source, (1, 1, 48)), field(target, SHAPE)
    copies, kernels, _ = asked(lambda: assign(there, here))
    assert sum(copies) <= 1
    assert kernels <= 2


@every_way
@given(st.data())
@settings(max_examples=20)
def test_no_layout_takes_many_calls(source, target, data):
    shape = data.draw(shapes())
    layouts = [data.draw(plans(shape, 8, repeats=repeats)) for repeats in (True, False)]
    blocks = [
        Block(np.zeros(plan.size, np.uint8), place)
        for plan, place in zip(layouts, (source, target), strict=True)
    ]
    here, there = (
        block.elements(plan, shape, 8) for block, plan in zip(blocks, layouts, strict=True)
    )
    copies, kernels, _ = asked(lambda: assign(there, here))
    blocks[1].now()  # all is done before the memory goes
    assert sum(copies) <= 65
    assert kernels <= 10


def test_more_dimensions_than_a_kernel_walks_take_few_launches():
    shape = (30, 30) + (2,) * 8
    strides, step = [], 8
    for extent in reversed(shape):
        strides.append(step)
        step *= extent + 1
    plan = Plan(step, 0, tuple(reversed(strides)))
    block = Block(np.zeros(step, np.uint8), 0)
    here = dlf.as_storage(Shown(block.address, plan, shape, np.dtype("f8")), managed=None)
    there = dlf.empty(shape, device="gpu", managed=None)
    _, kernels, _ = asked(lambda: assign(there, here))
    assert kernels <= 64


@pytest.mark.parametrize(
    "options",
    [{}, {"halo": (3, 3, 0), "alignment_size": 256}, {"layout": (2, 0, 1), "alignment_size": 64}],
    ids=str,
)
def test_a_pair_is_brought_up_to_date_by_one_copy_each_way(options):
    pair = dlf.ones(SHAPE, device="gpu", **options)
    assert asked(pair.to_numpy)[0] == (0, 1, 0)
    assert asked(pair.to_numpy)[:2] == ((0, 0, 0), 0)
    pair.set_host_modified()
    assert asked(lambda: pair.__cuda_array_interface__)[0] == (1, 0, 0)
    assert asked(lambda: pair.__cuda_array_interface__) == ((0, 0, 0), 0, 0)


def test_a_view_of_a_pair_brings_the_whole_pair_up_to_date():
    pair = dlf.ones(SHAPE, device="gpu")
    assert asked(pair[2, ::3].to_numpy)[:2] == ((0, 1, 0), 0)
    assert asked(pair.to_numpy)[:2] == ((0, 0, 0), 0)
