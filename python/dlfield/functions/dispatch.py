"""NumPy's functions of storages (NEP 18), as `dlfield.functions.table` says.

The functions here look at shape and type, write, or give what NumPy gives of the values. Functions
that the table refuses raise TypeError, since NumPy would convert silently: `to_numpy()` gives the
array that has them.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import CPUStorage, Storage, elementwise
from dlfield.functions import joins as joins
from dlfield.functions import reductions as _reductions
from dlfield.functions.axes import axes_of
from dlfield.functions.copies import values
from dlfield.functions.host import way_out
from dlfield.functions.table import REFUSED, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["dispatch"]


def dispatch(
    storage: Storage,
    function: Callable[..., Any],
    types: Sequence[type],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - the function decides
    """Call what `function` of NumPy means for `storage` and the other arguments.

    Raises
    ------
    TypeError
        For a function that is refused; the text names what to use instead. NumPy raises it if
        another argument is an array of a library that does not know storages.
    """
    if not all(map(_is_known, types)):
        return NotImplemented
    if function in _reductions.FUNCTIONS:
        return _reductions.FUNCTIONS[function](*args, **keywords)
    implementation = _implementation(function)
    if implementation is None:
        raise TypeError(_refusal(function, storage))
    if function in (np.asarray, np.asanyarray):  # of the storage that is given as `like`
        return implementation(storage, *args, **keywords)
    return implementation(*args, **keywords)


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


@lru_cache(maxsize=512)
def _implementation(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Find what a function is for storages; None if it is refused."""
    row = row_of(_name(function))
    if row is None or not row.module:
        return None
    if row.module == "reductions":
        return None
    module = import_module(f"dlfield.functions.{row.module}")
    found: Callable[..., Any] = getattr(module, "FUNCTIONS", vars(module))[function.__name__]
    return found


def _refusal(function: Callable[..., Any], storage: Storage) -> str:
    name, row, way = _name(function), row_of(_name(function)), way_out(storage)
    if row in REFUSED and row.gives:
        way = f"use {row.gives}, or {way.removeprefix('use ')}"
    text = f"{name}: expected an array, got a {type(storage).__name__}"
    return f"{text}, which has no such function; {way}"


def _is_known(kind: type) -> bool:
    """Tell if arrays of a class are storages, or nothing more than their elements."""
    if issubclass(kind, Storage) or kind is np.ndarray:
        return True
    own = getattr(kind, "__array_function__", None) is not np.ndarray.__array_function__
    return not own and not issubclass(kind, np.ma.MaskedArray)


# --- shape and type ----------------------------------------------------------------------------


def _size(a: Storage, axis: Any = None) -> int:  # noqa: ANN401 - names or numbers
    axes = range(a.ndim) if axis is None else axes_of("numpy.size", a, axis)
    return int(np.prod([a.shape[one] for one in axes], dtype=np.intp))


def _by_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call NumPy with arrays of those types, without elements."""

    def stand_in(array: Any) -> Any:  # noqa: ANN401
        return np.empty(0, array.dtype) if isinstance(array, Storage) else array

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
        named = {name: stand_in(one) for name, one in keywords.items()}
        return function(*map(stand_in, args), **named)

    return call


# --- reading values ----------------------------------------------------------------------------


def _of_values(
    function: Callable[..., Any], *checks: Callable[[str, Sequence[Any]], object]
) -> Callable[..., Any]:
    """Call NumPy with the values, once the arguments have passed the checks."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
        for check in checks:
            check(function.__name__, list(_arrays((*args, *keywords.values()))))
        named = {name: values(value) for name, value in keywords.items()}
        return function(*map(values, args), **named)

    return call


def _arrays(given: Any) -> Iterator[Any]:  # noqa: ANN401
    """Go through arguments, and through the lists among them."""
    for one in given:
        yield from _arrays(one) if isinstance(one, list | tuple) else (one,)


# --- writing -----------------------------------------------------------------------------------


def _copyto(
    dst: Any,  # noqa: ANN401 - a storage or an array
    src: Any,  # noqa: ANN401
    casting: Any = "same_kind",  # noqa: ANN401 - one of NumPy's words
    where: Any = True,  # noqa: ANN401, FBT002 - as NumPy
) -> None:
    """Write into `dst`, into a storage as ``dst[...] = src``: by name if both have names.

    With a mask it writes on the host and by position.
    """
    if not isinstance(dst, Storage):
        np.copyto(dst, values(src), casting=casting, where=values(where))
        return
    _check_cast(src, dst.dtype, casting)
    if where is True:
        dst[...] = src
        return
    joins.same_names("copyto", (dst, src, where))
    joins.check_host("copyto", (dst,))

    def put(out: np.ndarray) -> None:
        np.copyto(out, values(src), casting=casting, where=values(where))

    if isinstance(dst, CPUStorage):
        elementwise(put, (), name="copyto", options={"out": dst})
        return
    if dst.readonly:
        raise BufferError("copyto: expected a writable storage, got a read-only one; use a copy()")
    with dst.host() as array:
        put(array)


def _check_cast(src: Any, dtype: np.dtype[Any], casting: Any) -> None:  # noqa: ANN401
    found = getattr(src, "dtype", None)
    if found is None:  # numbers, which NumPy judges by their value
        np.copyto(np.empty(np.shape(src), dtype), src, casting=casting)
    elif isinstance(found, np.dtype):
        joins.check_cast("copyto", found, dtype, casting)


#: Functions whose arrays go together element by element.
_PAIRING = "allclose array_equal array_equiv bincount extract histogram histogram2d lexsort"
_ON_HOST = (
    "argwhere array2string array_repr array_str bincount corrcoef cov diag_indices_from ediff1d "
    "extract flatnonzero histogram histogram2d histogram_bin_edges histogramdd intersect1d lexsort "
    "may_share_memory nonzero setdiff1d setxor1d shares_memory tril_indices_from trim_zeros "
    "triu_indices_from union1d unique unique_all unique_counts unique_inverse unique_values"
)
_TYPES = "can_cast common_type iscomplexobj isrealobj min_scalar_type result_type"


def _given_by_numpy() -> dict[str, Callable[..., Any]]:
    """Give the functions of values, by name. What gives a truth or a file reads a GPU too."""
    read = "allclose array_equal array_equiv save savetxt savez savez_compressed"
    found = {}
    for name in f"{_ON_HOST} {read}".split():
        checks = [joins.same_names] if name in _PAIRING.split() else []
        checks += [joins.check_host] if name in _ON_HOST.split() else []
        found[name] = _of_values(getattr(np, name), *checks)
    return found


#: What is computed here, by the name of NumPy's function.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": _size,
    "copyto": _copyto,
    **{name: _by_type(getattr(np, name)) for name in _TYPES.split()},
    **_given_by_numpy(),
}
