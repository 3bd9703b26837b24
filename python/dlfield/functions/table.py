"""The table of NumPy's functions on storages: a signature for each, by which it is computed.

A signature lists the axes of each operand and of the result, as generalised universal functions do.
Operands with ``...`` pass their labels on to the result; the others are tables of numbers.

=================  ==============================================================================
``...->...``       element by element; operands are matched by name
``k...->...``      reduced along an axis, or several
``k...->k...``     along an axis given by name or number; with ``k*`` along any number of axes
``k...->n...``     along an axis that gets another extent
``...->view``      a map of the indices: NumPy's function tells which axis and element goes where
``...->*``         NumPy's result for values on the host; several operands have the same names
``...->()``        the same, also for copies from a GPU
``...->dtype``     NumPy's result for the dtypes
=================  ==============================================================================

A word after the signature is a rule of `dlfield.functions.labels`; without one, all labels stay.
The word *own* means that the function is in `dlfield.functions.dispatch.OWN`.

`dlfield.functions.dispatch` executes the rows, ``docs/functions.md`` shows them. Names are
given without `numpy.`; older versions of NumPy lack some. A test compares them with NumPy.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["ARRAYS", "REFUSED", "STORAGES", "Row", "row_of"]


class Row(NamedTuple):
    """Functions that share a signature and a description."""

    names: str
    #: What they return; for refused functions, what to use instead.
    gives: str
    #: The axes of operands and result; none for those that are refused.
    signature: str = ""
    #: The rule for labels, or "own".
    rule: str = ""
    #: What they are about, if they are refused.
    about: str = ""

    @property
    def operands(self) -> list[str]:
        """The axes of each operand."""
        return self.signature.partition("->")[0].split(",")

    @property
    def result(self) -> str:
        """The axes of the result, or the word for what it is."""
        return self.signature.partition("->")[2]


def _rows(text: str) -> tuple[Row, ...]:
    """Parse blocks: a sentence, and indented below it lines of `signature rule: names`."""
    rows = []
    for block in re.split(r"\n(?=\S)", text.strip()):
        gives, *lines = re.split(r"\n {4}(?=\S)", block)
        for line in lines:
            head, _, names = line.partition(": ")
            signature, _, rule = head.partition(" ")
            rows.append(Row(" ".join(names.split()), gives, signature, rule))
    return tuple(rows)


def _refused(text: str) -> tuple[Row, ...]:
    """Parse blocks: `topic: what to use instead`, and indented below it the names."""
    blocks = (block.partition("\n") for block in re.split(r"\n(?=\S)", text.strip()))
    heads = ((head.partition(": "), names) for head, _, names in blocks)
    return tuple(
        Row(" ".join(names.split()), gives, about=about) for (about, _, gives), names in heads
    )


#: Functions that give storages, with names where they are clear.
STORAGES = _rows(
    """
a view; each axis keeps its name and halo
    ...jk->view: linalg.matrix_transpose matrix_transpose
    ...->view: moveaxis rollaxis squeeze swapaxes
    ...->view own: transpose
a view; names and halo follow their axes
    ...->view: flip
    k...->view: flipud
    jk...->view: fliplr rot90
views; each keeps the names and its own part of the halo
    k...->view: array_split hsplit split
    k...->view own: unstack
    jk...->view: vsplit
    ijk...->view: dsplit
a view; a new axis without a name drops all names
    ...->view own: atleast_1d atleast_2d atleast_3d expand_dims
a view without names, of host memory only; an error if NumPy would copy
    ...->view own: reshape
a view if the memory allows one, else a copy; no name
    ...->view own: ravel
a read-only view of host memory; repeated axes have no halo
    ...->view own: broadcast_arrays broadcast_to
a read-only view of host memory, without names
    ...->view own: lib.stride_tricks.sliding_window_view
a storage, with names if all inputs agree; a new axis has no name
    k...,k...->k... own: concatenate dstack hstack row_stack vstack
    ...,...->k... own: stack
a storage, matched by name; `where(condition)` alone returns indices
    ...->... own: around clip round
    ...,...->... own: choose select where
    ...,...,...,...->...: isclose
a storage with all labels
    ...->...: angle fix i0 iscomplex isneginf isposinf isreal sinc
a storage with all labels; the values given for NaN and infinities are matched by name
    ...,...,...,...->... own: nan_to_num
a view of host memory if the values are complex, the storage itself if they are real; else a copy
    ...->... own: real
a view of host memory if the values are complex; else a copy
    ...->... own: imag
a storage with the labels of the points; names of the table are ignored
    ...,n->...: digitize isin
    ...,n,n->...: interp
    n,...->...: searchsorted
a storage with all labels
    k...->k...: argpartition argsort partition sort unwrap
    k*...->k*...: gradient
a storage with all labels; works on the last two axes
    ...jk->...jk: tril triu
a storage; the halo widths stay and count differences
    k...->n... own: diff
a storage; the axis keeps its name but not its halo
    k...,n->n... picked: take
    k...,k->n... picked: repeat
    k,k...->n... picked: compress
    k...,k...->n... chosen: take_along_axis
a storage without the axis
    k...->... own: trapezoid
a storage without the axes; a number without an axis
    k*...->... gone: linalg.norm linalg.vector_norm
a storage with all labels
    k*...->k*...: roll
a storage with names; the padding becomes halo
    ...->n... own: pad
a storage with names but without halo
    ...->n... tiled: tile
with `like=storage`: a storage of that kind, sharing memory if possible
    ...->... own: asanyarray asarray
