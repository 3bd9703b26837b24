"""Impossible requests to a GPU are refused with a reason, and leave nothing behind."""

import gc

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations

from support.cuda.devices import OnDevice, device_view
from support.cuda.order import device_count
from support.cuda.stand_in import run
from support.dlpack_structs import DLDevice, Producer

COUNT = device_count()
KINDS = [None, "gt4py", "cuda"]
MAKERS = {
    "zeros": lambda **options: dlf.zeros((2, 3), **options),
    "empty": lambda **options: dlf.empty((2, 3), **options),
    "empty of nothing": lambda **options: dlf.empty((2, 0), **options),
    "full_like": lambda **options: dlf.full_like(np.ones((2, 3)), 2.0, **options),
    "storage": lambda **options: dlf.storage(np.ones((2, 3)), **options),
    "storage of a shape": lambda **options: dlf.storage(shape=(2, 3), **options),
    "storage of a type": lambda **options: dlf.storage([1, 2], dtype="f4", **options),
    "as_storage": lambda **options: dlf.as_storage(np.ones((2, 3)), **options),
    "GPUStorage": lambda **options: dlf.GPUStorage(np.ones((2, 3)), **options),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture(autouse=True)
def no_block_left():
    gc.collect()
    before = live_allocations()
    yield
    gc.collect()
    assert live_allocations() == before


@every_maker
@pytest.mark.parametrize("number", [COUNT, 99, 2**31 - 1])
def test_a_gpu_that_does_not_exist_is_unavailable(make, number):
    with pytest.raises(dlf.DeviceUnavailable, match=rf"device: .*got {number}\b") as caught:
        make(device=("gpu", number))
    assert "CUDA_VISIBLE_DEVICES" in str(caught.value)


NO_DEVICES = [
    ("gpu", -1),
    ("gpu", 2**31),
    ("gpu", 2**70),
    ("gpu", 0.0),
    ("gpu", "0"),
    ("gpu", None),
    ("gpu",),
    ("gpu", 0, 0),
    ("cuda", 0),
    ("cpu", 0),
    "cuda",
    "cuda:0",
    "GPU",
    b"gpu",
    0,
    np.int64(0),
]


@every_maker
@pytest.mark.parametrize("device", NO_DEVICES, ids=repr)
def test_what_names_no_device_is_a_value_error(make, device):
    with pytest.raises(ValueError, match=r"(device: expected None, 'cpu', 'gpu'|expected a GPU)"):
        make(device=device)


def test_a_bool_is_not_accepted_as_the_number_of_a_gpu():
    with pytest.raises(ValueError, match="device: expected"):
        dlf.zeros(3, device=("gpu", False))


@pytest.mark.parametrize(
    "managed", ["nobody", "GT4PY", "cuda ", b"cuda", True, 0, ["cuda"]], ids=repr
)
@pytest.mark.parametrize("device", [None, "gpu"])
def test_managed_is_one_of_three_values(managed, device):
    with pytest.raises(ValueError, match="managed: expected None, 'gt4py' or 'cuda', got"):
        dlf.zeros(3, device=device, managed=managed)


@pytest.mark.stand_in
def test_a_device_without_managed_memory_says_so_and_what_helps():
    run(
        """
        start()
        import dlfield as dlf
        from dlfield._core import live_allocations
        host = np.ones(3)
        for make in (
            lambda: dlf.zeros(3, device=("gpu", 1), managed="cuda"),
            lambda: dlf.storage(host, device=("gpu", 1), managed="cuda"),
            lambda: dlf.CUDAManagedGPUStorage(host, device=("gpu", 1)),
        ):
            try:
                make()
            except dlf.DeviceUnavailable as error:
                assert "managed" in str(error) and "GPU 1" in str(error), error
                assert "'gt4py'" in str(error), error
            else:
                raise AssertionError("it has managed memory")
        assert (stats().live_bytes, live_allocations()) == (0, 0)
        assert dlf.zeros(3, device=("gpu", 1)).to_numpy().tolist() == [0] * 3
        """,
        DLFIELD_FAKE_CUDA_NO_MANAGED="1",
        DLFIELD_FAKE_CUDA_DEVICES="2",
    )


DOORS = {
    "to_numpy": lambda one: one.to_numpy(),
    "np.asarray": np.asarray,
    "np.array": np.array,
    "as_numpy": dlf.as_numpy,
    "as_storage on the host": lambda one: dlf.as_storage(one, device=None),
    "storage without a copy": lambda one: dlf.storage(one, copy=False, device="cpu"),
    "CPUStorage without a copy": lambda one: dlf.CPUStorage(one, copy=False),
    "host": lambda one: one.host().__enter__(),
}


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("view", [lambda one: one, lambda one: one[1:].T], ids=["all", "a view"])
def test_the_host_buffer_of_a_gpu_alone_is_missing_and_the_error_says_what_helps(ask, view):
    alone = view(dlf.ones((3, 4), device="gpu", managed=None))
    with pytest.raises(BufferError, match="expected a storage with a buffer on the host") as caught:
        ask(alone)
    # NumPy may be asked by a property, which takes an AttributeError for its own absence.
    of_numpy = ask in (np.asarray, np.array)
    way_out = "storage(..., device='cpu')" if of_numpy else "; copy it to the host, or"
    assert way_out in str(caught.value)
    assert isinstance(caught.value, dlf.GTNoSuchBufferError) is not of_numpy


@pytest.mark.parametrize("ask", [memoryview, np.frombuffer])
def test_a_gpu_alone_has_no_buffer_of_python(ask):
    alone = dlf.ones((3, 4), device="gpu", managed=None)
    with pytest.raises((TypeError, BufferError)):
        ask(alone)


@pytest.mark.parametrize("name", ["__array_interface__", "ndarray", "sync_state"])
def test_what_needs_the_host_is_absent_on_a_gpu_alone(name):
    assert not hasattr(dlf.ones(3, device="gpu", managed=None), name)
    assert dlf.ones(3, device="gpu", managed=None).data is None


def test_a_copy_on_the_host_is_the_way_out_without_a_host_buffer():
    alone = dlf.full((3, 4), 2.5, device="gpu", managed=None)
    for copied in (dlf.storage(alone, device="cpu"), dlf.CPUStorage(alone)):
        assert (copied.to_numpy() == 2.5).all()


@pytest.mark.parametrize("managed", KINDS)
@pytest.mark.parametrize("wanted", [(2, 1), (2, 99), (2, -1), (10, 0), (13, 0), (3, 0), (99, 0)])
def test_a_capsule_for_a_device_that_is_not_the_storages_is_a_buffer_error(wanted, managed):
    storage = dlf.ones((3, 4), device="gpu", managed=managed)
    with pytest.raises(BufferError, match="dl_device: expected"):
        storage.__dlpack__(max_version=(1, 0), dl_device=wanted)


def test_a_capsule_for_the_host_without_a_copy_is_refused_by_a_gpu_alone():
    alone = dlf.ones((3, 4), device="gpu", managed=None)
    with pytest.raises(BufferError, match="copy=None or True"):
        alone.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)


