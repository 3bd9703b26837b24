"""Which points a program of gt4py.next visits, seen while its backend "roundtrip" computes.

That backend computes point by point in Python, after the same transformations as the compiled ones:
a value in between is computed at the points where it is read, or for all points of a mesh. What it
visits goes through one function, which notes it here and does the same.
"""

import contextlib
from unittest import mock

from gt4py.next import config
from gt4py.next.iterator import embedded
from gt4py.next.iterator.transforms import fuse_as_fieldop
from gt4py.next.program_processors.runners import roundtrip

from support.reach.boxes import NOWHERE


class _OneValue(roundtrip.EmbeddedDSL):
    """Writes programs that compute one value of an `if_`, as compiled ones do, and not both."""

    def visit_FunCall(self, node, **options):
        if getattr(node.fun, "id", "") != "if_":
            return self.generic_visit(node, **options)
        where, one, other = (self.visit(value, **options) for value in node.args)
        return f"chosen({where}, lambda: {one}, lambda: {other})"


roundtrip.EmbeddedDSL = _OneValue
config.BUILD_JOBS = 0  # the class is known in this process only


class _Levels:
    """Levels of a column that are computed for their value; the others are computed in vain.

    GT4Py computes all levels of a column at once in a program that has a scan.
    """

    def __init__(self):
        self.wanted, self.current = [], 0

    def are_wanted(self):
        return all(levels[self.current] for levels in self.wanted)

    def compute(self, levels, value):
        self.wanted.append(levels)
        try:
            return value()
        finally:
            self.wanted.pop()


_levels = _Levels()


def chosen(where, one, other):
    """Return one of two values, of each level of a column if `where` is that of a column."""
    if not isinstance(where, embedded.Column):
        return one() if where else other()
    if where.data.all() or not where.data.any():
        return one() if where.data.all() else other()
    return embedded.if_(
        where, _levels.compute(where.data, one), _levels.compute(~where.data, other)
    )


def _at_first_level(of):
    """GT4Py takes the level at the number of the first one, which few levels may lack."""
    return lambda column: of(embedded.Column(0, column.data))


embedded.Column.__gt_type__ = _at_first_level(embedded.Column.__gt_type__)
embedded.Column.dtype = property(_at_first_level(embedded.Column.dtype.fget))
embedded.chosen = chosen  # programs import all names of the module


def _numbered(indices, column_axis, column_index, _of=embedded._single_vertical_idx):
    _levels.current = column_index
    return _of(indices, column_axis, column_index)


embedded._single_vertical_idx = _numbered


def _extended(box, point):
    return min(box[0], point), max(box[1], point + 1)


class Visits:
    """Notes what is visited while a "with" block runs a program in fields of these arrays."""

    def __init__(self, arrays):
        self.names = {_address(array): name for name, array in arrays.items()}
        #: Points along each dimension, by the name of the field.
        self.boxes = {}

    def __enter__(self):
        roundtrip._SOURCE_CACHE.clear()  # it takes programs for other tables as the same
        cls = embedded.NDArrayLocatedFieldWrapper
        self.kept = translate = cls._translate_named_indices

        def noted(field, indices):
            self.note(field._ndarrayfield, indices)
            return translate(field, indices)

        cls._translate_named_indices = noted
        return self

    def __exit__(self, *raised):
        embedded.NDArrayLocatedFieldWrapper._translate_named_indices = self.kept

    def note(self, field, indices):
        array = getattr(field, "ndarray", None)  # an index field has none
        name = None if array is None else self.names.get(_address(array))
        if name is None or not _levels.are_wanted():
            return
        dims = [dim.value for dim in field.domain.dims]
        box = self.boxes.setdefault(name, [NOWHERE] * len(dims))
        box[:] = [_extended(one, indices[dim]) for one, dim in zip(box, dims, strict=True)]


@contextlib.contextmanager
def stored():
    """Let GT4Py compile programs that put all values in between into memory which are read at an
    offset, as it may; else it computes some of them where they are read."""
    fused = fuse_as_fieldop._arg_inline_predicate

    def without_offsets(node, shifts):
        return not any(shifts) and fused(node, shifts)

    with mock.patch.object(fuse_as_fieldop, "_arg_inline_predicate", without_offsets):
        yield


def _address(array):
    return array.__array_interface__["data"][0]
