"""NumPy's functions on storages (NEP 18), executed by the signatures in `table`.

A function that the table refuses or does not list raises TypeError, because NumPy would silently
convert the storage; call it on the array from `to_numpy()`. Inside xarray and Dask, which keep the
names themselves, it is computed by position. `OWN` has the functions that are written by hand.
"""

from __future__ import annotations

import inspect
from functools import lru_cache, partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import (
    Storage,
    elementwise,
    empty_like,
    get_dims,
    has_matched_dims,
    reduced,
    reducing_functions,
)
from dlfield.functions import averages, chunks, copies, labels, ufuncs, views
from dlfield.functions.axes import axes_of, axis_of, numbered
from dlfield.functions.host import check_host, each, on_host, values, way_out
from dlfield.functions.labels import Labels, same_names
from dlfield.functions.table import Row, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Function = Callable[..., Any]
    from dlfield._core import Array

__all__ = ["OWN", "dispatch", "implementation"]


def dispatch(
    storage: Storage,
    function: Function,
    types: Sequence[type],
    args: Sequence[Array],
    keywords: Mapping[str, Array],
) -> Any:  # the function decides
    """Call the version of NumPy's `function` that storages have.

    Raises
    ------
    TypeError
        For a refused function; the text names what to use instead. NumPy raises it as well if
        another argument belongs to a library that does not know storages. Inside xarray and Dask,
        which keep the names themselves, a refused function returns what NumPy returns.
    """
    if not all(map(_is_known, types)):
        beside_dask = any(kind.__module__.split(".")[0] == "dask" for kind in types)
        return chunks.computed(function, args, keywords) if beside_dask else NotImplemented
    found = implementation(function)
    if found is None:
        if has_matched_dims():
            return _by_position(function, args, keywords)
        raise TypeError(_refusal(function, storage))
    if function in (np.asarray, np.asanyarray):  # of the storage that is given as `like`
        return found(storage, *args, **keywords)
    return found(*args, **keywords)


@lru_cache(maxsize=512)
def implementation(function: Function) -> Function | None:
    """Return the implementation of a function for storages; None if it is refused."""
    row = row_of(_name(function))
    if row is None or not row.signature:
        return None
    if row.rule == "own":
        return OWN[function.__name__]
    if function in reducing_functions():
        return partial(reduced, function)
    return _lift(row)(row, function)


def _lift(row: Row) -> Callable[[Row, Function], Function]:
    if row.result == "view":
        return _viewed
    if row.result == "dtype":
        return _by_type
    if "..." not in row.result:
        return _of_values
    return _by_element if row.result == "..." and "..." in row.operands else _along


def _by_position(function: Function, args: Sequence[Array], keywords: Mapping[str, Array]) -> Array:
    check_host(_short(function), each((*args, *keywords.values())))
    return function(*values(args), **values(dict(keywords)))


def _name(function: Function) -> str:
    return f"{function.__module__}.{function.__name__}"


def _short(function: Function) -> str:
    """Return the name after `numpy.`; CuPy uses the same one after `cupy.`."""
    return _name(function).removeprefix("numpy.")


def _refusal(function: Function, storage: Storage) -> str:
    name, way = _name(function), way_out(storage)
    row = row_of(name)
    if row is not None and row.gives:
        way = f"use {row.gives}, or {way.removeprefix('use ')}"
    text = f"{name}: expected an array, got a {type(storage).__name__}"
    return f"{text}, which has no such function; {way}"


def _is_known(kind: type) -> bool:
    """Return True for storages, and for arrays that add nothing to their elements."""
    if issubclass(kind, Storage) or kind is np.ndarray:
        return True
    own = getattr(kind, "__array_function__", None) is not np.ndarray.__array_function__
    return not own and not issubclass(kind, np.ma.MaskedArray)


# --- by signature --------------------------------------------------------------------------------


def _viewed(row: Row, function: Function) -> Function:
    """Lift a function that moves axes or takes parts."""
    view, check = views.mapped(function), _least(row, function)
    parameters, _, _ = _parameters(row, function)
    has_axis = "k" in row.operands[0] and "axis" in parameters

    def call(*args: Array, **keywords: Array) -> Any:  # one or several
        given = {**dict(zip(parameters, args, strict=False)), **keywords}
        a = given.pop(next(iter(parameters)))
        if not isinstance(a, Storage):  # only another argument is one
            return function(a, **values(given))
        if has_axis:
            axis = given.get("axis", parameters["axis"])
            given["axis"] = axis_of(f"numpy.{function.__name__}", a, axis)
        check(a)
        return view(a, **given)

    return call


