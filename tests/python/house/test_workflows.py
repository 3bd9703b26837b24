"""Workflows and releases: what they run is in the Makefile, and versions are one number."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def commands(workflow):
    return re.findall(r"^\s*(?:- )?run: (.*)$", workflow.read_text("utf-8"), re.M)


def targets(workflow):
    listed = re.findall(r"^\s*target: \[(.*)\]$", workflow.read_text("utf-8"), re.M)
    made = [command.removeprefix("make ") for command in commands(workflow) if "make " in command]
    words = " ".join(made + listed).replace(",", " ").split()
    return [word for word in words if re.fullmatch(r"[a-z][a-z0-9-]*", word)]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_make_or_installs_a_package(workflow):
    known = ("make ", "sudo apt-get ", "rustup component add ")
    assert [c for c in commands(workflow) if not c.startswith(known)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_the_makefile_has_what_a_workflow_makes(workflow):
    assert set() != set(targets(workflow)) <= TARGETS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_that_fails_is_seen(workflow):
    assert "continue-on-error" not in workflow.read_text("utf-8")
    assert "||" not in "".join(commands(workflow))


def test_ci_runs_what_the_contributing_page_says():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    made = re.findall(r"^make (?:-j2 )?([a-z-]+)$", script, re.M)
    assert made == ["check", "test", "test-newest"]
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert "`.ci/run`, which is `make check`, `make test` and `make test-newest`" in page


def test_files_that_the_newest_python_does_not_run_are_there():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    form, names = re.search(
        r"^SAME_EVERYWHERE := \$\(patsubst %,(\S+),(.*)\)$", makefile, re.M
    ).groups()
    files = [ROOT / form.replace("%", name) for name in names.split()]
    assert [file for file in files if not file.exists()] == []
    assert files


def test_the_citation_has_the_version_of_the_crate():
    version = r'^version[:=] ?"?([\d.]+)"?$'
    crate = (ROOT / "Cargo.toml").read_text("utf-8").replace("version = ", "version:")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    found = [re.findall(version, text, re.M) for text in (crate, citation)]
    assert found[0] == found[1] != []
