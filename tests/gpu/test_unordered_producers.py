"""Producers whose CUDA array interface names no stream, as before version 3 (JAX's and torch's)."""

import dlfield as dlf
import pytest

from support.cuda.devices import OnDevice, delay, new_stream, write_late
from support.cuda.driver import call, stats
from support.cuda.producers import VALUES, OnGpu, workshop

LATE = (VALUES + 10).tolist()


class WithBoth(OnGpu):
    """Has DLPack, which orders its work, and a CUDA array interface, which does not."""

    @property
    def __cuda_array_interface__(self):
        data = (self.memory.address, True)
        return {"shape": (4,), "typestr": "<f8", "data": data, "version": 2}


def unordered(version):
    """Return an array with work in flight that its interface does not mention."""
    made = OnDevice(VALUES, version=version)
    made.memory.kept = write_late(made.address, VALUES + 10, new_stream())
    return made


def assigned(one):
    """Return a storage that the array was assigned to."""
    target = dlf.zeros(4, device="gpu", managed=None)
    target[...] = one
    return target


TAKEN = {
    "as_storage": dlf.as_storage,
    "as_storage on the GPU": lambda one: dlf.as_storage(one, device="gpu"),
    "as_storage alone": lambda one: dlf.as_storage(one, device="gpu", managed=None),
    "device_data": lambda one: dlf.as_storage(device_data=one),
    "storage on the GPU": lambda one: dlf.storage(one, device="gpu", managed=None),
    "storage on the host": lambda one: dlf.storage(one, device="cpu"),
    "assignment": assigned,
}
every_taking = pytest.mark.parametrize("take", TAKEN.values(), ids=TAKEN)


def values_of(storage):
    return dlf.storage(storage, device="cpu").to_numpy().tolist()


@every_taking
def test_dlpack_counts_more_than_an_interface_that_names_no_stream(take):
    with workshop() as make:
        one = make(WithBoth, late=new_stream())
        assert values_of(take(one)) == LATE
        assert one.calls
        call("cuCtxSynchronize")


@every_taking
@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_interface_without_a_stream_is_waited_for(take, version):
    one = unordered(version)
    assert values_of(take(one)) == LATE


@pytest.mark.stand_in
def test_an_interface_that_says_nothing_is_pending_is_not_waited_for():
    one = OnDevice(VALUES, stream=None)
    delay(new_stream())
    before = stats().syncs
    storage = dlf.as_storage(one, device="gpu", managed=None)
    assert (stats().syncs, storage.shape) == (before, (4,))
    call("cuCtxSynchronize")
