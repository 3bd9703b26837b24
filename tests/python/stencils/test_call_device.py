"""Calls of a stencil that computes on a GPU, and of one of the host with arrays of a device.

No GPU is needed: the memory of the devices here is memory of the host that claims to be elsewhere.
"""

import gc

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations
from dlfield.annotations import Access, Field

from support.errors import refused
from support.no_driver import no_driver, without_driver
from support.stencils.stand_ins import (
    SHAPE,
    FromDevice,
    GpuStandIn,
    OnDevice,
    StagingStandIn,
    StaysOnDevice,
    Told,
    Waiting,
    bound,
    column,
    field,
    misaligned,
    values_on,
)

pytestmark = [
    without_driver,  # which would find out that the memory is of the host
    pytest.mark.filterwarnings(
        "ignore::dlfield.DeviceCopyWarning", "ignore::dlfield.MemoryCopyWarning"
    ),
]

VALUES = np.arange(60.0).reshape(SHAPE)
FIELDS = {"inp": field("READ"), "out": field("WRITE")}


def copy(inp, out):
    values_on(out)[...] = values_on(inp)


def staging(device="gpu", log=(), body=copy):
    number = device[1] if isinstance(device, tuple) else 0
    stencil = StagingStandIn(log, body=body, number=number, **FIELDS)
    stencil.device = device
    return stencil, dlf.bind(stencil, on_mismatch="copy")


def gpu(device="gpu", log=(), body=copy, **fields):
    stencil = GpuStandIn(log, body=body, **(fields or FIELDS))
    stencil.device = device
    return stencil, dlf.bind(stencil)


def interface_of(stencil, name):
    return stencil.seen[name].__cuda_array_interface__


class Shows:
    """Shows memory by device."""

    def __init__(self, devices):
        self.__gt_data_interface__ = devices


@pytest.mark.source("GDP-3", "Data Interface", 'the key "gpu" stands for memory of a GPU')
def test_a_stencil_of_a_gpu_computes_in_the_memory_of_its_arguments():
    stencil, run = gpu()
    inp, out = OnDevice(VALUES.copy()), OnDevice(np.zeros(SHAPE))
    run(inp, out)
    assert np.array_equal(out.array, VALUES)
    for name, given in (("inp", inp), ("out", out)):
        assert interface_of(stencil, name)["data"] == (given.array.ctypes.data, False)


@pytest.mark.source(
    "GDP-3", "Data Interface", "a stencil uses the buffer on the device where it computes"
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    'keys with a number, such as ("gpu", 0), may follow later',
)
@pytest.mark.parametrize("device", ["gpu", ("gpu", 0), ("gpu", 1)], ids=str)
def test_a_stencil_takes_the_memory_of_its_own_gpu(device):
    arrays = {None: 1.0, ("gpu", 0): 2.0, ("gpu", 1): 3.0}
    arrays = {key: np.full(SHAPE, value) for key, value in arrays.items()}

    stencil, run = gpu(device, body=None, inp=field("READ"))
    run(Shows({key: array.__array_interface__ for key, array in arrays.items()}))
    chosen = ("gpu", 0) if device == "gpu" else device
    assert interface_of(stencil, "inp")["data"][0] == arrays[chosen].ctypes.data


def test_what_is_under_gpu_is_taken_for_any_number():
    array = VALUES.copy()
    stencil, run = gpu(("gpu", 1), body=None, inp=field("READ"))
    run(Shows({"gpu": array.__array_interface__}))
    assert interface_of(stencil, "inp")["data"][0] == array.ctypes.data


def test_the_interface_that_run_gets_is_complete():
    stencil, run = gpu()
    out = OnDevice(np.zeros(SHAPE))
    run(OnDevice(VALUES.copy()), out)
    assert interface_of(stencil, "out") == {
        "version": 3,
        "shape": SHAPE,
        "typestr": "<f8",
        "strides": None,
        "data": (out.array.ctypes.data, False),
        "stream": None,
    }
    assert stencil.seen["out"].shape == SHAPE


def test_strides_are_in_bytes_where_the_memory_is_in_another_order():
    stencil, run = gpu(body=None)
    out = np.zeros(SHAPE, order="F")
    run(OnDevice(VALUES[:, ::2, :2]), OnDevice(out), domain=(3, 2, 2))
    assert interface_of(stencil, "out")["strides"] == out.strides
    assert interface_of(stencil, "inp")["strides"] == (160, 80, 8)


