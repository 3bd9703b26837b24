"""DLPack producers that lie. Each runs in a process of its own, since a crash would end it.

A lie is a statement about an honest tensor `t` in its managed struct `m`. Expected every time: an
error that names the fault, the deleter called exactly once, and no crash.
"""

import json

import pytest

from support.no_driver import NO_DRIVER, without_driver
from support.processes import run_in_fork

NAMES_FAULT = (
    # statement, shape of the honest tensor, text
    ("t.ndim = -1", (3, 4), "ndim: expected 0 to 64 dimensions, got -1"),
    ("t.ndim = -(2**31)", (3, 4), f"ndim: expected 0 to 64 dimensions, got {-(2**31)}"),
    ("t.ndim = 65", (3, 4), "got 65"),
    ("t.ndim = 200", (3, 4), "got 200"),
    ("t.ndim = 2**30", (3, 4), f"got {2**30}"),
    ("t.ndim = 2**31 - 1", (3, 4), f"got {2**31 - 1}"),
    ("t.shape = None", (3, 4), "shape: expected a pointer to 2 extents, got NULL"),
    ("t.shape = misaligned(t.shape)", (3, 4), "shape: expected a pointer aligned to 8 bytes"),
    ("t.strides = misaligned(t.strides)", (3, 4), "strides: expected a pointer aligned to 8"),
    ("t.shape[0] = -1", (3, 4), "extents of at least 0, got -1 on axis 0"),
    ("t.shape[0], t.shape[1] = -1, -4", (3, 4), "extents of at least 0, got -1 on axis 0"),
    ("t.shape[1] = -(2**63)", (3, 4), f"got {-(2**63)} on axis 1"),
    ("t.shape[0] = 2**63 - 1", (4,), f"[{2**63 - 1}]"),
    ("t.shape[0] = t.shape[1] = 2**33", (3, 4), f"[{2**33}, {2**33}]"),
    ("t.shape[0], t.shape[1], t.shape[2] = 2**32, 2**32, 16", (1, 1, 1), f"{2**32}, {2**32}, 16"),
    ("t.shape[0] = t.shape[1] = 2**33; t.strides = None", (3, 4), f"[{2**33}, {2**33}]"),
    ("t.shape[0], t.shape[1], t.shape[2] = 0, 2**62, 2**62", (1, 1, 1), f"{2**62}"),
    ("t.strides[0] = 2**62", (3, 4), f"strides [{2**62}, 1]"),
    ("t.strides[0] = -(2**63)", (3, 4), f"strides [{-(2**63)}, 1]"),
    ("t.strides[0] = t.strides[1] = 2**58", (3, 4), f"strides [{2**58}, {2**58}]"),
    ("t.strides[0], t.strides[1] = 2**58, -(2**58)", (3, 4), f"strides [{2**58}, {-(2**58)}]"),
    ("t.strides[0] = -(2**50)", (3, 4), f"data: expected an address with {2**54} bytes below"),
    ("t.data = 2**64 - 8", (3, 4), "and 96 bytes above it, got 0xfffffffffffffff8"),
    ("t.data = None", (3, 4), "data: expected an address for 12 elements, got 0x0"),
    ("t.data = None; t.byte_offset = 64", (3, 4), "got 0x0 with byte_offset 64"),
    ("t.byte_offset = 2**63", (3, 4), "data: expected an address"),
    ("t.byte_offset = 2**64 - 1", (3, 4), f"with byte_offset {2**64 - 1}"),
    *(
        (f"t.dtype = DLDataType{triple}", (3, 4), "got code {}, {} bits, {} lanes".format(*triple))
        for triple in (
            *((2, 64, lanes) for lanes in (0, 2, 4, 65535)),
            *((2, bits, 1) for bits in (0, 1, 7, 24, 128, 255)),
            *((code, 8, 1) for code in (2, 3, 15, 16, 17, 18, 99, 255)),
            *((6, 1, 1), (6, 16, 1), (0, 4, 1), (1, 1, 1), (5, 32, 1), (4, 32, 1)),
            *((15, 6, 1), (17, 4, 1), (17, 4, 2)),
        )
    ),
    *(
        (f"t.device = DLDevice({code}, 0)", (3, 4), f"got code {code} with id 0")
        for code in (0, 4, 5, 6, 8, 12, 14, 19, 77, 2**31 - 1)
    ),
    ("t.device = DLDevice(-1, 0)", (3, 4), "device: expected host memory"),
    ("t.device = DLDevice(2, -1)", (3, 4), "got code 2 with id -1"),
    ("m.version = DLPackVersion(0, 5)", (3, 4), "major version 1, got 0.5"),
    ("m.version = DLPackVersion(2, 0)", (3, 4), "major version 1, got 2.0"),
    ("m.version = DLPackVersion(2**32 - 1, 7)", (3, 4), f"got {2**32 - 1}.7"),
    ("m.version.major = 2; guarded(p, keep=24)", (3, 4), "major version 1, got 2.3"),
)

