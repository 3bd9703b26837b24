"""Dask's distributed scheduler sends storages as it sends arrays of NumPy: without a copy."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

protocol = library("distributed.protocol")

#: The first two are larger than 64 MiB, where distributed cuts an array into pieces.
SHAPES = [(100, 1000, 100), (9_000_000,), (100, 300), (1, 9, 9), (0, 5)]


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_storage_arrives_without_a_copy(shape, layout):
    values = np.ones(shape)
    dims = "IJK"[: len(shape)]
    storage = dlf.storage(values, dims=dims, defaults=layout)
    arrived = protocol.loads(protocol.dumps(protocol.to_serialize(storage)))
    assert (type(arrived), arrived.dims) == (dlf.CPUStorage, tuple(dims))
    np.testing.assert_array_equal(arrived.to_numpy(), values, strict=True)
    assert values.size == 0 or arrived.ptr == storage.ptr


def test_a_storage_arrives_from_pieces_that_came_one_by_one():
    values = np.arange(9_000_000.0).reshape(90, 100_000)
    frames = protocol.dumps(protocol.to_serialize(dlf.storage(values, dims="IJ")))
    assert len([frame for frame in frames if memoryview(frame).nbytes > 1 << 20]) == 2
    arrived = protocol.loads([bytes(frame) for frame in frames])
    np.testing.assert_array_equal(arrived.to_numpy(), values, strict=True)


def test_dask_counts_the_bytes_of_a_storage():
    sizeof = library("dask.sizeof").sizeof
    storage = dlf.zeros((100, 100))
    assert storage.nbytes <= sizeof(storage) < storage.nbytes + 1000
