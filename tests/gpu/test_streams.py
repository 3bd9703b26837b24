"""`use_stream`: dlfield works on streams of the user, in order with what it did on others."""

import threading

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, PER_THREAD, current, new_stream, stream_on
from support.cuda.driver import call, made
from support.cuda.kinds import every_device, two_devices
from support.cuda.order import own_stream
from support.owners import Watch
from support.parameters import readable

VALUES, SEVENS = np.arange(4.0), np.full(4, 7.0)


class Versioned:
    """As cuda.core has it: a method that gives the version of the protocol and the handle."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


class Attribute:
    """The same as an attribute."""

    def __init__(self, handle):
        self.__cuda_stream__ = (0, handle)


class Answer:
    """An attribute of the right name, and anything in it."""

    def __init__(self, answer):
        self.__cuda_stream__ = answer


class Torch:
    def __init__(self, handle):
        self.cuda_stream = handle


class CuPy:
    def __init__(self, handle):
        self.ptr = handle


class Both(Versioned):
    """The protocol counts more than what a library calls its own handle."""

    ptr = cuda_stream = 99


SPEAK = [int, Versioned, Attribute, Torch, CuPy, Both]


def on_gpu(values=VALUES, device=0):
    """Return a storage with nothing in flight."""
    storage = dlf.storage(values, device=("gpu", device), managed=None)
    with current(device):
        call("cuCtxSynchronize")
    return storage


@pytest.mark.parametrize("speaks", SPEAK)
@pytest.mark.parametrize("flags", [0, 1])
def test_a_stream_is_taken_in_every_form(speaks, flags):
    handle = new_stream(flags)
    with dlf.use_stream(speaks(handle)) as used:
        assert own_stream() == int(used) == handle


@pytest.mark.parametrize("speaks", [Versioned, Torch, CuPy])
def test_the_handle_0_of_an_object_is_the_legacy_stream(speaks):
    with dlf.use_stream(speaks(0)):
        assert own_stream() == LEGACY


@pytest.mark.parametrize("handle", [LEGACY, PER_THREAD])
@every_device
def test_a_default_stream_is_that_of_the_current_device(handle, device):
    with current(device), dlf.use_stream(handle):
        assert own_stream(device) == handle


def test_the_object_is_kept_as_long_as_the_block():
    stream = Versioned(new_stream())
    watch = Watch(stream)
    with dlf.use_stream(stream):
        del stream
        assert not watch.freed
    assert watch.freed


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (2**64, ValueError),
        (True, TypeError),
        (None, TypeError),
        ("7", TypeError),
        (1.0, TypeError),
        (object(), TypeError),
        ((0, 1), TypeError),
        (Torch("7"), TypeError),
        (Torch(None), TypeError),
        (CuPy(1.5), TypeError),
    ],
    ids=readable,
)
def test_an_object_that_is_not_a_stream_is_refused(stream, error):
    own = own_stream()
    with pytest.raises(error):
        dlf.use_stream(stream)
    assert own_stream() == own


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (Torch(-1), ValueError),
        (CuPy(2**64), ValueError),
        (Versioned(-1), ValueError),
        (Versioned("7"), TypeError),
        (Answer(None), TypeError),
        (Answer((0,)), (TypeError, ValueError)),
        (Answer((0, 1, 2)), (TypeError, ValueError)),
    ],
    ids=["negative", "65 bits", "negative answer", "text", "no pair", "one", "three"],
)
def test_an_object_that_names_no_stream_is_refused_by_name(stream, error):
    with pytest.raises(error, match="stream: expected"):
        dlf.use_stream(stream)


def test_what_a_stream_raises_passes_unchanged():
    class Raising:
        def __cuda_stream__(self):
            raise error

    error = KeyboardInterrupt("of the stream")
    with pytest.raises(KeyboardInterrupt) as caught:
        dlf.use_stream(Raising())
    assert caught.value is error


def test_blocks_may_be_nested_and_end_in_order():
    own, outer, inner = own_stream(), new_stream(), new_stream()
    with dlf.use_stream(outer):
        with dlf.use_stream(inner):
            assert own_stream() == inner
            with dlf.use_stream(outer):
                assert own_stream() == outer
            assert own_stream() == inner
        assert own_stream() == outer
    assert own_stream() == own


def test_one_object_may_be_entered_again():
    own, stream, other = own_stream(), new_stream(), new_stream()
    used = dlf.use_stream(stream)
    with used, dlf.use_stream(other), used:
        assert own_stream() == stream
    assert own_stream() == own


def test_a_stream_that_is_not_entered_is_not_used():
    own = own_stream()
    used = dlf.use_stream(new_stream())
    assert own_stream() == own
    assert hex(int(used)) in repr(used)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_ends_the_block_and_passes(error):
    own, raised = own_stream(), error("of the block")
    with pytest.raises(error) as caught, dlf.use_stream(new_stream()):
        raise raised
    assert caught.value is raised
    assert own_stream() == own


def test_a_stream_is_used_by_its_thread_alone():
    own, stream, other, seen = own_stream(), new_stream(), new_stream(), {}
    entered, looked = threading.Barrier(2), threading.Barrier(2)

    def work():
        seen["before"] = own_stream()
        with dlf.use_stream(other):
            entered.wait()
            seen["inside"] = own_stream()
            looked.wait()

    with dlf.use_stream(stream):
        thread = threading.Thread(target=work)
        thread.start()
        entered.wait()
        assert own_stream() == stream
        looked.wait()
        thread.join()
    assert seen == {"before": own, "inside": other}


@two_devices
def test_a_stream_is_for_memory_of_its_own_device():
    own, stream = own_stream(0), stream_on(1)
    with dlf.use_stream(stream):
        assert (own_stream(0), own_stream(1)) == (own, stream)
        assert dlf.storage(on_gpu(SEVENS), device="cpu").to_numpy().tolist() == SEVENS.tolist()


@two_devices
def test_streams_of_two_devices_may_be_used_at_once():
    streams = [stream_on(0), stream_on(1)]
    with dlf.use_stream(streams[0]), dlf.use_stream(streams[1]):
        assert [own_stream(0), own_stream(1)] == streams
        copy = dlf.storage(on_gpu(SEVENS, 0), device=("gpu", 1), managed=None)
    assert dlf.storage(copy, device="cpu").to_numpy().tolist() == SEVENS.tolist()


@two_devices
def test_the_context_of_the_thread_stays_what_it_is():
    with current(0):
        context = made("cuCtxGetCurrent")
        with dlf.use_stream(stream_on(1)):
            dlf.zeros((4,), device=("gpu", 1), managed=None)[...] = on_gpu(SEVENS, 1)
            assert made("cuCtxGetCurrent") == context
        assert made("cuCtxGetCurrent") == context
