"""Memory that went from library to library and back, of which only the last object is kept.

A fault in the order in which owners let go ends the process, so the chains run in processes of
their own: see `support.chains`.
"""

import re

import pytest

from support.optional import library
from support.processes import end_of_module

for needed in ("dask", "jax", "mpi4py", "pyarrow", "torch", "tvm_ffi", "xarray"):
    library(needed)


@pytest.mark.parametrize(
    "what",
    [("long", "0", "2"), ("long", "1", "2"), ("short",), ("deep",), ("at_the_end",)],
    ids=" ".join,
)
def test_the_memory_of_every_chain_is_freed_once_when_its_last_object_goes(what, tmp_path):
    name, *part = what
    file = tmp_path / "chain.txt"
    settings = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    done = end_of_module("support.chains", name, file, *part, timeout=1200, **settings)
    if done.returncode != 0:
        chain = " ".join(file.read_text().split())
        pytest.fail(f"exit status {done.returncode}\n{chain}\n{done.stdout}{done.stderr}")
    # UCX, which Open MPI brings, prints there that it finds no network.
    [counts] = re.findall(r"^(\d+) (\d+)$", done.stdout, re.M)
    tried, cut_short = map(int, counts)
    assert 0 <= cut_short < tried / 3
