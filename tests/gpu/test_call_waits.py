"""Stencils compiled with ``device_sync=False`` are waited for where they could be met at work."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, new_stream
from support.cuda.devices import OnDevice as Foreign
from support.cuda.driver import call
from support.cuda.order import follow, seen_from
from support.cuda.places import MANAGED, Block, Plan, managed_tensor
from support.cuda.unwaited import SHAPE, VALUES, ZEROS, Unwaited, on_gpu, values_of
from support.errors import refused

PLAN = Plan(VALUES.nbytes, 0, VALUES.strides)
FLOAT = 2  # DLPack's code


@pytest.fixture(autouse=True)
def idle():
    """Leave nothing in flight to the next test."""
    yield
    call("cuCtxSynchronize")


class Managed:
    """Memory managed by CUDA, of another library, which shows it in one of three ways."""

    def __init__(self, values):
        self.block = Block(values.reshape(-1).view(np.uint8), MANAGED)
        self.on_host = self.block.bytes.view("f8").reshape(SHAPE)
        self.interface = {
            "shape": SHAPE,
            "typestr": "<f8",
            "data": (self.block.address, False),
            "version": 3,
        }

    def as_managed(self):
        return managed_tensor(self.block.address, PLAN, SHAPE, 8, FLOAT)

    def as_memory_of_a_gpu(self):
        shown = type("Shown", (), {"__cuda_array_interface__": {**self.interface, "stream": 1}})()
        shown.keeps = self
        return shown

    def kept(self):
        return dlf.as_storage(self.as_managed())

    def kept_as_memory_of_a_gpu(self):
        return dlf.as_storage(self.as_memory_of_a_gpu(), managed=None)


every_way = pytest.mark.parametrize(
    "way",
    [
        Managed.as_managed,
        Managed.as_memory_of_a_gpu,
        Managed.kept,
        Managed.kept_as_memory_of_a_gpu,
    ],
)


@every_way
def test_managed_memory_of_another_library_is_written_when_the_call_returns(way):
    out = Managed(ZEROS)
    dlf.bind(Unwaited())(on_gpu(VALUES), way(out))
    assert np.array_equal(out.on_host, VALUES)


@every_way
def test_managed_memory_of_another_library_may_be_overwritten_when_the_call_returns(way):
    inp, out = Managed(VALUES), on_gpu(ZEROS)
    dlf.bind(Unwaited())(way(inp), out)
    inp.on_host[...] = -1.0
    assert np.array_equal(values_of(out), VALUES)


def test_managed_memory_is_written_however_late_its_address_is_asked_for():
    stencil, out, got = Unwaited(), dlf.storage(ZEROS, device="gpu", managed="cuda"), []
    run = stencil.run
    stencil.run = lambda **arguments: (got.append(out.to_numpy()), run(**arguments))
    dlf.bind(stencil)(on_gpu(VALUES), out)
    assert np.array_equal(got[0], VALUES)


class Told:
    """A field of a GPU that looks at its memory when it is told that it was written, or is free."""

    def __init__(self, values):
        self.array, self.stream, self.seen = Foreign(values), new_stream(), {}

    def _look(self, when):
        return lambda: self.seen.update({when: seen_from(self.stream, self.array.address, SHAPE)})

    @property
    def __gt_data_interface__(self):
        functions = {when: self._look(when) for when in ("touch", "release")}
        return {("gpu", 0): {**self.array.interface, **functions}}


def test_functions_of_other_libraries_are_called_when_the_stencil_is_done():
    out = Told(ZEROS)
    dlf.bind(Unwaited())(on_gpu(VALUES), out)
    assert np.array_equal(out.seen["touch"], VALUES)
    assert np.array_equal(out.seen["release"], VALUES)


def test_an_exception_that_is_kept_keeps_nothing_at_work():
    out, error = Managed(ZEROS), ValueError("at work")
    with pytest.raises(ValueError, match="at work") as kept:
        dlf.bind(Unwaited(raises={"run": error}))(on_gpu(VALUES), out.as_managed())
    assert np.array_equal(out.on_host, VALUES)
    del kept


@pytest.mark.parametrize("whose", ["the producer", "the user"])
def test_a_stream_that_ends_too_early_leaves_other_memory_in_order(whose):
    stencil, on, out = Unwaited(), new_stream(), on_gpu(ZEROS)
    run = stencil.run
    stencil.run = lambda **arguments: (run(**arguments), call("cuStreamDestroy_v2", on))
    inp = Foreign(VALUES, stream=on) if whose == "the producer" else on_gpu(VALUES)
    with (
        dlf.use_stream(on if whose == "the user" else LEGACY),
        refused(dlf.DeviceUnavailable, "Stream"),
    ):
        dlf.bind(stencil)(inp, out)
    with dlf.use_stream(new_stream()):
        copy = out.copy()
    assert np.array_equal(values_of(copy), VALUES)


def test_two_storages_over_memory_without_a_stream_are_in_order():
    memory = Foreign(ZEROS)
    one, other = (dlf.as_storage(memory, managed=None) for _ in range(2))
    dlf.bind(Unwaited())(on_gpu(VALUES), one)
    with dlf.use_stream(new_stream()):
        copy = other.copy()
    assert np.array_equal(values_of(copy), VALUES)


def keeping(stencil):
    """Let a stencil keep its output; return the list."""
    run, kept = stencil.run, []
    stencil.run = lambda out, **others: (kept.append(out), run(out=out, **others))
    return kept


def test_an_array_that_the_stencil_has_kept_names_a_stream_later():
    stencil, out = Unwaited(), on_gpu(ZEROS)
    kept = keeping(stencil)
    dlf.bind(stencil)(on_gpu(VALUES), out)
    with dlf.use_stream(new_stream()):
        out[...] = on_gpu(-VALUES)
    stream = kept[0].__cuda_array_interface__["stream"]
    assert np.array_equal(
        seen_from(stream, kept[0].__cuda_array_interface__["data"][0], SHAPE), -VALUES
    )


def test_memory_that_the_stencil_has_kept_is_not_freed_while_it_is_used():
    stencil, on = Unwaited(), new_stream()
    kept = keeping(stencil)
    dlf.bind(stencil)(on_gpu(VALUES), on_gpu(ZEROS))
    interface = kept[0].__cuda_array_interface__
    follow(on, interface["stream"])
    call("cuMemsetD8Async", interface["data"][0], 0, VALUES.nbytes, on)
    kept.clear()
    gc.collect()
    call("cuCtxSynchronize")  # finds a use after the memory was freed
