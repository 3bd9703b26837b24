"""A plugin for pytest: ``pytest -p dlfield.pytest_check`` checks all calls of GT4Py in a test run.

Findings are warnings of the tests that make the calls; ``--dlfield-error`` makes them errors. The
summary stands at the end. With pytest-xdist it adds up those of the workers.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from dlfield.check.report import CheckReport
from dlfield.check.session import checking

_report = pytest.StashKey[CheckReport]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the plugin."""
    what = "raise for a call of GT4Py that dlfield.bind would refuse"
    parser.addoption("--dlfield-error", action="store_true", help=what)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to check, before any test is collected."""
    check = checking(error=config.getoption("--dlfield-error"), summary=False)
    stack = contextlib.ExitStack()
    config.stash[_report] = stack.enter_context(check)
    config.add_cleanup(stack.close)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the report of a worker of pytest-xdist on."""
    if output := getattr(session.config, "workeroutput", None):
        output["dlfield_check"] = session.config.stash[_report].to_dict()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # of pytest-xdist
    """Take the report of a worker of pytest-xdist; one that has crashed has none."""
    if found := getattr(node, "workeroutput", {}).get("dlfield_check"):
        node.config.stash[_report].add(found)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the report."""
    terminalreporter.section("dlfield check")
    terminalreporter.write_line(repr(config.stash[_report]))
