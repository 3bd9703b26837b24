"""What is read of a plain callable, how it is then run, and what is refused."""

# ruff: noqa: F403, F405 - annotations are made to be imported with a star

import functools
import inspect
import re
import time
from typing import Any

import numpy as np
import pytest
from dlfield.annotations import *
from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar
from dlfield.stencils.footprint import FieldFootprint, Span
from dlfield.stencils.plain import CallableRun, declare

In, Out = Field[float, Access["in"]], Field[float, Access["out"]]


def run(declaration, *, domain=(1, 1, 1), origin=None, exec_info=None, **arguments):
    """Run as `bind` does."""
    given = {"_domain_": domain, "_origin_": origin or {}, "exec_info": exec_info}
    return declaration.run.run(**given, **arguments)


def only_field(annotation):
    [field] = declare(lambda field: None, fields={"field": annotation}).fields
    return field


def only_scalar(function, **options):
    [scalar] = declare(function, **options).scalars
    return scalar


def copy(inp: In, out: Out):
    """Copies a field, and gives something back that nobody wants."""
    out[...] = inp
    return out


class Scaled:
    """Has state and is called."""

    factor = 3

    def __call__(self, inp: In, out: Out):
        out[...] = self.factor * inp


def test_a_function_is_declared_by_its_annotations():
    made = declare(copy)
    assert (made.name, made.order, made.positional, made.scalars) == ("copy", ["inp", "out"], 2, [])
    assert [one.access for one in made.fields] == ["read", "write"]
    assert isinstance(made, Declaration)


def test_a_field_is_declared_in_full():
    annotation = Field[
        IJ, (np.float32, (3,)), LayoutMap[2, 1, 0], Alignment[8], Boundary[(1, 2), (3, 4)]
    ]
    expected = DeclaredField("field", ("I", "J", "0"), np.dtype("float32"), "update", (3,))
    expected = expected.__dict__ | {"layout": (2, 1, 0)}
    assert only_field(annotation).__dict__ == expected | {"alignment": 8}


def test_a_boundary_is_the_footprint_of_what_is_read_and_of_what_is_written():
    fields = {"inp": In, "out": Field[IJ, float, Access["out"], Boundary[(1, 2), (0, 0)]]}
    footprint = declare(copy, fields=fields).footprint
    spans = (Span(1, 2), Span())
    assert footprint.fields["out"] == FieldFootprint(None, spans)
    assert footprint.fields["inp"] == FieldFootprint((Span(),) * 3, None, pointwise=True)


def test_a_preset_is_declared_beside_what_overrides_it():
    field = only_field(Field[float, DefaultParameters["F"], Alignment[4]])
    assert (field.preset, field.alignment, field.layout) == ("F", 4, None)


@pytest.mark.parametrize(("said", "meant"), [("in", "read"), ("out", "write"), ("inout", "update")])
def test_each_access_has_its_name_in_the_declaration(said, meant):
    assert only_field(Field[float, Access[said]]).access == meant


def test_fields_override_annotations_and_name_parameters_that_have_none():
    def scale(inp, out: In, factor: float):
        """Without an annotation of the first."""

    declaration = declare(scale, fields={"inp": Field[np.float32], "out": Out})
    assert [one.name for one in declaration.fields] == ["inp", "out"]
    assert [one.access for one in declaration.fields] == ["update", "write"]
    assert [one.name for one in declaration.scalars] == ["factor"]


@pytest.mark.parametrize(
    ("annotation", "dtype"),
    [
        *((float, "float64"), (int, "int64"), (bool, "bool"), (complex, "complex128")),
        *((np.float32, "float32"), (np.dtype("int8"), "int8"), ("np.uint16", "uint16")),
        *((Any, None), (object, None), (str, None), (None, None), (np.floating, None)),
        *((float | int, None), (list[int], None), (inspect.Parameter.empty, None)),
    ],
    ids=str,
)
def test_a_scalar_has_the_dtype_of_its_annotation_or_none(annotation, dtype):
    def scale(out, factor): ...

    scale.__annotations__["factor"] = annotation
    scalar = only_scalar(scale, fields={"out": Out})
    assert scalar == DeclaredScalar("factor", dtype and np.dtype(dtype))


