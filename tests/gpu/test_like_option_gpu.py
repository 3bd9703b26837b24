"""`like=` across host and device: memory that is shared stays, a copy goes where its model is."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import pair
from support.cuda.kinds import DEVICE_NEWER

VALUES = np.arange(6.0).reshape(2, 3)
KINDS = {
    "host": {},
    "pair": {"device": "gpu"},
    "device": {"device": "gpu", "managed": None},
    "CUDA": {"device": "gpu", "managed": "cuda"},
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
@pytest.mark.parametrize("source", KINDS.values(), ids=KINDS)
def test_a_copy_is_of_the_kind_of_its_model(kind, source):
    model = dlf.zeros((2, 3), dims="IJ", halo=(0, 1), layout=(1, 0), **kind)
    made = dlf.storage(dlf.storage(VALUES, **source), like=model)
    assert type(made) is type(model)
    assert (made.dims, made.halo, made.layout) == (model.dims, model.halo, model.layout)
    np.testing.assert_array_equal(dlf.storage(made, device=None).to_numpy(), VALUES)


@every_kind
def test_shared_memory_stays_where_it_is(kind):
    data = dlf.storage(VALUES, **kind)
    model = dlf.zeros((2, 3), dims="IJ", halo=(0, 1), device="gpu")
    made = dlf.as_storage(data, like=model)
    assert (type(made), made.dims, made.halo) == (type(data), model.dims, model.halo)


def test_a_pair_that_is_labelled_goes_on_sharing_its_state():
    data = pair(VALUES, DEVICE_NEWER)
    made = dlf.as_storage(data, like=dlf.zeros((2, 3), dims="IJ"))
    assert made.sync_state is data.sync_state
    both = dlf.as_storage(data, data, like=dlf.zeros((2, 3), dims="KJ"))
    assert (both.dims, both.sync_state is data.sync_state) == (("K", "J"), True)


def test_an_option_of_a_copy_precedes_the_device_of_the_model():
    model = dlf.zeros((2, 3), device="gpu")
    assert type(dlf.storage(VALUES, like=model, device=None)) is dlf.CPUStorage
    assert type(dlf.storage(VALUES, like=model, managed=None)) is dlf.GPUStorage
    assert type(dlf.storage(VALUES, like=model, backend="numpy")) is dlf.CPUStorage
