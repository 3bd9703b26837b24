"""Halo exchange on one rank without MPI, and the states of a plan."""

import gc
import pickle
import subprocess
import sys
import threading
import warnings

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import message_part

from support.halo import ORDERS, assert_filled, numbered

EXTENTS, HALO = (7, 6), ((2, 1), (3, 2))


def field(**options):
    return numbered(None, EXTENTS, 4, HALO, **options)


@pytest.mark.parametrize("layout", ORDERS)
def test_one_rank_wraps_its_halo_around_in_every_layout(layout):
    u = field(layout=layout)
    plan = dlf.halo_exchange({"u": u}, None)
    plan.exchange()
    assert_filled(u, None, EXTENTS)
    assert (plan.messages, plan.bytes_sent, plan.engine) == (0, 0, "packed")


@pytest.mark.parametrize(
    "width", [{"I": 1}, {"J": (1, 2)}, {"I": 0, "J": 0}, {"I": (0, 1), "J": 2}]
)
def test_only_the_width_is_filled(width):
    u = field()
    dlf.halo_exchange([u], None, width=width).exchange()
    pairs = {dim: (one, one) if isinstance(one, int) else one for dim, one in width.items()}
    assert_filled(u, None, EXTENTS, [pairs.get(dim, u.halo[at]) for at, dim in enumerate("IJ")])


def test_a_plan_without_a_halo_to_fill_warns():
    with pytest.warns(UserWarning, match=r"needs a halo along I or J .*; create .* halo="):
        dlf.halo_exchange([dlf.zeros((4, 3), dims="IJ")], None)


def test_a_plan_of_one_rank_between_walls_warns():
    block = dlf.halo.decompose((4, 3), None, "IJ", (1, 1))
    with pytest.warns(UserWarning, match=r"periodic .*; pass periodic= to dlf.halo.decompose"):
        dlf.halo_exchange([block.zeros()], block.cart)


def test_one_dimension_alone_leaves_the_halo_of_the_other():
    u = field()
    dlf.halo_exchange([u], None, dims="I").exchange()
    found, (low, high) = u.to_numpy(), HALO[1]
    assert (found[:, :low] == -1).all()
    assert (found[:, -high:] == -1).all()
    assert (found[:2, low:-high] == found[7:9, low:-high]).all()


def test_fields_without_some_dimensions_go_along():
    u, profile = field(), dlf.zeros((4,), dims="K")
    row = dlf.as_storage(np.array([-1.0, 1, 2, 3, -1]), dims="J", halo=(1,))
    dlf.halo_exchange([u, row, profile], None).exchange()
    assert_filled(u, None, EXTENTS)
    assert row.to_numpy().tolist() == [3, 1, 2, 3, 1]


def test_other_fields_of_the_same_description_take_the_place_of_the_plan_s():
    plan = dlf.halo_exchange({"u": field()}, None)
    for seed, layout in enumerate(ORDERS + ORDERS):
        other = field(layout=layout, seed=seed)
        plan.exchange(other)
        assert_filled(other, None, EXTENTS, seed=seed)
    assert (plan.fields["u"].to_numpy()[:2] == -1).all()


def test_other_fields_may_be_given_under_the_names_of_the_plan():
    plan = dlf.halo_exchange({"u": field(), "v": numbered(None, (5, 9), 4, HALO)}, None)
    u, v = field(seed=1), numbered(None, (5, 9), 4, HALO, seed=2)
    plan.exchange({"v": v, "u": u})
    assert_filled(u, None, EXTENTS, seed=1)
    assert_filled(v, None, (5, 9), seed=2)


def test_names_that_are_not_those_of_the_plan_are_refused():
    for names in (["u", "w"], ["u"], ["u", "v", "w"]):
        plan = dlf.halo_exchange({"u": field(), "v": field()}, None)
        with pytest.raises(ValueError, match=r"expected the names of the plan, \['u', 'v'\], got "):
            plan.exchange({name: field() for name in names})
    with pytest.raises(ValueError, match=r"expected them one by one, as the plan was made without"):
        dlf.halo_exchange([field()], None).exchange({"u": field()})


