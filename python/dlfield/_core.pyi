"""The compiled part of dlfield. Import from `dlfield` instead."""

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    Unpack,
    final,
)

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType, disjoint_base

from dlfield.show.drawing import LayoutDrawing
from dlfield.stencils.declaration import DecidedBy, Declaration, DeclaredCollection
from dlfield.storages.flags import Flags
from dlfield.storages.sides import Device

__all__ = [
    "HOST_ALIGNMENT",
    "HOST_DEVICE_TYPE",
    "UNSET",
    "Allocation",
    "BoundStencil",
    "CPUStorage",
    "CUDAManagedGPUStorage",
    "CallPlan",
    "CopyBatch",
    "DeviceCopyWarning",
    "DeviceUnavailable",
    "FieldPlan",
    "FunctionalPlan",
    "GPUStorage",
    "GTNoSuchBufferError",
    "GivenArray",
    "HaloBoxes",
    "HostBackedStorage",
    "LayoutWarning",
    "MemoryCopyWarning",
    "NextRun",
    "Preset",
    "SoftwareManagedGPUStorage",
    "Storage",
    "SyncState",
    "UnsetType",
    "UsedStream",
    "__version__",
    "arguments_functional",
    "as_cupy",
    "as_numpy",
    "as_storage",
    "bind_options",
    "build_features",
    "call_by_name",
    "check_among",
    "check_names",
    "class_options",
    "copy_registers",
    "copy_settings",
    "cuda_driver",
    "device_of",
    "dim_names",
    "doors_of",
    "elementwise",
    "empty",
    "empty_like",
    "first_held",
    "first_sharing",
    "free_pool",
    "full",
    "full_like",
    "get_dims",
    "get_huge_pages",
    "get_num_threads",
    "get_pool_limit",
    "gt4py_names",
    "has_matched_dims",
    "is_bound_call",
    "live_allocations",
    "look_at",
    "message_part",
    "names_are_unrelated",
    "ones",
    "ones_like",
    "plan_functional",
    "pool_bytes",
    "preset",
    "rebuild_storage",
    "reduced",
    "reducing_functions",
    "register_preset",
    "set_huge_pages",
    "set_num_threads",
    "set_pool_limit",
    "storage",
    "use_stream",
    "xla_entries",
    "xla_handler",
    "zeros",
    "zeros_like",
]

__version__: str

#: Bytes of the boundary on which each allocation on the host begins, as JAX wants it to share one.
HOST_ALIGNMENT: Final[int]
#: DLPack's device type of host memory.
HOST_DEVICE_TYPE: Final[int]

@final
class UnsetType:
    """Type of `UNSET`: the value of an option that is not given, where None would be a choice."""

    def __bool__(self) -> Literal[False]: ...

#: The value of an option that is not given, if None is a value of its own.
UNSET: Final[UnsetType]

class DeviceUnavailable(RuntimeError):
    """No usable device of the requested kind: no driver, no such device, or a build without it."""

class GTNoSuchBufferError(BufferError, AttributeError):
    """The storage has no buffer of the kind asked for."""

_HaloWidth: TypeAlias = SupportsIndex | tuple[SupportsIndex, SupportsIndex]

_Axis: TypeAlias = str | SupportsIndex | Sequence[str | SupportsIndex] | None

class _HasAxisName(Protocol):
    """An axis of GTScript. For type checking only."""

    @property
    def __gt_axis_name__(self) -> str:
        """Its name."""

Array: TypeAlias = Any
"""A storage, an array of any library, or what NumPy takes for one."""

class StorageOptions(TypedDict, total=False):
    """Keyword options of every function that makes a storage (GDP-3). For type checking only.

    `empty` describes them. An option that is left out is decided by `defaults` or `backend`, else by
    the data, else it has the default value.
    """

    aligned_index: Sequence[SupportsIndex] | UnsetType | None
    alignment_size: SupportsIndex | UnsetType | None
    backend: str | UnsetType | None
    default_origin: Sequence[SupportsIndex] | UnsetType | None
    defaults: str | UnsetType | None
    device: str | tuple[str, int] | UnsetType | None
    dims: Sequence[str | _HasAxisName] | UnsetType | None
    halo: Sequence[_HaloWidth] | Mapping[str, _HaloWidth] | UnsetType | None
    layout: Sequence[SupportsIndex] | Callable[[Any], Sequence[SupportsIndex]] | UnsetType | None
    managed: Literal["gt4py", "cuda"] | UnsetType | None