def _least(row: Row, function: Function) -> Callable[[Storage], None]:
    """Return a check that a storage has the axes that the signature names."""
    least = 0 if "*" in row.operands[0] else sum(map(str.isalpha, row.operands[0]))

    def check(a: Storage) -> None:
        if a.ndim < least:
            raise ValueError(
                f"numpy.{function.__name__}: expected a storage of at least {least} dimensions, "
                f"got {a.ndim}; use to_numpy()"
            )

    return check


def _by_type(_: Row, function: Function) -> Function:
    """Lift a function of types: NumPy gets an empty array of the dtype of each storage."""

    def typed(one: Array) -> Array:
        return np.empty(0, one.dtype) if isinstance(one, Storage) else one

    def call(*args: Array, **keywords: Array) -> Any:
        return function(*map(typed, args), **{name: typed(one) for name, one in keywords.items()})

    return call


def _of_values(row: Row, function: Function) -> Function:
    """Lift a function that returns what NumPy does."""
    parameters, _, _ = _parameters(row, function)
    numbers = [name for name in parameters if name.startswith("axis")]
    most = 1 if "k" in row.operands[0] else None

    def call(*args: Array, **keywords: Array) -> Any:
        given = list(each((*args, *keywords.values())))
        if len(row.operands) > 1:
            dims = (one and one[:most] for one in map(get_dims, given))
            same_names(function.__name__, dims, may_be_unrelated=False)
        if numbers:
            args, keywords = (), {**dict(zip(parameters, args, strict=False)), **keywords}
            model = next(one for one in given if isinstance(one, Storage))
            for name in keywords.keys() & numbers:
                keywords[name] = numbered(_name(function), model, keywords[name])
        if row.result == "*":
            check_host(_short(function), given)
        return function(*values(args), **values(keywords))

    return call


def _by_element(row: Row, function: Function) -> Function:
    """Lift a function of elements, whose operands are matched by name; tables are on the host."""
    what = _short(function)
    parameters, names, tables = _parameters(row, function)

    @wraps(function)
    def into(*arrays: Array, **options: Array) -> Array:
        found = function(**dict(zip(names, arrays, strict=False)), **options)
        if len(arrays) == len(names):
            return found
        np.copyto(arrays[-1], found)
        return arrays[-1]

    if "..." not in row.operands[0]:
        del into.__wrapped__  # the function of CuPy takes the operands in another order

    def call(*args: Array, **keywords: Array) -> Array:
        given = {**dict(zip(parameters, args, strict=False)), **keywords}
        inputs = tuple(given.pop(name, parameters[name]) for name in names)
        out = given.pop("out", None)
        options = {name: on_host(what, one) for name, one in given.items()}
        if tables and not isinstance(inputs[0], Storage):
            return function(**dict(zip(names, inputs, strict=True)), **options)
        return elementwise(into, inputs, name=f"numpy.{what}", options={"out": out, **options})

    return call


