"""The CUDA array interface's `stream`, taken: dlfield and a producer wait for each other's work."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.apart import run
from support.cuda.devices import LEGACY, PER_THREAD, OnDevice, current, new_stream, write_late
from support.cuda.devices import delay as keep_busy
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, two_devices
from support.cuda.order import own_stream, put_from, seen_from

OLD, NEW = np.arange(4.0), np.arange(4.0) + 10
STREAMS = pytest.mark.parametrize("name", ["new", "blocking", LEGACY, PER_THREAD])


def stream_called(name, device=0):
    """Return the handle of a stream of a device."""
    with current(device):
        made = {"new": new_stream, "blocking": lambda: new_stream(0)}
        return made[name]() if name in made else name


class Producer(OnDevice):
    """Works on a stream: there `NEW` is still to be written over `OLD`."""

    def __init__(self, stream, *, device=0, named=True):
        super().__init__(OLD, device=device, **({"stream": stream} if named else {}))
        with current(device):
            self.memory.kept = write_late(self.address, NEW, stream)


def taken(producer):
    return dlf.as_storage(producer, managed=None)


def values_of(storage):
    return dlf.storage(storage, device="cpu").to_numpy().tolist()


def finish(*devices):
    for device in devices or (0,):
        with current(device):
            call("cuCtxSynchronize")


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`stream` is None or an int to synchronise on",
    "`stream` 1 is the legacy default stream, 2 that of the thread, others are handles",
)
@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "with a stream, a consumer synchronises with it or works in it",
    "both options are off by default",
)
@every_device
@STREAMS
def test_values_that_the_producer_is_still_writing_come_to_the_host(name, device):
    storage = taken(Producer(stream_called(name, device), device=device))
    with current(device):  # where the per-thread stream of this thread is the producer's
        assert values_of(storage) == NEW.tolist()


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "with a stream, a consumer synchronises with it or works in it",
)
@STREAMS
def test_a_device_copy_comes_after_work_on_the_named_stream(name):
    storage = taken(Producer(stream_called(name)))
    copy = dlf.storage(storage, device="gpu", managed=None)
    there, _readonly = copy.__cuda_array_interface__["data"]
    assert seen_from(own_stream(), there).tolist() == NEW.tolist()
    finish()


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "with a stream, a consumer synchronises with it or works in it",
)
@pytest.mark.stand_in
def test_the_producers_stream_is_waited_for_by_the_device_and_not_by_the_host():
    storage = taken(Producer(new_stream()))
    before = stats().syncs
    copy = dlf.storage(storage, device="gpu", managed=None)
    pair = dlf.as_storage(storage, managed="gt4py")
    assert stats().syncs == before
    finish()
    assert copy.shape == pair.shape


def test_work_that_the_producer_puts_on_its_stream_after_the_import_is_waited_for_too():
    stream = new_stream()
    producer = OnDevice(OLD, stream=stream)
    storage = taken(producer)
    late = write_late(producer.address, NEW, stream)
    assert values_of(storage) == NEW.tolist()
    assert late.start


@pytest.mark.source(
    "CUDA array interface",
    "Design Motivations",
    "exchange is free of data races by default, without action of the user",
)
def test_a_copy_from_one_producer_to_another_comes_after_the_work_of_both():
    source, target = Producer(new_stream()), Producer(new_stream())
    taken(target)[...] = taken(source)
    assert target.values().tolist() == NEW.tolist()
    source, target = Producer(new_stream()), Producer(new_stream())
    taken(target)[:2] = dlf.full((2,), 5.0, device="gpu", managed=None)
    assert target.values().tolist() == [5, 5, *NEW[2:]]


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a consumer in another stream makes the producer's wait for it, or returns when done",
)
@every_device
@STREAMS
def test_a_producer_that_overwrites_at_once_does_not_reach_a_read_that_is_under_way(name, device):
    stream = stream_called(name, device)
    producer = OnDevice(OLD, device=device, stream=stream)
    keep_busy(own_stream(device))
    copy = dlf.storage(taken(producer), device=("gpu", device), managed=None)
    put_from(stream, producer.address, NEW, device)
    assert values_of(copy) == OLD.tolist()


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`stream` 1 is the legacy default stream, 2 that of the thread, others are handles",
)
@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a consumer in another stream makes the producer's wait for it, or returns when done",
)
@STREAMS
def test_the_producer_finds_on_its_stream_what_dlfield_has_written(name):
    stream = stream_called(name)
    producer = OnDevice(OLD, stream=stream)
    storage, source = taken(producer), dlf.storage(NEW, device="gpu", managed=None)
    keep_busy(own_stream())
    storage[...] = source
    assert seen_from(stream, producer.address).tolist() == NEW.tolist()
    finish()


def test_the_producer_finds_on_its_stream_what_was_written_on_a_stream_of_the_user():
    stream, other = new_stream(), new_stream()
    producer = OnDevice(OLD, stream=stream)
    storage, source = taken(producer), dlf.storage(NEW, device="gpu", managed=None)
    keep_busy(other)
    with dlf.use_stream(other):
        storage[...] = source
    assert seen_from(stream, producer.address).tolist() == NEW.tolist()
    finish()


def test_what_is_read_through_a_view_holds_the_producer_up_too():
    stream = new_stream()
    producer = OnDevice(OLD, stream=stream)
    view = taken(producer)[1:]
    keep_busy(own_stream())
    copy = dlf.storage(view, device="gpu", managed=None)
    put_from(stream, producer.address, NEW)
    assert values_of(copy) == OLD[1:].tolist()


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "without a stream a consumer need not synchronise, and may work on any stream",
)
@pytest.mark.stand_in
def test_a_producer_without_a_stream_is_not_waited_for():
    """None means that nothing is pending; if work is pending, the producer lies."""
    storage = taken(Producer(new_stream(), named=False))
    before = stats().syncs
    copy = dlf.storage(storage, device="gpu", managed=None)
    assert stats().syncs == before
    there, _readonly = copy.__cuda_array_interface__["data"]
    assert seen_from(own_stream(), there).tolist() == OLD.tolist()
    finish()


@two_devices
def test_a_default_stream_is_that_of_the_device_that_has_the_memory():
    producer = Producer(LEGACY, device=1)
    with current(0):
        assert values_of(taken(producer)) == NEW.tolist()


@two_devices
def test_the_stream_may_be_one_of_another_device_than_the_memory():
    """As CuPy names its current stream, whichever device an array is on."""
    stream, producer = new_stream(), OnDevice(OLD, device=1)
    late = write_late(producer.address, NEW, stream)
    producer.interface["stream"] = stream
    assert values_of(taken(producer)) == NEW.tolist()
    assert late.start


@two_devices
def test_a_copy_to_another_device_comes_after_work_on_the_named_stream():
    with current(1):
        stream = new_stream()
    copy = dlf.storage(taken(Producer(stream, device=1)), device=("gpu", 0), managed=None)
    assert values_of(copy) == NEW.tolist()
    finish(0, 1)


@two_devices
def test_a_producer_is_held_up_by_a_copy_to_another_device():
    with current(1):
        stream = new_stream()
    producer = OnDevice(OLD, device=1, stream=stream)
    keep_busy(own_stream(0))
    copy = dlf.storage(taken(producer), device=("gpu", 0), managed=None)
    put_from(stream, producer.address, NEW, 1)
    assert values_of(copy) == OLD.tolist()
    finish(0, 1)


def test_the_sibling_on_the_host_is_filled_after_the_producers_work():
    assert dlf.as_storage(Producer(new_stream())).to_numpy().tolist() == NEW.tolist()


@pytest.mark.parametrize("managed", [None, "gt4py"])
@pytest.mark.parametrize("wait", ["acquire", "synchronize", "host_to_device", "device_to_host"])
def test_gt4pys_functions_wait_for_the_producers_work_with_the_host(wait, managed):
    storage = dlf.as_storage(Producer(new_stream()), managed=managed)
    gpu = storage.__gt_data_interface__["gpu"]
    (gpu["acquire"] if wait == "acquire" else getattr(storage, wait))()
    assert seen_from(new_stream(), gpu["data"][0]).tolist() == NEW.tolist()


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "waiting for the stream of a producer waits for all its work on the data",
)
def test_the_re_export_of_an_import_names_a_stream_that_waits_for_the_producer():
    storage = taken(Producer(new_stream()))
    found = storage.__cuda_array_interface__
    assert found["stream"] is not None
    assert seen_from(found["stream"], found["data"][0]).tolist() == NEW.tolist()
    finish()


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a user may tell a consumer to ignore streams",
    "a consumer may have an option to ignore streams",
)
@pytest.mark.stand_in
@pytest.mark.parametrize(("setting", "seen"), [("0", "old"), ("1", "new")])
def test_the_environment_may_say_that_streams_of_producers_are_ignored(setting, seen):
    printed = run(
        """
        values = {0.0: "old", 1.0: "new"}
        there, stream = OnDevice(np.zeros(4)), new_stream()
        there.interface["stream"] = stream
        late = write_late(there.address, np.ones(4), stream)
        copy = dlf.storage(dlf.as_storage(there, managed=None), device="gpu", managed=None)
        print(values[seen_from(own_stream(), device_address(copy))[0]])
        call("cuCtxSynchronize")
        """,
        DLFIELD_CUDA_ARRAY_INTERFACE_SYNC=setting,
    )
    assert printed == seen


@pytest.mark.stand_in
def test_a_stream_that_is_ignored_has_to_be_one_all_the_same():
    printed = run(
        """
        for stream in (0, -1, "s"):
            try:
                dlf.as_storage(OnDevice(np.zeros(4), stream=stream))
            except (TypeError, ValueError) as error:
                print(type(error).__name__)
        """,
        DLFIELD_CUDA_ARRAY_INTERFACE_SYNC="0",
    )
    assert printed.split() == ["ValueError", "ValueError", "TypeError"]


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a producer may have an option to always export None",
)
@pytest.mark.stand_in
@pytest.mark.parametrize(("setting", "named"), [("0", False), ("1", True)])
def test_the_environment_may_say_that_no_stream_is_exported(setting, named):
    printed = run(
        """
        storages = [dlf.as_storage(OnDevice(np.zeros(4), stream=new_stream()), managed=None)]
        storages += [dlf.zeros(4, device="gpu", managed=m) for m in (None, "gt4py", "cuda")]
        print(*[s.__cuda_array_interface__["stream"] is not None for s in storages])
        """,
        DLFIELD_CUDA_ARRAY_INTERFACE_STREAM=setting,
    )
    assert printed.split() == [str(named)] * 4


@pytest.mark.stand_in
def test_the_environment_is_read_once():
    printed = run(
        """
        storage = dlf.zeros(4, device="gpu", managed=None)
        first = storage.__cuda_array_interface__["stream"]
        os.environ["DLFIELD_CUDA_ARRAY_INTERFACE_STREAM"] = "0"
        print(first == storage.__cuda_array_interface__["stream"])
        """
    )
    assert printed == "True"
