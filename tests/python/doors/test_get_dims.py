"""get_dims, as_numpy and as_cupy."""

import dlfield as dlf
import numpy as np
import pytest

from support.dlpack_structs import READ_ONLY, Producer
from support.gt_objects import Described, Synchronised
from support.owners import tracked
from support.parameters import readable
from support.processes import run_in_subprocess


class Attribute:
    __gt_dims__ = ("K", "I")


class Method:
    def __gt_dims__(self):
        return "KI"


NAMED = {
    "attribute": Attribute,
    "method": Method,
    "interface": lambda: Described(np.zeros((2, 3)), dims=("K", "I")),
    "older interface": lambda: Described(np.zeros((2, 3)), name="__gt_interface__", dims="KI"),
    "interface of a gpu": lambda: Described(np.zeros((2, 3)), key="gpu", lazily=True, dims="KI"),
    "storage": lambda: dlf.zeros((2, 3), dims="KI"),
}


@pytest.mark.source("Interface note", "`__gt_interface__`", "`dims` names the dimensions")
@pytest.mark.source(
    "Allocation note",
    "Dimension Mapping",
    "an object may have a method `__gt_dims__`",
    "`get_dims(storage, annotation)` gives the dimensions",
)
@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_an_object_names_its_axes_whatever_is_assumed(make):
    assert dlf.get_dims(make()) == dlf.get_dims(make(), "IJ") == ("K", "I")


def test_names_that_gt4py_does_not_know_are_names_too():
    assert dlf.get_dims(dlf.zeros((2, 3), dims=("lon", "lat"))) == ("lon", "lat")


@pytest.mark.source(
    "Allocation note",
    "Introduction",
    "names of dimensions need not be given: a stencil has an order of its own",
)
@pytest.mark.source(
    "Allocation note",
    "Dimension Mapping",
    "without `__gt_dims__`, the dimensions of the annotation hold",
)
@pytest.mark.parametrize("make", [lambda: np.zeros((2, 3)), lambda: dlf.zeros((2, 3)), object])
def test_without_names_the_annotation_decides_or_the_dims_are_unknown(make):
    assert dlf.get_dims(make()) is None
    assert dlf.get_dims(make(), ("J", "0")) == ("J", "0")


def test_an_annotation_of_another_number_of_axes_is_refused():
    with pytest.raises(ValueError, match=r"axes \('I', 'J', 'K'\), got 2 axes"):
        dlf.get_dims(np.zeros((2, 3)), "IJK")


@pytest.mark.parametrize("annotation", [str, [1, 2], {"I", "J"}, {"I": 0, "J": 1}], ids=readable)
def test_an_annotation_that_names_nothing_is_refused(annotation):
    with pytest.raises(TypeError, match="annotation: expected"):
        dlf.get_dims(np.zeros((2, 3)), annotation)


def test_asking_for_names_touches_no_memory():
    producer = Producer()
    field = Synchronised((2, 3), dims="IJ")
    assert dlf.get_dims(producer) is None
    assert dlf.get_dims(field) == ("I", "J")
    assert (producer.calls, field.calls) == ([], [])


def test_an_array_of_numpy_is_its_own():
    array = np.zeros(3, ">f4")
    assert dlf.as_numpy(array) is array


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "`as_numpy` gives a NumPy array",
    "`as_numpy` and `as_cupy` may accept more protocols, such as DLPack",
)
@pytest.mark.parametrize("flags", [0, READ_ONLY])
def test_other_memory_is_shared_in_its_own_order_of_axes(flags):
    producer = Producer((3, 4), flags=flags)
    array = dlf.as_numpy(producer)
    assert array.ctypes.data == producer.managed.dl_tensor.data
    assert array.flags.writeable is not bool(flags)
    assert producer.freed == 0
    del array
    assert producer.freed == 1


def test_a_storage_gives_its_own_memory():
    storage = dlf.zeros((2, 3), dims="KI", layout=(1, 0))
    array = dlf.as_numpy(storage)
    array[1, 2] = 5
    assert (storage.to_numpy()[1, 2], array.strides) == (5, storage.strides)


def test_an_array_over_memory_that_was_acquired_releases_it():
    field = Synchronised((2, 3))
    array = dlf.as_numpy(field)
    assert field.told == ["acquire"]
    del array
    assert field.told == ["acquire", "release"]


def test_a_subclass_of_numpy_is_kept_alive():
    array, watch = tracked(np.zeros(3))
    plain = dlf.as_numpy(array)
    del array
    assert (type(plain), watch.freed) == (np.ndarray, False)


@pytest.mark.parametrize("data", [[1, 2], 3.0, None, "text"])
def test_other_objects_are_not_copied_into_an_array(data):
    with pytest.raises(TypeError, match="array: expected one that speaks"):
        dlf.as_numpy(data)


