"""A device that has failed, or whose context is gone: an error each time, and no crash.

Each test has a process of its own on the stand-in: a fault stays in its process.
"""

import textwrap

import pytest

from support.cuda.stand_in import end_of, run

pytestmark = pytest.mark.stand_in

START = """
import gc, pickle
start()
import dlfield as dlf
VALUES = np.arange(12.0).reshape(3, 4)

def in_sync():
    pair = dlf.storage(VALUES, device="gpu")
    pair.synchronize()
    return pair

KINDS = {
    "alone": lambda: dlf.ones((3, 4), device="gpu", managed=None),
    "device newer": lambda: dlf.ones((3, 4), device="gpu"),
    "in sync": in_sync,
    "managed": lambda: dlf.ones((3, 4), device="gpu", managed="cuda"),
}
#: Never used by the device.
UNUSED = {
    "host newer": lambda: dlf.storage(VALUES, device="gpu"),
    "managed": lambda: dlf.empty((3, 4), device="gpu", managed="cuda"),
}

def modify(side):
    with side:
        pass

NEED_THE_DEVICE = {
    "fresh": lambda one: dlf.zeros_like(one),
    "uninitialised": lambda one: dlf.empty(3, device="gpu", managed=None),
    "copy": lambda one: one.copy(),
    "interface": lambda one: one.__cuda_array_interface__,
    "capsule": lambda one: one.__dlpack__(stream=1),
    "capsule for the host": lambda one: one.__dlpack__(dl_device=(1, 0)),
    "assignment of a number": lambda one: one.__setitem__(..., 7.0),
    "assignment from the host": lambda one: one.__setitem__(..., VALUES),
    "assignment from the device": lambda one: one.__setitem__(..., other),
    "to_host": lambda one: dlf.storage(one, device=None),
    "synchronize": lambda one: one.synchronize(),
    "host_to_device": lambda one: one.host_to_device(force=True),
    "device_to_host": lambda one: one.device_to_host(force=True),
    "device": lambda one: modify(one.device()),
    "item": lambda one: one[2, 3],
    "pickle": pickle.dumps,
    "array": lambda one: np.asarray(one),
}
other = dlf.zeros((3, 4), device="gpu", managed=None)
made = {(kind, use): KINDS[kind]() for kind in KINDS for use in NEED_THE_DEVICE}
unused = {kind: UNUSED[kind]() for kind in UNUSED}

def fails(use, kind):
    try:
        NEED_THE_DEVICE[use](made[kind, use])
    except dlf.DeviceUnavailable as error:
        assert "CUDA: expected cu" in str(error) and "only a new process" in str(error), error
    except BufferError:
        assert (kind, use) == ("alone", "array")
    else:
        raise AssertionError(f"{use} of {kind}: passed")

def fail_each():
    for kind, use in made:
        fails(use, kind)
"""

FAULT = """
there = device_array([1])
call("cuMemsetD8_v2", there, 0, 2)  # past its end
assert status("cuCtxSynchronize") == 700
"""
RESET = 'call("cuDevicePrimaryCtxReset_v2", 0)\n'
#: Another library goes on in a new context.
RESTART = RESET + "start()\n"
EVENTS = {"fault": FAULT, "reset": RESET, "restart": RESTART}


def after(event, code):
    """Run a snippet after an event, in a process that ends well, and give its stderr."""
    return run(START + EVENTS[event] + textwrap.dedent(code), DLFIELD_FAKE_CUDA_DEVICES="2")


@pytest.mark.parametrize("event", ["fault", "reset"])
def test_whatever_needs_the_device_is_an_error_that_says_what_helps(event):
    after(event, "fail_each()")


def test_memory_of_a_replaced_context_cannot_be_used():
    after(
        "restart",
        """
        for use in ("copy", "interface", "assignment from the device", "host_to_device", "to_host"):
            for kind in KINDS:
                fails(use, kind)
        """,
    )


