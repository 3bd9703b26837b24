"""A producer, a storage and a consumer on a device: every pair of libraries.

The proofs: the same address; what one side writes the other reads; and the memory is given back
once the last reference is gone, not before.
"""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.handed import VALUES
from support.cuda.libraries import CONSUMERS, NEED_A_DRIVER, PRODUCERS, eventually, let_go

pytestmark = pytest.mark.filterwarnings("default")  # what libraries warn of is theirs


def pair(producer, consumer):
    names = {producer.library.name, consumer.library.name}
    marks = [pytest.mark.real] if names & NEED_A_DRIVER else []
    return pytest.param(producer, consumer, marks=marks, id=f"{producer} to {consumer}")


every_pair = pytest.mark.parametrize(
    ("producer", "consumer"),
    [pair(producer, consumer) for producer in PRODUCERS for consumer in CONSUMERS],
)
every_kind = pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])


@pytest.fixture(autouse=True)
def nothing_is_kept():
    yield
    let_go()


def linked(producer, consumer, managed):
    """Return an array, a storage over it, and what a consumer makes of that, unless it refuses."""
    array = producer.make(VALUES)
    storage = dlf.as_storage(array, managed=managed)
    if storage.readonly and consumer.refuses_read_only:
        try:
            consumer.take(storage)
        except (BufferError, TypeError):  # in the words of the library
            pytest.skip("refused, as read-only memory has to be")
        pytest.fail("read-only memory was taken")
    return array, storage, consumer.take(storage)


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "any interface that `cupy.asarray` accepts can be used on a GPU",
)
@every_kind
@every_pair
def test_both_ends_name_the_same_address(producer, consumer, managed):
    array, _, taken = linked(producer, consumer, managed)
    assert producer.library.address(array) == consumer.library.address(taken)


@every_kind
@every_pair
def test_the_consumer_has_the_values_of_the_producer(producer, consumer, managed):
    _, _, taken = linked(producer, consumer, managed)
    assert np.array_equal(consumer.library.read(taken), VALUES)


@every_pair
def test_what_the_producer_writes_the_consumer_has(producer, consumer):
    if producer.library.write is None or consumer.library.write is None:
        pytest.skip("one of them takes it that values never change")
    array, _, taken = linked(producer, consumer, None)
    producer.library.write(array, 7.0)
    assert np.array_equal(consumer.library.read(taken), np.full_like(VALUES, 7.0))


@every_pair
def test_what_the_consumer_writes_the_producer_has(producer, consumer):
    if producer.library.write is None or consumer.library.write is None:
        pytest.skip("one of them takes it that values never change")
    array, _, taken = linked(producer, consumer, None)
    consumer.library.write(taken, 8.0)
    assert np.array_equal(producer.library.read(array), np.full_like(VALUES, 8.0))


@every_kind
@every_pair
def test_memory_is_kept_for_the_consumer_and_given_back_after_it(producer, consumer, managed):
    let_go()
    producer.make(VALUES)  # what a library sets up at first is not counted
    let_go()
    before = producer.used()
    array, storage, taken = linked(producer, consumer, managed)
    del array, storage
    let_go()
    assert producer.used() > before
    assert np.array_equal(consumer.library.read(taken), VALUES)
    del taken
    assert eventually(lambda: producer.used() == before)