def test_a_scalar_keeps_its_default():
    def scale(out: Out, factor: float = 2.0): ...

    assert only_scalar(scale).default == (2.0,)
    assert only_scalar(functools.partial(scale, factor=3.0)).default == (3.0,)


def test_annotations_that_are_texts_are_evaluated():
    names = {"Out": Out}
    exec("from __future__ import annotations\ndef note(n: int, out: Out): ...", names)
    assert [one.name for one in declare(names["note"]).fields] == ["out"]


def test_an_object_with_a_call_and_a_method_are_declared_without_self():
    assert [declare(Scaled()).order, declare(Scaled().__call__).order] == [["inp", "out"]] * 2
    assert [declare(Scaled()).name, declare(Scaled().__call__).name] == ["Scaled", "__call__"]


def test_a_decorated_function_is_declared_by_what_it_wraps():
    @functools.wraps(copy)
    def wrapper(*args, **kwargs):
        return copy(*args, **kwargs)

    assert (declare(wrapper).name, declare(wrapper).order) == ("copy", ["inp", "out"])


def test_a_partial_lacks_what_is_bound_by_position():
    def scale(factor, inp: In, out: Out): ...

    declaration = declare(functools.partial(scale, 2.0))
    assert (declaration.name, declaration.order) == ("scale", ["inp", "out"])


def test_only_arguments_that_may_lack_their_name_count_as_positional():
    def scale(inp: In, /, domain, out: Out, *, factor): ...

    declaration = declare(scale)
    assert (declaration.order, declaration.positional) == (["inp", "out", "factor"], 2)


def test_arrays_reach_the_function_as_they_are_and_its_result_is_dropped():
    inp, out = np.ones((2, 2, 2)), np.zeros((2, 2, 2))
    assert run(declare(copy), inp=inp, out=out) is None
    assert (out == 1).all()


def test_state_of_an_object_is_used_when_it_is_run():
    out = np.zeros(3)
    run(declare(Scaled()), inp=np.ones(3), out=out)
    assert (out == 3).all()


def test_origin_and_domain_are_given_to_a_function_that_has_them():
    given = {}

    def note(out: Out, origin, domain: tuple, factor=1):
        given.update(origin=origin, domain=domain, factor=factor)

    declaration = declare(note)
    assert (declaration.order, declaration.decided_by) == (["out", "factor"], "fields")
    run(declaration, domain=(1, 2, 3), origin={"out": (4, 5, 6)}, out=None, factor=7)
    assert given == {"origin": {"out": (4, 5, 6)}, "domain": (1, 2, 3), "factor": 7}


def test_a_function_that_has_only_the_domain_gets_only_that():
    given = []
    declaration = declare(lambda out, domain: given.append(domain), fields={"out": Out})
    run(declaration, domain=(1, 2, 3), out=None)
    assert (given, declaration.decided_by) == ([(1, 2, 3)], "arrays, domain")


def test_a_function_without_origin_and_domain_is_given_neither():
    assert declare(copy).decided_by == "arrays"


def test_a_field_may_be_named_domain():
    declaration = declare(lambda domain: None, fields={"domain": Out})
    assert (declaration.order, declaration.decided_by) == (["domain"], "arrays")


def test_parameters_without_a_name_of_their_own_are_given_by_position():
    given = []

    def note(a: In, domain, b=5, /, c=6):
        given.extend([a, domain, b, c])

    run(declare(note), a="a", c="c")
    run(declare(note), a="a", b="b", c="c")
    assert given == ["a", (1, 1, 1), 5, "c", "a", (1, 1, 1), "b", "c"]


def test_an_argument_may_be_called_self():
    given = []
    run(declare(lambda self: given.append(self), fields={"self": Out}), self=1)
    assert given == [1]


