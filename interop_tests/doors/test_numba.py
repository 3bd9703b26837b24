"""Functions that numba compiles, on the memory of a storage."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import assert_freed_once

numba = library("numba")


@pytest.fixture(scope="module")
def double():
    @numba.njit
    def double(array):
        for i in range(array.shape[0]):
            for j in range(array.shape[1]):
                array[i, j] *= 2.0
        return array.ctypes.data

    return double


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_a_compiled_function_changes_the_storage_in_place(double, layout):
    storage = dlf.ones((4, 3), layout=layout)
    assert double(storage.to_numpy()) == address_of(storage)
    assert np.array_equal(storage.to_numpy(), np.full((4, 3), 2.0))


def test_a_compiled_function_changes_only_the_part_inside_the_halo(double):
    storage = dlf.ones((6, 5), halo=(2, 1))
    double(storage.domain_view.to_numpy())
    assert storage.to_numpy().sum() == 6 * 5 + 2 * 3


def test_a_compiled_function_may_not_write_a_read_only_storage(double):
    storage = dlf.as_storage(np.frombuffer(bytes(96)).reshape(4, 3))
    with pytest.raises(numba.core.errors.TypingError, match="readonly"):
        double(storage.to_numpy())


def test_a_compiled_function_holds_no_memory_after_its_call(double):
    def call(storage):
        double(storage.to_numpy())
        return storage

    assert_freed_once(dlf.as_storage, call)
