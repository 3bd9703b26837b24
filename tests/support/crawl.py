"""The pages of a site, found by following its links, without a browser."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that lead to another file, by the element that has them.
_LEADING = {"a": "href", "link": "href", "script": "src", "img": "src", "form": "action"}


class Read(HTMLParser):
    """What a page leads to.

    Attributes
    ----------
    targets : list of (Path, str)
        Files of the site that the page links to or loads, each with the place in it, or "".
    places : set of str
        Names of the places in this page.
    loaded_from_elsewhere : list of str
        Addresses outside the site of what the page loads; links that a reader follows do not count.
    words : set of str
        Long words of its paragraphs.
    """

    def __init__(self, page):
        super().__init__()
        self._page, self.targets, self.places, self.loaded_from_elsewhere = page, [], set(), []
        self._in_paragraph, self.words = False, set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        """Take down the name of an element, and what it leads to."""
        given = dict(attributes)
        self._in_paragraph |= tag == "p"
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        url = given.get(_LEADING.get(tag))
        if url is None or given.get("rel") == "canonical":
            return
        parts = urlsplit(url)
        if not parts.scheme and not parts.netloc:
            path = (self._page.parent / unquote(parts.path)) if parts.path else self._page
            self.targets.append((Path(path).resolve(), unquote(parts.fragment)))
        elif tag != "a" and parts.scheme != "data":
            self.loaded_from_elsewhere.append(url)

    def handle_endtag(self, tag):
        """Leave a paragraph."""
        self._in_paragraph &= tag != "p"

    def handle_data(self, data):
        """Take down the words of a paragraph."""
        if self._in_paragraph:
            self.words.update(re.findall(r"\b[a-z]{9,}\b", data))


@cache
def crawled(site):
    """Read every page that links lead to, beginning with the first one of the site."""
    pages, waiting = {}, [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page not in pages and page.suffix == ".html" and page.is_file():
            pages[page] = Read(page)
            waiting += [path for path, _ in pages[page].targets]
    return pages
