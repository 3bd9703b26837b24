"""`docs/unstructured.md`: its Python prints what is shown, and so do its programs."""

from pathlib import Path

import pytest

from support.optional import library
from support.pages import python_blocks, run_blocks

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "unstructured.md").read_text("utf-8")

pytestmark = pytest.mark.filterwarnings("ignore:Field View Program:UserWarning")


def test_every_block_of_the_unstructured_page_prints_what_it_says(tmp_path, monkeypatch):
    for name in ("gt4py.next", "torch", "xarray"):
        library(name)
    run_blocks(python_blocks(TEXT), "docs_unstructured", tmp_path, monkeypatch)