class OnRocm(Producer):
    """A producer whose memory cannot be reached from here."""

    def __init__(self, shape):
        super().__init__(shape)
        self.managed.dl_tensor.device = DLDevice(10, 0)

    def __dlpack_device__(self):
        return (10, 0)


UNREACHED = {
    "storage on the host": lambda data: dlf.storage(data, device=None),
    "storage on a GPU": lambda data: dlf.storage(data, device="gpu"),
    "copy": lambda data: dlf.as_storage(data, managed=None).copy(),
    "into a pair": lambda data: dlf.zeros((3, 4), device="gpu").__setitem__(..., data),
    "into a GPU": lambda data: dlf.zeros((3, 4), device="gpu", managed=None).__setitem__(..., data),
    "into the host": lambda data: dlf.zeros((3, 4)).__setitem__(..., data),
    "an assignment": lambda data: dlf.as_storage(data, managed=None).__setitem__(..., 1.0),
    "an element": lambda data: dlf.as_storage(data, managed=None)[0, 0],
}


@pytest.mark.parametrize("use", UNREACHED.values(), ids=UNREACHED)
def test_values_on_a_device_of_another_vendor_cannot_be_read(use):
    with pytest.raises((BufferError, dlf.DeviceUnavailable), match="rocm:0"):
        use(OnRocm((3, 4)))


def test_a_storage_on_a_device_of_another_make_can_be_shown():
    assert "rocm:0" in repr(dlf.as_storage(OnRocm((3, 4)), managed=None))


def test_a_pair_with_a_device_of_another_make_is_refused():
    with pytest.raises((BufferError, dlf.DeviceUnavailable), match="rocm:0"):
        dlf.as_storage(OnRocm((3, 4)), managed="gt4py")


@pytest.mark.parametrize("managed", KINDS)
def test_values_of_another_shape_are_refused_and_nothing_is_written(managed):
    field = dlf.full((3, 4), 7.0, device="gpu", managed=managed)
    for value in (np.zeros((4, 3)), np.zeros(3), OnDevice(np.zeros((2, 4))), [1, 2, 3]):
        with pytest.raises(ValueError, match="broadcast"):
            field[...] = value
    with pytest.raises(IndexError):
        field[5] = 1
    assert (device_view(field) == 7).all()


@pytest.mark.parametrize("managed", KINDS)
def test_an_object_that_is_not_an_array_is_refused_and_nothing_is_written(managed):
    field = dlf.full((3, 4), 7.0, device="gpu", managed=managed)
    for value in ("text", object(), {1: 2}):
        with pytest.raises((TypeError, ValueError)):
            field[...] = value
    assert (device_view(field) == 7).all()


@pytest.mark.skipif(COUNT < 2, reason="needs two GPUs")
def test_memory_is_not_taken_for_that_of_another_gpu():
    there = OnDevice(np.ones(3), device=1)
    for options in ({"managed": None}, {"managed": "gt4py"}, {}):
        with pytest.raises(dlf.DeviceUnavailable, match="GPU 0, got memory on GPU 1; make a copy"):
            dlf.as_storage(there, device=("gpu", 0), **options)
    assert dlf.storage(there, device=("gpu", 0)).device_id == 0
