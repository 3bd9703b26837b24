"""The reference shows docstrings and signatures as they are meant."""

import ast
import re
from pathlib import Path

from support.crawl import crawled

STUB = Path(__file__).resolve().parents[2] / "python" / "dlfield" / "_core.pyi"
#: Parameters that Python passes by itself, also as the signatures of compiled functions spell them.
OWN = {"self", "cls", "$self", "$cls", "$module"}


def found(site, pattern):
    """Return what a pattern finds in each page: the name of the page, and the text without tags."""
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


def test_no_quotation_mark_is_a_typographic_one(site):
    assert list(found(site, "([\u201c\u201d\u2018\u2019])")) == []


def test_a_function_that_makes_a_storage_shows_its_options_as_parameters(site):
    nodes = ast.walk(ast.parse(STUB.read_text("utf-8")))
    body = next(node.body for node in nodes if getattr(node, "name", "") == "StorageOptions")
    options = {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    for name in ("empty", "full", "ones_like", "storage", "as_storage", "from_xarray"):
        page = (site / "api" / f"dlfield.{name}.html").read_text("utf-8")
        shown = re.findall(r'<em class="sig-param">(.*?)</em>', page)
        assert options <= {re.sub("<.*?>|=.*", "", one) for one in shown}, name


def test_only_the_kinds_of_storage_show_options_without_their_names(site):
    pages = {
        page for page, one in found(site, r'<em class="sig-param">(.*?)</em>') if one == "**options"
    }
    assert {page.removeprefix("dlfield.") for page in pages} <= {
        "Storage.html",
        "CPUStorage.html",
        "GPUStorage.html",
        "SoftwareManagedGPUStorage.html",
        "CUDAManagedGPUStorage.html",
    }


def test_the_page_of_a_function_has_its_example(site):
    functions = {page for page, _ in found(site, '<dl class="(py function)">')}
    assert len(functions) > 30
    assert functions <= {page for page, _ in found(site, "<pre>(.*?&gt;&gt;&gt;)")}
