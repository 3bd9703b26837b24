"""`bind`: one call that takes arrays of any framework, for every kind of stencil."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from dlfield._core import BoundStencil

if TYPE_CHECKING:
    from dlfield.stencils.declaration import Declaration

__all__ = ["bind", "take_option"]

#: Answer to an argument that the stencil cannot take as it is.
Answer = Literal["copy", "raise"]

_KINDS = ("device", "memory", "dtype")


def bind(
    stencil: Any,  # noqa: ANN401 - whatever computes
    *,
    dims: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    backend: str | None = None,
    on_mismatch: Answer | Mapping[str, Answer] = "raise",
    offset_provider: Mapping[str, Any] | None = None,
    unchecked: bool = False,
) -> BoundStencil:
    """Bind a stencil: the result takes arrays of any framework and copies none of them.

    Axes are ordered by name where an array has names (xarray's dims, ``__gt_dims__``, a storage's
    dims), and by position otherwise. Origin and domain come from the halos of storages unless
    given. Dtype, bounds, alignment, writability and overlap of outputs are checked at every call.

    Parameters
    ----------
    stencil
        A stencil compiled by ``gt4py.cartesian.gtscript.stencil`` (or an object with the
        attributes of `dlfield.gt4py_cartesian.CartesianStencil`), a ``gt4py.next`` program or field
        operator, or a callable whose parameters are annotated with `dlfield.annotations.Field`.
    dims
        The stencil's dimension for each name that your arrays use, for example
        ``{"lon": "I", "lon_u": "I", "lat": "J"}``, or ``{"lon": IDim}`` for gt4py.next. Names that
        the stencil uses itself, and decimals, stand for themselves.
    fields
        For a callable: `dlfield.annotations.Field` by parameter name, instead of its annotations.
        For a scan operator of gt4py.next, whose arguments have no dimensions: ``gtx.Field[...]`` by
        name, also for `out`; those that are not named are scalars.
    backend
        For a callable: the preset that it is fast with, for example ``"gt:cpu_ifirst"``. With
        ``"numpy"`` or ``"debug"`` it reads any memory, and a declared layout or alignment causes
        warnings only.
    on_mismatch
        Answer to an argument that is on another device, or whose memory the stencil cannot read
        (misaligned items, strides that are not a multiple of them, another layout or alignment than
        declared): ``"raise"`` (the default), or ``"copy"``, which warns, hands in a copy and copies
        it back if it was written. Or a dict with ``"device"`` and ``"memory"``. A different dtype
        always raises.
    offset_provider
        For gt4py.next: the connectivities by name, for each call that gives none of its own.
    unchecked
        For gt4py.next: leave out the checks of bounds, and of inputs that overlap outputs. A
        compiled program that dlfield does not understand is refused otherwise, since GT4Py checks
        nothing of it: reading past the end of an array returns nonsense or ends the process.

    Returns
    -------
    BoundStencil
        Call it as the stencil: ``run(inp, out, origin=None, domain=None, exec_info=None)``.
        `origin` is a tuple along the axes of the iteration (I, J, K), or a dict by field name with
        ``"_all_"``; both are in points and in the stencil's order of dimensions. Instead of a tuple
        each may be a dict by axis, under the stencil's names or yours: ``domain={"lon": 8, ...}``.
        ``run.functional(inp)`` makes the outputs and gives them back; ``dlfield.explain(run, inp,
        out)`` says what a call would do.

    Raises
    ------
    TypeError
        If `stencil` cannot be bound, or an option is of a wrong type.
    ValueError
        If `dims` maps to a name that the stencil does not have, or one of its own; for an unknown
        kind of mismatch or answer; for a compiled program of gt4py.next that is not understood.
    """
    stencil = _compiled(stencil)
    declaration = _declare(stencil, fields, backend, offset_provider, unchecked=unchecked)
    answers = _answers(on_mismatch)
    names = _checked(dims or {}, declaration)
    options = {
        "dims": names,
        "fields": None if fields is None else dict(fields),
        "backend": backend,
        "on_mismatch": answers,
        "offset_provider": offset_provider,
        "unchecked": unchecked,
    }
    run = BoundStencil(
        stencil,
        declaration,
        dims=names,
        copy_device=answers["device"] == "copy",
        copy_memory=answers["memory"] == "copy",
        options=options,
    )
    _introduce(run, stencil, declaration)
    return run


def rebind(stencil: Any, options: dict[str, Any]) -> BoundStencil:  # noqa: ANN401
    """Bind a stencil again that was copied or unpickled, with the keywords of `bind`."""
    return bind(stencil, **options)


def _introduce(run: Any, stencil: Any, declaration: Declaration) -> None:  # noqa: ANN401
    """Give `run` the name, documentation and signature of its stencil, as functools.wraps does."""
    from dlfield.stencils.plain import plain_function

    definition = plain_function(
        getattr(stencil, "definition_func", getattr(stencil, "definition", stencil))
    )
    run.__name__ = declaration.name
    run.__qualname__ = getattr(definition, "__qualname__", declaration.name)
    run.__module__ = getattr(definition, "__module__", None)
    run.__doc__ = getattr(definition, "__doc__", None)
    run.__wrapped__, run.__signature__ = stencil, declaration.signature()


def take_option(run: BoundStencil, keywords: dict[str, Any], name: str) -> Any:  # noqa: ANN401
    """Take an option out of `keywords`, unless the stencil has an argument of that name."""
    return None if name in run.argument_names else keywords.pop(name, None)


def _compiled(stencil: Any) -> Any:  # noqa: ANN401
    """Give the stencil of GT4Py behind a lazy one, which is compiled now unless it was before."""
    from dlfield.stencils.cartesian import internals
    from dlfield.stencils.cartesian.declare import CartesianStencil
    from dlfield.stencils.progress import compiling

    stencil = internals.compiled(stencil, compiling)
    wraps = not isinstance(stencil, type) and hasattr(stencil, "implementation")
    implementation = stencil.implementation if wraps else None
    return implementation if isinstance(implementation, CartesianStencil) else stencil


def _declare(
    stencil: Any,  # noqa: ANN401
    fields: Mapping[str, Any] | None,
    backend: str | None,
    offset_provider: Mapping[str, Any] | None,
    *,
    unchecked: bool,
) -> Declaration:
    # Slow to load, and not always needed.
    from dlfield.stencils import plain
    from dlfield.stencils.cartesian import declare as cartesian
    from dlfield.stencils.next import declare as gt4py_next
    from dlfield.stencils.next.tables import checked_provider

    checked_provider(offset_provider)
    if gt4py_next.is_next(stencil):
        _only_for_callables(None, backend, "a gt4py.next program")
        return gt4py_next.declare(
            stencil, offset_provider=offset_provider, fields=fields, unchecked=unchecked
        )
    if offset_provider is not None:
        expected, got = "expected it for a gt4py.next program only", type(stencil).__name__
        raise TypeError(f"offset_provider: {expected}, got it for an object of type '{got}'")
    if unchecked:
        expected, got = "expected it for a gt4py.next program only", type(stencil).__name__
        raise TypeError(f"unchecked: {expected}, got it for an object of type '{got}'")
    if isinstance(stencil, BoundStencil):
        raise TypeError("bind: expected a stencil, got one that is bound already; call it as it is")
    if isinstance(stencil, type):
        got = f"the class {stencil.__name__}"
        raise TypeError(f"bind: expected a stencil, got {got}; pass an instance of it")
    if isinstance(stencil, cartesian.CartesianStencil):
        _only_for_callables(fields, backend, "a stencil of gt4py.cartesian")
        return cartesian.declare(stencil)
    if missing := cartesian.missing(stencil):
        got = f"{type(stencil).__name__} without {', '.join(missing)}"
        way_out = "give it what dlfield.gt4py_cartesian.CartesianStencil lists"
        raise TypeError(
            f"bind: expected a stencil with all of the face of GT4Py's, got {got}; {way_out}"
        )
    if not callable(stencil):
        raise TypeError(
            "bind: expected a stencil made by gtscript.stencil, a gt4py.next program, or a "
            f"callable with dlfield.annotations, got {type(stencil).__name__}; decorate the "
            "definition with @gtscript.stencil(backend=...)"
        )
    return plain.declare(stencil, fields=fields, backend=backend)


def _only_for_callables(fields: Any, backend: Any, got: str) -> None:  # noqa: ANN401
    for option, value in (("fields", fields), ("backend", backend)):
        if value is not None:
            raise TypeError(f"{option}: expected it for a plain callable only, got it for {got}")


def _answers(on_mismatch: Answer | Mapping[str, Answer]) -> dict[str, str]:
    """Give an answer for each kind of mismatch."""
    if isinstance(on_mismatch, str):
        on_mismatch = {"device": on_mismatch, "memory": on_mismatch}
    if not isinstance(on_mismatch, Mapping):
        expected = "'copy', 'raise' or a dict by kind"
        raise TypeError(f"on_mismatch: expected {expected}, got {on_mismatch!r}")
    for kind, answer in on_mismatch.items():
        if kind not in _KINDS:
            raise ValueError(f"on_mismatch: expected 'device' or 'memory', got '{kind}'")
        if answer not in ("copy", "raise"):
            raise ValueError(
                f"on_mismatch: expected 'copy' or 'raise', got {answer!r} for '{kind}'"
            )
    if on_mismatch.get("dtype", "raise") != "raise":
        expected = "expected 'raise' for 'dtype', since values are never converted"
        raise ValueError(f"on_mismatch: {expected}, got 'copy'; use astype(...)")
    return {"device": "raise", "memory": "raise", **on_mismatch}


def _checked(dims: Mapping[str, Any], declaration: Declaration) -> dict[str, str]:
    """Read the mapping of names; a Dimension of gt4py.next stands for its name."""
    if not isinstance(dims, Mapping):
        raise TypeError(f"dims: expected a mapping of your names to 'I', 'J', 'K', got {dims!r}")
    known = dict.fromkeys(declaration.axes)
    known |= {dim: None for field in declaration.fields for dim in field.dims}
    checked: dict[str, str] = {}
    for name, dim in dims.items():
        target = getattr(dim, "value", dim)
        if not (isinstance(name, str) and isinstance(target, str)):
            raise TypeError(f"dims: expected names, got {name!r}: {dim!r}")
        if name in known and name != target:
            expected = f"names of your own, as '{name}' is one of the stencil's"
            raise ValueError(
                f"dims: expected {expected}, got '{name}': '{target}'; rename the axis"
            )
        if target not in known and not target.isdecimal():
            expected = f"{', '.join(map(repr, declaration.axes))} or a decimal"
            raise ValueError(f"dims: expected {expected} for '{name}', got '{target}'")
        checked[name] = target
    return checked
