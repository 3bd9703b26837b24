"""The compiled part of dlfield. Import from `dlfield` instead."""

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, NoReturn, Self, SupportsIndex, TypedDict, Unpack, final

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

from dlfield._sides import Device

__all__ = [
    "UNSET",
    "BoundStencil",
    "CPUStorage",
    "CUDAManagedGPUStorage",
    "DeviceCopyWarning",
    "DeviceUnavailable",
    "GPUStorage",
    "GTNoSuchBufferError",
    "HostBackedStorage",
    "LayoutWarning",
    "MemoryCopyWarning",
    "SoftwareManagedGPUStorage",
    "Storage",
    "SyncState",
    "UnsetType",
    "UsedStream",
    "__version__",
    "as_numpy",
    "as_storage",
    "dims_of",
    "doors_of",
    "empty",
    "empty_like",
    "free_pool",
    "full",
    "full_like",
    "get_huge_pages",
    "get_num_threads",
    "get_pool_limit",
    "live_allocations",
    "ones",
    "ones_like",
    "pool_bytes",
    "rebuild_storage",
    "set_huge_pages",
    "set_num_threads",
    "set_pool_limit",
    "storage",
    "use_stream",
    "zeros",
    "zeros_like",
]

__version__: str

@final
class UnsetType:
    def __bool__(self) -> Literal[False]: ...

#: The value of an option that nobody gave, where None is a value of its own.
UNSET: Final[UnsetType]

class DeviceUnavailable(RuntimeError):
    """No usable device of the kind asked for: no driver, no such device, or a build without it."""

class GTNoSuchBufferError(BufferError, AttributeError):
    """The storage has no buffer of the kind asked for."""

class StorageOptions(TypedDict, total=False):
    """Keyword options of every function that makes a storage (GDP-3). For type checking only.

    What is left out is taken from `defaults` or `backend`, then from the data, then from the
    fallback.
    """

    #: Index of the element that `alignment_size` is about; the lower halo unless given.
    aligned_index: Sequence[SupportsIndex] | UnsetType
    #: Bytes: rows are padded so that the aligned element of each lies on such a boundary. With 1,
    #: nothing is padded and the first element lies on a boundary of 64 bytes.
    alignment_size: SupportsIndex | UnsetType
    #: Layout, alignment and device for a GT4Py backend; excludes giving those beside it. The layout
    #: goes by the names I, J and K, which are assumed without dims. Other names count as outermost,
    #: in the order in which they stand: dims=("level", "lat", "lon") is left in C order. Name the
    #: dimensions I, J, K, or give `layout` with `defaults`.
    backend: str | UnsetType | None
    #: The same, as a preset that explicit options override; also "C" and "F".
    defaults: str | UnsetType | None
    #: Where stencils begin unless told otherwise, in points, in GT4Py's order of dimensions (I, J, K,
    #: data dimensions). GT4Py takes no upper halo from it, so it is shown only where it is given.
    default_origin: Sequence[SupportsIndex] | UnsetType | None
    #: None or "cpu" for host memory, "gpu" for the GPU that is used at the moment (that of the thread's
    #: CUDA context, else the first), ("gpu", n) for one by its number.
    device: str | tuple[str, int] | UnsetType | None
    #: Names of the dimensions, in the order of the axes; any distinct names.
    dims: Sequence[str] | UnsetType | None
    #: Points around the domain, per dimension: an int for both ends, or a pair; 0 by default.
    halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | UnsetType
    #: Rank of each dimension's stride: 0 is the largest, `ndim - 1` is contiguous.
    #: Or a function that gives it: of the names of the dimensions where they are known, else of
    #: their number.
    layout: Sequence[SupportsIndex] | Callable[[Any], Sequence[SupportsIndex]] | UnsetType | None
    #: For a GPU who keeps host and device in step: None, nobody, there is no buffer on the host;
    #: "gt4py", dlfield between two buffers (the default); "cuda", CUDA in one that both reach.
    managed: Literal["gt4py", "cuda"] | UnsetType | None

