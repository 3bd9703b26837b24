"""`pytest -p dlfield.pytest_check`: the checker in a test run of the user's."""

import pytest

from support.optional import library
from support.processes import end_of_module

library("gt4py.cartesian.gtscript")
library("gt4py.next")

TESTS = """
import pytest
from support.planted_model import Model

@pytest.mark.parametrize("steps", [1, 2])
def test_model(steps):
    Model().run(steps)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "test_model.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]")

    def run(*options):
        plugins = ("-p", "dlfield.pytest_check", "-p", "no:cacheprovider")
        return end_of_module("pytest", *plugins, *options, "-c", tmp_path / "pytest.ini", tmp_path)

    return run


def test_findings_are_warnings_and_the_summary_stands_at_the_end(run):
    ended = run()
    assert ended.returncode == 0
    assert "RefusedCallWarning: stage: arguments" in ended.stdout
    assert "dlfield check: 3 stencils, 12 calls checked, 3 findings" in ended.stdout


def test_with_its_option_each_test_with_a_finding_fails(run):
    ended = run("--dlfield-error")
    assert "2 failed" in ended.stdout


def test_with_a_filter_of_warnings_each_test_with_a_finding_fails(run):
    ended = run("-W", "error::dlfield.RefusedCallWarning")
    assert "2 failed" in ended.stdout


def test_the_reports_of_workers_are_added(run):
    library("xdist")
    ended = run("-n", "2")
    assert "dlfield check: 3 stencils, 12 calls checked, 3 findings" in ended.stdout
