"""The pages of the site in a browser, without a network: wide and narrow, light and dark."""

import pytest

from support.browser import Tab
from support.crawl import crawled

#: Pixels of a phone and of a desk, which has all texts.
PHONE, DESK = 390, 1300
#: In an order in which a window seldom changes, which takes time.
VIEWS = [("light", PHONE), ("light", DESK), ("dark", DESK), ("dark", PHONE)]
KINDS = ("complaints", "requests", "missing images", "too wide", "faint")


@pytest.fixture(scope="session")
def faults(site, started):
    """Look at every page once, and give what is wrong with any, by kind of fault."""
    tab = Tab(started)
    found = {kind: [] for kind in KINDS}
    for page in sorted(crawled(site)):
        for kind, seen in look_at(tab, page):
            found[kind].append(f"{page.relative_to(site)}: {seen}")
    return found


def look_at(tab, page):
    """Open a page, and go through its faults: the kind, and what was seen."""
    tab.complaints.clear()
    tab.requests.clear()
    tab.open(page)
    for scheme, width in VIEWS:
        tab.set_theme(scheme)
        tab.set_width(width)
        if over := tab.overflow():
            yield "too wide", f"{over} pixels more than {width}, {scheme}"
        if width == DESK:
            yield from (("faint", f"{thing}, {scheme}") for thing in tab.faint())
    for kind in ("complaints", "requests", "missing images"):
        told = tab.missing_images() if kind == "missing images" else getattr(tab, kind)
        yield from ((kind, one) for one in told)


def test_no_page_complains_in_the_console(faults):
    assert faults["complaints"] == []


def test_no_page_asks_the_network_for_anything(faults):
    assert faults["requests"] == []


def test_every_image_is_loaded(faults):
    assert faults["missing images"] == []


def test_no_page_is_wider_than_a_screen_or_a_phone(faults):
    assert faults["too wide"] == []


def test_texts_and_lines_stand_out_in_light_and_dark(faults):
    assert faults["faint"] == []
