"""What NumPy's functions make of storages, one row for each meaning.

`dlfield.functions.dispatch` calls what the rows say; ``docs/functions.md`` shows them. Names are
those below `numpy`, of which older versions lack some. A test compares them with NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ARRAYS", "REFUSED", "STORAGES", "Row", "row_of"]


class Row(NamedTuple):
    """Functions with one meaning."""

    names: str
    #: What they give; for those that are refused what to use instead of them.
    gives: str
    #: The module of this room that has them; none for those that are refused.
    module: str = ""
    #: What they are about, if they are refused.
    about: str = ""


#: Functions that give storages, with names where they are clear.
STORAGES = (
    Row(
        "linalg.matrix_transpose matrix_transpose moveaxis rollaxis squeeze swapaxes transpose",
        "a view; each axis keeps its name and halo",
        "views",
    ),
    Row("flip fliplr flipud rot90", "a view; names and halo follow their axes", "shapes"),
    Row(
        "array_split dsplit hsplit split unstack vsplit",
        "views; each keeps the names and its own part of the halo",
        "views",
    ),
    Row(
        "atleast_1d atleast_2d atleast_3d expand_dims",
        "a view; a new axis without a name drops all names",
        "views",
    ),
    Row(
        "reshape",
        "a view without names, of host memory only; an error if NumPy would copy",
        "shapes",
    ),
    Row(
        "ravel",
        "a view if the memory allows one, else a copy; no name",
        "shapes",
    ),
    Row(
        "broadcast_arrays broadcast_to",
        "a read-only view of host memory; repeated axes have no halo",
        "views",
    ),
    Row(
        "lib.stride_tricks.sliding_window_view",
        "a read-only view of host memory, without names",
        "views",
    ),
    Row(
        "concatenate dstack hstack stack vstack",
        "a storage, with names if all inputs agree; a new axis has no name",
        "joins",
    ),
    Row(
        "around choose clip isclose round select where",
        "a storage, matched by name; `where(condition)` alone returns indices",
        "pointwise",
    ),
    Row(
        "angle fix i0 imag iscomplex isneginf isposinf isreal nan_to_num real sinc",
        "a storage with all labels",
        "pointwise",
    ),
    Row(
        "digitize interp isin searchsorted",
        "a storage with the labels of the points; names of the table are ignored",
        "pointwise",
    ),
    Row(
        "argpartition argsort gradient partition sort unwrap",
        "a storage with all labels",
        "along",
    ),
    Row("tril triu", "a storage with all labels; works on the last two axes", "along"),
    Row("diff", "a storage; the halo widths stay and count differences", "along"),
    Row(
        "compress repeat take take_along_axis",
        "a storage; the axis keeps its name but not its halo",
        "along",
    ),
    Row("trapezoid", "a storage without the axis", "along"),
    Row("roll", "a storage with all labels", "shapes"),
    Row("pad", "a storage with names; the padding becomes halo", "shapes"),
    Row("tile", "a storage with names but without halo", "shapes"),
    Row(
        "asanyarray asarray",
        "with `like=storage`: a storage of that kind, sharing memory if possible",
        "copies",
    ),
    Row(
        "astype copy empty_like full_like ones_like zeros_like",
        "a storage with the names, halo, layout and alignment of the input",
        "copies",
    ),
    Row(
        "all any",
        "[a storage](arithmetic.md#reductions) without the reduced dims; a bool if all are reduced",
        "reductions",
    ),
    Row(
        "amax amin argmax argmin average count_nonzero max mean median min nanargmax nanargmin "
        "nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar "
        "percentile prod ptp quantile std sum var",
        "[a storage](arithmetic.md#reductions) without the reduced dims; a number if all are "
        "reduced; an array for several quantiles",
        "reductions",
    ),
    Row(
        "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum",
        "a storage with all labels",
        "reductions",
    ),
)

#: Functions that give what NumPy gives.
ARRAYS = (
    Row("copyto", "None; writes by name, as `storage[...] = values` does", "dispatch"),
    Row("ndim shape size", "numbers", "dispatch"),
    Row(
        "can_cast common_type iscomplexobj isrealobj min_scalar_type result_type",
        "a dtype or a bool",
        "dispatch",
    ),
    Row("allclose array_equal array_equiv", "a bool", "dispatch"),
    Row("may_share_memory shares_memory", "a bool", "dispatch"),
    Row(
        "argwhere diag_indices_from flatnonzero lexsort nonzero tril_indices_from "
        "triu_indices_from",
        "indices, by position of the axes",
        "dispatch",
    ),
    Row(
        "ediff1d extract intersect1d setdiff1d setxor1d trim_zeros union1d unique unique_all "
        "unique_counts unique_inverse unique_values",
        "a 1-D array of values",
        "dispatch",
    ),
    Row(
        "bincount corrcoef cov histogram histogram2d histogram_bin_edges histogramdd",
        "arrays of counts or moments",
        "dispatch",
    ),
    Row("array2string array_repr array_str", "a string", "dispatch"),
    Row(
        "save savetxt savez savez_compressed",
        "None; writes the values to a file",
        "dispatch",
    ),
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
