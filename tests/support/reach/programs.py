"""Random programs and field operators of gt4py.next, as source text.

Shifts along the axes of a grid, one after another; neighbours by tables, with reductions; regions
of `concat_where`; tuples of inputs and of outputs; domains from scalars, from the output, or an
operator that is called with `out`.
"""

import collections
import re

HEADER = """\
import gt4py.next as gtx
from gt4py.next import Dims, Field, float64, int32, neighbor_sum
from gt4py.next.experimental import concat_where

I, J, K = gtx.Dimension("I"), gtx.Dimension("J"), gtx.Dimension("K", gtx.DimensionKind.VERTICAL)
Cell, Edge = gtx.Dimension("Cell"), gtx.Dimension("Edge")
E2CDim = gtx.Dimension("E2C", gtx.DimensionKind.LOCAL)
C2EDim = gtx.Dimension("C2E", gtx.DimensionKind.LOCAL)
E2C = gtx.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
C2E = gtx.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))
"""

BODY = """

@gtx.field_operator
def operator({inputs}) -> {result}:
{lines}


@gtx.program
def by_scalars({inputs}, out: {result}, {bounds}):
    operator({names}, out=out, domain={{{domain}}})


@gtx.program
def by_output({inputs}, out: {result}):
    operator({names}, out=out)


{name} = (operator, by_scalars, by_output)
"""

GRID = {"a": "IJK", "b": "IJK", "plane": "IJ", "line": "K"}
MESH = {"cells": ("Cell", "K"), "edges": ("Edge", "K"), "flat": ("Cell",)}
WHERE = ("K == 0", "K < 2", "K > 0", "I >= 1", "J < 1", "(I < 2) & (J > 0)", "(I < 1) | (K > 1)")


def random_definition(rng, name):
    """Write the source of an operator and of two programs around it; they are `name`, a tuple."""
    fields, dims, write = rng.choice(
        (
            (GRID, ("I", "J", "K"), _on_grid),
            (MESH, ("Edge", "K"), _on_edges),
            (MESH, ("Cell", "K"), _on_cells),
        )
    )
    lines, values = [], []
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        values.append(write(rng, lines))
    return definition(name, fields, dims, lines, values, as_tuple=rng.random() < 0.3)


def definition(name, fields, dims, lines, values, *, as_tuple=False):
    """Write an operator with these statements.

    Parameters
    ----------
    name
        Name of the tuple of what is defined.
    fields
        Dimensions of the inputs by name.
    dims
        Dimensions of each result.
    lines
        Statements in front of the last.
    values
        Expressions of the results: of one field, or of a tuple.
    as_tuple
        Whether the first two inputs are one argument, `pair`.
    """
    inputs = {one: _kind(of) for one, of in fields.items()}
    if as_tuple:
        first, second, *others = inputs
        pair = f"tuple[{inputs[first]}, {inputs[second]}]"
        inputs = {"pair": pair} | {one: inputs[one] for one in others}
        lines = [f"{first} = pair[0]", f"{second} = pair[1]", *lines]
    kinds = [_kind(dims)] * len(values)
    result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    bounds = [f"first_{dim}: int32, end_{dim}: int32" for dim in dims]
    return HEADER + BODY.format(
        inputs=", ".join(f"{one}: {kind}" for one, kind in inputs.items()),
        names=", ".join(inputs),
        result=result,
        lines="\n".join(f"    {line}" for line in [*lines, f"return {', '.join(values)}"]),
        bounds=", ".join(bounds),
        domain=", ".join(f"{dim}: (first_{dim}, end_{dim})" for dim in dims),
        name=name,
    )


def may_store(source):
    """Tell whether a value in between is read several times, or by one table behind another."""
    uses = collections.Counter(re.findall(r"\bt\d\b", source))
    return "= neighbor_sum" in source or any(count > 2 for count in uses.values())


def _kind(dims):
    return f"Field[Dims[{', '.join(dims)}], float64]"


def _sum(rng, terms):
    return " + ".join(rng.choice(("", "2.0 * ", "3.0 * ")) + one for one in terms)


def _on_grid(rng, lines):
    """Add statements to those that there are, and give the expression of a result."""
    known = dict(GRID)
    for _ in range(rng.choice((0, 0, 1, 2))):
        terms = [f"a({_shift(rng)})", *(_shifted(rng, known) for _ in range(rng.randint(0, 2)))]
        name = f"t{len(lines)}"
        lines.append(f"{name} = {_sum(rng, terms)}")
        known[name] = "IJK"
    value = f"b + {_sum(rng, [_shifted(rng, known) for _ in range(rng.randint(1, 2))])}"
    if rng.random() < 0.4:
        value = f"concat_where({rng.choice(WHERE)}, {value}, a + {_shifted(rng, known)})"
    return value


def _shift(rng, dims="IJK"):
    dim, by = rng.choice(dims), rng.choice((-3, -2, -1, 1, 2, 3))
    return f"{dim} {'+' if by > 0 else '-'} {abs(by)}"


def _shifted(rng, known):
    name = rng.choice([*known, *known])
    shifts = [f"({_shift(rng, known[name])})" for _ in range(rng.choice((0, 1, 1, 2)))]
    return name + "".join(shifts)


def _on_edges(rng, lines):
    known = ["cells", "cells", "cells(K - 1)", "2.0 * cells", "cells + cells(K + 1)", "flat"]
    known += ["cells + flat", "neighbor_sum(edges(C2E), axis=C2EDim)"]
    return _on_mesh(rng, lines, "edges", known, "E2C")


def _on_cells(rng, lines):
    known = ["edges", "edges", "edges(K + 2)", "edges + edges(K - 1)", "cells(E2C[1]) + edges"]
    known += ["neighbor_sum(cells(E2C), axis=E2CDim)"]
    return _on_mesh(rng, lines, "cells", known, "C2E")


def _on_mesh(rng, lines, own, known, tag):
    """Read values through a table; of one edge each neighbour can be read alone."""
    terms = [own if rng.random() < 0.6 else f"{own}(K + {rng.randint(1, 2)})"]
    for _ in range(rng.choice((1, 1, 2))):
        name = f"t{len(lines)}"
        lines.append(f"{name} = {rng.choice(known)}")
        for _ in range(rng.choice((1, 1, 1, 2))):
            one = f"{name}({tag}[{rng.randint(0, 1)}])"
            every = f"neighbor_sum({name}({tag}), axis={tag}Dim)"
            terms.append(one if tag == "E2C" and rng.random() < 0.5 else every)
    return _sum(rng, terms)
