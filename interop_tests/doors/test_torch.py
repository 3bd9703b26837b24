"""torch tensors into storages, and storages into torch."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field

from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once
from support.processes import run_in_subprocess

torch = library("torch")

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("complex64", "complex128"),
)

LAYOUTS = {
    "compact": lambda: torch.zeros((4, 3, 2)),
    "permuted": lambda: torch.zeros((4, 3, 2)).permute(2, 0, 1),
    "every second": lambda: torch.zeros((8, 6))[::2, 1::2],
    "with an offset": lambda: torch.zeros((6, 5))[2:, 1:],
    "a diagonal": lambda: torch.zeros((5, 5)).diagonal(),
    "0-d": lambda: torch.zeros(()),
    "parameter, detached": lambda: torch.nn.Parameter(torch.zeros((4, 3))).detach(),
}


def address_of(storage):
    return storage.to_numpy().ctypes.data  # the array interface cannot name bfloat16


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_of_torch_arrives_at_its_address_with_its_strides(make):
    tensor = make()
    storage = dlf.as_storage(tensor)
    assert address_of(storage) == tensor.data_ptr()
    assert storage.shape == tuple(tensor.shape)
    assert storage.strides == tuple(4 * stride for stride in tensor.stride())


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_comes_back_to_torch_as_it_was(make):
    tensor = make()
    back = torch.from_dlpack(dlf.as_storage(tensor))
    assert back.data_ptr() == tensor.data_ptr()
    assert (back.shape, back.stride()) == (tensor.shape, tensor.stride())


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_of_torch_arrives_and_leaves_with_its_values(name):
    tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, name))
    storage = dlf.as_storage(tensor)
    assert storage.dtype.name == name
    assert address_of(storage) == tensor.data_ptr()
    assert np.array_equal(storage.to_numpy().astype(complex), [[0, 1, 1], [1, 0, 1]])
    assert torch.from_dlpack(storage).dtype == tensor.dtype


@pytest.mark.parametrize("name", DTYPES)
def test_a_write_to_the_tensor_is_seen_in_the_storage(name):
    tensor = torch.zeros((4, 3)).to(getattr(torch, name))
    storage = dlf.as_storage(tensor)
    tensor[2, 1] = 1
    assert storage.to_numpy()[2, 1] == 1


@pytest.mark.parametrize("name", DTYPES)
def test_a_write_to_the_storage_is_seen_in_the_tensor(name):
    tensor = torch.zeros((4, 3)).to(getattr(torch, name))
    dlf.as_storage(tensor).to_numpy()[2, 1] = 1
    assert tensor[2, 1].to(torch.complex128) == 1


def test_an_empty_tensor_keeps_its_shape_and_dtype_both_ways():
    storage = dlf.as_storage(torch.zeros((0, 3), dtype=torch.int16))
    assert (storage.shape, storage.dtype) == ((0, 3), np.int16)
    back = torch.from_dlpack(storage)
    assert (tuple(back.shape), back.dtype) == ((0, 3), torch.int16)


def test_a_torch_tensor_lives_exactly_as_long_as_its_storage():
    assert_freed_once(torch.from_dlpack, dlf.as_storage)


def test_a_tensor_keeps_the_memory_of_its_storage_and_frees_it_once():
    assert_freed_once(dlf.as_storage, torch.from_dlpack)


def test_a_tensor_passed_on_twice_frees_its_memory_once():
    assert_freed_once(torch.from_dlpack, dlf.as_storage, torch.from_dlpack, dlf.as_storage)


def test_torch_sees_the_memory_of_a_storage_and_writes_it():
    storage = dlf.zeros((4, 3), layout=(1, 0))
    tensor = torch.from_dlpack(storage)
    assert tensor.data_ptr() == address_of(storage)
    tensor[2, 1] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0


def test_a_view_inside_the_halo_reaches_torch_with_its_strides():
    storage = dlf.zeros((6, 5), halo=(2, 1))
    tensor = torch.from_dlpack(storage.domain_view)
    assert tensor.data_ptr() == storage.to_numpy()[2:, 1:].ctypes.data
    assert tensor.stride() == (5, 1)


def test_negative_strides_are_refused_since_torch_would_abort():
    with pytest.raises(BufferError, match="expected strides of at least 0"):
        torch.from_dlpack(dlf.as_storage(np.zeros(3)[::-1]))


def complex_zeros():
    return torch.zeros(3, dtype=torch.complex64)


LAZY = {
    "requires_grad": (lambda: torch.zeros(3, requires_grad=True), "detach"),
    "parameter": (lambda: torch.nn.Parameter(torch.zeros(3)), "detach"),
    "result of a graph": (lambda: 2 * torch.zeros(3, requires_grad=True), "detach"),
    "conj bit": (lambda: complex_zeros().conj(), "resolve_conj"),
    "neg bit": (lambda: complex_zeros().conj().imag, "resolve_neg"),
    "neg bit, strided": (lambda: torch._neg_view(torch.zeros(6)[::2]), "resolve_neg"),
}


@pytest.mark.parametrize(("make", "advice"), LAZY.values(), ids=LAZY)
def test_a_tensor_whose_memory_is_not_its_value_is_refused(make, advice):
    with pytest.raises(BufferError, match=rf"tensor\.{advice}\(\)"):
        dlf.as_storage(make())


@pytest.mark.parametrize(("make", "advice"), LAZY.values(), ids=LAZY)
def test_the_advice_for_a_refused_tensor_helps(make, advice):
    helped = getattr(make(), advice)()
    assert address_of(dlf.as_storage(helped)) == helped.data_ptr()


def test_a_subclass_of_tensor_is_refused_for_the_same_reasons():
    class Labelled(torch.Tensor):
        pass

    tensor = complex_zeros().conj().as_subclass(Labelled)
    with pytest.raises(BufferError, match="resolve_conj"):
        dlf.as_storage(tensor)
    assert dlf.as_storage(torch.zeros(3).as_subclass(Labelled)).shape == (3,)


WITHOUT_MEMORY = {
    "sparse": lambda: torch.zeros(3).to_sparse(),
    "zero": lambda: torch._efficientzerotensor(3),
    "meta": lambda: torch.zeros(3, device="meta"),
}


@pytest.mark.parametrize("make", WITHOUT_MEMORY.values(), ids=WITHOUT_MEMORY)
def test_a_tensor_without_plain_memory_is_refused(make):
    with pytest.raises(BufferError, match=r"Can.t export|Cannot pack|expected an address"):
        dlf.as_storage(make())


def test_an_expanded_tensor_is_read_as_what_it_shows():
    storage = dlf.as_storage(torch.ones(1).expand(4))
    assert np.array_equal(storage.to_numpy(), np.ones(4))
    assert np.asarray(storage).strides == (0,)


def test_to_torch_gives_a_tensor_over_the_memory():
    storage = dlf.zeros((3, 4), dims="IJ", layout=(1, 0))
    tensor = storage.to_torch()
    assert (tensor.data_ptr(), tuple(tensor.stride())) == (address_of(storage), (1, 3))
    tensor[2, 3] = 5
    assert storage[2, 3] == 5
    assert_freed_once(dlf.as_storage, lambda storage: storage.to_torch())


def test_to_torch_refuses_read_only_memory():
    array = np.zeros(3)
    array.flags.writeable = False
    with refused(BufferError, "read-only", "copy().to_torch()"):
        dlf.as_storage(array).to_torch()
    assert dlf.as_storage(array).copy().to_torch().tolist() == [0.0] * 3


def test_to_torch_does_not_copy_what_torch_cannot_express():
    with refused(BufferError, "strides of at least 0"):
        dlf.zeros(3)[::-1].to_torch()


def test_a_tensor_is_assigned_and_is_a_key():
    storage = dlf.zeros((4, 3))
    storage[1:3] = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    storage[3] = torch.arange(3, dtype=torch.int32)  # converted, as NumPy does
    assert storage[torch.tensor([1, 3])].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert storage[storage.to_torch() > 3].tolist() == [4, 5]


def test_a_model_may_require_a_gradient_or_be_lazy():
    models = [
        torch.zeros(2, 3, requires_grad=True),
        torch.zeros(3, 2, requires_grad=True).T.square(),
        torch.zeros(2, 3, dtype=torch.complex64).conj(),
        torch.zeros(2, 3, dtype=torch.complex64).conj().imag,
    ]
    for model in models:
        made = dlf.zeros_like(model)
        assert (made.shape, str(made.dtype)) == ((2, 3), str(model.dtype).removeprefix("torch."))
    assert [dlf.empty_like(model).layout for model in models[:2]] == [(0, 1), (1, 0)]


def grad_off(within):
    """Run in one of the places where torch records no gradients."""

    class Inside(torch.autograd.Function):
        @staticmethod
        def forward(_context, tensor):
            within(tensor)
            return tensor.clone()

    def no_grad(tensor):
        with torch.no_grad():
            within(tensor)

    def inference_mode(tensor):
        with torch.inference_mode():
            within(tensor)

    return [Inside.apply, no_grad, inference_mode]


@pytest.mark.parametrize("place", range(3), ids=["forward", "no_grad", "inference"])
@pytest.mark.parametrize("make", [torch.Tensor.clone, torch.nn.Parameter], ids=["result", "leaf"])
def test_a_tensor_that_requires_a_gradient_is_taken_where_gradients_are_off(place, make):
    tensor = make(torch.arange(3.0, requires_grad=make is torch.Tensor.clone))
    taken = []

    def within(inner):
        storage = dlf.as_storage(inner)
        taken.append((storage.to_numpy().tolist(), address_of(storage) == inner.data_ptr()))
        taken.append(dlf.zeros((3,)).__setitem__(..., inner))

    grad_off(within)[place](tensor)
    assert taken == [([0.0, 1.0, 2.0], True), None]
    with refused(BufferError, "requires_grad=True", "detach()"):
        dlf.as_storage(tensor)


def test_a_tensor_that_requires_a_gradient_is_taken_in_an_operator_of_the_users():
    """In a process of its own: such an operator loads Triton, whose LLVM aborts beside others'."""
    run_in_subprocess(
        """
        import dlfield as dlf
        import torch

        @torch.library.custom_op("dlfield_tests::inside", mutates_args=())
        def inside(tensor: torch.Tensor) -> torch.Tensor:
            taken.append(dlf.as_storage(tensor).ptr == tensor.data_ptr())
            return tensor.clone()

        taken = []
        inside(torch.nn.Parameter(torch.arange(3.0)))
        inside(torch.arange(3.0, requires_grad=True).clone())
        assert taken == [True, True]
        """,
        warnings="default",
    )


