"""docs/sources.md: each statement has a status, each test that it names exists, each name holds."""

import ast
import functools
import re
from pathlib import Path

import dlfield as dlf
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
DOCUMENTS = [
    "A New Storage Implementation using Duck Typing",
    "Storage Refactoring",
    "CUDA Array Interface (Version 3)",
    "GT Storage Interface",
    "Storage Allocation and Interfaces",
]
#: A status begins with a test, or with one of these and what follows it.
WORDS = ("superseded by ", "not yet: ", "declined: ", "for others: ")
FOLDERS = "tests/python|tests/gpu|tests/gpu/interop|interop_tests"
TEST = re.compile(rf"`((?:{FOLDERS})/test_\w+\.py)::(test_\w+)`")


def rows(text):
    """Give the cells of each row of every table, without the heads."""
    lines = re.split(r"^\|[-|]+\|$", text, flags=re.MULTILINE)[1:]
    for after in lines:
        for line in after.lstrip("\n").splitlines():
            if not line.startswith("|"):
                break
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def chapters():
    """Give each chapter by its title."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


NAMES = "Names that were replaced"
REPLACED = list(rows(chapters()[NAMES]))
STATEMENTS = [row for title, text in chapters().items() if title != NAMES for row in rows(text)]


@functools.cache
def functions_of(path):
    """Read the names of the functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), sorted(set(TEST.findall(PAGE))), ids=lambda one: one)
def test_every_test_that_is_named_exists(path, name):
    assert name in functions_of(path)


def test_nothing_that_looks_like_a_test_is_named_in_another_way():
    assert PAGE.count("::") == len(TEST.findall(PAGE))


def test_every_statement_has_a_status():
    assert [row for row in STATEMENTS if len(row) != 2 or not all(row)] == []


def test_every_status_is_a_known_one_and_says_something():
    def known(status):
        word = next((word for word in WORDS if status.startswith(word)), None)
        return len(status) > len(word) + 2 if word else bool(TEST.match(status))

    assert [row for row in STATEMENTS if not known(row[-1])] == []


def test_no_section_says_the_same_twice():
    documents = [text for title, text in chapters().items() if title != NAMES]
    for section in re.split(r"^### .+$", "\n".join(documents), flags=re.MULTILINE):
        said = [row[0] for row in rows(section)]
        assert len(said) == len(set(said))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_document_has_a_table(document):
    (chapter,) = [text for text in chapters().values() if document in text]
    assert len(list(rows(chapter))) > 20


def plain(cell):
    """Give what stands between the first backticks of a cell."""
    return re.search(r"`([^`]+)`", cell)[1]


def replaced(kind):
    """Give the old and the new name of each row of a kind."""
    return [(plain(old), plain(new)) for what, old, new, *_ in REPLACED if what == kind]


@pytest.mark.parametrize(("old", "new"), replaced("option"))
def test_a_keyword_that_was_replaced_is_answered_with_the_one_that_replaced_it(old, new):
    with pytest.raises(TypeError, match=rf"option '{old}': .*; .*\b{new}\b"):
        dlf.zeros((2,), **{old: 1})


@pytest.mark.parametrize(("old", "new"), replaced("attribute") + replaced("method"))
def test_an_attribute_that_was_replaced_is_gone_and_the_other_is_there(old, new):
    assert not hasattr(dlf.zeros((2,)), old)
    assert hasattr(dlf.zeros((2,)), new)


@pytest.mark.parametrize(("old", "new"), replaced("function"))
def test_a_function_that_was_replaced_is_gone_and_the_other_is_there(old, new):
    assert not hasattr(dlf, old)
    assert callable(getattr(dlf, new))
