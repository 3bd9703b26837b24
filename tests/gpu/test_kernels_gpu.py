"""The kernels of layout.ptx beside NumPy, on a real GPU."""

import numpy as np
import pytest

from support.cuda.kernel_calls import WORDS, random_side, run_and_compare

pytestmark = pytest.mark.real
every_word = pytest.mark.parametrize("word", WORDS)


def counts_of(random, dims):
    """Return extents of that many dimensions, of 20,000 elements at most."""
    counts = random.integers(1, 9, dims)
    while counts.prod() > 20_000:
        counts[counts.argmax()] = 1
    return tuple(map(int, counts))


@every_word
@pytest.mark.parametrize("kernel", ["copy", "fill"])
def test_any_layout_is_copied_and_filled_as_numpy_does_it(kernel, word):
    random = np.random.default_rng(word)
    for dims in [*range(9)] * 6:
        counts = counts_of(random, dims)
        source = random_side(random, counts, word, broadcasts=True)
        target = random_side(random, counts, word)
        run_and_compare(random, kernel, word, counts, source, target, blocks=1 + dims)


@every_word
@pytest.mark.parametrize("blocks", [1, 3, 1000])
def test_any_extents_are_transposed(word, blocks):
    random = np.random.default_rng(word)
    for outer in (0, 1, 2, 3) * 5:
        tiled = random.choice((1, 5, 31, 32, 33, 64, 65, 127, 129), 2)
        counts = (*map(int, random.integers(1, 4, outer)), *map(int, tiled))
        source = random_side(random, counts, word, fastest=outer, broadcasts=True)
        target = random_side(random, counts, word, fastest=outer + 1)
        run_and_compare(random, "transpose", word, counts, source, target, blocks=blocks)
