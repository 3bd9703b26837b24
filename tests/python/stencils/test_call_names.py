"""A bound stencil looks like the stencil that it binds: its name, documentation and signature."""

import collections
import functools
import inspect
import types

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field

from support.errors import refused
from support.stencils.stand_ins import SHAPE, StandIn, field

READ = Field[np.float64, Access["in"]]


def smooth(inp: READ, out: Field[np.float64], /, weight: float = 0.5, *, times: int = 1):
    """Smooth a field."""


def test_a_bound_function_has_its_name_module_documentation_and_the_function():
    run = dlf.bind(smooth)
    assert (run.__name__, run.__qualname__) == ("smooth", "smooth")
    assert (run.__module__, run.__doc__) == (__name__, "Smooth a field.")
    assert run.__wrapped__ is run.stencil is smooth


def test_the_signature_is_that_of_the_arguments_and_of_the_options_of_a_call():
    expected = "(inp, out, weight=0.5, *, times=1, exec_info=None) -> None"
    assert str(inspect.signature(dlf.bind(smooth))) == expected


def test_a_stencil_that_is_told_where_to_compute_names_origin_and_domain_once():
    def placed(inp: READ, out: Field[np.float64], *, origin, domain): ...

    signature = inspect.signature(dlf.bind(placed))
    assert list(signature.parameters) == ["inp", "out", "origin", "domain", "exec_info"]


def test_the_signature_binds_the_arguments_of_a_call():
    bound = inspect.signature(dlf.bind(smooth)).bind(1, 2, weight=3, exec_info={})
    assert bound.arguments == {"inp": 1, "out": 2, "weight": 3, "exec_info": {}}


def test_a_stencil_object_has_the_name_of_its_definition():
    run = dlf.bind(StandIn(inp=field("READ"), out=field("WRITE")))
    assert run.__name__ == "stand_in"
    assert list(inspect.signature(run).parameters)[:2] == ["inp", "out"]


def test_a_partial_has_the_name_of_the_function_in_it():
    run = dlf.bind(functools.partial(smooth, weight=0.25))
    assert run.__name__ == "smooth"
    assert run.__wrapped__ is smooth


def test_the_class_keeps_its_own_documentation():
    assert dlf.BoundStencil.__doc__.startswith("A stencil that takes arrays of any framework.")
    assert dlf.BoundStencil.__module__ == "dlfield"


def test_a_domain_may_be_a_dict_by_axis():
    stencil = StandIn(inp=field("READ"), out=field("WRITE"))
    arrays = np.zeros(SHAPE), np.zeros(SHAPE)
    dlf.bind(stencil)(*arrays, domain={"K": 2, "I": 3, "J": 1}, origin={"J": 2, "I": 0, "K": 1})
    assert stencil.domain == (3, 1, 2)
    assert stencil.origin == {"inp": (0, 2, 1), "out": (0, 2, 1)}


def test_a_dict_that_changes_while_it_is_read_counts_as_it_was():
    class Clears:
        def __index__(self):
            domain.clear()
            return 3

    stencil, domain = (
        StandIn(inp=field("READ"), out=field("WRITE")),
        {"J": 1, "I": Clears(), "K": 2},
    )
    dlf.bind(stencil)(np.zeros(SHAPE), np.zeros(SHAPE), domain=domain)
    assert (stencil.domain, domain) == ((3, 1, 2), {})


def test_axes_of_a_domain_and_an_origin_may_have_the_users_names():
    stencil = StandIn(inp=field("READ"), out=field("WRITE", axes="IJ"))
    run = dlf.bind(stencil, dims={"lon": "I", "lat": "J", "level": "K"})
    arrays = np.zeros(SHAPE), np.zeros(SHAPE[:2])
    origin = {"inp": {"level": 1, "lon": 0, "lat": 2}, "_all_": {"lon": 0, "lat": 1, "level": 0}}
    run(*arrays, domain={"lon": 3, "lat": 1, "level": 2}, origin=origin)
    assert stencil.domain == (3, 1, 2)
    assert stencil.origin == {"inp": (0, 2, 1), "out": (0, 1)}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"domain": {"I": 1, "J": 1}}, r"domain: expected a number for 'K', .* got \('I', 'J'\)"),
        ({"domain": {"I": 1, "J": 1, "K": 1, "L": 1}}, r"domain: expected .* got .*'L'"),
        ({"origin": {"inp": {"I": 1, "J": 1}}}, r"origin of 'inp': expected a number for 'K'"),
        ({"origin": {"I": 1, "J": 1}}, r"origin: expected a number for 'K'"),
    ],
)
def test_a_dict_that_lacks_an_axis_or_has_another_is_refused(options, text):
    run = dlf.bind(StandIn(inp=field("READ"), out=field("WRITE")))
    with pytest.raises(ValueError, match=text):
        run(np.zeros(SHAPE), np.zeros(SHAPE), **options)


@pytest.mark.parametrize("kind", [types.MappingProxyType, collections.UserDict])
def test_a_domain_and_an_origin_may_be_any_mapping(kind):
    stencil = StandIn(inp=field("READ"), out=field("WRITE"))
    run, arrays = dlf.bind(stencil), (np.zeros(SHAPE), np.zeros(SHAPE))
    run(*arrays, domain=kind({"K": 2, "I": 3, "J": 1}), origin=kind({"inp": (0, 1, 0)}))
    assert (stencil.domain, stencil.origin["inp"]) == ((3, 1, 2), (0, 1, 0))


def test_an_origin_is_named_by_texts_alone():
    class Named:
        def __str__(self):
            return "inp"

    run = dlf.bind(StandIn(inp=field("READ"), out=field("WRITE")))
    with refused(ValueError, "origin: expected names of fields or '_all_', got"):
        run(np.zeros(SHAPE), np.zeros(SHAPE), origin={Named(): (1, 1, 0)}, domain=(1, 1, 1))


def test_an_option_that_a_method_does_not_take_is_refused_as_such():
    run = dlf.bind(StandIn(inp=field("READ"), out=field("WRITE")))
    with refused(TypeError, "expected no origin here, got one"):
        run.arguments(np.zeros(SHAPE), np.zeros(SHAPE), origin=(1, 1, 0))
