"""Stencils of ``gt4py.cartesian``, read so that they can be bound.

GT4Py is never imported here: everything is read from the stencil. An object with the same
attributes, such as your own stencil for a GPU, is read in the same way.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

from dlfield._core import preset
from dlfield.stencils.cartesian.around import (
    computed,
    joins_loops,
    left_out,
    out_of_turn,
    told,
    written_outside,
)
from dlfield.stencils.cartesian.footprint import (
    footprint_of,
    footprint_of_bounds,
    has_run_time_levels,
)
from dlfield.stencils.cartesian.internals import keeps_loops, merged, stages_of
from dlfield.stencils.cartesian.lost import lost, perhaps_lost
from dlfield.stencils.cartesian.nodes import UnknownNode
from dlfield.stencils.cartesian.regions import regions
from dlfield.stencils.cartesian.ternaries import first_torn
from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping

    from dlfield.stencils.cartesian.around import Around, Mismatch
    from dlfield.stencils.cartesian.nodes import Assign, Branch, Loop, Stencil
    from dlfield.stencils.declaration import Access
    from dlfield.stencils.footprint import AffineFootprint, FieldFootprint

__all__ = ["CartesianStencil", "WronglyComputed", "declare", "representation"]

_Found = TypeVar("_Found")
Checked: TypeAlias = Literal["checked", "partly checked"]

#: Keywords of a stencil's own call that are not arguments of its definition.
_CALL_OPTIONS = frozenset({"domain", "origin", "validate_args", "exec_info"})

#: Attributes that a stencil of GT4Py, or one with its face, has and a callable has not.
_FACE = ("backend", "options", "field_info", "parameter_info", "domain_info", "run")


@runtime_checkable
class CartesianStencil(Protocol):
    """Attributes that are read off a stencil of ``gt4py.cartesian.gtscript.stencil``.

    One that computes on a GPU has ``device`` besides (``"gpu"`` or ``("gpu", number)``), and may
    have ``synchronize()``, which waits until what `run` started is done. With
    ``options["backend_opts"]["device_sync"]`` False and without ``synchronize``, `run` leaves its
    work on the legacy default stream, where dlfield orders it. For a device that dlfield cannot
    copy to it may have ``to_device(array)``, which gives a copy of a NumPy array there, and
    ``to_host(data, array)``, which copies such an object into a NumPy array.
    """

    backend: str
    options: Mapping[str, Any]
    field_info: Mapping[str, Any]
    parameter_info: Mapping[str, Any]
    domain_info: Any

    def run(self, *args: Any, **kwargs: Any) -> None: ...  # noqa: D102


def missing(stencil: Any) -> list[str]:
    """Attributes that an object with part of the face lacks; none for a plain callable."""
    absent = [name for name in _FACE if not hasattr(stencil, name)]
    return absent if len(_FACE) - len(absent) >= len(_FACE) // 2 else []


def declare(stencil: CartesianStencil) -> Declaration:
    """Read a compiled stencil: fields, scalars, footprint, device.

    Parameters
    ----------
    stencil
        Made by ``gtscript.stencil``, or anything with its face.

    Returns
    -------
    Declaration
        Its `run` is the stencil itself.
    """
    on_gpu, typed = _code(stencil.backend)
    own: Any = stencil if callable(stencil) and _is_gt4py(stencil) else None
    if own is not None:
        _refuse_names(stencil)
    # GT4Py's generated code waits for the first GPU, whatever GPU is current.
    device = getattr(stencil, "device", ("gpu", 0) if on_gpu else None)
    parameters = _signature(stencil)
    scalars = stencil.parameter_info.items()
    keyword_only = [one for one in parameters.values() if one.kind is one.KEYWORD_ONLY]
    footprint, checked = _footprint(stencil)
    return Declaration(
        name=str(stencil.options["name"]),
        run=stencil,
        fields=[
            _field(name, info, footprint.fields[name]) for name, info in stencil.field_info.items()
        ],
        scalars=[_scalar(name, info, parameters) for name, info in scalars],
        order=list(parameters),
        positional=len(parameters) - len(keyword_only),
        typed=typed,
        asks_writable=typed,
        backend=stencil.backend,
        device=device,
        in_order=device is not None and _is_left_to_its_stream(stencil),
        own_call=own and partial(own, validate_args=False),  # the checks are made by then
        footprint=footprint,
        checked=checked,
        ignores=("validate_args",),
    )


def _is_gt4py(stencil: CartesianStencil) -> bool:
    """Return True for GT4Py's: its own call does what `run` does, and records more times."""
    return any(base.__module__.startswith("gt4py.") for base in type(stencil).__mro__)