@pytest.mark.parametrize("event", ["fault", "reset"])
def test_the_second_try_is_an_error_as_the_first(event):
    after(
        event,
        """
        for kind in KINDS:
            for use in ("to_host", "copy", "assignment from the device", "item"):
                fails(use, kind)
                fails(use, kind)
        """,
    )


@pytest.mark.parametrize("event", EVENTS)
def test_a_storage_on_a_device_that_has_failed_can_be_shown(event):
    after(
        event,
        """
        for kind in KINDS:
            assert "GPUStorage shape=(3, 4)" in repr(made[kind, "item"])
        """,
    )


def test_after_an_operation_that_failed_a_wait_fails_too():
    after(
        "fault",
        """
        fails("assignment from the host", "alone")
        made["alone", "synchronize"] = made["alone", "assignment from the host"]
        fails("synchronize", "alone")
        """,
    )


@pytest.mark.parametrize("event", ["fault", "reset"])
def test_storages_are_dropped_without_a_crash_and_nothing_is_freed_twice(event):
    said = after(
        event,
        """
        before = stats().violations
        made.clear()
        unused.clear()
        del other
        gc.collect()
        assert stats().violations == before
        """,
    )
    assert said.count("fake cuda") == (1 if event == "fault" else 0)


def test_what_another_library_makes_after_a_reset_is_not_freed_with_what_was_there_before():
    after(
        "restart",
        """
        before = stats()
        made.clear()
        unused.clear()
        gc.collect()
        assert (stats().frees, stats().violations) == (before.frees, 0)
        """,
    )


@pytest.mark.parametrize("event", EVENTS)
def test_other_devices_and_the_host_go_on(event):
    after(
        event,
        """
        for managed in (None, "gt4py", "cuda"):
            field = dlf.full((3, 4), 2.5, device=("gpu", 1), managed=managed)
            field[1:] = VALUES[1:]
            assert dlf.storage(field, device=None).to_numpy()[:, 3].tolist() == [2.5, 7, 11]
        assert dlf.storage(VALUES).to_numpy().tolist() == VALUES.tolist()
        """,
    )


def test_values_that_are_on_the_host_survive_a_fault():
    after(
        "fault",
        """
        assert unused["host newer"].to_numpy().tolist() == VALUES.tolist()
        unused["host newer"][0] = 5
        assert unused["host newer"][0, 3] == 5
        """,
    )


@pytest.mark.parametrize("kind", ["host newer", "managed"])
@pytest.mark.parametrize("event", ["reset", "restart"])
def test_memory_of_the_host_that_went_with_the_context_is_an_error_and_no_crash(event, kind):
    after(
        event,
        f"""
        try:
            unused["{kind}"].to_numpy().sum()
        except dlf.DeviceUnavailable:
            pass
        else:
            raise AssertionError("the memory is gone")
        """,
    )


def test_a_failed_copy_does_not_make_the_host_safe_after_a_reset():
    after(
        "reset",
        """
        fails("host_to_device", "in sync")
        made["in sync", "array"] = made["in sync", "host_to_device"]
        fails("array", "in sync")
        """,
    )


@pytest.mark.parametrize("event", EVENTS)
def test_the_process_ends_well_with_storages_on_a_device_that_has_failed(event):
    done = end_of(START + EVENTS[event] + "cycle = [made]; cycle.append(cycle)\n")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr


def test_a_fault_of_dlfields_own_copy_is_an_error_where_it_is_waited_for():
    """The source was freed by mistake outside dlfield."""
    run("""
        start()
        import dlfield as dlf
        class Shown:
            pass
        Shown.__cuda_array_interface__ = {
            "shape": (3,), "typestr": "|u1", "data": (there := device_array([1, 2, 3]), False),
            "strides": None, "version": 3,
        }
        shown = dlf.as_storage(Shown(), managed=None)
        call("cuMemFree_v2", there)
        copied = dlf.storage(shown, device="gpu", managed="gt4py")  # later
        try:
            copied.to_numpy()
        except dlf.DeviceUnavailable as error:
            assert "700" in str(error)
        else:
            raise AssertionError("the source is gone")
    """)
