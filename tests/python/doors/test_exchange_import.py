"""Import through DLPack's exchange table: zero-copy, freed once, and functions that fail or lie."""

import gc
import json

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import READ_ONLY, Producer
from support.exchange_structs import TRUTH, HeldWithDlpack, hand_out, raising, table, with_table
from support.no_driver import no_driver, without_driver
from support.processes import run_in_fork

DOOR = "dlpack_c_exchange_api"
Honest = with_table(table())


def test_a_tensor_comes_in_at_the_same_address():
    held = Honest((3, 4))
    storage = dlf.as_storage(held)
    assert address_of(storage) == held.producer.managed.dl_tensor.data
    assert (storage.shape, storage.strides, storage.dtype) == ((3, 4), (32, 8), np.float64)
    assert storage.door == DOOR


def test_a_write_through_the_exchange_table_is_seen_on_the_other_side():
    held = Honest((3, 4))
    array = dlf.as_storage(held).to_numpy()
    array[2, 1] = 70.0
    held.producer.values[3] = 30.0
    assert (held.producer.values[9], array[0, 3]) == (70.0, 30.0)


def test_the_deleter_is_called_once_when_the_last_view_is_gone():
    held = Honest()
    view = dlf.as_storage(held).to_numpy()[1:]
    gc.collect()
    assert held.producer.freed == 0
    del view
    gc.collect()
    assert held.producer.freed == 1


@pytest.mark.parametrize("flags", [0, READ_ONLY])
def test_the_read_only_flag_is_honoured(flags):
    storage = dlf.as_storage(Honest(flags=flags))
    assert storage.readonly == storage.__array_interface__["data"][1] == bool(flags)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,) * 64])
def test_scalars_empty_tensors_and_many_dimensions_come_in(shape):
    assert dlf.as_storage(Honest(shape)).shape == shape


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "the backend chooses among the interfaces of an object",
)
def test_the_table_goes_before_every_other_door():
    array = np.zeros(5).view(with_table(table(), np.ndarray))
    array.producer = Producer((3, 4))
    storage = dlf.as_storage(array)
    assert (storage.door, storage.shape) == (DOOR, (3, 4))


def test_a_tensor_on_a_device_is_released_and_dlpack_asked_for_one_on_the_host():
    held = with_table(table(), HeldWithDlpack)()
    device = held.producer.managed.dl_tensor.device
    device.device_type = 2

    def move(_held, *, dl_device, **_keywords):
        assert (dl_device, held.producer.freed) == ((1, 0), 1)
        device.device_type = 1
        return held.producer.capsule()

    type(held).__dlpack__, type(held).__dlpack_device__ = move, lambda _held: (2, 0)
    assert dlf.as_storage(held, device="cpu").door == "dlpack"
    assert held.producer.freed == 2


@without_driver
def test_a_device_that_the_host_cannot_reach_is_named_and_released():
    held = Honest()
    held.producer.managed.dl_tensor.device.device_type = 2
    with no_driver("memory on cuda:0: "):
        dlf.as_storage(held)
    assert held.producer.freed == 1


@pytest.mark.parametrize(
    "error", [BufferError, TypeError, RuntimeError, KeyboardInterrupt], ids=lambda e: e.__name__
)
def test_what_the_function_raises_passes_unchanged_and_no_other_door_is_tried(error):
    raised = error("of the producer")

    def fail(_held):
        raise raised

    held = with_table(table(TRUTH), HeldWithDlpack, __bool__=fail)()
    with pytest.raises(error) as caught:
        dlf.as_storage(held)
    assert caught.value is raised
    assert held.producer.calls == []


@pytest.mark.parametrize("code", [-1, 1, 2**31 - 1])
def test_a_failure_without_an_exception_is_refused_by_name(code):
    held = with_table(table(lambda _held, _room: code), HeldWithDlpack)()
    with pytest.raises(BufferError, match=r"exchange table: .* failed without an exception"):
        dlf.as_storage(held)
    assert held.producer.calls == []


def test_no_tensor_without_an_exception_is_refused_by_name():
    held = with_table(table(lambda _held, _room: 0), HeldWithDlpack)()
    with pytest.raises(BufferError, match=r"exchange table: .* gave NULL"):
        dlf.as_storage(held)
    assert held.producer.calls == []


def test_no_tensor_beside_an_exception_is_that_exception():
    with pytest.raises(MemoryError):
        dlf.as_storage(with_table(table(lambda _held, _room: raising(0)))())


def test_a_tensor_beside_an_exception_is_released_once_and_the_exception_passes():
    def both(held, room):
        return raising(hand_out(held, room))

    held = with_table(table(both), HeldWithDlpack)()
    with pytest.raises(MemoryError):
        dlf.as_storage(held)
    assert (held.producer.freed, held.producer.calls) == (1, [])


LIES = {
    "ndim": ("t.ndim = -1", "got -1"),
    "data": ("t.data = None", "expected an address"),
    "shape": ("t.shape = None", "got NULL"),
    "extent": ("p.shape[0] = -3", "got -3"),
    "dtype": ("t.dtype.lanes = 2", "2 lanes"),
    "version": ("p.managed.version.major = 2", "expected major version 1"),
    "device": ("t.device.device_type = 77", "got code 77"),
}


def outcome(lie):
    """Let a function spoil the tensor before it gives it away, in a process of its own."""
    printed = run_in_fork(f"""
        from support.lying_producers import *
        from support.exchange_structs import *

        def hand_out_a_lie(held, room):
            p, t = held.producer, held.producer.managed.dl_tensor
            {lie}
            return hand_out(held, room)

        held = with_table(table(hand_out_a_lie), HeldWithDlpack)()
        report(held, held.producer)
    """)
    return json.loads(printed)


@pytest.mark.parametrize(("statement", "text"), LIES.values(), ids=LIES)
def test_a_tensor_that_lies_is_refused_by_name_and_released_once(statement, text):
    seen = outcome(statement)
    assert (seen["error"], seen["freed"]) == ("BufferError", 1), seen
    assert text in seen["text"]


def test_of_a_tensor_that_is_not_aligned_nothing_is_touched():
    seen = outcome("p.address += 1")
    assert (seen["error"], seen["freed"]) == ("BufferError", 0), seen
    assert "gave a misaligned pointer" in seen["text"]