def _is_left_to_its_stream(stencil: CartesianStencil) -> bool:
    """Return whether it was compiled not to wait for its GPU, where it has the default stream."""
    options = stencil.options.get("backend_opts") or {}
    return options.get("device_sync") is False and not hasattr(stencil, "synchronize")


def _has_definition(stencil: CartesianStencil) -> bool:
    return hasattr(stencil, "definition_func") or _is_gt4py(stencil)


#: What was found of each stencil, by the function that has found it.
_known: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def _once(function: Callable[[CartesianStencil], _Found]) -> Callable[[CartesianStencil], _Found]:
    """Return a function that looks at each stencil once."""

    @wraps(function)
    def found(stencil: CartesianStencil) -> _Found:
        try:
            known = _known.setdefault(stencil, {})
        except TypeError:  # no key of a dict, as a wrapper may be
            return function(stencil)
        if function not in known:
            known[function] = function(stencil)
        result: _Found = known[function]
        return result

    return found


def _footprint(stencil: CartesianStencil) -> tuple[AffineFootprint, Checked]:
    """Find the points that it touches.

    What has no definition and is not GT4Py's says it all in its boundary.
    """
    if _has_definition(stencil):
        return _footprint_of_definition(stencil)
    levels = stencil.domain_info.min_sequential_axis_size
    return footprint_of_bounds(stencil.field_info, levels=levels, complete=True), "checked"


@_once
def _footprint_of_definition(stencil: CartesianStencil) -> tuple[AffineFootprint, Checked]:
    infos, levels = stencil.field_info, stencil.domain_info.min_sequential_axis_size
    found = representation(stencil)
    if found is None:
        return footprint_of_bounds(infos, levels=levels, complete=False), "partly checked"
    stages = _stages(stencil, found)
    _refuse_what_is_wrong(stencil, found, stages)
    footprint = footprint_of(found, infos, levels=levels, backend=stencil.backend, stages=stages)
    return footprint, "partly checked" if has_run_time_levels(found) else "checked"


def _stages(stencil: CartesianStencil, found: Stencil) -> Stencil | None:
    """Return a stencil behind GT4Py's passes; None if they do not change where it is computed.

    GridTools computes together what they have merged. On "numpy", a region may be larger than what
    they leave of its block.
    """
    if stencil.backend.startswith("gt:"):
        changes = computed(found, joins=None) != told(found)
    else:
        wide = (one for one in found.blocks if any(map(any, one.extents)))
        changes = stencil.backend == "numpy" and any(any(regions(one)) for one in wide)
    with suppress(UnknownNode):
        return stages_of(stencil) if changes else None
    return found


class WronglyComputed(ValueError):
    """A backend computes a stencil at too few points, at too many, too soon, or otherwise."""


#: Names that the code of a backend has for its own: it overwrites an argument of such a name.
_OWN_NAMES = {
    "numpy": r"[ijkIJK]|np|Field|computation",
    "debug": r"[ijk](_\d+)?|range|Field|computation",
}


def _refuse_names(stencil: CartesianStencil) -> None:
    pattern = _OWN_NAMES.get(stencil.backend, "")
    for name in (*stencil.field_info, *stencil.parameter_info):
        if re.fullmatch(pattern, name):
            raise WronglyComputed(
                f"'{stencil.options['name']}': expected a backend that keeps the argument "
                f"'{name}', got '{stencil.backend}', whose code has that name for its own and "
                "overwrites the argument; rename it"
            )


