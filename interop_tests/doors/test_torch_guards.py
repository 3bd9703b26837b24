"""Tensors of exactly torch's class are asked in C, all others by name, with the same answers."""

import sys

import dlfield as dlf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.optional import library

torch = library("torch")

REAL = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
)
COMPLEX = ("complex64", "complex128")
DIFFERENTIABLE = ("float16", "bfloat16", "float32", "float64", *COMPLEX)


class Plain(torch.Tensor):
    """A subclass that changes nothing, which is asked by name."""


class Own(torch.Tensor):
    """A subclass whose functions are called for every question."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


LAYOUTS = {
    "as it is": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.mT,
    "sliced": lambda tensor: tensor[::2, 1:],
    "a row": lambda tensor: tensor[1],
    "an element": lambda tensor: tensor[1, 2],
    "empty": lambda tensor: tensor[:0],
    "expanded": lambda tensor: tensor[:1].expand(3, -1),
    "restrided": lambda tensor: tensor.as_strided((2, 2), (1, 2)),
    "without its history": lambda tensor: tensor.data,
    "detached": lambda tensor: tensor.detach(),
}
BITS = {
    "nothing pending": lambda tensor: tensor,
    "a conjugate": torch.conj,
    "a negation": torch._neg_view,
    "a negated conjugate": lambda tensor: torch._neg_view(torch.conj(tensor)),
    "a negated negation": lambda tensor: torch._neg_view(torch._neg_view(tensor)),
    "the imaginary part": lambda tensor: tensor.imag if tensor.is_complex() else tensor,
    "of a conjugate, the imaginary part": lambda tensor: (
        tensor.conj().imag if tensor.is_complex() else tensor
    ),
    "of a conjugate, the real part": lambda tensor: (
        tensor.conj().real if tensor.is_complex() else tensor
    ),
}
MODES = {
    "recorded": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
}


@st.composite
def tensors(draw):
    name = draw(st.sampled_from(REAL + COMPLEX))
    tensor = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
    if name in DIFFERENTIABLE and draw(st.booleans()):
        tensor.requires_grad_()
    if draw(st.booleans()):
        tensor = BITS[draw(st.sampled_from(sorted(BITS)))](tensor)
    tensor = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](tensor)
    return BITS[draw(st.sampled_from(sorted(BITS)))](tensor)


def taken(tensor):
    """Return what comes of a tensor: the storage in words, or the refusal."""
    try:
        storage = dlf.as_storage(tensor)
    except BufferError as refusal:
        return str(refusal)
    return (
        storage.ptr if storage.size else None,
        storage.shape,
        storage.strides,
        str(storage.dtype),
        storage.readonly,
        storage.door,
    )


def expected_refusal(tensor):
    """Return the call that helps, by what torch itself says of the tensor."""
    if tensor.requires_grad and torch.is_grad_enabled():
        return "detach()"
    if tensor.is_conj():
        return "resolve_conj()"
    return "resolve_neg()" if tensor.is_neg() else None


@settings(max_examples=400, deadline=None)
@given(tensor=tensors(), mode=st.sampled_from(sorted(MODES)))
def test_torchs_class_and_its_subclasses_are_taken_and_refused_alike(tensor, mode):
    assert type(tensor) is torch.Tensor
    with MODES[mode]():
        found = taken(tensor)
        assert taken(tensor.as_subclass(Plain)) == found
        assert taken(tensor.as_subclass(Own)) == found
        advice = expected_refusal(tensor)
    if advice:
        assert f"tensor.{advice}" in found
    else:
        assert found[0] in (None, tensor.data_ptr())


@settings(max_examples=50, deadline=None)
@given(name=st.sampled_from(DIFFERENTIABLE), requires_grad=st.booleans(), recorded=st.booleans())
def test_a_parameter_is_taken_and_refused_as_its_tensor(name, requires_grad, recorded):
    tensor = torch.ones((3, 4), dtype=getattr(torch, name))
    parameter = torch.nn.Parameter(tensor, requires_grad=requires_grad)
    tensor.requires_grad_(requires_grad)
    with torch.set_grad_enabled(recorded):
        assert taken(parameter) == taken(tensor)


@pytest.mark.parametrize("name", ["requires_grad", "is_neg", "is_conj"])
def test_a_function_mode_answers_for_torchs_own_class_too(name):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, _types, args=(), kwargs=None):
            asked.append(getattr(func, "__name__", "") + str(getattr(func, "__self__", "")))
            return func(*args, **(kwargs or {}))

    asked = []
    tensor = torch.ones(3, dtype=torch.complex64)
    dlf.as_storage(tensor)
    with Mode():
        dlf.as_storage(tensor)
    assert any(name in one for one in asked)


def test_what_a_function_mode_raises_passes_unchanged():
    class Refusing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, _func, _types, _args=(), _kwargs=None):
            raise RuntimeError("of the mode")

    with Refusing(), pytest.raises(RuntimeError, match="of the mode"):
        dlf.as_storage(torch.ones(3))


def test_a_tensor_keeps_its_references_when_it_is_asked():
    tensor = torch.ones(3, dtype=torch.complex64)
    before = sys.getrefcount(tensor)
    for _ in range(100):
        dlf.as_storage(tensor)
    assert sys.getrefcount(tensor) == before
