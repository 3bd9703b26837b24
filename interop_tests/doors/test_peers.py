"""Tests that other libraries ship, with storages in place of their arrays: support.peers."""

import pytest

from support.optional import library
from support.processes import end_of_module, expect_success

library("xarray")
library("pyarrow")
library("jax")


@pytest.mark.parametrize("suite", ["numpy_dlpack", "numpy_buffers", "pyarrow_arrays", "xarray"])
def test_a_librarys_own_tests_pass_with_storages_but_for_the_listed_deviations(suite):
    expect_success(end_of_module("support.peers", suite, timeout=600), suite)


def test_a_failure_that_is_not_listed_is_one_of_the_run():
    done = end_of_module("support.peers", "--bare", "numpy_dlpack", timeout=600)
    assert done.returncode == 1
    assert "TestDLPack::test_readonly" in done.stdout.rpartition("|")[2]
