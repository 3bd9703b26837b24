"""Plain callables, read by their annotations so that `bind` gives them arrays of any framework.

Any function will do, a ``functools.partial``, an object with ``__call__``, or a kernel of Numba,
whose parameters are annotated as in `dlfield.annotations`. Import it only when it is needed: with
``inspect``, it takes milliseconds.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin

from dlfield._core import preset
from dlfield.annotations import DType, Field, FieldAnnotation, Parameter, known_preset
from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar
from dlfield.stencils.footprint import AffineFootprint, FieldFootprint, Span

if TYPE_CHECKING:
    from dlfield.stencils.declaration import Access, DecidedBy

__all__ = ["CallableRun", "declare", "plain_function", "taken_apart"]

#: Parameters for origins and domain, which are not arguments of the bound stencil.
_PLACE = ("origin", "domain")

#: Keywords of `CallableRun.run` itself.
_TAKEN = ("exec_info", "_domain_", "_origin_")

_ACCESS: dict[str, Access] = {"in": "read", "out": "write", "inout": "update"}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_ARRAYS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__", "__array__")


@dataclass(frozen=True)
class CallableRun:
    """Calls a function with arrays and scalars by name, and ignores what it returns.

    Attributes
    ----------
    function
        The function that is called.
    place
        Those of "origin" and "domain" that it takes.
    by_position
        Names of its positional-only parameters, with their defaults.
    """

    function: Callable[..., object]
    place: frozenset[str]
    by_position: Mapping[str, Any]

    def run(
        self,
        /,
        *,
        _domain_: tuple[int, ...],
        _origin_: dict[str, tuple[int, ...]],
        exec_info: dict[str, Any] | None,
        **arguments: Any,  # arrays and scalars by name
    ) -> None:
        """Call the function. `exec_info` gets the times of begin and end, in seconds."""
        place = {"origin": _origin_, "domain": _domain_}
        arguments |= {name: place[name] for name in self.place}
        ordered = [arguments.pop(name, default) for name, default in self.by_position.items()]
        if exec_info is not None:
            exec_info["call_run_start_time"] = time.perf_counter()
        self.function(*ordered, **arguments)
        if exec_info is not None:
            exec_info["call_run_end_time"] = time.perf_counter()


def declare(
    function: Callable[..., object],
    *,
    fields: Mapping[str, FieldAnnotation] | None = None,
    backend: str | None = None,
) -> Declaration:
    """Read the annotations of a callable. Nothing is called or copied.

    Parameters annotated with `dlfield.annotations.Field` are fields, all others scalars, of the
    dtype of their annotation, or of any. A parameter `origin` is given, for each field by name,
    the index of the domain's first point along the declared dimensions, and a parameter `domain`
    the extents of the domain along `Declaration.axes`, both in points. ``*args`` and ``**kwargs``
    are given nothing. Source: draft, Annotation of Stencils.

    Parameters
    ----------
    function
        The callable that computes. It gets arrays with their dimensions in the declared order.
    fields
        Fields by name of the parameter, which override annotations.
    backend
        Name of the preset that suits the callable best. It tells whether the callable computes on
        a GPU, and whether it reads any memory ("numpy" and "debug" do).

    Returns
    -------
    Declaration
        Its `run` is a `CallableRun`.

    Raises
    ------
    TypeError
        If it is not a callable, has no field, or has an annotation that makes no sense here.
    ValueError
        If `fields` names something other than a parameter, or `backend` is not a preset.
    """
    name = _name(function)
    _check_computes(name, function)
    suits = None if backend is None else preset(known_preset(backend, "backend"))
    every = _parameters(name, function, _checked({} if fields is None else fields))
    named = [one for one in every if one.kind not in _VARIADIC]
    place = {one.name for one in named if one.name in _PLACE and not _is_field(one)}
    by_position = {one.name: one.default for one in named if one.kind is one.POSITIONAL_ONLY}
    arguments = [one for one in named if one.name not in place]
    scalars = [_scalar(name, one) for one in arguments if not _is_field(one)]
    declared = [_field(one) for one in arguments if _is_field(one)]
    if not declared:
        first = arguments[0].name if arguments else "inp"
        raise TypeError(
            f"bind: needs a field among the parameters of '{name}'; annotate with "
            f"dlfield.annotations.Field or pass fields={{'{first}': Field[...]}}"
        )
    return Declaration(
        name=name,
        run=CallableRun(function, frozenset(place), by_position),
        fields=declared,
        scalars=scalars,
        order=[one.name for one in arguments],
        positional=sum(one.kind is not one.KEYWORD_ONLY for one in arguments),
        axes=_iterated([one.annotation for one in arguments if _is_field(one)]),
        typed=suits is None or suits.typed,
        backend=None if suits is None else suits.name,
        decided_by=_decided_by(place),
        footprint=AffineFootprint(
            {one.name: _footprint(one) for one in arguments if _is_field(one)}
        ),
        runs_empty=True,
        device="gpu" if suits is not None and suits.gpu else None,
    )


def _name(function: Any) -> str:
    if isinstance(function, type) or not callable(function):
        way_out = "pass a function, a functools.partial or an object with __call__"
        raise TypeError(f"bind: expected a callable that computes, got {function!r}; {way_out}")
    plain = plain_function(function)
    return str(getattr(plain, "__name__", type(plain).__name__))


def taken_apart(
    partial: functools.partial[Any],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return the function in a partial, and the arguments that it was given.

    Those for its ``**kwargs`` stay with the function.
    """
    own, given, keywords = partial.func, partial.args, dict(partial.keywords)
    if isinstance(own, functools.partial):
        own, first, known = taken_apart(own)
        given, keywords = (*first, *given), known | keywords
    try:
        parameters = inspect.signature(own).parameters.values()
    except (TypeError, ValueError):  # which `declare` says
        return own, given, keywords
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        named = {one.name for one in parameters if one.kind not in _VARIADIC}
        others = {name: keywords.pop(name) for name in [*keywords] if name not in named}
        own = functools.partial(own, **others) if others else own
    return own, given, keywords


