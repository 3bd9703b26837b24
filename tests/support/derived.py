"""Derivatives of random stencils, compared with dual numbers: one after the other.

`python -m support.derived BACKEND SEED FIRST NUMBER FOLDER` prints what became of them.
"""

import collections
import json
import random
import sys
import warnings
from pathlib import Path

import dlfield as dlf
import numpy as np
from dlfield.operators.function import StencilFunction
from dlfield.operators.tangents import Tangent

from support.interpreted import derivatives
from support.reach.cartesian import compiled, gtscript_error
from support.reach.definitions import definition
from support.reach.files import imported

#: Relative differences that pass, by the least precise of the types.
EXACT = {"float64": 1e-12, "float32": 2e-5}


def checked(stencil, seed=0, flag=0.3):
    """Compare the derived tangent with dual numbers, and the adjoint with the tangent.

    Raises AssertionError with what differs.
    """
    run = dlf.bind(stencil)
    tangent, adjoint = dlf.bind(dlf.tangent(stencil)), dlf.bind(dlf.adjoint(stencil))
    declaration, random_numbers = run.declaration, np.random.default_rng(seed)
    values = {
        one.name: _values(one, declaration.reach(), random_numbers)
        for one in declaration.fields
        if one.access in ("read", "update")
    }
    scalars = {one.name: one.dtype.type(flag) for one in declaration.scalars if one.used}
    types = {str(one.dtype) for one in declaration.fields}
    exact = EXACT["float32" if "float32" in types else "float64"]
    dots = {
        name: random_numbers.standard_normal(one.shape).astype(one.dtype)
        for name, one in values.items()
        if one.dtype.kind == "f"
    }
    _compare_tangent(stencil, run, tangent, values, dots, scalars, exact)
    dlf.testing.check_adjoint(run, adjoint, {**values, **scalars}, tangent=tangent, rtol=exact)


def _values(one, reach, random_numbers):
    extents = {
        axis: n + sum(reach.get(axis, (0, 0))) for axis, n in zip("IJK", (6, 7, 17), strict=False)
    }
    shape = [extents[dim] for dim in one.dims if dim in extents] + list(one.data_shape)
    if one.dtype.kind != "f":
        return random_numbers.integers(0, 2, shape).astype(one.dtype)
    return random_numbers.uniform(0.5, 1.5, shape).astype(one.dtype)


def _compare_tangent(stencil, run, tangent, values, dots, scalars, rtol):
    reach = run.declaration.reach()
    halo = [reach.get(axis, (0, 0)) for axis in "IJ"]
    function = StencilFunction(run)
    made = Tangent(function, tangent)({**values, **scalars}, dots)
    expected = derivatives(stencil, values, dots, halo, scalars)
    for one, dot in zip(function.outputs, made, strict=True):
        exact = expected[one.name].dot.reshape(dot.shape)
        ends = [reach.get(dim, (0, 0)) for dim in one.dims]
        inside = tuple(
            slice(low, n - high) for n, (low, high) in zip(dot.shape, ends, strict=False)
        )
        got, exact = dot.to_numpy()[inside], exact[inside]
        if one.dtype.kind == "f":
            scale = np.abs(exact).max(initial=0)
            worst = np.abs(got - exact).max(initial=0)
            assert worst <= rtol * scale, f"tangent of '{one.name}': {worst} of {scale}"


def subject(folder, name, backend, rng):
    """Write random definitions until GT4Py takes one whose inputs tell the domain."""
    for attempt in range(100):
        path = folder / f"{name}_{attempt}.py"
        path.write_text(definition(rng, name, nonlinear=True), encoding="utf-8")
        try:
            made = compiled(imported(path, name), backend)
            if _tells_its_domain(made):
                return made
        except (ValueError, TypeError, gtscript_error()):  # GT4Py has rules of its own
            continue
    raise RuntimeError(f"{name}: GT4Py takes no definition")


def _tells_its_domain(stencil):
    fields = dlf.bind(stencil).declaration.fields
    read, written = (
        {dim for one in fields if one.access in (kind, "update") for dim in one.dims}
        for kind in ("read", "write")
    )
    return written & set("IJK") <= read


def batch(backend, seed, first, number, folder):
    """Derive and compare so many stencils, and count them by what became of them."""
    found = collections.Counter()
    for at in range(int(first), int(first) + int(number)):
        name = f"derived_{seed}_{at}"
        stencil = subject(Path(folder), name, backend, random.Random(f"{seed}-{at}"))
        try:
            checked(stencil)
            found["right"] += 1
        except dlf.NotDifferentiable as error:
            found[str(error).partition(": ")[2]] += 1
        except (AssertionError, ValueError) as error:
            found[f"{name}: {error}"] += 1
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(batch(*sys.argv[1:]), indent=1))