class Storage:
    """A field: memory with named dimensions, halo and alignment.

    Made by `zeros`, `as_storage` and their like. Every view, capsule and exported array holds one
    reference to the memory, which is freed, or given back to its producer, when the last of them
    is gone, on whichever thread that is. Strides are in bytes, as in NumPy. Operators and
    comparisons raise TypeError: use `to_numpy()`.

    `storage[key]` with integers, slices, None and `...` is a view that shares memory: slices keep
    dims and what is left of the halo, an integer drops its dimension, and None leaves a storage
    without dims. An integer for every dimension gives a number. Lists, masks and arrays of indices
    give a NumPy array of its own, without names. `storage[key] = value` broadcasts and converts as
    NumPy does. Where storage and value have names, dimensions go where their names say. An array in
    a key stands for the dimensions that NumPy takes it for: where it has their names in another
    order it is transposed, other names of the same kind are refused, and unrelated ones do not
    count.
    """

    __array_ufunc__: None
    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Do what a function of NumPy means for storages; TypeError for those without a clear meaning.

        Views: transpose, moveaxis, swapaxes, matrix_transpose, expand_dims, squeeze, broadcast_to.
        New storages: concatenate, stack, where, copy, astype, empty_like and its kin. Also shape, ndim,
        size, result_type, copyto, all, any, array_equal, allclose, shares_memory, save, savez.
        """
    def __new__(cls, *data: Any, **options: Any) -> Self:
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
        """The NumPy dtype of an element."""
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
        """Names of the dimensions, or None where nobody gave any."""
    @property
    def halo(self) -> tuple[tuple[int, int], ...] | None:
        """Points below and above the domain in each dimension.

        None: unknown, as in a view that leaves out every other point of a dimension with a halo.
        Can be set to what the option `halo` takes; the aligned element stays where it is, and
        views that exist keep their halo.
        """
    @halo.setter
    def halo(
        self, halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | None
    ) -> None: ...
    @property
    def layout(self) -> tuple[int, ...]:
        """Rank of each dimension's stride: 0 is the largest, `ndim - 1` the smallest (GDP-3)."""
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the element that `alignment_size` is about; the lower halo unless given."""
    @property
    def alignment_size(self) -> int:
        """Requested alignment of the aligned element in bytes; 1 asks for nothing."""
    @property
    def readonly(self) -> bool:
        """Whether the memory must not be written, because its producer forbids it."""
    @property
    def device(self) -> Device | None:
        """`"gpu"` where there is a buffer on a GPU, else None (GDP-3).

        Called, a context manager: `with storage.device() as array:` gives that buffer as a GPUStorage,
        up to date; at the end dlfield waits for the GPU, and notes that the buffer was written.
        """
    @property
    def device_id(self) -> int | None:
        """Number of that GPU, as CUDA counts them."""
    def host(self) -> AbstractContextManager[npt.NDArray[Any]]:
        """Give a context manager for the buffer of the host.

        `with storage.host() as array:` gives a NumPy array, up to date, and notes at the end that it was
        written.
        """
    def _device_side(self) -> GPUStorage: ...
    def _finish(self) -> None: ...
    @property
    def door(self) -> str | None:
        """The protocol that the memory came through, or None where dlfield allocated it."""
    @property
    def domain_view(self) -> Self:
        """The part inside the halo, as a view whose halo is 0. Copies nothing."""
    @property
    def device_data(self) -> Any:
        """The `cupy.cuda.MemoryPointer` of the buffer on the GPU (GDP-3); None where there is none."""
    @property
    def T(self) -> Self:
        """A view with the dimensions in the opposite order."""
    def transpose(
        self, *axes: SupportsIndex | str | Sequence[SupportsIndex] | Sequence[str] | None
    ) -> Self:
        """Give a view with the dimensions in another order, as `numpy.ndarray.transpose`.

        Names, halo and alignment go with them. Axes are numbers, or names where the storage has
        dims: `field.transpose("K", "J", "I")`. Copies nothing.

        Raises
        ------
        ValueError
            For axes that are no permutation, names that are not those of the storage, and any name
            where it has no dims.
        """
    def astype(
        self,
        dtype: npt.DTypeLike,
        order: str | None = "K",
        casting: str = "unsafe",
        subok: object = None,
        copy: bool = True,
    ) -> Self:
        """Give a copy of another type, with the same names, halo, layout and alignment.

        Converted as NumPy does. The storage itself with `copy=False`, where it is of that type and in
        that order already. `subok` means nothing.

        Raises
        ------
        TypeError
            Where `casting` forbids it.
        """
    def copy(self) -> Self:
        """Give a storage of its own with the same values, names, halo, layout and alignment."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any = None, /) -> Self: ...
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]: ...
    def __getitem__(self, key: Any, /) -> Any:
        """Give a number, a view, or for advanced keys a NumPy array of its own, without names.

        Integers, slices, None and `...` give a view that shares memory; slices keep dims and what
        is left of the halo, integers drop a dimension, and None leaves a storage without dims. A
        mask with names lies where they say.

        Raises
        ------
        IndexError
            For an index outside the storage, and too many of them.
        ValueError
            For an array with names of the storage's kind, but not of the dimensions it stands for.
        """
    def __setitem__(self, key: Any, value: Any, /) -> None:
        """Put numbers or an array where `key` says, broadcast and converted as NumPy does.

        Where storage and value have names, the names say which dimension goes where. What an
        advanced key selects has no names: a value goes there by position, and its names must be
        those of the storage in their order, or unrelated to them.

        Raises
        ------
        BufferError
            Where the storage is read-only.
        ValueError
            Where shapes do not broadcast, the value names a dimension that the target lacks, or an
            array in the key has names that are refused for reading too.
        """
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __reversed__(self) -> Iterator[Any]: ...
    def item(self, *index: Any) -> Any:
        """Give one element as a Python number: the only one, or the one at the index given."""
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def to_numpy(self) -> npt.NDArray[Any]:
        """Give a NumPy array over the buffer of the host, up to date, in the storage's axis order.

        Zero-copy; the array holds a reference. Read-only where the storage is. GTNoSuchBufferError
        where there is no such buffer.
        """
    def to_ndarray(self) -> Any:
        """Give what `to_cupy()` gives where there is a buffer on a GPU, else `to_numpy()` (GDP-3)."""
    @property
    def data(self) -> memoryview | None:
        """A memoryview of the host buffer, as `numpy.ndarray.data`; None where there is none."""
    def to_torch(self) -> Any:
        """Give a torch tensor over the memory: a GPU's where there is one that is up to date. Zero-copy.

        torch writes what it shares: BufferError for a read-only storage.
        """
    def to_xarray(
        self,
        coords: Any = None,
        name: Hashable | None = None,
        attrs: Mapping[Any, Any] | None = None,
    ) -> Any:
        """Give an `xarray.DataArray` over the memory, with the dims of the storage. Copies nothing.

        Of host memory it holds the NumPy array of `to_numpy()`; with a buffer on a GPU the storage
        itself, which keeps both sides up to date and has no arithmetic. The halo is in its attributes,
        `halo_<dim>`, which dlfield does not read. `coords`, `name` and `attrs` as for a DataArray.

        Raises
        ------
        ValueError
            For a storage without dims.
        ImportError
            Without xarray.
        """
    def to_jax(self, copy: bool | None = None) -> Any:
        """Give a JAX array over the memory: a GPU's where there is one that is up to date.

        Zero-copy, or BufferError: JAX is never made to copy silently. JAX arrays are immutable,
        so do not write the storage afterwards. With `copy=True` JAX makes a copy.
        """
    def to_arrow(self, *, copy: bool = False) -> Any:
        """Give a pyarrow Array over the buffer of the host, which it keeps. Zero-copy.

        One dimension is an array of numbers (bool: `arrow.bool8`). More are a FixedShapeTensorArray: a list
        along the axis that is outermost in memory, of tensors of the rest, whose dims are its
        `dim_names`. An Array has no place for the name of the list's own axis, nor for the halo: see
        `to_arrow_batch`. Arrow takes its data for constant, so do not write the storage afterwards.

        Parameters
        ----------
        copy
            Of a copy without padding, in the same order of axes.

        Raises
        ------
        BufferError
            For padded rows, steps and negative strides without `copy=True`; for bfloat16, float8, complex
            numbers, and bool in several dimensions; for a storage without dimensions.
        GTNoSuchBufferError
            Without a buffer on the host.
        ImportError
            Without pyarrow.
        """
    def to_arrow_batch(self, name: str, *, copy: bool = False) -> Any:
        """Give a pyarrow RecordBatch with one column over the buffer of the host. Zero-copy.

        The metadata of the column has all dims, the halo and the order of the axes. An Arrow IPC file
        keeps them: `dlf.as_storage(batch)` of what is read is the field as it was, read-only.
        Parameters and errors are those of `to_arrow`.
        """
    def to_cupy(self) -> Any:
        """Give a CuPy array over the buffer of the GPU, up to date. Zero-copy.

        GTNoSuchBufferError where there is no such buffer; BufferError for a read-only storage.
        """
    def device_to_host(self, *, force: bool = False) -> None:
        """Copy the device buffer to the host where it is newer, or by `force` (GDP-3), and wait for it.

        Copies nothing where there is one buffer.
        """
    def host_to_device(self, *, force: bool = False) -> None:
        """Copy the host buffer to the device where it is newer, or by `force` (GDP-3), and wait for it.

        Copies nothing where there is one buffer.
        """
    def set_device_modified(self) -> None:
        """Say that the device buffer was written (GDP-3). Means nothing where there is one buffer."""
    def set_host_modified(self) -> None:
        """Say that the host buffer was written (GDP-3). Means nothing where there is one buffer."""
    def set_synchronized(self) -> None:
        """Say that both buffers are equal (GDP-3). Means nothing where there is one buffer."""
    def synchronize(self) -> None:
        """Copy whichever buffer is newer to the other (GDP-3), and wait for it."""
    @property
    def __gt_data_interface__(self) -> dict[str | None, dict[str, Any]]:
        """GDP-3: the host buffer under None, the GPU's under "gpu", with dims and halo where known.

        Reading it copies nothing. `acquire` brings a buffer up to date, `touch` says that it was
        written; both hold a reference to the storage. Absent for bfloat16 and float8.
        """
    def __arrow_c_schema__(self) -> CapsuleType:
        """Give a capsule with the type of `to_arrow()`. BufferError for what Arrow cannot express."""
    def __arrow_c_device_array__(
        self, requested_schema: CapsuleType | None = None, **kwargs: Any
    ) -> tuple[CapsuleType, CapsuleType]:
        """Give capsules with schema and array, on the device that `__dlpack_device__` names.

        Zero-copy; the array holds a reference. Whoever takes memory of a GPU waits for `sync_event`.
        BufferError as for `to_arrow()`; NotImplementedError for a keyword that is not None.
        """
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Give a DLPack capsule that holds a reference.

        Zero-copy unless `copy=True`, or memory of a GPU alone is asked for on the host. Versioned with
        `max_version=(1, 0)` or higher, else legacy. `stream` (None: the legacy default one) is made to
        wait for what is in flight; -1: none is.

        Raises
        ------
        BufferError
            For negative strides, for another device, and for read-only memory in a legacy capsule.
        ValueError
            For streams that DLPack does not allow.
        """
    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        """Names for GT4Py stencils: only where every one is I, J, K or a decimal."""
    @property
    def __gt_origin__(self) -> tuple[int, ...]:
        """Where stencils begin, in GT4Py's order: only where `default_origin=` was given.

        A view that leaves the point out, skips elements or has a new axis has none.
        """
    @property
    def default_origin(self) -> tuple[int, ...]:
        """The same, under the name of the storage allocation note."""

class HostBackedStorage(Storage):
    """What storages with a buffer on the host have in common: the doors of host memory."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]: ...
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Give capsules with schema and array over the buffer of the host, brought up to date.

        Zero-copy; the array holds a reference. BufferError as for `to_arrow()`.
        """
    def tobytes(self, order: Literal["C", "F", "A"] = "C") -> bytes:
        """Copy the values without padding, as NumPy's and CuPy's method of that name."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Version 3, with explicit strides in bytes; holds no reference. Absent for bfloat16 and float8."""
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class CPUStorage(HostBackedStorage):
    """A storage in host memory."""

    @property
    def ndarray(self) -> npt.NDArray[Any]:
        """The same as `to_numpy()`: what GT4Py reads first."""

