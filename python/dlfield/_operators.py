"""Methods of storages that are written in Python, beside the operators, which are compiled.

A single element is a number. Methods import what they need when they are called.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dlfield._ways_out import way_out
from dlfield.xarray import to_xarray

#: Without these, Python would read a storage of bytes as the text of a number.
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "complex": complex,
    "index": lambda value: _index(value),
}


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
    size, result_type, copyto, array_equal, allclose, shares_memory, save, savez. Reductions by name
    or number: sum, mean, max, all, any, their kin and their nan forms, cumsum, cumprod. Element
    by element: clip, round, isclose, nan_to_num, real, imag, angle, sinc, isreal, iscomplex.
    """
    from dlfield._array_functions import dispatch

    return dispatch(self, func, types, args, kwargs)


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


def _bool(self: Any) -> bool:  # noqa: ANN401
    """Give the truth of a single element; NumPy's ValueError for any other number of them."""
    if self.size != 1:
        raise ValueError(
            f"bool: expected one element, got a {type(self).__name__} of shape {self.shape}, whose "
            "truth is ambiguous; use storage.any() or storage.all()"
        )
    return bool(self.item())


def _contains(self: Any, value: object) -> bool:  # noqa: ANN401 - a storage
    """Tell if an element equals `value`, as NumPy does."""
    return bool((self == value).any())


def install_on(cls: type) -> None:
    """Give `cls` the conversions of a single element, iteration, and NumPy's functions."""
    for name, convert in _CONVERSIONS.items():
        setattr(cls, f"__{name}__", _conversion(f"__{name}__", convert))
    cls.__bool__ = _bool  # type: ignore[attr-defined]
    cls.__contains__ = _contains  # type: ignore[operator]
    cls.__array_function__ = _array_function  # type: ignore[attr-defined]
    cls.astype = _astype  # type: ignore[attr-defined]
    cls.to_xarray = to_xarray  # type: ignore[attr-defined]
    cls.__iter__ = _elements  # type: ignore[attr-defined]
    cls._repr_html_ = _html  # type: ignore[attr-defined]
    cls.__reversed__ = _elements_backwards  # type: ignore[attr-defined]
