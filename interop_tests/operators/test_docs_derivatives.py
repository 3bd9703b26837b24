"""`docs/derivatives.md`: its Python runs, and the gradient that it takes is the right one."""

import re
from pathlib import Path

from support.optional import library
from support.pages import python_blocks, run_blocks

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "derivatives.md").read_text("utf-8")


def test_every_block_of_the_page_on_derivatives_runs(tmp_path, monkeypatch):
    for name in ("gt4py", "torch"):
        library(name)
    blocks = python_blocks(TEXT)
    check = "\ninside = (inp[1:] - inp[:-1]).numpy()\nassert np.allclose(c.grad[:-1], inside)\n"
    run_blocks([*blocks, check], "docs_derivatives", tmp_path, monkeypatch)


def test_the_derived_text_of_the_page_is_the_one_that_is_derived(tmp_path, monkeypatch):
    for name in ("gt4py", "torch"):
        library(name)
    shown = re.search(r"```text\n(def spread_adjoint.*?)```", TEXT, re.S).group(1)
    block = python_blocks(TEXT)[0].partition("op = ")[0]
    check = f"\nassert dlf.adjoint_source(spread).endswith({shown!r})\n"
    run_blocks([block, check], "docs_derived", tmp_path, monkeypatch)
