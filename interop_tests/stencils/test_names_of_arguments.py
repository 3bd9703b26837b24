"""Arguments whose names the code of a backend has for its own, and defaults of other types."""

import linecache

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian import gtscript  # noqa: E402 (after the skip)

ONES = np.ones((2, 2, 2))
LOST = {
    "numpy": ["i", "j", "k", "I", "J", "K", "np", "Field", "computation"],
    "debug": ["i", "j", "k", "i_0", "k_12", "range", "Field", "computation"],
}
EACH = [(backend, name) for backend, names in LOST.items() for name in names]


def scaled_by(backend, name, kind="np.float64"):
    """Compile a stencil with an argument of this name."""
    text = (
        f"def scaled(a: F, b: F, {name}: {kind}):\n"
        "    with gtscript.computation(PARALLEL), interval(...):\n"
        f"        b = a[0, 0, 0] * {name}\n"
    ).replace("gtscript.computation", "computation")
    file = f"<scaled by {name} of {kind}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {one: getattr(gtscript, one) for one in gtscript.__all__}
    scope = {"__name__": __name__, "F": gtscript.Field[np.float64], "np": np, **names}
    exec(compile(text, file, "exec"), scope)
    return gtscript.stencil(backend=backend, definition=scope["scaled"], name=f"scaled_{name}")


@pytest.mark.parametrize("kind", ["np.float64", "F"], ids=["scalar", "field"])
@pytest.mark.parametrize(("backend", "name"), EACH)
def test_an_argument_that_the_code_of_a_backend_overwrites_is_refused(backend, name, kind):
    with refused(ValueError, f"keeps the argument '{name}', got '{backend}'", "rename it"):
        dlf.bind(scaled_by(backend, name, kind))


@pytest.mark.parametrize(
    ("backend", "name"), [("numpy", "i_0"), ("numpy", "range"), ("debug", "I"), ("debug", "np")]
)
def test_another_argument_is_kept(backend, name):
    out = np.zeros((2, 2, 2))
    dlf.bind(scaled_by(backend, name))(ONES, out, 5.0)
    assert (out == 5.0).all()


HALF, F32 = np.float32(0.5), gtscript.Field[np.float32]


def with_a_default(a: F32, b: F32, z: np.float32 = HALF):
    with computation(PARALLEL), interval(...):  # noqa: F821
        b = a * z  # noqa: F841


def test_a_default_has_the_declared_type():
    run = dlf.bind(gtscript.stencil(backend="numpy", definition=with_a_default))
    out = np.zeros((2, 2, 2), np.float32)
    run(np.float32(ONES), out)
    assert (out == 0.5).all()
