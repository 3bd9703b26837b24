"""The end of the process, a forked child, and a device that has failed: nothing crashes."""

import pytest
from apart import end_of, run

#: Storages of every kind, their exports, and imports; with `late`, work on them is in flight.
EVERYTHING = """
def everything(late, imports=True):
    held = [dlf.zeros(4, device="gpu", managed=m) for m in (None, "gt4py", "cuda")]
    held.append(dlf.as_storage(np.zeros(4), device="gpu"))
    if imports:
        held.append(dlf.as_storage(OnDevice(np.zeros(4), stream=new_stream()), managed=None))
        held.append(dlf.as_storage(OnDevice(np.zeros(4))))
    held.append(dlf.zeros(4, device=("gpu", device_count() - 1)))
    for storage in held[:]:
        storage.__cuda_array_interface__
        held += [storage[1:], storage.__dlpack__(), storage.__gt_data_interface__]
    held += [held[1].to_numpy(), memoryview(held[2]), held[1].sync_state]
    if late:
        with dlf.use_stream(new_stream()):
            for storage in held[:4]:
                storage[...] = dlf.ones(4, device="gpu", managed=None)
    else:
        call("cuCtxSynchronize")
    return held
"""


@pytest.mark.parametrize(
    "keep",
    [
        "held = everything(late=False)",
        "held = everything(late=True)",
        "import builtins; builtins.held = everything(late=True)",
        "dlf.held = everything(late=True)",
        "cycle = everything(late=True); cycle.append(cycle)",
        "import atexit; atexit.register(everything(late=True).clear)",
    ],
    ids=["idle", "main", "builtins", "module", "cycle", "atexit"],
)
def test_what_lives_when_python_ends_does_no_harm(keep):
    run(EVERYTHING + keep)


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_a_tensor_may_be_released_after_python_has_ended(managed):
    run(
        f"""
        from dlpack_structs import consume

        libc = ctypes.CDLL(None)
        storage = dlf.zeros(4, device="gpu", managed={managed!r})
        taken = consume(storage.__dlpack__(max_version=(1, 0)))
        del storage
        deleter = ctypes.cast(taken.deleter, ctypes.c_void_p)
        assert libc.__cxa_atexit(deleter, ctypes.c_void_p(ctypes.addressof(taken)), None) == 0
        """
    )


@pytest.mark.stand_in
def test_a_forked_child_frees_nothing_and_the_parent_everything():
    """What the child does to a driver that is its parent's alone is seen in its counters."""
    printed = run(
        EVERYTHING
        + """
held = everything(late=True, imports=False)  # whose owners would free them
before = stats()
sys.stdout.flush()
child = os.fork()
held.clear()
gc.collect()
if child == 0:
    after = stats()
    os._exit(int((after.frees, after.syncs) != (before.frees, before.syncs)))
status = os.waitpid(child, 0)[1]
for device in (0, 1):
    with current(device):
        call("cuCtxSynchronize")
print(status, stats().live_bytes)
"""
    )
    assert printed == "0 0"


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_may_end_with_what_its_parent_holds(end):
    printed = run(
        EVERYTHING
        + f"""
held = everything(late=False, imports=False)
sys.stdout.flush()
faulthandler.cancel_dump_traceback_later()  # whose thread a child would wait for
child = os.fork()
if child == 0:
    {end}
print(os.waitpid(child, 0)[1], held[0][:2].shape)
"""
    )
    assert printed == "0 (2,)"


@pytest.mark.stand_in
def test_what_is_on_a_device_that_has_failed_can_be_dropped_in_peace():
    done = end_of(
        EVERYTHING
        + """
held, alone = everything(late=True), dlf.zeros(4, device="gpu", managed=None)
memory = made("cuMemAlloc_v2", 8)
call("cuMemsetD8Async", memory, 0, 4096, 0)  # beyond its end
try:
    alone.synchronize()
    dlf.storage(alone, device="cpu")
except dlf.DeviceUnavailable as error:
    assert "700" in str(error) and "only a new process" in str(error), error
else:
    raise AssertionError("what has failed is not told")
held.clear()
del alone
gc.collect()
print("alive")
os._exit(0)  # the finalizers of this test cannot free either
"""
    )
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr
    assert done.stderr.count("violation") == 1