@final
class GPUStorage(Storage):
    """Memory on a GPU alone (GDP-3).

    It has no buffer on the host: what needs one is absent or raises GTNoSuchBufferError (`np.asarray`
    and `DataArray.values` BufferError), and values come and go by copies.
    """

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> NoReturn: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3; holds no reference. `stream` is dlfield's where it has work in flight."""

@final
class SoftwareManagedGPUStorage(HostBackedStorage):
    """Memory on host and GPU, kept in step by dlfield (GDP-3).

    Each side is brought up to date before it is handed out, by one copy, and none where the other side
    was not written. What a view of another library writes cannot be seen: say it with
    `set_host_modified()` or `set_device_modified()`, or work in `with storage.host() as array:` and
    `with storage.device() as array:`, which say it at the end.
    """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, of the GPU's buffer, brought up to date; holds no reference."""
    @property
    def sync_state(self) -> SyncState:
        """Which buffer was modified, shared by all views."""

@final
class CUDAManagedGPUStorage(HostBackedStorage):
    """Memory that host and GPU share, kept in step by CUDA (GDP-3).

    Before the host gets it, dlfield waits for the work that it knows of.
    """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3; holds no reference. `stream` is dlfield's where it has work in flight."""

@final
class UsedStream:
    """Made by `use_stream`."""

    def __enter__(self) -> UsedStream: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __int__(self) -> int:
        """Give the handle of the stream."""

