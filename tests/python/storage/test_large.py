"""Fields beyond 4 GiB: no page is touched before it must be, and no offset is cut off.

Each test has a process of its own, whose memory is given back with it.
"""

import mmap

import pytest

from support.processes import run_in_subprocess

GIB = 1 << 30

#: How many bytes of a process lie in memory.
RESIDENT = """
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
"""


def has_room_for(size):
    """Return whether this machine grants as many bytes of addresses. No page is touched."""
    try:
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError, OverflowError):
        return False
    return True


@pytest.fixture(autouse=True)
def room():
    if not has_room_for(9 * GIB):
        pytest.skip("less than 9 GiB of addresses can be had at once")


@pytest.mark.parametrize(
    "make",
    [
        "dlf.zeros((512, 1024, 1024))",
        "dlf.zeros((512, 1024, 1024), backend='gt:cpu_ifirst', halo=(3, 3, 0))",
        "dlf.zeros((1024, 1024, 509), alignment_size=64, aligned_index=(1, 1, 1))",
        "dlf.zeros_like(model)",
        "dlf.storage(shape=(1024, 1024, 1024), dtype='float32')",
        "dlf.empty((4 << 30,), 'int8')",
    ],
)
def test_four_gibibytes_are_there_at_once_and_untouched(make):
    seconds, grown, nbytes = run_in_subprocess(f"""
        import resource, time

        import dlfield as dlf
        import numpy as np

        exec({RESIDENT!r})
        model = np.broadcast_to(np.zeros(1), (512, 1024, 1024))
        dlf.zeros((8,)).to_numpy()
        start, before = time.perf_counter(), resident()
        large = {make}
        print(time.perf_counter() - start, resident() - before, large.nbytes)
    """).split()
    assert float(seconds) < 0.5
    assert int(grown) < 16 << 20
    assert int(nbytes) > 4 * GIB - (32 << 20)


def test_an_untouched_page_of_zeros_reads_as_zero():
    printed = run_in_subprocess("""
        import dlfield as dlf

        array = dlf.zeros((512, 1024, 1025)).to_numpy()
        print(array[0, 0, 0], array[-1, -1, -1], array[::64, 1023, 1024].sum())
    """)
    assert printed == "0.0 0.0 0.0"


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=repr)
def test_the_last_element_of_six_gibibytes_is_its_own(layout):
    printed = run_in_subprocess(f"""
        import dlfield as dlf

        storage = dlf.empty((1536, 1024, 1024), "float32", layout={layout})
        storage[0, 0, 0], storage[-1, -1, -1] = 1, 2
        array = storage.to_numpy()
        last = sum(stride * (extent - 1) for stride, extent in zip(storage.strides, storage.shape))
        print(storage[0, 0, 0], storage[-1, -1, -1], array[-1, -1, -1], storage.nbytes, last)
    """)
    assert printed == f"1.0 2.0 2.0 {6 * GIB} {6 * GIB - 4}"


@pytest.mark.parametrize(
    ("view", "index"),
    [
        ("storage[5 << 30]", 5 << 30),
        ("storage[5 << 30 :]", 5 << 30),
        ("storage[(5 << 30) + 7 : : 1 << 29]", (5 << 30) + 7),
        ("storage[::-1]", (6 << 30) - 1),
        ("storage.domain_view", (5 << 30) - 1),
        ("dlf.as_storage(memoryview(storage.to_numpy())[5 << 30 :])", 5 << 30),
        ("dlf.as_storage(np.from_dlpack(storage)[5 << 30 :])", 5 << 30),
    ],
)
def test_a_view_beyond_four_gibibytes_begins_where_it_should(view, index):
    printed = run_in_subprocess(f"""
        import dlfield as dlf
        import numpy as np

        storage = dlf.zeros((6 << 30,), "uint8", halo=(((5 << 30) - 1, 0),))
        storage.to_numpy()[{index}] = 7
        print(np.asarray({view}).reshape(-1)[0])
    """)
    assert printed == "7"


def test_a_copy_of_a_part_beyond_four_gibibytes_has_its_values():
    printed = run_in_subprocess("""
        import dlfield as dlf

        storage = dlf.zeros((6, 1 << 30), "uint8")
        storage[5, -3:] = 9
        part = storage[4:, -5:]
        print(part.copy().to_numpy().tolist(), dlf.storage(part, layout=(1, 0)).to_numpy().sum())
    """)
    assert printed == "[[0, 0, 0, 0, 0], [0, 0, 9, 9, 9]] 27"


def test_rows_that_are_four_gibibytes_apart_are_aligned():
    printed = run_in_subprocess("""
        import dlfield as dlf

        storage = dlf.empty((2, (4 << 30) + 1), "uint8", alignment_size=4096, aligned_index=(0, 5))
        first = storage.__array_interface__["data"][0] + 5
        print(storage.strides, first % 4096, (first + storage.strides[0]) % 4096)
    """)
    assert printed == f"({4 * GIB + 4096}, 1) 0 0"


def test_freed_memory_can_be_had_again():
    printed = run_in_subprocess("""
        import resource

        import dlfield as dlf
        from dlfield._core import live_allocations

        with open("/proc/self/statm") as statm:
            taken = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (20 << 30), resource.RLIM_INFINITY))
        for _ in range(20):
            dlf.empty((6 << 30,), "uint8")
        print(live_allocations())
    """)
    assert printed == "0"