def test_a_bound_callable_runs_in_the_forward_of_an_autograd_function():
    def double(inp, out):
        np.multiply(inp, 2, out=out)

    run = dlf.bind(double, fields={"inp": Field[np.float32], "out": Field[np.float32]})

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(_context, tensor):
            out = torch.empty_like(tensor)
            run(tensor, out)
            return out

        @staticmethod
        def backward(_context, gradient):
            return 2 * gradient

    tensor = torch.ones(2, 3, 4, requires_grad=True)
    Double.apply(tensor).sum().backward()
    assert torch.equal(tensor.grad, torch.full((2, 3, 4), 2.0))


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_of_torch_is_a_dtype(name):
    assert str(dlf.zeros(2, getattr(torch, name)).dtype) == name
    assert str(dlf.zeros_like(np.zeros(2), getattr(torch, name)).dtype) == name


def test_a_dtype_of_torch_that_storages_do_not_hold_is_refused_by_its_name():
    with refused(ValueError, "dtype: expected bool, ", "got torch.complex32"):
        dlf.zeros(2, torch.complex32)


# --- what torch is told --------------------------------------------------------------------------


def bound_copy():
    def copied(inp, out):
        np.copyto(out, inp)

    kinds = {"inp": Field[np.float64, Access["in"]], "out": Field[np.float64, Access["out"]]}
    return dlf.bind(copied, fields=kinds)


