"""Snippets in processes of their own, which import these helpers as tests do."""

import fcntl
import functools
import os
import subprocess
import sys
import tempfile
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.forked import Forks

TESTS = Path(__file__).parents[1]


def beside_tests(**settings):
    """Return the environment of a process that finds `support`, with more settings."""
    path = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **settings}


@contextmanager
def one_at_a_time(name):
    """Keep other processes that run tests out of a block of this name."""
    folder = Path(os.environ.get("GT_CACHE_ROOT", tempfile.gettempdir()))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield


def end_of(code, *options, timeout=120, **settings):
    """Run a snippet, with options of the interpreter, and give how it ended."""
    return _ended([*options, "-c", textwrap.dedent(code)], timeout, settings)


def end_of_module(name, *arguments, timeout=120, **settings):
    """Run a module as a program, and give how it ended."""
    return _ended(["-m", name, *arguments], timeout, settings)


def printed_by(*arguments, folder=None):
    """Run a program of Python, with its options, in a folder, and give what it printed."""
    done = _ended(map(str, arguments), 300, {}, folder)
    expect_success(done, " ".join(map(str, arguments)))
    return done.stdout


def _ended(options, timeout, settings, folder=None):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *options],
        cwd=folder,
        env=beside_tests(**settings),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def expect_success(done, code):
    """Fail the test unless a process ended well."""
    if done.returncode != 0:
        pytest.fail(f"exit status {done.returncode}\n{code}\n{done.stdout}{done.stderr}")


def run_in_subprocess(code, *, warnings="error"):
    """Run a snippet that may end the process, and give what it printed."""
    done = end_of(code, "-W", warnings)
    expect_success(done, code)
    return done.stdout.strip()


def run_in_fork(code):
    """As `run_in_subprocess`, in a tenth of the time: Python has started, and imported dlfield."""
    environment = beside_tests()
    environment.pop("PYTEST_CURRENT_TEST", None)  # it differs, and means nothing to a snippet
    done = _forks(tuple(environment.items())).end_of(textwrap.dedent(code), 120)
    expect_success(done, code)
    return done.stdout.strip()


@functools.cache
def _forks(environment):
    return Forks(["-W", "error"], dict(environment))
