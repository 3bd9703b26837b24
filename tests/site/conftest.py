"""Tests of pages in a browser: those of the site, built by `make docs`, and of notebooks."""

from pathlib import Path

import pytest

from support.browser import Tab, browser

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"


@pytest.fixture(scope="session")
def site():
    """Folder of the pages."""
    assert (SITE / "index.html").exists(), "the site is not built; make docs"
    return SITE


@pytest.fixture(scope="session")
def started():
    """Return the one browser of all tests."""
    with browser() as running:
        yield running


@pytest.fixture
def tab(started):
    """Open a tab without a past."""
    made = Tab(started)
    yield made
    made.page.context.close()
