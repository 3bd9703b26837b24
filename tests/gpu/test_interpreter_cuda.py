"""Nothing waits for a device while it holds Python's interpreter.

In a stream there may be host functions that need the interpreter (CuPy's `launch_host_func`, the
callbacks of PyCUDA): a thread that holds it and waits for the stream waits for ever.
"""

import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.cuda.apart import end_of

#: `gate` is closed, and opened once another thread has run.
WAITS = {
    "end of memory that was handed out": """
        storage = dlf.zeros(4, device="gpu", managed=None)
        storage.__cuda_array_interface__
        gate = Gate(new_stream())
        gate.open_later()
        del storage
    """,
    "end of a pair": """
        storage = dlf.empty(4, device="gpu")
        gate = Gate(own_stream())
        storage.set_host_modified()
        storage.__cuda_array_interface__
        gate.open_later()
        del storage
    """,
    "end of managed memory": """
        storage = dlf.zeros(4, device="gpu", managed="cuda")
        gate = Gate(own_stream())
        storage[...] = dlf.ones(4, device="gpu", managed=None)
        gate.open_later()
        del storage
    """,
    "end of managed memory beside work of others": """
        storage = dlf.zeros(4, device="gpu", managed="cuda")
        storage.synchronize()
        gate = Gate(new_stream())
        gate.open_later()
        del storage
    """,
    "end of an import": """
        storage = dlf.as_storage(OnDevice(np.ones(4)), managed=None)
        target = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(own_stream())
        target[...] = storage
        gate.open_later()
        del storage
    """,
    "end of a capsule": """
        capsule = dlf.zeros(4, device="gpu", managed=None).__dlpack__()
        gate = Gate(new_stream())
        gate.open_later()
        del capsule
    """,
    "garbage": """
        cycle = [dlf.zeros(4, device="gpu", managed=None)]
        cycle[0].__dlpack__()
        cycle.append(cycle)
        gate = Gate(new_stream())
        gate.open_later()
        del cycle
        gc.collect()
    """,
    "a copy to the host": """
        storage = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(own_stream())
        gate.open_later()
        dlf.storage(storage, device="cpu")
    """,
    "to_numpy": """
        storage = dlf.zeros(4, device="gpu")
        gate = Gate(own_stream())
        gate.open_later()
        storage.to_numpy()
    """,
    "one element": """
        storage = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(own_stream())
        gate.open_later()
        storage[2]
    """,
    "repr": """
        storage = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(own_stream())
        gate.open_later()
        repr(storage)
    """,
    "assignment of a list": """
        storage = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(own_stream())
        gate.open_later()
        storage[[0, 1]] = [1, 2]
    """,
    "synchronize": """
        storage = dlf.zeros(4, device="gpu", managed="cuda")
        gate = Gate(own_stream())
        storage[...] = dlf.ones(4, device="gpu", managed=None)
        gate.open_later()
        storage.synchronize()
    """,
    "with device()": """
        storage = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(new_stream())
        with storage.device():
            gate.open_later()
    """,
    "a capsule on the host": """
        storage = dlf.zeros(4, device="gpu")
        gate = Gate(own_stream())
        gate.open_later()
        storage.__dlpack__(dl_device=(1, 0))
    """,
    "a table without a work stream": """
        class Held:
            def __init__(self):
                self.producer = OnGpu()
        one = with_table(table(), base=Held)()
        gate = Gate(new_stream())
        gate.open_later()
        storage = dlf.as_storage(one)
    """,
    "the table's tensor on the host": """
        storage, ours = dlf.empty(4, device="gpu"), Exchange(dlf.Storage)
        storage.set_host_modified()
        gate = Gate(own_stream())
        storage.__cuda_array_interface__  # a copy from the host, behind the gate
        storage.set_host_modified()
        gate.open_later()
        ours.view_of(storage)
    """,
}
#: One thread waits without the interpreter; another one, that has it, asks something meanwhile.
BESIDE = {
    "__cuda_array_interface__": "storage.__cuda_array_interface__",
    "__dlpack__": "storage.__dlpack__(stream=new_stream())",
    "the table": "Exchange(dlf.Storage).view_of(storage)",
    "a view": "storage[1:].shape",
    "a copy": "dlf.empty_like(storage)",
}
BESIDE_WORK = """
    storage = dlf.zeros(4, device="gpu", managed=None)
    source = dlf.ones(4, device="gpu", managed=None)
    gate = Gate(own_stream())
    storage[...] = source
    waiting = elsewhere(storage.synchronize)
    gate.open_later()
    {asked}
    waiting.join()
"""
BESIDE_STATE = {
    "__dlpack_device__": "storage.__dlpack_device__()",
    "repr": "repr(storage)",
    "sync_state": "storage.sync_state.state",
    "set_host_modified": "storage.set_host_modified()",
    "__gt_data_interface__": "storage.__gt_data_interface__",
    "as_storage": "dlf.as_storage(array, storage, sync_state=storage.sync_state)",
}
BESIDE_COPY = """
    array = np.zeros(4)
    storage = dlf.as_storage(array, device="gpu")
    gate = Gate(own_stream())
    waiting = elsewhere(storage.host_to_device)  # holds the state until its copy is made
    gate.open_later()
    {asked}
    waiting.join()
"""

CASES = {
    **WAITS,
    **{f"{a} beside work": BESIDE_WORK.format(asked=code) for a, code in BESIDE.items()},
    **{f"{a} beside a copy": BESIDE_COPY.format(asked=code) for a, code in BESIDE_STATE.items()},
}


def function(number, name):
    """Make a function of a case, which prints its name when it is done."""
    code = textwrap.indent(textwrap.dedent(CASES[name]), "    ")
    call = f'case_{number}(); faulthandler.cancel_dump_traceback_later(); call("cuCtxSynchronize")'
    return f"def case_{number}():{code}\n{call}\nprint({name!r}, flush=True)\n"


@pytest.fixture(scope="module")
def ends():
    """Gives the end of the process that each case is in.

    There are two, for speed; a case that blocks takes those behind it along.
    """
    groups = [list(CASES)[::2], list(CASES)[1::2]]
    codes = ["".join(function(*numbered) for numbered in enumerate(group)) for group in groups]
    with ThreadPoolExecutor(len(groups)) as pool:
        found = list(pool.map(end_of, codes))
    return {name: end for group, end in zip(groups, found, strict=True) for name in group}


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_is_free_during(name, ends):
    done = ends[name]
    assert name in done.stdout.splitlines(), done.stderr
    assert "violation" not in done.stderr, done.stderr
