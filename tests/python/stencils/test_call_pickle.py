"""Bound stencils are copied and pickled where their stencil is."""

import copy
import pickle

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field

from support.stencils.stand_ins import SHAPE, column

READ = Field[np.float64, Access["in"]]


def add(inp: READ, out: Field[np.float64], more: float = 1.0):
    out[...] = inp + more


def bare(inp, out):
    out[...] = inp + 1.0


class Model:
    """Binds a method of its own."""

    def __init__(self):
        self.more = 1.0
        self.run = dlf.bind(self.step)

    def step(self, inp: READ, out: Field[np.float64]):
        out[...] = inp + self.more


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


WAYS = pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])


def result_of(run, inp=None):
    out = np.zeros(SHAPE)
    run(np.ones(SHAPE) if inp is None else inp, out)
    return out


@WAYS
def test_a_bound_function_computes_again(again):
    run = again(dlf.bind(add))
    assert run.stencil is add
    assert (result_of(run) == 2.0).all()


@WAYS
def test_the_options_of_bind_go_along(again):
    fields = {"inp": READ, "out": Field[np.float64]}
    options = {"dims": {"lon": "I"}, "fields": fields, "backend": "gt:cpu_ifirst"}
    run = again(dlf.bind(bare, **options, on_mismatch={"memory": "copy"}))
    large = (32, 32, 32)
    with (
        pytest.warns(dlf.MemoryCopyWarning),
        pytest.warns(dlf.LayoutWarning, match="gt:cpu_ifirst"),
    ):
        run(column(large, value=1.0), out := np.zeros(large))
    assert (out == 2.0).all()
    labelled = dlf.ones(SHAPE, dims=("lon", "J", "K"))
    assert (result_of(run, labelled) == 2.0).all()


@pytest.mark.parametrize("again", [pickled, copy.deepcopy])
def test_a_model_and_the_method_that_it_has_bound_stay_together(again):
    model = again(Model())
    model.more = 2.0
    assert (result_of(model.run) == 3.0).all()


def test_a_stencil_that_cannot_be_pickled_gives_its_own_error():
    run = dlf.bind(lambda inp: None, fields={"inp": READ})
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(run)
