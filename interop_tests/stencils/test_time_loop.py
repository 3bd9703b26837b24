"""A model that was written for GT4Py's arrays computes the same with storages, bit for bit."""

from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library
from support.processes import one_at_a_time, run_in_subprocess

library("gt4py.cartesian.gtscript")
import gt4py  # noqa: E402 (after the skip)
from gt4py.cartesian import gtscript  # noqa: E402
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: E402

SHAPE, HALO, STEPS = (20, 14, 9), (1, 1, 0), 5


# GT4Py reads the source of this function and compiles it: it is never called from Python.
def diffusion(t: Field[np.float64], tend: Field[np.float64], *, nu: np.float64):
    with computation(PARALLEL), interval(...):
        tend = nu * (t[-1, 0, 0] + t[1, 0, 0] + t[0, -1, 0] + t[0, 1, 0] - 4.0 * t)  # noqa: F841


def model(run, t, tend, ground, profile, k):
    """Compute some steps with operators and functions of NumPy; give every diagnostic."""
    dt, told = 0.125, []
    for _ in range(STEPS):
        run(t, tend, nu=0.25)
        t += dt * tend
        t[0], t[-1], t[:, 0], t[:, -1] = t[1], t[-2], t[:, 1], t[:, -2]
        t -= dt * 0.5 * (t - 280.0) * (profile > 0.25)
        np.maximum(t, 270.0, out=t)
        assert not np.isnan(t).any()
        heat = np.sqrt(np.abs(t - 280.0)) * np.exp(-profile) + 0.5 * ground
        told += [t.max(), t.min(), np.mean(t, axis=k), t.std(axis=k), heat.sum(), (t > 281.0).sum()]
        told += [np.where(t > 280.0, t, heat), np.clip(heat, 0.0, 1.0), np.sum(t * t, axis=(0, 1))]
    return told


def values():
    """Return the first values of all fields; the small ones have their dims alone, or ones."""
    generator = np.random.default_rng(7)
    shapes = {"t": SHAPE, "tend": SHAPE, "ground": (*SHAPE[:2], 1), "profile": (1, 1, SHAPE[2])}
    first = {name: generator.random(shape) for name, shape in shapes.items()}
    first["t"] = 270.0 + 20.0 * first["t"]
    return first


def by_gt4py(backend, run):
    made = {
        name: gt4py.storage.from_array(value, backend=backend, aligned_index=HALO)
        for name, value in values().items()
    }
    return made["t"], model(run, **made, k=2)


def by_dlfield(backend, run):
    def made(value, dims):
        halo = HALO if dims == "IJK" else None
        return dlf.storage(value.squeeze(), dims=dims, backend=backend, halo=halo)

    dims = {"t": "IJK", "tend": "IJK", "ground": "IJ", "profile": "K"}
    fields = {name: made(value, dims[name]) for name, value in values().items()}
    return fields["t"], model(run, **fields, k="K")


def compare(backend, bound):
    stencil = gtscript.stencil(backend=backend, definition=diffusion)
    inside = tuple(n - 2 * h for n, h in zip(SHAPE, HALO, strict=True))

    def unbound(t, tend, nu):
        stencil(t, tend, nu=nu, origin=HALO, domain=inside)

    array, expected = by_gt4py(backend, unbound)
    storage, told = by_dlfield(backend, dlf.bind(stencil) if bound else unbound)
    assert storage.strides == array.strides
    assert storage.to_numpy().tobytes() == np.asarray(array).tobytes()
    for one, other in zip(told, expected, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


# In a process of its own: a compiled stencil that is loaded after many libraries may end it.
@pytest.mark.parametrize("bound", [False, True], ids=["the stencil", "the bound stencil"])
@pytest.mark.parametrize("backend", ["numpy", "gt:cpu_ifirst", "gt:cpu_kfirst"])
def test_a_time_loop_gives_bit_for_bit_what_it_gives_with_arrays_of_gt4py(backend, bound):
    folder = str(Path(__file__).parent)
    with one_at_a_time("time-loop"):
        run_in_subprocess(
            f"import sys; sys.path.insert(0, {folder!r})\n"
            f"import test_time_loop; test_time_loop.compare({backend!r}, {bound})",
            warnings="default",
        )


def test_diagnostics_keep_names_and_halo():
    stencil = gtscript.stencil(backend="numpy", definition=diffusion)
    t, told = by_dlfield("numpy", dlf.bind(stencil))
    mean, heat = told[2], told[7]
    assert mean.dims == ("I", "J")
    assert mean.halo == ((1, 1), (1, 1))
    assert heat.dims == t.dims
    assert heat.halo == t.halo
