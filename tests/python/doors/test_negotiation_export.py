"""Version, device, copy and stream as a producer: every request of host memory has one answer."""

from itertools import product

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import IS_COPIED, LEGACY, READ_ONLY, VERSIONED, capsule_name, contents
from support.parameters import readable

SOURCES = {"writable": lambda: np.arange(3.0), "read-only": lambda: np.frombuffer(bytes(24))}
VERSIONS = [{}, {"max_version": None}, {"max_version": (0, 8)}, {"max_version": (1, 0)}]
VERSIONS += [{"max_version": (1, 3)}, {"max_version": (2, 0)}, {"max_version": (100, 3)}]
COPIES = [{}, {"copy": None}, {"copy": False}, {"copy": True}]
DEVICES = [{}, {"dl_device": None}, {"dl_device": (1, 0)}]


def knows_flags(asked):
    return (asked.get("max_version") or (0, 0))[0] >= 1


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    "asked", [{**v, **c, **d} for v, c, d in product(VERSIONS, COPIES, DEVICES)], ids=str
)
def test_every_request_for_host_memory_has_one_answer(kind, asked):
    storage = dlf.as_storage(SOURCES[kind]())
    copy = asked.get("copy") is True
    if kind == "read-only" and not copy and not knows_flags(asked):
        with pytest.raises(BufferError, match=r"max_version=\(1, 0\)"):
            storage.__dlpack__(**asked)
        return
    capsule = storage.__dlpack__(**asked)
    assert capsule_name(capsule) == (VERSIONED if knows_flags(asked) else LEGACY)
    assert (contents(capsule).dl_tensor.data == address_of(storage)) is not copy
    if knows_flags(asked):
        shared = READ_ONLY if kind == "read-only" else 0
        assert contents(capsule).flags == (IS_COPIED if copy else shared)


@pytest.mark.parametrize("copy", COPIES, ids=str)
@pytest.mark.parametrize("version", [{}, {"max_version": (1, 3)}], ids=str)
@pytest.mark.parametrize("device", [(2, 0), (1, 1), (3, 0), (10, 0), (99, 0), (-1, 0), (0, 0)])
def test_no_request_moves_memory_to_another_device(device, version, copy):
    with pytest.raises(BufferError, match=r"dl_device: expected \(1, 0\)"):
        dlf.zeros((3,)).__dlpack__(dl_device=device, **version, **copy)


@pytest.mark.parametrize("copy", COPIES, ids=str)
@pytest.mark.parametrize("stream", [0, 1, 2, 7, -2, 2**64, 10**4000, True, "1", 1.0], ids=readable)
def test_a_stream_for_host_memory_is_refused_as_by_numpy(stream, copy):
    numpys = (RuntimeError, ValueError)  # before NumPy 2.5, and since
    for array, error in ((dlf.zeros((3,)), RuntimeError), (np.zeros(3), numpys)):
        with pytest.raises(error, match="stream") as caught:
            array.__dlpack__(stream=stream, max_version=(1, 3), **copy)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("copy", [np.zeros(2), np.zeros((2, 2)), "yes"], ids=readable)
def test_a_copy_that_is_no_truth_is_refused_as_by_numpy(copy):
    for array in (dlf.zeros((3,)), np.zeros(3)):
        with pytest.raises(ValueError, match=r"copy|truth"):
            array.__dlpack__(copy=copy)


@pytest.mark.parametrize("stream", [None, -1])
@pytest.mark.parametrize("copy", COPIES, ids=str)
def test_a_missing_stream_is_accepted(stream, copy):
    capsule = dlf.zeros((3,)).__dlpack__(stream=stream, dl_device=(1, 0), **copy)
    assert capsule_name(capsule) == LEGACY


@pytest.mark.parametrize("asked", [*VERSIONS[3:], {"max_version": (1, 99)}], ids=str)
def test_every_versioned_capsule_is_stamped_with_our_version(asked):
    capsule = dlf.zeros((3,)).__dlpack__(**asked)
    version = contents(capsule).version
    assert (version.major, version.minor) == (1, 3)


@pytest.mark.parametrize("version", [{}, {"max_version": (1, 3)}], ids=str)
def test_strides_that_dlpack_cannot_express_need_a_copy(version):
    storage = dlf.as_storage(np.arange(3.0)[::-1])
    for copy in (None, False):
        with pytest.raises(BufferError, match="hand over a copy"):
            storage.__dlpack__(copy=copy, **version)
    copied = contents(capsule := storage.__dlpack__(copy=True, **version)).dl_tensor
    assert copied.strides[0] > 0
    del capsule
