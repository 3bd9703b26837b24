"""CUDA tensors into storages, and storages into torch, on a real GPU."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, device_view, new_stream
from support.cuda.handed import VALUES, Late, address_of, handed
from support.cuda.kinds import every_kind
from support.cuda.libraries import eventually, library

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),  # what torch warns of is torch's
]

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("complex64", "complex128"),
)
MANY = 1 << 22  # elements: more than a kernel does at once
CYCLES = 100_000_000  # of a kernel that does nothing: some hundredths of a second


@pytest.fixture
def torch():
    torch = library("torch")
    yield torch
    torch.cuda.synchronize()


LAYOUTS = {
    "compact": lambda zeros: zeros((4, 3, 2)),
    "permuted": lambda zeros: zeros((4, 3, 2)).permute(2, 0, 1),
    "every second": lambda zeros: zeros((8, 6))[::2, 1::2],
    "with an offset": lambda zeros: zeros((6, 5))[2:, 1:],
    "a diagonal": lambda zeros: zeros((5, 5)).diagonal(),
    "0-d": lambda zeros: zeros(()),
}


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_arrives_at_its_address_and_comes_back(torch, layout, managed):
    tensor = layout(lambda shape: torch.zeros(shape, device="cuda"))
    storage = dlf.as_storage(tensor, managed=managed)
    assert address_of(storage) == tensor.data_ptr()
    on_gpu = dlf.as_storage(storage, managed=None)  # a pair has the strides of its host buffer
    assert on_gpu.strides == tuple(4 * stride for stride in tensor.stride())
    back = torch.from_dlpack(storage)
    assert (back.data_ptr(), back.device) == (tensor.data_ptr(), tensor.device)
    assert (back.shape, back.stride()) == (tensor.shape, tensor.stride())


def test_a_tensor_arrives_by_the_exchange_table_where_torch_has_one(torch):
    names = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
    has_one = any(hasattr(torch.Tensor, name) for name in names)
    storage = dlf.as_storage(torch.zeros(3, device="cuda"), managed=None)
    assert storage.door == ("dlpack_c_exchange_api" if has_one else "dlpack")


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_of_torch_on_a_gpu_arrives_and_leaves_with_its_values(torch, name):
    tensor = torch.tensor([0, 1, 1, 0]).to(getattr(torch, name)).cuda()
    storage = dlf.as_storage(tensor, managed=None)
    assert storage.dtype.name == name
    assert dlf.storage(storage, device="cpu").to_numpy().astype(complex).tolist() == [0, 1, 1, 0]
    assert storage.to_torch().dtype == tensor.dtype


@every_kind
def test_what_torch_writes_is_in_the_storage(torch, managed):
    storage = handed(VALUES, managed)
    with storage.device() as side:
        torch.from_dlpack(side).mul_(2)
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), 2 * VALUES)


def test_what_the_storage_writes_is_in_the_tensor(torch):
    tensor = torch.zeros(3, 4, dtype=torch.float64, device="cuda")
    dlf.as_storage(tensor, managed=None)[1] = 5.0
    assert tensor[1].tolist() == [5.0] * 4


def test_a_tensor_is_assigned_on_the_device(torch):
    storage = dlf.zeros((3, 4), device="gpu")
    storage[...] = torch.tensor(VALUES, device="cuda")
    assert storage.sync_state.state == dlf.SyncState.SYNC_DEVICE_DIRTY
    assert np.array_equal(storage.to_numpy(), VALUES)


def test_a_tensor_beside_its_pinned_copy_makes_a_pair_of_both(torch):
    host, device = torch.zeros(6).pin_memory(), torch.zeros(6, device="cuda")
    storage = dlf.as_storage(host, device)
    assert address_of(storage) == device.data_ptr()
    assert storage.to_numpy().ctypes.data == host.data_ptr()


@every_kind
def test_to_torch_gives_a_tensor_over_the_memory_of_the_device(torch, managed):
    storage = handed(VALUES, managed)
    tensor = storage.to_torch()
    assert (tensor.data_ptr(), tensor.device.type) == (address_of(storage), "cuda")


def test_to_torch_of_a_pair_that_was_written_on_the_host_is_on_the_host(torch):
    storage = handed(VALUES, "gt4py")
    with storage.host() as array:
        array[...] = 7.0
    tensor = storage.to_torch()
    assert (tensor.device.type, tensor[0, 0].item()) == ("cpu", 7.0)


@every_kind
def test_the_array_interface_gives_the_same_memory_to_torch(torch, managed):
    storage = handed(VALUES, managed, layout=(1, 0))
    tensor = torch.as_tensor(storage, device="cuda")
    assert (tensor.data_ptr(), tensor.stride()) == (address_of(storage), (1, 3))


def test_a_copy_waits_for_the_stream_on_which_torch_works(torch):
    tensor = torch.zeros(MANY, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(CYCLES)
        tensor.fill_(7.0)
        storage = dlf.as_storage(tensor, managed=None)
    copied = dlf.storage(storage, device="cpu")
    assert (copied.to_numpy() == 7.0).all()


def test_the_stream_of_torch_waits_for_what_is_done_to_the_storage(torch):
    stream, mine = torch.cuda.Stream(), new_stream()
    tensor, ones = torch.zeros(MANY, device="cuda"), torch.ones(MANY, device="cuda")
    torch.cuda.synchronize()
    source = dlf.as_storage(ones, managed=None)
    with torch.cuda.stream(stream):
        storage = dlf.as_storage(tensor, managed=None)
        delay(mine)
        with dlf.use_stream(mine):
            storage[...] = source
        copied = tensor.clone()
    stream.synchronize()
    assert bool((copied == 1.0).all())


@every_kind
def test_the_stream_of_torch_waits_for_what_is_in_flight(torch, managed):
    values, stream = np.arange(float(MANY)), torch.cuda.Stream()
    torch.cuda.synchronize()
    late = Late(values, managed)
    with torch.cuda.stream(stream):
        copied = torch.from_dlpack(late.storage).clone()
    stream.synchronize()
    assert np.array_equal(copied.cpu().numpy(), values)


def test_the_default_stream_keeps_order_if_the_interfaces_stream_is_ignored(torch):
    late = Late(np.arange(float(MANY)), None)
    copied = torch.as_tensor(late.storage, device="cuda").clone()
    assert np.array_equal(copied.cpu().numpy(), np.arange(float(MANY)))


def test_dlfield_works_on_a_stream_of_torch(torch):
    stream, source = torch.cuda.Stream(), dlf.as_storage(OnDevice(VALUES), managed=None)
    storage = dlf.zeros(VALUES.shape, device="gpu", managed=None)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream), dlf.use_stream(stream) as used:
        torch.cuda._sleep(CYCLES)
        storage[...] = source
        copied = torch.from_dlpack(storage).clone()
    assert int(used) == stream.cuda_stream
    stream.synchronize()
    assert np.array_equal(copied.cpu().numpy(), VALUES)


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
def test_a_torch_tensor_on_a_gpu_lives_exactly_as_long_as_its_storage(torch, managed):
    gc.collect()
    before = torch.cuda.memory_allocated()
    tensor = torch.full((MANY,), 3.0, device="cuda")
    storage = dlf.as_storage(tensor, managed=managed)
    del tensor
    gc.collect()
    assert torch.cuda.memory_allocated() > before
    assert (device_view(storage) == 3.0).all()
    del storage
    assert eventually(lambda: torch.cuda.memory_allocated() == before)


def fill_what_is_free():
    """Write over memory that was given back, if there is some."""
    return [dlf.full(MANY, 4.0, device="gpu", managed=None) for _ in range(4)]


def test_a_tensor_keeps_the_memory_of_its_storage(torch):
    tensor = dlf.full(MANY, 3.0, device="gpu", managed=None).to_torch()
    gc.collect()
    fill_what_is_free()
    torch.cuda.synchronize()
    assert bool((tensor == 3.0).all())


def test_memory_is_not_given_back_under_work_of_torch(torch):
    stream = torch.cuda.Stream()
    storage = dlf.full(MANY, 3.0, device="gpu", managed=None)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        tensor = torch.from_dlpack(storage)
        torch.cuda._sleep(CYCLES)
        copied = tensor.clone()
    del tensor, storage
    fill_what_is_free()
    stream.synchronize()
    assert bool((copied == 3.0).all())


LAZY = {
    "requires_grad": (lambda zeros: zeros(3, requires_grad=True), "detach"),
    "conj bit": (lambda zeros: (zeros(3) * 1j).conj(), "resolve_conj"),
    "neg bit": (lambda zeros: (zeros(3) * 1j).conj().imag, "resolve_neg"),
}


@pytest.mark.parametrize(("make", "advice"), LAZY.values(), ids=LAZY)
def test_a_tensor_whose_memory_is_not_its_value_is_refused_with_advice_that_helps(
    torch, make, advice
):
    tensor = make(lambda *shape, **options: torch.zeros(*shape, device="cuda", **options))
    with pytest.raises(BufferError, match=rf"tensor\.{advice}\(\)"):
        dlf.as_storage(tensor)
    helped = getattr(tensor, advice)()
    assert address_of(dlf.as_storage(helped, managed=None)) == helped.data_ptr()


def test_torch_gets_no_memory_that_it_must_not_write(torch):
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    with pytest.raises(BufferError, match="read-only"):
        storage.to_torch()
    assert np.array_equal(storage.copy().to_torch().cpu().numpy(), VALUES)


@every_kind
def test_reversed_axes_are_refused_since_torch_would_abort(torch, managed):
    with pytest.raises(BufferError, match="strides of at least 0"):
        handed(VALUES, managed)[::-1].to_torch()


def test_a_tensor_of_another_gpu_is_a_storage_there(torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    tensor = torch.zeros(3, device="cuda:1")
    assert dlf.as_storage(tensor, managed=None).device_id == 1