def test_a_field_of_another_description_is_refused_before_anything_is_copied():
    plan = dlf.halo_exchange({"u": field()}, None)
    for other in [field(dtype="float32"), numbered(None, (8, 6), 4, HALO)]:
        with pytest.raises(
            ValueError, match=r"field 'u': expected dtype, shape, dims and halo float64, "
        ):
            plan.exchange(other)
        assert (other.to_numpy()[:2] == -1).all()
    with pytest.raises(ValueError, match=r"fields: expected 1, as many as the plan has, got 2"):
        plan.exchange(field(), field())
    plan.exchange()


def test_a_halo_that_was_set_anew_is_another_description():
    u = field()
    plan = dlf.halo_exchange([u], None)
    u.halo = (1, 1, 0)
    with pytest.raises(ValueError, match=r"field '0': expected dtype, shape, dims and halo"):
        plan.exchange()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((5, 5)), r"dims: expected a field with names, got one without"),
        (dlf.zeros((5, 5), dims="IJ", halo=(1, 1))[::2], r"halo: expected a known halo"),
        (
            dlf.zeros((5, 5), dims="IJ", halo=(2, 2)),
            r"domain: expected at least the 2 points along",
        ),
    ],
)
def test_a_field_that_cannot_be_exchanged_is_refused_by_name(array, text):
    with pytest.raises(ValueError, match=rf"^field 'v': {text}"):
        dlf.halo_exchange({"u": field(), "v": array}, None)


