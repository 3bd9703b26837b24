"""What operators of PyTorch and JAX cost beside what one writes by hand.

A five-point Laplacian on gt:cpu_kfirst, in small fields, where the call itself is measured, and in
large ones, where memory is. `Written.apply(x)` is a `torch.autograd.Function` that calls the bound
stencil; `called_back(x)` calls it through `jax.pure_callback`.
"""

import dlfield as dlf
import gt4py.cartesian.gtscript as gtscript
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval
from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, sample, summarise

jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (JAX's own signature)
BACKEND = "gt:cpu_kfirst"
SHAPES = {"8 x 8 x 8": (8, 8, 8), "256 x 256 x 80": (256, 256, 80)}
STEPS = 5


def laplacian(inp: Field[np.float64], out: Field[np.float64]) -> None:
    """Read the four neighbours."""
    with computation(PARALLEL), interval(...):
        out = inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0] - 4.0 * inp  # noqa: F841


def adjoint(out_bar: Field[np.float64], inp_bar: Field[np.float64]) -> None:
    """Transpose the above, which is symmetric."""
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar[-1, 0, 0]
            + out_bar[1, 0, 0]
            + out_bar[0, -1, 0]
            + out_bar[0, 1, 0]
            - 4.0 * out_bar
        )


def _written(run: dlf.BoundStencil, transposed: dlf.BoundStencil) -> type:
    """Return what one writes by hand for torch."""

    class Written(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            i, j, k = x.shape
            y = torch.zeros_like(x)
            run(x, y, origin=(1, 1, 0), domain=(i - 2, j - 2, k))
            return y

        @staticmethod
        def backward(ctx: object, g: torch.Tensor) -> torch.Tensor:
            i, j, k = g.shape
            padded = torch.zeros((i + 2, j + 2, k), dtype=g.dtype)
            padded[2:-2, 2:-2] = g[1:-1, 1:-1]
            result = torch.zeros_like(g)
            origin = {"out_bar": (1, 1, 0), "inp_bar": (0, 0, 0)}
            transposed(padded, result, origin=origin, domain=(i, j, k))
            return result

    return Written


SETUP = """
x = torch.rand(SHAPE, dtype=torch.float64)
y, g, X = torch.zeros_like(x), torch.ones_like(x), x.clone().requires_grad_()
domain = (SHAPE[0] - 2, SHAPE[1] - 2, SHAPE[2])
a = jnp.asarray(x.numpy())
called, empty = jax.jit(call), jax.jit(lambda a: a)
def host(a):
    made = np.zeros(SHAPE)
    run(np.asarray(a), made, origin=(1, 1, 0), domain=domain)
    return made
back = lambda a: jax.pure_callback(host, jax.ShapeDtypeStruct(SHAPE, a.dtype), a)
called_back = jax.jit(back)
def steps(f):
    return jax.jit(lambda a: jax.lax.scan(lambda a, _: (a + 0.1 * f(a), None), a, None, STEPS)[0])
scanned, scanned_back = steps(call), steps(back)
"""

#: Statement, peer, and the largest ratio for small and for large fields.
CASES = {
    "torch": ("op(x)", "Written.apply(x)", (1.2, 0.5)),
    "torch, with gradient": ("op(X).backward(g)", "Written.apply(X).backward(g)", (1.2, 0.7)),
    "torch, out=": ("op(x, out=y)", "run(x, y, origin=(1, 1, 0), domain=domain)", (1.3, 1.05)),
    "functional": (
        "run.functional(x, origin=(1, 1, 0), domain=domain)",
        "run(x, y, origin=(1, 1, 0), domain=domain)",
        (2.0, None),
    ),
    "jax": (
        "called(a).block_until_ready()",
        "called_back(a).block_until_ready()",
        (0.05, 0.45),
    ),
    "jax, empty jit": (
        "called(a).block_until_ready()",
        "empty(a).block_until_ready()",
        (None, None),
    ),
    f"jax, scan of {STEPS}": (
        "scanned(a).block_until_ready()",
        "scanned_back(a).block_until_ready()",
        (0.15, 0.3),
    ),
}

REMARK = "The stencil is compiled for gt:cpu_kfirst. Ratios below 1 are faster than by hand."


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure all cases in both sizes; in a hurry nothing is compiled."""
    if EFFORT.quick:
        return []
    stencils = (gtscript.stencil(backend=BACKEND, definition=one) for one in (laplacian, adjoint))
    run, transposed = map(dlf.bind, stencils)
    names = {"np": np, "torch": torch, "jax": jax, "jnp": jnp, "run": run, "STEPS": STEPS}
    names["op"] = dlf.torch_op(run, "dlfield_bench::laplacian", adjoint=transposed)
    names["call"] = dlf.jax_call(run, adjoint=transposed)
    names["Written"] = _written(run, transposed)
    found = []
    for at, (size, shape) in enumerate(SHAPES.items()):
        for what, (ours, theirs, limits) in CASES.items():
            peer = Peer(theirs, limits[at])
            case = Comparison(f"{what}, {size}", ours, [peer], SETUP, names | {"SHAPE": shape})
            samples, problems = sample(case)
            found.append(summarise("operators", case, peer, samples, problems))
    return [(table_of("operators", found, REMARK), found)]
