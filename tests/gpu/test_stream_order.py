"""Work in `use_stream` lands on that stream, in order with what dlfield did on others."""

import threading

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import (
    LEGACY,
    PER_THREAD,
    OnDevice,
    current,
    delay,
    is_done,
    new_stream,
    write_late,
)
from support.cuda.driver import call, start, stats
from support.cuda.kinds import every_device
from support.cuda.order import device_address, own_stream, seen_from

VALUES, SEVENS = np.arange(4.0), np.full(4, 7.0)


def on_gpu(values=VALUES, device=0):
    """Return a storage with nothing in flight."""
    storage = dlf.storage(values, device=("gpu", device), managed=None)
    with current(device):
        call("cuCtxSynchronize")
    return storage


@every_device
@pytest.mark.parametrize("handle", ["new", LEGACY, PER_THREAD])
def test_work_lands_on_the_stream_and_waits_there(handle, device):
    source, target = on_gpu(SEVENS, device), on_gpu(VALUES, device)
    with current(device):
        stream = new_stream() if handle == "new" else handle
        delay(stream)
        with dlf.use_stream(stream):
            target[...] = source
            made_there = dlf.ones((4,), device=("gpu", device), managed=None)
        there = [device_address(one) for one in (target, made_there)]
        found = [seen_from(stream, address, device=device).tolist() for address in there]
    assert found == [SEVENS.tolist(), [1.0] * 4]


@pytest.mark.stand_in
def test_work_lands_on_no_other_stream():
    stream, other = new_stream(), new_stream()
    source, target = on_gpu(SEVENS), on_gpu()
    there = device_address(target)
    with dlf.use_stream(stream):
        target[...] = source
    assert not is_done(stream)
    assert is_done(own_stream())
    assert seen_from(other, there).tolist() == VALUES.tolist()
    assert seen_from(stream, there).tolist() == SEVENS.tolist()


@pytest.mark.stand_in
def test_a_copy_to_the_host_waits_for_the_stream_alone():
    stream, other = new_stream(), new_stream()
    source, elsewhere = on_gpu(SEVENS), OnDevice(VALUES)
    call("cuMemsetD8Async", elsewhere.address, 0, 32, other)
    with dlf.use_stream(stream):
        assert dlf.storage(source, device="cpu").to_numpy().tolist() == SEVENS.tolist()
    assert is_done(stream)
    assert not is_done(other)


@every_device
def test_dlfields_own_stream_keeps_order_with_the_legacy_one(device):
    """The default of most libraries; it needs no `use_stream`."""
    source, target = on_gpu(SEVENS, device), on_gpu(VALUES, device)
    there = device_address(target)
    with current(device):
        delay(own_stream(device))
        target[...] = source
        assert seen_from(LEGACY, there, device=device).tolist() == SEVENS.tolist()
        late = write_late(there, VALUES, LEGACY)
        source[...] = target
        there = device_address(source)
        assert seen_from(own_stream(device), there, device=device).tolist() == VALUES.tolist()
    assert late.start


STREAMS = pytest.mark.parametrize(
    "names", ["own new", "new own", "new new", "new legacy", "legacy new"]
)


def named(name):
    return {"own": own_stream, "new": new_stream, "legacy": lambda: LEGACY}[name]()


@STREAMS
def test_what_is_written_on_one_stream_is_read_on_the_next(names):
    first, second = map(named, names.split())
    source, between, target = on_gpu(SEVENS), on_gpu(), on_gpu()
    there = device_address(target)
    delay(first)
    with dlf.use_stream(first):
        between[...] = source
    with dlf.use_stream(second):
        target[...] = between
    assert seen_from(second, there).tolist() == SEVENS.tolist()


@STREAMS
def test_what_is_read_on_one_stream_is_not_overwritten_on_the_next(names):
    first, second = map(named, names.split())
    source, between, target = on_gpu(SEVENS), on_gpu(), on_gpu()
    there = device_address(target)
    delay(first)
    with dlf.use_stream(first):
        target[...] = between
    with dlf.use_stream(second):
        between[...] = source
    call("cuStreamSynchronize", second)
    assert seen_from(first, there).tolist() == VALUES.tolist()


@STREAMS
def test_the_last_of_two_writes_stays(names):
    first, second = map(named, names.split())
    storage, sevens, nines = on_gpu(), on_gpu(SEVENS), on_gpu(SEVENS + 2)
    there = device_address(storage)
    delay(first)
    with dlf.use_stream(first):
        storage[...] = sevens
    with dlf.use_stream(second):
        storage[...] = nines
    call("cuStreamSynchronize", second)
    assert seen_from(first, there).tolist() == (SEVENS + 2).tolist()


def test_the_per_thread_stream_of_another_thread_is_another_stream():
    source, between, target = on_gpu(SEVENS), on_gpu(), on_gpu()
    there, seen = device_address(target), []

    def on_its_own_stream(function):
        def work():
            start()
            with dlf.use_stream(PER_THREAD):
                function()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def write():
        delay(PER_THREAD)
        between[...] = source

    def read():
        target[...] = between
        seen.extend(seen_from(PER_THREAD, there))

    on_its_own_stream(write)
    on_its_own_stream(read)
    assert seen == SEVENS.tolist()


def test_a_view_is_in_order_with_the_whole():
    storage, source, target = on_gpu(), on_gpu(SEVENS), on_gpu(VALUES[:2])
    there, first, second = device_address(target), new_stream(), new_stream()
    delay(first)
    with dlf.use_stream(first):
        storage[...] = source
    with dlf.use_stream(second):
        target[...] = storage[2:]
    assert seen_from(second, there, (2,)).tolist() == [7.0, 7.0]


@pytest.mark.stand_in
def test_nothing_is_waited_for_by_the_host_between_streams():
    storage, source = on_gpu(), on_gpu(SEVENS)
    streams = [new_stream() for _ in range(4)]
    before = stats().syncs
    for stream in streams:
        with dlf.use_stream(stream):
            storage[...] = source
            source[...] = storage
    assert stats().syncs == before


def test_the_sides_of_a_pair_are_brought_up_to_date_on_the_stream():
    pair, stream = dlf.storage(VALUES, device="gpu"), new_stream()
    delay(stream)
    with dlf.use_stream(stream):
        there = device_address(pair)
    assert seen_from(stream, there).tolist() == VALUES.tolist()


def test_the_host_waits_for_a_side_that_was_brought_up_to_date_on_another_stream():
    pair, source = dlf.zeros((4,), device="gpu"), on_gpu(SEVENS)
    with dlf.use_stream(new_stream()):
        pair[...] = source
    with dlf.use_stream(new_stream()):
        assert pair.to_numpy().tolist() == SEVENS.tolist()
