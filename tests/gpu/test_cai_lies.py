"""CUDA array interfaces that lie: each is refused by name, and the exporter is released."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice
from support.cuda.driver import stats
from support.owners import Watch

LIES = {
    # what is put into the dict, error, text
    "version none": ({"version": None}, ValueError, "version of at least 0, got None"),
    "version -1": ({"version": -1}, ValueError, "version of at least 0, got -1"),
    "version text": ({"version": "3"}, ValueError, "version of at least 0, got '3'"),
    "version bool": ({"version": True}, ValueError, "version of at least 0, got True"),
    "version float": ({"version": 3.0}, ValueError, "version of at least 0, got 3.0"),
    "version huge": ({"version": 2**70}, ValueError, "version of at least 0"),
    "shape list": ({"shape": [2, 3]}, TypeError, "shape: expected a tuple"),
    "shape none": ({"shape": None}, TypeError, "shape: expected a tuple"),
    "shape floats": ({"shape": (2.0, 3)}, TypeError, "shape: expected an int"),
    "shape bools": ({"shape": (True, 3)}, TypeError, "shape: expected an int"),
    "shape negative": ({"shape": (-2, 3)}, ValueError, "got -2 on axis 0"),
    "shape both negative": ({"shape": (-2, -3)}, ValueError, "got -2 on axis 0"),
    "shape of 70 bits": ({"shape": (2**70,)}, ValueError, "int of 64 bits"),
    "shape overflows": ({"shape": (2**33, 2**33)}, ValueError, str(2**33)),
    "shape wraps to 0": ({"shape": (2**32, 2**32, 16)}, ValueError, str(2**32)),
    "65 dimensions": ({"shape": (1,) * 65}, ValueError, "expected at most 64 dimensions"),
    "typestr none": ({"typestr": None}, TypeError, "typestr: expected a text"),
    "typestr number": ({"typestr": 42}, TypeError, "typestr: expected a text"),
    "typestr bytes": ({"typestr": b"<f8"}, TypeError, "typestr: expected a text"),
    "typestr empty": ({"typestr": ""}, ValueError, "typestr: expected"),
    "typestr short": ({"typestr": "<f"}, ValueError, "got '<f'"),
    "typestr unknown": ({"typestr": "<x9"}, ValueError, "got '<x9'"),
    "typestr swapped": ({"typestr": ">f8"}, BufferError, "byte-swapped"),
    "typestr object": ({"typestr": "|O8"}, BufferError, "expected bool"),
    "typestr void": ({"typestr": "|V8"}, BufferError, "expected bool"),
    "typestr bfloat16": ({"typestr": "<V2"}, BufferError, "expected bool"),
    "typestr time": ({"typestr": "<M8[s]"}, BufferError, "got '<M8"),
    "data none": ({"data": None}, ValueError, "expected the key 'data'"),
    "data one": ({"data": (1,)}, TypeError, "data: expected a pair"),
    "data three": ({"data": (1, False, 0)}, TypeError, "data: expected a pair"),
    "data list": ({"data": [1, False]}, TypeError, "data: expected a pair"),
    "data none inside": ({"data": (None, False)}, TypeError, "data: expected a pair"),
    "data float": ({"data": (1.0, False)}, TypeError, "data: expected a pair"),
    "data bool": ({"data": (True, False)}, TypeError, "data: expected a pair"),
    "data negative": ({"data": (-1, False)}, ValueError, "data: expected an address, got -1"),
    "data of 65 bits": ({"data": (2**64, False)}, ValueError, "data: expected an address"),
    "data at the end": ({"data": (2**64 - 8, False)}, BufferError, "data: expected an address"),
    "data a buffer": ({"data": bytearray(48)}, TypeError, "data: expected a pair"),
    "strides list": ({"strides": [24, 8]}, TypeError, "strides: expected a tuple"),
    "strides floats": ({"strides": (24.0, 8)}, TypeError, "strides: expected an int"),
    "strides with none": ({"strides": (24, None)}, TypeError, "strides: expected an int, got None"),
    "strides short": ({"strides": (8,)}, ValueError, "strides: expected one for each"),
    "strides long": ({"strides": (24, 8, 8)}, ValueError, "strides: expected one for each"),
    "strides huge": ({"strides": (2**62, 8)}, BufferError, "expected an address on a GPU"),
    "strides least": ({"strides": (-(2**63), 8)}, BufferError, "distance beyond"),
    "strides of 64 bits": ({"strides": (2**63, 8)}, ValueError, "int of 64 bits"),
    "strides within items": ({"strides": (28, 8)}, BufferError, "multiple of the item size 8"),
    "mask": ({"mask": (1, False)}, BufferError, "mask: expected none"),
    "descr": ({"descr": [("a", "<i4"), ("b", "<f4")]}, BufferError, "descr: expected"),
    "stream 0": ({"stream": 0}, ValueError, "stream: expected None, 1 .* got 0"),
    "stream -1": ({"stream": -1}, ValueError, "stream: expected None, 1 .* got -1"),
    "stream of 65 bits": ({"stream": 2**64}, ValueError, "stream: expected None, 1"),
    "stream text": ({"stream": "s"}, TypeError, "stream: expected None or an int, got 's'"),
    "stream bool": ({"stream": True}, TypeError, "stream: expected None or an int, got True"),
    "stream float": ({"stream": 1.0}, TypeError, "stream: expected None or an int, got 1.0"),
}


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`shape` is a tuple of ints",
    "`descr` describes types as in NumPy's interface",
    "`mask` is None or an array of the valid elements",
    "`stream` 0 is not allowed",
)
@pytest.mark.parametrize(("words", "error", "text"), LIES.values(), ids=LIES)
def test_a_lie_is_refused_by_name_and_the_exporter_is_released(words, error, text):
    exporter = OnDevice(np.zeros((2, 3)))
    exporter.interface.update(words)
    watch = Watch(exporter)
    with pytest.raises(error, match=text) as caught:
        dlf.as_storage(exporter)
    del exporter, caught
    assert watch.freed


@pytest.mark.stand_in
@pytest.mark.parametrize("lie", ["stream 0", "mask", "data negative", "shape overflows"])
def test_a_refusal_allocates_copies_and_waits_for_nothing(lie):
    exporter = OnDevice(np.zeros((2, 3)), **LIES[lie][0])
    before = stats()
    with pytest.raises((ValueError, BufferError)):
        dlf.as_storage(exporter)
    after = stats()
    assert (after.allocs, after.copies, after.syncs) == (before.allocs, before.copies, before.syncs)


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`descr` describes types as in NumPy's interface",
)
@pytest.mark.parametrize("descr", [[("", "<f8")], None])
def test_a_redundant_description_is_accepted(descr):
    assert dlf.as_storage(OnDevice(np.zeros((2, 3)), descr=descr)).shape == (2, 3)


@pytest.mark.source(
    "CUDA array interface", "Python Interface Specification", "`__cuda_array_interface__` is a dict"
)
@pytest.mark.parametrize("got", [None, 3, "interface", [("shape", (3,))], ("shape",)], ids=str)
def test_a_cuda_array_interface_must_be_a_mapping(got):
    exporter = OnDevice(np.zeros(3))
    exporter.interface = got
    with pytest.raises(TypeError, match="__cuda_array_interface__: expected a dict"):
        dlf.as_storage(exporter)


@pytest.mark.parametrize("error", [RuntimeError, BufferError, KeyboardInterrupt, ValueError])
def test_what_the_property_raises_passes_unchanged(error):
    raised = error("of the exporter")

    class Raising:
        @property
        def __cuda_array_interface__(self):
            raise raised

    with pytest.raises(error) as caught:
        dlf.as_storage(Raising())
    assert caught.value is raised


def test_an_exporter_without_the_attribute_is_refused():
    class Silent:
        @property
        def __cuda_array_interface__(self):
            raise AttributeError("not now")

    with pytest.raises(TypeError, match="array: expected one that speaks"):
        dlf.as_storage(Silent())


def test_a_class_in_place_of_its_object_is_refused():
    with pytest.raises(TypeError, match="the class 'OnDevice'"):
        dlf.as_storage(OnDevice)