def test_axes_with_names_come_in_the_order_of_the_definition():
    class Named(OnDevice):
        __gt_dims__ = ("K", "I", "J")

    stencil, run = gpu(body=None, inp=field("READ"))
    array = np.zeros((5, 3, 4))
    run(Named(array))
    assert interface_of(stencil, "inp")["shape"] == SHAPE
    assert interface_of(stencil, "inp")["strides"] == array.transpose(1, 2, 0).strides


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "any interface that `cupy.asarray` accepts can be used on a GPU",
)
def test_a_capsule_on_the_device_is_taken():
    stencil, run = gpu(body=None, inp=field("READ"))
    producer = FromDevice(SHAPE)
    run(producer)
    assert interface_of(stencil, "inp")["data"][0] == producer.managed.dl_tensor.data
    assert producer.calls == [{"max_version": (1, 3), "copy": False}]
    stencil.seen = None
    gc.collect()
    assert producer.freed == 1


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "the backend decides the device, not an annotation",
)
def test_a_plain_callable_with_a_backend_of_a_gpu_gets_arrays_of_the_device():
    fields = {"inp": Field[float, Access["in"]], "out": Field[float, Access["out"]]}
    out = OnDevice(np.zeros(SHAPE))
    dlf.bind(copy, fields=fields, backend="gt:gpu")(OnDevice(VALUES.copy()), out)
    assert np.array_equal(out.array, VALUES)


def test_read_only_memory_of_a_device_is_refused_as_output():
    array = np.zeros(SHAPE)
    array.flags.writeable = False
    with refused(BufferError, "argument 'out'", "expected a writable output"):
        gpu()[1](OnDevice(VALUES.copy()), OnDevice(array))


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
def test_arrays_of_the_host_are_staged_and_the_output_is_copied_back():
    log = []
    _, run = staging(log=log)
    inp, out = VALUES.copy(), np.zeros(SHAPE)
    run(inp, out)
    assert np.array_equal(out, VALUES)
    assert log == ["to_device", "to_device", "run", "synchronize", "to_host"]


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "a host buffer is copied to the GPU that computes, and results are copied back",
)
def test_only_what_is_of_the_host_is_staged():
    log = []
    stencil, run = staging(log=log)
    out = OnDevice(np.zeros(SHAPE))
    run(VALUES, out)
    assert np.array_equal(out.array, VALUES)
    assert log == ["to_device", "run", "synchronize"]
    assert interface_of(stencil, "inp")["data"][0] == stencil.made[0].array.ctypes.data


def test_the_stencil_computes_in_what_it_made_itself():
    stencil, run = staging(device=("gpu", 2))
    run(VALUES, np.zeros(SHAPE))
    for name, made in zip(("inp", "out"), stencil.made, strict=True):
        assert interface_of(stencil, name)["data"][0] == made.array.ctypes.data


def test_to_device_is_given_what_cannot_be_written_and_to_host_what_can():
    given = []

    class Noting(StagingStandIn):
        def to_device(self, array):
            given.append(array.flags.writeable)
            return super().to_device(array)

        def to_host(self, data, array):
            given.append(array.flags.writeable)
            super().to_host(data, array)

    stencil = Noting(body=copy, **FIELDS)
    dlf.bind(stencil, on_mismatch="copy")(VALUES, np.zeros(SHAPE))
    assert given == [False, False, True]


def test_an_output_keeps_what_the_stencil_does_not_write():
    _, run = staging(body=lambda inp, out: values_on(out)[..., :2].fill(1.0))
    out = np.full(SHAPE, -1.0)
    run(VALUES, out, origin=(0, 0, 0), domain=(3, 4, 2))
    assert (out[..., :2] == 1.0).all()
    assert (out[..., 2:] == -1.0).all()


def test_an_array_that_is_read_and_written_is_staged_once():
    log = []
    stencil, run = staging(log=log)
    both = VALUES.copy()
    run(both, both)
    assert log == ["to_device", "run", "synchronize", "to_host"]
    assert interface_of(stencil, "inp")["data"] == interface_of(stencil, "out")["data"]


def test_misaligned_arrays_of_the_host_are_staged():
    _, run = staging()
    inp, out = misaligned(), misaligned()
    inp[...] = VALUES
    run(inp, out)
    assert np.array_equal(out, VALUES)


@pytest.mark.parametrize("name", ["inp", "out"])
def test_columns_of_the_host_are_staged(name):
    log = []
    stencil, run = staging(log=log)
    given = {"inp": VALUES.copy(), "out": np.zeros(SHAPE), name: column()}
    run(**given)
    made = [one.array.ctypes.data for one in stencil.made]
    assert [interface_of(stencil, name)["data"][0] for name in ("inp", "out")] == made


