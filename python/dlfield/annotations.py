"""Annotations for the fields of a plain callable, as in the draft, for `dlfield.bind`.

``Field[np.float32]`` is enough; more parameters come in any order, each once::

    Field[np.float32, DefaultParameters["F"]]
    Field[DType[np.float32], Alignment[8], LayoutMap[(0, 2, 1)], Axes["IJK"]]
    Field[IJ, np.float32]  # dtype and axes go without their name
    Field[IJK, (np.float64, (3,))]  # three numbers at each point: a data dimension "0"
    Field[np.float64, Axes["Cell", "K"], Access["in"], Boundary[((1, 1), (0, 0))]]

Write them without ``Annotated``: ``def blur(inp: Field[np.float32], out: Field[np.float32])``. mypy
treats them as Any, but reads a string inside, such as "F", as a name. In that case, or to name an
annotation, write ``Fortran: Any = Field[np.float32, DefaultParameters["F"]]`` above and
``inp: Fortran`` in the signature.

Annotate a GTScript definition with ``gtscript.Field`` instead. Nothing is allocated
or copied here. Source: draft, Annotation of Stencils; `Access` and `Boundary` are our own.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlfield._core import empty, preset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

__all__ = [
    "IJ",
    "IJK",
    "IK",
    "JK",
    "Access",
    "Alignment",
    "Axes",
    "Boundary",
    "DType",
    "DefaultParameters",
    "Field",
    "FieldAnnotation",
    "I",
    "J",
    "K",
    "LayoutMap",
]

_USES = ("in", "out", "inout")
_KINDS = "DType, Axes, LayoutMap, DefaultParameters, Alignment, Access, Boundary"


@dataclass(frozen=True, repr=False)
class FieldAnnotation:
    """Checked declaration of a field, made by ``Field[...]``. Compares by value.

    Attributes
    ----------
    dtype
        Type of an element.
    axes
        Names of the axes in the order of the array's dimensions, without data dimensions.
    data_shape
        Extents of the data dimensions, which come after the axes, in elements.
    layout
        Rank of each dimension (0 = largest stride), data dimensions included; None: any.
    preset
        Name of the default parameters, which `layout` and `alignment` override. None: any.
    alignment
        Alignment of the point at the origin, in elements; None: any.
    access
        "in", "out" or "inout".
    boundary
        Points that are read below and above the domain, for each of `axes`.
    """

    dtype: np.dtype[Any]
    axes: tuple[str, ...]
    data_shape: tuple[int, ...]
    layout: tuple[int, ...] | None
    preset: str | None
    alignment: int | None
    access: str
    boundary: tuple[tuple[int, int], ...]

    def __repr__(self) -> str:
        known = {
            "Axes": self.axes if self.axes != ("I", "J", "K") else None,
            "LayoutMap": self.layout,
            "DefaultParameters": self.preset,
            "Alignment": self.alignment,
            "Access": self.access if self.access != "inout" else None,
            "Boundary": self.boundary if any(map(any, self.boundary)) else None,
        }
        others = [f"{kind}[{value!r}]" for kind, value in known.items() if value is not None]
        return f"Field[{', '.join([_shown(self.dtype, self.data_shape), *others])}]"


@dataclass(frozen=True, repr=False)
class Parameter:
    """One parameter of a field, such as ``Alignment[8]``."""

    kind: str
    value: Any

    def __repr__(self) -> str:
        value = _shown(*self.value) if self.kind == "DType" else repr(self.value)
        return f"{self.kind}[{value}]"


class _Maker:
    """The name before the brackets: ``Alignment`` in ``Alignment[8]``."""

    def __init__(self, kind: str, check: Callable[[Any], Any]) -> None:
        self._kind, self._check = kind, check
        self.__doc__ = check.__doc__

    def __getitem__(self, given: Any) -> Any:  # checked
        value = self._check(given)
        return value if isinstance(value, FieldAnnotation) else Parameter(self._kind, value)

    def __repr__(self) -> str:
        return self._kind


def _field(given: Any) -> FieldAnnotation:
    """Declare a field: its dtype and further parameters, in any order, each once.

    Raises ValueError without a dtype, for a parameter that comes twice, and for lengths that
    contradict each other, and TypeError for anything but a dtype, axes or a parameter.
    """
    several = isinstance(given, tuple) and not _is_array_type(given)
    parameters: dict[str, Any] = {}
    for item in given if several else (given,):
        parameter = item if isinstance(item, Parameter) else _positional(item)
        if parameter.kind in parameters:
            raise ValueError(_wrong("Field", f"{parameter.kind} once", given, "leave one out"))
        parameters[parameter.kind] = parameter.value
    if "DType" not in parameters:
        raise ValueError(_wrong("Field", "a dtype", given, "add one, such as np.float64"))
    return _annotation(parameters)


def _positional(item: Any) -> Any:
    """Tell axes from a dtype: a text of I, J and K only is axes, and so are several texts."""
    several = isinstance(item, tuple | list) and len(item) > 0
    if several and all(isinstance(one, str | Parameter) for one in item):
        return Axes[item]
    return Axes[item] if _is_cartesian(item) else DType[item]


def _annotation(parameters: dict[str, Any]) -> FieldAnnotation:
    dtype, data_shape = parameters["DType"]
    axes = parameters.get("Axes", ("I", "J", "K"))
    boundary = parameters.get("Boundary", ((0, 0),) * len(axes))
    layout = parameters.get("LayoutMap")
    dims = (*axes, *map(str, range(len(data_shape))))
    layout = _layout(layout(len(dims))) if callable(layout) else layout
    _match("Boundary", f"a pair for each of the axes {axes}", axes, boundary)
    layout = _of_axes(layout, axes) if len(dims) < len("IJK") else layout
    _match("LayoutMap", f"a rank for each of the dimensions {dims}", dims, layout)
    preset, alignment = parameters.get("DefaultParameters"), parameters.get("Alignment")
    access = parameters.get("Access", "inout")
    return FieldAnnotation(dtype, axes, data_shape, layout, preset, alignment, access, boundary)


def _of_axes(layout: Any, axes: tuple[str, ...]) -> Any:
    """Pick the ranks of the field's axes from those of I, J and K, as in the draft."""
    if layout is None or len(layout) != len("IJK") or not set(axes) <= set("IJK"):
        return layout
    ranks = [rank for axis, rank in zip("IJK", layout, strict=True) if axis in axes]
    return tuple(sorted(ranks).index(rank) for rank in ranks)


