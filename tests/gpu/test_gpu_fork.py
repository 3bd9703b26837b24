"""Forked children have no GPU: they are told so, and free nothing of their parent's.

Each test has a process of its own on the stand-in.
"""

import textwrap

import pytest
from holding import START, quiet

pytestmark = pytest.mark.stand_in


def child(code, end="os._exit(0)"):
    """Give a snippet that forks, and goes on in the parent once the child has ended well."""
    inside = textwrap.indent(f"{textwrap.dedent(code).strip()}\n{end}", "    ")
    return f"""
{START}
before = stats()
sys.stdout.flush()
number = os.fork()
if number == 0:
{inside}
assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
"""


IN_THE_PARENT = """
expected = {"alone": 1, "device newer": 1, "in sync": VALUES, "managed": 1, "second": 1}
for kind, values in expected.items():
    assert (dlf.storage(held[kind], device=None).to_numpy() == values).all(), kind
held.clear()
gc.collect()
for device in (1, 0):
    start(device)
    call("cuCtxSynchronize")
assert (stats().live_bytes, stats().violations) == (24, 0)  # the foreign block is its owner's
"""

USES = {
    "zeros": "dlf.zeros(3, device='gpu')",
    "another device": "dlf.zeros(3, device=('gpu', 1))",
    "storage": "dlf.storage(VALUES, device='gpu')",
    "as_storage": "dlf.as_storage(VALUES, device='gpu')",
    "backend": "dlf.zeros((3, 4, 5), backend='gt:gpu')",
    "use_stream": "dlf.use_stream(1)",
    "copy": "held['alone'].copy()",
    "copy to the host": "dlf.storage(held['alone'], device=None)",
    "assignment": "held['alone'].__setitem__(..., 1)",
    "to_numpy": "held['device newer'].to_numpy()",
    "to_numpy in sync": "held['in sync'].to_numpy()",
    "to_numpy of what the device never had": "held['host newer'].to_numpy()",
    "to_numpy of managed": "held['managed'].to_numpy()",
    "interface": "held['host newer'].__cuda_array_interface__",
    "capsule": "held['alone'].__dlpack__()",
    "synchronize": "held['device newer'].synchronize()",
    "pickle": "pickle.dumps(held['alone'])",
}


def test_a_forked_child_is_told_that_it_has_no_gpu_whatever_it_does():
    uses = ", ".join(f"{name!r}: lambda: {use}" for name, use in USES.items())
    quiet(
        child(f"""
            for name, use in {{{uses}}}.items():
                for _ in range(2):
                    try:
                        use()
                    except dlf.DeviceUnavailable as error:
                        assert "forked child" in str(error) and "spawn" in str(error), error
                    else:
                        raise AssertionError(f"{{name}}: the child has a GPU")
        """)
        + IN_THE_PARENT
    )


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "held.clear(); sys.exit(0)"])
def test_a_forked_child_frees_nothing_whatever_its_end(end):
    quiet(
        child(
            """
            view = held["alone"][1:]
            held.clear()
            del view
            gc.collect()
            assert (stats().frees, stats().syncs) == (before.frees, before.syncs)
            held.update(other=dlf.zeros(3))
            """
            if end.startswith("os")
            else "",
            end,
        )
        + IN_THE_PARENT
    )


def test_host_memory_goes_on_in_a_forked_child():
    quiet(
        child("""
            field = dlf.storage(VALUES, layout=(1, 0))
            assert field.to_numpy().tolist() == VALUES.tolist()
            assert dlf.as_storage(VALUES).to_numpy() is not None
            assert "GPUStorage" in repr(held["alone"])
        """)
        + IN_THE_PARENT
    )


def test_managed_memory_is_not_shown_to_a_forked_child_which_does_not_have_it():
    """On a real device the child dies where it touches it."""
    quiet(
        child("""
            try:
                fresh.to_numpy()
            except dlf.DeviceUnavailable as error:
                assert "forked child" in str(error)
            else:
                raise AssertionError("the child has the memory")
        """).replace("before = ", "fresh = dlf.empty(3, device='gpu', managed='cuda'); before = ")
    )


def test_a_child_that_was_forked_before_anybody_used_cuda_may_use_it():
    quiet("""
        import os
        import dlfield as dlf
        child = os.fork()
        field = dlf.ones(3, device="gpu", managed="gt4py")
        assert field.to_numpy().tolist() == [1, 1, 1]
        if child == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)


def test_a_pickle_of_the_parents_is_read_by_a_spawned_process():
    quiet(
        START
        + textwrap.dedent("""
            import subprocess
            load = "import cuda_calls, pickle, sys; cuda_calls.start(); "
            load += "one = pickle.load(sys.stdin.buffer); print(one[2, 3], one.device)"
            for kind in ("alone", "in sync", "managed"):
                data = pickle.dumps(held[kind])
                done = subprocess.run([sys.executable, "-c", load], input=data, capture_output=True)
                assert done.returncode == 0, done.stderr
                value = 11.0 if kind == "in sync" else 1.0
                assert done.stdout.decode().split() == [str(value), "gpu"]
        """)
    )
