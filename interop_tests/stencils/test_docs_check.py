"""`docs/check.md`: its Python prints what is shown."""

from pathlib import Path

import pytest

from support.optional import library
from support.pages import python_blocks, run_blocks

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "check.md").read_text("utf-8")


@pytest.mark.filterwarnings("ignore::dlfield.RefusedCallWarning")
def test_every_block_of_the_page_on_checking_prints_what_it_says(tmp_path, monkeypatch):
    library("gt4py.cartesian.gtscript")
    run_blocks(python_blocks(TEXT), "docs_check", tmp_path, monkeypatch)
