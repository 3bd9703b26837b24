"""Random programs and field operators of gt4py.next, as source text.

Shifts along the axes of a grid, one after another; neighbours by tables, with reductions; regions
of `concat_where`; scans, in an operator or called by the program; `broadcast`; tuples of inputs and
of outputs; domains from scalars, from the output, or an operator that is called with `out`.
"""

import collections
import re

HEADER = """\
import gt4py.next as gtx
from gt4py.next import Dims, Field, broadcast, float64, int32, neighbor_sum
from gt4py.next.experimental import concat_where

I, J, K = gtx.Dimension("I"), gtx.Dimension("J"), gtx.Dimension("K", gtx.DimensionKind.VERTICAL)
Cell, Edge = gtx.Dimension("Cell"), gtx.Dimension("Edge")
E2CDim = gtx.Dimension("E2C", gtx.DimensionKind.LOCAL)
C2EDim = gtx.Dimension("C2E", gtx.DimensionKind.LOCAL)
E2C = gtx.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
C2E = gtx.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))


@gtx.scan_operator(axis=K, forward=True, init=0.0)
def upwards(carry: float64, value: float64, more: float64) -> float64:
    return carry + value + 2.0 * more


@gtx.scan_operator(axis=K, forward=False, init=1.0)
def downwards(carry: float64, value: float64, more: float64) -> float64:
    return carry + value - more


@gtx.field_operator
def both(
    value: Field[Dims[I, J, K], float64], other: Field[Dims[I, J, K], float64]
) -> Field[Dims[I, J, K], float64]:
    return value + other
"""

BODY = """

@gtx.field_operator{grid_type}
def operator({inputs}) -> {result}:
{lines}


@gtx.program{grid_type}
def by_scalars({inputs}, out: {result}, {bounds}):
    {called}, out=out, domain={{{domain}}})


@gtx.program{grid_type}
def by_output({inputs}, out: {result}):
    {called}, out=out)


{name} = (operator, by_scalars, by_output)
"""

GRID = {"a": "IJK", "b": "IJK", "plane": "IJ", "line": "K"}
MESH = {"cells": ("Cell", "K"), "edges": ("Edge", "K"), "flat": ("Cell",)}
SCANS = ("upwards", "downwards")
#: Arguments of a scan that a program calls itself, by the first dimension of its result.
SCANNED = {"I": ("a", "b"), "Edge": ("edges", "edges"), "Cell": ("cells", "cells")}
WHERE = ("K == 0", "K < 2", "K > 0", "I >= 1", "J < 1", "(I < 2) & (J > 0)", "(I < 1) | (K > 1)",
         "K != 0", "I != 1", "(J != 0) & (K < 2)", "(K != 1) | (I < 1)")  # fmt: skip


def random_definition(rng, name):
    """Write the source of an operator and of two programs around it; they are `name`, a tuple."""
    fields, dims, write = rng.choice(
        (
            (GRID, ("I", "J", "K"), _on_grid),
            (MESH, ("Edge", "K"), _on_edges),
            (MESH, ("Cell", "K"), _on_cells),
        )
    )
    if int(name.rpartition("_")[2]) % 6 == 2:  # a program that calls a scan itself
        scan = f"{rng.choice(SCANS)}({', '.join(SCANNED[dims[0]])}"
        return definition(name, fields, dims, [], [f"{scan})"], called=scan)
    lines, values = [], []
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        values.append(write(rng, lines))
    if any(f"{scan}(" in line for scan in SCANS for line in lines):
        del values[1:]  # "roundtrip" writes no tuple in a program that has a scan
    return definition(name, fields, dims, lines, values, as_tuple=rng.random() < 0.3)


def definition(name, fields, dims, lines, values, *, called=None, as_tuple=False):
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
    called
        What the programs call, up to its last argument: `operator`, unless it is given.
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
        called=called or f"operator({', '.join(inputs)}",
        result=result,
        lines="\n".join(f"    {line}" for line in [*lines, f"return {', '.join(values)}"]),
        bounds=", ".join(bounds),
        grid_type="(grid_type=gtx.GridType.UNSTRUCTURED)" if fields is MESH else "",
        domain=", ".join(f"{dim}: (first_{dim}, end_{dim})" for dim in dims),
        name=name,
    )


def may_store(source):
    """Return whether a value in between is read several times, or by one table behind another."""
    uses = collections.Counter(re.findall(r"\bt\d\b", source))
    return "= neighbor_sum" in source or any(count > 2 for count in uses.values())


def with_both_values(source):
    """Let a definition read both values of a condition with `!=` at every point.

    GT4Py 1.1 takes such a condition for one that is true nowhere, and `bind` asks for the one value
    where it is true, and for the other everywhere.
    """
    return re.sub(r"concat_where\([^,]*!=[^,]*, ", "both(", source)


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
        lines.append(f"{name} = {_scanned(rng, _sum(rng, terms), _shifted(rng, GRID))}")
        known[name] = "IJK"
    value = f"b + {_sum(rng, [_shifted(rng, known) for _ in range(rng.randint(1, 2))])}"
    if rng.random() < 0.4:
        value = f"concat_where({rng.choice(WHERE)}, {value}, a + {_shifted(rng, known)})"
    return value


def _scanned(rng, value, other):
    """Return a value, or its sums along a column, with another one in each step."""
    return f"{rng.choice(SCANS)}({value}, {other})" if rng.random() < 0.3 else value


def _shift(rng, dims="IJK"):
    dim, by = rng.choice(dims), rng.choice((-3, -2, -1, 1, 2, 3))
    return f"{dim} {'+' if by > 0 else '-'} {abs(by)}"


def _shifted(rng, known):
    name = rng.choice([*known, *known])
    shifts = [f"({_shift(rng, known[name])})" for _ in range(rng.choice((0, 1, 1, 2)))]
    if known[name] != "IJK" and rng.random() < 0.3:
        return f"broadcast({name}{''.join(shifts)}, (I, J, K))({_shift(rng)})"
    return name + "".join(shifts)


def _on_edges(rng, lines):
    known = ["cells", "cells", "cells(K - 1)", "2.0 * cells", "cells + cells(K + 1)", "flat"]
    known += ["cells + flat", "neighbor_sum(edges(C2E), axis=C2EDim)"]
    known += ["broadcast(flat, (Cell, K))", "upwards(cells, flat)"]
    known += ["downwards(cells(K + 1), cells)"]
    return _on_mesh(rng, lines, "edges", known, "E2C")


def _on_cells(rng, lines):
    known = ["edges", "edges", "edges(K + 2)", "edges + edges(K - 1)", "cells(E2C[1]) + edges"]
    known += ["neighbor_sum(cells(E2C), axis=E2CDim)", "downwards(edges, edges(K + 1))"]
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
