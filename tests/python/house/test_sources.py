"""docs/sources.md: every statement has a status or a test, and the page is up to date."""

import re

import dlfield as dlf
import pytest

from support import sources

REPLACED, DOCUMENTS = sources.read()
MARKED = sources.marked()
STATEMENTS = {
    sources.Mark(document["key"], section["name"], statement.text): statement
    for document in DOCUMENTS
    for section in document["sections"]
    for statement in section["statements"]
}


def test_the_page_is_up_to_date():
    assert sources.PAGE.read_text(encoding="utf-8") == sources.page(), "run `make pages`"


def test_every_mark_of_a_test_names_a_statement():
    assert sorted(set(MARKED) - set(STATEMENTS)) == []


def test_every_statement_has_a_test_or_a_status():
    bare = [mark for mark, one in STATEMENTS.items() if not one.status and mark not in MARKED]
    assert bare == []


def test_a_remark_on_tests_has_tests():
    assert [mark for mark, one in STATEMENTS.items() if one.note and mark not in MARKED] == []


def test_every_status_begins_with_a_known_word_and_gives_a_reason():
    def known(status):
        word = next((word for word in sources.WORDS if status.startswith(word)), None)
        return word is not None and len(status) > len(word) + 2

    statuses = [one.status for one in STATEMENTS.values() if one.status]
    assert [status for status in statuses if not known(status)] == []


def test_no_statement_is_listed_twice():
    listed = sum(len(section["statements"]) for one in DOCUMENTS for section in one["sections"])
    assert listed == len(STATEMENTS)


def test_no_mark_is_hidden_from_the_page():
    written = sum(
        path.read_text(encoding="utf-8").count("pytest.mark.source(")
        for path in sources.test_files()
    )
    read = {(test, mark.document, mark.section) for mark, tests in MARKED.items() for test in tests}
    assert written == len(read) + 1  # this test has one more


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one["key"])
def test_every_document_is_listed_at_length(document):
    assert sum(len(section["statements"]) for section in document["sections"]) > 20


def replaced(kind):
    """Return the old and the new name of each row of a kind."""
    rows = [(old, new) for what, old, new, _ in REPLACED if what == kind]
    return [tuple(re.search(r"`([^`]+)`", cell)[1] for cell in row) for row in rows]


@pytest.mark.source("GDP-3", "Backward Compatibility", "keywords and attributes are renamed")
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "keywords and attributes are renamed",
)
@pytest.mark.parametrize(("old", "new"), replaced("option"))
def test_an_option_under_its_old_name_is_answered_with_the_new_name(old, new):
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