#: Lies that a legacy struct, without version and flags, can tell too.
LEGACY = [row for row in NAMES_FAULT if row[0].startswith(("t.ndim", "t.shape", "t.data"))]

STRANGE_BUT_TRUE = (
    ("m.version.minor = 99", (3, 4), "shape=(3, 4) strides=(32, 8)"),
    ("m.flags = 2**64 - 1", (3, 4), "shape=(3, 4) strides=(32, 8)"),
    ("t.strides = None", (3, 4), "shape=(3, 4) strides=(32, 8)"),
    ("t.shape = t.strides = None", (), "shape=() strides=()"),
    ("t.shape = t.strides = misaligned(t.shape); t.ndim = 0", (3,), "shape=() strides=()"),
    ("t.strides[0] = 12345", (1, 4), "shape=(1, 4)"),
    ("t.strides[0] = -(2**63)", (1, 4), "shape=(1, 4)"),
    ("t.strides[0] = 2**62", (1, 4), "shape=(1, 4)"),
    ("t.strides[0] = 0", (3, 4), "strides=(0, 8)"),
    ("t.strides[0] = -4; t.byte_offset = 64", (3, 4), "strides=(-32, 8)"),
    ("t.byte_offset = 3", (3,), "shape=(3,)"),
    ("t.data = None", (0, 4), "shape=(0, 4)"),
    ("t.data = 8; t.byte_offset = 2**64 - 1", (0, 4), "shape=(0, 4)"),
    ("t.strides[0] = t.strides[1] = 2**62", (0, 4), "shape=(0, 4)"),
    ("t.device = DLDevice(1, 7)", (3, 4), "shape=(3, 4)"),
    ("t.device = DLDevice(3, -5)", (3, 4), "shape=(3, 4)"),
)


def outcome(statement, shape, *, legacy=False, take="p"):
    printed = run_in_fork(
        f"""
        from support.lying_producers import *

        p = Producer({shape}, legacy={legacy})
        m, t = p.managed, p.managed.dl_tensor
        {statement}
        report({take}, p)
        """
    )
    return json.loads(printed)


def assert_refused(seen, error, text):
    assert seen["error"] == error, seen
    assert text in seen["text"]
    assert seen["freed"] == 1


@pytest.mark.parametrize(("lie", "shape", "text"), NAMES_FAULT)
def test_a_lie_in_a_versioned_tensor_is_named_and_released_once(lie, shape, text):
    assert_refused(outcome(lie, shape), "BufferError", text)


@pytest.mark.parametrize(("lie", "shape", "text"), LEGACY)
def test_a_lie_in_a_legacy_tensor_is_named_and_released_once(lie, shape, text):
    assert_refused(outcome(lie, shape, legacy=True), "BufferError", text)


@pytest.mark.parametrize(("truth", "shape", "text"), STRANGE_BUT_TRUE)
def test_a_tensor_that_is_strange_but_true_is_taken_and_released_once(truth, shape, text):
    seen = outcome(truth, shape)
    assert (seen["error"], seen["freed"]) == (None, 1), seen
    assert text in seen["text"]


@without_driver
@pytest.mark.parametrize("number", [0, 999])
def test_memory_of_a_missing_device_is_refused_as_out_of_reach(number):
    seen = outcome(f"t.device = DLDevice(2, {number})", (3, 4))
    assert_refused(seen, "DeviceUnavailable", f"memory on cuda:{number}: {NO_DRIVER}")


@pytest.mark.parametrize("number", [0, 999])
def test_memory_of_rocm_is_passed_on_unseen_and_released_once(number):
    seen = outcome(f"t.device = DLDevice(10, {number}); t.data = 4096", (3, 4))
    assert (seen["error"], seen["freed"]) == (None, 1), seen
    assert "shape=(3, 4) strides=(32, 8)" in seen["text"]


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_tensor_without_a_deleter_is_taken(legacy):
    seen = outcome("m.deleter = DELETER()", (3, 4), legacy=legacy)
    assert (seen["error"], seen["freed"]) == (None, 0)


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_tensor_without_a_deleter_may_lie_too(legacy):
    seen = outcome("m.deleter = DELETER(); t.ndim = -1", (3, 4), legacy=legacy)
    assert (seen["error"], seen["freed"]) == ("BufferError", 0)


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"nope", "nope"), (b"arrow_array", "arrow_array"), (b"", "got ''"), (None, "NULL")],
)
def test_a_capsule_of_another_name_is_left_to_its_producer(name, shown):
    seen = outcome("", (3, 4), take=f"Handover(p.raw_capsule({name!r}))")
    assert_refused(seen, "ValueError", shown)


def test_a_deleter_that_spoils_the_struct_first_does_no_harm():
    seen = outcome(
        "p._count = None; wipe = lambda at: (setattr(p, 'freed', p.freed + 1),"
        " setattr(t, 'ndim', 99), setattr(t, 'shape', None)); m.deleter = DELETER(wipe)",
        (3, 4),
    )
    assert (seen["error"], seen["freed"]) == (None, 1)
