"""The reference shows docstrings and signatures as they are meant."""

import re

from support.crawl import crawled

#: Parameters that Python passes by itself, also as the signatures of compiled functions spell them.
OWN = {"self", "cls", "$self", "$cls", "$module"}


def found(site, pattern):
    """Give what a pattern finds in each page: the name of the page, and the text without tags."""
    for page in crawled(site):
        for text in re.findall(pattern, page.read_text("utf-8"), re.S):
            yield page.name, re.sub("<.*?>", "", text)


def test_no_signature_has_the_object_itself(site):
    parameters = list(found(site, r'<em class="sig-param">(.*?)</em>'))
    assert len(parameters) > 100
    assert [(page, one) for page, one in parameters if one in OWN] == []


def test_no_code_in_a_text_is_empty(site):
    codes = list(found(site, r"<code\b[^>]*>(.*?)</code>"))
    assert len(codes) > 100
    assert [page for page, code in codes if not code.strip()] == []