@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "a buffer that does not fit is an error: device"
)
@pytest.mark.parametrize("answer", ["raise", {"memory": "copy"}, {}], ids=str)
@pytest.mark.parametrize("name", ["inp", "out"])
def test_arrays_of_the_host_are_refused_without_leave(name, answer):
    log = []
    stencil = StagingStandIn(log, body=copy, **FIELDS)
    given = {"inp": OnDevice(VALUES.copy()), "out": OnDevice(np.zeros(SHAPE))}
    given[name] = Told(log, name)
    with refused(
        BufferError, f"argument '{name}': expected memory of a GPU, got cpu", '"device": "copy"'
    ):
        dlf.bind(stencil, on_mismatch=answer)(**given)
    assert log == []


@pytest.mark.parametrize("lacks", ["to_device", "to_host"])
def test_a_stencil_that_cannot_stage_refuses_before_anything_is_acquired(lacks):
    log = []
    others = {"to_device", "to_host"} - {lacks}
    methods = {name: getattr(StagingStandIn, name) for name in others}
    stencil = type("Half", (GpuStandIn,), methods)(log, body=copy, **FIELDS)
    run = dlf.bind(stencil, on_mismatch="copy")
    with refused(
        dlf.DeviceUnavailable,
        "argument 'inp': expected memory of a GPU, got cpu",
        "expected a stencil with both to_device(...) and to_host(...), or with neither",
        f"got one without {lacks}",
    ):
        run(Told(log, "inp"), Told(log, "out"))
    assert log == []


def test_a_stencil_that_stages_nothing_needs_a_driver_before_anything_is_acquired():
    log = []
    stencil = gpu(log=log)[0]
    run = dlf.bind(stencil, on_mismatch="copy")
    with no_driver("argument 'inp': expected memory of a GPU, got cpu: "):
        run(Told(log, "inp"), Told(log, "out"))
    assert log == []


WRONG_COPIES = {
    "of the host": (lambda array: array.copy(), "on GPU 0, got .* on cpu"),
    "on another GPU": (lambda array: OnDevice(array.copy(), 1), r"of GPU 0 .*\('gpu', 1\)"),
    "of another shape": (lambda array: OnDevice(array[1:].copy()), r"got .*\[2, 4, 5\] on cuda:0"),
    "of another dtype": (lambda array: OnDevice(array.astype("f4")), "float64 .* got float32"),
}


@pytest.mark.parametrize(("make", "text"), WRONG_COPIES.values(), ids=WRONG_COPIES)
def test_a_wrong_copy_is_refused_and_everything_released(make, text):
    log = []
    stencil, _ = staging(device=("gpu", 0), log=log)
    stencil.to_device = make
    run = dlf.bind(stencil, on_mismatch="copy")
    with pytest.raises((BufferError, dlf.DeviceUnavailable), match=f"expected .*{text}"):
        run(Told(log, "inp"), Told(log, "out"))
    assert log == ["acquire inp", "acquire out", "release inp", "release out"]


def test_nothing_that_was_staged_is_alive_after_the_call():
    _, run = staging()
    gc.collect()
    before = live_allocations()
    run(VALUES, np.zeros(SHAPE))
    assert live_allocations() == before


#: Memory, the device of the stencil, and what is said of both.
ELSEWHERE = {
    "on another GPU": (lambda: FromDevice(SHAPE), ("gpu", 1), "memory of GPU 1, got cuda:0"),
    "shown on another GPU": (
        *(lambda: OnDevice(VALUES.copy(), 0), ("gpu", 1)),
        r"a buffer of GPU 1 or of the host, got the keys \[\('gpu', 0\)\]",
    ),
    "misaligned there": (
        *(lambda: OnDevice(misaligned()), "gpu"),
        "items aligned to 8 bytes, got ones 4 bytes behind",
    ),
}
every_place = pytest.mark.parametrize(("make", "device", "text"), ELSEWHERE.values(), ids=ELSEWHERE)


@every_place
@pytest.mark.parametrize("answer", ["raise", "copy"])
def test_memory_of_a_device_that_the_stencil_does_not_reach_is_refused(make, device, text, answer):
    stencil = StagingStandIn(number=1, inp=field("READ"))
    stencil.device = device
    with pytest.raises((BufferError, dlf.DeviceUnavailable), match=f"'inp': .*expected {text}"):
        dlf.bind(stencil, on_mismatch=answer)(make())
    assert stencil.seen is None