@disjoint_base
class Storage:
    """A field: memory with named dimensions, halo and alignment.

    Made by `zeros`, `as_storage` and their like. Every view, capsule and exported array holds one
    reference to the memory, which is freed, or given back to its producer, when the last of them is
    gone, on whichever thread that is. Strides are in bytes, as in NumPy. Operators, comparisons and
    universal functions compute by the names of the dimensions.

    `storage[key]` with integers, slices, None and ``...`` is a view that shares memory. Slices keep
    dims and the rest of the halo, an integer drops its dimension, and None makes a view without
    dims. An integer for every dimension gives a number. Lists, masks and arrays of indices give a
    new NumPy array without names. `storage[key] = value` broadcasts and converts as NumPy does. If
    storage and value have names, dimensions match by name; names that the storage lacks are refused.
    If the storage has fewer than three dimensions, all among I, J and K, a value with three unnamed
    axes is read as I, J, K. A named array in a key needs the names of the dimensions that it indexes,
    in any order; a one-dimensional array of indices may have any unrelated name.
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute a universal function by the names of the dimensions (NEP 13).

        The result has the dims of the first operand that has all of them, else the order I, J, K and
        data dims if GT4Py knows all, else the dims of the first, then what the others add; the largest
        halo and origin; the type that NumPy gives it; and the layout of the first storage that has all.
        `out`, `where`, `dtype` and `casting` mean what they mean in NumPy. On a GPU CuPy computes.

        Raises
        ------
        ValueError
            For dims in different orders, different extents under one name, unrelated dims, and arrays
            without names that fit nothing.
        TypeError
            For functions of matrices, and for those that CuPy lacks for memory on a GPU.
        BufferError
            For arrays that are not where the function computes.
        ImportError
            For memory on a GPU without CuPy.
        """
    @property
    def __array_priority__(self) -> float:
        """GDP-3's draft: storages that are kept in step come before others."""
    def __add__(self, other: Array, /) -> Array: ...
    def __radd__(self, other: Array, /) -> Array: ...
    def __iadd__(self, other: Array, /) -> Self: ...
    def __sub__(self, other: Array, /) -> Array: ...
    def __rsub__(self, other: Array, /) -> Array: ...
    def __isub__(self, other: Array, /) -> Self: ...
    def __mul__(self, other: Array, /) -> Array: ...
    def __rmul__(self, other: Array, /) -> Array: ...
    def __imul__(self, other: Array, /) -> Self: ...
    def __truediv__(self, other: Array, /) -> Array: ...
    def __rtruediv__(self, other: Array, /) -> Array: ...
    def __itruediv__(self, other: Array, /) -> Self: ...
    def __floordiv__(self, other: Array, /) -> Array: ...
    def __rfloordiv__(self, other: Array, /) -> Array: ...
    def __ifloordiv__(self, other: Array, /) -> Self: ...
    def __mod__(self, other: Array, /) -> Array: ...
    def __rmod__(self, other: Array, /) -> Array: ...
    def __imod__(self, other: Array, /) -> Self: ...
    def __pow__(self, other: Array, mod: None = None, /) -> Array: ...
    def __rpow__(self, other: Array, mod: None = None, /) -> Array: ...
    def __ipow__(self, other: Array, /) -> Self: ...  # type: ignore[misc]
    def __lshift__(self, other: Array, /) -> Array: ...
    def __rlshift__(self, other: Array, /) -> Array: ...
    def __ilshift__(self, other: Array, /) -> Self: ...
    def __rshift__(self, other: Array, /) -> Array: ...
    def __rrshift__(self, other: Array, /) -> Array: ...
    def __irshift__(self, other: Array, /) -> Self: ...
    def __and__(self, other: Array, /) -> Array: ...
    def __rand__(self, other: Array, /) -> Array: ...
    def __iand__(self, other: Array, /) -> Self: ...
    def __or__(self, other: Array, /) -> Array: ...
    def __ror__(self, other: Array, /) -> Array: ...
    def __ior__(self, other: Array, /) -> Self: ...
    def __xor__(self, other: Array, /) -> Array: ...
    def __rxor__(self, other: Array, /) -> Array: ...
    def __ixor__(self, other: Array, /) -> Self: ...
    def __divmod__(self, other: Array, /) -> Array: ...
    def __rdivmod__(self, other: Array, /) -> Array: ...
    def __matmul__(self, other: Array, /) -> Array: ...
    def __rmatmul__(self, other: Array, /) -> Array: ...
    def __imatmul__(self, other: Array, /) -> Self: ...
    def __lt__(self, other: Array, /) -> Array: ...
    def __le__(self, other: Array, /) -> Array: ...
    def __gt__(self, other: Array, /) -> Array: ...
    def __ge__(self, other: Array, /) -> Array: ...
    def __eq__(self, other: object, /) -> Array: ...
    def __ne__(self, other: object, /) -> Array: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> Storage:
        """Return the indices that sort along an axis, as `numpy.argsort` does."""
    def searchsorted(self, v: Array, side: Any = "left", sorter: Any = None) -> Any:
        """Return the indices at which to insert values into this sorted storage, as NumPy does."""
    def __round__(self, decimals: int | None = None, out: Array = None) -> Any:
        """Round to a number of decimals, as NumPy does."""
    def round(self, decimals: int | None = None, out: Array = None) -> Any:
        """Round to a number of decimals, as NumPy does."""
    @property
    def real(self) -> Storage:
        """Return the real part: the storage itself if real, else a view, or a copy on a GPU."""
    @property
    def imag(self) -> Storage:
        """Return the imaginary part: a view, or a copy on a GPU; zeros if the storage is real."""
    def conj(self) -> Storage:
        """Return complex conjugates, as `numpy.conjugate` does."""
    def conjugate(self) -> Storage:
        """Return complex conjugates, as `numpy.conjugate` does."""
    def clip(self, min: Any = None, max: Any = None, out: Array = None) -> Any:
        """Limit the values to a range, as NumPy does."""
    @property
    def variable(self) -> Any:
        """Return an `xarray.Variable` around the storage, with which a DataArray computes by name.

        Without dims, the NumPy array, which goes by position. Absent without xarray, and for a
        storage without dims that has a buffer on a GPU.
        """
    def sum(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
        keepdims: bool | None = None,
        initial: Any = None,
        where: Array = None,
    ) -> Any:
        """Sum along dimensions, as `numpy.sum`.

        Halo points count: `storage.domain_view.sum()` leaves them out.

        Parameters
        ----------
        axis
            Name or number of a dimension, or several; all by default.
        dtype, out, keepdims, initial
            As in NumPy. `out` may have more dims than the result, which is repeated along them.
        where
            A mask. A mask with names is matched by name.

        Returns
        -------
        Storage or a number of NumPy's
            With the remaining dims, and their halo, origin and order in memory. A number if no dim
            remains; on a GPU, where CuPy computes, a storage without dims.

        Raises
        ------
        ValueError
            For a name that the storage lacks, and a mask or `out` that does not fit.
        TypeError
            For `initial` and `where` with memory on a GPU.
        ImportError
            For memory on a GPU without CuPy.
        """
    def prod(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
        keepdims: bool | None = None,
        initial: Any = None,
        where: Array = None,
    ) -> Any:
        """Multiply along dimensions, as `numpy.prod`, with the arguments of `sum`."""
    def max(
        self,
        axis: _Axis = None,
        out: Array = None,
        keepdims: bool | None = None,
        initial: Any = None,
        where: Array = None,
    ) -> Any:
        """Return the largest elements along dimensions, as `numpy.max`, with the arguments of `sum`."""
    def min(
        self,
        axis: _Axis = None,
        out: Array = None,
        keepdims: bool | None = None,
        initial: Any = None,
        where: Array = None,
    ) -> Any:
        """Return the smallest elements along dimensions, as `numpy.min`, with the arguments of `sum`."""
    def all(
        self,
        axis: _Axis = None,
        out: Array = None,
        keepdims: bool | None = None,
        *,
        where: Array = None,
    ) -> Any:
        """Return whether all elements along dimensions are true, as `numpy.all`, with the arguments of `sum`."""
    def any(
        self,
        axis: _Axis = None,
        out: Array = None,
        keepdims: bool | None = None,
        *,
        where: Array = None,
    ) -> Any:
        """Return whether any element along dimensions is true, as `numpy.any`, with the arguments of `sum`."""
    def mean(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
        keepdims: bool | None = None,
        *,
        where: Array = None,
    ) -> Any:
        """Average along dimensions, as `numpy.mean`, with the arguments of `sum`.

        Halo points count: `storage.domain_view.mean()` leaves them out.
        """
    def std(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
        ddof: float | None = None,
        keepdims: bool | None = None,
        *,
        where: Array = None,
        mean: Any = None,
        correction: float | None = None,
    ) -> Any:
        """Return standard deviations along dimensions, as `numpy.std`, with the arguments of `sum`."""
    def var(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
        ddof: float | None = None,
        keepdims: bool | None = None,
        *,
        where: Array = None,
        mean: Any = None,
        correction: float | None = None,
    ) -> Any:
        """Return variances along dimensions, as `numpy.var`, with the arguments of `sum`."""
    def argmax(
        self,
        axis: _Axis = None,
        out: Array = None,
        *,
        keepdims: bool | None = None,
    ) -> Any:
        """Return the indices of the largest elements along a dimension, as `numpy.argmax`.

        Without an axis the index counts all elements in C order, whatever the order in memory.
        """
    def argmin(
        self,
        axis: _Axis = None,
        out: Array = None,
        *,
        keepdims: bool | None = None,
    ) -> Any:
        """Return the indices of the smallest elements along a dimension, as `numpy.argmin`.

        Without an axis the index counts all elements in C order, whatever the order in memory.
        """
    def cumsum(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
    ) -> Any:
        """Return running sums along a dimension, as `numpy.cumsum`; all labels stay.

        The axis may be left out for a single dimension.
        """
    def cumprod(
        self,
        axis: _Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Array = None,
    ) -> Any:
        """Return running products along a dimension, as `numpy.cumprod`; all labels stay.

        The axis may be left out for a single dimension.
        """
    SyncState: type[SyncState]
    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call the equivalent of a NumPy function for storages, or raise TypeError (NEP 18).

        Views and new storages keep names and halo where they are clear. An axis may be a name.
        ``docs/functions.md`` has a table of all functions.
        """
    def __new__(cls, *data: Array, **options: Any) -> Self:
        """Do what `storage(*data, **options)` does, for memory of the kind that the class names."""
    #: DLPack's C exchange table.
    __dlpack_c_exchange_api__: CapsuleType
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions, in elements."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of the dimensions, in bytes."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of an element."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
    @property
    def dims(self) -> tuple[str, ...] | None:
        """Names of the dimensions; None without names."""
    @property
    def halo(self) -> tuple[tuple[int, int], ...] | None:
        """Points below and above the domain in each dimension.

        None if unknown, as in a view that skips points of a dimension with a halo. Can be set to
        what the option `halo` takes, or None. The aligned element does not move, and existing views
        keep their halo.
        """
    @halo.setter
    def halo(self, halo: Sequence[_HaloWidth] | Mapping[str, _HaloWidth] | None) -> None: ...
    @property
    def layout(self) -> tuple[int, ...]:
        """Rank of each dimension's stride: 0 is the largest, `ndim - 1` the smallest (GDP-3)."""
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the element that `alignment_size` aligns; by default the lower halo."""
    @property
    def alignment_size(self) -> int:
        """Requested alignment of the aligned element, in bytes; 1 if none was requested."""
    @property
    def readonly(self) -> bool:
        """True if the producer of the memory forbids to write it."""
    @property
    def flags(self) -> Flags:
        """Facts about the memory, as `numpy.ndarray.flags`; read-only."""
    def _flags(self) -> tuple[bool, bool, bool, bool, bool]:
        """Return what `flags` is made of: C-contiguous, F-contiguous, writeable, aligned, own data."""
    @property
    def ptr(self) -> int:
        """Address of the first element: of the host's buffer, up to date, else of that on a GPU.

        It holds no reference: keep the storage. Say what is written through it with
        `set_host_modified()`.
        """
    @property
    def base(self) -> None:
        """None: a view holds the memory itself, not the storage that it was made of."""
    def __sizeof__(self) -> int:
        """Bytes of the object and of the elements in its buffers, shared or not."""
    @property
    def device(self) -> Device | None:
        """`"gpu"` if there is a buffer on a GPU, else None (GDP-3).

        Calling it gives a context manager: `with storage.device() as array:` gives that buffer as a
        GPUStorage, up to date. At the end dlfield waits for the GPU, and marks the buffer as
        written.
        """
    @property
    def device_id(self) -> int | None:
        """Number of that GPU, as CUDA counts them; None without one."""
    def host(self) -> AbstractContextManager[npt.NDArray[Any]]:
        """Return a context manager for the buffer of the host.

        `with storage.host() as array:` gives a NumPy array, up to date, and marks the buffer as
        written at the end.
        """
    def _device_side(self) -> GPUStorage:
        """Return the buffer on the GPU, up to date, as a GPUStorage. Zero-copy."""
    def _finish(self) -> None:
        """Wait for all work on the GPU, including that of other libraries."""
    @property
    def door(self) -> str | None:
        """Name of the protocol that the memory came through; None if dlfield allocated it."""
    @property
    def domain_view(self) -> Self:
        """The part inside the halo, as a view whose halo is 0. Copies nothing."""
    @property
    def device_data(self) -> Any:
        """The `cupy.cuda.MemoryPointer` of the buffer on the GPU (GDP-3); None without one.

        Absent without CuPy, and for a read-only storage, since CuPy writes what it shares.
        """
    @property
    def T(self) -> Self:
        """A view with the dimensions in the opposite order. Copies nothing."""
    def transpose(
        self, *axes: SupportsIndex | str | Sequence[SupportsIndex] | Sequence[str] | None
    ) -> Self:
        """Return a view with the dimensions in another order. Copies nothing.

        Parameters
        ----------
        *axes
            Numbers as for `numpy.ndarray.transpose`, or names if the storage has dims:
            `field.transpose("K", "J", "I")`. Names, halo and alignment go with their axes.

        Raises
        ------
        ValueError
            If the axes are not a permutation, or a name is not one of the storage's dims.
        """
    def astype(
        self,
        dtype: npt.DTypeLike,
        order: str | None = "K",
        casting: str = "unsafe",
        subok: object = None,
        copy: bool = True,
    ) -> Self:
        """Copy with another type into the same names, halo, layout and alignment.

        Converts as NumPy does. With `copy=False`, returns the storage itself if it already has that
        type and order. `subok` is ignored.

        Raises
        ------
        TypeError
            If `casting` forbids it.
        """
    def rename(self, mapping: Mapping[str, str] | None = None, /, **names: str) -> Self:
        """Return a storage over the same memory with other names; the halo stays with its axis.

        A default origin, which counts in the order of the names, is dropped.

        Parameters
        ----------
        mapping, **names
            New names by old ones, ``rename({"I": "lon"})`` or ``rename(I="lon")`` as in xarray.
            Names that are left out stay.

        Raises
        ------
        ValueError
            For a storage without names, for a name that it does not have, for two equal names, and
            for a mapping beside keywords.
        """
    def isel(self, indexers: Mapping[str, Any] | None = None, /, **named: Any) -> Self:
        """Return the view at integers and slices by name, as `isel` of xarray.

        ``storage.isel(K=0)``, ``storage.isel({"K": 0, "I": slice(1, 3)})``. An integer drops its
        dimension; those that are not named stay whole. Shares memory, and keeps what is left of the
        halo.

        Raises
        ------
        ValueError
            For a storage without names, for a name that it does not have, and for a mapping beside
            keywords.
        TypeError
            For lists and masks, which are no views: `numpy.take` has an axis by name.
        """
    def broadcast_like(self, other: Array) -> Storage:
        """Return a read-only view, repeated along the dims of `other` that the storage lacks.

        It has the dims of `other` in their order, then those that `other` lacks, as
        `broadcast_like` of xarray. A repeated dimension has no halo.

        Parameters
        ----------
        other
            A storage, a DataArray, or any other array with dims.

        Raises
        ------
        ValueError
            If one of the two has no names, or if an extent differs.
        TypeError
            For a storage with a buffer on a GPU.
        """
    def _with_dims(self, names: Sequence[str]) -> Self:
        """Return the same memory under other names, in the order of the dimensions."""
    def view(self, dtype: npt.DTypeLike | None = None) -> Any:
        """Return another storage over the same memory, or its bytes as another type.

        Parameters
        ----------
        dtype : optional
            A type of NumPy, under the rules of `numpy.ndarray.view`.

        Returns
        -------
        Storage or numpy.ndarray
            Without `dtype`, a storage with the same names and halo, on the same device. With
            `dtype`, a NumPy array over the host buffer, without names and halo, which count
            elements of the storage's own type.

        Raises
        ------
        GTNoSuchBufferError
            For a `dtype` without a buffer on the host.
        """
    def reshape(
        self,
        *shape: int | Sequence[int],
        order: str = "C",
        copy: bool | None = None,
    ) -> Storage:
        """Return a storage of another shape over the same memory, as `numpy.reshape` does."""
    def ravel(self, order: str = "C") -> Storage:
        """Return all elements in one dimension: a view if the memory allows it, else a copy."""
    def flatten(self, order: str = "C") -> Storage:
        """Copy all elements into a storage of one dimension without a name."""
    def fill(self, value: Array) -> None:
        """Write a number into every element, as ``storage[...] = value``."""
    def tolist(self) -> Any:
        """Copy the values into nested lists of Python numbers."""
    def copy(self) -> Self:
        """Return a new storage with the same values, names, halo, layout and alignment."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any = None, /) -> Self: ...
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """Pickle values, names, halo, layout and alignment.

        With protocol 5 the values may travel out of band.
        """
    def __getitem__(self, key: Any, /) -> Any:
        """Give a number, a view, or for advanced keys a new NumPy array without names.

        Integers, slices, None and `...` give a view that shares memory. Slices keep dims and the rest
        of the halo, an integer drops its dimension, and None makes a view without dims. A mask with
        names lies where they say.

        Raises
        ------
        IndexError
            For an index outside the storage, and for too many indices.
        ValueError
            For an array with names of the storage's kind that are not those of the dimensions for
            which it stands.
        """
    def __setitem__(self, key: Any, value: Array, /) -> None:
        """Write numbers or an array where `key` says, broadcast and converted as NumPy does.

        If storage and value have names, each dimension goes where its name says. The selection of an
        advanced key has no names: a value goes there by position, and its names must be those of the
        storage in the same order, or unrelated to them.

        Raises
        ------
        BufferError
            For a read-only storage.
        ValueError
            If shapes do not broadcast, if the value names a dimension that the target lacks, or if an
            array in the key has names that reading refuses too.
        """
    def __len__(self) -> int: ...
    def __contains__(self, value: object) -> bool:
        """Return whether an element equals `value`, as NumPy does."""
    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension."""
    def __reversed__(self) -> Iterator[Any]: ...
    def item(self, *index: Any) -> Any:
        """Return one element as a Python number: the only one, or the one at an index."""
    def __bool__(self) -> bool:
        """Return the truth of a single element; NumPy's ValueError for any other number of them."""
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int:
        """Return an element without dimensions as an integer.

        With dimensions it is an array of indices, even of a single one: NumPy asks for this first.
        """
    def __format__(self, spec: str) -> str:
        """Format a single element without dimensions as its number, as NumPy does."""
    def to_numpy(self) -> npt.NDArray[Any]:
        """Return a NumPy array over the buffer of the host, up to date, in the storage's order of axes.

        Zero-copy; the array holds a reference. It is read-only if the storage is.

        Raises
        ------
        GTNoSuchBufferError
            Without a buffer on the host.
        """
    def to_ndarray(self) -> Any:
        """Return `to_cupy()` if there is a buffer on a GPU, else `to_numpy()` (GDP-3)."""
    @property
    def data(self) -> memoryview | None:
        """A memoryview of the host buffer, as `numpy.ndarray.data` (GDP-3); None without one."""
    def to_torch(self) -> Any:
        """Return a torch tensor over the memory, on the GPU if the buffer there is up to date.

        Zero-copy; the tensor holds a reference.

        Raises
        ------
        BufferError
            For a read-only storage, since torch writes what it shares.
        ImportError
            Without torch.
        """
    def plot_layout(self, size: int = 240) -> LayoutDrawing:
        """Draw how the storage lies in memory: extents, halo, order, padding, alignment, buffers.

        Parameters
        ----------
        size
            The longer side of the face that is drawn, in pixels.

        Returns
        -------
        LayoutDrawing
            A notebook shows it. `save(path)` writes it as SVG, which is in `svg`. No element is
            read.
        """
    def to_quantity(self, units: str, *, backend: Any) -> Any:
        """Return an NDSL ``Quantity`` over the memory of this storage. Copies nothing.

        Its origin and extent are those of the domain, and its halo is the storage's. I, J and K
        have NDSL's names; other dims keep theirs.

        Parameters
        ----------
        units
            Units of the values.
        backend
            An ``ndsl.Backend``, or its name, such as "st:gt:cpu:KJI".

        Returns
        -------
        ndsl.Quantity
            It holds the NumPy array of `to_numpy()`, or the CuPy array of `to_cupy()` of a
            storage in memory of a GPU alone.

        Raises
        ------
        ValueError
            For a storage without dims, with an unknown halo, or in a layout or on a device that
            is not the backend's: NDSL would copy.
        ImportError
            Without NDSL.
        """
    def to_xarray(
        self,
        coords: Any = None,
        name: Hashable | None = None,
        attrs: Mapping[Any, Any] | None = None,
    ) -> Any:
        """Return an ``xarray.DataArray`` over the memory, with the dims of the storage. Copies nothing.

        Parameters
        ----------
        coords, name
            As for ``xarray.DataArray``.
        attrs
            More attributes. A storage with a halo or a default origin also gets those that
            `from_xarray` reads: ``halo_<dim>`` (points below and above), ``extent_<dim>`` and
            ``origin_<dim>``, or ``halo_unknown``. Nothing else in dlfield reads them, since xarray
            keeps them unchanged in a part of the array.

        Returns
        -------
        xarray.DataArray
            Over host memory it holds the NumPy array of `to_numpy()`, so that all of xarray works. With
            a buffer on a GPU it holds the storage itself, so that each side stays up to date and CuPy
            computes on the GPU; a NumPy array would show the host buffer as it is at the moment.
            ``xarray.DataArray(storage, dims=storage.dims)`` holds the storage in any memory.

        Raises
        ------
        ValueError
            For a storage without dims.
        ImportError
            Without xarray.
        """
    def to_jax(self, copy: bool | None = None) -> Any:
        """Return a JAX array over the memory, on the GPU if the buffer there is up to date.

        JAX arrays are immutable: do not write the storage afterwards.

        Parameters
        ----------
        copy
            With True JAX makes a copy. Otherwise the array shares the memory; JAX never copies
            silently.

        Raises
        ------
        BufferError
            If JAX cannot share the memory: gaps between elements, misaligned memory, 64-bit types
            while x64 is off, axes in another order than C before JAX 0.8.
        ImportError
            Without JAX.
        """
    def to_arrow(self, *, copy: bool = False) -> Any:
        """Return a pyarrow Array over the host's buffer, brought up to date. It keeps the buffer alive.

        One dimension gives an array of numbers (bool: `arrow.bool8`). Several dimensions give a
        FixedShapeTensorArray: a list along the axis that is outermost in memory, of tensors whose
        `dim_names` are the other dims. An Array cannot hold the name of the list's own axis or the
        halo: see `to_arrow_batch`. Arrow treats its data as constant: do not write to the storage
        afterwards.

        Parameters
        ----------
        copy
            With True the array is over a copy without padding, in the same order of axes.

        Raises
        ------
        BufferError
            For padded rows, steps and negative strides without `copy=True`; for bfloat16, float8,
            complex numbers, and bool in several dimensions; for a storage without dimensions.
        GTNoSuchBufferError
            Without a buffer on the host.
        ImportError
            Without pyarrow.
        """
    def to_arrow_batch(self, name: str, *, copy: bool = False) -> Any:
        """Return a pyarrow RecordBatch with one column over the buffer of the host, or over a copy.

        The metadata of the column has all dims, the halo and the order of the axes. An Arrow IPC
        file keeps them: for a batch that was read from it, `dlf.as_storage(batch)` returns the same
        field, read-only. `name` names the column; the rest is as in `to_arrow`.
        """
    def to_cupy(self) -> Any:
        """Return a CuPy array over the buffer of the GPU, up to date (GDP-3). Zero-copy.

        Raises
        ------
        GTNoSuchBufferError
            Without a buffer on a GPU.
        BufferError
            For a read-only storage, since CuPy writes what it shares.
        ImportError
            Without CuPy.
        """
    def device_to_host(self, *, force: bool = False) -> None:
        """Copy the device buffer to the host if it is newer, or if `force` is True (GDP-3), and wait.

        Copies nothing if there is one buffer.
        """
    def host_to_device(self, *, force: bool = False) -> None:
        """Copy the host buffer to the device if it is newer, or if `force` is True (GDP-3), and wait.

        Copies nothing if there is one buffer.
        """
    def set_device_modified(self) -> None:
        """Mark the device buffer as written (GDP-3). No effect if there is one buffer."""
    def set_host_modified(self) -> None:
        """Mark the host buffer as written (GDP-3). No effect if there is one buffer."""
    def set_synchronized(self) -> None:
        """Mark both buffers as equal (GDP-3). No effect if there is one buffer."""
    def synchronize(self) -> None:
        """Copy the newer buffer to the other one (GDP-3), and wait for it."""
    @property
    def __gt_data_interface__(self) -> dict[str | None, dict[str, Any]]:
        """GDP-3: the host buffer under None, that of a GPU under "gpu", with dims and halo if known.

        Reading it copies nothing. `acquire` brings a buffer up to date, `touch` marks it as
        written; both hold a reference to the storage. Absent for bfloat16 and float8.
        """
    def __arrow_c_schema__(self) -> CapsuleType:
        """Return a capsule with the type of the array that `to_arrow()` makes.

        Raises BufferError as `to_arrow()` does.
        """
    def __arrow_c_device_array__(
        self, requested_schema: CapsuleType | None = None, **kwargs: Any
    ) -> tuple[CapsuleType, CapsuleType]:
        """Return capsules with schema and array, on the device that `__dlpack_device__` names.

        Zero-copy; the array holds a reference. A consumer of GPU memory waits for `sync_event`. The
        requested schema is ignored, as the interface allows. Raises BufferError as `to_arrow()`
        does, and NotImplementedError for an unknown keyword that is not None.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device: (1, 0) for host memory, (2, n) for a GPU.

        Of two buffers it is the one that is up to date, that of the GPU if both are.
        """
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a DLPack capsule that holds a reference.

        Zero-copy unless `copy=True`, or the host asks for memory that is only on a GPU. Versioned
        with `max_version=(1, 0)` or higher, else legacy. `stream` waits for work in flight: None is
        the legacy default stream, -1 does not wait.

        Raises
        ------
        BufferError
            For negative strides, for another device, and for read-only memory in a legacy capsule.
        RuntimeError
            For a stream with memory of the host, as NumPy.
        ValueError
            For streams that DLPack does not allow, and for another `copy`.
        """
    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        """Names for GT4Py stencils; absent unless each is I, J, K or a decimal."""
    @property
    def __gt_origin__(self) -> tuple[int, ...]:
        """Where stencils begin, in GT4Py's order of dimensions (I, J, K, data dimensions).

        In the order of the axes if GT4Py does not know all names. Negative if the memory begins after
        that point, as in a gt4py.next field that begins above 0. Absent unless
        `default_origin=` was given or the array had one, and for a view that excludes the point, skips
        elements or has a new axis.
        """
    @property
    def default_origin(self) -> tuple[int, ...]:
        """`__gt_origin__`, under the name of the storage allocation note."""

class HostBackedStorage(Storage):
    """What storages with a buffer on the host have in common: the doors of host memory."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return the host's buffer as a NumPy array, or a copy as `dtype` and `copy` ask."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Return capsules with schema and array over the buffer of the host, brought up to date.

        Zero-copy; the array holds a reference. The requested schema is ignored, as the interface
        allows. Raises BufferError as `to_arrow()` does.
        """
    def tobytes(self, order: Literal["C", "F", "A"] = "C") -> bytes:
        """Copy the values without padding in order "C", "F" or "A", as NumPy and CuPy do."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The array interface, version 3, with explicit strides in bytes.

        It holds no reference: keep the storage. Absent for bfloat16 and float8, which it cannot
        name.
        """
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class CPUStorage(HostBackedStorage):
    """A storage in host memory."""

    @property
    def ndarray(self) -> npt.NDArray[Any]:
        """`to_numpy()`, which GT4Py reads first."""

@final
class GPUStorage(Storage):
    """Memory on a GPU alone (GDP-3).

    It has no buffer on the host: what needs one is absent or raises GTNoSuchBufferError
    (`np.asarray` and `DataArray.values` raise BufferError). Copies bring values in and out.
    """

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        """Raise BufferError, since NumPy would make an array of one object without this method.

        A GTNoSuchBufferError would be an AttributeError, which `DataArray.values` would report as a
        missing property.
        """
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3.

        `stream` is dlfield's if it has work in flight. The interface holds no reference:
        keep the storage.
        """