def test_read_only_fields_are_refused():
    array = np.zeros((5, 5))
    array.flags.writeable = False
    u = dlf.as_storage(array, dims="IJ", halo=(1, 1))
    with pytest.raises(
        ValueError, match=r"field '0': readonly: expected a field whose halo can be"
    ):
        dlf.halo_exchange([u], None)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"width": {"I": 3}},
            r"field '0': width: expected from \(0, 0\) to the halo \(2, 1\) along I, got",
        ),
        ({"width": {"K": 1}}, r"field '0': width: expected one of \('I', 'J'\), got 'K'"),
        ({"width": 1}, r"field '0': width: expected a dict by the names of dimensions, got 1"),
        ({"shared": {"I": -1}}, r"field '0': shared: expected at least 0 points along I, got -1"),
        ({"engine": "pigeons"}, r"engine: expected one of \('packed', .*got 'pigeons'; use one"),
        ({"engine": "datatypes"}, r"engine: expected one of \('packed', 'ghex'\), got 'datatypes'"),
        ({"gpu_aware": "yes"}, r"gpu_aware: expected None, True or False, got 'yes'"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        dlf.halo_exchange([field()], None, **options)


def test_something_else_than_a_communicator_is_refused():
    with pytest.raises(
        TypeError, match=r"comm: expected a Cartesian communicator of mpi4py, .*str"
    ):
        dlf.halo_exchange([field()], "world")
    with pytest.raises(ValueError, match=r"fields: needs at least one field; pass"):
        dlf.halo_exchange([], None)
    with pytest.raises(
        ValueError, match=r"fields: expected a mapping or a sequence of fields, got on"
    ):
        dlf.halo_exchange(field(), None)


def test_start_and_wait_come_in_turns():
    plan = dlf.halo_exchange([field()], None)
    for verb in (plan.wait, plan.test):
        with pytest.raises(
            RuntimeError, match=r"expected an exchange that is started, got one that"
        ):
            verb()
    plan.start()
    assert plan.test()
    for verb in (plan.start, plan.exchange):
        with pytest.raises(RuntimeError, match=r"is idle, got one that is started; wait for it"):
            verb()
    plan.wait()
    plan.free()
    plan.free()
    for verb in (plan.start, plan.exchange, plan.wait, plan.test):
        with pytest.raises(RuntimeError, match=r"got one that is freed; make another plan"):
            verb()


def test_an_exception_in_the_block_of_overlap_waits_and_passes():
    u = field()
    plan = dlf.halo_exchange([u], None)
    with pytest.raises(KeyError), plan.overlap():
        raise KeyError
    assert_filled(u, None, EXTENTS)
    plan.exchange()


def test_a_second_thread_in_one_plan_is_refused():
    plan = dlf.halo_exchange([field()], None)
    entered, leave, found = threading.Event(), threading.Event(), []

    class Slow:
        @property
        def __array_interface__(self):
            entered.set()
            leave.wait(20)
            raise KeyError

    def first():
        try:
            plan.exchange(Slow())
        except BaseException as error:  # it ends as the producer did
            found.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(20)
    with pytest.raises(RuntimeError, match=r"exchange: expected one thread at a time in a plan"):
        plan.exchange()
    leave.set()
    thread.join()
    assert len(found) == 1
    plan.exchange()


def test_interior_and_edges_are_every_point_of_the_domain_once():
    u = field()
    plan = dlf.halo_exchange([u], None)
    seen = np.zeros(u.shape, int)
    for origin, domain in [
        plan.interior({"I": 1, "J": (0, 2)}),
        *plan.edges({"I": 1, "J": (0, 2)}),
    ]:
        seen[tuple(slice(origin[dim], origin[dim] + domain[dim]) for dim in "IJK")] += 1
    assert (seen[2:-1, 3:-2] == 1).all()
    assert seen.sum() == 7 * 6 * 4
    assert plan.interior({"I": 1, "J": (0, 2)}) == (
        {"I": 3, "J": 3, "K": 0},
        {"I": 5, "J": 4, "K": 4},
    )


def test_explain_names_the_engine_the_fields_and_what_goes_where():
    told = dlf.explain(dlf.halo_exchange({"u": field(dtype="float32")}, None))
    assert (told.engine, told.neighbours, len(told.copies)) == ("packed", (), 8)
    lines = repr(told).splitlines()
    assert lines[1].startswith("  engine packed: packed in kept buffers")
    assert lines[2] == "  field u: float32 ('I', 'J', 'K') (10, 11, 4)"
    assert "  I+: 192 bytes copied on this rank" in lines  # the two lowest points of the halo


def test_a_plan_stays_in_its_process():
    with pytest.raises(TypeError, match=r"HaloExchange: expected to stay in its process"):
        pickle.dumps(dlf.halo_exchange([field()], None))


def test_a_plan_that_is_dropped_between_start_and_wait_warns():
    plan = dlf.halo_exchange([field()], None)
    plan.start()
    with pytest.warns(ResourceWarning, match="was dropped between start and wait"):
        del plan
    plan = dlf.halo_exchange([field()], None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del plan
        gc.collect()


def test_a_freed_plan_lets_its_fields_go():
    before = dlf._core.live_allocations()
    plan = dlf.halo_exchange([field()], None)
    plan.exchange()
    plan.exchange(field())
    plan.free()
    del plan
    gc.collect()
    assert dlf._core.live_allocations() == before


def test_a_serial_run_imports_no_mpi():
    code = "import sys, dlfield as dlf; u = dlf.zeros((4, 4), dims='IJ', halo=(1, 1)); "
    code += "dlf.halo_exchange([u], None).exchange(); assert 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_part_of_a_message_shares_its_bytes():
    message, model = dlf.zeros(64, "uint8"), dlf.zeros((2, 3), dims="IJ", layout=(1, 0))
    part = message_part(message, 16, model)
    assert (part.dims, part.shape, part.strides) == (("I", "J"), (2, 3), (24, 8))
    part[...] = np.arange(6.0).reshape(2, 3)
    assert message.to_numpy()[16:].view("f8").tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("message", "start"),
    [(64, 17), (64, -8), (64, 2**62), ((8, 8), 0), ((), 0)],
)
def test_a_part_that_a_message_does_not_have_is_refused(message, start):
    with pytest.raises(ValueError, match="expected a range inside shape"):
        message_part(dlf.zeros(message, "uint8"), start, dlf.zeros((2, 3)))


def test_an_overlapping_field_is_not_called_read_only_alone():
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(40), (6, 5), (8, 8))
    with pytest.raises(ValueError, match="or in which several indices name one element"):
        dlf.halo_exchange([dlf.as_storage(overlapping, dims="IJ", halo=(1, 1))], None)