def test_star_arguments_are_given_nothing():
    given = []

    def note(out: Out, *args, **kwargs: Any):
        given.append((args, kwargs))

    declaration = declare(note)
    run(declaration, out=1)
    assert (declaration.order, given) == (["out"], [((), {})])


def test_exec_info_gets_when_the_call_began_and_ended():
    info, before = {"kept": 1}, time.perf_counter()
    run(declare(lambda out: time.sleep(0.001), fields={"out": Out}), exec_info=info, out=1)
    began, ended = info["call_run_start_time"], info["call_run_end_time"]
    assert before <= began < began + 0.001 <= ended <= time.perf_counter()
    assert info["kept"] == 1


def test_an_exception_of_the_function_comes_through():
    def fail(out: Out):
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run(declare(fail), out=1)


AXES = {
    "all three for a plane": ([IJ], ("I", "J", "K")),
    "in their order": ([Axes["KJI"]], ("I", "J", "K")),
    "even for none": ([Axes[()]], ("I", "J", "K")),
    "as they first appear": ([Axes["K"], Axes["Cell", "K"], Axes["Edge"]], ("K", "Cell", "Edge")),
}


@pytest.mark.parametrize(("axes", "expected"), AXES.values(), ids=AXES)
def test_the_axes_of_the_iteration_are_those_of_the_fields(axes, expected):
    annotations = [Field[float, one] for one in axes]
    fields = dict(zip("abc", annotations, strict=False))
    assert declare(eval(f"lambda {', '.join(fields)}: None"), fields=fields).axes == expected


BACKENDS = dict.fromkeys((None, "F", "gt:cpu_kfirst"), (True, None))
BACKENDS |= dict.fromkeys(("numpy", "debug"), (False, None))
BACKENDS |= dict.fromkeys(("gt:gpu", "dace:gpu_IJK", "gtcuda"), (True, "gpu"))


@pytest.mark.parametrize(("backend", "expected"), BACKENDS.items(), ids=str)
def test_the_backend_says_where_it_computes_and_whether_memory_is_typed(backend, expected):
    declaration = declare(copy, backend=backend)
    assert (declaration.backend, declaration.typed, declaration.device) == (backend, *expected)


class Odd:
    """Is called, but has no signature."""

    __call__ = 3


class Descriptor:
    """Stands in for what ``gtscript.Field[...]`` gives, where GT4Py is not installed."""

    __module__ = "gt4py.cartesian.gtscript"

    def __repr__(self):
        return "Descriptor()"


def definition(inp: In, out: Out):
    with computation(PARALLEL), interval(...):
        out = inp  # noqa: F841


def described(annotation, kind=""):
    names = {"given": annotation, "Out": Out}
    exec(f"def note(out: Out, {kind}x: given): ...", names)
    return names["note"]


