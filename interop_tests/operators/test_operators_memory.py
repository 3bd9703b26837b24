"""Calls of operators leave no memory behind."""

import functools
import json

import pytest

from support.optional import library
from support.processes import run_in_subprocess

library("torch")
library("jax")

#: How many calls are made between two looks at the memory.
ROUNDS = 1_000
#: Calls, by name.
CALLS = {
    "torch": "lambda: op(x, x, RATE)",
    "torch, with a gradient": "lambda: torch.autograd.grad(op(wanted, x, RATE).sum(), wanted)",
    "torch, into out": "lambda: op(x, x, RATE, out=y)",
    "jax": "lambda a=jax.jit(lambda a: made(a, a, RATE)): jax.block_until_ready(a(z))",
    "jax, with a gradient": "lambda a=jax.jit(jax.grad(lambda a: made(a, a, RATE).sum())): "
    "jax.block_until_ready(a(z))",
    "an exchange by torch": "lambda: torch.autograd.grad(in_torch(wanted).sum(), wanted)",
    "an exchange by jax": "lambda a=jax.jit(jax.grad(lambda a: (in_jax(a) ** 2).sum())): "
    "jax.block_until_ready(a(z))",
}
PROGRAM = f"""
import gc, json, os, sys
os.environ["JAX_ENABLE_X64"] = "1"
import jax, torch
import dlfield as dlf
from support.lying_producers import resident
from support.stencils.differentiable import RATE, SHAPE, call, operator

op, made = operator(), call()
plan = dlf.halo_exchange([dlf.zeros(SHAPE, dims="IJK", halo={{"I": 1}})], None)
in_torch, in_jax = plan.torch_op(), plan.jax_call()
x, y, z = torch.ones(SHAPE, dtype=torch.float64), torch.zeros(SHAPE).double(), jax.numpy.ones(SHAPE)
wanted = x.clone().requires_grad_()

def left(step):
    for _ in range({ROUNDS}):
        step()
    gc.collect()
    return sys.getallocatedblocks(), resident()

def grown(step):
    left(step)
    counts = [left(step) for _ in range(5)]  # what a library keeps once does not grow again
    pairs = zip(counts, counts[1:])
    return [min(growth) for growth in zip(*([b - a for a, b in zip(*pair)] for pair in pairs))]

"""


@functools.cache
def growth():
    """Return how many blocks of Python and kibibytes more there are, by the name of the call."""
    steps = ", ".join(f"{name!r}: grown({step})" for name, step in CALLS.items())
    printed = run_in_subprocess(f"{PROGRAM}print(json.dumps({{{steps}}}))", warnings="ignore")
    return json.loads(printed)


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_memory_behind(name):
    blocks, kibibytes = growth()[name]
    assert blocks < ROUNDS / 10
    assert kibibytes < ROUNDS
