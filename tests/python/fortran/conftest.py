"""The program of these tests, built once for each process."""

import pytest

from support.fortran import Program


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("fortran"))
