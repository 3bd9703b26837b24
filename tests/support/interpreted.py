"""Stencils computed from their nodes, with exact derivatives: dual numbers.

It computes in NumPy in the order of GT4Py's backend "numpy", and so to the same bits. Beside each
value stands its derivative along one direction, by rules that are this file's own.
"""

from dataclasses import dataclass, field

import numpy as np
from dlfield.stencils.cartesian import nodes
from dlfield.stencils.cartesian.around import needed
from scipy import special

#: Points around the domain in temporary fields.
ROOM = 12

_COMPARE = {
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}
#: Functions of one argument, and their derivatives by the argument and the value.
_FUNCTIONS = {
    "sin": (np.sin, lambda x, _: np.cos(x)),
    "cos": (np.cos, lambda x, _: -np.sin(x)),
    "tan": (np.tan, lambda x, _: 1 / np.cos(x) ** 2),
    "arcsin": (np.arcsin, lambda x, _: 1 / np.sqrt((1 - x) * (1 + x))),
    "arccos": (np.arccos, lambda x, _: -1 / np.sqrt((1 - x) * (1 + x))),
    "arctan": (np.arctan, lambda x, _: 1 / (1 + x**2)),
    "sinh": (np.sinh, lambda x, _: np.cosh(x)),
    "cosh": (np.cosh, lambda x, _: np.sinh(x)),
    "tanh": (np.tanh, lambda x, _: 1 / np.cosh(x) ** 2),
    "arcsinh": (np.arcsinh, lambda x, _: 1 / np.hypot(x, 1)),
    "arccosh": (np.arccosh, lambda x, _: 1 / np.sqrt((x - 1) * (x + 1))),
    "arctanh": (np.arctanh, lambda x, _: 1 / ((1 - x) * (1 + x))),
    "sqrt": (np.sqrt, lambda _, y: 1 / (2 * y)),
    "cbrt": (np.cbrt, lambda x, y: y / (3 * x)),
    "exp": (np.exp, lambda _, y: y),
    "log": (np.log, lambda x, _: 1 / x),
    "log10": (np.log10, lambda x, _: 1 / (x * np.log(10))),
    "erf": (special.erf, lambda x, _: 2 / np.sqrt(np.pi) * np.exp(-(x**2))),
    "erfc": (special.erfc, lambda x, _: -2 / np.sqrt(np.pi) * np.exp(-(x**2))),
    "gamma": (special.gamma, lambda x, y: y * special.digamma(x)),
    "abs": (np.abs, lambda x, _: np.where(x >= 0, 1, -1)),
    **{name: (getattr(np, name), lambda x, _: 0 * x) for name in ("floor", "ceil", "trunc")},
}


@dataclass
class Dual:
    """An array with its derivative; of a field, with the index of the first point of the domain."""

    value: np.ndarray
    dot: np.ndarray
    origin: tuple[int, int, int] = (0, 0, 0)
    axes: str = "IJK"


