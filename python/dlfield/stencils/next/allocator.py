"""Memory for fields that ``gt4py.next`` makes, by GT4Py's protocol of allocators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import (
    HOST_ALIGNMENT,
    UNSET,
    DeviceUnavailable,
    UnsetType,
    device_of,
    empty,
    preset,
)
from dlfield.stencils.next import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal, SupportsIndex

    from dlfield._core import Array, StorageOptions

__all__ = ["FieldAllocator", "field_allocator"]

#: Bytes of the boundary for rows on a GPU, as in GT4Py's own allocator.
_GPU_ALIGNMENT = 128


def field_allocator(
    backend: str | None = None,
    *,
    defaults: str | None = None,
    layout: Sequence[SupportsIndex] | Callable[[Any], Sequence[SupportsIndex]] | None = None,
    alignment_size: SupportsIndex | None = None,
    device: str | tuple[str, int] | UnsetType | None = UNSET,
    managed: Literal["cuda"] | None = None,
) -> FieldAllocator:
    """Return an allocator for ``gtx.empty``, ``zeros``, ``ones``, ``full`` and ``as_field``.

    ``gtx.zeros(domain, allocator=dlfield.field_allocator())`` is a field over memory of dlfield,
    with the layout and the alignment that are asked for, and with huge pages and the pool of freed
    memory as storages have them. The memory is freed when the field and every view of it are gone.
    `from_field` gives a storage over it.

    The options are those of `dlfield.empty`. A preset knows dimensions by their kinds: the first
    two horizontal ones are I and J, a vertical one is K, local ones are data dimensions.

    Parameters
    ----------
    backend, defaults : str, optional
        A preset for layout, alignment and device, such as "gt:cpu_ifirst". Other options override
        that of `defaults`, and are refused beside `backend`.
    layout : sequence of int or callable, optional
        Rank of each dimension's stride, in the order of the domain: 0 is the largest. Or a function
        that returns the ranks, of the names of the dimensions or of their number. By default the
        strides grow from the first horizontal dimension to the last local one, as with GT4Py's own
        allocators.
    alignment_size : int, optional
        Bytes. Rows are padded so that the aligned element of each lies on such a boundary: that of
        the `aligned_index` of gt4py.next, else the one with the index 0 in each dimension, or the
        nearest to it. Without a preset 64, and 128 on a GPU, by default. With 1 nothing is padded.
    device : None, "cpu", "gpu" or ("gpu", n), optional
        Where the memory lies; by default where the preset computes, else on the host. With "gpu"
        the number is that of the ``device`` that gt4py.next is given, else 0.
    managed : None or "cuda", optional
        On a GPU, "cuda" gives memory that both sides reach. A field has one array: there are no
        pairs.

    Returns
    -------
    FieldAllocator
        Equal options make equal allocators.

    Raises
    ------
    ValueError, TypeError
        For options that `dlfield.empty` refuses.
    DeviceUnavailable
        For a GPU, if CUDA cannot be used, or without CuPy, in whose arrays gt4py.next has memory
        of a GPU.

    Examples
    --------
    >>> import dlfield as dlf
    >>> import gt4py.next as gtx
    >>> I, K = gtx.Dimension("I"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    >>> allocator = dlf.field_allocator("gt:cpu_ifirst")
    >>> field = gtx.zeros({I: 4, K: 3}, allocator=allocator)
    >>> dlf.from_field(field).layout
    (1, 0)
    """
    if managed not in (None, "cuda"):
        expected = "expected None or 'cuda', since a field has one array"
        raise ValueError(f"managed: {expected}, got {managed!r}; put the field into a storage")
    presets = {"backend": backend, "defaults": defaults}
    given = {name: value for name, value in presets.items() if value is not None}
    gpu = any(preset(value, name).gpu for name, value in given.items())
    options: dict[str, Any] = dict(given)
    if not isinstance(device, UnsetType):
        where = device_of(device)
        gpu = where is not None
        options["device"] = where if where and where[1] is not None else where and where[0]
    if isinstance(layout, str):
        expected = "the rank of each stride, such as (0, 1), or a function of the dims"
        raise TypeError(f"layout: expected {expected}, got {layout!r}; a name goes in defaults=")
    if layout is not None:
        options["layout"] = layout if callable(layout) else tuple(layout)
    if alignment_size is not None or not given:
        default = _GPU_ALIGNMENT if gpu else HOST_ALIGNMENT
        options["alignment_size"] = default if alignment_size is None else alignment_size
    if gpu:
        options["managed"] = managed
    _check(options, gpu=gpu)
    if backend is not None:  # nothing is beside it but, at each call, the number of the GPU
        options["defaults"] = options.pop("backend")
    return FieldAllocator(gpu, tuple(sorted(options.items())))


@dataclass(frozen=True)
class FieldAllocator:
    """An allocator for gt4py.next, made by `field_allocator`."""

    gpu: bool
    #: Options of `dlfield.empty`.
    options: tuple[tuple[str, Any], ...]

    @property
    def __gt_device_type__(self) -> Any:
        """GT4Py's number of the kind of device."""
        return internals.device_type(gpu=self.gpu)

    def __gt_allocate__(
        self,
        domain: Any,
        dtype: Any,
        device_id: int = 0,
        aligned_index: Iterable[Any] | None = None,
    ) -> Any:
        """Allocate for a domain, as gt4py.next calls it.

        Parameters
        ----------
        domain
            Finite ``gtx.Domain``; it may have no points.
        dtype
            GT4Py's, of a scalar.
        device_id
            Number of the GPU.
        aligned_index
            Index, counted as in `domain`, of the aligned element of each row, for any dimensions.

        Returns
        -------
        TensorBuffer
            GT4Py's. Its `buffer` is a storage, its `ndarray` a NumPy or CuPy array that keeps the
            memory.

        Raises
        ------
        ValueError
            For an `aligned_index` outside the domain, a layout that does not fit it, a type of
            several scalars, and a GPU that is not the allocator's.
        """
        if dtype.tensor_shape:
            raise ValueError(f"dtype: expected a scalar type, got {dtype}; add a local dimension")
        own = dict(self.options) | self._device(device_id)
        if not {"layout", "defaults"} & own.keys():
            own["layout"] = _horizontal_first(domain.dims)
        labels: StorageOptions = {
            "aligned_index": _place(domain, aligned_index),
            "dims": self._dims(domain),
        }
        made = empty(domain.shape, np.dtype(dtype.scalar_type), **labels, **own)
        array: Array = made.to_cupy() if self.gpu else made.to_numpy()
        return internals.tensor_buffer(
            gpu=self.gpu,
            number=made.device_id or 0,
            buffer=made,
            memory_address=array.data.ptr if self.gpu else array.ctypes.data,
            dtype=dtype,
            shape=made.shape,
            strides=made.strides,
            layout_map=made.layout,
            byte_offset=0,
            byte_alignment=made.alignment_size,
            aligned_index=made.aligned_index,
            ndarray=array,
        )

    def _device(self, number: int) -> dict[str, Any]:
        """Return the option for the device that gt4py.next asks for."""
        own = device_of(dict(self.options).get("device"))
        fixed = own[1] if own else None
        if number and (fixed not in (None, number) or not self.gpu):
            expected = f"expected GPU {fixed}" if self.gpu else "expected 0 for memory of the host"
            raise ValueError(f"device: {expected}, got {number}; make a field_allocator for it")
        return {"device": ("gpu", number if fixed is None else fixed)} if self.gpu else {}

    def _dims(self, domain: Any) -> tuple[str, ...] | None:
        """Names that the layout is a function of: those of the kinds for a preset."""
        if "layout" in dict(self.options):
            return tuple(dim.value for dim in domain.dims)
        names = {"horizontal": ["I", "J"], "vertical": ["K"], "local": list("0123456789")}
        left = {kind: iter(some) for kind, some in names.items()}
        found = [next(left[str(dim.kind)], "") for dim in domain.dims]
        return tuple(found) if all(found) else None


def _check(options: dict[str, Any], *, gpu: bool) -> None:
    """Refuse options that no field can be allocated with."""
    layout = options.get("layout")
    ndim = len(layout) if isinstance(layout, tuple) else 1
    if callable(layout) and "backend" not in options:
        options = {**options, "layout": None}  # a function of dimensions that are not known yet
    empty((0,) * ndim, **options)
    if gpu:
        try:
            import cupy  # noqa: F401
        except ImportError as reason:
            raise DeviceUnavailable(
                "field_allocator: needs CuPy, in whose arrays gt4py.next has memory of a GPU; "
                "install cupy"
            ) from reason


def _place(domain: Any, aligned_index: Iterable[Any] | None) -> list[int]:
    """Index of the aligned element in the array of a domain."""
    asked = {one.dim: int(one.value) for one in aligned_index or ()}
    place = []
    for dim, ends in zip(domain.dims, domain.ranges, strict=True):
        nearest = max(ends.start, min(0, ends.stop - 1))
        at = asked.get(dim, nearest)
        if dim in asked and not ends.start <= at < ends.stop:
            expected = f"expected an index from {ends.start} to {ends.stop - 1} along {dim.value}"
            raise ValueError(f"aligned_index: {expected}, got {at}; take a point of the domain")
        place.append(at - ends.start)
    return place


def _horizontal_first(dims: Sequence[Any]) -> list[int]:
    """Ranks of strides that grow from horizontal over vertical to local dimensions."""
    kinds = ("horizontal", "vertical", "local")
    in_order = sorted(range(len(dims)), key=lambda axis: kinds.index(str(dims[axis].kind)))
    ranks = {axis: len(dims) - 1 - place for place, axis in enumerate(in_order)}
    return [ranks[axis] for axis in range(len(dims))]
