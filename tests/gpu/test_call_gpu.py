"""Bound stencils that compute on a GPU, and stencils of the host with arrays of a GPU."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, current, device_view, new_stream, write_late
from support.cuda.devices import OnDevice as Foreign
from support.cuda.driver import call, stats
from support.cuda.kernel_calls import launch
from support.cuda.kinds import every_device, two_devices
from support.errors import refused
from support.stencils.stand_ins import SHAPE, StandIn, field

pytestmark = pytest.mark.filterwarnings(
    "ignore::dlfield.DeviceCopyWarning", "ignore::dlfield.MemoryCopyWarning"
)

VALUES = np.arange(60.0).reshape(SHAPE)
FIELDS = {"inp": field("READ"), "out": field("WRITE")}


class GpuStencil(StandIn):
    """Copies `inp` to `out` on its GPU, in the legacy default stream, and does not wait for it."""

    device = "gpu"
    interfaces = None

    def run(self, *, _domain_, _origin_, exec_info, inp, out):
        self.interfaces = {
            "inp": inp.__cuda_array_interface__,
            "out": out.__cuda_array_interface__,
        }
        source, target = self.interfaces.values()
        walks = [(n, s, t) for n, s, t in zip(inp.shape, steps(source), steps(target), strict=True)]
        launch("copy", 8, walks, source=source["data"][0], target=target["data"][0])


def steps(interface):
    """Return the strides in bytes, in C order where the interface has none."""
    return interface["strides"] or np.empty(interface["shape"], interface["typestr"]).strides


def copying(number=None, **options):
    """Return a stencil of a GPU, and what is bound to it."""
    stencil = GpuStencil(**FIELDS)
    if number is not None:
        stencil.device = ("gpu", number)
    return stencil, dlf.bind(stencil, **options)


def host_stencil(**options):
    """Return a stencil of the host that copies, bound."""

    def body(inp, out):
        np.asarray(out)[...] = np.asarray(inp)

    return dlf.bind(StandIn(body=body, **FIELDS), **options)


def pair(values, newer):
    """Return a pair of buffers of which one side alone has the values."""
    storage = dlf.zeros(values.shape, device="gpu")
    storage.synchronize()
    if newer == "host":
        with storage.host() as array:
            array[...] = values
    else:
        storage[...] = Foreign(values)
    return storage


ON_GPU = {
    "GPUStorage": lambda values: dlf.storage(values, device="gpu", managed=None),
    "pair whose host is newer": lambda values: pair(values, "host"),
    "pair whose device is newer": lambda values: pair(values, "device"),
    "managed storage": lambda values: dlf.storage(values, device="gpu", managed="cuda"),
    "foreign array": Foreign,
    "in another order": lambda values: dlf.storage(
        values, device="gpu", managed=None, layout=(2, 1, 0)
    ),
}


def values_of(array):
    """Return the values of any array, wherever they are."""
    return dlf.storage(array, device="cpu").to_numpy()


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "an object with only a CUDA array interface counts as GPU memory",
)
@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "without the interface, a CUDA array interface counts as GPU memory",
    "a stencil uses the buffer on the device where it computes",
)
@pytest.mark.source(
    "Interface note",
    "Storages without the interface",
    "without the interface, `__cuda_array_interface__` is read, depending on the backend",
)
@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "any interface that `cupy.asarray` accepts can be used on a GPU",
    "`__cuda_array_interface__` is accepted",
)
@pytest.mark.parametrize("make_out", ON_GPU.values(), ids=ON_GPU)
@pytest.mark.parametrize("make_inp", ON_GPU.values(), ids=ON_GPU)
def test_arrays_of_the_gpu_are_computed_with_where_they_are(make_inp, make_out):
    stencil, run = copying()
    inp, out = make_inp(VALUES), make_out(np.zeros(SHAPE))
    run(inp, out)
    assert np.array_equal(values_of(out), VALUES)
    for name, array in (("inp", inp), ("out", out)):
        assert stencil.interfaces[name]["data"][0] == array.__cuda_array_interface__["data"][0]


def test_the_output_of_a_pair_is_noted_as_modified_on_the_device():
    _, run = copying()
    out = pair(np.zeros(SHAPE), "host")
    run(ON_GPU["GPUStorage"](VALUES), out)
    assert out.sync_state.state == dlf.SyncState.SYNC_DEVICE_DIRTY
    assert np.array_equal(out.to_numpy(), VALUES)


def test_an_input_is_not_noted_as_modified():
    _, run = copying()
    inp = pair(VALUES, "host")
    run(inp, ON_GPU["GPUStorage"](VALUES))
    assert inp.sync_state.state == dlf.SyncState.SYNC_CLEAN


@pytest.mark.stand_in
def test_nothing_is_copied_for_arrays_of_the_gpu():
    _, run = copying()
    inp, out = (ON_GPU["GPUStorage"](values) for values in (VALUES, np.zeros(SHAPE)))
    before = stats().copies
    run(inp, out)
    assert stats().copies == before


def test_work_that_a_producer_has_in_flight_comes_before_the_stencil():
    on = new_stream()
    inp = Foreign(np.zeros(SHAPE), stream=on)
    _, run = copying()
    kept = write_late(inp.address, VALUES, on)
    out = ON_GPU["GPUStorage"](np.zeros(SHAPE))
    run(inp, out)
    assert np.array_equal(values_of(out), VALUES)
    del kept


def test_the_work_of_a_stencil_that_does_not_wait_is_done_after_the_call():
    _, run = copying()
    out = np.zeros(SHAPE)
    storage = dlf.storage(out, device="gpu", managed="cuda")
    view = storage.to_numpy()
    run(ON_GPU["GPUStorage"](VALUES), storage)
    assert np.array_equal(view, VALUES)


HOST = {
    "NumPy": np.array,
    "CPUStorage": dlf.storage,
    "Fortran order": np.asfortranarray,
    "reversed": lambda values: np.array(values[::-1, :, ::-1])[::-1, :, ::-1],
}


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "a host buffer is copied to the GPU that computes, and results are copied back",
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied: to the GPU that computes, and results back",
)
@pytest.mark.parametrize("make_out", HOST.values(), ids=HOST)
@pytest.mark.parametrize("make_inp", HOST.values(), ids=HOST)
def test_arrays_of_the_host_are_copied_to_the_gpu_and_back(make_inp, make_out):
    _, run = copying(on_mismatch="copy")
    out = make_out(np.zeros(SHAPE))
    run(make_inp(VALUES), out)
    assert np.array_equal(np.asarray(out), VALUES)


@pytest.mark.source(
    "GDP-3", "Data Interface", "a buffer on the other side is copied without being asked for"
)
@pytest.mark.source(
    "GDP-3 draft", "Annotation of Stencils", "a buffer that is only on the other device is an error"
)
def test_a_stencil_of_a_gpu_refuses_host_arrays_without_leave():
    _, run = copying()
    with refused(BufferError, "on_mismatch", "'inp'"):
        run(VALUES.copy(), np.zeros(SHAPE))


@pytest.mark.stand_in
def test_nothing_is_allocated_or_copied_for_a_call_that_is_refused():
    _, run = copying(on_mismatch="copy")
    before = stats()
    with refused(ValueError, "dtype"):
        run(VALUES.copy(), np.zeros(SHAPE, np.float32))
    after = stats()
    assert (after.allocs, after.copies) == (before.allocs, before.copies)


def test_an_output_that_is_the_host_side_of_a_pair_is_newer_there():
    _, run = copying(on_mismatch="copy")
    out = pair(np.zeros(SHAPE), "device")
    run(ON_GPU["GPUStorage"](VALUES), dlf.as_storage(out, device="cpu"))
    assert out.sync_state.state == dlf.SyncState.SYNC_HOST_DIRTY
    assert np.array_equal(out.to_numpy(), VALUES)


def test_an_input_that_is_the_host_side_of_a_pair_is_up_to_date():
    _, run = copying(on_mismatch="copy")
    inp, out = pair(np.zeros(SHAPE), "host"), np.zeros(SHAPE)
    side = dlf.as_storage(inp, device="cpu")
    inp[...] = Foreign(VALUES)
    run(side, out)
    assert np.array_equal(out, VALUES)


def test_a_stencil_of_the_host_writes_the_side_of_a_pair_that_is_on_a_gpu():
    run, out = host_stencil(on_mismatch="copy"), pair(np.zeros(SHAPE), "host")
    run(VALUES.copy(), dlf.as_storage(out, managed=None))
    assert out.sync_state.state == dlf.SyncState.SYNC_DEVICE_DIRTY
    assert np.array_equal(out.to_numpy(), VALUES)


def test_a_stencil_of_the_host_reads_the_side_of_a_pair_that_is_on_a_gpu_up_to_date():
    run, inp, out = host_stencil(on_mismatch="copy"), pair(-VALUES, "device"), np.zeros(SHAPE)
    side = dlf.as_storage(inp, managed=None)
    with inp.host() as array:
        array[...] = VALUES
    run(side, out)
    assert np.array_equal(out, VALUES)


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "a GPU buffer is copied to the host that computes",
    "results for a GPU buffer are copied back to the GPU",
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied: from a GPU to the host that computes",
    "a buffer that does not fit may be copied: results back to a GPU, to debug on the host",
)
@pytest.mark.parametrize("make", ON_GPU.values(), ids=ON_GPU)
@pytest.mark.parametrize("side", ["inp", "out"])
def test_a_stencil_of_the_host_takes_arrays_of_a_gpu_by_copies(make, side):
    run = host_stencil(on_mismatch="copy")
    inp = make(VALUES) if side == "inp" else VALUES.copy()
    out = make(np.zeros(SHAPE)) if side == "out" else np.zeros(SHAPE)
    run(inp, out)
    assert np.array_equal(values_of(out), VALUES)


@pytest.mark.source(
    "GDP-3", "Data Interface", "a buffer on the other side is copied without being asked for"
)
@pytest.mark.source(
    "GDP-3 draft", "Annotation of Stencils", "a buffer that is only on the other device is an error"
)
@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "a buffer that does not fit is an error: device"
)
@pytest.mark.parametrize("name", ["GPUStorage", "foreign array"])
def test_a_stencil_of_the_host_refuses_arrays_of_a_gpu_without_leave(name):
    with refused(dlf.DeviceUnavailable, "'inp'", "on_mismatch"):
        host_stencil()(ON_GPU[name](VALUES), np.zeros(SHAPE))


@pytest.mark.source(
    "GDP-3", "Data Interface", "a stencil uses the buffer on the device where it computes"
)
@pytest.mark.parametrize("name", ["pair whose device is newer", "managed storage"])
def test_a_stencil_of_the_host_computes_in_the_buffer_of_the_host_where_there_is_one(name):
    inp, out = ON_GPU[name](VALUES), ON_GPU[name](np.zeros(SHAPE))
    host_stencil()(inp, out)
    assert np.array_equal(out.to_numpy(), VALUES)
    assert np.array_equal(device_view(out), VALUES)


@two_devices
def test_memory_of_two_gpus_in_one_call_is_refused():
    _, run = copying(0)
    other = dlf.storage(VALUES, device=("gpu", 1), managed=None)
    with refused(BufferError, "'out'", "cuda:1"):
        run(ON_GPU["GPUStorage"](VALUES), other)


class SecondGpu(StandIn):
    """Copies arrays in C order on GPU 1, in its legacy default stream, and does not wait for it."""

    device = ("gpu", 1)

    def run(self, *, _domain_, _origin_, exec_info, inp, out):
        source, target = (one.__cuda_array_interface__["data"][0] for one in (inp, out))
        with current(1):
            call("cuMemcpyDtoDAsync_v2", target, source, VALUES.nbytes, LEGACY)


@two_devices
def test_a_stencil_of_the_second_gpu_computes_there():
    out = dlf.zeros(SHAPE, device=("gpu", 1))
    dlf.bind(SecondGpu(**FIELDS), on_mismatch="copy")(VALUES.copy(), out)
    assert out.device_id == 1
    assert np.array_equal(out.to_numpy(), VALUES)


def test_outputs_are_made_on_the_gpu():
    _, run = copying(on_mismatch="copy")
    out = run.functional(inp=ON_GPU["GPUStorage"](VALUES), like="storage")
    assert isinstance(out, dlf.SoftwareManagedGPUStorage)
    assert np.array_equal(out.to_numpy(), VALUES)


def test_a_made_output_is_given_back_as_an_array_of_the_host_where_that_is_asked_for():
    _, run = copying(on_mismatch="copy")
    out = run.functional(inp=VALUES.copy(), like="numpy")
    assert type(out) is np.ndarray
    assert np.array_equal(out, VALUES)


def test_explain_says_which_memory_is_copied():
    _, run = copying(on_mismatch="copy")
    text = str(dlf.explain(run, inp=VALUES, out=ON_GPU["GPUStorage"](VALUES)))
    assert "expected memory of a GPU, got cpu" in text


@every_device
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_functional_makes_its_outputs_on_the_gpu_of_the_inputs(managed, device):
    _, run = copying()
    made = run.functional(dlf.storage(VALUES, device=("gpu", device), managed=managed))
    assert made.device_id == device
    assert np.array_equal(values_of(made), VALUES)


def test_a_stencil_with_the_face_of_gt4py_is_run_where_times_are_asked_for():
    stencil, run = copying()
    inp, out = (ON_GPU["GPUStorage"](one) for one in (VALUES, np.zeros(SHAPE)))
    stencil.times = None

    def noting(*, exec_info, **arguments):
        stencil.times = exec_info
        GpuStencil.run(stencil, exec_info=exec_info, **arguments)

    stencil.run, times = noting, {}
    run(inp, out, exec_info=times)
    assert stencil.times is times
    assert np.array_equal(values_of(out), VALUES)


@pytest.mark.parametrize("backend", ["mine:gpu", "gt:gpu"])
def test_a_stencil_that_says_it_computes_on_the_host_does(backend):
    stencil, out = StandIn(backend=backend, **FIELDS), np.zeros(SHAPE)
    stencil.device = None
    dlf.bind(stencil)(VALUES, out)
    assert type(stencil.seen["inp"]) is np.ndarray


def test_a_stencil_that_says_nothing_computes_where_the_backend_of_gt4py_does():
    run = dlf.bind(StandIn(backend="gt:gpu", **FIELDS))
    with refused(BufferError, "expected memory of GPU 0, got cpu"):
        run(VALUES, np.zeros(SHAPE))


@pytest.mark.parametrize("given", [{}, {"spare": None}, {"spare": np.zeros(SHAPE)}], ids=str)
def test_a_field_that_is_not_used_and_not_on_the_gpu_is_an_array_of_one_point_there(given):
    stencil = StandIn(backend="gt:gpu", **FIELDS, spare=field("NONE", "float32"))
    fields = {name: dlf.zeros(SHAPE, device="gpu", managed=None) for name in FIELDS}
    dlf.bind(stencil)(**fields, **given)
    interface = stencil.seen["spare"].__cuda_array_interface__
    assert (interface["shape"], interface["typestr"]) == ((1, 1, 1), "<f4")
