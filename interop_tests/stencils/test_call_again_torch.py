"""Calls that come again with tensors: prepared for them, and right whatever has changed."""

import gc
import os
import weakref

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.errors import refused
from support.optional import library
from support.stencils.stand_ins import SHAPE, StandIn, field

torch = library("torch")

ROLES = {"a": field("READ"), "b": field("WRITE"), "c": field("READ_WRITE")}

short_way = pytest.mark.skipif(
    os.environ.get("DLFIELD_SHORT_WAYS") == "0", reason="that is a short way"
)


class Own(torch.Tensor):
    """A subclass that changes nothing."""


def made(**options):
    return torch.zeros(SHAPE, **{"dtype": torch.float64, **options})


def pending():
    return torch.zeros(SHAPE, dtype=torch.complex128).conj().imag


def misplaced():
    whole = np.zeros(61)
    return torch.from_numpy(whole[1:].reshape(SHAPE))


HOWS = {
    "the same": made,
    "another one": lambda: made() + 1,
    "transposed": lambda: torch.zeros(SHAPE[::-1], dtype=torch.float64).permute(2, 1, 0),
    "a part": lambda: torch.zeros((9, 9, 9), dtype=torch.float64)[1:4, 2:6, 3:8],
    "shorter": lambda: made()[:2],
    "expanded": lambda: made()[:1].expand(SHAPE),
    "8 bytes further": misplaced,
    "single precision": lambda: made(dtype=torch.float32),
    "requires a gradient": lambda: made(requires_grad=True),
    "pending negation": pending,
    "sparse": lambda: made().to_sparse(),
    "without memory": lambda: made(device="meta"),
    "a parameter": lambda: torch.nn.Parameter(made(), requires_grad=False),
    "of a subclass": lambda: made().as_subclass(Own),
    "an array": lambda: np.zeros(SHAPE),
    "a read-only array": lambda: np.broadcast_to(np.zeros(1), SHAPE),
    "a storage": lambda: dlf.zeros(SHAPE),
    "a storage with names": lambda: dlf.zeros(SHAPE, dims="IJK"),
    "a storage in another order": lambda: dlf.zeros(SHAPE[::-1], dims="KJI"),
}


def outcome(run, stencil, arguments):
    """Return what `run` was given, or what was raised."""
    stencil.seen = None
    try:
        run(*arguments)
    except (BufferError, ValueError, TypeError, RuntimeError) as error:
        return type(error), str(error)
    arrays = stencil.seen.values()
    told = [(one.ctypes.data, one.shape, one.strides, one.flags.writeable) for one in arrays]
    return told, stencil.origin, stencil.domain


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(sorted(HOWS)), min_size=3, max_size=3),
            st.booleans(),
            st.booleans(),
        ),
        max_size=5,
    )
)
def test_a_call_that_comes_again_yields_and_refuses_what_a_first_call_does(series):
    stencil, fresh = StandIn(**ROLES), StandIn(**ROLES)
    run = dlf.bind(stencil)
    for hows, twice, records in series:
        arguments = [HOWS[how]() for how in hows]
        if twice:
            arguments[2] = arguments[0]
        with torch.set_grad_enabled(records):
            first = outcome(dlf.bind(fresh), fresh, arguments)
            for _ in range(3):
                assert outcome(run, stencil, arguments) == first


def again(arguments, **options):
    """Bind a stencil and call it until the call is prepared."""
    stencil = StandIn(**options, **ROLES)
    run = dlf.bind(stencil)
    for _ in range(3):
        run(*arguments)
    return stencil, run


@short_way
def test_a_stencil_gets_the_array_that_came_beside_tensors_itself():
    array = np.zeros(SHAPE)
    stencil, run = again([made(), array, made()])
    run(made(), array, made())
    assert stencil.seen["b"] is array


def test_torch_is_told_once_of_each_tensor_that_a_call_has_written():
    _, run = again([made() for _ in ROLES])
    tensors = [made() for _ in ROLES]
    before = [one._version for one in tensors]
    run(*tensors)
    assert [one._version for one in tensors] == [before[0], before[1] + 1, before[2] + 1]


def test_torch_is_told_of_a_tensor_that_a_stencil_wrote_before_it_failed():
    tensors = [made() for _ in ROLES]
    stencil, run = again(tensors)
    stencil.raises["run"] = ArithmeticError("of the stencil")
    before = tensors[1]._version
    with pytest.raises(ArithmeticError, match="of the stencil"):
        run(*tensors)
    assert tensors[1]._version == before + 1


def test_a_tensor_that_has_come_to_require_a_gradient_is_refused():
    tensors = [made() for _ in ROLES]
    _, run = again(tensors)
    tensors[0].requires_grad_()
    with refused(BufferError, "argument 'a': torch tensor: expected one without a gradient"):
        run(*tensors)


def test_an_output_that_overlaps_an_input_is_refused_after_calls_without_overlap():
    whole = torch.zeros((4, *SHAPE[1:]), dtype=torch.float64)
    tensors = [made() for _ in ROLES]
    _, run = again(tensors)
    with refused(BufferError, "'a' and 'b'", "overlap"):
        run(whole[:3], whole[1:], tensors[2])


def test_of_two_arguments_that_are_refused_the_first_is_named():
    _, run = again([np.zeros(SHAPE), made(), made()])
    with refused(BufferError, "argument 'a': torch tensor: expected one without a gradient"):
        run(made(requires_grad=True), made(device="meta"), made())


class Meddling(torch.overrides.TorchFunctionMode):
    """Does something at the first question that torch is asked."""

    def __init__(self, meddle):
        super().__init__()
        self.meddle = meddle

    def __torch_function__(self, func, _types, args=(), kwargs=None):
        meddle, self.meddle = self.meddle, lambda: None
        meddle()
        return func(*args, **(kwargs or {}))


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize(
    "at", [pytest.param(0, id="before"), pytest.param(2, id="behind", marks=short_way)]
)
def test_an_array_that_changes_while_a_tensor_is_imported_is_not_taken_for_what_it_was(at):
    array = np.zeros(SHAPE)
    arguments = [np.zeros(SHAPE), array, np.zeros(SHAPE)]
    arguments[at] = made()
    stencil, run = again(arguments)

    def reshape():
        array.shape = SHAPE[::-1]

    with Meddling(reshape):
        got = outcome(run, stencil, arguments)
    fresh = StandIn(**ROLES)
    assert got == outcome(dlf.bind(fresh), fresh, arguments)


def test_what_torch_raises_passes_with_the_name_of_the_argument():
    tensors = [made() for _ in ROLES]
    _, run = again(tensors)

    def interrupt():
        raise KeyboardInterrupt("of the user")

    with Meddling(interrupt), pytest.raises(KeyboardInterrupt, match="of the user") as caught:
        run(*tensors)
    assert caught.value.__notes__ == ["while dlfield imported argument 'a'"]


def test_a_bound_stencil_keeps_no_tensor_and_no_memory_of_its_calls():
    memory = [np.zeros(SHAPE) for _ in ROLES]
    tensors = [torch.from_numpy(one) for one in memory]
    stencil, run = again(tensors)
    stencil.seen = None
    gone = [weakref.ref(one) for one in (*tensors, *memory)]
    del tensors, memory
    gc.collect()
    assert [one() for one in gone] == [None] * 6
    del run
