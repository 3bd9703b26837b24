"""Bound stencils whose work on the GPU the host does not wait for: ``device_sync=False``."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, is_done, new_stream, write_late
from support.cuda.devices import OnDevice as Foreign
from support.cuda.driver import call
from support.cuda.handed import address_of
from support.cuda.order import in_flight, own_stream, seen_from
from support.cuda.places import asked
from support.cuda.unwaited import SHAPE, VALUES, ZEROS, Unwaited, on_gpu, values_of
from support.errors import refused


@pytest.fixture(autouse=True)
def idle():
    """Leave nothing in flight to the next test."""
    yield
    call("cuCtxSynchronize")


every_kind = pytest.mark.parametrize("managed", [None, "gt4py"])


@pytest.mark.stand_in
@every_kind
def test_the_host_waits_neither_before_nor_after(managed):
    run, storages = dlf.bind(Unwaited()), [on_gpu(one, managed) for one in (VALUES, ZEROS, ZEROS)]

    def steps():
        run(*storages[:2])
        run(*storages[1:])

    assert asked(steps)[2] == 0
    assert np.array_equal(values_of(storages[2]), VALUES)


@pytest.mark.stand_in
def test_the_host_waits_for_a_stencil_that_says_nothing_of_it():
    stencil = Unwaited()
    del stencil.options["backend_opts"]
    run, storages = dlf.bind(stencil), [on_gpu(one) for one in (VALUES, ZEROS)]
    assert asked(lambda: run(*storages))[2] > 0


def test_a_stencil_with_means_of_its_own_is_waited_for_by_them():
    stencil, waits = Unwaited(), []
    stencil.synchronize = lambda: waits.append(call("cuCtxSynchronize"))
    dlf.bind(stencil)(on_gpu(VALUES), on_gpu(ZEROS))
    assert len(waits) == 1


def test_the_call_returns_while_the_stencil_is_at_work():
    inp, out = on_gpu(VALUES), on_gpu(ZEROS)
    dlf.bind(Unwaited())(inp, out)
    assert not is_done(LEGACY)


@every_kind
def test_what_is_on_its_way_to_an_input_comes_before(managed):
    late, out = in_flight(ZEROS, VALUES, managed, on=new_stream), on_gpu(ZEROS)
    dlf.bind(Unwaited())(late, out)
    assert np.array_equal(values_of(out), VALUES)


def test_what_is_on_its_way_to_an_output_comes_before():
    inp, late = on_gpu(VALUES), in_flight(ZEROS, -VALUES, on=new_stream)
    dlf.bind(Unwaited())(inp, late)
    assert np.array_equal(values_of(late), VALUES)


def test_the_work_of_a_producer_comes_before():
    on, out = new_stream(), on_gpu(ZEROS)
    inp = Foreign(ZEROS, stream=on)
    kept = write_late(inp.address, VALUES, on)
    dlf.bind(Unwaited())(inp, out)
    assert np.array_equal(values_of(out), VALUES)
    del kept


def test_the_stream_of_a_producer_sees_what_was_written():
    on, inp = new_stream(), on_gpu(VALUES)
    out = Foreign(ZEROS, stream=on)
    dlf.bind(Unwaited())(inp, out)
    assert np.array_equal(seen_from(on, out.address, SHAPE), VALUES)


def test_an_input_is_overwritten_by_its_producer_after_it_was_read():
    on, out = new_stream(), on_gpu(ZEROS)
    inp = Foreign(VALUES, stream=on)
    dlf.bind(Unwaited())(inp, out)
    call("cuMemsetD8Async", inp.address, 0, VALUES.nbytes, on)
    assert np.array_equal(values_of(out), VALUES)


@every_kind
def test_an_input_is_overwritten_by_dlfield_after_it_was_read(managed):
    inp, out, other = on_gpu(VALUES, managed), on_gpu(ZEROS), on_gpu(-VALUES)
    dlf.bind(Unwaited())(inp, out)
    with dlf.use_stream(new_stream()):
        inp[...] = other
    assert np.array_equal(values_of(out), VALUES)


def test_a_copy_on_another_stream_comes_after():
    inp, out = on_gpu(VALUES), on_gpu(ZEROS)
    dlf.bind(Unwaited())(inp, out)
    with dlf.use_stream(new_stream()):
        copy = out.copy()
    assert np.array_equal(values_of(copy), VALUES)


@pytest.mark.parametrize("device_sync", [False, True])
def test_the_work_on_a_stream_that_the_user_has_chosen_is_in_order(device_sync):
    stencil, on = Unwaited(), new_stream()
    stencil.options["backend_opts"]["device_sync"] = device_sync
    inp, out = Foreign(ZEROS), Foreign(ZEROS)
    kept = write_late(inp.address, VALUES, on)
    with dlf.use_stream(on):
        dlf.bind(stencil)(inp, out)
    assert np.array_equal(seen_from(on, out.address, SHAPE), VALUES)
    del kept


def test_the_stream_that_the_user_has_chosen_sees_what_was_written():
    inp, out, on = on_gpu(VALUES), on_gpu(ZEROS), new_stream()
    there = address_of(out)
    with dlf.use_stream(on):
        dlf.bind(Unwaited())(inp, out)
    assert np.array_equal(seen_from(on, there, SHAPE), VALUES)


def test_the_newer_side_of_a_pair_goes_to_the_gpu_before():
    pair, out = on_gpu(ZEROS, "gt4py"), on_gpu(ZEROS)
    with pair.host() as array:
        array[...] = VALUES
    dlf.bind(Unwaited())(pair, out)
    assert np.array_equal(values_of(out), VALUES)


def test_the_output_of_a_pair_is_newer_on_the_gpu():
    inp, pair = on_gpu(VALUES), on_gpu(ZEROS, "gt4py")
    dlf.bind(Unwaited())(inp, pair)
    assert pair.sync_state.state == dlf.SyncState.SYNC_DEVICE_DIRTY
    assert np.array_equal(values_of(pair), VALUES)


@pytest.mark.parametrize("at", [0, 1])
def test_memory_that_the_host_may_be_using_is_waited_for(at):
    storages = [on_gpu(VALUES), on_gpu(ZEROS)]
    storages[at] = dlf.storage(storages[at], device="gpu", managed="cuda")
    view = storages[at].to_numpy()
    dlf.bind(Unwaited())(*storages)
    assert np.array_equal(view, VALUES)
    view[...] = -1.0
    assert np.array_equal(values_of(storages[1]), VALUES if at == 0 else -np.ones(SHAPE))


@every_kind
@pytest.mark.parametrize("at", [0, 1])
def test_memory_that_is_freed_meanwhile_serves_until_the_stencil_has_ended(managed, at):
    storages = [on_gpu(VALUES, managed), on_gpu(ZEROS, managed)]
    kept = storages[1 - at]
    dlf.bind(Unwaited())(*storages)
    storages.clear()
    gc.collect()
    others = [on_gpu(-VALUES, managed) for _ in range(4)]
    assert np.array_equal(values_of(kept), VALUES)
    assert all(np.array_equal(values_of(one), -VALUES) for one in others)


@pytest.mark.stand_in
def test_the_host_does_not_wait_to_free_what_the_stencil_has_got():
    run, inp, made = dlf.bind(Unwaited()), on_gpu(VALUES), [on_gpu(ZEROS)]

    def step():
        run(inp, made[0])
        made.clear()

    assert asked(step)[2] == 0


def test_a_stencil_that_raises_is_in_order_as_well():
    inp, out, error = on_gpu(VALUES), on_gpu(ZEROS), ValueError("at work")
    with refused(ValueError, "at work"):
        dlf.bind(Unwaited(raises={"run": error}))(inp, out)
    with dlf.use_stream(new_stream()):
        copy = out.copy()
    assert np.array_equal(values_of(copy), VALUES)


@pytest.mark.filterwarnings("ignore::dlfield.DeviceCopyWarning")
def test_arrays_of_the_host_are_copied_to_the_gpu_and_back():
    inp, out = VALUES.copy(), ZEROS.copy()
    dlf.bind(Unwaited(), on_mismatch="copy")(inp, out)
    assert np.array_equal(out, VALUES)


def test_outputs_that_are_made_have_the_values():
    out = dlf.bind(Unwaited()).functional(inp=on_gpu(VALUES))
    assert np.array_equal(values_of(out), VALUES)


def test_read_only_memory_stays_so():
    stencil, seen = Unwaited(backend="numpy"), []

    def run(*, inp, out, **_):
        seen.extend(one.__cuda_array_interface__["data"][1] for one in (inp, out))

    stencil.run = run
    dlf.bind(stencil)(Foreign(VALUES, readonly=True), on_gpu(ZEROS))
    assert seen == [True, False]


def test_work_of_dlfield_and_of_the_stencil_alternates():
    run, first, second = dlf.bind(Unwaited()), on_gpu(VALUES), on_gpu(ZEROS)
    for step in range(5):
        run(first, second)
        with dlf.use_stream(new_stream() if step % 2 else own_stream()):
            first[...] = second
            first[0] = float(step)
    expected = VALUES.copy()
    expected[0] = 4.0
    assert np.array_equal(values_of(first), expected)