@dataclass
class Interpreter:
    """Computes a stencil in fields by name, which it changes.

    Parameters
    ----------
    stencil
        Its nodes.
    fields
        `Dual` by name, with three dimensions and those of the data.
    scalars
        Numbers by name.
    domain
        Points along I, J and K.
    """

    stencil: nodes.Stencil
    fields: dict
    scalars: dict
    domain: tuple[int, int, int]
    box: tuple = field(default=(), init=False)

    def __post_init__(self):
        blocks = [
            one for loop in self.stencil.loops for part in loop.sections for one in part.blocks
        ]
        # A block is computed where GT4Py computes it, and wherever else it is read.
        self.extents = {
            id(block): tuple(
                (min(low, -below), max(high, above))
                for (low, high), (below, above) in zip(
                    block.extents, ((west, east), (south, north)), strict=True
                )
            )
            for block, (west, east, south, north) in zip(blocks, needed(self.stencil), strict=True)
        }

    def run(self):
        """Compute."""
        for one in self.stencil.temporaries:
            shape = (self.domain[0] + 2 * ROOM, self.domain[1] + 2 * ROOM, self.domain[2])
            shape = tuple(
                n if axis in one.axes else 1 for n, axis in zip(shape, "IJK", strict=True)
            )
            zeros = np.zeros((*shape, *one.data_shape), one.dtype)
            self.fields[one.name] = Dual(zeros, zeros.astype("f8"), (ROOM, ROOM, 0), one.axes)
        with np.errstate(all="ignore"):
            for loop in self.stencil.loops:
                for section in loop.sections:
                    self.section(loop.order, section)

    def section(self, order, section):
        first, last = (self.level(bound) for bound in section.interval.ends)
        steps = {
            "parallel": [(first, last)],
            "forward": [(k, k + 1) for k in range(first, last)],
            "backward": [(k, k + 1) for k in reversed(range(first, last))],
        }
        for levels in steps[order]:
            for block in section.blocks:
                (i_low, i_high), (j_low, j_high) = self.extents[id(block)]
                i, j = (i_low, self.domain[0] + i_high), (j_low, self.domain[1] + j_high)
                self.box = i, j, levels
                self.body(block.statements, None)

    def level(self, bound):
        return nodes.known(bound) + (self.domain[2] if bound.at_end else 0)

    def body(self, statements, mask):
        for one in statements:
            match one:
                case nodes.Assign(target, value):
                    self.assign(target, self.dual(value), mask)
                case nodes.Branch(condition, body):
                    here, _ = self.dual(condition)
                    self.body(body, here if mask is None else np.logical_and(mask, here))
                case nodes.Region(bounds, body):
                    self.region(bounds, body, mask)
                case _:
                    raise NotImplementedError(one)

    def region(self, bounds, body, mask):
        whole = self.box
        parts = [
            _part(interval, n, box)
            for interval, n, box in zip(bounds, self.domain[:2], whole[:2], strict=True)
        ]
        if all(low < high for low, high in parts):
            assert mask is None
            self.box = *parts, whole[2]
            self.body(body, mask)
            self.box = whole

    def assign(self, target, found, mask):
        one = self.fields[target.name]
        where = self.where(one, target)
        for array, value in zip((one.value, one.dot), found, strict=True):
            part = array[where]
            value = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), part.shape))
            part[...] = value if mask is None else np.where(mask, value, part)

    def where(self, one, access):
        index = [
            slice(start + low + step, start + high + step) if axis in one.axes else slice(0, 1)
            for axis, start, step, (low, high) in zip(
                "IJK", one.origin, access.offset, self.box, strict=True
            )
        ]
        return (*index, *(int(number.value) for number in access.data_index))

    def dual(self, one):
        """Return value and derivative of an expression."""
        match one:
            case nodes.Access(level=None):
                found = self.fields[one.name]
                where = self.where(found, one)
                return found.value[where], found.dot[where]
            case nodes.Access():
                return self.at_run_time(one)
            case nodes.Scalar(name):
                return self.scalars[name], 0.0
            case nodes.Constant(value, dtype):
                number = value in ("True", "true") if dtype == "bool" else float(value)
                return np.dtype(dtype).type(number), 0.0
            case nodes.Index():
                return np.arange(*self.box[2])[None, None, :], 0.0
            case nodes.Cast(dtype, operand):
                value, dot = self.dual(operand)
                return np.asarray(value).astype(dtype), dot if "float" in dtype else 0.0
            case nodes.Operation(name, operands):
                return self.operation(name, [self.dual(operand) for operand in operands])
        raise NotImplementedError(one)

    def at_run_time(self, one):
        found, (by, _) = self.fields[one.name], self.dual(one.level)
        i, j, k = (np.arange(*ends) for ends in self.box)
        origin = found.origin
        shape = [len(i), len(j), len(k)]
        at = np.broadcast_to((0 if one.absolute else k[None, None, :]) + by, shape)
        i, j = i[:, None, None] + origin[0], j[None, :, None] + origin[1]
        return found.value[i, j, at + origin[2]], found.dot[i, j, at + origin[2]]

    def operation(self, name, operands):
        values = [value for value, _ in operands]
        dots = [dot for _, dot in operands]
        if name in _COMPARE:
            return _COMPARE[name](*values), 0.0
        match name, values, dots:
            case "if", [condition, x, y], [_, dx, dy]:
                return np.where(condition, x, y), np.where(condition, dx, dy)
            case "+", [x], [dx]:
                return x, dx
            case "-", [x], [dx]:
                return -x, -dx
            case "+", [x, y], [dx, dy]:
                return x + y, dx + dy
            case "-", [x, y], [dx, dy]:
                return x - y, dx - dy
            case "*", [x, y], [dx, dy]:
                return x * y, dx * y + x * dy
            case "/", [x, y], [dx, dy]:
                return x / y, dx / y - x * dy / y**2
            case "pow", [x, y], [dx, dy]:
                by_y = 0.0 if np.all(np.equal(dy, 0)) else x**y * np.log(x) * dy
                return np.power(x, y), y * np.power(x, y - 1) * dx + by_y
            case "min", [x, y], [dx, dy]:
                return np.minimum(x, y), np.where(x <= y, dx, dy)
            case "max", [x, y], [dx, dy]:
                return np.maximum(x, y), np.where(x >= y, dx, dy)
            case "mod", [x, y], [dx, dy]:
                return np.mod(x, y), dx - np.floor_divide(x, y) * dy
        function, derivative = _FUNCTIONS[name]
        value = function(values[0])
        return value, derivative(values[0], value) * dots[0]


def _within(axes, shape):
    """Return the extents of a field with some of the three axes."""
    return [n if axis in axes else 1 for n, axis in zip(shape[:3], "IJK", strict=True)]


def _part(interval, points, box):
    """Return the points of a region along an axis, within those that are computed."""
    low, high = (
        end if one is None else nodes.known(one) + (points if one.at_end else 0)
        for one, end in zip(interval.ends, box, strict=True)
    )
    return max(low, box[0]), min(high, box[1])


def derivatives(stencil, values, dots, halo, scalars=None):
    """Return what the outputs of a stencil become, with derivatives, as `Dual` by name.

    Parameters
    ----------
    stencil
        A stencil of GT4Py.
    values, dots
        Arrays and directions of the inputs, by name, with a halo; outputs are zeros at first.
    halo
        Points below and above along I and J.
    scalars
        Numbers by name.
    """
    from dlfield.stencils.cartesian.internals import representation_of

    found = representation_of(stencil)
    extents = {
        axis: n
        for one in found.fields
        if one.name in values
        for axis, n in zip(one.axes, values[one.name].shape, strict=False)
    }
    whole = [extents[axis] for axis in "IJK"]
    fields = {}
    for one in found.fields:
        blank = np.zeros((*_within(one.axes, whole), *one.data_shape), one.dtype)
        full = [np.array(one_of.get(one.name, blank), kind).reshape(blank.shape)
                for one_of, kind in ((values, one.dtype), (dots, "f8"))]  # fmt: skip
        origin = (halo[0][0], halo[1][0], 0)
        fields[one.name] = Dual(*full, origin, one.axes)
    domain = (whole[0] - sum(halo[0]), whole[1] - sum(halo[1]), whole[2])
    Interpreter(found, fields, scalars or {}, domain).run()
    return fields
