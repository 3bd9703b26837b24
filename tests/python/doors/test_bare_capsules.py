"""DLPack capsules without their producer: taken once, by name, wherever an array is taken."""

import threading

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field

from support.addresses import address_of
from support.arrow_structs import never_freed
from support.dlpack_structs import (
    READ_ONLY,
    USED_LEGACY,
    USED_VERSIONED,
    DLDevice,
    Producer,
    capsule_name,
)
from support.no_driver import no_driver, without_driver

BOTH = pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
VALUES = np.arange(12.0).reshape(3, 4)
In, Out = Field[float, Access["in"]], Field[float, Access["out"]]


@BOTH
def test_a_capsule_is_taken_shared_and_given_back_once(legacy):
    producer = Producer(legacy=legacy)
    capsule = producer.capsule()
    storage = dlf.as_storage(capsule)
    assert (storage.door, storage.readonly) == ("dlpack", False)
    assert address_of(storage) == producer.managed.dl_tensor.data
    assert capsule_name(capsule) == (USED_LEGACY if legacy else USED_VERSIONED)
    del capsule
    assert producer.freed == 0
    del storage
    assert producer.freed == 1


def test_a_capsule_that_says_so_becomes_a_read_only_storage():
    assert dlf.as_storage(Producer(flags=READ_ONLY).capsule()).readonly


@BOTH
def test_a_capsule_is_taken_once(legacy):
    capsule = Producer(legacy=legacy).capsule()
    storage = dlf.as_storage(capsule)
    with pytest.raises(ValueError, match=r"got 'used_dltensor.*consumed before"):
        dlf.as_storage(capsule)
    assert storage.to_numpy()[2, 3] == 11


@pytest.mark.parametrize("name", [b"nope", b"arrow_array", b"dltensor_", b"DLTENSOR"])
def test_a_capsule_of_another_name_is_refused_and_left_alone(name):
    never_freed.append(producer := Producer())
    capsule = producer.raw_capsule(name)
    with pytest.raises(ValueError, match=f"expected the name .* got '{name.decode()}'"):
        dlf.as_storage(capsule)
    assert (capsule_name(capsule), producer.freed) == (name, 0)


@without_driver
def test_a_capsule_of_a_gpu_is_refused_without_a_driver_and_given_back_once():
    producer = Producer()
    producer.managed.dl_tensor.device = DLDevice(2, 0)
    capsule = producer.capsule()
    with no_driver("memory on cuda:0: "):
        dlf.as_storage(capsule)
    del capsule
    assert producer.freed == 1


def test_a_capsule_is_copied_and_assigned():
    source = Producer()
    copied = dlf.storage(source.capsule(), dtype="float32")
    np.testing.assert_array_equal(copied.to_numpy(), VALUES)
    target = dlf.zeros((3, 4))
    target[...] = source.capsule()
    target[1:, [0, 2]] = Producer((2, 2)).capsule()
    assert target.to_numpy().tolist() == [[0, 1, 2, 3], [0, 5, 1, 7], [2, 9, 3, 11]]


def test_a_capsule_is_an_argument_of_a_bound_call():
    def double(x: In, y: Out):
        y[...] = 2 * x

    source, target = Producer((3, 4, 1)), Producer((3, 4, 1))
    dlf.bind(double)(source.capsule(), y=target.capsule())
    assert list(target.values)[:12] == (2 * VALUES).ravel().tolist()
    assert (source.freed, target.freed) == (1, 1)


def test_a_capsule_is_explained_by_its_door():
    explained = dlf.explain(Producer().capsule())
    assert (explained.doors, explained.door) == (("dlpack",), "dlpack")


@BOTH
def test_of_many_threads_one_takes_a_capsule(legacy):
    for _ in range(50):
        producer, outcomes, together = Producer(legacy=legacy), [], threading.Barrier(4)
        capsule = producer.capsule()

        def take(capsule=capsule, outcomes=outcomes, together=together):
            together.wait()
            try:
                outcomes.append(dlf.as_storage(capsule))
            except ValueError:
                outcomes.append(None)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one is not None for one in outcomes].count(True) == 1
        del capsule, take
        outcomes.clear()
        assert producer.freed == 1
