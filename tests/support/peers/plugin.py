"""Runs one suite of another project with storages underneath: a plugin for pytest.

A test that `suites.toml` lists as a deviation must fail, and one of those with a pattern must.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from support.peers import adaptors, suites

_counts = Counter()
_unexplained = []
#: The pattern of each test that may fail, and those that were met.
_patterns = {}
_met = set()


def pytest_addoption(parser):
    parser.addoption("--peer", help="name of the suite in suites.toml")
    parser.addoption("--bare", action="store_true", help="without the deviations")
    parser.addoption("--counts", help="file for the counts, as JSON")


@pytest.hookimpl(trylast=True)  # after -k has chosen
def pytest_collection_modifyitems(config, items):
    suite = suites.SUITES[config.getoption("--peer")]
    adapt = getattr(adaptors, suite.adaptor)
    for module in {item.module for item in items}:
        adapt(module)
    for item in [] if config.getoption("--bare") else items:
        found = suite.deviation(item.nodeid)
        if found is not None:
            _patterns[item.nodeid], reason = found
            item.add_marker(pytest.mark.xfail(reason=reason, strict="*" not in found[0]))


def pytest_runtest_logreport(report):
    if report.when != "call" and report.passed:
        return
    deviates = hasattr(report, "wasxfail") and report.skipped and report.nodeid in _patterns
    if deviates:
        _met.add(_patterns[report.nodeid])
    outcome = "deviates" if deviates else report.outcome
    _counts[outcome] += 1
    if outcome == "failed":
        _unexplained.append(report.nodeid)


def pytest_terminal_summary(terminalreporter, config):
    suite = suites.SUITES[config.getoption("--peer")]
    found = {"counts": _counts, "unexplained": _unexplained}
    found["storages"] = next(adaptors.given)
    found["unmet"] = [] if config.getoption("--bare") else sorted(set(suite.deviations) - _met)
    if path := config.getoption("--counts"):
        Path(path).write_text(json.dumps(found, indent=1))