@final
class SoftwareManagedGPUStorage(HostBackedStorage):
    """Memory on host and GPU, kept in step by dlfield (GDP-3).

    dlfield brings a side up to date before handing it out; this copies only if the other side was
    written. dlfield cannot see what a view of another library writes: report it with
    `set_host_modified()` or `set_device_modified()`, or use `with storage.host() as array:` and
    `with storage.device() as array:`, which report it at the end.
    """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3.

        `stream` is dlfield's if it has work in flight. The interface holds no reference:
        keep the storage.
        """
    @property
    def sync_state(self) -> SyncState:
        """Which buffer was modified, shared by all views (GDP-3)."""

@final
class CUDAManagedGPUStorage(HostBackedStorage):
    """Memory that host and GPU share, kept in step by CUDA (GDP-3).

    Before the host gets it, dlfield waits for the work that it knows of.
    """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3.

        `stream` is dlfield's if it has work in flight. The interface holds no reference:
        keep the storage.
        """

@final
class CopyBatch:
    """Many copies between storages, planned once and run any number of times.

    Source n is copied to target n, as `target[...] = source` does, but dtypes and shapes must match.
    Dimensions go by name if both have names, else by position. The batch keeps the memory alive.

    Parameters
    ----------
    sources, targets
        Storages, usually views of parts; as many sources as targets. No target may share an element
        with a source or another target: the copies may run in any order and in several threads.

    Raises
    ------
    TypeError
        For objects that are not storages: `as_storage` shares the memory of other arrays.
    ValueError
        If the numbers of storages, dtypes, shapes or names do not match.
    BufferError
        For a read-only target, and one that overlaps a source or another target.
    GTNoSuchBufferError
        Unless all storages have a buffer on the host, or all have one on a GPU.
    """

    def __new__(cls, sources: Sequence[Storage], targets: Sequence[Storage]) -> CopyBatch: ...
    def run(self) -> None:
        """Make the copies, without the GIL.

        They are made on the GPU if all storages have a buffer there and the newest values of a
        source are there, or if there is no other way; else on the host. That side of each pair is
        brought up to date first; afterwards it is the newer side of the targets.

        Raises
        ------
        BufferError
            While another thread runs a batch with the same targets on the host, and while Rust code
            uses an element.
        DeviceUnavailable
            If CUDA fails.
        """

