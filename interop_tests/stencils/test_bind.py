"""Bound stencils: what a stencil sees of its arguments, and what a call keeps and returns."""

import warnings
from contextlib import nullcontext

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library
from support.owners import assert_freed_once
from support.stencils.arguments import EVERY
from support.stencils.cartesian import (
    SKEWED_HALO,
    mixed_arguments,
    mixed_reference,
    skewed_reference,
)
from support.stencils.recorder import Recorder

SHAPE = (5, 6, 4)
VALUES = np.arange(5 * 6 * 4.0).reshape(SHAPE) ** 2
ORIGIN = (0, 2, 0)


def output():
    """Return a storage whose halo says where `skewed` starts and how far it goes."""
    return dlf.full(SHAPE, -1.0, dims="IJK", halo=SKEWED_HALO)


@pytest.mark.parametrize("producer", EVERY, ids=str)
def test_a_stencil_sees_the_producers_own_memory_in_the_order_of_its_dims(compiled, producer):
    recorder, held = Recorder(compiled("skewed", "numpy")), producer.hold(VALUES)
    dlf.bind(recorder, dims=producer.dims)(inp=held.array, out=output())
    seen = recorder.calls[0].arguments["inp"]
    assert seen.ctypes.data == held.address
    assert np.array_equal(seen, VALUES)


def test_a_call_holds_no_argument_afterwards(compiled):
    run = dlf.bind(compiled("split", "gt:cpu_kfirst"))

    def call(inp):
        run(inp, np.zeros(inp.shape), np.zeros(inp.shape))
        return inp

    assert_freed_once(np.from_dlpack, lambda array: array[:, :, None], call)


def test_a_call_that_is_refused_holds_no_argument_afterwards(compiled):
    run, out = dlf.bind(compiled("split", "gt:cpu_kfirst")), np.zeros((4, 3, 1))

    def call(inp):
        with pytest.raises(BufferError):
            run(inp, out, out)
        return inp

    assert_freed_once(np.from_dlpack, lambda array: array[:, :, None], call)


@pytest.mark.parametrize(("kind", "writable"), [("gt:cpu_kfirst", True), ("numpy", False)])
def test_only_a_compiled_backend_is_shown_a_read_only_input_as_writable(compiled, kind, writable):
    shown = []

    class Watching(Recorder):
        def run(self, **arguments):
            shown.append(arguments["inp"].flags.writeable)

    inp = VALUES.copy()
    inp.flags.writeable = False
    dlf.bind(Watching(compiled("skewed", "numpy"), backend=kind))(inp=inp, out=output())
    assert (shown, inp.flags.writeable) == ([writable], False)


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_shown_as_writable_is_not_once_the_run_has_ended(compiled, fails):
    class Keeping(Recorder):
        def run(self, **arguments):
            super().run(**arguments)
            if fails:
                raise ArithmeticError

    recorder = Keeping(compiled("skewed", "numpy"))
    inp = VALUES.copy()
    inp.flags.writeable = False
    with pytest.raises(ArithmeticError) if fails else nullcontext():
        dlf.bind(recorder)(inp=inp, out=output())
    kept = recorder.calls[0].arguments["inp"]
    assert (kept.ctypes.data, kept.flags.writeable) == (inp.ctypes.data, False)


def test_an_array_whose_shape_is_changed_by_acquire_goes_in_as_it_was_checked(compiled):
    recorder, out = Recorder(compiled("skewed", "numpy")), np.zeros(VALUES.shape)
    shape = out.shape

    class Meddling:
        """Changes another argument when it is acquired."""

        def acquire(self):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5
                out.shape = (1, 1, out.size)

        @property
        def __gt_data_interface__(self):
            return {None: {**VALUES.__array_interface__, "acquire": self.acquire}}

    dlf.bind(recorder)(inp=Meddling(), out=out, origin=(0, 2, 0))
    assert (out.ndim, recorder.calls[0].arguments["out"].shape) == (3, shape)


def test_arguments_may_be_positional(compiled, backend):
    given = mixed_arguments()
    expected = mixed_reference(**given, scale=3.0)
    dlf.bind(compiled("mixed", backend))(*given.values(), None, scale=3.0)
    assert np.array_equal(given["field"], expected)


def test_a_scalar_that_is_left_out_takes_the_default_of_the_definition(compiled):
    field = np.full((4, 3, 2), 5.0)
    dlf.bind(compiled("scaled", "numpy"))(field)
    assert np.array_equal(field, np.full((4, 3, 2), 10.0))


def test_exec_info_gets_the_times_of_the_stencil_and_the_result_is_the_same(compiled, backend):
    out, info = output(), {}
    dlf.bind(compiled("skewed", backend))(inp=VALUES, out=out, exec_info=info)
    assert info["run_end_time"] >= info["run_start_time"]
    assert np.array_equal(out.to_numpy(), skewed_reference(VALUES))


def test_exec_info_works_with_an_immutable_input(compiled, backend):
    jnp, out = library("jax.numpy"), output()
    dlf.bind(compiled("skewed", backend))(inp=jnp.array(VALUES), out=out, exec_info={})
    assert np.array_equal(out.to_numpy(), skewed_reference(VALUES))


def test_exec_info_works_with_every_kind_of_field(compiled, backend):
    given, info = mixed_arguments(), {}
    expected = mixed_reference(**given, scale=3.0)
    dlf.bind(compiled("mixed", backend))(**given, scale=3.0, exec_info=info)
    assert np.array_equal(given["field"], expected)


def test_the_order_of_the_fields_of_a_stencil_is_that_of_its_definition(compiled):
    run = dlf.bind(compiled("mixed", "numpy"))
    assert run.argument_names == ("field", "plane", "profile", "pair", "spare", "scale")


def test_outputs_that_interleave_without_overlap_are_both_written(compiled, backend):
    whole, inp = np.zeros((4, 3, 8)), np.full((4, 3, 4), 5.0)
    dlf.bind(compiled("split", backend))(inp, whole[:, :, ::2], whole[:, :, 1::2])
    assert whole[0, 0].tolist() == [6.0, 4.0] * 4


def test_a_field_may_be_input_and_output_at_once(compiled, backend):
    field = np.full((4, 3, 2), 5.0)
    dlf.bind(compiled("split", backend))(field, field, np.zeros((4, 3, 2)))
    assert np.array_equal(field, np.full((4, 3, 2), 6.0))


def test_what_a_stencil_raises_reaches_the_caller_unchanged(compiled):
    class Failing(Recorder):
        def run(self, **_keywords):
            raise ArithmeticError("the stencil's own")

    with pytest.raises(ArithmeticError, match="the stencil's own"):
        dlf.bind(Failing(compiled("skewed", "numpy")))(inp=VALUES, out=output())