class Own(torch.Tensor):
    """A subclass, which has its version from torch's class."""


@pytest.mark.parametrize("make", [torch.zeros, lambda *shape: torch.zeros(shape).as_subclass(Own)])
def test_torch_learns_that_a_bound_call_wrote_a_tensor_and_that_it_read_another(make):
    inp, out = (make(2, 3, 4).to(torch.float64) for _ in range(2))
    before = inp._version, out._version
    bound_copy()(inp, out)
    assert (inp._version, out._version) == (before[0], before[1] + 1)


def test_a_functional_call_that_writes_a_copy_leaves_the_tensor_as_it_was_known():
    out = torch.zeros(2, 3, 4, dtype=torch.float64)
    bound_copy().functional(torch.ones_like(out), out)
    assert out._version == 0


def test_autograd_refuses_a_gradient_for_values_that_a_stencil_has_overwritten():
    weight = torch.ones(4, dtype=torch.float64, requires_grad=True)
    column = torch.ones(2, 3, 4, dtype=torch.float64)
    loss = (column * weight).sum()
    bound_copy()(torch.zeros_like(column), column)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.source(
    "GDP-3 draft", "Mixing Types", "beside an array of another library the storage decides"
)
def test_a_storage_beside_a_tensor_decides():
    made = dlf.ones((2, 3), dims="IJ") + torch.ones((2, 3), dtype=torch.float64)
    assert (type(made), made.dims) == (dlf.CPUStorage, ("I", "J"))
