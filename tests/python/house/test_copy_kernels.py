"""The kernels for copies, transpositions and fills, on the stand-in driver and beside NumPy."""

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

from support.cuda.stand_in import run
from support.optional import library

KERNELS = Path(__file__).parents[3] / "src" / "copy" / "kernels"
WORDS = (1, 2, 4, 8, 16)
every_word = pytest.mark.parametrize("word", WORDS)


def run_kernels(code, **names):
    """Run a snippet on the stand-in, with the kernels at hand and some names defined."""
    given = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    start = "from support.cuda.kernel_calls import *\nstart()\nrandom = np.random.default_rng(7)\n"
    return run(f"{start}{given}\n{textwrap.dedent(code)}")


def compiler():
    spec = importlib.util.spec_from_file_location("compile_kernels", KERNELS / "compile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@every_word
@pytest.mark.parametrize("kernel", ["copy", "fill"])
def test_any_layout_is_copied_and_filled_as_numpy_does_it(kernel, word):
    run_kernels(
        """
        for dims in range(MOST_WALKS + 1):
            for _ in range(20):
                counts = tuple(int(count) for count in random.integers(1, 9 - dims // 2, dims))
                if np.prod(counts) > 3000:
                    continue
                source = random_side(random, counts, word, broadcasts=True)
                target = random_side(random, counts, word)
                blocks = int(random.integers(1, 5))
                run_and_compare(random, kernel, word, counts, source, target, blocks=blocks)
        """,
        kernel=kernel,
        word=word,
    )


@every_word
def test_more_elements_than_threads_are_all_copied(word):
    run_kernels(
        """
        for counts in [(20011,), (3, 7919), (61, 1, 127), (2,) * 8]:
            source, target = (random_side(random, counts, word) for _ in range(2))
            run_and_compare(random, "copy", word, counts, source, target, blocks=2)
        """,
        word=word,
    )


@every_word
def test_two_places_are_copied_that_are_further_apart_than_32_bits_count(word):
    run_kernels(
        """
        there, pinned = made("cuMemAlloc_v2", word), made("cuMemHostAlloc", word, 0)
        target, expected = made("cuMemHostAlloc", 2 * word, 0), random.integers(0, 256, 2 * word)
        call("cuMemcpyHtoD_v2", there, address(expected.astype(np.uint8)), word)
        host_view(pinned, word)[:] = expected[word:]
        apart = pinned - there
        assert abs(apart) >= 1 << 32
        launch("copy", word, [(2, apart, word)], source=there, target=target)
        call("cuCtxSynchronize")
        assert host_view(target, 2 * word).tolist() == expected.tolist()
        """,
        word=word,
    )


@every_word
def test_every_size_around_a_tile_is_transposed(word):
    run_kernels(
        """
        from itertools import product
        around = lambda side: (1, side - 1, side, side + 1)
        width, height = (128, 64) if word < 4 else (512 // word, 32)
        for counts in product(around(height), around(width)):
            source = random_side(random, counts, word, fastest=0)
            target = random_side(random, counts, word, fastest=1)
            run_and_compare(random, "transpose", word, counts, source, target)
        """,
        word=word,
    )


@pytest.mark.parametrize("blocks", [1, 2, 5, 1000])
@pytest.mark.parametrize("outer", [0, 1, 2, 3])
def test_any_number_of_blocks_transposes_inside_outer_walks(outer, blocks):
    run_kernels(
        """
        for _ in range(12):
            counts = *random.integers(1, 5, outer), *random.choice((1, 5, 32, 33, 65), 2)
            counts, word = tuple(int(count) for count in counts), int(random.choice(WORDS))
            source = random_side(random, counts, word, fastest=outer, broadcasts=True)
            target = random_side(random, counts, word, fastest=outer + 1)
            run_and_compare(random, "transpose", word, counts, source, target, blocks=blocks)
        """,
        outer=outer,
        blocks=blocks,
    )


@pytest.mark.parametrize("kernel", ["copy", "transpose", "fill"])
def test_where_a_count_is_0_nothing_is_touched(kernel):
    run_kernels(
        """
        for counts in [(0, 5), (5, 0), (0, 0), (0, 3, 4), (3, 0, 4)]:
            launch(kernel, 4, [(count, 4, 4) for count in counts])
        call("cuCtxSynchronize")
        """,
        kernel=kernel,
    )


def test_managed_and_pinned_memory_are_copied():
    run_kernels("""
        managed, pinned = made("cuMemAllocManaged", 8, 1), made("cuMemHostAlloc", 8, 0)
        host_view(managed, 8)[:] = range(8)
        launch("copy", 2, [(4, 2, -2)], source=managed, target=pinned + 6)
        call("cuCtxSynchronize")
        assert host_view(pinned, 8).tolist() == [6, 7, 4, 5, 2, 3, 0, 1]
    """)


def test_a_kernel_takes_its_turn_in_the_stream():
    run_kernels("""
        there, other = device_array([1, 2]), device_array([0, 0])
        call("cuMemsetD8Async", there, 5, 1, 0)
        launch("copy", 1, [(2, 1, 1)], source=there, target=other)
        call("cuMemsetD8Async", there, 7, 2, 0)
        assert (on_host(other, 2), stats().kernels) == ([5, 2], 1)
    """)


FAULTS = {
    "a target that ends too early": (
        'launch("copy", 4, [(5, 0, 4)], source=there, target=there)',
        "kernel dlfield_copy_4: access: expected an allocation",
    ),
    "a source that begins too late": (
        'launch("copy", 4, [(5, 4, -4)], source=there, target=there + 16)',
        "kernel dlfield_copy_4: access: expected an allocation",
    ),
    "a word across the end": (
        'launch("fill", 4, [(1, 0, 4)], target=short + 4)',
        "kernel dlfield_fill_4: access: expected at most 3 bytes",
    ),
    "a tile past the end": (
        'launch("transpose", 1, [(4, 1, 4), (5, 4, 1)], source=there, target=there)',
        "kernel dlfield_transpose_1: access: expected an allocation",
    ),
    "use after free": (
        'call("cuMemFree_v2", short); launch("fill", 1, [(7, 0, 1)], target=short)',
        "kernel dlfield_fill_1: use after free",
    ),
    "an address between words": (
        'launch("fill", 2, [(1, 0, 2)], target=there + 1)',
        "expected an address that 2 divides",
    ),
    "elements of the target in one place": (
        'launch("fill", 1, [(2, 0, 0)], target=there)',
        "kernel dlfield_fill_1: expected one write to each element, got two",
    ),
    "a transposition of one walk": (
        'launch("transpose", 1, [(2, 1, 1)], source=there, target=there)',
        "expected two walks at least, got 1",
    ),
    "a block of the wrong shape": (
        'launch("transpose", 1, [(2, 1, 2), (2, 2, 1)], block=(256, 1, 1))',
        "kernel dlfield_transpose_1: expected a row of blocks of [32, 8, 1]",
    ),
    "a grid of two dimensions": (
        'launch("copy", 1, [(2, 1, 1)], grid=(1, 2, 1))',
        "kernel dlfield_copy_1: expected a row of blocks of [256, 1, 1]",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_launch_that_is_wrong_fails_its_device(fault):
    code, message = FAULTS[fault]
    said = run_kernels(f"""
there, short = device_array(range(16)), device_array(range(7))
{code}
assert stats().violations == 0
assert status("cuCtxSynchronize") == 700
assert (stats().violations, status("cuCtxSynchronize")) == (1, 700)
""")
    assert message in said


def test_a_test_can_put_its_own_in_place_of_a_kernel():
    run_kernels("""
        seen = []
        own = EMULATION(lambda dimensions, arguments: seen.append("own"))
        register_kernel("dlfield_copy_1", own, [ctypes.sizeof(Arguments)])
        launch("copy", 1, [(2, 1, 1)])
        call("cuCtxSynchronize")
        assert seen == ["own"]
    """)


def test_the_committed_ptx_is_what_the_source_compiles_to():
    library("nvidia.cuda_nvrtc")
    kernels = compiler()
    committed = kernels.instructions(kernels.PTX.read_text())
    assert committed == kernels.instructions(kernels.compiled()), "run src/copy/kernels/compile.py"


def test_every_kernel_is_an_entry_of_the_ptx():
    expected = {
        f"dlfield_{name}_{word}" for name in ("copy", "transpose", "fill") for word in WORDS
    }
    entries = re.findall(r"\.entry (\w+)\(", (KERNELS / "layout.ptx").read_text())
    assert sorted(entries) == sorted(expected)


def test_the_ptx_is_old_enough_for_old_drivers_and_gpus():
    lines = (KERNELS / "layout.ptx").read_text().splitlines()
    assert {".version 8.0", ".target sm_70"} <= set(lines)
