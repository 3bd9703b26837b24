"""Drawings that pages have as images are legible: texts and lines, in light and dark."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from support.crawl import crawled


def pages_with_drawings(site):
    """Find the pages with an image that is SVG."""
    return [
        page
        for page, read in crawled(site).items()
        if any(path.suffix == ".svg" for path, _ in read.targets)
    ]


def faults(tab, file, colour):
    """Show a drawing as an image is shown: black is the colour of text, on that of the page."""
    drawn = file.read_text("utf-8")
    tab.show(f"<body style='background: {colour}; color: #000'>{drawn}")
    return [*tab.faint(), *(f"cut off: {text}" for text in tab.cut_off())]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawings_are_legible(site, tab, scheme):
    behind = {}
    for page in pages_with_drawings(site):
        tab.open(page)
        tab.set_theme(scheme)
        behind |= tab.colours_behind_drawings()
    files = {Path(unquote(urlsplit(url).path)): colour for url, colour in behind.items()}
    found = {file.name: faults(tab, file, colour) for file, colour in files.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
