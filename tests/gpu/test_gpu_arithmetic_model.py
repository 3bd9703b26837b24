"""Universal functions of random storages of all classes, against a model of where they compute.

The model is the draft of GDP-3, "Mixing Devices", as docs/arithmetic.md has it. Names and labels
are those of `support.operands`, values are NumPy's.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.cuda.buffers import buffers, values
from support.cuda.devices import OnDevice
from support.cuda.driver import REAL
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER

pytestmark = pytest.mark.usefixtures("cupy")

#: Of CuPy's functions those whose types are NumPy's whatever its version; the double has all.
COMMON = "add subtract multiply maximum less equal absolute sqrt true_divide divmod"
RAISING = {"power", "spacing"}  # NumPy raises for values; CuPy lacks it
UFUNCS = [
    one
    for one in rules.UFUNCS
    if (one.__name__ in COMMON.split() if REAL else one.__name__ not in RAISING)
]

HOST_ONLY = ("CPUStorage", "array")
GPU_ONLY = ("GPUStorage", "foreign")
PAIR, CUDA = "SoftwareManagedGPUStorage", "CUDAManagedGPUStorage"
STORAGES = ("CPUStorage", "GPUStorage", PAIR, CUDA)
MANAGED = {"GPUStorage": None, PAIR: "gt4py", CUDA: "cuda"}


@dataclass
class Operand:
    """An operand, what it is, and a storage of the host with its values and labels."""

    kind: str
    object: Any
    twin: Any
    state: Any = None

    @property
    def is_storage(self):
        return self.kind in STORAGES

    @property
    def is_on_gpu(self):
        """Whether the draft counts it as an array of the GPU."""
        newer = self.kind == PAIR and self.state != HOST_NEWER
        return newer or self.kind in (*GPU_ONLY, CUDA)

    @property
    def reaches(self):
        """The sides where its values can be had without a copy by the user."""
        if self.kind == "number":
            return {"host", "gpu"}
        on_one = "host" if self.kind in HOST_ONLY else "gpu" if self.kind in GPU_ONLY else None
        return {on_one} if on_one else {"host", "gpu"}

    def on(self, side, *, written=False):
        """What the state of a pair is once one side was read, or written."""
        if self.kind != PAIR:
            return None
        if written:
            return HOST_NEWER if side == "host" else DEVICE_NEWER
        stale = DEVICE_NEWER if side == "host" else HOST_NEWER
        return CLEAN if self.state == stale else self.state


def expected_place(inputs, outputs):
    """The class that decides and the side that computes; None for a side if that is refused."""
    storages = [one for one in [*inputs, *outputs] if one.is_storage]
    in_step = [one for one in storages if one.kind in (PAIR, CUDA)]
    decides = (in_step or storages)[0].kind
    on_gpu = {
        "CPUStorage": False,
        "GPUStorage": True,
        PAIR: any(one.is_on_gpu for one in inputs),
        CUDA: all("gpu" in one.reaches for one in inputs),
    }[decides]
    side = "gpu" if on_gpu else "host"
    return decides, side if all(side in one.reaches for one in [*inputs, *outputs]) else None


def put(draw, kind, twin):
    """An operand of a kind with the values and labels of a storage of the host."""
    array = twin.to_numpy()
    if kind == "CPUStorage":
        return Operand(kind, dlf.storage(twin), twin)
    if kind == "array":  # one without dimensions is a number
        return Operand(kind if array.ndim else "number", array.copy(), twin)
    if kind == "foreign":
        return Operand(kind, OnDevice(array), twin)
    if kind != PAIR:
        return Operand(kind, dlf.storage(twin, device="gpu", managed=MANAGED[kind]), twin)
    state = draw(st.sampled_from([CLEAN, HOST_NEWER, DEVICE_NEWER]))
    pair = dlf.zeros_like(twin, device="gpu", managed="gt4py")
    pair[...] = dlf.storage(twin, device="gpu", managed=None)  # newer on the device
    if state != DEVICE_NEWER:
        pair.synchronize()
    if state == HOST_NEWER:
        with pair.host() as there:
            there[...] = array
        with pair.device() as there:
            there[...] = 0
        pair.sync_state.state = HOST_NEWER
    return Operand(kind, pair, twin, state)


@st.composite
def calls(draw, named):
    ufunc = draw(st.sampled_from(UFUNCS))
    names = draw(st.permutations(rules.NAMES))[:2]
    extents = {name: draw(st.integers(0, 3)) for name in names}
    kinds = STORAGES if named else (*STORAGES, "array", "foreign", "number")
    inputs = []
    for _ in range(ufunc.nin):
        kind = draw(st.sampled_from(kinds))
        if kind == "number":
            number = draw(st.sampled_from([2, 1.5, True, np.float32(3)]))
            inputs.append(Operand(kind, number, number))
        else:
            inputs.append(put(draw, kind, draw(rules.storages(extents, named=named))))
    return ufunc, inputs


def twins(operands):
    return [one.twin for one in operands if isinstance(one.twin, dlf.Storage)]


def values_of_numpy(ufunc, inputs, dims):
    """What NumPy gives for the values by name, as a tuple; None if it refuses the types."""
    arrays = [
        rules.aligned(one.twin, dims) if isinstance(one.twin, dlf.Storage) else one.twin
        for one in inputs
    ]
    try:
        made = ufunc(*arrays)
    except TypeError:
        return None
    made = tuple(map(np.asarray, made if isinstance(made, tuple) else (made,)))
    return None if any(one.dtype == object for one in made) else made


def states(operands):
    return [one.object.sync_state.state if one.kind == PAIR else None for one in operands]


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by position"])
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_every_class_computes_where_the_model_says(named, data):
    ufunc, inputs = data.draw(calls(named=named))
    if not any(one.is_storage for one in inputs):
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        dims = rules.expected_dims(twins(inputs)) if named else ()
        expected = None if dims is None else values_of_numpy(ufunc, inputs, dims)
        if expected is None:
            with pytest.raises((ValueError, TypeError, BufferError)):
                ufunc(*[one.object for one in inputs])
            return
        fits = all(is_in_order(one.dims, dims) for one in twins(inputs))
        outputs = draw_outputs(data.draw, expected, dims) if fits else []
        check(ufunc, inputs, outputs, expected, dims)


def is_in_order(own, dims):
    """Whether an output with these dims takes an operand."""
    return list(own or ()) == [name for name in dims if name in (own or ())]


def draw_outputs(draw, expected, dims):
    """Storages of any class for the results, or none."""
    if not draw(st.booleans()):
        return []
    made = [dlf.zeros(one.shape, one.dtype, dims=dims or None) for one in expected]
    return [put(draw, draw(st.sampled_from(STORAGES)), one) for one in made]


def check(ufunc, inputs, outputs, expected, dims):
    decides, side = expected_place(inputs, outputs)
    before = states([*inputs, *outputs])
    out = {"out": tuple(one.object for one in outputs)} if outputs else {}
    if side is None:
        with pytest.raises(BufferError, match=r"where it computes, got .*; copy it with"):
            ufunc(*[one.object for one in inputs], **out)
        assert states([*inputs, *outputs]) == before
        return
    made = ufunc(*[one.object for one in inputs], **out)
    made = made if isinstance(made, tuple) else (made,)
    assert states(inputs) == [one.on(side) for one in inputs]
    assert states(outputs) == [one.on(side, written=True) for one in outputs]
    for at, (one, wanted) in enumerate(zip(made, expected, strict=True)):
        assert one.dtype == wanted.dtype
        if outputs:
            assert one is outputs[at].object
        else:
            check_made(one, inputs, decides, side, dims)
        compare(newer_values(one, side), wanted)


def check_made(one, inputs, decides, side, dims):
    assert type(one).__name__ == decides
    if decides == PAIR:
        assert one.sync_state.state == (HOST_NEWER if side == "host" else DEVICE_NEWER)
    labelled = [one.twin for one in inputs if one.is_storage]
    if len(labelled) < len(twins(inputs)):
        return  # arrays without labels may have more dimensions; support.operands knows none
    assert (one.dims or ()) == dims
    assert one.halo == rules.expected_halo(labelled, dims, one.shape)
    assert one.layout == rules.expected_layout(labelled, dims, one.shape)
    origin = rules.expected_origin(labelled, dims, one.shape)
    assert getattr(one, "default_origin", None) == origin


def newer_values(storage, side):
    """The values on the side that computed."""
    if type(storage).__name__ != PAIR:
        return values(storage)
    host, device = buffers(storage)
    return host if side == "host" else device


def compare(found, wanted):
    if REAL:
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)
