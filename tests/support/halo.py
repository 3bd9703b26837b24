"""Fields whose values tell the point that they stand for, on ranks and undivided."""

import dlfield as dlf
import numpy as np

ORDERS = ["IJK", "KJI", "JKI", "IKJ", "KIJ", "JIK"]


def block_of(comm, extents):
    """Return first point and extent of this rank's block along each dimension, uneven."""
    if comm is None:
        return [0] * len(extents), list(extents)
    dims, _, coords = comm.Get_topo()
    firsts, sizes = [], []
    for extent, parts, at in zip(extents, dims, coords, strict=True):
        ends = [extent * part // parts for part in range(parts + 1)]
        firsts.append(ends[at])
        sizes.append(ends[at + 1] - ends[at])
    return firsts, sizes


def numbered(comm, extents, levels, halo, *, layout="IJK", dtype="float64", seed=0, shared=(0, 0)):
    """Return a field whose domain holds the numbers of its points, and whose halo holds -1."""
    firsts, sizes = block_of(comm, extents)
    sizes = [size + both for size, both in zip(sizes, shared, strict=True)]
    shape = [low + size + high for size, (low, high) in zip(sizes, halo, strict=True)]
    order = tuple(layout.index(dim) for dim in "IJK")
    field = dlf.empty((*shape, levels), dims="IJK", halo=(*halo, (0, 0)), layout=order, dtype=dtype)
    array = field.to_numpy()
    array[...] = np.array(-1).astype(array.dtype)
    points = expected_points(firsts, sizes, extents, levels, ((0, 0), (0, 0)), seed)
    field.domain_view.to_numpy()[...] = points.astype(array.dtype)
    return field


def expected_points(firsts, sizes, extents, levels, width, seed=0):
    """Return the numbers of the points of a block and of a halo around it, periodic."""
    rows = [
        np.arange(first - low, first + size + high) % extent
        for first, size, extent, (low, high) in zip(firsts, sizes, extents, width, strict=True)
    ]
    i, j, k = np.ix_(*rows, np.arange(levels))
    return (seed + i * 31 + j * 5 + k) % 113


def assert_filled(
    field, comm, extents, width=None, *, seed=0, more=0, periodic=(True, True), shared=(0, 0)
):
    """Check every point of a field, to which `more` was added: domain, halo filled and not."""
    halo = field.halo[:2]
    width = halo if width is None else width
    firsts, sizes = block_of(comm, extents)
    sizes = [size + both for size, both in zip(sizes, shared, strict=True)]
    levels = field.shape[2]
    expected = np.full(field.shape, -1)
    inner = tuple(
        slice(low - below, low + size + above)
        for (low, _), (below, above), size in zip(halo, width, sizes, strict=True)
    )
    expected[inner] = more + expected_points(firsts, sizes, extents, levels, width, seed)
    for axis, is_periodic in enumerate(periodic):
        if not is_periodic:
            low, high = halo[axis]
            rows = np.arange(firsts[axis] - low, firsts[axis] + sizes[axis] + high)
            outside = (rows < 0) | (rows >= extents[axis] + shared[axis])
            np.moveaxis(expected, axis, 0)[outside] = -1
    found = field.to_numpy()
    wrong = np.argwhere(found != expected.astype(found.dtype))
    assert not len(wrong), f"{len(wrong)} wrong points, the first at {wrong[0]}: {field!r}"
