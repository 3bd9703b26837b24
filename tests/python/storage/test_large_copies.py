"""Copies of large fields into another layout: past the caches, and by several threads."""

import math
import sys
import threading
from contextlib import contextmanager
from itertools import permutations

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import CopyBatch

from support.processes import end_of, run_in_subprocess

ORDERS = list(permutations(range(3)))
LARGE = {
    "rows of whole lines": ((256, 256, 80), {}),
    "rows of odd lengths": ((257, 251, 83), {}),
    "domains": ((262, 254, 82), {"halo": (3, 3, 1)}),
    "aligned domains": (
        (262, 254, 82),
        {"halo": (3, 3, 1), "alignment_size": 64, "aligned_index": (3, 3, 1)},
    ),
}


@contextmanager
def working_threads(number):
    """Let so many threads share large copies."""
    before = dlf.get_num_threads()
    dlf.set_num_threads(number)
    try:
        yield
    finally:
        dlf.set_num_threads(before)


@pytest.fixture(scope="module")
def noise():
    """More values than any large field has."""
    return np.random.default_rng(1).random(11_000_000)


def large_source(noise, shape, dtype):
    """Twice as many slices for items of half the size: more than 40 MB."""
    shape = shape if dtype == "float64" else (2 * shape[0], *shape[1:])
    return noise[: math.prod(shape)].astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("shape", "options"), LARGE.values(), ids=LARGE)
def test_a_large_field_arrives_in_every_order(shape, options, dtype, noise):
    values = large_source(noise, shape, dtype)
    source = dlf.storage(values, **options)
    for number, order in enumerate(ORDERS):
        target = dlf.full_like(source, -1, layout=order)
        with working_threads(1 + number % 3):
            target.domain_view[...] = source.domain_view
        assert np.array_equal(target.domain_view.to_numpy(), source.domain_view.to_numpy())
        assert np.count_nonzero(target.to_numpy() != -1) == target.domain_view.size


def test_the_number_of_threads_does_not_change_a_large_copy(noise):
    source = dlf.storage(large_source(noise, (256, 256, 80), "float64"))
    for order in [(0, 1, 2), (1, 0, 2), (2, 1, 0)]:
        for part in (source, source[1:, 1:, 1:]):
            for number in (1, 2, 3, 16):
                with working_threads(number):
                    copied = dlf.storage(part, layout=order)
                assert np.array_equal(copied.to_numpy(), part.to_numpy())


def test_a_large_copy_needs_no_memory_beside_its_target():
    if not sys.platform.startswith("linux"):
        pytest.skip("the system does not say how much memory a process had at most")
    grown = run_in_subprocess("""
        import re

        import dlfield as dlf

        def most():
            with open("/proc/self/status") as status:
                return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read())[1])

        dlf.set_num_threads(3)
        source = dlf.full((256, 256, 80), 2.5)[1:, 1:, 1:]
        dlf.storage(dlf.zeros((40, 40, 40)), layout=(2, 1, 0))
        before = most()
        copied = dlf.storage(source, layout=(2, 1, 0))
        again = dlf.storage(copied, layout=(0, 1, 2), alignment_size=64)
        print(most() - before - copied.nbytes - again.strides[0] * again.shape[0])
    """)
    assert int(grown) < 2 << 20


@pytest.fixture
def interpreter_that_is_not_shared():
    """Let no thread take the interpreter from one that does not offer it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


COPIES = {
    "assignment": lambda source, target: lambda: target.__setitem__(..., source),
    "batch": lambda source, target: CopyBatch([source], [target]).run,
}


@pytest.mark.usefixtures("interpreter_that_is_not_shared")
@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_another_thread_of_python_runs_while_a_large_copy_does(make):
    source = dlf.zeros((256, 256, 128))
    target = dlf.zeros((256, 256, 128), layout=(2, 1, 0))
    copy = make(source, target)
    gate, ready, seen = threading.Lock(), threading.Event(), []
    gate.acquire()

    def run():
        ready.set()
        with gate:
            seen.append(True)

    other = threading.Thread(target=run)
    other.start()
    ready.wait()  # until the other waits at the gate
    gate.release()
    assert not seen, "it has to wait for the interpreter"
    for _ in range(50):  # a busy system may let it wait longer than one copy takes
        copy()
        if seen:
            break
    found = bool(seen)
    other.join()
    assert found


# ── what copies learn ──


def turned(megabytes, times, layout=(1, 2, 0)):
    """Copy a field of so many MiB into another order, and return what was learnt of such copies."""
    source = dlf.storage(np.ones((megabytes, 256, 512)))
    target = dlf.empty_like(source, layout=layout)
    for _ in range(times):
        target[...] = source
    return [
        one
        for one in dlf.copy_settings()["learnt"]
        if one["kind"] == "planes" and one["bytes"] == source.nbytes
    ]


def test_copies_are_tried_both_ways_and_the_faster_one_is_learnt():
    (learnt,) = turned(8, 7)
    assert learnt["copies"] >= 7
    assert min(learnt["through"], learnt["past"]) > 0
    assert learnt["past_caches"] is (learnt["past"] > learnt["through"])


def test_each_pair_of_layouts_is_learnt_by_itself():
    (one,) = turned(9, 3)
    assert one["copies"] == 3
    assert {one["copies"] for one in turned(9, 5, (2, 1, 0))} == {3, 5}


def test_small_copies_are_not_looked_at():
    assert turned(1, 3) == []


LEARNT = """
import numpy as np
import dlfield as dlf
source = dlf.storage(np.arange(2 ** 20).reshape(64, 128, 128).astype(float))
for order in [(0, 1, 2), (1, 0, 2), (2, 1, 0)]:
    target = dlf.storage(source, layout=order)
    assert (target.to_numpy() == source.to_numpy()).all()
settings = dlf.copy_settings()
print(settings["caches"], len(settings["learnt"]))
"""


@pytest.mark.parametrize("way", ["past", "through"])
def test_the_environment_fixes_the_way_and_nothing_is_learnt(way):
    done = end_of(LEARNT, DLFIELD_COPIES=way)
    assert (done.stdout, done.stderr) == (f"{way} 0\n", "")


def test_a_way_that_is_not_known_is_told_and_not_used():
    code = "import warnings; warnings.simplefilter('error'); import dlfield"
    done = end_of(code, DLFIELD_COPIES="480 MB")
    assert "DLFIELD_COPIES: expected learn, past or through, got '480 MB'" in done.stderr
