"""Buffers that lie past memoryview's own checks, and formats that are true. In processes."""

import json
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.lying_producers import lying_view
from support.processes import run_in_fork

LIES = (
    # statement about the view that is shown, text
    ("v.ndim = -1", "buffer ndim: expected 0 to 64 dimensions, got -1"),
    ("v.ndim = 65", "buffer ndim: expected 0 to 64 dimensions, got 65"),
    ("v.ndim = 2**30", f"got {2**30}"),
    ("v.ndim = 2**31 - 1", f"got {2**31 - 1}"),
    ("v.ndim = -(2**31)", f"got {-(2**31)}"),
    ("v.shape = None", "buffer shape: expected 1 extents, got NULL"),
    ("v.shape = misaligned(v.shape)", "buffer shape: expected a pointer aligned to 8 bytes"),
    ("v.strides = misaligned(v.strides)", "buffer strides: expected a pointer aligned to 8 bytes"),
    (
        "v.suboffsets = misaligned(v.shape)",
        "buffer suboffsets: expected a pointer aligned to 8 bytes",
    ),
    ("v.suboffsets = lying_buffer(shape=(0,)).shape", "rows behind pointers (suboffsets)"),
    ("v.suboffsets = lying_buffer(shape=(2**40,)).shape", "rows behind pointers (suboffsets)"),
    ("v.shape[0] = -4", "[-4]"),
    ("v.shape[0] = -4; v.len = -32", "-4"),
    ("v.shape[0] = 2**61", f"[{2**61}]"),
    ("v.shape[0] = 2**63 - 1; v.len = 2**63 - 8", f"[{2**63 - 1}]"),
    ("v.shape[0] = 0", "expected len 32"),
    ("v.strides[0] = 2**62", "distance beyond that"),
    ("v.strides[0] = -(2**63)", "distance beyond that"),
    ("v.buf = None", "data: expected an address"),
    ("v.buf = 2**64 - 8", "data: expected an address"),
    ("v.strides[0] = -(2**56)", "data: expected an address"),
    ("v.len = 31", "expected len 31"),
    ("v.len = -32", "expected len -32"),
    ("v.len = 2**63 - 1", f"expected len {2**63 - 1}"),
    ("v.itemsize = 0", "itemsize: expected at least 1 byte, got 0"),
    ("v.itemsize = -(2**63)", f"itemsize: expected at least 1 byte, got {-(2**63)}"),
    ("v.itemsize = 2**40", f"got itemsize {2**40}"),
    ("v.format = None", "expected items of 1 bytes as 'B' says, got itemsize 8"),
    ("v.format = b'\\xe9'", "buffer format: expected ASCII"),
    ("v.format = b'd' * 10_000", "buffer format: expected"),
    ("ctypes.memset(ctypes.byref(v), 0, ctypes.sizeof(v))", "itemsize: expected at least 1 byte"),
)

STRANGE_BUT_TRUE = (
    ("v.strides = None", "shape=(4,) strides=(8,)"),  # as ctypes answers
    ("v.suboffsets = lying_buffer(shape=(-1,)).shape", "shape=(4,) strides=(8,)"),
    ("v.ndim = 0; v.shape = v.strides = misaligned(v.shape); v.len = 8", "shape=() strides=()"),
    ("v.shape[0] = v.len = 0; v.buf = None", "shape=(0,)"),
    ("v.shape[0] = 1; v.len = 8; v.strides[0] = -(2**63)", "shape=(1,)"),
    ("v.buf += 24; v.strides[0] = -8", "shape=(4,) strides=(-8,)"),
    ("v.strides[0] = 0", "strides=(0,)"),
    ("v.buf += 1; v.shape[0] = 3; v.len = 24", "shape=(3,)"),
)


def outcome(statement, cls="Forged"):
    printed = run_in_fork(
        f"""
        import ctypes
        from support.lying_producers import lying_buffer, misaligned, report
        from support.lying_buffers import Forged, RaisingAtRelease

        b = {cls}()
        v = b.view
        {statement}
        report(b, b)
        """
    )
    return json.loads(printed)


@pytest.mark.parametrize(("lie", "text"), LIES)
def test_a_forged_buffer_is_refused_by_name_and_released_once(lie, text):
    seen = outcome(lie)
    assert (seen["error"], seen["freed"]) == ("BufferError", 1), seen
    assert text in seen["text"]


@pytest.mark.parametrize(("truth", "text"), STRANGE_BUT_TRUE)
def test_what_is_strange_but_true_in_a_forged_buffer_is_taken_and_released_once(truth, text):
    seen = outcome(truth)
    assert (seen["error"], seen["freed"]) == (None, 1), seen
    assert text in seen["text"]


