"""Waits for copies: the host waits where it must, and never for a copy between devices."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda import driver
from support.cuda.devices import delay, device_view
from support.cuda.driver import NON_BLOCKING, call
from support.cuda.order import device_count
from support.cuda.places import MANAGED, PINNED, Block, Plan, Shown, asked, assign, field

SHAPE = (10, 40, 48)
WITHOUT_A_WAIT = {
    "equal layouts": lambda one: one,
    "transposed": lambda one: one.T,
    "an inner part": lambda one: one[1:-1, 1:-1, 1:-1],
    "backwards": lambda one: one[::-1],
}
every_part = pytest.mark.parametrize("part", WITHOUT_A_WAIT.values(), ids=WITHOUT_A_WAIT)


@pytest.mark.stand_in
@every_part
@pytest.mark.parametrize("places", [(0, 0), (0, 1), (MANAGED, 0), (1, MANAGED)], ids=str)
def test_the_host_does_not_wait_for_a_copy_between_devices(part, places):
    here = part(field(places[0], SHAPE))
    there = field(places[1], here.shape)
    assert asked(lambda: assign(there, here))[2] == 0


@pytest.mark.stand_in
@every_part
def test_the_host_does_not_wait_for_a_new_storage_on_a_device(part):
    here, made = part(field(0, SHAPE)), []
    for options in ({"managed": None}, {"managed": "gt4py"}, {"managed": "cuda"}):
        assert asked(lambda: made.append(dlf.storage(here, device="gpu", **options)))[2] == 0  # noqa: B023


@pytest.mark.stand_in
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
@pytest.mark.parametrize("make", [dlf.zeros, dlf.ones, dlf.empty])
def test_the_host_does_not_wait_for_fresh_memory(make, managed):
    made = []
    assert asked(lambda: made.append(make(SHAPE, device="gpu", managed=managed)))[2] == 0


@pytest.fixture
def busy():
    """Let dlfield work on a stream that is busy, so that a copy is late on a real GPU, too."""
    on = driver.stream(0)
    delay(on)
    with dlf.use_stream(on):
        yield
    call("cuStreamSynchronize", on)


@pytest.fixture(params=["page-locked", "registered"])
def users(request, busy):
    """Host memory registered with CUDA outside dlfield: copies from and to it are asynchronous."""
    if request.param == "page-locked":
        block = Block(np.zeros(8 * 40 * 48, np.uint8), PINNED)
        yield block.bytes.view("f8").reshape(40, 48)
        return
    array = np.zeros((40, 48))
    call("cuMemHostRegister_v2", array.ctypes.data, array.nbytes, 0)
    yield array
    call("cuCtxSynchronize")
    call("cuMemHostUnregister", array.ctypes.data)


PARTS = {
    "all": lambda array: array,
    "rows": lambda array: array[:, 3:17],
    "transposed": lambda array: array.T,
    "backwards": lambda array: array[::-1],
    "thinned out": lambda array: array[::3, ::5],
    "repeated": lambda array: np.broadcast_to(array[:1], array.shape),
}
every_users_part = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)


@every_users_part
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_the_source_of_a_copy_may_be_overwritten_at_once(users, part, layout, managed):
    users[...] = np.arange(users.size).reshape(users.shape)
    expected = part(users).copy()
    made = dlf.storage(part(users), device="gpu", managed=managed, layout=layout)
    users[...] = -1
    np.testing.assert_array_equal(device_view(made), expected)


@every_users_part
def test_a_value_may_be_overwritten_once_it_is_assigned(users, part):
    users[...] = np.arange(users.size).reshape(users.shape)
    expected = part(users).copy()
    made = dlf.zeros(expected.shape, device="gpu", managed=None)
    made[...] = part(users)
    users[...] = -1
    np.testing.assert_array_equal(device_view(made), expected)


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_the_users_half_of_a_pair_may_be_overwritten_once_the_device_was_asked_for(users, layout):
    array = users if layout == (0, 1) else users.T
    array[...] = np.arange(array.size).reshape(array.shape)
    pair = dlf.as_storage(array, device="gpu")
    expected, _ = array.copy(), pair.__cuda_array_interface__
    array[...] = -1
    np.testing.assert_array_equal(device_view(pair), expected)


@pytest.mark.parametrize("name", [name for name in PARTS if name != "repeated"])
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_a_target_on_the_host_is_finished_when_a_copy_returns(users, name, layout):
    target = PARTS[name](users)
    values = np.arange(1.0, target.size + 1).reshape(target.shape)
    source = dlf.storage(values, device="gpu", managed=None, layout=layout)
    dlf.as_storage(target)[...] = source
    assert target.tolist() == values.tolist()  # read by nothing that could wait


def test_a_new_storage_on_the_host_is_finished_when_it_is_there():
    source = dlf.full(SHAPE, 2.5, device="gpu", managed=None)
    assert (dlf.storage(source, device=None).to_numpy() == 2.5).all()
    assert (dlf.storage(source.T, device=None, layout=(0, 1, 2)).to_numpy() == 2.5).all()


@pytest.mark.parametrize("other", range(min(device_count(), 2)))
@every_part
def test_the_source_of_a_copy_may_be_dropped_before_it_is_made(part, other):
    source = dlf.storage(np.arange(np.prod(SHAPE) * 1.0).reshape(SHAPE), device="gpu", managed=None)
    expected = part(np.arange(np.prod(SHAPE) * 1.0).reshape(SHAPE))
    copied = dlf.storage(part(source), device=("gpu", other), managed=None, layout=(0, 1, 2))
    del source
    np.testing.assert_array_equal(device_view(copied), expected)


@pytest.mark.stand_in
def test_a_pair_may_be_dropped_with_a_copy_in_flight():
    pair = [dlf.storage(np.ones(SHAPE), device="gpu")]
    assert asked(lambda: pair[0].__cuda_array_interface__)[2] == 0
    pair.clear()
    call("cuCtxSynchronize")  # and the fixture looks for violations


@pytest.mark.stand_in
def test_foreign_memory_is_copied_after_its_streams_work_without_a_wait():
    on = driver.stream(NON_BLOCKING)
    block = Block(np.zeros(8 * 5, np.uint8), 0)
    shown = Shown(block.address, Plan(40, 0, (8,)), (5,), np.dtype("f8"))
    shown.__cuda_array_interface__["stream"] = on
    call("cuMemsetD8Async", block.address, 1, 40, on)
    target = dlf.zeros((5,), device="gpu", managed=None)
    assert asked(lambda: assign(target, shown))[2] == 0
    assert (device_view(target).view("u1") == 1).all()
    call("cuStreamDestroy_v2", on)