def use_stream(stream: Any) -> UsedStream:
    """Let dlfield work on a stream of yours: `with dlfield.use_stream(stream):`.

    Copies and fills that this thread asks for in the block are put on that stream, for memory of its
    device; what is in flight elsewhere is waited for by events. Otherwise dlfield works on a stream of
    its own for each device, which keeps order with the legacy default stream.

    Parameters
    ----------
    stream
        An object with `__cuda_stream__`, `cuda_stream` (torch) or `ptr` (CuPy), which is kept, or a
        handle as an int (1 is the legacy default stream, 2 the per-thread one), which has to live
        longer than any memory that is used in the block.

    Raises
    ------
    TypeError, ValueError
        For what is no stream; 0 is ambiguous, as in the CUDA array interface.
    DeviceUnavailable
        Where CUDA cannot be used, or does not know the stream.
    """

@final
class SyncState:
    """Which of the two buffers of a synchronised storage was modified (GDP-3)."""

    SYNC_CLEAN: Final[int]
    SYNC_HOST_DIRTY: Final[int]
    SYNC_DEVICE_DIRTY: Final[int]
    def __new__(cls) -> SyncState: ...
    @property
    def state(self) -> int:
        """One of the three constants."""
    @state.setter
    def state(self, state: int) -> None: ...