def first_sharing(fields: Sequence[Storage]) -> tuple[int, int] | None:
    """Find two storages that share an element.

    Parameters
    ----------
    fields
        Any number of storages. Those without elements share none.

    Returns
    -------
    pair of int or None
        The places of the two in the sequence, the lower one first.
    """

@final
class HaloBoxes:
    """The boxes of a storage for each direction in which it has a neighbour.

    A direction has -1, 0 or 1 for each divided dimension, in the order of `dims`. A box is a key of
    the storage: a slice for each axis.

    Parameters
    ----------
    storage
        A storage with dims and a known halo.
    dims
        The divided dimensions. The storage may lack some of them; it has no boxes in their directions.
    width
        Points that neighbours fill, by name: an int for both ends, or a pair. None, and names that
        are missing, mean the whole halo.
    shared
        Points at each end of the domain that the neighbour there also has, by name.

    Raises
    ------
    ValueError
        For a storage without names or with an unknown halo, a width beyond the halo, and names that
        are not among `dims`.
    """

    def __new__(
        cls,
        storage: Storage,
        dims: Sequence[str],
        width: Mapping[str, _HaloWidth] | None = None,
        shared: Mapping[str, SupportsIndex] | None = None,
    ) -> HaloBoxes: ...
    def send(self, direction: Sequence[SupportsIndex]) -> tuple[slice, ...] | None:
        """Return the points that the neighbour in a direction needs; None if there are none.

        Raises
        ------
        ValueError
            If the domain has fewer points than the neighbour needs.
        """
    def receive(self, direction: Sequence[SupportsIndex]) -> tuple[slice, ...] | None:
        """Return the points of the halo that the neighbour in a direction fills; None if there are none."""
    def interior(self, reach: Mapping[str, _HaloWidth]) -> tuple[slice, ...]:
        """Return the points of the domain that a stencil can compute without a halo.

        Parameters
        ----------
        reach
            Points that it reads below and above, by name: an int for both, or a pair. Dimensions that
            are missing count as 0.
        """
    def edges(self, reach: Mapping[str, _HaloWidth]) -> list[tuple[slice, ...]]:
        """Return the points of the domain that `interior` leaves, in boxes without overlap."""
    @property
    def widths(self) -> list[tuple[int, int] | None]:
        """Points below and above the domain that neighbours fill.

        For each divided dimension; None if the storage lacks it.
        """
    @property
    def shared(self) -> list[int]:
        """Points at an end of the domain that the neighbour has too, for each divided dimension."""

