"""Copies between two fields by other libraries, over the very memory of dlfield's."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from timing import Missing, load

Loop = Callable[..., None]

BLOCKS = {"I": 16, "J": 8}
"""Extent of Numba's blocks, by the dimension that becomes the fastest: what was best of some."""


def peers_of(source: object, target: object, order: str, halo: Sequence[int]) -> dict[str, object]:
    """Name both fields as storages, and as arrays of every library that is there."""
    np_source, np_target = source.to_numpy(), target.to_numpy()
    return {
        "np": np,
        "source": source,
        "target": target,
        "np_source": np_source,
        "np_target": np_target,
        **_torch(np_source, np_target),
        **_jax(np_source, order, halo),
        "numba_copy": _numba(order),
    }


def _torch(np_source: np.ndarray, np_target: np.ndarray) -> dict[str, object]:
    torch = load("torch")
    if isinstance(torch, Missing):
        return {"torch_source": torch, "torch_target": torch}
    return {
        "torch_source": torch.from_numpy(np_source),
        "torch_target": torch.from_numpy(np_target),
    }


def _jax(np_source: np.ndarray, order: str, halo: Sequence[int]) -> dict[str, object]:
    """Make what copies the part inside the halo: JAX has no views."""
    jax = load("jax")
    if isinstance(jax, Missing):
        return {"jax_source": jax, "jax_copy": jax}
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (it has no name for it)
    inside = tuple(slice(h, -h or None) for h in halo)
    axes = tuple(map("IJK".index, order))
    copy = jax.jit(lambda field: jax.numpy.copy(field[inside].transpose(axes)))
    source = jax.device_put(np.pad(np_source, [(h, h) for h in halo]))
    return {"jax_source": source, "jax_copy": lambda field: copy(field).block_until_ready()}


def _numba(order: str) -> object:
    """Choose what suits the order best: rows where both fields have them, else blocks."""
    numba = load("numba")
    if isinstance(numba, Missing):
        return numba
    rows, blocks = _loops(numba)
    if order.endswith("K"):
        return rows
    extent = BLOCKS[order[-1]]
    return lambda target, source: blocks(target, source, extent)


@cache
def _loops(numba: object) -> tuple[Loop, Loop]:
    @numba.njit(parallel=True)
    def rows(target: np.ndarray, source: np.ndarray) -> None:
        for i in numba.prange(source.shape[0]):
            for j in range(source.shape[1]):
                for k in range(source.shape[2]):
                    target[i, j, k] = source[i, j, k]

    @numba.njit(parallel=True)
    def blocks(target: np.ndarray, source: np.ndarray, extent: int) -> None:
        along = (source.shape[0] + extent - 1) // extent
        across = (source.shape[1] + extent - 1) // extent
        for block in numba.prange(along * across):
            i0, j0 = block // across * extent, block % across * extent
            for k0 in range(0, source.shape[2], extent):
                for k in range(k0, min(k0 + extent, source.shape[2])):
                    for j in range(j0, min(j0 + extent, source.shape[1])):
                        for i in range(i0, min(i0 + extent, source.shape[0])):
                            target[i, j, k] = source[i, j, k]

    return rows, blocks
