"""Random operands of universal functions, and a plain second implementation of the rules for names
and labels, which shares no code with dlfield."""

import itertools
import math

import dlfield as dlf
import numpy as np
from hypothesis import strategies as st

#: Values of a small storage with the dims I and J.
VALUES = np.arange(1, 7, dtype="int32").reshape(2, 3)


def field(values=VALUES, **options):
    """Return a storage of these values with the dims I and J."""
    return dlf.storage(np.asarray(values), **{"dims": "IJ", **options})


def same(storage, values):
    """Expect a storage on the host with these values, of their type."""
    assert isinstance(storage, dlf.CPUStorage)
    assert storage.dtype == values.dtype
    np.testing.assert_array_equal(storage.to_numpy(), values)


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
    inside = (st.integers(0, max(extent - 1, 0)) for extent in shape)
    made = dlf.zeros(
        tuple(shape),
        draw(st.sampled_from(DTYPES)),
        dims=names,
        halo=halo,
        layout=tuple(draw(st.permutations(range(len(shape))))),
        alignment_size=draw(st.sampled_from([1, 16, 48, 64])),
        aligned_index=draw(st.none() | st.tuples(*inside)),
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
    """Dims of a result of storages; None if they contradict each other."""
    return joined_dims([one.dims for one in operands if one.dims])


def joined_dims(named):
    """Dims of the first with all of them; else I, J, K, data dims if GT4Py knows all; else those of
    the first, then what the others add. None if two contradict each other."""
    for first, second in itertools.combinations(named, 2):
        if [name for name in first if name in second] != [one for one in second if one in first]:
            return None
    dims = []
    for own in named:
        if dims and not {*own} & {*dims} and unrelated(dims, own):
            return None
        dims += [name for name in own if name not in dims]
    known = all(name in "IJK0" for name in dims)
    fallback = sorted(dims, key=order) if known else dims
    return tuple(next((own for own in named if {*own} == {*dims}), fallback))


def unrelated(*two):
    """True if one side is horizontal and the other has only names that GT4Py does not know."""
    return any(
        {*one} & {*"IJ"} and not {*other} & {*"IJK0"} for one, other in itertools.permutations(two)
    )


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
    """The largest along each dimension, of an operand without an origin its lower halo."""
    if not any(hasattr(one, "default_origin") for one in operands):
        return None
    points = [first_point(one) for one in operands]
    first = largest(operands, points, dims, shape)
    if not first:
        return None
    return tuple(first.get(at, 0) for at in in_gt4py_order(dims or None, len(shape)))


def first_point(storage):
    """The origin by axis, or the lower halo; None if neither is known."""
    if hasattr(storage, "default_origin"):
        by_order = in_gt4py_order(storage.dims, storage.ndim)
        return dict(zip(by_order, storage.default_origin, strict=True))
    return storage.halo and {axis: low for axis, (low, _) in enumerate(storage.halo)}


def largest(operands, points, dims, shape):
    """The largest index along each dimension that an operand has whole."""
    found = {}
    for one, point in zip(operands, points, strict=True):
        for at in range(len(shape)):
            axis = axis_of(one, at, dims, shape)
            if point and axis is not None:
                found[at] = max(found.get(at, point[axis]), point[axis])
    return found


def expected_aligned_index(operands, dims, shape):
    found = largest(operands, [dict(enumerate(one.aligned_index)) for one in operands], dims, shape)
    return tuple(found.get(at, 0) for at in range(len(shape)))


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