a storage with the names, halo, layout and alignment of the input
    ...->... own: astype copy empty_like full_like ones_like zeros_like
[a storage](arithmetic.md#reductions) without the reduced dims; a bool if all are reduced
    k...->...: all any
[a storage](arithmetic.md#reductions) without the reduced dims; a number if all are reduced; \
an array for several quantiles
    k...->... own: average count_nonzero
    k...->...: amax amin argmax argmin max mean median min nanargmax nanargmin nanmax nanmean
        nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar percentile prod
        ptp quantile std sum var
a storage with all labels
    k...->k...: cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum
    """
)

#: Functions that give what NumPy gives.
ARRAYS = _rows(
    """
None; writes by name, as `storage[...] = values` does
    ...,...->() own: copyto
numbers
    ...->() own: ndim shape size
a number, by position of the axes; of more than two dimensions an array
    ...->*: linalg.cond linalg.det linalg.matrix_norm linalg.matrix_rank linalg.slogdet
        linalg.trace trace
a number
    ...,...->*: vdot
a dtype or a bool
    ...->dtype: can_cast common_type iscomplexobj isrealobj min_scalar_type result_type
a bool
    ...,...->(): allclose array_equal array_equiv
    ...->*: may_share_memory shares_memory
indices, by position of the axes
    ...->*: argwhere diag_indices_from flatnonzero nonzero tril_indices_from triu_indices_from
    ...,...->*: lexsort
a 1-D array of values
    ...->*: ediff1d intersect1d setdiff1d setxor1d trim_zeros union1d unique unique_all
        unique_counts unique_inverse unique_values
    ...,...->*: extract
arrays of counts or moments
    ...->*: histogram_bin_edges
    ...,...->*: bincount histogram histogram2d
    ...,...->* own: corrcoef cov
    k...,k->*: histogramdd
a string
    ...->*: array2string array_repr array_str
None; writes the values to a file
    ...->(): save savetxt savez savez_compressed
    """
)

#: Functions that are refused: they go by position, have a counterpart for fields, or take no
#: numbers. `poly` of a storage of one dimension is not: NumPy asks its elements, not the storage.
REFUSED = _refused(
    """
products: (a * b).sum("K") or numpy.multiply.outer
    dot inner linalg.cross linalg.matmul linalg.outer linalg.tensordot linalg.vecdot outer
    tensordot
linear algebra
    convolve correlate cross einsum einsum_path kron linalg.cholesky linalg.diagonal linalg.eig
    linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.lstsq linalg.matrix_power
    linalg.multi_dot linalg.pinv linalg.qr linalg.solve linalg.svd linalg.svdvals linalg.tensorinv
    linalg.tensorsolve
Fourier transforms
    fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift
    fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn
functions by piece: numpy.where or numpy.select
    piecewise
joins without a name: numpy.concatenate or numpy.take
    append block column_stack delete insert
parts and grids by position
    apply_along_axis apply_over_axes diag diagflat diagonal ix_ meshgrid ravel_multi_index
    unravel_index
writes by position: storage[...] = values
    fill_diagonal place put put_along_axis putmask
former names: numpy.isin or numpy.trapezoid
    in1d trapz
types that depend on values: storage.astype(complex)
    lib.scimath.arccos lib.scimath.arcsin lib.scimath.arctanh lib.scimath.log lib.scimath.log10
    lib.scimath.log2 lib.scimath.logn lib.scimath.power lib.scimath.sqrt real_if_close
sizes: numpy.reshape or numpy.tile
    resize
polynomials
    poly polyadd polyder polydiv polyfit polyint polymul polynomial.polynomial.polygrid2d
    polynomial.polynomial.polyval2d polynomial.polynomial.polyvalnd polysub polyval roots vander
bits and pairs
    packbits sort_complex unpackbits
dates
    busday_count busday_offset datetime_as_string is_busday
strings
    char.equal char.greater char.greater_equal char.less char.less_equal char.not_equal
    strings._join strings._rsplit strings._split strings._splitlines strings.capitalize
    strings.center strings.decode strings.encode strings.expandtabs strings.ljust strings.lower
    strings.mod strings.multiply strings.partition strings.replace strings.rjust
    strings.rpartition strings.swapcase strings.title strings.translate strings.upper
    strings.zfill
records
    lib.recfunctions.append_fields lib.recfunctions.apply_along_fields
    lib.recfunctions.assign_fields_by_name lib.recfunctions.drop_fields
    lib.recfunctions.find_duplicates lib.recfunctions.join_by lib.recfunctions.merge_arrays
    lib.recfunctions.rec_append_fields lib.recfunctions.rec_drop_fields lib.recfunctions.rec_join
    lib.recfunctions.recursive_fill_fields lib.recfunctions.rename_fields
    lib.recfunctions.repack_fields lib.recfunctions.require_fields lib.recfunctions.stack_arrays
    lib.recfunctions.structured_to_unstructured lib.recfunctions.unstructured_to_structured
new arrays, `like=storage`: dlfield.storage or dlfield.zeros
    arange array ascontiguousarray asfortranarray empty eye frombuffer fromfile fromfunction
    fromiter fromstring full genfromtxt geomspace identity linspace loadtxt logspace ones require
    tri zeros
    """
)
_ROWS = {name: row for row in (*STORAGES, *ARRAYS, *REFUSED) for name in row.names.split()}


def row_of(name: str) -> Row | None:
    """Return the row of a function by its qualified name; None if it is not listed."""
    return _ROWS.get(name.removeprefix("numpy.").replace("_scimath_impl", "scimath"))
