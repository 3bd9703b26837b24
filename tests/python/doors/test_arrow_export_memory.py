"""Exports that Arrow cannot express are refused; when and where an export is freed."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import Taken
from support.dlpack_structs import call_on_a_bare_thread
from support.optional import library
from support.owners import tracked
from support.processes import run_in_subprocess

EXPORTS = {
    "array": lambda storage: storage.__arrow_c_array__(),
    "device array": lambda storage: storage.__arrow_c_device_array__(),
}
every_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)

# --- refusals ----------------------------------------------------------------------------------

WITH_GAPS = {
    "padded": lambda: dlf.zeros((4, 3), alignment_size=64),
    "part of rows": lambda: dlf.zeros((4, 3))[:, :2],
    "domain inside a halo": lambda: dlf.zeros((4, 4), halo=(1, 1)).domain_view,
    "every second": lambda: dlf.zeros(6)[::2],
    "every second row": lambda: dlf.zeros((6, 2))[::2],
    "backwards": lambda: dlf.zeros(6)[::-1],
    "backwards along one axis": lambda: dlf.zeros((3, 2))[:, ::-1],
    "repeated": lambda: dlf.as_storage(np.broadcast_to(np.zeros(3), (4, 3))),
    "overlapping": lambda: dlf.as_storage(
        np.lib.stride_tricks.as_strided(np.zeros(8), (3, 3), (16, 8))
    ),
    "a middle plane": lambda: dlf.zeros((4, 3, 2))[:, 1],
}


@every_export
@pytest.mark.parametrize("make", WITH_GAPS.values(), ids=WITH_GAPS)
def test_memory_with_gaps_is_refused_with_a_way_out(make, export):
    with pytest.raises(BufferError, match="copy=True") as caught:
        export(make())
    assert "expected" in str(caught.value)
    assert "got" in str(caught.value)


UNSPEAKABLE = {
    "complex64": lambda: dlf.zeros(3, dtype="complex64"),
    "complex128": lambda: dlf.zeros((3, 2), dtype="complex128"),
    "bool": lambda: dlf.zeros((3, 2), dtype=bool),
}


@every_export
@pytest.mark.parametrize("dtype", UNSPEAKABLE)
def test_types_without_a_word_in_arrow_are_named(dtype, export):
    with pytest.raises(BufferError, match=dtype):
        export(UNSPEAKABLE[dtype]())


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_types_of_ml_dtypes_are_named(dtype):
    library("ml_dtypes")
    with pytest.raises(BufferError, match=dtype):
        dlf.zeros(3, dtype=dtype).__arrow_c_array__()


@every_export
def test_one_number_is_refused(export):
    with pytest.raises(BufferError, match=r"expected .* got "):
        export(dlf.zeros(()))


@every_export
def test_memory_off_the_boundary_of_its_type_is_refused(export):
    storage = dlf.as_storage(np.zeros(25, np.uint8)[1:].view(np.float64))
    with pytest.raises(BufferError, match="boundaries of 8 bytes"):
        export(storage)


# --- release: when, where, and how often ---------------------------------------------------------


def watched(shape=(4, 3)):
    array, watch = tracked(np.zeros(shape))
    return dlf.as_storage(array), watch


@every_export
@pytest.mark.parametrize("shape", [4, (4, 3)])
def test_arrow_capsules_that_are_never_consumed_free_the_memory(shape, export):
    storage, watch = watched(shape)
    capsules = export(storage)
    del storage
    assert not watch.freed
    del capsules
    assert watch.freed


@every_export
@pytest.mark.parametrize("shape", [4, (4, 3)])
def test_memory_lives_until_the_array_is_released(shape, export):
    storage, watch = watched(shape)
    taken = Taken(export(storage))
    del storage
    assert not watch.freed
    taken.release()
    assert (taken.schema.release, taken.array.release) == (None, None)
    assert watch.freed


def test_a_schema_holds_no_memory():
    storage, watch = watched()
    schema = storage.__arrow_c_schema__()
    del storage
    assert watch.freed
    del schema


def test_every_export_holds_the_memory_for_itself():
    storage, watch = watched()
    one, other = Taken(storage.__arrow_c_array__()), Taken(storage.__arrow_c_array__())
    del storage
    one.release()
    assert not watch.freed
    assert other.array.length == 4
    other.release()
    assert watch.freed


def test_values_that_were_moved_out_of_a_tensor_outlive_it():
    storage, watch = watched()
    taken = Taken(storage.__arrow_c_array__())
    del storage
    _, inner = taken.child()
    moved = type(inner).from_buffer_copy(inner)
    inner.release = None
    taken.release()
    assert not watch.freed
    taken.array = moved
    taken.release()
    assert watch.freed


def test_an_array_may_be_released_on_a_thread_that_python_does_not_know():
    storage, watch = watched()
    taken = Taken(storage.__arrow_c_array__())
    del storage
    call_on_a_bare_thread(taken.array.release, taken.address())
    assert watch.freed
    assert taken.array.release is None
    taken.release()


def test_an_array_that_is_released_after_the_interpreter_ended_does_no_harm():
    run_in_subprocess("""
        import ctypes
        import numpy as np
        import dlfield as dlf
        from support.arrow_structs import Taken
        from support.dlpack_structs import never_freed

        at_exit = ctypes.CDLL(None).__cxa_atexit
        for storage in (dlf.as_storage(np.zeros((3, 4))), dlf.zeros((3, 4)), dlf.zeros(3)):
            taken = Taken(storage.__arrow_c_array__())
            never_freed.append(taken)
            for one in taken:
                at = ctypes.c_void_p(ctypes.addressof(one))
                assert at_exit(ctypes.c_void_p(one.release), at, None) == 0
    """)


def test_a_storage_in_its_own_capsule_is_collected():
    storage, watch = watched()
    holder = [storage.__arrow_c_array__()]
    holder.append(holder)
    del storage, holder
    gc.collect()
    assert watch.freed


def test_several_threads_export_and_release_one_field():
    assert (
        run_in_subprocess("""
import threading
import dlfield as dlf
from support.arrow_structs import Taken, shown
storage = dlf.zeros((4, 3), dims="IJ", halo=(1, 0))

def work():
    for _ in range(2000):
        Taken(storage.__arrow_c_array__()).release()
        dlf.as_storage(shown(storage.__arrow_c_array__())).to_numpy()

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(storage.to_numpy().sum())
""")
        == "0.0"
    )


def test_pyarrow_is_asked_for_by_name_where_it_is_missing():
    assert (
        run_in_subprocess("""
import sys
import dlfield as dlf
sys.modules["pyarrow"] = None
for export in (lambda one: one.to_arrow(), lambda one: one.to_arrow_batch("a")):
    try:
        export(dlf.zeros(3))
    except ImportError as error:
        print("pyarrow" in str(error))
""")
        == "True\nTrue"
    )


def test_pyarrow_is_not_imported_for_the_protocol():
    library("pyarrow")
    assert (
        run_in_subprocess("""
import sys
import dlfield as dlf
from support.arrow_structs import Producer
dlf.as_storage(Producer())
dlf.zeros(3).__arrow_c_array__()
print("pyarrow" in sys.modules)
""")
        == "False"
    )
