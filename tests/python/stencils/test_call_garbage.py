"""Cycles through bound stencils: what the garbage collector finds and frees."""

import gc
import weakref

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field

from support.garbage import libraries_are_not_searched as libraries_are_not_searched
from support.stencils.stand_ins import SHAPE, GpuStandIn, StandIn, Waiting, field

READ = Field[np.float64, Access["in"]]


class Model:
    """Binds a method of its own, and keeps what was bound beside its fields."""

    def __init__(self):
        self.state = np.zeros(SHAPE)
        self.run = dlf.bind(self.step)

    def step(self, inp: READ, state: Field[np.float64], scale: float = 1.0):
        state += scale * inp


def is_freed(make):
    """Return whether what `make` gives is freed by a collection, once nobody holds it."""
    watch = weakref.ref(make())
    gc.collect()
    return watch() is None


def test_a_model_that_keeps_a_bound_method_of_its_own_is_freed():
    assert is_freed(Model)


def test_a_model_that_has_called_its_bound_method_is_freed():
    def called():
        model = Model()
        model.run(np.ones(SHAPE), model.state)
        model.run.functional(np.ones(SHAPE), state=model.state)
        dlf.explain(model.run, np.ones(SHAPE), model.state)
        return model

    assert is_freed(called)


@pytest.mark.parametrize("kind", [StandIn, Waiting, GpuStandIn])
def test_a_stencil_that_keeps_what_binds_it_is_freed(kind):
    def cycle():
        stencil = kind(inp=field("READ"), out=field("WRITE"))
        stencil.bound = dlf.bind(stencil)
        return stencil

    assert is_freed(cycle)


def test_a_default_that_keeps_the_bound_stencil_is_freed():
    class Options:
        pass

    def cycle():
        options = Options()

        def step(inp: READ, kept=options): ...

        options.run = dlf.bind(step)
        return options

    assert is_freed(cycle)


def test_a_plan_that_keeps_itself_is_freed():
    class Kept(dict):
        pass

    def cycle():
        plan = dlf.explain(Model().run, np.ones(SHAPE), np.zeros(SHAPE)).plan
        kept = Kept(plan=plan)
        plan.fields["kept"] = kept
        return kept

    assert is_freed(cycle)


def test_a_bound_stencil_that_is_in_use_is_not_freed():
    model = Model()
    run, watch = model.run, weakref.ref(model)
    del model
    gc.collect()
    state = np.zeros(SHAPE)
    run(np.ones(SHAPE), state)
    assert watch() is not None
    assert state.all()
