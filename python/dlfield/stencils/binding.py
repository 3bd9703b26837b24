"""`bind`: one call that takes arrays of any framework, for every kind of stencil."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from dlfield._core import BoundStencil, call_by_name

if TYPE_CHECKING:
    from dlfield.stencils.declaration import Declaration

__all__ = ["attribute", "bind", "mapped_names", "own_names", "rebind", "take_option"]

#: Answer to an argument that the stencil cannot take as it is.
Answer = Literal["copy", "raise"]

_KINDS = ("device", "memory", "dtype")

#: What stands for a missing argument in a `functools.partial`, from Python 3.14 on.
_PLACEHOLDER: Any = getattr(functools, "Placeholder", object())


def bind(
    stencil: Any,  # whatever computes
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
        Or a `functools.partial` of one, whose arguments every call gets unless it gives its own (an
        option of None counts as not given); of a callable, a partial gives scalars only.
    dims
        The stencil's dimension for each name that your arrays use, for example
        ``{"lon": "I", "lon_u": "I", "lat": "J"}``, or ``{"lon": IDim}`` for gt4py.next. The
        stencil's own names, and decimals, map to themselves.
    fields
        For a callable: `dlfield.annotations.Field` by parameter name, instead of its annotations.
        For a scan operator of gt4py.next, whose arguments have no dimensions: ``gtx.Field[...]`` by
        name, also for `out`; those that are not named are scalars. By default the dimensions are
        those of the arguments of each call, which need names.
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
        For gt4py.next: the connectivities by name, for calls that pass none.
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
    RuntimeError
        If the compiler fails for a stencil that is compiled now, as a lazy one is.
    ValueError
        If `dims` maps to a name that the stencil does not have, or renames one of its own; for an
        unknown kind of mismatch or answer; for a compiled program of gt4py.next that is not
        understood; and for a stencil of gt4py.cartesian that its backend computes wrong.

    Examples
    --------
    >>> import dlfield as dlf
    >>> import numpy as np
    >>> from dlfield.annotations import Access, Field
    >>> def double(inp: Field[np.float64, "IJ", Access["in"]], out: Field[np.float64, "IJ"]):
    ...     out[...] = 2.0 * inp
    >>> run = dlf.bind(double, dims={"lon": "I", "lat": "J"})
    >>> t, out = dlf.ones((3, 2), dims=("lat", "lon")), np.zeros((2, 3))
    >>> run(t, out)  # the axes of t go by name
    >>> out
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """
    from dlfield.stencils.next import internals
    from dlfield.stencils.next.declare import is_next

    stencil, leading, given = _taken_apart(stencil)
    if is_next(stencil):
        provided = given.pop("offset_provider", None)
        offset_provider = provided if offset_provider is None else offset_provider
    stencil = _compiled(stencil)
    answers = _answers(on_mismatch)
    options = {
        "dims": dims,
        "fields": dict(fields) if isinstance(fields, Mapping) else fields,
        "backend": backend,
        "on_mismatch": answers,
        "offset_provider": offset_provider,
        "unchecked": unchecked,
        "partial": (leading, given),
    }
    kind: Any = BoundStencil
    if fields is None and internals.is_scan(stencil):
        from dlfield.stencils.next.scan import ScanByArguments, declare_scalars

        kind, declaration, names = ScanByArguments, declare_scalars(stencil), {}
    else:
        declaration = _declare(stencil, fields, backend, offset_provider, unchecked=unchecked)
        names = _checked(dims or {}, declaration)
    run = kind(
        stencil,
        declaration,
        dims=names,
        copy_device=answers["device"] == "copy",
        copy_memory=answers["memory"] == "copy",
        options=options,
        partial=_named(leading, given, declaration),
    )
    if kind is not BoundStencil:
        run.bind = lambda **known: rebind(stencil, options | known)
        run.dims = dims or {}
    _introduce(run, stencil, declaration, leading, given)
    return run  # type: ignore[no-any-return]


