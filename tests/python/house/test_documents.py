"""The documents speak of the code as it is: `docs/design.md` above all, and every link."""

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[3]
DESIGN = (ROOT / "docs" / "design.md").read_text("utf-8")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "recipes").glob("*.md")),
]


def rows(text):
    """Return the types and files in the tables of a text."""
    return re.findall(r"^\| `(\w+)` \| `(src/\S+)` \|", text, re.M)


ROWS = rows(DESIGN)
IGNORED = re.findall(r"^/(\S+)/$", (ROOT / ".gitignore").read_text("utf-8"), re.M)


def section(title):
    return DESIGN.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


def test_the_picture_of_the_road_has_every_module_in_its_order():
    assert "](road.svg)" in section("The road")
    picture = ElementTree.parse(ROOT / "docs" / "road.svg")
    shown = [one.text for one in picture.iter() if one.get("class") == "module"]
    assert shown == re.findall(r"^mod (\w+);", (ROOT / "src/lib.rs").read_text("utf-8"), re.M)


def test_the_types_in_the_picture_are_those_on_the_way_to_a_storage():
    picture = ElementTree.parse(ROOT / "docs" / "road.svg")
    shown = [one.text for one in picture.iter() if one.get("class") == "type"]
    named = [name for name, _ in rows(section("From an array to a storage"))]
    assert [name for name in named if name in shown] == shown[1:] != []


def test_there_are_at_most_eight_types_on_each_way():
    ways = ["From an array to a storage", "From an array to a stencil"]
    counts = [len(rows(section(way))) for way in ways]
    assert all(0 < count <= 8 for count in counts)
    assert sum(counts) == len(ROWS)


@pytest.mark.parametrize(("name", "file"), ROWS)
def test_a_type_is_defined_in_the_file_that_the_design_names(name, file):
    assert re.search(rf"\b(?:struct|enum) {name}\b", (ROOT / file).read_text("utf-8"))


def test_the_glossary_has_at_most_thirty_words():
    words = re.findall(r"^\| (.*?) \| ", section("Glossary"), re.M)[1:]
    assert 0 < sum(len(row.split(", ")) for row in words) <= 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there_or_made_by_make(page):
    named = re.findall(
        r"`((?:src|tests|interop_tests|python|docs|examples)/[\w./]*)`",
        page.read_text("utf-8"),
    )
    kept = [path for path in named if not path.startswith(tuple(IGNORED))]
    assert [path for path in kept if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text("utf-8"))
    targets = [((page.parent / path) if path else page, heading) for path, heading in links]
    assert [path for path, _ in targets if not path.exists()] == []
    assert [(path, head) for path, head in targets if head and head not in anchors(path)] == []


def test_the_oldest_versions_that_were_tested_are_the_lower_bounds():
    table = (ROOT / "docs" / "reliability.md").read_text("utf-8").partition("## Tested with")[2]
    heading, _, oldest, *_ = [line for line in table.splitlines() if line.startswith("|")]
    assert "`make test-oldest`" in oldest
    cells = ([cell.strip().lower() for cell in row.split("|")] for row in (heading, oldest))
    tested = dict(zip(*cells, strict=True))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["requires-python"] == f">={tested['python']}"
    for asked in project["dependency-groups"]["demo"]:
        name, bound = re.match(r"(\w+)(?:>=([\d.]+))?", asked).groups()
        if bound is not None:
            assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", tested[name]), name
