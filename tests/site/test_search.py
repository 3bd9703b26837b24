"""The search of the site finds words in texts, without a network."""

from collections import Counter

from support.crawl import crawled

FINISHED = "document.querySelector('.search-summary')?.textContent.includes('finished')"
FOUND = "[...document.querySelectorAll('#search-results li a')].map(one => one.href)"


def test_a_word_that_one_page_has_is_found_there(site, tab):
    pages = {page: read for page, read in crawled(site).items() if page.name != "search.html"}
    count = Counter(word for read in pages.values() for word in read.words)
    own = {page: [one for one in read.words if count[one] == 1] for page, read in pages.items()}
    asked = [(min(words), page) for page, words in sorted(own.items()) if words]
    assert len(asked) > 5
    for word, page in asked[:: len(asked) // 5]:
        tab.open(site / "search.html", f"?q={word}")
        tab.page.wait_for_function(FINISHED)
        urls = tab.page.evaluate(FOUND)
        assert any(url.startswith(page.as_uri()) for url in urls), f"{word}, of {page.name}"
    assert tab.requests == []
