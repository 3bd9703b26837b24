"""Arrow's C device interface out of storages on a GPU: what it shows, and what it refuses."""

import ctypes
from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import Taken
from support.cuda import order
from support.cuda.buffers import Counted, buffers, pair
from support.cuda.devices import OnDevice, new_stream
from support.cuda.kinds import (
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_class,
    every_device,
    every_kind,
    every_state,
    host_backed,
)
from support.cuda.order import idle
from support.cuda.producers import ROCM, workshop
from support.optional import library

CPU, CUDA = (1, -1), 2
VALUES, SEVENS = np.arange(4.0), np.full(4, 7.0)
in_flight = partial(order.in_flight, VALUES, SEVENS)


def taken_from(storage):
    return Taken(storage.__arrow_c_device_array__())


def device_of(taken):
    return taken.device.device_type, taken.device.device_id


def buffer_of(storage, key="gpu"):
    """Return the address of a storage's buffer on one side, without a copy."""
    return storage.__gt_data_interface__[key]["data"][0]


@every_class
def test_an_array_says_on_which_device_its_memory_is(name, options):
    storage = dlf.zeros(4, **options)
    storage.synchronize()
    taken = taken_from(storage)
    assert device_of(taken) == (CPU if name == "CPUStorage" else (CUDA, 0))
    assert (taken.device.sync_event is None) == (name == "CPUStorage")
    assert taken.buffer() == buffer_of(storage, None if name == "CPUStorage" else "gpu")
    taken.release()


@every_device
@every_kind
def test_the_device_is_the_one_that_dlpack_announces(managed, device):
    storage = dlf.zeros(4, device=("gpu", device), managed=managed)
    taken = taken_from(storage)
    assert device_of(taken) == storage.__dlpack_device__() == (CUDA, device)
    taken.release()


@every_state
def test_a_pair_shows_the_side_that_is_newer_and_the_device_where_both_are(state):
    storage = pair(VALUES, state)
    taken = taken_from(storage)
    if state == HOST_NEWER:
        assert (device_of(taken), taken.device.sync_event) == (CPU, None)
        assert taken.buffer() == buffer_of(storage, None)
    else:
        assert (device_of(taken), taken.buffer()) == ((CUDA, 0), buffer_of(storage))
        assert taken.device.sync_event is not None
    assert storage.sync_state.state == state
    taken.release()


SIDES = {
    "host": lambda storage: dlf.as_storage(storage, device="cpu"),
    "device": lambda storage: dlf.as_storage(storage, managed=None),
}


@every_state
@pytest.mark.parametrize("side", SIDES)
def test_a_side_of_a_pair_alone_shows_that_side_up_to_date(side, state):
    storage = pair(VALUES, state)
    taken = taken_from(SIDES[side](storage))
    assert device_of(taken) == (CPU if side == "host" else (CUDA, 0))
    assert taken.buffer() == buffer_of(storage, None if side == "host" else "gpu")
    there = buffers(storage)[0 if side == "host" else 1]
    assert there.tolist() == VALUES.tolist()
    taken.release()


@pytest.mark.stand_in
@every_state
def test_neither_side_of_a_pair_is_copied_to_be_shown(state):
    storage = pair(VALUES, state)
    with Counted() as copies:
        storage.__arrow_c_device_array__()
    assert (copies.made, copies.allocated) == (0, 0)


@every_kind
def test_a_part_begins_at_its_own_first_element(managed):
    storage = idle(managed=managed)
    taken = taken_from(storage[1:])
    start = taken.buffer() + 8 * taken.array.offset
    assert (start, taken.array.length) == (buffer_of(storage) + 8, 3)
    taken.release()


@every_kind
@pytest.mark.parametrize(
    ("layout", "length", "said"),
    [
        ((0, 1, 2), 4, {"shape": [3, 2], "dim_names": ["J", "K"]}),
        ((2, 1, 0), 2, {"shape": [3, 4], "dim_names": ["J", "I"], "permutation": [1, 0]}),
    ],
    ids=["C order", "Fortran order"],
)
def test_a_field_on_a_gpu_is_a_list_of_tensors_as_on_the_host(managed, layout, length, said):
    storage = dlf.zeros(
        (4, 3, 2), dims="IJK", halo=(1, 0, 0), layout=layout, device="gpu", managed=managed
    )
    taken = taken_from(storage)
    words = taken.words()
    assert (words[b"ARROW:extension:name"], words[b"ARROW:extension:metadata"]) == (
        b"arrow.fixed_shape_tensor",
        said,
    )
    assert (words[b"dlfield"]["shape"], words[b"dlfield"]["halo"][0]) == ([4, 3, 2], [1, 1])
    assert (taken.array.length, taken.array.null_count, taken.buffer(0)) == (length, 0, None)
    _, inner = taken.child()
    assert (taken.buffer(0, inner), taken.buffer(1, inner)) == (None, buffer_of(storage))
    taken.release()


