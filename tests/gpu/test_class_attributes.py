"""Names, attributes and doors of storages on a GPU."""

import copy
import json
import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import pair, values
from support.cuda.kinds import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    KINDS,
    every_class,
    every_device,
    every_kind,
    every_state,
    host_backed,
    two_devices,
)
from support.optional import library


@every_class
def test_every_storage_is_a_storage_and_of_one_kind(name, options):
    made = dlf.ones(3, **options)
    kinds = [dlf.CPUStorage, *CLASSES.values()]
    assert isinstance(made, dlf.Storage)
    assert [kind.__name__ for kind in kinds if isinstance(made, kind)] == [name]


def test_the_names_that_gdp_3_uses_are_the_same_classes():
    assert dlf.GT4PySyncedGPUStorage is dlf.SoftwareManagedGPUStorage
    assert dlf.CUDASyncedGPUStorage is dlf.CUDAManagedGPUStorage
    assert dlf.CudaManagedGPUStorage is dlf.CUDAManagedGPUStorage


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`device` names the device of a device buffer"
)
@every_kind
def test_a_storage_on_a_gpu_says_what_it_is(managed):
    made = dlf.zeros(
        (6, 7),
        "float32",
        dims="IJ",
        halo=((1, 0), 2),
        layout=(1, 0),
        device="gpu",
        managed=managed,
        alignment_size=128,
    )
    assert (made.device, made.device_id) == ("gpu", 0)
    assert (made.shape, made.dtype, made.ndim, made.size) == ((6, 7), np.float32, 2, 42)
    assert (made.nbytes, made.itemsize) == (168, 4)  # without padding
    assert made.strides == (4, 128)
    assert (made.dims, made.halo, made.layout) == (("I", "J"), ((1, 0), (2, 2)), (1, 0))
    assert (made.aligned_index, made.alignment_size) == ((1, 2), 128)
    assert (made.readonly, made.door, len(made)) == (False, None, 6)


def test_a_storage_on_the_host_has_no_device():
    made = dlf.zeros(3)
    assert (made.device, made.device_id, made.device_data) == (None, None, None)


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`device` names the device of a device buffer"
)
@two_devices
@every_kind
def test_the_number_of_the_gpu_is_kept_by_views(managed):
    made = dlf.zeros((3, 4), device=("gpu", 1), managed=managed, halo=(1, 1))
    for view in (made[1:], made.T, made.domain_view, made[0], made[..., None]):
        assert (view.device, view.device_id, type(view)) == ("gpu", 1, type(made))


@every_kind
def test_the_device_is_a_text_like_any_other(managed):
    device = dlf.zeros(3, device="gpu", managed=managed).device
    assert isinstance(device, str)
    assert ({"gpu": 1}[device], json.dumps(device), f"{device}", repr(device)) == (
        1,
        '"gpu"',
        "gpu",
        "'gpu'",
    )
    for copied in (pickle.loads(pickle.dumps(device)), copy.deepcopy(device), copy.copy(device)):
        assert type(copied) is str
        assert copied == "gpu"


@every_kind
def test_the_device_of_a_storage_is_an_option_for_another(managed):
    made = dlf.zeros(3, device="gpu", managed=managed)
    assert dlf.ones(2, device=made.device).device == "gpu"


def first_line(storage):
    return repr(storage).splitlines()[0]


def test_the_first_line_of_the_repr_says_class_facts_and_device():
    facts = "shape=(2, 3), dtype=float32, dims=('I', 'J'), halo=((1, 1), (0, 0)), layout=(1, 0)"
    options = {"dims": "IJ", "halo": (1, 0), "layout": (1, 0), "device": "gpu"}
    ends = {None: "device=cuda:0", "gt4py": "device=cuda:0, device modified"}
    ends["cuda"] = "device=cuda_managed:0"
    for managed, end in ends.items():
        made = dlf.ones((2, 3), "float32", managed=managed, **options)
        assert first_line(made) == f"<{CLASSES[managed].__name__} {facts}, {end}>"