def _refuse_what_is_wrong(
    stencil: CartesianStencil,
    found: Stencil,
    stages: Stencil | None,
) -> None:
    name, backend, joins = stencil.options["name"], stencil.backend, joins_loops(stencil.backend)
    outside = lacking = soon = None
    if joins is not None:
        lacking = left_out(found, joins=joins and not keeps_loops(stencil))
    elif stages is not None:
        outside, lacking = written_outside(stages), left_out(stages, joins=None)
    if backend == "debug" or backend.startswith("gt:"):
        made = stages or found
        soon = out_of_turn(made, computed(made, joins=joins))
    if backend != "debug" and perhaps_lost(found) is not None:
        _refuse_what_is_lost(stencil, found)
    if backend == "debug" and (one := first_torn(found)):
        raise WronglyComputed(
            f"'{name}': expected a backend that computes the ternary{_line(one, ' in line {}')} as "
            "one value, got 'debug', which writes it without parentheses beside an operator; "
            "assign it to a variable first, or compile the stencil for 'numpy'"
        )
    if outside is not None:
        raise WronglyComputed(
            f"'{name}': expected a backend that writes '{outside.name}'{_line(outside)} in the "
            f"domain, got '{backend}', which also writes {_beside(outside.computed)}, "
            "together with a temporary field that is needed there; give that field another name "
            "where it is assigned again, or compile the stencil for 'numpy'"
        )
    if lacking is not None:
        others = "'numpy'" if joins is None else "'gt:cpu_kfirst' or 'gt:cpu_ifirst'"
        raise WronglyComputed(
            f"'{name}': expected a backend that computes '{lacking.name}'{_line(lacking)} wherever "
            f"it is read, {_beside(lacking.needed)}, got '{backend}', which computes only "
            f"{_beside(lacking.computed)}, and beyond them reads whatever the memory holds; "
            f"compile it for {others}"
        )
    if soon is not None:
        raise WronglyComputed(
            f"'{name}': expected a backend that computes one level after the other, got "
            f"'{backend}', which computes '{soon.name}'{_line(soon)} at all levels at once, since "
            "it is needed at other points than what it reads at another level; compile it for "
            "'numpy'"
        )


def _refuse_what_is_lost(stencil: CartesianStencil, found: Stencil) -> None:
    with suppress(UnknownNode):
        if perhaps_lost(merged(stencil)) is None:
            return
        if dropped := lost(found, stages_of(stencil)):
            raise WronglyComputed(
                f"'{stencil.options['name']}': expected a backend that keeps "
                f"'{dropped.target.name}'{_line(dropped)} for all that reads it, got "
                f"'{stencil.backend}', which computes it anew for neighbours, drops it, and then "
                "reads whatever the memory holds; read it in a computation(FORWARD)"
            )


def _line(wrong: Assign | Branch | Loop | Mismatch, text: str = " (line {})") -> str:
    return "" if wrong.line is None else text.format(wrong.line)


def _beside(around: Around) -> str:
    """Tell how far around the domain a value is computed."""
    west, east, south, north = around
    return f"{west} and {east} points beside the domain along I, {south} and {north} along J"


@_once
def representation(stencil: CartesianStencil) -> Stencil | None:
    """Read a stencil. None if it has no definition, or one that is not understood."""
    from dlfield.stencils.cartesian.trial import representation_of

    return representation_of(stencil) if _has_definition(stencil) else None  # else without GT4Py


def _code(backend: str) -> tuple[bool, bool]:
    """Return whether the code of a backend computes on a GPU, and whether it reads typed memory."""
    with suppress(ValueError):
        known = preset(backend)
        return known.gpu, known.typed
    return False, True  # a backend of one's own


def _signature(stencil: CartesianStencil) -> dict[str, inspect.Parameter]:
    """Arguments of the definition, in its order."""
    import inspect  # takes milliseconds to import, and is not needed without a stencil

    every = inspect.signature(stencil).parameters  # type: ignore[arg-type]
    return {name: parameter for name, parameter in every.items() if name not in _CALL_OPTIONS}


def _field(name: str, info: Any, touched: FieldFootprint) -> DeclaredField:
    return DeclaredField(
        name=name,
        dims=(*info.axes, *(str(number) for number in range(len(info.data_dims)))),
        dtype=info.dtype,
        access=_access(touched),
        data_shape=tuple(info.data_dims),
    )


def _access(touched: FieldFootprint) -> Access:
    reads, writes = touched.reads is not None, touched.writes is not None
    if reads and writes:
        return "update"
    return "write" if writes else "read" if reads else "unused"


def _scalar(name: str, info: Any, signature: dict[str, inspect.Parameter]) -> DeclaredScalar:
    declared = signature[name]
    default = () if declared.default is declared.empty else (declared.default,)
    if default and isinstance(default[0], float) and info.dtype in ("float16", "float32"):
        default = (info.dtype.type(default[0]),)  # GT4Py keeps the number of a type as Python's
    return DeclaredScalar(name, info.dtype, info.access.name != "NONE", default)