def _match(what: str, expected: str, dims: tuple[str, ...], given: Any) -> None:
    if given is not None and len(given) != len(dims):
        raise ValueError(_wrong(what, expected, given, "add or leave out some, or say the Axes"))


def _dtype(given: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type of an element: ``DType[np.float32]``; ``DType[np.float32, (3,)]`` for three each."""
    import numpy as np  # not with dlfield itself

    base, shape = given if _is_array_type(given) else (given, ())
    base = "" if base is None else base  # a float64 to NumPy
    with suppress(TypeError):  # of names that dlfield knows and NumPy does not
        whole = np.dtype(base)
        base, shape = whole.base, (*shape, *whole.shape)
    sizes = _ints("DType", shape)
    if any(size < 1 for size in sizes):
        layout = len(sizes) > 1 and sorted(sizes) == list(range(len(sizes)))
        way_out = f"write LayoutMap[{sizes}] for a layout" if layout else "leave out what is empty"
        raise ValueError(_wrong("DType", "1 or more elements", sizes, way_out))
    try:
        return empty((), base).dtype, sizes
    except TypeError as error:
        kind = ValueError if isinstance(given, str) else TypeError
        expected = f"a dtype, axes, or what the brackets of one of {_KINDS} give"
        way_out = "write for example np.float64 or Alignment[8]"
        raise kind(_wrong("Field", expected, given, way_out)) from error


def _shown(dtype: np.dtype[Any], data_shape: tuple[int, ...]) -> str:
    return repr((dtype.name, data_shape)) if data_shape else repr(dtype.name)


def _is_array_type(given: Any) -> bool:
    """Return whether it is a dtype with data dimensions, written as (dtype, shape)."""
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], tuple | list)
    return pair and all(hasattr(size, "__index__") for size in given[1])


def _is_cartesian(given: Any) -> bool:
    return isinstance(given, str) and given != "" and set(given) <= set("IJK")


def _axes(given: Any) -> tuple[str, ...]:
    """Names in the order of the dimensions: ``"IJ"``, ``IJ``, ``("Cell", "K")``."""
    parts = given if isinstance(given, tuple | list) else (given,)
    names = tuple(name for part in parts for name in _names(part))
    if any(name == "" or name.isdecimal() for name in names):
        raise ValueError(_wrong("Axes", "names other than numbers", names, "rename the axis"))
    if len(set(names)) != len(names):
        raise ValueError(_wrong("Axes", "distinct names", names, "leave out what is twice"))
    return names


def _names(part: Any) -> tuple[str, ...]:
    if isinstance(part, Parameter) and part.kind == "Axes":
        return tuple(part.value)
    if not isinstance(part, str):
        raise TypeError(_wrong("Axes", "names", part, "write such as 'IJK' or ('Cell', 'K')"))
    return tuple(part) if _is_cartesian(part) else (part,)


def _layout(given: Any) -> Any:
    """Rank of each dimension, 0 for the largest stride; or a function of how many there are."""
    if callable(given):
        return given
    ranks = _ints("LayoutMap", (given,) if _is_int(given) else given)
    if sorted(ranks) != list(range(len(ranks))):
        expected = f"each rank from 0 to {len(ranks) - 1} once"
        raise ValueError(_wrong("LayoutMap", expected, ranks, "0 is the largest stride"))
    return ranks


def _alignment(given: Any) -> int:
    """Alignment of the point at the origin, in elements."""
    [elements] = _ints("Alignment", (given,))
    if elements < 1:
        raise ValueError(_wrong("Alignment", "1 or more elements", elements, "1 is any place"))
    return elements


def known_preset(given: Any, option: str = "DefaultParameters") -> str:
    """Layout and alignment by a name: "C", "F", or that of a backend."""
    if not isinstance(given, str):
        raise TypeError(_wrong(option, "a name", given, "write such as 'C' or 'F'"))
    return preset(given, option).name


def _access(given: Any) -> str:
    """Use of the field: "in" is read, "out" is written, "inout" may be both."""
    if given in _USES:
        return str(given)
    kind = ValueError if isinstance(given, str) else TypeError
    raise kind(_wrong("Access", f"one of {_USES}", given, "'inout' is both read and written"))


def _boundary(given: Any) -> tuple[tuple[int, ...], ...]:
    """Points that are read (below, above) the domain, a pair for each axis."""
    way_out = "write ((below, above), ...) for the axes"
    if not isinstance(given, tuple | list):
        raise TypeError(_wrong("Boundary", "pairs", given, way_out))
    alone = any(map(_is_int, given))
    pairs = tuple(_ints("Boundary", pair) for pair in ((given,) if alone else given))
    if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError(_wrong("Boundary", "pairs of 0 or more points", pairs, way_out))
    return pairs


def _is_int(given: Any) -> bool:
    return hasattr(given, "__index__") and not hasattr(given, "__len__")  # as an array has both


def _ints(what: str, given: Iterable[Any]) -> tuple[int, ...]:
    with suppress(TypeError):
        every = tuple(given)
        if not any(isinstance(one, bool) for one in every):
            return tuple(map(operator.index, every))
    raise TypeError(_wrong(what, "ints", given, "write whole numbers in brackets"))


def _wrong(what: str, expected: str, got: Any, way_out: str) -> str:
    return f"{what}: expected {expected}, got {got!r}; {way_out}"


DType = _Maker("DType", _dtype)
Axes = _Maker("Axes", _axes)
LayoutMap = _Maker("LayoutMap", _layout)
DefaultParameters = _Maker("DefaultParameters", known_preset)
Alignment = _Maker("Alignment", _alignment)
Access = _Maker("Access", _access)
Boundary = _Maker("Boundary", _boundary)
I, J, K = (Axes[name] for name in "IJK")  # noqa: E741 - as GTScript calls them
IJ, IK, JK, IJK = (Axes[names] for names in ("IJ", "IK", "JK", "IJK"))

#: Any, so that mypy takes ``Field[...]`` in a signature; at run time it gives a `FieldAnnotation`.
Field: Any = _Maker("Field", _field)
