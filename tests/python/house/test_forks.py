"""Other processes: forks beside threads at work, and storages that travel there and back."""

import pytest

from support.processes import run_in_subprocess

FORKS = """
import gc, os, signal, threading
import dlfield as dlf
import numpy as np

def in_a_child(work):
    \"\"\"Work in a forked child, and tell how that ended: a child that hangs is killed.\"\"\"
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        done = 1
        try:
            work()
            done = 0
        finally:
            os._exit(done)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def work():
    turned = dlf.storage(source, layout=(2, 1, 0))
    assert (turned == source).to_numpy().all()
    kept = dlf.full((100, 100, 60), 2.0)
    kept[...] = source
    kept[1:-1] += 1.0
    array = np.from_dlpack(kept)
    del kept, turned
    assert array[0, 0, 1] == 1.0 and array[1, 0, 0] == source[1, 0, 0] + 1.0

source = dlf.storage(np.arange(6e5).reshape(100, 100, 60))
dlf.set_num_threads(2)
"""


def forks(code):
    return run_in_subprocess(FORKS + code, warnings="ignore")  # Python 3.12 warns of threads


@pytest.mark.parametrize("pool", [0, 1 << 28], ids=["no pool", "pool"])
def test_a_child_copies_creates_and_computes_beside_threads_of_its_parent_that_do(pool):
    printed = forks(f"""
dlf.set_pool_limit({pool})
work()
ended = threading.Event()

def forever():
    while not ended.is_set():
        work()

threads = [threading.Thread(target=forever) for _ in range(3)]
for thread in threads:
    thread.start()
print(*(in_a_child(work) for _ in range(8)))
ended.set()
for thread in threads:
    thread.join()
work()
""")
    assert printed.split() == ["0"] * 8


def test_what_a_child_writes_its_parent_does_not_see():
    printed = forks("""
field = dlf.zeros((3, 4), dims="IJ")
view, array = field[1:], np.from_dlpack(field)

def write():
    view[...] = 7.0
    assert array.sum() == 56.0

print(in_a_child(write), field.sum(), array.sum())
""")
    assert printed == "0 0.0 0.0"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_storages_go_to_a_process_and_come_back(method):
    printed = run_in_subprocess(
        f"""
        import copy, multiprocessing
        import dlfield as dlf
        import numpy as np

        field = dlf.ones((4, 3), dims="IJ", halo=(1, 0), layout=(1, 0))
        sent = [field, field[1:], dlf.storage(np.arange(3)), dlf.zeros((100, 100, 60))]
        with multiprocessing.get_context({method!r}).Pool(1) as pool:
            back = pool.map(copy.deepcopy, sent)
        for one, other in zip(sent, back):
            assert type(other) is type(one) and other.dims == one.dims and other.halo == one.halo
            assert other.strides == one.copy().strides and np.array_equal(other, one)
            other[...] = 5
            assert not np.array_equal(other, one)
        print(len(back))
    """,
        warnings="ignore",
    )
    assert printed == "4"
