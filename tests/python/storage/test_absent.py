"""Absent means absent: which class, made how, has which door. Consumers probe with hasattr."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library


def of_a_type_numpy_lacks():
    return dlf.zeros(3, dtype=library("ml_dtypes").bfloat16)


def read_only():
    array = np.zeros((3, 4))
    array.flags.writeable = False
    return dlf.as_storage(array)


#: How a storage is made, for what it may lack.
STORAGES = {
    "plain": lambda: dlf.zeros((3, 4)),
    "IK": lambda: dlf.zeros((3, 4), dims="IK"),
    "0": lambda: dlf.zeros(3, dims=("0",)),
    "lon, lat": lambda: dlf.zeros((3, 4), dims=("lon", "lat")),
    "I, lat": lambda: dlf.zeros((3, 4), dims=("I", "lat")),
    "with an origin": lambda: dlf.zeros((3, 4), default_origin=(1, 1)),
    "with an origin of zeros": lambda: dlf.zeros((3, 4), default_origin=(0, 0)),
    "with a halo": lambda: dlf.zeros((3, 4), halo=(1, 1)),
    "domain view": lambda: dlf.zeros((3, 4), dims="IK", halo=(1, 1)).domain_view,
    "read-only": read_only,
    "negative strides": lambda: dlf.as_storage(np.zeros((3, 4))[::-1]),
    "no elements": lambda: dlf.zeros((0, 4)),
    "one element": lambda: dlf.zeros(()),
    "bfloat16": of_a_type_numpy_lacks,
}

ALWAYS = {
    "__dlpack__": STORAGES,
    "__dlpack_device__": STORAGES,
    "__dlpack_c_exchange_api__": STORAGES,
    "__array__": STORAGES,
    "ndarray": STORAGES,
    "__array_function__": STORAGES,
    "__array_priority__": STORAGES,
    # What Arrow cannot express is refused with the reason, or consumers would go number by number.
    "__arrow_c_schema__": STORAGES,
    "__arrow_c_array__": STORAGES,
    "__arrow_c_device_array__": STORAGES,
}
HOST_BACKED = dlf.CPUStorage.__bases__[0]
NAMED = {"IK", "0", "domain view"}
WITH_AN_ORIGIN = {"with an origin", "with an origin of zeros"}
PRESENT = {
    **ALWAYS,
    "__array_interface__": STORAGES.keys() - {"bfloat16"},
    "__gt_data_interface__": STORAGES.keys() - {"bfloat16"},
    "__gt_dims__": NAMED,
    "__gt_origin__": WITH_AN_ORIGIN,
    "default_origin": WITH_AN_ORIGIN,
    # What host memory cannot serve, and what older documents called by another name.
    "__cuda_array_interface__": (),
    "__hip_array_interface__": (),
    "__gt_interface__": (),
    "__array_struct__": (),
    "__arrow_c_stream__": (),
}


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`__array_interface__` exists if there is a host buffer",
    "`__cuda_array_interface__` is absent from all other storages",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Methods",
    "`__array__` and `__array_interface__` exist if there is a host buffer",
)
@pytest.mark.parametrize("attribute", PRESENT)
@pytest.mark.parametrize("how", STORAGES)
def test_a_host_storage_has_exactly_the_attributes_that_it_can_serve(how, attribute):
    assert hasattr(STORAGES[how](), attribute) is (how in PRESENT[attribute])


@pytest.mark.parametrize("attribute", PRESENT)
@pytest.mark.parametrize("how", STORAGES)
def test_reading_it_gives_a_value_or_an_attribute_error_that_names_it(how, attribute):
    storage = STORAGES[how]()
    if how in PRESENT[attribute]:
        assert getattr(storage, attribute) is not None
    else:
        with pytest.raises(AttributeError, match=attribute):
            getattr(storage, attribute)


@pytest.mark.parametrize("how", STORAGES)
def test_a_buffer_is_there_exactly_where_a_format_names_the_type(how):
    storage = STORAGES[how]()
    if how == "bfloat16":
        with pytest.raises(BufferError, match="bfloat16"):
            memoryview(storage)
    else:
        assert memoryview(storage).shape == storage.shape


#: Defined where every class that can serve them inherits them, and no other.
DEFINED = {
    dlf.Storage: {
        *("__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__", "__gt_data_interface__"),
        *("__gt_dims__", "__gt_origin__", "default_origin", "__array_function__"),
        *("__arrow_c_schema__", "__arrow_c_device_array__", "__array_priority__"),
    },
    HOST_BACKED: {"__array__", "__array_interface__", "__arrow_c_array__"},
    dlf.CPUStorage: {"ndarray"},
    dlf.GPUStorage: {
        "__array__",
        "__cuda_array_interface__",
    },  # the first raises an error with a reason
    dlf.SoftwareManagedGPUStorage: {"__cuda_array_interface__"},
    dlf.CUDAManagedGPUStorage: {"__cuda_array_interface__"},
}


@pytest.mark.parametrize("cls", DEFINED, ids=lambda cls: cls.__name__)
def test_a_door_is_defined_by_the_classes_that_can_serve_it(cls):
    assert PRESENT.keys() & vars(cls).keys() == DEFINED[cls]


def test_what_has_a_buffer_on_the_host_shares_a_class_between():
    below = {cls for cls in DEFINED if HOST_BACKED in cls.__bases__}
    assert below == {dlf.CPUStorage, dlf.SoftwareManagedGPUStorage, dlf.CUDAManagedGPUStorage}
    assert (HOST_BACKED.__name__, HOST_BACKED.__bases__) == ("HostBackedStorage", (dlf.Storage,))
    assert dlf.GPUStorage.__bases__ == (dlf.Storage,)


@pytest.mark.parametrize("function", [dlf.bind, dlf.explain, dlf.get_dims, dlf.as_numpy])
def test_a_function_is_not_an_array(function):
    assert not {name for name in PRESENT if hasattr(function, name)}