def message_part(message: Storage, start: int, model: Storage) -> Storage:
    """View a part of a message as a field.

    Parameters
    ----------
    message
        A storage of bytes in one dimension. The part shares its memory, and the state of its buffers.
    start
        First byte of the part.
    model
        A storage with the dtype, shape and dims of the part, which has no gaps.

    Raises
    ------
    ValueError
        If the message does not have these bytes.
    """

@final
class UsedStream:
    """The context manager that `use_stream` makes."""

    def __enter__(self) -> UsedStream: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __int__(self) -> int:
        """Give the handle of the stream."""

def use_stream(stream: Any) -> UsedStream:
    """Let dlfield work on a stream of yours: `with dlfield.use_stream(stream):`.

    In the block, copies and fills that this thread asks for run on that stream, for memory of its
    device. They wait by events for work in flight on other streams. The exchange
    table of a storage names the stream to others; work that they put on it after the block is not
    followed. Outside of such blocks dlfield works on a stream of its own for each device, which
    keeps order with the legacy default stream.

    Parameters
    ----------
    stream
        An object with `__cuda_stream__`, `cuda_stream` (torch) or `ptr` (CuPy), which is kept, or a
        handle as an int: 1 is the legacy default stream, 2 the per-thread one. Any other stream
        must outlive all memory that is used in the block.

    Raises
    ------
    TypeError, ValueError
        For anything but a stream; 0 is ambiguous, as in the CUDA array interface.
    DeviceUnavailable
        If CUDA cannot be used, or refuses the stream. CUDA may fail to notice that a handle is not
        a stream.
    """

@final
class SyncState:
    """Which of the two buffers of a synchronised storage was modified, shared by all its views."""

    SYNC_CLEAN: Final[int]
    SYNC_HOST_DIRTY: Final[int]
    SYNC_DEVICE_DIRTY: Final[int]
    def __new__(cls) -> SyncState: ...
    @property
    def state(self) -> int:
        """One of the three constants."""
    @state.setter
    def state(self, state: int) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle, copy and deepcopy make a state of its own with the same value."""
    def __setstate__(self, state: int, /) -> None: ...

class LayoutWarning(UserWarning):
    """A stencil call is slower than it could be, because of the memory layout of an argument."""

class MemoryCopyWarning(UserWarning):
    """A stencil call copies an argument that is not laid out as the stencil needs it."""

class DeviceCopyWarning(UserWarning):
    """A stencil call copies an argument from one device to another."""

#: A number for each axis of the iteration: in their order, or by name.
_AlongAxes: TypeAlias = Sequence[int] | Mapping[str, int]
#: The same for all fields, or by the names of fields and "_all_".
_CallOrigin: TypeAlias = _AlongAxes | Mapping[str, _AlongAxes]

@final
class Allocation:
    """Makes storages of one shape, dtype and kind. Parameters and errors are those of `empty`."""

    def __new__(
        cls,
        shape: SupportsIndex | Sequence[SupportsIndex],
        dtype: npt.DTypeLike | UnsetType | None = None,
        **options: Unpack[StorageOptions],
    ) -> Allocation: ...
    def zeros(self) -> Storage:
        """Allocate a storage of zeros."""
    def empty(self) -> Storage:
        """Allocate a storage whose values are undefined."""

@disjoint_base
class BoundStencil:
    """A stencil that takes arrays of any framework. Made by `dlfield.bind`.

    Call it with the stencil's own arguments, and optionally `origin`, `domain` and `exec_info` as
    for the stencil itself. Nothing is copied unless `bind` was told to; every check is made at
    every call.
    """

    def __new__(
        cls,
        stencil: Any,
        declaration: Any,
        *,
        dims: Mapping[str, str],
        copy_device: bool,
        copy_memory: bool,
        options: dict[str, Any],
        partial: tuple[int, dict[str, Any]] | None = None,
    ) -> Self: ...
    @property
    def stencil(self) -> Any:
        """The stencil that was bound."""
    @property
    def declaration(self) -> Declaration:
        """The declaration of the stencil, a `dlfield.stencils.declaration.Declaration`.

        It has `fields` and `scalars` with their names, dims, dtypes and access, `reach()`, and more.
        """
    def __getattr__(self, name: str) -> Any:
        """Give an attribute of the stencil that a bound stencil lacks."""
    def __copy__(self) -> BoundStencil:
        """Bind the stencil again."""
    def __deepcopy__(self, memo: Any) -> BoundStencil:
        """Copy the stencil and what it was bound with, and bind it again."""
    def storage(
        self, data: Array, *, field: str | None = None, **options: Unpack[StorageOptions]
    ) -> Storage:
        """Copy an array into memory as this stencil wants it, under the names that the array has.

        Parameters
        ----------
        data
            Anything that `dlfield.storage` takes. Without names its axes are those of the field in the
            order of the definition.
        field : str, optional
            The argument that it is for. By default the first field with these dimensions.
        **options
            As for `dlfield.storage`; they override what the stencil wants.

        Returns
        -------
        Storage
            A copy in the order of memory, with the alignment and on the device that suit the stencil.
            Dtype, dims and halo are those of the data.

        Raises
        ------
        ValueError
            If no field of the stencil has these dimensions.
        """
    def zeros(
        self,
        shape: Sequence[SupportsIndex],
        dtype: Any = None,
        *,
        field: str | None = None,
        **options: Unpack[StorageOptions],
    ) -> Storage:
        """Make a storage of zeros as this stencil wants its memory.

        Parameters
        ----------
        shape : sequence of int
            Extents of the dimensions, with the halo.
        dtype : optional
            By default that of the field.
        field : str, optional
            The argument that it is for. By default the first field with these, or as many, dimensions.
        **options
            As for `dlfield.zeros`; they override what the stencil wants. `dims` are your names, as in
            the `dims` of `bind`, in any order; by default those of the field in the order of the
            definition, under your names where there is one for each.

        Returns
        -------
        Storage

        Raises
        ------
        ValueError
            If no field of the stencil has these dimensions.
        """
    def empty(
        self,
        shape: Sequence[SupportsIndex],
        dtype: Any = None,
        *,
        field: str | None = None,
        **options: Unpack[StorageOptions],
    ) -> Storage:
        """As `zeros`, without values."""
    @property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the fields and parameters, in positional order."""
    def __call__(
        self,
        *args: Any,
        origin: _CallOrigin | None = None,
        domain: _AlongAxes | None = None,
        exec_info: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Run the stencil. Every check is made at every call.

        Objects with hooks are acquired in the order of the arguments, touched if they were written,
        and released, each once. Nothing is copied unless `bind` was told to.

        Raises
        ------
        ValueError, BufferError, TypeError, DeviceUnavailable
            Before anything was acquired, copied or written: dtype, dims, bounds, alignment,
            read-only or overlapping outputs, missing arguments. The text names the argument and a
            way out.

        Warns
        -----
        LayoutWarning
            Memory in an order that the backend is slow with: once for each bound stencil, which
            lists all such arguments of that call.
        MemoryCopyWarning, DeviceCopyWarning
            An argument is copied for the call.
        """
    def plan(
        self,
        *args: Any,
        origin: _CallOrigin | None = None,
        domain: _AlongAxes | None = None,
        **kwargs: Any,
    ) -> CallPlan:
        """Plan a call with these arguments, without making it; see `dlfield.PlanExplanation`.

        The values are not read, and nothing is acquired. Raises the errors of the call.
        """
    def arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments by name, as a call would read them."""
    def outputs(
        self,
        shapes: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]],
        *,
        halo: Any = None,
        dims: Any = None,
    ) -> dict[str, tuple[Any, ...]]:
        """Return the shapes of the outputs that belong to inputs of these shapes.

        This is arithmetic on extents, which may be symbols, such as torch's `SymInt`.

        Parameters
        ----------
        shapes
            By name of the fields that are read, or in the order of the definition.
        halo
            Points around the domain in every array: a number, a number or a pair for each axis, or a
            dict by axis. The reach of the stencil by default.
        dims
            Order of the axes in the arrays, such as "KJI"; the declared order by default.

        Returns
        -------
        dict
            By name of the outputs, in the order of the definition.

        Raises
        ------
        TypeError, ValueError
            For shapes, a halo or an order that do not fit the stencil, and for an output along an axis
            that no input has.
        """
    def functional(self, *args: Any, **kwargs: Any) -> Any:
        """Call the stencil with outputs that are made here, and return them.

        Parameters
        ----------
        *args, **kwargs
            As for a call, without the outputs: arguments without a name are the inputs in the order of
            the definition, or all arguments. A field that is read and written is copied, and so is an
            output that you pass: points that the stencil does not write keep their values. `origin`,
            `domain` and `exec_info` are as for a call. Instead of `origin` and `domain`, `halo` gives
            the points around the domain in arrays that have no halo of their own. `like` selects the
            framework of the results: "numpy", "torch", "jax", "cupy", "xarray" or "storage", or an
            array of it. The default is the framework of the first field argument.

        Returns
        -------
        array or tuple of arrays
            The outputs in the order of the definition; a single one by itself, those of a collection
            as one. A new output has the points of the domain and around it the widest halo of the
            fields, filled with zeros. Its dimensions are ordered as in the first field argument if that
            has the same, and its memory as the backend prefers. A DataArray gets the dims and
            coordinates of the first field argument; one that was passed for an output keeps its own.

        Raises
        ------
        TypeError
            For arguments without a name that are more than the inputs and fewer than all. For
            `halo` with `origin` or `domain`.
        ValueError
            If a new output has a dimension that no given field has, and neither `domain` nor a
            connectivity gives its extent. For an unknown `like`.
        """