class LayoutWarning(UserWarning):
    """A stencil call is slower than it could be: how the memory of an argument is laid out."""

class MemoryCopyWarning(UserWarning):
    """A stencil call copies an argument that is not laid out as the stencil needs it."""

class DeviceCopyWarning(UserWarning):
    """A stencil call copies an argument from one device to another."""

@final
class BoundStencil:
    """A stencil that takes arrays of any framework. Made by `dlfield.bind`."""

    def __new__(
        cls,
        stencil: Any,
        declaration: Any,
        *,
        dims: Mapping[str, str],
        copy_device: bool,
        copy_memory: bool,
    ) -> BoundStencil: ...
    @property
    def stencil(self) -> Any:
        """The stencil that was bound."""
    @property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the fields and parameters, in positional order."""
    def __call__(
        self,
        *args: Any,
        origin: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
        domain: Sequence[int] | None = None,
        exec_info: dict[str, Any] | None = None,
        _stacklevel: int = 1,
        **kwargs: Any,
    ) -> None:
        """Run the stencil. Every check is made at every call.

        What wants to be told is acquired in the order of the arguments, touched where it was
        written, and released, each once. Nothing is copied unless `bind` was told to.

        Raises
        ------
        ValueError, BufferError, TypeError, DeviceUnavailable
            Before anything was acquired, copied or written: dtype, dims, bounds, alignment,
            read-only or overlapping outputs, missing arguments. The text names the argument and a
            way out.

        Warns
        -----
        LayoutWarning
            Memory in an order that the backend is slow with.
        MemoryCopyWarning, DeviceCopyWarning
            An argument is copied for the call.
        """
    def plan(
        self,
        *args: Any,
        origin: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
        domain: Sequence[int] | None = None,
        _functional: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Say what a call would do, without doing it; see `dlfield.PlanExplanation`.

        Raises what the call would raise. With `_functional`, outputs may be missing.
        """
    def arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Give the arguments by name, as a call would read them."""
    def functional(self, *args: Any, **kwargs: Any) -> Any:
        """Call the stencil with outputs that are made here, and give them back.

        Parameters, results and errors are those of `dlfield.functional.call`.
        """

def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage whose values are undefined.

    Parameters
    ----------
    shape
        Extents, in elements. Zeros are legal.
    dtype
        Anything that `np.dtype` takes; float64 by default. bfloat16 and float8 come from ml_dtypes.
    **options
        See `StorageOptions`.

    Raises
    ------
    ValueError
        For options that cannot hold for the shape, and for more bytes than an address can count.
    MemoryError
        Where the system has no more memory.
    DeviceUnavailable
        For a GPU where CUDA cannot be used, or there is no such device.
    """

