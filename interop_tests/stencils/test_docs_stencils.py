"""`docs/stencils.md`: its Python prints what is shown."""

import re
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library
from support.pages import python_blocks, run_blocks
from support.processes import one_at_a_time

SHAPE = (6, 6, 4)
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "stencils.md").read_text("utf-8")

pytestmark = [
    # Of programs of gt4py.next that Python runs, which is advice about speed.
    pytest.mark.filterwarnings("ignore:Field View Program:UserWarning"),
    pytest.mark.filterwarnings("ignore:Python is not running in optimized mode:UserWarning"),
    # A block asks for a copy.
    pytest.mark.filterwarnings("ignore::dlfield.MemoryCopyWarning"),
]


def test_every_block_of_the_stencils_page_prints_what_it_says(tmp_path, monkeypatch):
    for name in ("gt4py", "jax", "torch", "xarray"):
        library(name)
    gtx = library("gt4py.next")
    blocks = python_blocks(TEXT)
    if not hasattr(gtx, "flip_staggered"):  # new in GT4Py 1.2
        newer = re.compile("flip_staggered|external_workspace")
        blocks = [block for block in blocks if not newer.search(block)]
    run_blocks(blocks, "docs_stencils", tmp_path, monkeypatch)


def test_the_page_is_right_that_binding_compiles_a_lazy_stencil():
    gtscript = library("gt4py.cartesian.gtscript")
    from support.stencils import cartesian

    lazy = gtscript.lazy_stencil(backend="numpy", definition=cartesian.split)
    with one_at_a_time("split-numpy"):
        run = dlf.bind(lazy)
    left, right = np.zeros(SHAPE), np.zeros(SHAPE)
    run(np.zeros(SHAPE), left, right)
    assert (left == 1.0).all()


@pytest.mark.parametrize("name", ["DeviceCopyWarning", "LayoutWarning", "MemoryCopyWarning"])
def test_each_warning_is_listed(name):
    assert f"| `dlf.{name}` |" in TEXT