def with_a_stand_in_for_cupy(code):
    return run_in_subprocess(f"""
        import sys, types
        import numpy as np

        class ndarray:
            def __init__(self, how, source):
                self.how, self.source = how, source

        cupy = sys.modules["cupy"] = types.ModuleType("cupy")
        cupy.ndarray = ndarray
        cupy.asarray = lambda source: ndarray("asarray", source)
        cupy.from_dlpack = lambda source: ndarray("from_dlpack", source)

        import dlfield as dlf
        from support.gt_objects import Described
{code}""")


def test_an_array_of_cupy_is_its_own():
    with_a_stand_in_for_cupy("""
        array = ndarray("made", None)
        assert dlf.as_cupy(array) is array
    """)


@pytest.mark.source("GDP-3", "Data Interface", 'the key "gpu" stands for memory of a GPU')
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    'keys with a number, such as ("gpu", 0), may follow later',
)
@pytest.mark.parametrize("key", ["'gpu'", "('gpu', 1)"])
def test_the_buffer_of_a_gpu_is_acquired_and_released_with_the_array(key):
    with_a_stand_in_for_cupy(f"""
        calls, host = [], np.zeros(3)
        told = {{name: lambda name=name: calls.append(name) for name in ("acquire", "release")}}
        array = dlf.as_cupy(Described(host, key={key}, lazily=True, **told))
        assert (array.how, calls) == ("asarray", ["acquire"])
        assert array.source.__cuda_array_interface__["data"] == (host.ctypes.data, False)
        del array
        assert calls == ["acquire", "release"]
    """)


@pytest.mark.source(
    "CUDA array interface",
    "Interoperability",
    "other libraries take objects with the interface, such as CuPy through `as_cupy`",
)
def test_the_buffer_of_a_gpu_goes_before_that_of_the_host():
    with_a_stand_in_for_cupy("""
        host, gpu = np.zeros(3), np.zeros(3)
        source = types.SimpleNamespace(
            __array_interface__=host.__array_interface__,
            __cuda_array_interface__={**gpu.__array_interface__, "owner": gpu},
        )
        array = dlf.as_cupy(source)
        assert array.source.__cuda_array_interface__["data"][0] == gpu.ctypes.data
    """)


@pytest.mark.parametrize("layout", ["values", "values[::-1]", "read_only(values)"])
def test_cupy_gets_the_cuda_array_interface_of_any_layout(layout):
    with_a_stand_in_for_cupy(f"""
        def read_only(array):
            array.flags.writeable = False
            return array

        values = np.zeros(3)
        source = types.SimpleNamespace(__cuda_array_interface__={layout}.__array_interface__)
        array = dlf.as_cupy(source)
        assert array.how == "asarray"
        found, given = (one.__cuda_array_interface__ for one in (array.source, source))
        assert (found["data"], found["shape"]) == (given["data"], given["shape"])
        assert found["strides"] == given["strides"]
    """)


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "`as_cupy` gives a CuPy array",
    "`as_numpy` and `as_cupy` may accept more protocols, such as DLPack",
)
@pytest.mark.parametrize("code", [2, 10, 13])
def test_memory_of_a_device_comes_by_dlpack(code):
    with_a_stand_in_for_cupy(f"""
        from support.dlpack_structs import DLDevice, Producer

        class OnDevice(Producer):
            def __dlpack_device__(self):
                return ({code}, 0)

        source = OnDevice()
        source.managed.dl_tensor.device = DLDevice({code}, 0)
        array = dlf.as_cupy(source)
        address = array.source.__cuda_array_interface__["data"][0]
        assert (address, source.freed) == (source.managed.dl_tensor.data, 0)
        del array
        assert source.freed == 1
    """)


@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "`as_cupy` gives a CuPy array"
)
@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ("np.zeros(3)", "GTNoSuchBufferError", "as_cupy: expected memory on a GPU"),
        (
            "dlf.zeros(3)",
            "GTNoSuchBufferError",
            "as_cupy: expected a storage with a buffer on a GPU",
        ),
        ("[1]", "TypeError", "array: expected one that speaks"),
    ],
)
def test_host_memory_is_refused_as_gpu_memory(data, error, text):
    with_a_stand_in_for_cupy(f"""
        from dlfield import GTNoSuchBufferError
        try:
            dlf.as_cupy({data})
        except {error} as error:
            assert "{text}" in str(error), error
        else:
            raise SystemExit("not refused")
    """)


def test_without_cupy_the_package_to_install_is_named():
    run_in_subprocess("""
        import sys
        sys.modules["cupy"] = None
        import dlfield as dlf
        try:
            dlf.as_cupy(dlf.zeros(3))
        except ImportError as error:
            assert "pip install cupy" in str(error)
        else:
            raise SystemExit("not refused")
    """)