def test_the_first_line_of_the_repr_says_which_side_is_newer():
    ends = {CLEAN: "in sync", HOST_NEWER: "host modified", DEVICE_NEWER: "device modified"}
    for state, end in ends.items():
        assert first_line(pair([1.0], state)).endswith(f", device=cuda:0, {end}>")


@two_devices
@every_kind
def test_the_first_line_of_the_repr_numbers_the_gpu(managed):
    assert ":1" in first_line(dlf.ones(2, device=("gpu", 1), managed=managed))


@every_kind
@pytest.mark.parametrize("dtype", ["float64", "bool", "complex64", "int8"])
def test_the_repr_shows_the_values(dtype, managed):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    made = dlf.storage(array, device="gpu", managed=managed)
    assert repr(made).partition("\n")[2] == np.array2string(array)
    assert repr(made[::-1, 1]).partition("\n")[2] == np.array2string(array[::-1, 1])
    assert type(made).__name__ in made._repr_html_()


@every_state
def test_the_repr_of_a_pair_shows_what_is_newer(state):
    assert repr(pair([1.5, 2.5], state)).splitlines()[1] == "[1.5 2.5]"


#: Which class has which attribute; `device_data` needs CuPy.
DOORS = {
    "__dlpack__": KINDS,
    "__dlpack_device__": KINDS,
    "__dlpack_c_exchange_api__": KINDS,
    "__gt_data_interface__": KINDS,
    "__array__": KINDS,  # GPUStorage's raises, or NumPy would make an array of one object
    "__array_interface__": KINDS.keys() - {"GPUStorage"},
    "__cuda_array_interface__": KINDS.keys() - {"CPUStorage"},
    "ndarray": {"CPUStorage"},
    "sync_state": {"SoftwareManagedGPUStorage"},
    "data": KINDS,
    "to_numpy": KINDS,
    "to_cupy": KINDS,
    "__array_struct__": (),
    "__gt_interface__": (),
    "__hip_array_interface__": (),
    "__gt_dims__": (),
    "__gt_origin__": (),
    "default_origin": (),
}


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`__cuda_array_interface__` exists if there is a device buffer",
    "`sync_state` is absent from storages with one buffer",
)
@pytest.mark.source(
    "GDP-3 draft", "Methods", "`__cuda_array_interface__` exists if there is a device buffer"
)
@every_class
@pytest.mark.parametrize("attribute", DOORS)
def test_a_gpu_storage_has_exactly_the_attributes_that_it_can_serve(attribute, name, options):
    made = dlf.zeros((3, 4), **options)
    for storage in (made, made[1:, ::-1], made.T, dlf.zeros((0, 3), **options)):
        assert hasattr(storage, attribute) is (name in DOORS[attribute])


@every_kind
def test_names_and_origin_for_gt4py_are_there_where_they_are_known(managed):
    options = {"device": "gpu", "managed": managed}
    made = dlf.zeros((3, 4), dims="IK", default_origin=(1, 2), **options)
    assert (made.__gt_dims__, made.__gt_origin__) == (("I", "K"), (1, 2))
    assert not hasattr(dlf.zeros((3, 4), dims=("lon", "lat"), **options), "__gt_dims__")


@every_kind
def test_interfaces_that_cannot_name_a_type_are_absent(managed):
    library("ml_dtypes")
    made = dlf.ones(3, "bfloat16", device="gpu", managed=managed)
    for attribute in ("__array_interface__", "__cuda_array_interface__", "__gt_data_interface__"):
        assert not hasattr(made, attribute)
    assert hasattr(made, "__dlpack__")


