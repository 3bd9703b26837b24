"""A browser for tests of pages: Chromium or Chrome of this machine, driven by Playwright."""

from contextlib import contextmanager
from pathlib import Path

from support.optional import library, program

#: Contrast that WCAG 2 asks for with what lies behind (level AA).
LEAST_CONTRAST = {"least_of_texts": 4.5, "least_of_lines": 3}
_CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")

_OVERFLOW = """
    (() => {
        let [over, element] = [0, document.querySelector("article") ?? document.body];
        for (; element; element = element.parentElement)
            over = Math.max(over, element.scrollWidth - element.clientWidth);
        return over;
    })()
"""
_CUT_OFF = """
    [...document.querySelectorAll("svg text")].filter(text => {
        const [inner, outer] = [text, text.closest("svg")].map(one => one.getBoundingClientRect());
        return inner.left < outer.left || inner.right > outer.right || inner.bottom > outer.bottom;
    }).map(text => text.textContent)
"""

_BEHIND_DRAWINGS = """
    Object.fromEntries([...document.images].filter(one => one.src.endsWith(".svg")).map(image => {
        let [element, colour] = [image, "rgba(0, 0, 0, 0)"];
        for (; element && colour === "rgba(0, 0, 0, 0)"; element = element.parentElement)
            colour = getComputedStyle(element).backgroundColor;
        return [image.src, colour];
    }))
"""


@contextmanager
def browser():
    """Start the browser, without a window; skip the test if there is none."""
    playwright = library("playwright.sync_api")
    found = program("chromium", "chromium-browser", "google-chrome")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found)
        yield started
        started.close()


class Tab:
    """A tab of the browser that has files of this machine and no network.

    `complaints` are errors and warnings in its console; `requests` what it asked the network for.
    """

    def __init__(self, started):
        self.complaints, self.requests = [], []
        context = started.new_context(reduced_motion="reduce")
        context.route(lambda url: not _is_here(url), lambda route: route.abort())
        self.page = page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._asked)

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request):
        if not _is_here(request.url):
            self.requests.append(request.url)

    def open(self, file, query=""):
        """Open a file, and wait until all that it loads is there."""
        self.page.goto(file.as_uri() + query, wait_until="load")

    def show(self, html):
        """Show a text as a page."""
        self.page.set_content(html)

    def set_width(self, pixels):
        """Make the window as wide as that."""
        if self.page.viewport_size["width"] != pixels:
            self.page.set_viewport_size({"width": pixels, "height": 900})

    def set_scheme(self, scheme):
        """Prefer light or dark pages, as the settings of a system do."""
        self.page.emulate_media(color_scheme=scheme)

    def set_theme(self, scheme):
        """Prefer light or dark pages, and wait until a page of the site follows."""
        self.set_scheme(scheme)
        followed = f"document.documentElement.dataset.theme === '{scheme}'"
        if not self.page.evaluate(followed):
            self.page.wait_for_function(followed)

    def overflow(self):
        """Return by how many pixels the text of the page is wider than there is room for.

        Code, tables and others inside the text may scroll by themselves; the text must not.
        """
        return self.page.evaluate(_OVERFLOW)

    def faint(self):
        """List the texts and the lines of drawings that are hard to see, each with its contrast."""
        return self.page.evaluate(_CONTRAST, LEAST_CONTRAST)

    def cut_off(self):
        """List the texts of drawings that stick out of them."""
        return self.page.evaluate(_CUT_OFF)

    def colours_behind_drawings(self):
        """Return the colours that lie behind images that are SVG, by the address of the image."""
        return self.page.evaluate(_BEHIND_DRAWINGS)

    def missing_images(self):
        """List the images that could not be loaded."""
        return self.page.evaluate(
            "[...document.images].filter(one => !(one.complete && one.naturalWidth))"
            ".map(one => one.currentSrc || one.src)"
        )


def _is_here(url):
    return url.startswith(("file:", "data:", "blob:", "about:"))
