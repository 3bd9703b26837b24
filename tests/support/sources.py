"""Statements of the source documents, the tests that show them, and the page that lists both.

docs/sources.toml has the statements; a test names those that it shows by a mark:
`@pytest.mark.source(document, section, *statements)`. `make pages` writes docs/sources.md.
"""

import ast
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "sources.toml"
PAGE = ROOT / "docs" / "sources.md"
#: A status begins with one of these.
WORDS = ("superseded by ", "not yet: ", "declined: ", "for others: ")


class Statement(NamedTuple):
    """A statement, why it has no test or what its tests refuse, and a remark on its tests."""

    text: str
    status: str = ""
    note: str = ""


class Mark(NamedTuple):
    """A statement that a test names."""

    document: str
    section: str
    text: str


def read():
    """Return the names that were replaced, and the documents with their sections."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    for document in data["documents"]:
        for section in document["sections"]:
            section["statements"] = [
                Statement(**one) if isinstance(one, dict) else Statement(one)
                for one in section["statements"]
            ]
    return data["replaced"], data["documents"]


def test_files():
    """Return the files that may have marks, in the order in which the page names them."""
    for folder in ("tests/python", "interop_tests", "tests/gpu"):
        yield from sorted((ROOT / folder).rglob("test_*.py"))


def marks_of(function):
    """Return the statements that the marks of a function name."""
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.source":
            document, section, *texts = map(ast.literal_eval, mark.args)
            yield from (Mark(document, section, text) for text in texts)


def marked():
    """Return each marked statement with the tests that name it, as pairs of file and name."""
    found = {}
    for path in test_files():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for mark in marks_of(node):
                    found.setdefault(mark, []).append((path, node.name))
    return found


def link(path, name):
    """Name a test by its sentence, with a link to its file."""
    sentence = name.removeprefix("test_").replace("_", " ")
    return f"[{sentence}](../{path.relative_to(ROOT).as_posix()})"


def row(statement, tests):
    """Write the row of a statement."""
    shown = "; ".join(link(*test) for test in tests)
    if statement.status:
        shown = f"{statement.status} ({shown})" if shown else statement.status
    if statement.note:
        shown += f"; {statement.note}"
    return f"| {statement.text} | {shown} |"


def page():
    """Write the page."""
    replaced, documents = read()
    tests = marked()
    lines = [INTRODUCTION, "| kind | old | new | what changed |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in replaced]
    for document in documents:
        lines += ["", f"## {document['title']}", "", document["about"]]
        for section in document["sections"]:
            lines += ["", f"### {section['name']}", ""]
            if "about" in section:
                lines += [section["about"], ""]
            lines += ["| statement | status |", "|---|---|"]
            for one in section["statements"]:
                mark = Mark(document["key"], section["name"], one.text)
                lines.append(row(one, tests.get(mark, ())))
    return "\n".join(lines) + "\n"


INTRODUCTION = """\
# What the source documents say, and where dlfield shows it

<!-- Written by `make pages` from docs/sources.toml and the marks of the tests. -->

dlfield follows five documents: GT4Py's declined proposal GDP-3, "A New Storage Implementation
using Duck Typing", and its first draft, "Storage Refactoring"; Numba's "CUDA Array Interface
(Version 3)"; and GT4Py's notes "GT Storage Interface" and "Storage Allocation and Interfaces".
The tables list all of their statements, in our own words, with what became of each. A status is a
**test** that shows the statement, named by its sentence; **superseded by** what replaces it, in a
later document or in dlfield; **not yet**, with what is missing; **declined**, where dlfield
decides otherwise on purpose; or **for others**, where it binds the user or another library. The
tests in `tests/gpu` run on a stand-in for the CUDA driver, and on a GPU if there is one; those of
CuPy run on a GPU only.

Where the documents disagree, GDP-3 precedes its draft, and its names precede those of all others.
The notes count where GDP-3 is silent: functions in an interface, `__gt_dims__`, `get_dims`,
`backend=`, and the origin. `defaults` and `backend` both exist; options override the first and
are refused beside the second. What GT4Py reads today (`__gt_origin__`, `.ndarray`) is supported
as well. Contrary to GDP-3, a storage keeps the names of its dimensions: that is what dlfield is
for.

## Names that were replaced

The names are those of the draft, and one is of a note. An option under its old name is an error
that gives the new name; an old attribute, method or function does not exist.
"""

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
