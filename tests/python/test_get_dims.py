"""get_dims, as_numpy and as_cupy."""

import dlfield as dlf
import numpy as np
import pytest
from dlpack_structs import READ_ONLY, Producer
from gt_objects import Described, Synchronised
from support import run_in_subprocess, tracked


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


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_an_object_names_its_axes_whatever_is_assumed(make):
    assert dlf.get_dims(make()) == dlf.get_dims(make(), "IJ") == ("K", "I")


def test_names_that_gt4py_does_not_know_are_names_too():
    assert dlf.get_dims(dlf.zeros((2, 3), dims=("lon", "lat"))) == ("lon", "lat")


@pytest.mark.parametrize("make", [lambda: np.zeros((2, 3)), lambda: dlf.zeros((2, 3)), object])
def test_without_names_the_annotation_counts_and_else_nobody_knows(make):
    assert dlf.get_dims(make()) is None
    assert dlf.get_dims(make(), ("J", "0")) == ("J", "0")


def test_an_annotation_of_another_number_of_axes_is_refused():
    with pytest.raises(ValueError, match=r"axes \('I', 'J', 'K'\), got 2 axes"):
        dlf.get_dims(np.zeros((2, 3)), "IJK")


@pytest.mark.parametrize("annotation", [str, [1, 2], {"I", "J"}, {"I": 0, "J": 1}], ids=repr)
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
def test_what_is_no_array_is_not_copied_into_one(data):
    with pytest.raises(TypeError, match="expected an array that speaks"):
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
        from gt_objects import Described
{code}""")


def test_an_array_of_cupy_is_its_own():
    with_a_stand_in_for_cupy("""
        array = ndarray("made", None)
        assert dlf.as_cupy(array) is array
    """)


@pytest.mark.parametrize("key", ["'gpu'", "('gpu', 1)"])
def test_the_buffer_of_a_gpu_is_acquired_and_released_with_the_array(key):
    with_a_stand_in_for_cupy(f"""
        calls, host = [], np.zeros(3)
        told = {{name: lambda name=name: calls.append(name) for name in ("acquire", "release")}}
        source = Described(host, key={key}, lazily=True, **told)
        array = dlf.as_cupy(source)
        assert (array.how, calls) == ("asarray", ["acquire"])
        assert array.source.__cuda_array_interface__["data"] == (host.ctypes.data, False)
        assert array.source.owner is source
        del array
        assert calls == ["acquire", "release"]
    """)


def test_an_object_with_a_cuda_array_interface_goes_to_cupy_as_it_is():
    with_a_stand_in_for_cupy("""
        source = types.SimpleNamespace(__cuda_array_interface__={})
        array = dlf.as_cupy(source)
        assert (array.how, array.source) == ("asarray", source)
    """)


@pytest.mark.parametrize("code", [2, 10, 13])
def test_memory_of_a_device_goes_by_dlpack(code):
    with_a_stand_in_for_cupy(f"""
        source = types.SimpleNamespace(__dlpack_device__=lambda: ({code}, 0))
        assert dlf.as_cupy(source).how == "from_dlpack"
    """)


@pytest.mark.parametrize("data", ["np.zeros(3)", "dlf.zeros(3)", "[1]"])
def test_host_memory_is_no_memory_of_a_gpu(data):
    with_a_stand_in_for_cupy(f"""
        try:
            dlf.as_cupy({data})
        except dlf.GTNoSuchBufferError as error:
            assert "expected memory on a GPU" in str(error)
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