def _along(row: Row, function: Function) -> Function:
    """Lift a function along axes: NumPy computes it on the host, and a new storage gets the result.

    If no operand with labels is a storage, NumPy's own result is returned.
    """
    what = _short(function)
    parameters, names, tables = _parameters(row, function)
    several, check = "*" in row.operands[0], _least(row, function)
    read_axis = partial(axes_of, again=function is np.roll) if several else axis_of
    along = [one for one, axes in zip(parameters, row.operands, strict=False) if axes == "k"]
    first, has_spacings = next(iter(parameters)), function is np.gradient
    in_place = getattr(np.ndarray, what) if what in ("sort", "partition") else None

    def call(*args: Array, **keywords: Array) -> Any:  # one or several
        leading, more = (args[:1], args[1:]) if has_spacings else (args, ())
        given = {**dict(zip(parameters, leading, strict=False)), **keywords}
        copies.check_no_out(what, given.get("out"))
        if len(names) > 1:
            same_names(what, [get_dims(given[name]) for name in names])
        model = next((given[name] for name in names if isinstance(given[name], Storage)), None)
        named = [get_dims(given[name]) for name in along]
        given = {name: on_host(what, one) for name, one in given.items()}
        rest = [on_host(what, one) for one in more]
        for name in tables:
            if isinstance(given[name], list) and not given[name]:
                given[name] = np.empty(0, np.intp)  # an empty list is one of integers
        if model is None:
            return function(given.pop(first), *rest, **given)
        axis = given.get("axis", parameters.get("axis", 0))
        if "axis" in parameters and not (several and axis is None):
            given["axis"] = read_axis(_name(function), model, axis)
        check(model)
        beside = [(dims, given["axis"]) for dims in named]
        if more:  # spacings, each along its axis
            axes = given.get("axis") or range(model.ndim)
            beside += zip(map(get_dims, more), axes, strict=False)
        for dims, at in beside:
            same_names(what, (dims, model.dims and (model.dims[at],)))
        array = given.pop(first)
        if in_place is None:
            return _labelled(row, model, function(array, *rest, **given), given)
        made = empty_like(model)
        with made.host() as own:
            np.copyto(own, array)
            in_place(own, **given)
        return made

    return call


def _parameters(row: Row, function: Function) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return all named parameters with defaults, then the operands with labels, then the others."""
    found = _signature(function).parameters.values()
    parameters = {one.name: one.default for one in found if one.kind is not one.VAR_POSITIONAL}
    pairs = list(zip(parameters, row.operands, strict=False))
    labelled = [name for name, axes in pairs if "..." in axes]
    return parameters, labelled, [name for name, axes in pairs if "..." not in axes]


def _signature(function: Function) -> inspect.Signature:
    """Return the signature; before NumPy 2.4 only the docstring of a function in C has it."""
    try:
        return inspect.signature(function)
    except ValueError:
        text = (function.__doc__ or "").strip().partition("\n\n")[0]
        made: dict[str, Any] = {}
        exec(f"def {text}: ...", made)
        return inspect.signature(made[function.__name__])


def _labelled(row: Row, model: Storage, found: Any, given: Mapping[str, Array]) -> Any:
    """Put results of NumPy into storages like a model, with the labels of the rule."""
    if isinstance(found, list | tuple):
        return type(found)(_labelled(row, model, one, given) for one in found)
    found = np.asarray(found)
    if row.result == "..." and not found.ndim:
        return found[()]
    rule = None
    if row.rule:
        of = Labels(model.dims, model.halo, model.shape)
        rule = getattr(labels, row.rule)(of, found.shape, given)
    if rule is None:
        same = found.dtype == model.dtype  # without a dtype, empty_like is cheaper
        return copies.filled(empty_like(model) if same else empty_like(model, found.dtype), found)
    return copies.filled(copies.made_like(found.shape, found.dtype, model, *rule), found)


# --- written by hand -----------------------------------------------------------------------------

#: Functions that need more than their signature, by the name of NumPy's function.
OWN: dict[str, Function] = {
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "around": ufuncs.rounded,
    "round": ufuncs.rounded,
    "asanyarray": copies.asarray,
    "hstack": copies.joining("hstack", np.atleast_1d, 1),
    "vstack": copies.joining("vstack", np.atleast_2d, 0),
    "row_stack": copies.joining("row_stack", np.atleast_2d, 0),  # an alias, in some versions
    "dstack": copies.joining("dstack", np.atleast_3d, 2),
    **{f"{name}_like": copies.like(name) for name in ("empty", "ones", "zeros")},
    **{one.__name__: views.at_least(one) for one in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    **{
        one.__name__: one
        for one in (
            *(views.transpose, views.expand_dims, views.unstack, views.reshape, views.ravel),
            *(views.broadcast_to, views.broadcast_arrays, views.sliding_window_view),
            *(copies.asarray, copies.astype, copies.copy, copies.full_like),
            *(copies.concatenate, copies.stack, copies.pad),
            *(ufuncs.where, ufuncs.select, ufuncs.choose, ufuncs.clip, ufuncs.nan_to_num),
            *(ufuncs.real, ufuncs.imag, ufuncs.copyto, ufuncs.size),
            *(ufuncs.diff, ufuncs.trapezoid, ufuncs.count_nonzero),
            *(averages.average, averages.corrcoef, averages.cov),
        )
    },
}