def rebind(stencil: Any, options: dict[str, Any]) -> BoundStencil:
    """Bind a stencil again that was copied or unpickled, with the keywords of `bind`."""
    leading, given = options["partial"]
    keywords = {name: value for name, value in options.items() if name != "partial"}
    again = functools.partial(stencil, *leading, **given) if leading or given else stencil
    return bind(again, **keywords)


#: Methods of gt4py.next that return a program or operator.
_RETURN_STENCILS = frozenset({
    "as_program",
    "compile",
    "with_backend",
    "with_bound_args",
    "with_compilation_options",
    "with_connectivities",
    "with_grid_type",
    "with_static_params",
})  # fmt: skip


def attribute(run: BoundStencil, options: dict[str, Any], name: str) -> Any:
    """Return an attribute of the stencil; what makes another stencil, or runs it, is bound."""
    if name == "run" and hasattr(run.stencil, "field_info"):
        return functools.partial(_run, run)
    if name.startswith("__") or not hasattr(run.stencil, name):
        raise AttributeError(f"'BoundStencil' object has no attribute '{name}'", name=name, obj=run)
    value = getattr(run.stencil, name)
    if name not in _RETURN_STENCILS or not callable(value):
        return value

    @functools.wraps(value)
    def bound(*args: Any, **kwargs: Any) -> BoundStencil:
        made = value(*args, **kwargs)
        return run if made is run.stencil else rebind(made, options)

    return bound


def _run(
    run: BoundStencil,
    /,
    _domain_: tuple[int, ...],
    _origin_: Mapping[str, tuple[int, ...]],
    exec_info: dict[str, Any] | None = None,
    **arguments: Any,
) -> None:
    """Call as the `run` of a stencil of gt4py.cartesian is called, with every check."""
    axes, fields = run.declaration.axes, run.declaration.fields
    ndim = {field.name: sum(dim in axes for dim in field.dims) for field in fields}
    origin = {name: at[: ndim[name]] for name, at in _origin_.items() if name in ndim}
    call_by_name(run, arguments, origin=origin, domain=_domain_, exec_info=exec_info)


