"""Arrow streams that are empty, fail or hold several chunks; device arrays that lie."""

import gc
import json

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import OnDevice, Producer, Stream, shown, tensor
from support.no_driver import NO_DRIVER, without_driver
from support.processes import run_in_fork


def outcome(made, statement="", take="p"):
    printed = run_in_fork(
        f"""
        from support.arrow_structs import *
        from support.lying_producers import report

        p = {made}
        {statement}
        report({take}, p)
        """
    )
    return json.loads(printed)


def assert_refused(seen, freed, *texts, error="BufferError"):
    assert (seen["error"], seen["freed"]) == (error, freed), seen
    for text in texts:
        assert text in seen["text"], seen


# --- streams: `freed` counts the stream, its schema, its chunks ---------------------------------


TAKEN = {
    "numbers": ("Producer()", "shape=(4,)"),
    "no numbers": ("Producer(length=0)", "shape=(0,)"),
    "lists": ("lists(3)", "shape=(4, 3)"),
    "tensor": ("tensor()", "shape=(4, 3, 2)"),
    "table": ("batch(Producer(name=b'a'))", "shape=(4,)"),
    "part": ("Producer().part(1, 2)", "shape=(2,)"),
}


@pytest.mark.parametrize(("chunk", "text"), TAKEN.values(), ids=TAKEN)
def test_a_stream_of_one_chunk_is_taken_and_everything_released_once(chunk, text):
    seen = outcome(f"Stream({chunk})")
    assert (seen["error"], seen["freed"]) == (None, [1, 1, 1]), seen
    assert text in seen["text"]
    assert "readonly=True" in seen["text"]


@pytest.mark.parametrize("count", [2, 3, 50])
def test_several_chunks_are_refused_and_everything_handed_out_is_released_once(count):
    seen = outcome(f"Stream(*[Producer() for _ in range({count})])")
    assert seen["error"] == "BufferError", seen
    assert seen["freed"][:4] == ([1, 1, 1, 1])
    assert set(seen["freed"][4:]) <= {0, 1}
    for text in ("combine_chunks", "rechunk"):
        assert text in seen["text"]


def test_a_stream_without_chunks_is_refused_and_released_once():
    assert_refused(outcome("Stream(schema=Producer())"), [1, 1], "chunk")


def test_a_second_chunk_without_elements_is_a_chunk():
    seen = outcome("Stream(Producer(), Producer(length=0))")
    assert (seen["error"] or "BufferError", seen["freed"]) == ("BufferError", [1, 1, 1, 1]), seen


@pytest.mark.parametrize("errno", [5, 22, 12, -1, 2**31 - 1])
@pytest.mark.parametrize(
    ("when", "freed"), [("'schema'", [1, 0, 0]), ("0", [1, 1, 0]), ("1", [1, 1, 1])]
)
def test_what_a_stream_says_of_its_failure_is_passed_on(when, freed, errno):
    seen = outcome(f"Stream(Producer(), fails={{{when}: {errno}}})")
    assert seen["error"] in ("BufferError", "OSError", "ValueError", "RuntimeError"), seen
    assert "the disk is on fire" in seen["text"]
    assert str(errno) in seen["text"]
    assert seen["freed"] == freed


@pytest.mark.parametrize("text", ["None", "b''", "b'\\xff\\xfe'", "b'x' * 100_000"])
@pytest.mark.parametrize(
    ("when", "freed"), [("'schema'", [1, 0, 0]), ("0", [1, 1, 0]), ("1", [1, 1, 1])]
)
def test_a_stream_may_fail_without_a_readable_word(when, freed, text):
    seen = outcome(f"Stream(Producer(), fails={{{when}: 5}}, text={text})")
    assert seen["error"] in ("BufferError", "OSError", "ValueError", "RuntimeError"), seen
    assert "5" in seen["text"]
    assert seen["freed"] == freed


def test_a_stream_is_not_read_further_than_needed():
    stream = Stream(Producer())
    dlf.as_storage(stream)
    assert stream.calls == ["get_schema", "get_next", "get_next"]


def test_a_stream_that_has_failed_is_not_asked_again():
    stream = Stream(Producer(), fails={0: 5})
    with pytest.raises(Exception, match="on fire"):
        dlf.as_storage(stream)
    assert stream.calls == ["get_schema", "get_next"]


def test_a_stream_that_was_released_before_is_called_consumed():
    assert_refused(
        outcome("Stream(Producer())", "p.stream.release = None"),
        [0, 0, 0],
        "consumed",
        error="ValueError",
    )


@pytest.mark.parametrize("function", ["get_schema", "get_next"])
def test_a_stream_without_a_function_is_refused(function):
    seen = outcome("Stream(Producer())", f"p.stream.{function} = None")
    assert seen["error"] in ("BufferError", "ValueError"), seen
    assert seen["freed"][0] == 1
    assert "NULL" in seen["text"]


def test_a_stream_without_a_function_for_its_errors_may_fail():
    seen = outcome("Stream(Producer(), fails={0: 5})", "p.stream.get_last_error = None")
    assert seen["error"] is not None
    assert seen["freed"] == [1, 1, 0]


@pytest.mark.parametrize("name", [b"nope", b"arrow_array", b"", None])
def test_a_stream_under_another_name_is_left_to_its_maker(name):
    stream = Stream(Producer())
    with pytest.raises(ValueError, match="arrow_array_stream"):
        dlf.as_storage(shown(stream.capsule(name), "__arrow_c_stream__"))
    gc.collect()
    assert stream.freed == [1, 0, 0]


