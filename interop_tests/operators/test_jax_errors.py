"""What XLA is told when a function that it calls raises: that an array is kept only if it is."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

jax = library("jax")
jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (JAX's own signature)


def failing(way, kept):
    """Return a call that raises; it appends a view of its input to a list, unless that is None."""

    def compute(inp, out):
        if kept is not None:
            kept.append(inp[0])
        problem = ValueError("the reason")
        if way == "from another":
            raise KeyError("the reason") from problem
        if way == "held by a variable":
            raise problem
        del problem
        raise ValueError("the reason")

    field, access, ijk = (getattr(dlf.annotations, name) for name in ("Field", "Access", "IJK"))
    fields = {"inp": field[float, ijk, access["in"]], "out": field[float, ijk, access["out"]]}
    return dlf.jax_call(dlf.bind(compute, fields=fields))


@pytest.mark.parametrize("way", ["plain", "held by a variable", "from another"])
@pytest.mark.parametrize("kept", [None, []], ids=["nothing kept", "a view kept"])
def test_an_error_says_that_an_array_is_kept_only_if_one_is(way, kept):
    with pytest.raises(jax.errors.JaxRuntimeError, match="the reason") as caught:
        jax.block_until_ready(failing(way, kept)(np.ones((3, 3, 2))))
    assert ("keeps no array after the call" in str(caught.value)) == (kept is not None)
