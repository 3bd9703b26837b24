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
        return f"({one} if {where} else {other})"


roundtrip.EmbeddedDSL = _OneValue
config.BUILD_JOBS = 0  # the class is known in this process only


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
        if name is None:
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