LIES = (
    ("Producer()", "p.of.array.length = -1", ("at least 0", "length -1")),
    ("Producer()", "p.of.array.n_buffers = 1", ("buffers", "got 1")),
    ("Producer()", "p.of.array.n_children = 2", ("children", "got 2")),
    ("Producer()", "p.of.schema.format = b'u'", ("'u'",)),
    ("Producer()", "p.of.schema.format = None", ("NULL",)),
    ("Producer()", "p.of.nulls('1011')", ("null", "got 1", "fill_null")),
    ("lists(3)", "p.of.array.length = 5", ("15 elements", "length 12")),
    ("batch(Producer(name=b'wind'), Producer(name=b'rain'))", "", ("wind", "rain", "select one")),
    ("tensor(text=b'no')", "", ("arrow.fixed_shape_tensor",)),
)


@pytest.mark.parametrize(("chunk", "lie", "texts"), LIES)
def test_a_lie_in_a_chunk_is_named_and_everything_released_once(chunk, lie, texts):
    assert_refused(outcome(f"Stream({chunk})", lie), [1, 1, 1], *texts)


def test_a_schema_that_the_stream_has_released_before_is_refused():
    seen = outcome("Stream(Producer())", "p.of.schema.release = None")
    assert seen["error"] in ("BufferError", "ValueError"), seen
    assert seen["freed"][:2] == [1, 0]


def test_a_stream_is_released_before_its_chunk():
    stream = Stream(tensor())
    storage = dlf.as_storage(stream)
    assert stream.freed[2] == 0
    assert stream.stream_freed == 1
    assert storage.to_numpy()[1, 0].tolist() == [6, 7]
    del storage
    assert stream.freed == [1, 1, 1]


def test_the_array_comes_before_the_stream_of_an_object_with_both():
    class Both(Producer):
        def __arrow_c_stream__(self, requested_schema=None):
            raise AssertionError("asked for")

    assert dlf.as_storage(Both()).shape == (4,)


# --- device arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 77, 5, -1, 2**31 - 1])
def test_an_unknown_device_is_named(number):
    seen = outcome("Producer()", f"p.device.device_type = {number}", "OnDevice(p)")
    assert_refused(seen, [1, 1], "device", str(number))


@pytest.mark.parametrize("number", [-1, 0, 7])
def test_the_number_of_a_host_means_nothing(number):
    seen = outcome("Producer()", f"p.device.device_id = {number}", "OnDevice(p)")
    assert (seen["error"], seen["freed"]) == (None, [1, 1]), seen


def test_an_event_on_the_host_is_refused():
    seen = outcome("Producer()", "p.device.sync_event = 4096", "OnDevice(p)")
    assert_refused(seen, [1, 1], "sync_event")


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("number", [1, -1])
def test_what_is_reserved_need_not_be_zero(place, number):
    # The interface requires zero; pyarrow leaves the memory uninitialised.
    seen = outcome("Producer()", f"p.device.reserved[{place}] = {number}", "OnDevice(p)")
    assert (seen["error"], seen["freed"]) == (None, [1, 1]), seen


@pytest.mark.parametrize("made", ["lists(3)", "tensor()", "batch(Producer(name=b'a'))"])
def test_every_kind_of_array_may_come_as_one_of_a_device(made):
    seen = outcome(made, "", "OnDevice(p)")
    assert (seen["error"], seen["freed"]) == (None, [1, 1]), seen


@pytest.mark.parametrize(
    ("lie", "texts"),
    [
        ("p.array.length = -1", ("at least 0", "length -1")),
        ("p.array.n_buffers = 0", ("buffers", "got 0")),
        ("p.nulls('0111')", ("null", "got 1")),
        ("p.schema.format = b'u'", ("'u'",)),
    ],
)
def test_a_lie_in_an_array_of_a_device_is_named_and_released_once(lie, texts):
    assert_refused(outcome("Producer()", lie, "OnDevice(p)"), [1, 1], *texts)


@pytest.mark.parametrize("which", ["schema", "array"])
def test_what_was_released_before_is_called_consumed_on_a_device_too(which):
    seen = outcome("Producer()", f"p.{which}.release = None", "OnDevice(p)")
    freed = [0, 1] if which == "schema" else [1, 0]
    assert_refused(seen, freed, "consumed", error="ValueError")


@without_driver
def test_without_a_driver_gpu_memory_is_refused_as_out_of_reach():
    statement = "p.device.device_type, p.device.device_id = 2, 0"
    seen = outcome("Producer()", statement, "OnDevice(p)")
    assert_refused(seen, [1, 1], "cuda:0", NO_DRIVER, error="DeviceUnavailable")


def test_nulls_on_a_gpu_are_not_counted_on_the_host():
    statement = "p.nulls('1011'); p.device.device_type, p.device.device_id = 2, 0"
    seen = outcome("Producer()", f"{statement}; p.buffers[0] = 4096", "OnDevice(p)")
    assert seen["error"] in ("BufferError", "DeviceUnavailable"), seen
    assert seen["freed"] == [1, 1]


def test_an_object_that_knows_devices_is_asked_for_its_device_first():
    class Both(Producer):
        def __arrow_c_array__(self, requested_schema=None):
            raise AssertionError("asked for")

        __arrow_c_device_array__ = OnDevice.__arrow_c_device_array__

        @property
        def producer(self):
            return self

    assert dlf.as_storage(Both()).shape == (4,)


@pytest.mark.parametrize("make", [OnDevice, Stream])
def test_the_values_are_those_of_the_producer(make):
    producer = tensor()
    storage = dlf.as_storage(make(producer))
    values = storage.to_numpy()
    assert values.ctypes.data == producer.children[0].buffers[1]
    assert np.array_equal(values, np.arange(24.0).reshape(4, 3, 2))
    assert storage.door == "arrow"