@final
class NextRun:
    """Runs a program or operator of ``gt4py.next`` over arrays, without copying them.

    Parameters
    ----------
    stencil : callable
        Called with fields and scalars by name, and with ``offset_provider``.
    compiled : tuple or None
        For a compiled program: a function that returns its compiled variants, which are called instead
        of `stencil`, one that returns the context of a call, and keywords that both take.
    field_class : callable
        ``(domain, array)`` to a field.
    origin_cache : str or None
        The attribute in which a field caches its origin, which spares GT4Py finding it for each field.
    as_array : callable
        Converts an array into one that `field_class` takes. Never copies.
    domain_of : callable
        ``(dims, shape, origin)`` to the domain of a field.
    fields : dict
        The dimensions of each field by name, and for an output that is cut to the domain its axes there.
    scalars : dict
        NumPy's type of each scalar by name.
    order : sequence of str
        Names of the arguments of the stencil.
    collections : dict
        A `DeclaredCollection` for each argument that is one.
    tables : dict or None
        Takes every connectivity of a call by its id, so that no other one gets the id, by which GT4Py
        finds the code for it.
    """

    def __new__(
        cls,
        stencil: Any,
        *,
        compiled: tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]] | None,
        field_class: Any,
        origin_cache: str | None,
        as_array: Callable[[Any], Any],
        domain_of: Callable[..., Any],
        fields: dict[str, tuple[Any, Sequence[int] | None]],
        scalars: dict[str, Any],
        order: Sequence[str],
        collections: dict[str, DeclaredCollection],
        tables: dict[int, Any] | None,
    ) -> Self: ...
    def run(
        self,
        *,
        _domain_: tuple[Any, ...],
        _origin_: dict[str, tuple[int, ...]],
        offset_provider: Any = None,
        exec_info: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """Compute, as `dlfield.stencils.declaration.Run` has it, with the connectivities of the call.

        The fields live for this call. Into `exec_info` go ``call_run_start_time`` and
        ``call_run_end_time``, in seconds of ``time.perf_counter()``.
        """

@final
class CallPlan:
    """The plan of a call of a bound stencil."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Dimensions of the iteration."""
    @property
    def domain(self) -> tuple[int, ...]:
        """Points to compute along `axes`."""
    @property
    def start(self) -> tuple[int, ...]:
        """First of them, counted from the origins: 0, but for an operator of gt4py.next."""
    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """The widest halo of the fields along `axes`."""
    @property
    def output_halo(self) -> tuple[tuple[int, int], ...]:
        """Points below and above the domain in outputs that are made for the call, along `axes`."""
    @property
    def slow(self) -> tuple[str, ...]:
        """Texts of the warnings about layouts."""
    @property
    def fields(self) -> dict[str, FieldPlan]:
        """A `FieldPlan` for each field by its name, in the order of the definition."""
    @property
    def takes(self) -> tuple[Literal["origin", "domain"], ...]:
        """Which of "origin" and "domain" the stencil takes."""
    @property
    def device(self) -> str | tuple[str, int] | None:
        """Device of the stencil: None for the host, "gpu", or ("gpu", number)."""
    @property
    def backend(self) -> str | None:
        """Name of the preset that the stencil is fast with."""
    @property
    def decided_by(self) -> DecidedBy:
        """What decides about `domain`; if it is the stencil itself, `domain` says nothing."""
    @property
    def checked(self) -> Literal["checked", "partly checked", "unchecked"]:
        """Whether all the points that the call touches are known and checked."""
    @property
    def collections(self) -> dict[str, DeclaredCollection]:
        """Those arguments of the stencil that are tuples or named collections, by name."""

@final
class FieldPlan:
    """A field of a stencil in a `CallPlan`, as declared, with the array that was given for it."""

    @property
    def access(self) -> Literal["unused", "read", "write", "update"]:
        """Use by the stencil: "unused", "read", "write" or "update"."""
    @property
    def dtype(self) -> str:
        """Name of the type."""
    @property
    def dims(self) -> tuple[str, ...]:
        """Names in the declared order."""
    @property
    def data_shape(self) -> tuple[int, ...]:
        """Extents of the data dimensions."""
    @property
    def reads(self) -> tuple[tuple[int, int], ...] | None:
        """Points that the call reads along each axis, counted from the origin; None if none are."""
    @property
    def writes(self) -> tuple[tuple[int, int], ...] | None:
        """Points that the call writes along each axis, counted from the origin; None if none are."""
    @property
    def complete(self) -> bool:
        """True if these are all the points that the call touches."""
    @property
    def layout(self) -> tuple[int, ...] | None:
        """Ranks that the memory must have; None for any."""
    @property
    def alignment_size(self) -> int:
        """Alignment that the memory must have, in bytes."""
    @property
    def given(self) -> GivenArray | None:
        """The array; None for an unused field, and for an output that is to be made."""

@final
class GivenArray:
    """The array that was given for a field, in its own order of axes."""

    @property
    def door(self) -> str | None:
        """Name of its door; None for memory that dlfield allocated."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Strides, in elements."""
    @property
    def device(self) -> str:
        """Name of the device."""
    @property
    def readonly(self) -> bool:
        """True if it cannot be written."""
    @property
    def dims(self) -> tuple[str, ...] | None:
        """Its names in the stencil's words; None if it has none."""
    @property
    def axes(self) -> tuple[int, ...]:
        """Its axis for each declared dimension."""
    @property
    def origin(self) -> tuple[int, ...]:
        """First point of the domain, in the declared order."""
    @property
    def copy(self) -> str | None:
        """Reason why the stencil gets a copy; None if it gets the array."""

def arguments_functional(
    run: BoundStencil, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """As `BoundStencil.arguments`, for a call whose outputs may be missing.

    Arguments without a name are the inputs, or all.
    """

def bind_options(run: BoundStencil) -> dict[str, Any]:
    """Return the keywords of `bind`, which must not be changed.

    "partial" has the arguments that a `functools.partial` gave.
    """

def plan_functional(
    run: BoundStencil,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    origin: _CallOrigin | None = None,
    domain: _AlongAxes | None = None,
) -> CallPlan:
    """As `BoundStencil.plan`, for a call whose outputs may be missing."""

def call_by_name(
    run: BoundStencil,
    kwargs: dict[str, Any],
    *,
    origin: _CallOrigin | None = None,
    domain: _AlongAxes | None = None,
    exec_info: dict[str, Any] | None = None,
) -> None:
    """Call a bound stencil by the names of its arguments.

    Warnings name the line of the caller's caller.
    """

@final
class FunctionalPlan:
    """How functional calls make their outputs, and where they compute.

    Nothing here depends on the memory of the arguments: it serves every call whose arguments have
    the same outlines.
    """

    def __new__(
        cls,
        run: BoundStencil,
        outputs: dict[str, Any],
        *,
        order: Sequence[str] = ...,
        origin: _CallOrigin | None = None,
        domain: _AlongAxes | None = None,
        convert: Callable[[Storage], Any] | None = None,
        together: Callable[[tuple[Any, ...]], Any] | None = None,
        asked: tuple[Any, ...] | None = None,
        shapes: dict[str, Sequence[int]] | None = None,
    ) -> FunctionalPlan: ...
    @property
    def may_be_kept(self) -> bool:
        """Return whether it serves the calls that come again."""
    def serves(
        self,
        run: BoundStencil,
        given: dict[str, Any],
        origin: _CallOrigin | None,
        domain: _AlongAxes | None,
        like: str | None,
    ) -> bool:
        """Return whether a call with these arguments, by name, would get the same plan."""
    def __call__(
        self,
        run: BoundStencil,
        given: dict[str, Any],
        exec_info: dict[str, Any] | None = None,
    ) -> Any:
        """Compute with arguments by name, and return the outputs.

        Warnings name the line of the caller's caller.
        """
    def in_order(self, run: BoundStencil, *values: Any) -> Any:
        """Compute with the arguments of `order`, and return the outputs."""
    def repeat(self, run: BoundStencil, *values: Any) -> bool:
        """Compute with the arguments of `order`, if the stencil was last called in the same way.

        Fields are all tensors of torch, or all arrays of NumPy, outputs too, with the layouts of that
        call and the extents of `shapes`. For any other call, and one that would be refused, return
        False; nothing is computed then.
        """

def is_bound_call(stencil: object) -> bool:
    """Return whether the innermost call of a bound stencil on this thread is one of `stencil`."""

@final
class Preset:
    """A preset: "C", "F", or the name of a backend."""

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def gpu(self) -> bool:
        """The backend computes on a GPU."""
    @property
    def typed(self) -> bool:
        """The backend is compiled and reads memory as items of its type; others read any memory."""
    def layout(self, dims: Sequence[str]) -> tuple[int, ...]:
        """Return the rank of the stride of each dimension, 0 for the largest."""

def register_preset(
    name: str,
    layout: Sequence[SupportsIndex] | Callable[[tuple[str, ...]], Sequence[SupportsIndex]] | None,
    *,
    alignment: SupportsIndex | None = None,
    device: Literal["cpu", "gpu"] | None = None,
) -> None:
    """Register your own preset for ``defaults=``, ``backend=`` and ``DefaultParameters``.

    Parameters
    ----------
    name : str
        Its name. Another preset of that name is replaced, unless dlfield defines it.
    layout : sequence of 3 ints, callable or None
        Rank of the strides of I, J and K among each other: 0 is the largest. Data dimensions come
        outermost. Or a function that gets names, such as ("I", "K", "0"), and returns their ranks in
        the same order. None removes the preset.
    alignment : int, optional
        Of the aligned element of each row, in elements; 1 by default.
    device : None, "cpu" or "gpu", optional
        Where its backend computes; on the host by default.

    Raises
    ------
    ValueError
        For a name that dlfield defines, and for an invalid layout, alignment or device. A
        function has to put data dimensions outermost or innermost.
    TypeError
        For values of a wrong type.

    Notes
    -----
    Layouts registered with ``gt4py.storage.register`` need no registration here: dlfield looks unknown
    names up in GT4Py's registry.
    """

def preset(name: str, option: str = "backend") -> Preset:
    """Look a preset up by its name, which is given as `option`.

    Raises
    ------
    ValueError
        For an unknown name; the text lists the known ones.
    """

def reduced(function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
    """Call one of `reducing_functions()` with the other arguments.

    The result has the remaining dims, with their halo, origin and order in memory.
    """

def reducing_functions() -> list[Callable[..., Any]]:
    """Return the functions of NumPy that `reduced` computes."""

def elementwise(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    results: int = 1,
    name: str = "dlfield",
    options: Mapping[str, Any] | None = None,
    *,
    outer: bool = False,
) -> Any:
    """Call a function of NumPy element by element: `function(*inputs, *outputs, **options)`.

    The function has `results` results, and takes that many outputs by position. Arrays of other
    libraries are operands, too: a DataArray goes by the names of its dims. With `outer` the operands
    need not be related, and their dims follow one another.
    """

def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage whose values are undefined.

    Parameters
    ----------
    shape : int or sequence of int
        Extents, in elements. Zeros are legal.
    dtype : optional
        Anything that numpy.dtype takes; float64 by default. NumPy shows bfloat16 and the float8
        types if the package ml_dtypes is installed.
    dims : sequence of str, optional
        Names of the dimensions in the order of the axes: "IJK", any distinct names, or axes of
        GTScript.
    halo : sequence of int or (int, int), or dict of them by name, optional
        Points around the domain per dimension, for both ends or for each; 0 by default, and for the
        names that a dict lacks.
    backend : str, optional
        Layout, alignment and device for a GT4Py backend: "numpy", "debug", "gt:cpu_kfirst",
        "gt:cpu_ifirst", "gt:gpu", "dace:cpu", "dace:cpu_kfirst", "dace:cpu_KJI", "dace:gpu",
        "dace:gpu_IJK", "gtx86", "gtmc", "gtcuda". Excludes alignment_size, device and layout. The
        layout goes by the names I, J and K, which are assumed without dims. Other names count as
        outermost, in their order: dims=("level", "lat", "lon") stays in C order. Name the
        dimensions I, J, K, or give layout= with defaults=.
    defaults : str, optional
        The same, as a preset that explicit options override. "C" and "F" are NumPy's orders, for
        any device.
    layout : sequence of int or callable, optional
        Rank of each dimension's stride: 0 is the largest, ndim - 1 is contiguous. Or a function
        that gets the names of the dimensions, or their number, and returns the ranks.
    alignment_size : int, optional
        Bytes. Rows are padded so that the aligned element of each lies on such a boundary. With 1,
        the default, nothing is padded and the first element lies on a boundary of 64 bytes.
    aligned_index : sequence of int, optional
        Index of the aligned element; the lower halo by default.
    device : None, "cpu", "gpu" or ("gpu", n), optional
        Where the memory lies: on the host, on the GPU in use at the moment (that of the thread's
        CUDA context, else the first), or on one by its number.
    managed : None, "gt4py" or "cuda", optional
        For a GPU, what keeps host and device in step: nothing, since there is no buffer on the
        host; dlfield, between two buffers (the default); CUDA, in one that both reach. No effect in
        host memory.
    default_origin : sequence of int, optional
        Where stencils begin unless told otherwise, in points, in GT4Py's order of dimensions (I, J,
        K, data dimensions), or of the axes if GT4Py does not know all names. Negative for memory that
        begins after that point. It is shown only if given, since GT4Py takes no upper halo from it.

    Returns
    -------
    CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
        As device and managed say. Its memory is freed when the last storage, view and export of it
        is gone.

    Raises
    ------
    ValueError
        For options that do not fit the shape or exclude each other, and for more bytes than an
        address can count.
    TypeError
        For unknown options and values of a wrong type.
    MemoryError
        If the system has no more memory.
    DeviceUnavailable
        For a GPU or the preset of a GPU backend, if CUDA cannot be used, or the device does not
        exist or has no managed memory.
    """

def xla_entries() -> dict[str, tuple[Callable[..., None], bool]]:
    """Return the dict of entries by name, each `(function, asks_writable)`.

    The function takes arrays of NumPy, the inputs and then the outputs, and may not keep them. If it
    asks for writable inputs it must not write them all the same.
    """

def xla_handler() -> CapsuleType:
    """Return a capsule with the handler, for `jax.ffi.register_ffi_target`."""

def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of zeros. No page of it is touched.

    Parameters, result and errors are those of `empty`.
    """

def ones(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of ones.

    Parameters, result and errors are those of `empty`.
    """

def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage with `fill_value` in every element, converted as NumPy does.

    Other parameters, result and errors are those of `empty`.
    """

def empty_like(
    data: Array,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage like another, whose values are undefined.

    Parameters
    ----------
    data
        The model: a storage, or an array as for `as_storage`. Shape, dtype, dims, halo, layout,
        alignment and origin are the model's, unless an option says otherwise. Its values are not
        read, so that byte-swapped and masked arrays, and tensors that require a gradient, will do.
    dtype : optional
        Of the new storage; the model's by default, which must then be numeric.
    **options
        As for `empty`.

    Returns
    -------
    CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
        As device and managed say; of the model's kind by default.

    Raises
    ------
    TypeError, BufferError, ValueError, MemoryError, DeviceUnavailable
        As `as_storage` for the model, and as `empty`.
    """

def zeros_like(
    data: Array,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of zeros like another.

    Parameters, result and errors are those of `empty_like`.
    """

def ones_like(
    data: Array,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of ones like another.

    Parameters, result and errors are those of `empty_like`.
    """

def full_like(
    data: Array,
    fill_value: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage like another with `fill_value` in every element, converted as NumPy does.

    Other parameters, result and errors are those of `empty_like`.
    """

def as_storage(
    data: Array = None,
    device_data: Any = None,
    *,
    sync_state: SyncState | UnsetType | None = None,
    like: Array = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Put the memory of an array into a storage. Never copies.

    Parameters
    ----------
    data
        A storage, or anything that speaks `__gt_data_interface__`, DLPack, the buffer protocol, the
        array interface, the CUDA array interface or Arrow's C interfaces. A DLPack capsule is taken
        too, once. An xarray.DataArray keeps its dims. JAX and Arrow arrays, and arrays in which several
        indices name one element, become read-only storages. An object with an `acquire` function is
        acquired, and released when the last view of it is gone; call its `touch` yourself after
        writing.
    device_data : optional
        An array on a GPU. With data, both must hold the same values. A single buffer on a GPU may
        be passed as data too.
    sync_state : SyncState, optional
        Which buffer of a pair is newer; neither by default.
    like : optional
        A storage, or an array as for `data`, of the same shape. Where it has labels (dims, halo,
        default_origin), the storage gets them; options take precedence.
    **options
        As for `empty`. They must hold for the memory already. With device="cpu", memory that host
        and device share is taken on the host.

    Returns
    -------
    CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
        Holds the producer's memory, which is given back when the last view of it is gone. Memory of
        a GPU becomes a pair with a new buffer on the host, unless managed= says otherwise.

    Raises
    ------
    TypeError
        If the object speaks none of the protocols.
    BufferError
        If what it says cannot be used: contradictory claims, unsupported types, masked arrays, torch tensors with a
        pending conjugation or negation, and those that require a gradient where torch records it.
    ValueError
        For an option that the memory does not meet, and for data with another shape or other names
        than `like`.
    DeviceUnavailable
        If the memory is not where device=, managed= or `device_data` requires it.
    """

def storage(
    data: Array = None,
    device_data: Any = None,
    *,
    dtype: npt.DTypeLike | UnsetType | None = None,
    copy: bool = True,
    sync_state: SyncState | UnsetType | None = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | UnsetType | None = None,
    like: Array = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Copy an array into a new storage; with `copy=False` the same as `as_storage`.

    Parameters
    ----------
    data : optional
        As for `as_storage`; also byte-swapped NumPy arrays, lists, numbers, and objects with
        `__array__`, which NumPy reads, such as datasets of zarr and h5py, Dask arrays and pandas.
        Without it, a storage of `shape` is allocated, whose values are undefined.
    device_data : optional
        As for `as_storage`.
    dtype : optional
        Of the storage; the data's own by default. Another one is converted as NumPy's astype does,
        lists and numbers as its array does: a number that does not fit is an OverflowError.
    copy : bool
        With False the storage shares the memory; True by default.
    sync_state : optional
        As for `as_storage`.
    shape : int or sequence of int, optional
        Needed without data; with data, the shape that it must have.
    like : optional
        As for `as_storage`. A copy also has its layout, alignment, device and managed.
    **options
        As for `empty`. Without layout, preset or `like` the copy is in the order of the data.

    Returns
    -------
    CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
        As device and managed say; where the data is by default.

    Raises
    ------
    TypeError, BufferError, ValueError, DeviceUnavailable
        As `as_storage`. ValueError also for another dtype with `copy=False`, and for data of
        another shape than `shape`.
    """

def as_numpy(data: Array) -> npt.NDArray[Any]:
    """Return a NumPy array over the memory of any array, in its own order of axes. Never copies.

    Parameters
    ----------
    data
        As for `as_storage`. An object with an `acquire` function is acquired, and released when
        the array and every view of it are gone.

    Returns
    -------
    numpy.ndarray
        `data` itself if its class is exactly ``numpy.ndarray``; else an array that holds the
        producer's memory, read-only if the producer is.

    Raises
    ------
    TypeError, BufferError, DeviceUnavailable
        As `as_storage`.
    """

def as_cupy(data: Array) -> Any:
    """Return a CuPy array over the memory of any array on a GPU. Never copies.

    Parameters
    ----------
    data
        A CuPy array, or an array with memory on a GPU, as for `as_storage`. A buffer there is
        preferred to one on the host. An object with an `acquire` function is acquired, and released
        when the CuPy array and every view of it are gone.

    Returns
    -------
    cupy.ndarray
        `data` itself if it is one; else an array that holds the producer's memory. CuPy has no
        read-only arrays: do not write one whose producer forbids it.

    Raises
    ------
    ImportError
        Without CuPy.
    GTNoSuchBufferError
        If `data` has no memory on a GPU. Copying is left to ``cupy.asarray``.
    TypeError, BufferError, DeviceUnavailable
        As `as_storage`.

    Notes
    -----
    Storage allocation note, "Supported Buffer Interfaces".
    """

def look_at(data: Array) -> Storage:
    """Put an array into a storage as `as_storage(data, managed=None)` does, but acquire nothing.

    The values may be old. Raises what `as_storage` raises.
    """

def get_dims(storage: Any, annotation: Any = None) -> tuple[str, ...] | None:
    """Return the names of an array's axes, else those that a stencil assumes.

    Parameters
    ----------
    storage
        A storage, a DataArray, or an object with `__gt_dims__` (attribute or method) or
        `__gt_data_interface__`. The names are those that `as_storage` reads. Touches no memory.
    annotation
        The names of an array that has none: a `gtscript.Field[...]`, whose data dimensions are
        called "0", "1", ..., or a sequence of names.

    Returns
    -------
    tuple of str or None
        In the order of the axes. None without names.

    Raises
    ------
    TypeError
        If a name is not a text.
    ValueError
        If the annotation has another number of names than the array has axes.

    Notes
    -----
    Storage allocation note, "Dimension Mapping".
    """

def gt4py_names(dims: Any) -> tuple[str, ...] | None:
    """Return the names as texts if each is I, J, K or a decimal, as in GT4Py's stencils; else None."""

def check_among(what: str, given: Iterable[object], known: Iterable[str]) -> None:
    """Refuse an entry of `given` that is not among the strings `known`."""

def dim_names(dims: Any, what: str = "dims") -> tuple[str, ...]:
    """Read names of dimensions, or GT4Py's axes and dimensions, as texts.

    Raises
    ------
    TypeError
        If `dims` is not a sequence of names. The message begins with `what`.
    """

def check_names(dims: Any, own: Any) -> None:
    """Refuse names of a DataArray that contradict those of its data."""

def has_matched_dims() -> bool:
    """Return True if xarray or Dask calls, which have matched dims themselves: arrays go by position."""

def names_are_unrelated(dims: Any, others: Any) -> bool:
    """Return whether two sets of names are unrelated, so that axes match only by position."""

def doors_of(data: Array) -> tuple[str, ...]:
    """Return the names of the doors that an object has, usable or not."""

def device_of(device: Any) -> tuple[str, int | None] | None:
    """Read a value of the option `device`: None for the host, ("gpu", n) for a GPU; n is None for any."""

def class_options(cls: type, /) -> dict[str, Any] | None:
    """Return the options that the name of a class decides: `device`, and on a GPU `managed`.

    Empty for `Storage`, None for a class that is not a kind of storage.
    """

def copy_settings() -> dict[str, Any]:
    """Return how large copies in host memory are made, and what this process has learnt about them.

    The first copies between two layouts are written through the caches and past them by turns, and
    later ones by the way that was faster. The environment variable DLFIELD_COPIES, "past" or
    "through", fixes the way for all from 2 MiB on; smaller ones go through the caches.

    Returns
    -------
    dict
        "caches": "learn", "past" or "through"; "registers": their name on this processor; "threads":
        as `get_num_threads`; and "learnt": a list of dicts, one for each pair of layouts, of the last
        256 or so. Each has the "kind" ("whole", "rows", or "planes" that are transposed), the "bytes"
        of a copy, the number of "copies", and the fastest of the last ones in bytes a second,
        "through" and "past" the caches (None if there was none), and whether the next one goes past
        them, "past_caches".
    """

def get_num_threads() -> int:
    """Return the number of threads that share a large copy or fill.

    It is set by `set_num_threads`, else by the environment variable DLFIELD_NUM_THREADS, else by
    OMP_NUM_THREADS, else it is the number of CPUs that the process may use.
    """

def set_num_threads(num_threads: int) -> None:
    """Set the number of threads that share a large copy or fill, for the whole process.

    A copy uses fewer threads if each would copy less than 2 MiB. Threads live as long as the copy.

    Raises
    ------
    ValueError
        For a number below 1.
    """

def get_huge_pages() -> bool:
    """Return whether large fields ask the system for huge pages.

    Set by `set_huge_pages`; by default True, unless the environment variable DLFIELD_HUGE_PAGES is 0,
    off, no or false.
    """

def set_huge_pages(enabled: bool) -> None:
    """Set whether new fields of 4 MiB and more ask the system for huge pages."""

def get_pool_limit() -> int:
    """Return how many bytes of freed large fields are kept for new ones; 0, the default, keeps none."""

def set_pool_limit(bytes: int) -> None:
    """Set how many bytes of freed large fields are kept for new ones.

    A new field of 4 MiB or more then reuses such memory, unless it is on a GPU or made by `zeros`,
    which saves the time to map new pages. Memory beyond the limit goes back to the system at once, the
    oldest first.

    Raises
    ------
    ValueError
        For a number below 0.
    """

def pool_bytes() -> int:
    """Return how many bytes are kept for new fields at the moment."""

def free_pool() -> None:
    """Return all memory that is kept for new fields to the system. The limit stays."""

def build_features() -> tuple[str, ...]:
    """Return the features of the crate that this build has, in the order of Cargo.toml."""

def copy_registers() -> str:
    """Name the processor's registers that copies use: avx512, avx2, sse2, neon or plain."""

def cuda_driver() -> tuple[tuple[int, int], list[tuple[str, int, tuple[int, int]]]]:
    """Ask the CUDA driver for its version and devices. Starts the driver.

    Returns
    -------
    tuple
        The newest version of CUDA that the driver has, and for each device its name, memory in bytes
        and compute capability.

    Raises
    ------
    DeviceUnavailable
        Without a driver or a device, or with a driver that is too old.
    """

def first_held(storages: tuple[Storage, ...]) -> int | None:
    """Return the index of the first storage of a tuple that is also held elsewhere.

    That is the storage itself, a view or an export of it. None if only the tuple holds them.
    """

def live_allocations() -> int:
    """Count the blocks of memory, on the host and on GPUs, that dlfield has allocated and not freed."""

def rebuild_storage(
    values: Any,
    dtype: str,
    shape: Sequence[int],
    ranks: Sequence[int],
    known: tuple[Any, ...],
    managed: tuple[str | None] | None = None,
) -> Storage:
    """Make a storage of what was pickled. Its arguments may change with any version."""
