"""What NumPy's functions make of storages: a table of signatures, by which they are computed.

A signature has the axes of each operand and of the result, as those of generalised universal
functions. Operands with ``...`` have labels, which go to the result; others are tables of numbers.

=================  ==============================================================================
``...->...``       element by element; operands are matched by name
``k...->...``      reduced along an axis, or several
``k...->k...``     along an axis, which has a name or a number; with ``k*`` along any number of them
``k...->n...``     along an axis that gets another extent: a rule for labels says what is left
``...->*``         arrays of NumPy, of values on the host; several operands have the same names
``...->()``        a truth or a file, of values of which those on a GPU are copied
``...->dtype``     of the types alone
``...->view``      a map of the indices: NumPy's function tells which axis and element goes where
``own``            written out, in `dlfield.functions.dispatch.OWN`
=================  ==============================================================================

`dlfield.functions.dispatch` executes the rows, ``docs/functions.md`` shows them. Names are those
below `numpy`, of which older versions lack some. A test compares them with NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dlfield.functions import labels

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ARRAYS", "REFUSED", "STORAGES", "Row", "row_of"]


class Row(NamedTuple):
    """Functions with one meaning."""

    names: str
    #: What they return; for those that are refused what to use instead of them.
    gives: str
    #: The axes of operands and result; none for those that are refused.
    signature: str = ""
    #: The rule for the labels of the result; without one all of them stay.
    rule: Callable[..., Any] | None = None
    #: What they are about, if they are refused.
    about: str = ""

    @property
    def operands(self) -> list[str]:
        """The axes of each operand."""
        return self.signature.partition("->")[0].split(",")

    @property
    def result(self) -> str:
        """The axes of the result, or the word for what it is."""
        return self.signature.rpartition("->")[2]


_TURNED = "a view; each axis keeps its name and halo"
_PARTS = "views; each keeps the names and its own part of the halo"
_LONGER = "a view; a new axis without a name drops all names"
_MATCHED = "a storage, matched by name; `where(condition)` alone returns indices"
_POINTS = "a storage with the labels of the points; names of the table are ignored"
_ALL = "a storage with all labels"
_PICKED = "a storage; the axis keeps its name but not its halo"
_LIKE = "a storage with the names, halo, layout and alignment of the input"
_REDUCED = (
    "[a storage](arithmetic.md#reductions) without the reduced dims; a number if all are reduced; "
    "an array for several quantiles"
)
_INDICES = "indices, by position of the axes"
_VALUES = "a 1-D array of values"
_COUNTS = "arrays of counts or moments"
_FILE = "None; writes the values to a file"

#: Functions that give storages, with names where they are clear.
STORAGES = (
    Row(
        "linalg.matrix_transpose matrix_transpose moveaxis rollaxis squeeze swapaxes",
        _TURNED,
        "...->view",
    ),
    Row("transpose", _TURNED, "own"),
    Row("flip fliplr flipud rot90", "a view; names and halo follow their axes", "...->view"),
    Row("array_split hsplit split unstack", _PARTS, "k...->view"),
    Row("vsplit", _PARTS, "jk...->view"),
    Row("dsplit", _PARTS, "ijk...->view"),
    Row("atleast_1d atleast_2d atleast_3d expand_dims", _LONGER, "own"),
    Row(
        "reshape", "a view without names, of host memory only; an error if NumPy would copy", "own"
    ),
    Row("ravel", "a view if the memory allows one, else a copy; no name", "own"),
    Row(
        "broadcast_arrays broadcast_to",
        "a read-only view of host memory; repeated axes have no halo",
        "own",
    ),
    Row(
        "lib.stride_tricks.sliding_window_view",
        "a read-only view of host memory, without names",
        "own",
    ),
    Row(
        "concatenate dstack hstack stack vstack",
        "a storage, with names if all inputs agree; a new axis has no name",
        "own",
    ),
    Row("around choose clip round select where", _MATCHED, "own"),
    Row("isclose", _MATCHED, "...,...->..."),
    Row(
        "angle fix i0 imag iscomplex isneginf isposinf isreal nan_to_num real sinc",
        _ALL,
        "...->...",
    ),
    Row("digitize isin", _POINTS, "...,n->..."),
    Row("interp", _POINTS, "...,n,n->..."),
    Row("searchsorted", _POINTS, "n,...->..."),
    Row("argpartition argsort partition sort unwrap", _ALL, "k...->k..."),
    Row("gradient", _ALL, "k*...->k*..."),
    Row("tril triu", "a storage with all labels; works on the last two axes", "...jk->...jk"),
    Row("diff", "a storage; the halo widths stay and count differences", "own"),
    Row("repeat take", _PICKED, "k...,n->n...", labels.picked),
    Row("compress", _PICKED, "n,k...->n...", labels.picked),
    Row("take_along_axis", _PICKED, "k...,k...->n...", labels.chosen),
    Row("trapezoid", "a storage without the axis", "own"),
    Row("roll", "a storage with all labels", "k*...->k*..."),
    Row("pad", "a storage with names; the padding becomes halo", "own"),
    Row("tile", "a storage with names but without halo", "...->n...", labels.tiled),
    Row(
        "asanyarray asarray",
        "with `like=storage`: a storage of that kind, sharing memory if possible",
        "own",
    ),
    Row("astype copy empty_like full_like ones_like zeros_like", _LIKE, "own"),
    Row(
        "all any",
        "[a storage](arithmetic.md#reductions) without the reduced dims; a bool if all are reduced",
        "k...->...",
    ),
    Row("average count_nonzero", _REDUCED, "own"),
    Row(
        "amax amin argmax argmin max mean median min nanargmax nanargmin nanmax nanmean nanmedian "
        "nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar percentile prod ptp "
        "quantile std sum var",
        _REDUCED,
        "k...->...",
    ),
    Row(
        "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum",
        "a storage with all labels",
        "k...->k...",
    ),
)

#: Functions that give what NumPy gives.
ARRAYS = (
    Row("copyto", "None; writes by name, as `storage[...] = values` does", "own"),
    Row("ndim shape size", "numbers", "own"),
    Row(
        "can_cast common_type iscomplexobj isrealobj min_scalar_type result_type",
        "a dtype or a bool",
        "...->dtype",
    ),
    Row("allclose array_equal array_equiv", "a bool", "...,...->()"),
    Row("may_share_memory shares_memory", "a bool", "...->*"),
    Row(
        "argwhere diag_indices_from flatnonzero nonzero tril_indices_from triu_indices_from",
        _INDICES,
        "...->*",
    ),
    Row("lexsort", _INDICES, "...,...->*"),
    Row(
        "ediff1d intersect1d setdiff1d setxor1d trim_zeros union1d unique unique_all unique_counts "
        "unique_inverse unique_values",
        _VALUES,
        "...->*",
    ),
    Row("extract", _VALUES, "...,...->*"),
    Row("corrcoef cov histogram_bin_edges histogramdd", _COUNTS, "...->*"),
    Row("bincount histogram histogram2d", _COUNTS, "...,...->*"),
    Row("array2string array_repr array_str", "a string", "...->*"),
    Row("save savetxt savez savez_compressed", _FILE, "...->()"),
)

#: Functions that are refused, because they go by position, or have another name for fields.
REFUSED = (
    Row(
        "dot inner linalg.cross linalg.matmul linalg.outer linalg.tensordot linalg.vecdot outer "
        "tensordot vdot",
        '(a * b).sum("K") or numpy.multiply.outer',
        about="products",
    ),
    Row(
        "convolve correlate cross einsum einsum_path kron linalg.cholesky linalg.cond linalg.det "
        "linalg.diagonal linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv "
        "linalg.lstsq linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot "
        "linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals "
        "linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vector_norm trace",
        "",
        about="linear algebra",
    ),
    Row(
        "fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn "
        "fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn",
        "",
        about="Fourier transforms",
    ),
    Row(
        "piecewise",
        "numpy.where or numpy.select",
        about="functions by piece",
    ),
    Row(
        "append block column_stack delete insert row_stack",
        "numpy.concatenate or numpy.take",
        about="joins without a name",
    ),
    Row(
        "apply_along_axis apply_over_axes diag diagflat diagonal ix_ meshgrid ravel_multi_index "
        "unravel_index",
        "",
        about="parts and grids by position",
    ),
    Row(
        "fill_diagonal place put put_along_axis putmask",
        "storage[...] = values",
        about="writes by position",
    ),
    Row(
        "in1d trapz",
        "numpy.isin or numpy.trapezoid",
        about="former names",
    ),
    Row(
        "lib.scimath.arccos lib.scimath.arcsin lib.scimath.arctanh lib.scimath.log "
        "lib.scimath.log10 lib.scimath.log2 lib.scimath.logn lib.scimath.power lib.scimath.sqrt "
        "real_if_close",
        "storage.astype(complex)",
        about="types that depend on values",
    ),
    Row(
        "resize",
        "numpy.reshape or numpy.tile",
        about="sizes",
    ),
    Row(
        "poly polyadd polyder polydiv polyfit polyint polymul polynomial.polynomial.polygrid2d "
        "polynomial.polynomial.polyval2d polynomial.polynomial.polyvalnd polysub polyval roots "
        "vander",
        "",
        about="polynomials",
    ),
    Row(
        "packbits sort_complex unpackbits",
        "",
        about="bits and pairs",
    ),
    Row(
        "busday_count busday_offset datetime_as_string is_busday",
        "",
        about="dates",
    ),
    Row(
        "char.equal char.greater char.greater_equal char.less char.less_equal char.not_equal "
        "strings._join strings._rsplit strings._split strings._splitlines strings.capitalize "
        "strings.center strings.decode strings.encode strings.expandtabs strings.ljust "
        "strings.lower strings.mod strings.multiply strings.partition strings.replace "
        "strings.rjust strings.rpartition strings.swapcase strings.title strings.translate "
        "strings.upper strings.zfill",
        "",
        about="strings",
    ),
    Row(
        "lib.recfunctions.append_fields lib.recfunctions.apply_along_fields "
        "lib.recfunctions.assign_fields_by_name lib.recfunctions.drop_fields "
        "lib.recfunctions.find_duplicates lib.recfunctions.join_by lib.recfunctions.merge_arrays "
        "lib.recfunctions.rec_append_fields lib.recfunctions.rec_drop_fields "
        "lib.recfunctions.rec_join lib.recfunctions.recursive_fill_fields "
        "lib.recfunctions.rename_fields lib.recfunctions.repack_fields "
        "lib.recfunctions.require_fields lib.recfunctions.stack_arrays "
        "lib.recfunctions.structured_to_unstructured lib.recfunctions.unstructured_to_structured",
        "",
        about="records",
    ),
    Row(
        "arange array ascontiguousarray asfortranarray empty eye frombuffer fromfile fromfunction "
        "fromiter fromstring full genfromtxt geomspace identity linspace loadtxt logspace ones "
        "require tri zeros",
        "dlfield.storage or dlfield.zeros",
        about="new arrays, `like=storage`",
    ),
)
_ROWS = {name: row for row in (*STORAGES, *ARRAYS, *REFUSED) for name in row.names.split()}


def row_of(name: str) -> Row | None:
    """Find the row of a function by its name with that of its module."""
    return _ROWS.get(name.removeprefix("numpy.").replace("_scimath_impl", "scimath"))
