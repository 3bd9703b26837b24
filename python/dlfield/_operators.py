"""Arithmetic on storages: refused, with the way out.

GDP-3 removes universal functions from storages. Python's own refusals name no way out, and without
``__eq__`` a comparison with an array would quietly be False.
"""

from typing import Any, NoReturn

_BINARY = (
    "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split()  # noqa: SIM905
)
#: Without the conversions Python would read a storage of bytes as the text of a number.
_UNARY = ("neg", "pos", "abs", "invert", "bool", "int", "float", "complex", "index", "round")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _refusal(name: str) -> Any:  # noqa: ANN401 - a method of any signature
    def refuse(self: object, *_others: object) -> NoReturn:
        text = f"{name}: expected an array, got a {type(self).__name__}, which has no arithmetic"
        raise TypeError(f"{text}; use storage.to_numpy(), which copies nothing")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def refuse_on(cls: type) -> None:
    """Give `cls` every operator and comparison, each raising TypeError that names to_numpy()."""
    for name in (*_BINARY, *_UNARY, *_COMPARISONS):
        setattr(cls, f"__{name}__", _refusal(f"__{name}__"))
    for name in _BINARY:
        setattr(cls, f"__r{name}__", _refusal(f"__r{name}__"))
    cls.__hash__ = object.__hash__  # type: ignore[assignment]