OF_GTSCRIPT = (
    "compile a definition with gtscript.stencil and its gtscript.Field first, dlfield.annotations "
    "is for plain callables"
)
NO_FIELD = (
    "bind: needs a field among the parameters of '<lambda>'; annotate with "
    "dlfield.annotations.Field or pass fields={'inp': Field[...]}"
)
NO_NAME = (
    "bind: expected annotations of 'note' that can be evaluated, got NameError: name 'Unknown' is "
    "not defined; define the names where the function is defined, or pass fields={...}"
)
PARAMETER = "parameter 'x' of 'note': expected"
WRONG_TYPES = {
    "bind: expected a callable that computes, got 3; pass a function,": lambda: declare(3),
    "bind: expected a callable that computes, got <class": lambda: declare(Scaled),
    "bind: expected a callable with a signature, got 'Odd'; wrap it in": lambda: declare(Odd()),
    NO_FIELD: lambda: declare(lambda inp, out: None),
    "of '<lambda>'; annotate": lambda: declare(lambda: None),
    "fields: expected a mapping such as": lambda: declare(copy, fields=[In]),
    "fields: expected Field[...] for 'inp', got 3": lambda: declare(copy, fields={"inp": 3}),
    f"got Descriptor(); {OF_GTSCRIPT}": lambda: declare(described(Descriptor())),
    f"bind: expected no GTScript definition, got 'definition'; {OF_GTSCRIPT}": (
        lambda: declare(definition, fields={"inp": In})
    ),
    f"{PARAMETER} a named parameter, got an annotated *x; name each,": (
        lambda: declare(described(Out, "*"))
    ),
    "got an annotated **x; name each, or leave it": lambda: declare(described(float, "**")),
    f"{PARAMETER} Field[...] or a dtype, got Field; write": lambda: declare(described(Field)),
    "or a dtype, got Alignment[8]; write": lambda: declare(described(Alignment[8])),
    "or a dtype, got 'Out'; write Field[": lambda: declare(described("'Out'")),
    f"{PARAMETER} Field[...] for an array, got <class 'numpy.ndarray'>; write such as": (
        lambda: declare(described(np.ndarray))
    ),
    "Field[...] for an array, got numpy.ndarray[": (
        lambda: declare(described(np.ndarray[Any, np.dtype[np.float64]]))
    ),
    "parameter 'out' of 'copy': expected a field without a default, got one; leave it out": (
        lambda: declare(functools.partial(copy, out=np.zeros(3)))
    ),
    NO_NAME: lambda: declare(described("Unknown[float]")),
}
WRONG_TYPES["backend: expected a name, got 3; write such as 'C' or 'F'"] = lambda: declare(
    copy, backend=3
)
WRONG_VALUES = {
    "fields: expected parameters of 'copy', inp, out, got 'oot'; name one of them": (
        lambda: declare(copy, fields={"oot": Out})
    ),
    "fields: expected parameters of '<lambda>', which has none, got 'args'": (
        lambda: declare(lambda *args: None, fields={"args": Out})
    ),
    "backend: expected one of C, F, numpy": lambda: declare(copy, backend="gtx87"),
    "; did you mean 'gt:cpu_ifirst'": lambda: declare(copy, backend="gt:cpu_Ifirst"),
    "debug, gt:cpu_kfirst": lambda: declare(copy, backend=""),
    "parameter 'exec_info' of '<lambda>': expected another name, got that of an option; rename": (
        lambda: declare(lambda exec_info: None)
    ),
}


WRONG = [(TypeError, *one) for one in WRONG_TYPES.items()]
WRONG += [(ValueError, *one) for one in WRONG_VALUES.items()]


@pytest.mark.source(
    "GDP-3 draft", "Annotation of Stencils", "the parameters are imported from `gtscript`"
)
@pytest.mark.parametrize(("kind", "text", "make"), WRONG, ids=[text for _, text, _ in WRONG])
def test_what_cannot_be_meant_is_refused_when_it_is_declared(kind, text, make):
    with pytest.raises(kind, match=re.escape(text)):
        make()


def test_fields_stand_in_for_annotations_that_cannot_be_evaluated():
    declaration = declare(described("Unknown[float]"), fields={"x": In})
    assert [one.name for one in declaration.fields] == ["out", "x"]


def test_fields_stand_in_for_annotations_of_gtscript():
    assert len(declare(described(Descriptor()), fields={"x": In}).fields) == 2


def test_a_function_that_is_called_computation_makes_no_definition():
    names = {"computation": len, "interval": len, "Out": Out}
    exec("def note(out: Out): return computation(interval(out))", names)
    assert len(declare(names["note"]).fields) == 1


def test_declaring_calls_nothing():
    called = []
    made = declare(lambda out: called.append(out), fields={"out": Out})
    assert isinstance(made.run, CallableRun)
    assert called == []


async def asynchronous(inp: In, out: Out):
    out[...] = inp


def generating(inp: In, out: Out):
    out[...] = inp
    yield


class Called:
    def __call__(self, inp: In, out: Out):
        yield


@pytest.mark.parametrize(
    "function", [asynchronous, generating, Called(), functools.partial(generating)]
)
def test_a_function_that_does_not_compute_when_it_is_called_is_refused(function):
    with pytest.raises(TypeError, match="expected a function that computes when it is called"):
        declare(function)
