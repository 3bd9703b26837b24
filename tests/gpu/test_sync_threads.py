"""Pairs that several threads use at once."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import dlfield as dlf
import numpy as np
import pytest

from support.cuda import stand_in
from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import LEGACY, OnDevice
from support.cuda.driver import HOST_FUNCTION, call
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER

VALUES = np.arange(6.0).reshape(2, 3)

ACCESSES = {
    "to_numpy": lambda s: s.to_numpy(),
    "number": lambda s: s[0, 0],
    "synchronize": lambda s: s.synchronize(),
    "assignment": lambda s: s.__setitem__((0, 0), 0.0),
}


@contextmanager
def copying_to_the_host():
    """A pair with a newer device side, while a thread copies it to the host; it is done after."""
    made = dlf.as_storage(np.zeros((2, 3)), device="gpu")
    with made.device() as side:
        side[...] = OnDevice(VALUES)
    inside, go = threading.Event(), threading.Event()

    @HOST_FUNCTION
    def hold(_nothing):
        inside.set()
        go.wait(60)

    call("cuLaunchHostFunc", LEGACY, hold, 0)
    thread = threading.Thread(target=made.to_numpy)
    thread.start()
    inside.wait(60)
    try:
        yield made
    finally:
        go.set()
        thread.join()


@pytest.mark.stand_in
@pytest.mark.parametrize("access", ACCESSES.values(), ids=ACCESSES)
def test_a_request_during_a_copy_waits_for_it_and_does_not_copy_again(access):
    with Counted() as copies:
        with copying_to_the_host() as made:
            second = threading.Thread(target=access, args=(made,))
            second.start()
        second.join()
    assert copies.to_host == 1
    np.testing.assert_array_equal(made.to_numpy(), VALUES)


@pytest.mark.stand_in
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("access", [*ACCESSES.values(), dlf.as_storage, dlf.storage])
def test_a_child_that_was_forked_during_a_copy_is_refused_at_once(access):
    with copying_to_the_host() as made:
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            made.set_host_modified()
            try:
                access(made if access is dlf.storage else made[...])
            except dlf.DeviceUnavailable as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        _, status = os.waitpid(child, 0)
    assert status == 0


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["host newer", "device newer"])
def test_many_threads_that_ask_at_once_find_the_newer_values(state):
    made, found, together = pair(VALUES, state), [], threading.Barrier(8)

    def ask(number):
        together.wait()
        view = made[:, number % 3 :]
        right = np.array_equal(values(view), VALUES[:, number % 3 :])
        found.append(right and "data" in view.__cuda_array_interface__)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
    assert made.sync_state.state == CLEAN
    np.testing.assert_array_equal(buffers(made), [VALUES, VALUES])


def test_threads_that_use_a_pair_as_they_like_leave_it_whole():
    made, failed = pair(np.zeros((6, 4)), layout=(1, 0)), []
    methods = [
        lambda view, number: view.__setitem__(..., number),
        lambda view, number: view.__setitem__(..., OnDevice([float(number)] * 4)),
        lambda view, number: view.to_numpy().sum(),
        lambda view, number: view.__cuda_array_interface__,
        lambda view, number: (view.set_host_modified(), view.synchronize()),
        lambda view, number: (view.copy(), repr(view), view.sync_state.state),
    ]

    def work(number):
        try:
            for step in range(40):
                methods[(step + number) % len(methods)](made[number], number)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made.synchronize()
    assert failed == []
    np.testing.assert_array_equal(*buffers(made))


@pytest.mark.stand_in
@pytest.mark.parametrize(
    "asks",
    ["__dlpack__()", "copy()", "__repr__()"],
)
def test_a_request_during_a_copy_does_not_block_python(asks):
    """A function of Python's in the stream needs the interpreter before the copy can be made."""
    done = stand_in.end_of(
        f"""
        import signal, threading
        import dlfield as dlf
        start()
        signal.alarm(60)  # ends a process that waits for ever
        made = dlf.as_storage(np.zeros(4), device="gpu")
        made.host_to_device()
        made.set_device_modified()
        inside, asked = threading.Event(), threading.Event()

        @HOST_FUNCTION
        def copying(nothing):
            inside.set()
            asked.wait(0.5)

        call("cuLaunchHostFunc", 1, copying, 0)
        copy = threading.Thread(target=made.to_numpy)
        copy.start()
        inside.wait()
        made.{asks}
        asked.set()
        copy.join()
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_copy_in_one_thread_does_not_refuse_the_update_of_the_host_in_another():
    made, failed = pair(np.zeros((256, 1024))), []
    ended = threading.Event()

    def work(step):
        try:
            while not ended.is_set():
                step()
        except Exception as error:
            failed.append(error)

    def update():
        made.set_host_modified()
        time.sleep(0.0005)  # a copy of the host's values begins
        made.set_device_modified()
        made.to_numpy()

    threads = [threading.Thread(target=work, args=(step,)) for step in (made.copy, update)]
    for thread in threads:
        thread.start()
    ended.wait(0.5)
    ended.set()
    for thread in threads:
        thread.join()
    assert failed == []