def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of zeros. No page of it is touched. Parameters and errors as `empty`."""

def ones(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of ones. Parameters and errors as `empty`."""

def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage with `fill_value` in every element, converted as NumPy does.

    Other parameters and errors as `empty`.
    """

def empty_like(
    data: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage like another, whose values are undefined.

    Parameters
    ----------
    data
        The model: a storage, or an array as for `as_storage`. Shape, dtype, dims, halo, layout,
        alignment and origin are as in it, unless an option says otherwise.
    dtype
        Of the new storage; the model's by default.
    **options
        See `StorageOptions`.

    Raises
    ------
    TypeError, BufferError, ValueError, MemoryError, DeviceUnavailable
        As `as_storage` for the model, and as `empty`.
    """

def zeros_like(
    data: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of zeros like another. Parameters and errors as `empty_like`."""

def ones_like(
    data: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage of ones like another. Parameters and errors as `empty_like`."""

def full_like(
    data: Any,
    fill_value: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Allocate a storage like another with `fill_value` in every element, converted as NumPy does.

    Other parameters and errors as `empty_like`.
    """

def as_storage(
    data: Any = None,
    device_data: Any = None,
    *,
    sync_state: SyncState | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Put the memory of an array into a storage. Never copies.

    Parameters
    ----------
    data
        A storage, or anything that speaks `__gt_data_interface__`, DLPack, the buffer protocol or
        the array interface; an xarray.DataArray keeps its dims. JAX and Arrow arrays become
        read-only storages. An object with an `acquire` function is acquired, and released when the
        last view of it is gone.
        __cuda_array_interface__ too: memory of a GPU becomes a SoftwareManagedGPUStorage whose buffer on
        the host is allocated, or what `managed` says.
    device_data
        The same values on a GPU (GDP-3). A buffer there may be passed as `data` too.
    sync_state
        Which of two buffers was written last (GDP-3), neither by default. Of buffers that were taken
        from a storage it has to be that storage's own.
    **options
        See `StorageOptions`. What is given must hold for the memory already.

    Raises
    ------
    TypeError
        Where the object speaks none of the protocols.
    BufferError
        Where what it says cannot be used: lies, unsupported types, lazy torch tensors.
    ValueError
        For an option that the memory does not meet.
    """

def storage(
    data: Any = None,
    device_data: Any = None,
    *,
    dtype: npt.DTypeLike | UnsetType | None = None,
    copy: bool = True,
    sync_state: SyncState | UnsetType | None = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> Storage:
    """Copy an array into a new storage; with `copy=False` the same as `as_storage`.

    Parameters
    ----------
    data
        As for `as_storage`; byte-swapped NumPy arrays, numbers and lists of them too. Without it a
        storage of `shape` is allocated, whose values are undefined.
    device_data, sync_state
        As for `as_storage`.
    dtype
        Of the storage; the data's own by default. Another one is converted as NumPy's `astype` does,
        lists and numbers as its `array` does: a number that does not fit is an OverflowError.
    copy
        Whether to copy; True by default.
    shape
        Needed without data; with it, what it must have.
    **options
        See `StorageOptions`. Without layout or preset the copy is in the order of the data.

    Raises
    ------
    TypeError, BufferError, ValueError
        As `as_storage`; ValueError for another dtype with `copy=False`.
    """

def as_numpy(data: Any) -> npt.NDArray[Any]:
    """Give a NumPy array over the memory of any array, in its own order of axes. Never copies.

    `data` itself where it is exactly a NumPy array. Read-only where the producer is.

    Raises
    ------
    TypeError, BufferError, DeviceUnavailable
        As `as_storage`.
    """

def dims_of(data: Any) -> tuple[str, ...] | None:
    """Names of an object's axes, or None where it has none. Touches no memory."""

def doors_of(data: Any) -> tuple[str, ...]:
    """Names of the doors that an object has, usable or not."""

def get_num_threads() -> int:
    """How many threads share a large copy or fill.

    What `set_num_threads` said, else what the environment says in DLFIELD_NUM_THREADS or else in
    OMP_NUM_THREADS, else the number of CPUs that the process may use.
    """

def set_num_threads(num_threads: int) -> None:
    """Set how many threads share a large copy or fill, in the whole process.

    Copies of less than 2 MiB for each thread take fewer. The threads are started for a copy and are
    gone after it. ValueError for a number below 1.
    """

def get_huge_pages() -> bool:
    """Whether large fields ask the system for huge pages.

    What `set_huge_pages` said, else not where the environment's DLFIELD_HUGE_PAGES is 0, off, no or
    false.
    """

def set_huge_pages(enabled: bool) -> None:
    """Set whether fields of 4 MiB and more that are allocated from now on ask for huge pages."""

def get_pool_limit() -> int:
    """How many bytes of large fields that are gone are kept for the next ones; 0, the default, keeps none."""

def set_pool_limit(bytes: int) -> None:
    """Set how many bytes of large fields that are gone are kept for the next ones.

    A field of 4 MiB or more that is neither zeros nor on a GPU then takes memory that is there
    already, which spares the system's time for new pages. What is kept beyond the limit goes back to
    the system at once, the oldest first. ValueError for a number below 0.
    """

def pool_bytes() -> int:
    """Bytes that are kept for the next fields at the moment."""

def free_pool() -> None:
    """Give all memory that is kept for the next fields back to the system. The limit stays."""

def live_allocations() -> int:
    """Blocks of host memory that dlfield has allocated and not yet freed."""

def rebuild_storage(
    values: Any,
    dtype: str,
    shape: Sequence[int],
    ranks: Sequence[int],
    known: tuple[Any, ...],
    kind: int | None = None,
) -> Storage:
    """Make a storage of what was pickled. For pickle; its arguments may change with any version."""
