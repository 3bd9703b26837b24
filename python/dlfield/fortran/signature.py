"""A function that Fortran calls: its parameters, as the generator and the calls need them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from dlfield.annotations import FieldAnnotation
from dlfield.fortran.halos import Halo, halo_of
from dlfield.fortran.kinds import FIELDS, MAX_RANK, SCALARS, Kind, scalar_name
from dlfield.fortran.names import check_arguments
from dlfield.fortran.parameters import FLAGS, Declared, FieldParameter, ScalarParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dlfield.stencils.declaration import Declaration

__all__ = ["declared", "function"]

_Function = TypeVar("_Function")

_INTENTS = {"in": "in", "read": "in", "unused": "in", "out": "out", "inout": "inout"}


@overload
def function(given: _Function) -> _Function: ...
@overload
def function(
    *,
    halo: Halo | Mapping[str, Halo] | None = ...,
    persistent: Iterable[str] = ...,
    lower_bounds: Iterable[str] = ...,
    pointer: Iterable[str] = ...,
    allocatable: Iterable[str] = ...,
    default_logical: Iterable[str] = ...,
    device: str = ...,
) -> Callable[[_Function], _Function]: ...
def function(
    given: Any = None,
    *,
    halo: Halo | Mapping[str, Halo] | None = None,
    persistent: Iterable[str] = (),
    lower_bounds: Iterable[str] = (),
    pointer: Iterable[str] = (),
    allocatable: Iterable[str] = (),
    default_logical: Iterable[str] = (),
    device: str = "cpu",
) -> Any:
    """Declare a function that ``python -m dlfield fortran`` makes callable from Fortran and C.

    Annotate its parameters with `dlfield.annotations.Field`, and scalars with int, float, bool,
    complex, str, a type of NumPy, or `Communicator`. A parameter with a default is optional in
    Fortran. The function gets a storage over the memory of each array, valid until it returns.

    Parameters
    ----------
    given
        The function, or a stencil as `dlfield.bind` takes it.
    halo
        Points of the arrays that lie outside of the domain, as for `dlfield.as_storage`; or a
        mapping by name of the parameter. By default the lower bounds tell it, or there is none.
    persistent
        Names of arrays that Python may keep. Their owner calls ``dlfield_deallocate``.
    lower_bounds
        Names of arrays ``a`` whose caller may pass ``a_lbound=lbound(a)``: indices below 1 are the
        halo, on both sides.
    pointer
        Names of arrays whose dummy argument is a pointer; the actual one is a pointer or a target.
        Its lower bounds tell the halo, unless it is declared. Components of derived types are not
        packed by the compiler.
    allocatable
        Names of arrays whose dummy argument is allocatable, and so is the actual one. Its lower
        bounds tell the halo, unless it is declared. Python does not allocate it.
    default_logical
        Names of fields of bool whose dummy argument is a logical of default kind. It is copied to
        one byte an element and back.
    device
        "cpu", or "gpu" for arrays that OpenACC or OpenMP has on a GPU.

    Returns
    -------
    object
        `given` itself; a stencil bound, if it was not.

    Raises
    ------
    TypeError
        If a parameter cannot be passed from Fortran.
    ValueError
        For an invalid name, halo or device.

    Examples
    --------
    >>> import dlfield as dlf, numpy as np
    >>> from dlfield.annotations import Field
    >>> @dlf.fortran.function(halo=(1, 1, 0))
    ... def warm(t: Field[np.float64], by: float = 1.0):
    ...     t.domain_view[:] += by
    >>> t = dlf.zeros((4, 4, 2), dims="IJK", halo=(1, 1, 0))
    >>> warm(t, 2.0)
    >>> float(t.to_numpy().sum())
    16.0
    """
    options = {
        "halo": halo,
        "persistent": _names("persistent", persistent),
        "lower_bounds": _names("lower_bounds", lower_bounds),
        "pointer": _names("pointer", pointer),
        "allocatable": _names("allocatable", allocatable),
        "default_logical": _names("default_logical", default_logical),
        "device": device,
    }

    def declare(given: Any) -> Any:
        taken: Any = given if inspect.isfunction(given) else _bound(given)
        taken.__dlfield_fortran__ = _read(taken, options)
        return taken

    return declare if given is None else declare(given)


def declared(given: Any, name: str) -> Declared:
    """Return the declaration of a function or stencil, under the name that it has in its module.

    Raises TypeError for a function without the decorator, and for what is no stencil either.
    """
    if inspect.isfunction(given) and not hasattr(given, "__dlfield_fortran__"):
        raise TypeError(
            f"{name}: expected a declared function, got a plain one; decorate it with "
            "@dlfield.fortran.function"
        )
    taken: Any = given if hasattr(given, "__dlfield_fortran__") else function(given)
    found = cast("Declared", taken.__dlfield_fortran__)
    return _check(replace(found, name=name, call=taken))  # perhaps a decorator around it


def _bound(stencil: Any) -> Any:
    from dlfield._core import BoundStencil
    from dlfield.stencils.binding import bind

    return stencil if isinstance(stencil, BoundStencil) else bind(stencil)


def _names(option: str, given: Iterable[str]) -> frozenset[str]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{option}: expected names in a tuple, got {given!r}; write ({given!r},)")
    return frozenset(given)


def _read(taken: Any, options: dict[str, Any]) -> Declared:
    if inspect.isfunction(taken):
        parameters, by_name = _of_function(taken), _keyword_only(taken)
        positional = _positional_only(taken)
    else:
        stencil = taken.declaration
        parameters, by_name = _of_stencil(stencil), frozenset(stencil.order[stencil.positional :])
        positional = ()
    name = taken.__name__
    _check_options(name, parameters, options)
    parameters = [_with_options(name, one, options) for one in parameters]
    documentation = inspect.getdoc(taken) or ""
    own = (tuple(parameters), options["device"], documentation, by_name, positional)
    return _check(Declared(name, taken, *own))


def _keyword_only(given: Callable[..., object]) -> frozenset[str]:
    every = inspect.signature(given).parameters.values()
    return frozenset(one.name for one in every if one.kind is one.KEYWORD_ONLY)


def _positional_only(given: Callable[..., object]) -> tuple[tuple[str, Any], ...]:
    every = inspect.signature(given).parameters.values()
    return tuple((one.name, one.default) for one in every if one.kind is one.POSITIONAL_ONLY)


def _of_function(given: Callable[..., object]) -> list[FieldParameter | ScalarParameter]:
    what = given.__name__
    try:
        every = inspect.signature(given, eval_str=True).parameters.values()
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        way_out = "define the names in its module"
        expected = f"{what}: expected annotations that can be evaluated"
        raise TypeError(f"{expected}, got {got}; {way_out}") from error
    _check_result(what, inspect.signature(given, eval_str=True).return_annotation)
    return [_parameter(what, one) for one in every]


def _check_result(what: str, result: object) -> None:
    """Refuse a function that says it returns something: a subroutine has no result."""
    if not any(result is one for one in (inspect.Signature.empty, None, Any)):
        got = getattr(result, "__name__", repr(result))
        way_out = (
            "write results into arguments, a number into Field[float, Axes[()], Access['out']]"
        )
        raise TypeError(f"{what}: expected no result, or None, got '-> {got}'; {way_out}")


def _parameter(what: str, one: inspect.Parameter) -> FieldParameter | ScalarParameter:
    given, label = one.annotation, f"parameter '{one.name}' of '{what}'"
    if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
        raise TypeError(f"{label}: expected a named parameter, got {one}; name each")
    if isinstance(given, FieldAnnotation):
        if one.default is not one.empty and one.default is not None:
            got = f"the default {one.default!r}"
            raise TypeError(f"{label}: expected None or no default of an array, got {got}")
        dims = (*given.axes, *map(str, range(len(given.data_shape))))
        intent = _INTENTS[given.access]
        return FieldParameter(
            one.name, _element(label, given.dtype), dims, intent, one.default is None
        )
    name = None if given is one.empty else scalar_name(given)
    if name is None:
        expected = "Field[...], int, float, bool, complex, str, a type of NumPy or Communicator"
        got = "none" if given is one.empty else repr(given)
        raise TypeError(f"{label}: expected the annotation {expected}, got {got}; write one")
    default = () if one.default is one.empty else (one.default,)
    return ScalarParameter(one.name, SCALARS[name], default)


def _element(label: str, dtype: Any) -> Kind:
    name = getattr(dtype, "name", str(dtype))
    if name not in FIELDS:
        expected = f"one of {', '.join(FIELDS)}"
        way_out = "declare the type that the Fortran array has"
        raise TypeError(f"{label}: expected elements of {expected}, got {name}; {way_out}")
    return FIELDS[name]


def _of_stencil(declaration: Declaration) -> list[FieldParameter | ScalarParameter]:
    fields = {one.name: one for one in declaration.fields}
    scalars = {one.name: one for one in declaration.scalars}
    parameters: list[FieldParameter | ScalarParameter] = []
    for name in declaration.order:
        label = f"parameter '{name}' of '{declaration.name}'"
        if name in fields:
            field = fields[name]
            # A stencil that writes its domain leaves the other points as they are.
            intent = _INTENTS.get(field.access, "inout")
            dims = tuple(map(str, field.dims))
            kind = _element(label, field.dtype)
            parameters.append(FieldParameter(name, kind, dims, intent, of_stencil=True))
            continue
        scalar = scalars.get(name)
        number = None if scalar is None or scalar.dtype is None else scalar_name(scalar.dtype)
        if scalar is None or number is None:
            way_out = "call the stencil in a function with @dlfield.fortran.function"
            raise TypeError(f"{label}: expected a field or a number with a type; {way_out}")
        parameters.append(ScalarParameter(name, SCALARS[number], tuple(scalar.default)))
    return parameters


def _check_options(
    what: str, parameters: list[FieldParameter | ScalarParameter], options: dict[str, Any]
) -> None:
    if options["device"] not in ("cpu", "gpu"):
        raise ValueError(f"device: expected 'cpu' or 'gpu', got {options['device']!r}")
    fields = {one.name: one for one in parameters if isinstance(one, FieldParameter)}
    by_name = options["halo"] if isinstance(options["halo"], Mapping) else {}
    for option in (*FLAGS, "halo"):
        for name in by_name if option == "halo" else options[option]:
            if name not in fields:
                known = ", ".join(fields) or "which has none"
                expected = f"arrays of '{what}', {known}"
                raise ValueError(f"{option}: expected {expected}, got '{name}'; name one of them")
    for name in options["pointer"] & options["allocatable"]:
        raise ValueError(f"allocatable: expected an array that is no pointer, got '{name}'")
    for name in options["default_logical"]:
        kind = fields[name].kind.name
        if kind != "bool":
            raise ValueError(f"default_logical: expected fields of bool, got '{name}' of {kind}")
        named = options["persistent"] | options["pointer"] | options["allocatable"]
        if name in named or options["device"] == "gpu":
            got = f"'{name}', which is persistent, a pointer, allocatable or on a GPU"
            raise ValueError(f"default_logical: expected an array that may be copied, got {got}")


def _with_options(
    what: str, one: FieldParameter | ScalarParameter, options: dict[str, Any]
) -> FieldParameter | ScalarParameter:
    if isinstance(one, ScalarParameter):
        return one
    flags: dict[str, Any] = {name: one.name in options[name] for name in FLAGS}
    return replace(one, halo=halo_of(what, one.name, one.dims, options["halo"]), **flags)


def _check(given: Declared) -> Declared:
    """Refuse names and numbers of dimensions that Fortran does not have; return what is given."""
    check_arguments(given.name, [one.name for one in given.parameters], given.bounds)
    for one in given.fields:
        if len(one.dims) > MAX_RANK:
            got = f"{len(one.dims)} of '{one.name}'"
            expected = f"at most {MAX_RANK} dimensions"
            raise ValueError(f"{given.name}: expected {expected}, got {got}")
    return given
