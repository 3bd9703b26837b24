"""`docs/origins.md`: its Python prints what is shown."""

from pathlib import Path

import pytest

from support.optional import library
from support.pages import python_blocks, run_blocks
from support.stencils.next_programs import QUIET

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "origins.md").read_text("utf-8")
pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]


def test_every_block_of_the_page_on_origins_prints_what_it_says(tmp_path, monkeypatch):
    library("gt4py.next")
    run_blocks(python_blocks(TEXT), "docs_origins", tmp_path, monkeypatch)