def plain_function(function: Any) -> Any:
    """Return the function behind partials and decorators."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def _check_computes(name: str, function: Any) -> None:
    """Refuse a function whose call returns before it has computed."""
    waits = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    own = inspect.getattr_static(function, "__call__", None)  # of an object
    if any(is_one(function) or is_one(own) for is_one in waits):
        expected = "a function that computes when it is called"
        got = "a coroutine or generator function"
        way_out = "write a plain function, without async and yield"
        raise TypeError(f"bind: expected {expected}, got {got}, '{name}'; {way_out}")


def _checked(fields: Mapping[str, FieldAnnotation]) -> Mapping[str, FieldAnnotation]:
    if not isinstance(fields, Mapping):
        expected = "a mapping such as {'inp': Field[np.float64]}"
        raise TypeError(f"fields: expected {expected}, got {fields!r}; name the parameters")
    for name, given in fields.items():
        if not isinstance(given, FieldAnnotation):
            way_out = "write Field[np.float64], of dlfield.annotations"
            raise TypeError(f"fields: expected Field[...] for '{name}', got {given!r}; {way_out}")
    return fields


def _parameters(
    name: str, function: Callable[..., object], fields: Mapping[str, FieldAnnotation]
) -> list[inspect.Parameter]:
    """Parameters with annotations that are evaluated, and those of `fields` in their place."""
    signature = _signature(name, function, fields)
    named = [one.name for one in signature if one.kind not in _VARIADIC]
    for unknown in (one for one in fields if one not in named):
        expected = f"parameters of '{name}', {', '.join(named) or 'which has none'}"
        raise ValueError(f"fields: expected {expected}, got '{unknown}'; name one of them")
    every = [one.replace(annotation=fields.get(one.name, one.annotation)) for one in signature]
    _refuse_definition(name, function)
    for one in every:
        _refuse(name, one)
    return every


def _signature(
    name: str, function: Callable[..., object], fields: Mapping[str, FieldAnnotation]
) -> list[inspect.Parameter]:
    try:
        plain = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        way_out = "wrap it in a function with named parameters"
        expected = f"bind: expected a callable with a signature, got '{name}'"
        raise TypeError(f"{expected}; {way_out}") from error
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except Exception as error:
        if all(one.name in fields for one in plain if isinstance(one.annotation, str)):
            return plain
        expected = f"annotations of '{name}' that can be evaluated"
        way_out = "define the names where the function is defined, or pass fields={...}"
        got = f"{type(error).__name__}: {error}"
        raise TypeError(f"bind: expected {expected}, got {got}; {way_out}") from error


def _refuse_definition(name: str, function: Callable[..., object]) -> None:
    """Find a GTScript definition by its ``with computation(...), interval(...)``."""
    plain = plain_function(function)
    used = getattr(getattr(plain, "__code__", None), "co_names", ())
    if {"computation", "interval"} <= set(used):
        found = getattr(plain, "__globals__", {}).get("computation")
        if found is None or _is_gt4py(found):
            raise TypeError(_for_gtscript(f"no GTScript definition, got '{name}'"))


def _for_gtscript(expected: str) -> str:
    way_out = "compile a definition with gtscript.stencil and its gtscript.Field first"
    return f"bind: expected {expected}; {way_out}, dlfield.annotations is for plain callables"


def _is_gt4py(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("gt4py.")


def _is_of_next(given: Any) -> bool:
    """Return whether an annotation is a field of gt4py.next, or a tuple of some."""
    return _is_gt4py(get_origin(given)) or any(map(_is_of_next, get_args(given)))


def _refuse(name: str, one: inspect.Parameter) -> None:
    """Refuse a wrong annotation."""
    given, what = one.annotation, f"parameter '{one.name}' of '{name}'"
    if one.name in _TAKEN:
        raise ValueError(f"{what}: expected another name, got that of an option; rename it")
    if one.kind in _VARIADIC and given not in (one.empty, Any, object):
        got = f"an annotated {str(one).split(':')[0]}"
        way_out = "name each, or leave it without an annotation: it is then given nothing"
        raise TypeError(f"{what}: expected a named parameter, got {got}; {way_out}")
    if _is_gt4py(type(given)):
        raise TypeError(_for_gtscript(f"{what} annotated by dlfield.annotations, got {given!r}"))
    if _is_of_next(given):
        way_out = "decorate the definition with @gtx.program or @gtx.field_operator"
        got = f"'{name}', whose parameter '{one.name}' is of gt4py.next, without"
        raise TypeError(f"bind: expected a definition with its decorator, got {got}; {way_out}")
    if given is Field or isinstance(given, Parameter | str):  # a text within a text stays one
        way_out = "write Field[np.float64], or np.float64 for a scalar"
        raise TypeError(f"{what}: expected Field[...] or a dtype, got {given!r}; {way_out}")
    if _is_field(one) and one.default is not one.empty:
        way_out = "leave it out, a field is given at every call"
        raise TypeError(f"{what}: expected a field without a default, got one; {way_out}")


def _is_field(one: inspect.Parameter) -> bool:
    return isinstance(one.annotation, FieldAnnotation)


def _field(one: inspect.Parameter) -> DeclaredField:
    given: FieldAnnotation = one.annotation
    numbers = range(len(given.data_shape))
    return DeclaredField(
        name=one.name,
        dims=(*given.axes, *map(str, numbers)),
        dtype=given.dtype,
        access=_ACCESS[given.access],
        data_shape=given.data_shape,
        layout=given.layout,
        preset=given.preset,
        alignment=given.alignment,
    )


def _footprint(one: inspect.Parameter) -> FieldFootprint:
    given: FieldAnnotation = one.annotation
    spans = tuple(Span(below, above) for below, above in given.boundary)
    pointwise = all(span == Span() for span in spans)
    reads = None if given.access == "out" else spans
    return FieldFootprint(reads, None if given.access == "in" else spans, pointwise=pointwise)


def _decided_by(place: set[str]) -> DecidedBy:
    """Say what decides where a function computes that takes these of "origin" and "domain"."""
    if place == set(_PLACE):
        return "fields"
    told: dict[str, DecidedBy] = {"origin": "arrays, origin", "domain": "arrays, domain"}
    return told[place.pop()] if place else "arrays"


def _scalar(name: str, one: inspect.Parameter) -> DeclaredScalar:
    default = () if one.default is one.empty else (one.default,)
    return DeclaredScalar(one.name, _scalar_dtype(name, one), default=default)


def _scalar_dtype(name: str, one: inspect.Parameter) -> Any:
    """Dtype of the annotation, or None if it is not a dtype, so that any value passes."""
    import numpy as np  # not with dlfield itself

    given = one.annotation
    try:
        return DType[given].value[0]
    except (TypeError, ValueError):
        kind = get_origin(given) or given
    is_class = isinstance(kind, type) and not issubclass(kind, np.generic)
    if is_class and any(hasattr(kind, door) for door in _ARRAYS):
        what, way_out = f"parameter '{one.name}' of '{name}'", "write such as Field[np.float64]"
        raise TypeError(f"{what}: expected Field[...] for an array, got {given!r}; {way_out}")
    return None


def _iterated(fields: list[FieldAnnotation]) -> tuple[str, ...]:
    """I, J, K if there are no other axes, else all of them as they first appear."""
    names = dict.fromkeys(axis for one in fields for axis in one.axes)
    return ("I", "J", "K") if names.keys() <= set("IJK") else tuple(names)
