"""Checks of derivatives: of an adjoint by the dot product, of a tangent by differences.

``<w, J v>`` and ``<J* w, v>`` are equal for every v and w if the adjoint is right. The caller
chooses the values of the fields: at the kink of a limiter, or in a solver with a random matrix, a
quotient of differences says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield.operators.adjoints import Adjoint
from dlfield.operators.function import StencilFunction, has_derivative
from dlfield.operators.tangents import Tangent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from dlfield._core import BoundStencil
    from dlfield.stencils.declaration import DeclaredField

__all__ = ["check_adjoint", "check_tangent"]

#: Arrays by name.
Arrays = dict[str, "npt.NDArray[Any]"]


def check_adjoint(
    run: BoundStencil,
    adjoint: BoundStencil,
    values: Mapping[str, Any],
    halo: Any = None,
    tangent: BoundStencil | None = None,
    names: Mapping[str, str | None] | None = None,
    seed: int = 0,
    rtol: float = 1e-6,
) -> None:
    """Check an adjoint by the dot product, one input at a time.

    Parameters
    ----------
    run, adjoint
        The stencil and its adjoint, bound.
    values
        The inputs, as arrays of NumPy with the halo, and the scalars, by name. They are not
        changed.
    halo, names
        As `dlfield.torch_op` takes them.
    tangent
        The tangent, bound, for the derivatives. By default they are quotients of differences.
    seed
        Seed of the random directions.
    rtol
        Relative difference that passes. Quotients of differences are accurate to about 1e-9
        in float64, and to 1e-4 in float32.

    Raises
    ------
    AssertionError
        If the products differ. The text names the input of the wrong gradient, and both products.
        Also for an input of a floating type without a gradient, unless `names` has None for it.
    TypeError, ValueError
        As `dlfield.torch_op`. TypeError also for a value that is missing or unknown.

    Examples
    --------
    >>> check_adjoint(run, adjoint, {"inp": array, "s": 1.5})  # doctest: +SKIP
    """
    function, random = StencilFunction(run, halo), np.random.default_rng(seed)
    pair, values = Adjoint(function, adjoint, names), _checked(function, values)
    forward = None if tangent is None else Tangent(function, tangent, names)
    extents = [extent for field in function.inputs for extent in values[field.name].shape]
    outputs = _outputs(function, values)
    for name in pair.gradients:
        direction = _direction(values[name], random)
        derivative = _derivative(function, forward, values, {name: direction})
        # Mostly along the derivative, so that the sum does not cancel.
        weights = {out: _weights(one, random) for out, one in derivative.items()}
        gradient = pair(extents, weights, {**outputs, **values})[name].to_numpy()
        expected = sum(_product(weights[out], derivative[out]) for out in derivative)
        got = _product(gradient, direction)
        _compare(f"gradient of '{name}' by the adjoint of '{function.name}'", expected, got, rtol)
    _check_complete(function, f"adjoint of '{function.name}'", pair.names, pair.gradients)


def check_tangent(
    run: BoundStencil,
    tangent: BoundStencil,
    values: Mapping[str, Any],
    halo: Any = None,
    names: Mapping[str, str | None] | None = None,
    seed: int = 0,
    rtol: float = 1e-6,
) -> None:
    """Check a tangent by quotients of differences, one input at a time.

    Parameters and errors are those of `check_adjoint`; `names` gives the argument of the tangent
    for a field, where it is not ``inp_dot``.
    """
    function, random = StencilFunction(run, halo), np.random.default_rng(seed)
    forward, values = Tangent(function, tangent, names), _checked(function, values)
    for name in forward.inputs:
        direction = {name: _direction(values[name], random)}
        expected = _derivative(function, None, values, direction)
        got = _arrays(function, _differentiated(function), forward(values, direction))
        for out, one in expected.items():
            scale = max(
                float(np.max(np.abs(one), initial=0)), float(np.max(np.abs(got[out]), initial=0))
            )
            worst = float(np.max(np.abs(one - got[out]), initial=0))
            if not worst <= rtol * scale:  # also for nan
                what = f"tangent of '{function.name}' for '{name}', output '{out}'"
                raise AssertionError(
                    f"{what}: expected the quotient of differences within {rtol:g} of {scale:g}, "
                    f"got a difference of {worst:g}"
                )
    _check_complete(function, f"tangent of '{function.name}'", forward.names, forward.inputs)


def _checked(function: StencilFunction, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs as arrays of NumPy, and the scalars, by name."""
    given, fields = function.bound((), values), function.halos.fields
    return {name: np.asarray(one) if name in fields else one for name, one in given.items()}


