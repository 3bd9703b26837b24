"""A second implementation of what a view is, from the rules; and random storages and keys."""

import math
from dataclasses import dataclass, replace

import dlfield as dlf
import numpy as np
from hypothesis import strategies as st

DTYPES = ["bool", "int8", "uint16", "int32", "float32", "float64", "complex64", "complex128"]
FAR = 2**70


def ordered(by_axis, dims):
    """Return what each axis has in GT4Py's order, which is I, J, K if there are no other names."""
    known = dims is not None and all(name in "IJK" for name in dims)
    order = sorted(range(len(dims)), key=dims.__getitem__) if known else range(len(by_axis))
    return tuple(by_axis[axis] for axis in order)


@dataclass(frozen=True)
class Axis:
    """One dimension: a name; which points are halo; where origin and aligned element are."""

    name: str | None
    below: np.ndarray
    above: np.ndarray
    origin: int | None
    aligned: int | None

    @classmethod
    def of(cls, extent, width, name, origin, aligned):
        points = np.arange(extent)
        return cls(name, points < width[0], points >= extent - width[1], origin, aligned)

    def cut(self, part):
        start, stop, step = part.indices(len(self.below))
        count = len(range(start, stop, step))
        below, above = self.below[part], self.above[part]
        origin = self.origin is not None and step == 1 and self.origin - start <= count
        origin = origin and not 0 <= self.origin < start  # a point that is left out
        aligned = self.aligned is not None and step == 1 and 0 <= self.aligned - start < count
        return Axis(
            self.name,
            below if step > 0 else above,
            above if step > 0 else below,
            self.origin - start if origin else None,
            self.aligned - start if aligned else None,
        )

    def is_thinned_by(self, part):
        step = part.step or 1
        return abs(step) > 1 and self.below[part].size > 1 and (self.below | self.above).any()


@dataclass(frozen=True)
class View:
    """Every dimension, and what is known of all of them together."""

    axes: tuple
    named: bool
    halo_known: bool
    placed: bool
    alignment: int

    @classmethod
    def of(cls, storage, origin):
        """Read the facts of a fresh storage; the origin is by axis."""
        names = storage.dims or (None,) * storage.ndim
        facts = (storage.shape, storage.halo, names, origin, storage.aligned_index)
        axes = tuple(Axis.of(*one) for one in zip(*facts, strict=True))
        placed = hasattr(storage, "default_origin")
        named, alignment = storage.dims is not None, storage.alignment_size
        return cls(axes, named, halo_known=True, placed=placed, alignment=alignment)

    def select(self, key):
        """Slices keep a dimension, integers drop it, None makes a new one."""
        rest, kept, thinned, straight = iter(self.axes), [], False, True
        entries = entries_of(key, len(self.axes))
        for entry in entries:
            axis = Axis.of(1, (0, 0), None, None, None) if entry is None else next(rest)
            if entry is None:
                kept.append(axis)
            elif isinstance(entry, slice):
                thinned |= bool(axis.is_thinned_by(entry))
                kept.append(axis.cut(entry))
            straight &= isinstance(entry, slice)
        return View(
            tuple(kept),
            self.named and None not in entries,
            self.halo_known and not thinned,
            self.placed and all(axis.origin is not None for axis in kept),
            self.alignment if straight and all(a.aligned is not None for a in kept) else 1,
        )

    def transpose(self, axes):
        return replace(self, axes=tuple(self.axes[axis] for axis in axes))

    def check(self, storage):
        """Compare with the attributes of a storage."""
        dims = tuple(axis.name for axis in self.axes) if self.named else None
        assert storage.dims == dims
        assert (storage.halo is not None) == self.halo_known
        for axis, width in zip(self.axes, storage.halo or (), strict=self.halo_known):
            widths = int(axis.below.sum()), int(axis.above.sum())
            # A single point has no direction that distinguishes its ends.
            assert width == widths or (len(axis.below) == 1 and sorted(width) == sorted(widths))
        if not storage.size:
            return  # there are no elements
        assert hasattr(storage, "default_origin") == self.placed
        if self.placed:
            assert storage.default_origin == ordered([axis.origin for axis in self.axes], dims)
        assert storage.alignment_size == self.alignment
        if self.alignment > 1:
            index = tuple(axis.aligned for axis in self.axes)
            assert storage.aligned_index == index
            at = sum(i * stride for i, stride in zip(index, storage.strides, strict=True))
            assert (storage.to_numpy().ctypes.data + at) % self.alignment == 0


