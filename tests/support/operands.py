"""Random operands of universal functions, and a plain second implementation of the rules for names
and labels, which shares no code with dlfield."""

import math

import dlfield as dlf
import numpy as np
from hypothesis import strategies as st

NAMES = ("I", "J", "K", "lon", "0")
DTYPES = ("float64", "float32", "int32", "int8", "uint16", "bool", "complex64")
#: Functions of NumPy that work element by element.
UFUNCS = sorted(
    {one for one in vars(np).values() if isinstance(one, np.ufunc) and one.signature is None},
    key=lambda one: one.__name__,
)


@st.composite
def storages(draw, extents, *, named=True):
    """A storage with some of the dims of `extents` in any order, layout, halo and padding."""
    names = draw(st.permutations(sorted(extents)).flatmap(parts)) if named else None
    by_position = st.sampled_from(positional(extents))
    shape = [extents[name] for name in names] if named else draw(by_position)
    halo = [halo_of(draw, extent, name) for extent, name in zip(shape, names or shape, strict=True)]
    made = dlf.zeros(
        tuple(shape),
        draw(st.sampled_from(DTYPES)),
        dims=names,
        halo=halo,
        layout=tuple(draw(st.permutations(range(len(shape))))),
        alignment_size=draw(st.sampled_from([1, 16, 48, 64])),
        **draw(origins(names, shape)),
    )
    if draw(st.booleans()):
        made.halo = None if draw(st.booleans()) else made.halo
    values = np.arange(made.size).reshape(shape) % 5 + 1
    made[...] = values.astype(made.dtype)
    return frozen(made) if draw(st.booleans()) else made


def parts(names):
    """Any number of the first names."""
    return st.integers(0, len(names)).map(lambda count: tuple(names[:count]))


def positional(extents):
    """Shapes that can be broadcast together by position."""
    whole = tuple(extents.values())
    return [whole[at:] for at in range(len(whole))] + [tuple(1 for _ in whole), ()]


def halo_of(draw, extent, name):
    if name == "0":
        return (0, 0)
    low = draw(st.integers(0, max(extent - 1, 0)))  # the aligned element is inside
    return (low, draw(st.integers(0, extent - low)))


@st.composite
def origins(draw, names, shape):
    if draw(st.booleans()):
        return {}
    axes = in_gt4py_order(names, len(shape))
    return {"default_origin": tuple(draw(st.integers(-2, shape[axis])) for axis in axes)}


def order(name):
    """Where GT4Py counts a dimension."""
    return ("I", "J", "K", "0").index(name)


def frozen(storage):
    """The same, read-only and with the same labels."""
    array = storage.to_numpy()
    array.flags.writeable = False
    readonly = dlf.as_storage(
        array,
        like=storage,
        alignment_size=storage.alignment_size,
        aligned_index=storage.aligned_index,
        layout=storage.layout,
    )
    assert readonly.readonly
    return readonly


# --- the rules ---------------------------------------------------------------------------------


def expected_dims(operands):
    """Dims of the first storage with names, then what the others add; None if they contradict."""
    dims = []
    for one in operands:
        own = one.dims or ()
        shared = [name for name in own if name in dims]
        if shared != [name for name in dims if name in own]:
            return None
        horizontal = lambda names: "I" in names or "J" in names  # noqa: E731
        foreign = lambda names: names and not set(names) & set("IJK0")  # noqa: E731
        if (
            not shared
            and dims
            and ((horizontal(dims) and foreign(own)) or (horizontal(own) and foreign(dims)))
        ):
            return None
        dims += [name for name in own if name not in dims]
    return tuple(dims)


def aligned(storage, dims):
    """The values with one axis for each of `dims`, of extent 1 where the storage has none."""
    array = storage.to_numpy()
    if storage.dims:
        array = array.transpose([storage.dims.index(name) for name in dims if name in storage.dims])
        array = array[tuple(slice(None) if name in storage.dims else None for name in dims)]
    return array


def axis_of(storage, at, dims, shape):
    """The axis of a storage that is dimension `at` of a result; None where it is repeated."""
    if storage.dims:
        return storage.dims.index(dims[at]) if dims[at] in storage.dims else None
    axis = at - (len(shape) - storage.ndim)
    return axis if axis >= 0 and storage.shape[axis] == shape[at] else None


def expected_halo(operands, dims, shape):
    if any(one.halo is None for one in operands):
        return None
    widths = [(0, 0)] * len(shape)
    for one in operands:
        for at in range(len(shape)):
            axis = axis_of(one, at, dims, shape)
            if axis is not None:
                low, high = one.halo[axis]
                widths[at] = (max(widths[at][0], low), max(widths[at][1], high))
    fits = all(sum(width) <= extent for width, extent in zip(widths, shape, strict=True))
    return tuple(widths) if fits else None


def in_gt4py_order(names, ndim):
    known = names is not None and all(name in "IJK0" for name in names)
    return sorted(range(ndim), key=lambda a: order(names[a])) if known else list(range(ndim))


def expected_origin(operands, dims, shape):
    first = {}
    for one in operands:
        if not hasattr(one, "default_origin"):
            continue
        by_axis = dict(zip(in_gt4py_order(one.dims, one.ndim), one.default_origin, strict=True))
        for at in range(len(shape)):
            axis = axis_of(one, at, dims, shape)
            if axis is not None:
                first[at] = max(first.get(at, by_axis[axis]), by_axis[axis])
    if not first:
        return None
    return tuple(first.get(at, 0) for at in in_gt4py_order(dims or None, len(shape)))


def expected_layout(operands, dims, shape):
    """Ranks of the first with all dims; else those of the first, what it lacks outermost."""
    has_all = [
        one
        for one in operands
        if (len(one.dims or ()) == len(dims) if dims else one.ndim == len(shape))
    ]
    model = (has_all or operands)[0]

    def rank(at):
        if dims:
            own = model.dims or ()
            return model.layout[own.index(dims[at])] if dims[at] in own else -1
        axis = at - (len(shape) - model.ndim)
        return model.layout[axis] if axis >= 0 else -1

    outermost_first = sorted(range(len(shape)), key=rank)
    return tuple(outermost_first.index(at) for at in range(len(shape)))


def expected_alignment(operands, dtype):
    shared = math.lcm(*(one.alignment_size for one in operands))
    return shared if dtype.itemsize % shared == 0 else math.lcm(shared, dtype.itemsize)