@every_kind
def test_truth_values_on_a_gpu_are_bytes_that_call_themselves_so(managed):
    storage = dlf.zeros(4, bool, device="gpu", managed=managed)
    taken = taken_from(storage)
    assert (taken.schema.format, taken.words()[b"ARROW:extension:name"]) == (b"c", b"arrow.bool8")
    assert taken.buffer() == buffer_of(storage)
    taken.release()


def test_read_only_memory_is_shown_too():
    data = OnDevice(VALUES, readonly=True)
    taken = taken_from(dlf.as_storage(data, managed=None))
    assert taken.buffer() == data.address
    taken.release()


def test_memory_of_rocm_is_shown_without_an_event():
    with workshop() as make:
        one = make(kind=ROCM, announces=(ROCM, 3))
        taken = taken_from(dlf.as_storage(one))
        assert (device_of(taken), taken.device.sync_event) == ((ROCM, 3), None)
        assert taken.buffer() == one.memory.address
        taken.release()


@every_kind
def test_memory_with_gaps_is_refused(managed):
    with pytest.raises(BufferError, match="follow each other in memory"):
        dlf.zeros((4, 3), device="gpu", managed=managed)[:, 1:].__arrow_c_device_array__()


@every_kind
def test_an_unknown_keyword_of_the_device_export_is_refused_by_name(managed):
    storage = dlf.zeros(4, device="gpu", managed=managed)
    with pytest.raises(NotImplementedError, match="got stream"):
        storage.__arrow_c_device_array__(stream=1)


@every_kind
def test_a_keyword_that_is_none_and_a_schema_that_is_asked_for_are_let_pass(managed):
    storage = dlf.zeros(4, device="gpu", managed=managed)
    asked = storage.__arrow_c_schema__()
    assert len(storage.__arrow_c_device_array__(asked, stream=None)) == 2
    assert len(storage.__arrow_c_device_array__(requested_schema=asked)) == 2


@every_class
def test_only_what_has_a_buffer_on_the_host_has_the_door_of_the_host(name, options):
    storage = dlf.zeros(4, **options)
    assert hasattr(storage, "__arrow_c_array__") == (name != "GPUStorage")
    assert hasattr(type(storage), "__arrow_c_array__") == (name != "GPUStorage")
    assert hasattr(storage, "__arrow_c_device_array__")


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("ask", ["to_arrow", "to_arrow_batch"])
def test_pyarrow_refuses_memory_of_a_device(ask, copy):
    storage = dlf.zeros(4, device="gpu", managed=None)
    arguments = ("name",) if ask == "to_arrow_batch" else ()
    with pytest.raises(dlf.GTNoSuchBufferError, match=ask):
        getattr(storage, ask)(*arguments, copy=copy)


@host_backed
@pytest.mark.parametrize("writer", [None, new_stream], ids=["own", "new"])
def test_the_array_of_the_host_is_up_to_date_and_finished(managed, writer):
    storage = in_flight(managed, writer)
    taken = Taken(storage.__arrow_c_array__())
    there = (ctypes.c_double * 4).from_address(taken.buffer())
    assert list(there) == SEVENS.tolist()
    assert taken.buffer() == buffer_of(storage, None)
    taken.release()


@host_backed
def test_a_side_on_the_host_is_finished_when_it_is_shown(managed):
    taken = taken_from(dlf.as_storage(in_flight(managed, new_stream), device="cpu"))
    there = (ctypes.c_double * 4).from_address(taken.buffer())
    assert (list(there), device_of(taken)) == (SEVENS.tolist(), CPU)
    taken.release()


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["host", "device"])
def test_to_arrow_brings_the_host_up_to_date_and_copies_nothing_else(state):
    library("pyarrow")
    storage = pair(VALUES, state)
    array = storage.to_arrow()
    assert array.to_pylist() == VALUES.tolist()
    assert array.buffers()[1].address == buffer_of(storage, None)
    assert storage.sync_state.state == (HOST_NEWER if state == HOST_NEWER else CLEAN)


@host_backed
def test_to_arrow_waits_for_what_is_in_flight(managed):
    library("pyarrow")
    storage = in_flight(managed, new_stream)
    assert storage.to_arrow(copy=True).to_pylist() == SEVENS.tolist()
    storage = in_flight(managed, new_stream)
    assert storage.to_arrow_batch("x").column("x").to_pylist() == SEVENS.tolist()