def entries_of(key, ndim):
    """Return one entry for each dimension, and one for each new one."""
    entries = list(key) if isinstance(key, tuple) else [key]
    missing = ndim - sum(entry is not None and entry is not ... for entry in entries)
    at = entries.index(...) if ... in entries else len(entries)
    return [*entries[:at], *[slice(None)] * missing, *entries[at + 1 :]]


@st.composite
def storages(draw, dtypes=DTYPES, smallest=0):
    """A storage of distinct numbers in any layout and alignment, and what is known of it."""
    extents = st.lists(st.integers(smallest, 6), max_size=5)
    shape = draw(extents.filter(lambda shape: math.prod(shape) < 800))
    halo = [draw(st.integers(0, extent).map(lambda low: (low, 0))) for extent in shape]
    rest = [extent - low for (low, _), extent in zip(halo, shape, strict=True)]
    halo = [(low, draw(st.integers(0, most))) for (low, _), most in zip(halo, rest, strict=True)]
    dims = draw(st.none() | st.permutations(["I", "J", "K", "lev", "lat"]))
    dims = dims and tuple(dims[: len(shape)])
    origin = [draw(st.integers(-3, extent)) for extent in shape]
    has_origin = draw(st.booleans())
    aligned = draw(st.just(dlf.UNSET) | st.tuples(*(st.integers(0, max(e, 1) - 1) for e in shape)))
    lower = [low if low < extent else 0 for (low, _), extent in zip(halo, shape, strict=True)]
    storage = dlf.empty(
        shape,
        draw(st.sampled_from(dtypes)),
        layout=draw(st.permutations(range(len(shape)))),
        alignment_size=draw(st.sampled_from([1, 32, 64, 256])),
        aligned_index=lower if aligned is dlf.UNSET else aligned,
        halo=halo,
        dims=dims,
        default_origin=ordered(origin, dims) if has_origin else None,
    )
    storage.to_numpy()[...] = np.arange(storage.size).reshape(shape)
    return storage, View.of(storage, origin if has_origin else [None] * len(shape))


@st.composite
def slices(draw, extent):
    """A slice with any step, that may begin and end anywhere."""
    bound = st.none() | st.integers(-extent - 2, extent + 2) | st.sampled_from([FAR, -FAR])
    step = st.sampled_from([None, 1, 1, 1, -1, -1, 2, -2, 3, FAR, -FAR])
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def basic_keys(draw, shape):
    """Integers, slices, an ellipsis, new dimensions."""
    entries, plain = [], draw(st.booleans())
    for extent in shape:
        if plain and extent:  # what the rules keep most of
            start = draw(st.integers(0, extent - 1))
            entries.append(slice(start, draw(st.integers(start + 1, extent))))
            continue
        drop = extent > 0 and draw(st.integers(0, 3)) == 0
        entries.append(draw(st.integers(-extent, extent - 1) if drop else slices(extent)))
    low = draw(st.integers(0, len(shape)))
    high = draw(st.integers(low, len(shape)))
    if draw(st.booleans()):
        entries[low:high] = [...]
    elif draw(st.booleans()):
        entries[low:] = []
    if draw(st.integers(0, 4)) == 0:
        entries.insert(draw(st.integers(0, len(entries))), None)
    return entries[0] if len(entries) == 1 else tuple(entries)