def test_a_view_without_an_owner_is_taken_and_never_released():
    seen = outcome("b.owns = False")
    assert (seen["error"], seen["freed"]) == (None, 0)


def test_a_read_only_view_given_to_a_writable_request_stays_read_only():
    seen = outcome("v.readonly = 1")
    assert (seen["error"], seen["freed"]) == (None, 1)
    assert "readonly=True" in seen["text"]


def test_an_exporter_that_fails_without_an_exception_is_an_error():
    seen = outcome("b.answer = -1")
    assert (seen["error"], seen["freed"]) == ("BufferError", 0)
    assert "expected an exception from a failed call" in seen["text"]


@pytest.mark.parametrize("lie", ["", "v.ndim = 65"], ids=["taken", "refused"])
def test_an_exception_left_by_a_release_goes_no_further(lie):
    expected = "BufferError" if lie else None
    assert outcome(lie, cls="RaisingAtRelease")["error"] == expected


def test_an_exception_on_its_way_survives_a_release_that_raises():
    printed = run_in_fork("""
        import dlfield as dlf
        from support.lying_buffers import RaisingAtRelease
        try:
            [].index(dlf.as_storage(RaisingAtRelease()))
        except ValueError as error:
            print(error)
    """)
    assert "not in list" in printed


def test_writable_memory_is_asked_for_once_and_never_with_indirection():
    printed = run_in_fork("""
        import dlfield as dlf
        from support.lying_buffers import Forged
        exporter = Forged()
        dlf.as_storage(exporter)
        print(exporter.asked)
    """)
    (flags,) = json.loads(printed)
    assert flags & 1
    assert not flags & 0x100


@pytest.mark.parametrize(
    ("text", "itemsize", "name"),
    [
        ("l", 8, "int64"),
        ("@l", 8, "int64"),
        ("=l", 4, "int32"),
        ("<l", 4, "int32"),
        ("=L", 4, "uint32"),
        ("@L", 8, "uint64"),
        ("=q", 8, "int64"),
        ("n", 8, "int64"),
        ("@N", 8, "uint64"),
        ("=d", 8, "float64"),
        ("<f", 4, "float32"),
        ("=e", 2, "float16"),
        ("<?", 1, "bool"),
        ("Zf", 8, "complex64"),
        ("<Zf", 8, "complex64"),
        ("Zd", 16, "complex128"),
        ("=Zd", 16, "complex128"),
        (">b", 1, "int8"),
        ("!B", 1, "uint8"),
        (">?", 1, "bool"),
    ],
)
def test_a_format_is_read_in_its_own_sizes_and_order(text, itemsize, name):
    view = lying_view(
        shape=(2,), strides=(itemsize,), itemsize=itemsize, len=2 * itemsize, format=text.encode()
    )
    assert dlf.as_storage(view).dtype == np.dtype(name)


@pytest.mark.parametrize(
    ("text", "itemsize"),
    [
        *(("l", 4), ("=l", 8), ("<L", 8), ("q", 4), ("=n", 8), ("<N", 8), ("d", 4), ("e", 4)),
        *(("Zd", 8), ("Zf", 16), ("Zf", 4), ("?", 8), ("B", 2), (">i", 4), ("!i", 4), (">Zd", 16)),
        *(("T{i:f0:=d:f1:}", 12), ("2f", 8), ("(2,2)f", 16), ("&f", 8), (":a:f", 4), ("4x", 4)),
        *(("3s", 3), ("2w", 8), ("u", 4), ("P", 8), ("O", 8), ("c", 1), ("p", 1), ("g", 16)),
    ],
)
def test_a_format_of_another_size_order_or_kind_is_refused(text, itemsize):
    view = f"lying_view(shape=(1,), len={itemsize}, itemsize={itemsize}, format={text.encode()!r})"
    printed = run_in_fork(f"from support.lying_producers import *; report({view})")
    seen = json.loads(printed)
    assert seen["error"] == "BufferError", seen
    assert repr(text) in seen["text"]


if sys.version_info >= (3, 12):  # before, no class of Python's has a buffer

    def test_a_release_in_python_that_raises_is_reported_and_goes_no_further():
        printed = run_in_fork("""
            import sys
            import dlfield as dlf

            class Raising:
                def __buffer__(self, flags):
                    return memoryview(bytearray(8))

                def __release_buffer__(self, view):
                    raise RuntimeError("of the exporter")

            sys.unraisablehook = lambda one: print(one.exc_type.__name__)
            storage = dlf.as_storage(Raising())
            del storage
            print("gone")
        """)
        assert printed.split() == ["RuntimeError", "gone"]