@pytest.mark.source("GDP-3", "Attributes and Properties", "`data` is None without a host buffer")
@pytest.mark.source("GDP-3", "Storage Types", "`GPUStorage` has device memory and no host buffer")
@pytest.mark.source(
    "GDP-3 draft", "Storage Types", "`GPUStorage` has device memory and no host buffer"
)
@every_class
def test_memory_of_the_host_is_a_buffer_and_that_of_a_gpu_is_none(name, options):
    made = dlf.ones((2, 3), **options)
    if name == "GPUStorage":
        assert made.data is None
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(made)
    else:
        assert type(made.data) is memoryview
        assert memoryview(made).tolist() == [[1.0] * 3] * 2


LACKING = {
    "to_numpy": lambda storage: storage.to_numpy(),
    "to_numpy()": lambda storage: storage.host().__enter__(),
    "device='cpu'": lambda storage: dlf.as_storage(storage, device="cpu"),
}


@pytest.mark.source(
    "GDP-3", "Methods", "`to_numpy()` raises `GTNoSuchBufferError` without a host buffer"
)
@pytest.mark.parametrize("use", LACKING.values(), ids=LACKING)
def test_what_needs_a_buffer_on_the_host_says_what_to_do_without(use):
    made = dlf.ones(3, device="gpu", managed=None)
    with pytest.raises(dlf.GTNoSuchBufferError, match=r"buffer on the host.*a GPU alone; copy it"):
        use(made)
    assert values(made).tolist() == [1, 1, 1]


@pytest.mark.source(
    "GDP-3", "Methods", "`__array__` is a CuPy array if there is only a device buffer"
)
@pytest.mark.parametrize("use", [np.asarray, np.array, lambda storage: storage.__array__()])
def test_the_error_for_numpy_is_not_taken_for_a_missing_attribute(use):
    made = dlf.ones(3, device="gpu", managed=None)
    with pytest.raises(BufferError, match=r"buffer on the host.*on a GPU alone; use ") as caught:
        use(made)
    assert not isinstance(caught.value, AttributeError)


def test_what_needs_a_buffer_on_a_gpu_says_what_to_do_without():
    text = "to_cupy: expected a storage with a buffer on a GPU.*host memory; make it on the GPU"
    with pytest.raises(dlf.GTNoSuchBufferError, match=text):
        dlf.ones(3).to_cupy()


@host_backed
def test_numpy_takes_what_has_a_buffer_on_the_host_without_a_copy(managed):
    made = dlf.ones((2, 3), device="gpu", managed=managed)
    for array in (np.asarray(made), np.from_dlpack(made.to_numpy()), made.to_numpy()):
        assert np.shares_memory(array, made.to_numpy())
        assert array.flags.writeable
    assert np.asarray(made, dtype="int8").tolist() == [[1] * 3] * 2
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(made, dtype="int8", copy=False)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (CLEAN, "host ●, GPU ● equal"),
        (HOST_NEWER, "host ● newer, GPU ○"),
        (DEVICE_NEWER, "host ○, GPU ● newer"),
    ],
)
def test_the_drawing_of_a_pair_tells_which_buffer_is_newer(state, told):
    assert told in pair(np.zeros((3, 4)), state).plot_layout().svg


@every_device
@every_kind
def test_a_notebook_is_told_where_the_memory_is(managed, device):
    made = dlf.zeros((3, 4), device=("gpu", device), managed=managed)
    place = {
        "gt4py": f"host memory and memory of GPU {device}",
        "cuda": f"memory that CUDA manages for GPU {device}",
        None: f"memory of GPU {device}",
    }[managed]
    assert f">{place}</text>" in made.plot_layout().svg
    assert f"memory</th><td style='text-align:left'>{place}</td>" in made._repr_html_()
    assert ("newer buffer" in made._repr_html_()) == (managed == "gt4py")


@pytest.mark.source("GDP-3", "Data Interface", "storages have no `release` of their own")
@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`release` is not in `__gt_data_interface__` of a storage"
)
@every_kind
def test_no_buffer_of_a_storage_needs_a_release(managed):
    interface = dlf.ones((2, 3), device="gpu", managed=managed).__gt_data_interface__
    assert "gpu" in interface
    assert not any("release" in described for described in interface.values())
