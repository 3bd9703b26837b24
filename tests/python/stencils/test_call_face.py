"""What has the face of a GT4Py stencil: what is missing is named, and `run` is what computes."""

import functools

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field, I

from support.stencils.stand_ins import SHAPE, StandIn, field

FIELDS = {"inp": field("READ"), "out": field("WRITE")}
FACE = ["backend", "options", "field_info", "parameter_info", "domain_info"]


@pytest.mark.parametrize("missing", FACE)
def test_an_attribute_that_is_missing_is_named(missing):
    stencil = StandIn(**FIELDS)
    delattr(stencil, missing)
    with pytest.raises(TypeError, match=f"got StandIn without {missing}; add what"):
        dlf.bind(stencil)


def test_a_face_without_run_is_named():
    class Unfinished:
        def __init__(self):
            self.__dict__.update(vars(StandIn(**FIELDS)))

        def __call__(self, inp, out):
            """Compute nothing."""

    with pytest.raises(TypeError, match="got Unfinished without run; add what"):
        dlf.bind(Unfinished())


def test_a_callable_with_one_attribute_of_the_face_is_a_callable():
    def double(inp, out):
        np.multiply(inp, 2, out=out)

    double.backend = "mine"
    result = np.zeros(3)
    vector = Field[I, np.float64]
    dlf.bind(double, fields={"inp": vector, "out": vector})(np.ones(3), result)
    assert result.tolist() == [2, 2, 2]


def test_run_is_called_where_times_are_asked_for_and_gets_them():
    seen = {}

    class Own(StandIn):
        def run(self, *, exec_info, **arguments):
            seen["times"], seen["arguments"] = exec_info, arguments

        def __call__(self, *_arguments, **_keywords):
            raise AssertionError("bind calls run")

    times = {}
    dlf.bind(Own(**FIELDS))(np.zeros(SHAPE), np.zeros(SHAPE), exec_info=times)
    assert seen["times"] is times
    assert seen["arguments"]["_domain_"] == SHAPE


@pytest.mark.parametrize("times", [3, [], "x"])
def test_times_that_are_no_dict_are_refused_before_anything_is_computed(times):
    stencil, out = StandIn(**FIELDS), np.zeros(SHAPE)
    for run, given in [
        (dlf.bind(stencil), {"exec_info": times}),
        (dlf.bind(functools.partial(stencil, exec_info=times)), {}),
    ]:
        with pytest.raises(TypeError, match="exec_info: expected a dict for times, got"):
            run(np.ones(SHAPE), out, **given)
    assert stencil.seen is None
