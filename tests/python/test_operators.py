"""Arithmetic is refused with the way out, never done silently on the wrong thing."""

import operator

import dlfield as dlf
import numpy as np
import pytest

BINARY = [
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
    "iadd",
    "isub",
    "imul",
    "imatmul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "ilshift",
    "irshift",
    "iand",
    "ior",
    "ixor",
]
WAY_OUT = r"to_numpy\(\)"


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "storages do not support universal functions"
)
@pytest.mark.source(
    "GDP-3 draft", "Universal Functions", "operators and universal functions work on storages"
)
@pytest.mark.parametrize("name", [*BINARY, "lt", "le", "eq", "ne", "ge", "gt"])
@pytest.mark.parametrize("other", [1, np.ones(3), np.float64(2), dlf.zeros((3,))], ids=type)
def test_operators_and_comparisons_are_refused(name, other):
    with pytest.raises(TypeError, match=WAY_OUT):
        getattr(operator, name)(dlf.zeros((3,)), other)


@pytest.mark.parametrize("name", [*BINARY[:13], "lt", "le", "eq", "ne", "ge", "gt"])
@pytest.mark.parametrize("other", [1, np.ones(3), np.float64(2)], ids=type)
def test_they_are_refused_on_the_right_side_too(name, other):
    with pytest.raises(TypeError, match=WAY_OUT):
        getattr(operator, name)(other, dlf.zeros((3,)))


@pytest.mark.parametrize("operation", [divmod, lambda a, b: divmod(b, a)])
def test_divmod_is_refused(operation):
    with pytest.raises(TypeError, match=WAY_OUT):
        operation(dlf.zeros((3,)), 2)


@pytest.mark.parametrize("operation", [operator.neg, operator.pos, abs, operator.invert, round])
def test_unary_operators_are_refused(operation):
    with pytest.raises(TypeError, match=WAY_OUT):
        operation(dlf.zeros((1,)))


CONVERSIONS = [bool, int, float, complex, operator.index]


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_is_a_number_and_not_the_text_of_one(convert, shape):
    assert convert(dlf.full(shape, ord("5"), "uint8")) == convert(53)


@pytest.mark.parametrize("convert", [*CONVERSIONS, operator.not_])
@pytest.mark.parametrize("shape", [(2,), (0,)])
def test_only_one_element_converts_to_a_number(convert, shape):
    with pytest.raises(TypeError, match=f"expected one element, .*{WAY_OUT}"):
        convert(dlf.zeros(shape, "int8"))


def test_a_fraction_cannot_be_an_index():
    with pytest.raises(TypeError):
        operator.index(dlf.full((), 1.5))


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "storages do not support universal functions"
)
@pytest.mark.source(
    "GDP-3",
    "Alternatives",
    "universal functions and other functions of NumPy are not implemented by storages",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Implementation",
    "universal functions come from NumPy's mixin, `__array_ufunc__` and `__array_function__`",
)
@pytest.mark.parametrize("call", [np.add, np.multiply, np.equal, np.maximum])
def test_universal_functions_are_refused(call):
    with pytest.raises(TypeError, match=f"expected arrays, got a CPUStorage.*{WAY_OUT}"):
        call(dlf.zeros((3,)), 1)


def test_a_universal_function_does_not_write_into_a_storage():
    storage = dlf.zeros((3,))
    with pytest.raises(TypeError):
        np.add(np.ones(3), 1, out=storage)
    assert not storage.to_numpy().any()


def test_an_array_is_not_added_to_in_place_with_a_storage():
    array = np.ones(3)
    with pytest.raises(TypeError):
        array += dlf.ones((3,))
    assert array.tolist() == [1, 1, 1]


def test_a_refusal_names_the_operator_and_the_class():
    with pytest.raises(TypeError, match="__add__: expected an array, got a CPUStorage"):
        dlf.zeros((3,)) + 1


def test_membership_is_not_quietly_false():
    with pytest.raises(TypeError, match=WAY_OUT):
        assert dlf.zeros((3,)) in [0]