def _taken_apart(stencil: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the stencil in a `functools.partial`, and the arguments that it was given."""
    from dlfield.stencils import plain
    from dlfield.stencils.cartesian import internals
    from dlfield.stencils.cartesian.declare import CartesianStencil
    from dlfield.stencils.next.declare import is_next

    if not isinstance(stencil, functools.partial):
        return stencil, (), {}
    own = stencil.func
    if isinstance(own, BoundStencil):
        return own, (), {}
    if any(one is _PLACEHOLDER for one in stencil.args):
        expected = "a functools.partial without functools.Placeholder"
        raise TypeError(f"bind: expected {expected}, got one; pass its arguments by name")
    if is_next(own) or internals.is_lazy(own) or isinstance(own, CartesianStencil):
        return own, stencil.args, dict(stencil.keywords)
    return plain.taken_apart(stencil)


def _named(
    leading: tuple[Any, ...], given: Mapping[str, Any], declaration: Declaration
) -> tuple[int, dict[str, Any]] | None:
    """Return the arguments of a `functools.partial` by name, with how many had none."""
    if not leading and not given:
        return None
    name, known = declaration.name, list(declaration.order)
    if len(leading) > declaration.positional:
        expected = f"at most {declaration.positional} arguments of '{name}' without a name"
        raise TypeError(f"bind: expected {expected} in the functools.partial, got {len(leading)}")
    options = ("origin", "domain", "exec_info", *declaration.ignores)
    if unknown := [one for one in given if one not in (*known, *options)]:
        expected = f"arguments of '{name}' in the functools.partial"
        got = f"'{unknown[0]}'; the arguments are {', '.join(known)}"
        raise TypeError(f"bind: expected {expected}, got {got}")
    by_position = dict(zip(known, leading, strict=False))
    if twice := by_position.keys() & given.keys():
        expected = f"each argument of '{name}' once in the functools.partial"
        raise TypeError(f"bind: expected {expected}, got '{min(twice)}' twice; leave one out")
    return len(leading), by_position | dict(given)


def _introduce(
    run: Any,
    stencil: Any,
    declaration: Declaration,
    leading: tuple[Any, ...],
    given: Mapping[str, Any],
) -> None:
    """Copy name, documentation and signature of the stencil to `run`, as functools.wraps does."""
    import inspect

    from dlfield.stencils.plain import plain_function

    definition = plain_function(
        getattr(stencil, "definition_func", getattr(stencil, "definition", stencil))
    )
    run.__name__ = declaration.name
    run.__qualname__ = getattr(definition, "__qualname__", declaration.name)
    run.__module__ = getattr(definition, "__module__", None)
    run.__doc__ = getattr(definition, "__doc__", None)
    run.__wrapped__, run.__signature__ = stencil, declaration.signature()
    if leading or given:
        known = {name: given[name] for name in given if name in run.__signature__.parameters}
        run.__signature__ = inspect.signature(functools.partial(run, *leading, **known))


def mapped_names(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the stencil's names of dimensions by the user's, from the keywords of `bind`."""
    return {name: getattr(dim, "value", dim) for name, dim in (options["dims"] or {}).items()}


def own_names(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the user's name for each of the stencil's dimensions that has just one."""
    names = mapped_names(options).items()
    targets = [target for _, target in names]
    return {target: name for name, target in names if targets.count(target) == 1}


def take_option(run: BoundStencil, keywords: dict[str, Any], name: str) -> Any:
    """Take an option out of `keywords`, unless the stencil has an argument of that name."""
    if name not in keywords or name in run.argument_names:
        return None
    return keywords.pop(name)


def _compiled(stencil: Any) -> Any:
    """Return the stencil of GT4Py behind a lazy one, which is compiled now unless it was before."""
    from dlfield.stencils.cartesian import internals
    from dlfield.stencils.cartesian.declare import CartesianStencil
    from dlfield.stencils.compilation import compile_or_fail  # it imports logging

    stencil = compile_or_fail(lambda around: internals.compiled(stencil, around))
    wraps = not isinstance(stencil, type) and hasattr(stencil, "implementation")
    implementation = stencil.implementation if wraps else None
    return implementation if isinstance(implementation, CartesianStencil) else stencil


def _declare(
    stencil: Any,
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

    if isinstance(stencil, BoundStencil):
        raise TypeError("bind: expected a stencil, got one that is bound already; call it as it is")
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
    if isinstance(stencil, type):
        got = f"the class {stencil.__name__}"
        raise TypeError(f"bind: expected a stencil, got {got}; pass an instance of it")
    if isinstance(stencil, cartesian.CartesianStencil):
        _only_for_callables(fields, backend, "a stencil of gt4py.cartesian")
        return cartesian.declare(stencil)
    if missing := cartesian.missing(stencil):
        got = f"{type(stencil).__name__} without {', '.join(missing)}"
        way_out = "add what dlfield.gt4py_cartesian.CartesianStencil lists"
        raise TypeError(
            f"bind: expected a stencil with every attribute of GT4Py's, got {got}; {way_out}"
        )
    if not callable(stencil):
        raise TypeError(
            "bind: expected a stencil made by gtscript.stencil, a gt4py.next program, or a "
            f"callable with dlfield.annotations, got {type(stencil).__name__}; decorate the "
            "definition with @gtscript.stencil(backend=...)"
        )
    return plain.declare(stencil, fields=fields, backend=backend)


def _only_for_callables(fields: Any, backend: Any, got: str) -> None:
    for option, value in (("fields", fields), ("backend", backend)):
        if value is not None:
            raise TypeError(f"{option}: expected it for a plain callable only, got it for {got}")


def _answers(on_mismatch: Answer | Mapping[str, Answer]) -> dict[str, str]:
    """Return an answer for each kind of mismatch."""
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
            expected = f"{', '.join(map(repr, declaration.axes))} or a data dimension such as '0'"
            raise ValueError(f"dims: expected {expected} for '{name}', got '{target}'")
        checked[name] = target
    return checked
