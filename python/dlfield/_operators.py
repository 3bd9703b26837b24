"""Operators of storages.

GDP-3 removes universal functions from storages, so arithmetic raises TypeError with the way out;
without ``__eq__`` a comparison with an array would silently be False. A single element is a number.
"""

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from dlfield._methods import way_out

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


def install_on(cls: type) -> None:
    """Give `cls` every operator and comparison, each of which raises TypeError with the way out.

    Also the conversions of a single element.
    """
    for name, convert in _CONVERSIONS.items():
        setattr(cls, f"__{name}__", _conversion(f"__{name}__", convert))
    refused = [*_BINARY, *_UNARY, *_COMPARISONS, *(f"r{name}" for name in _BINARY)]
    for name in refused:
        setattr(cls, f"__{name}__", _refusal(f"__{name}__"))
    cls.__hash__ = object.__hash__  # type: ignore[assignment]
