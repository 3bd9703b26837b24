"""The program of these tests, built once for each process."""

import signal

import pytest

from support.fortran import Program

# A program that a shell starts in the background ignores Ctrl-C. Those of these tests must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("fortran"))