@every_place
def test_memory_of_a_device_that_nobody_can_copy_is_refused_before_anything_is_acquired(
    make, device, text
):
    log = []
    stencil = StagingStandIn(log, number=1, inp=field("READ"), out=field("WRITE"))
    stencil.device = device
    with pytest.raises((BufferError, dlf.DeviceUnavailable), match=f"'inp': .*expected {text}"):
        dlf.bind(stencil, on_mismatch="copy")(make(), Told(log, "out"))
    assert log == []


@pytest.mark.source(
    "GDP-3", "Data Interface", "a buffer on the other side is copied without being asked for"
)
def test_a_stencil_of_the_host_refuses_an_array_of_a_device_and_asks_for_no_copy():
    stencil, run = bound()
    producer = FromDevice(SHAPE)
    with refused(
        dlf.DeviceUnavailable, "argument 'inp'", "got cuda:0", 'on_mismatch={"device": "copy"}'
    ):
        run(producer, np.zeros(SHAPE))
    assert (producer.calls, stencil.seen) == ([], None)


@pytest.mark.source("GDP-3", "Data Interface", "a GPU buffer is copied to the host that computes")
@pytest.mark.parametrize("answer", ["copy", {"device": "copy"}], ids=str)
def test_an_array_of_a_device_that_is_only_read_is_copied_by_its_producer(answer):
    stencil, run = bound(on_mismatch=answer)
    producer, out = FromDevice(SHAPE), np.zeros(SHAPE)
    run(producer, out)
    assert np.array_equal(out, VALUES)
    stencil.seen = None
    assert producer.freed == 1
    [asked] = producer.calls
    assert asked["dl_device"] == (1, 0)
    assert asked.get("copy") is not False


def test_the_copy_of_a_producer_is_freed_also_where_the_run_fails():
    stencil, run = bound(on_mismatch="copy")
    stencil.raises["run"] = RuntimeError("run")
    producer = FromDevice(SHAPE)
    with pytest.raises(RuntimeError, match=r"^run$"):
        run(producer, np.zeros(SHAPE))
    stencil.seen = None
    stencil.raises.clear()
    gc.collect()
    assert producer.freed == 1


def test_what_a_producer_says_to_the_wish_for_a_copy_is_raised():
    stencil, run = bound(on_mismatch="copy")
    with pytest.raises(BufferError, match=r"^this memory stays where it is") as caught:
        run(StaysOnDevice(SHAPE), np.zeros(SHAPE))
    assert caught.value.__notes__ == ["while dlfield imported argument 'inp'"]
    assert stencil.seen is None


@pytest.mark.source(
    "GDP-3", "Data Interface", "results for a GPU buffer are copied back to the GPU"
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied: results back to a GPU, to debug on the host",
)
@pytest.mark.parametrize("access", ["WRITE", "READ_WRITE"])
def test_an_output_on_a_device_is_refused_by_a_stencil_of_the_host(access):
    stencil, _ = bound()
    stencil.field_info["out"] = field(access)
    producer = FromDevice(SHAPE)
    with refused(dlf.DeviceUnavailable, "argument 'out'", "cannot be copied back"):
        dlf.bind(stencil, on_mismatch="copy")(VALUES, producer)
    assert (producer.calls, stencil.seen) == ([], None)


@pytest.mark.parametrize("answer", ["raise", "copy"])
def test_an_interface_of_a_gpu_alone_is_refused_by_a_stencil_of_the_host(answer):
    stencil, run = bound(on_mismatch=answer)
    with refused(dlf.DeviceUnavailable, "argument 'inp'", "None or 'cpu'", "('gpu', 0)"):
        run(OnDevice(VALUES.copy()), np.zeros(SHAPE))
    assert stencil.seen is None


@pytest.mark.parametrize("device", ["tpu", ("gpu", -1), ("cpu", 0), 3], ids=str)
def test_a_device_that_is_none_is_refused_when_the_stencil_is_bound(device):
    with refused(ValueError, "device: expected", "got"):
        gpu(device)


def test_a_backend_of_a_gpu_without_a_device_computes_on_the_first_gpu():
    stencil = Waiting(body=copy, backend="gt:gpu", **FIELDS)
    run, out = dlf.bind(stencil), OnDevice(np.zeros(SHAPE))
    run(OnDevice(VALUES.copy()), out)
    assert np.array_equal(out.array, VALUES)
    with refused(dlf.DeviceUnavailable, "argument 'inp'", "expected a buffer of GPU 0"):
        run(OnDevice(VALUES.copy(), 1), out)
