"""What a bound stencil lacks is the stencil's, and what runs a stencil is checked."""

import copy

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.stencils.stand_ins import SHAPE, StandIn, field


class Own(StandIn):
    _gt_id_ = "a1b2"

    def __call__(self, *, validate_args=True, **arguments):
        super().__call__(**arguments)


def bound(**options):
    return dlf.bind(Own(inp=field("READ"), out=field("WRITE")), **options)


@pytest.mark.parametrize("name", ["field_info", "options", "backend", "parameter_info", "_gt_id_"])
def test_an_attribute_that_it_lacks_is_the_stencils(name):
    run = bound()
    assert getattr(run, name) is getattr(run.stencil, name)


def test_an_attribute_that_neither_has_is_missing():
    with refused(AttributeError, "'BoundStencil' object has no attribute 'colour'"):
        _ = bound().colour


def test_a_special_method_of_the_stencil_is_not_that_of_the_bound_one():
    run = bound()
    run.stencil.__deepcopy__ = lambda memo: 1 / 0
    run.stencil.__dlpack__ = 1
    assert not hasattr(run, "__dlpack__")
    assert isinstance(copy.copy(run), dlf._core.BoundStencil)


def test_run_computes_as_the_stencils_own():
    run, out = bound(), np.zeros(SHAPE)
    run.run(_domain_=(1, 2, 3), _origin_={"inp": (1, 1, 0), "out": (0, 0, 0)}, exec_info=None,
            inp=np.ones(SHAPE), out=out)  # fmt: skip
    assert run.stencil.seen["out"] is out
    assert (run.stencil.domain, run.stencil.origin["inp"]) == ((1, 2, 3), (1, 1, 0))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"inp": np.ones(SHAPE, dtype="f4")}, "argument 'inp': expected dtype float64"),
        ({"_domain_": (9, 4, 5)}, "argument 'inp': expected points 0 to 9 along I"),
    ],
)
def test_run_is_checked_as_a_call(change, text):
    run, origin = bound(), dict.fromkeys(("inp", "out"), (0, 0, 0))
    given = {"inp": np.ones(SHAPE), "out": np.zeros(SHAPE), "_domain_": SHAPE, "_origin_": origin}
    with refused(ValueError, text):
        run.run(**given | change)
    assert run.stencil.seen is None


@pytest.mark.parametrize("value", [True, False, None])
def test_validate_args_is_taken_and_changes_nothing(value):
    run = bound()
    run(np.ones(SHAPE), np.zeros(SHAPE), validate_args=value)
    with refused(ValueError, "expected dtype float64"):
        run(np.ones(SHAPE, dtype="f4"), np.zeros(SHAPE), validate_args=value)


def test_validate_args_is_an_option_of_stencils_only():
    run = dlf.bind(lambda out: None, fields={"out": dlf.annotations.Field[float]})
    with refused(TypeError, "got 'validate_args'; the arguments are out"):
        run(np.zeros(SHAPE), validate_args=True)


def test_what_is_wrong_stands_before_a_long_list_of_arguments():
    names = [f"field_{number}" for number in range(33)]
    run = dlf.bind(StandIn(**dict.fromkeys(names, field("READ"))))
    with pytest.raises(TypeError) as caught:
        run(colour=1)
    assert str(caught.value).startswith("stand_in: expected one of its arguments, origin, domain")
    assert str(caught.value).index("got 'colour'") < str(caught.value).index("field_0")