def _check_complete(
    function: StencilFunction,
    what: str,
    names: Mapping[str, str | None],
    known: Iterable[str],
) -> None:
    """Refuse a derivative that leaves an input out."""
    for name in [one.name for one in filter(has_derivative, function.inputs)]:
        if name not in known and names.get(name, name) is not None:
            way_out = f"pass names={{'{name}': None}} for a constant"
            raise AssertionError(f"{what}: needs a derivative for '{name}'; {way_out}")


def _derivative(
    function: StencilFunction,
    tangent: Tangent | None,
    values: Mapping[str, Any],
    directions: Mapping[str, Any],
) -> Arrays:
    """Return the derivative of every output that has one along a direction of the inputs."""
    if tangent is not None:
        return _arrays(function, _differentiated(function), tangent(values, directions))
    ((name, direction),) = directions.items()
    step = float(np.finfo(direction.dtype).eps) ** (1 / 3)
    above, below = (
        _outputs(function, {**values, name: values[name] + sign * step * direction})
        for sign in (1, -1)
    )
    names = [field.name for field in _differentiated(function)]
    return {out: (above[out] - below[out]) / (2 * step) for out in names}


def _outputs(function: StencilFunction, values: Mapping[str, Any]) -> Arrays:
    made = function.new(*(values[name] for name in function.arguments))
    return _arrays(function, function.outputs, made if isinstance(made, tuple) else (made,))


def _differentiated(function: StencilFunction) -> list[DeclaredField]:
    """Return the outputs that have derivatives."""
    return list(filter(has_derivative, function.outputs))


def _arrays(function: StencilFunction, fields: Sequence[DeclaredField], made: Any) -> Arrays:
    """Return these outputs by name, as arrays that `_inside` has cleared outside of the domain."""
    return {
        field.name: _inside(function, field.name, one.to_numpy())
        for field, one in zip(fields, made, strict=True)
    }


def _inside(function: StencilFunction, name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy, zero outside of the domain unless the field is both read and written."""
    if function.halos.fields[name].access == "update":
        return array.copy()
    dims = function.halos.dims(function.halos.fields[name])
    widths = [function.halos.widths.get(dim, (0, 0)) for dim in dims]
    part = tuple(
        slice(low, extent - high) for (low, high), extent in zip(widths, array.shape, strict=True)
    )
    inside: npt.NDArray[Any] = np.zeros_like(array)
    inside[part] = array[part]
    return inside


def _direction(values: Any, random: np.random.Generator) -> npt.NDArray[Any]:
    return _noise(values, random).astype(values.dtype)


def _weights(derivative: npt.NDArray[Any], random: np.random.Generator) -> npt.NDArray[Any]:
    """Return a direction near the derivative, with noise also where the derivative is zero."""
    scale = float(np.max(np.abs(derivative), initial=0)) or 1.0
    noise = 0.1 * scale * _noise(derivative, random)
    weights: npt.NDArray[Any] = derivative * random.uniform(0.5, 1.5, derivative.shape) + noise
    return weights.astype(derivative.dtype)


def _noise(values: Any, random: np.random.Generator) -> npt.NDArray[Any]:
    noise: npt.NDArray[Any] = random.standard_normal(values.shape)
    is_complex = np.issubdtype(values.dtype, np.complexfloating)
    return noise + 1j * random.standard_normal(values.shape) if is_complex else noise


def _product(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    wide = np.result_type(one, other, np.float64)
    return float(np.vdot(one.astype(wide), other.astype(wide)).real)


def _compare(what: str, expected: float, got: float, rtol: float) -> None:
    """Raise AssertionError if two products differ."""
    scale = max(abs(expected), abs(got))
    if not abs(expected - got) <= rtol * scale:  # also for nan
        ratio = abs(expected - got) / (scale or 1.0)
        raise AssertionError(
            f"{what}: expected <w, J v> = {expected:.10g}, got <J* w, v> = {got:.10g}; the "
            f"relative difference is {ratio:.2g}"
        )
