"""Functions with an entry for the usual call, which gives what any other call of them gives."""

import inspect
import pickle

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.dlpack_structs import capsule_name, contents
from support.errors import refused

KEYWORDS = ("stream", "max_version", "dl_device", "copy")


def outcome(function, /, *args, **keywords):
    """Return what a call gives, in words, or what it raises."""
    try:
        made = function(*args, **keywords)
    except Exception as error:
        return type(error), str(error)
    if isinstance(made, dlf.Storage):
        return type(made), made.shape, made.strides, made.dims, made.door, made.readonly
    described = contents(made)
    tensor = described.dl_tensor
    address = tensor.data if keywords.get("copy") is not True else None
    return capsule_name(made), getattr(described, "flags", None), address, tensor.ndim


def not_interned(keywords):
    """Give equal keywords that are other objects, which no entry recognises."""
    return {"".join(list(name)): value for name, value in keywords.items()}


VALUES = {
    "stream": st.sampled_from([None, -1, 0, 1, 3, "x", True]),
    "max_version": st.sampled_from([None, (0, 8), (1, 0), (1, 3), (2, 0), (1,), (-1, 0), "x", 1]),
    "dl_device": st.sampled_from([None, (1, 0), (2, 0), (1, 1), "x"]),
    "copy": st.sampled_from([None, True, False, 1, "x"]),
}
STORAGES = {
    "plain": lambda: dlf.zeros((2, 3)),
    "read-only": lambda: dlf.as_storage(b"abc"),
    "negative strides": lambda: dlf.zeros((3, 4))[::-1],
    "empty": lambda: dlf.zeros((0, 3)),
}


@given(
    make=st.sampled_from(sorted(STORAGES)),
    keywords=st.fixed_dictionaries({}, optional=VALUES),
    order=st.permutations(KEYWORDS),
)
def test_a_capsule_does_not_depend_on_how_the_keywords_are_written(make, keywords, order):
    storage = STORAGES[make]()
    keywords = {name: keywords[name] for name in order if name in keywords}
    found = outcome(storage.__dlpack__, **keywords)
    assert outcome(storage.__dlpack__, **not_interned(keywords)) == found
    assert outcome(lambda **given: dlf.Storage.__dlpack__(storage, **given), **keywords) == found


def test_the_wrong_keywords_of_a_capsule_are_named():
    storage = dlf.zeros(3)
    with refused(TypeError, "unexpected keyword argument 'nonsense'"):
        storage.__dlpack__(stream=None, nonsense=1)
    with refused(TypeError, "takes 0 positional arguments but 1 was given"):
        storage.__dlpack__(None)


def test_the_method_of_the_class_takes_nothing_but_a_storage():
    for wrong in [(), (np.zeros(3),), (None,)]:
        kind, text = outcome(dlf.Storage.__dlpack__, *wrong)
        assert kind is TypeError
        assert "__dlpack__" in text


DATA = {
    "array": np.arange(6.0).reshape(2, 3),
    "view": np.arange(6.0)[::2],
    "storage": dlf.full((2, 3), 2.0, dims="IJ"),
    "bytes": b"abc",
    "memoryview": memoryview(bytearray(4)),
    "None": None,
    "unset": dlf.UNSET,
    "list": [1, 2],
    "swapped": np.zeros(3, ">f8"),
    "type": np.ndarray,
    "object": object(),
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_data_is_taken_and_refused_alike_by_position_and_by_name(data):
    found = outcome(lambda: dlf.as_storage(data))
    assert outcome(lambda: dlf.as_storage(data=data)) == found
    assert outcome(lambda: dlf.as_storage(data, None)) == found


SHAPES = [3, (2, 3), [4], (), (0, 2), -1, (2, -1), "ab", None, 2.5, np.int64(2), (2**40, 2**40)]


@pytest.mark.parametrize("function", [dlf.empty, dlf.zeros])
@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_a_shape_is_taken_and_refused_alike_by_position_and_by_name(function, shape):
    found = outcome(lambda: function(shape))
    assert outcome(lambda: function(shape=shape)) == found
    assert outcome(lambda: function(shape, None)) == found


@pytest.mark.parametrize("function", [dlf.as_storage, dlf.empty, dlf.zeros])
def test_a_call_without_arguments_or_with_too_many_is_refused_in_the_functions_own_words(function):
    with pytest.raises(TypeError, match=function.__name__):
        function()
    with pytest.raises(TypeError, match=function.__name__):
        function(np.zeros(3), None, None, None)


@pytest.mark.parametrize("function", [dlf.as_storage, dlf.empty, dlf.zeros])
def test_a_function_with_an_entry_is_a_function_of_the_module(function):
    assert inspect.isbuiltin(function)
    assert function.__module__ == "dlfield._core"
    assert repr(function) == f"<built-in function {function.__name__}>"
    assert pickle.loads(pickle.dumps(function)) is function
    assert "**options" in str(inspect.signature(function))
    assert "Parameters" in function.__doc__
    assert "__text_signature__" not in function.__doc__


def test_the_method_with_an_entry_is_a_method_of_the_class():
    method = dlf.Storage.__dlpack__
    assert inspect.ismethoddescriptor(method)
    assert method.__qualname__ == "Storage.__dlpack__"
    names = list(inspect.signature(method).parameters)
    assert names == ["self", *KEYWORDS]
    assert inspect.signature(dlf.zeros(3).__dlpack__).parameters["copy"].kind.name == "KEYWORD_ONLY"
