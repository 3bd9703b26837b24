"""Methods of storages that are written in Python, above all the operators.

GDP-3 removes universal functions from storages, so arithmetic raises TypeError with the way out;
without ``__eq__`` a comparison with an array would silently be False. A single element is a number.
Methods import what they need when they are called.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from dlfield._ways_out import way_out
from dlfield.xarray import to_xarray

_BINARY = (
    "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split()  # noqa: SIM905
)
_UNARY = ("neg", "pos", "abs", "invert", "round")
#: Without these, Python would read a storage of bytes as the text of a number.
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": lambda value: _index(value),
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _refusal(name: str) -> Any:  # noqa: ANN401 - a method of any signature
    def refuse(self: object, *_others: object) -> NoReturn:
        text = f"{name}: expected an array, got a {type(self).__name__}, which has no arithmetic"
        raise TypeError(f"{text}; {way_out(self)}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _conversion(name: str, convert: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    def to_number(self: Any) -> Any:  # noqa: ANN401 - a storage, and a number of some kind
        if self.size != 1:
            got = f"a {type(self).__name__} of shape {self.shape}"
            raise TypeError(f"{name}: expected one element, got {got}; {way_out(self)}")
        return convert(self.item())

    to_number.__name__ = to_number.__qualname__ = name
    return to_number


def _index(value: Any) -> int:  # noqa: ANN401
    if isinstance(value, bool):  # as a key it is a mask, as in NumPy
        raise TypeError("__index__: expected an integer, got a bool; use bool(storage)")
    return operator.index(value)


def _elements(self: Any) -> Iterator[Any]:  # noqa: ANN401
    """Iterate over the first dimension."""
    return (self[index] for index in range(len(self)))


def _elements_backwards(self: Any) -> Iterator[Any]:  # noqa: ANN401
    return (self[index] for index in reversed(range(len(self))))


def _array_function(
    self: Any,  # noqa: ANN401
    func: Callable[..., Any],
    types: Sequence[type],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:  # noqa: ANN401
    """Call what a function of NumPy means for storages, or raise TypeError (NEP 18).

    Views: transpose, moveaxis, swapaxes, matrix_transpose, expand_dims, squeeze, reshape, flip,
    rot90, broadcast_to, broadcast_arrays. New storages: concatenate, stack, where, roll, pad, copy,
    astype, empty_like and its kin. Also asarray and asanyarray with like=, ravel, shape, ndim,
    size, result_type, copyto, all, any, array_equal, allclose, shares_memory, save, savez.
    """
    from dlfield._array_functions import dispatch

    return dispatch(self, func, types, args, kwargs)


def _array_ufunc(
    self: Any,  # noqa: ANN401
    ufunc: Callable[..., Any],
    method: str,
    *_inputs: object,
    **_options: object,
) -> NoReturn:
    """Raise TypeError with the way out: universal functions do not take storages (GDP-3)."""
    name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    text = f"{name}: expected arrays, got a {type(self).__name__}, which has no arithmetic"
    raise TypeError(f"{text}; {way_out(self)}")


def _astype(
    self: Any,  # noqa: ANN401
    dtype: Any,  # noqa: ANN401
    order: str | None = "K",
    casting: str = "unsafe",
    subok: object = None,
    copy: bool = True,  # noqa: FBT001, FBT002 - as NumPy
) -> Any:  # noqa: ANN401
    """Copy with another type into the same names, halo, layout and alignment.

    Converts as NumPy does. With `copy=False` the storage itself, if it has that type and order.
    `subok` means nothing.

    Raises
    ------
    TypeError
        If `casting` forbids it.
    """
    from dlfield._array_functions import astype

    return astype(self, dtype, order, casting, subok, copy)


def _html(self: Any) -> str:  # noqa: ANN401
    """Show the storage in a notebook."""
    from dlfield._html import render

    return render(self)


def install_on(cls: type) -> None:
    """Give `cls` every operator and comparison, each of which raises TypeError with the way out.

    Also the conversions of a single element, iteration, NumPy's functions and `to_xarray`.
    """
    for name, convert in _CONVERSIONS.items():
        setattr(cls, f"__{name}__", _conversion(f"__{name}__", convert))
    cls.__array_function__ = _array_function  # type: ignore[attr-defined]
    cls.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
    cls.astype = _astype  # type: ignore[attr-defined]
    cls.to_xarray = to_xarray  # type: ignore[attr-defined]
    cls.__iter__ = _elements  # type: ignore[attr-defined]
    cls._repr_html_ = _html  # type: ignore[attr-defined]
    cls.__reversed__ = _elements_backwards  # type: ignore[attr-defined]
    for name in (*_BINARY, *_UNARY, *_COMPARISONS):
        setattr(cls, f"__{name}__", _refusal(f"__{name}__"))
    for name in _BINARY:
        setattr(cls, f"__r{name}__", _refusal(f"__r{name}__"))
    cls.__hash__ = object.__hash__  # type: ignore[assignment]
