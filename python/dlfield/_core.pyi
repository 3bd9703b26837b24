"""The compiled part of dlfield. Import from `dlfield` instead."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, SupportsIndex, TypedDict, Unpack, final

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

__all__ = [
    "UNSET",
    "BoundStencil",
    "CPUStorage",
    "DeviceUnavailable",
    "GTNoSuchBufferError",
    "Storage",
    "UnsetType",
    "__version__",
    "as_numpy",
    "as_storage",
    "dims_of",
    "doors_of",
    "empty",
    "full",
    "live_allocations",
    "ones",
    "storage",
    "zeros",
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
    #: Layout, alignment and device for a GT4Py backend; excludes giving those beside it.
    backend: str | UnsetType | None
    #: The same, as a preset that explicit options override; also "C" and "F".
    defaults: str | UnsetType | None
    #: Where stencils begin unless told otherwise, in points, in GT4Py's order of dimensions (I, J, K,
    #: data dimensions). GT4Py takes no upper halo from it, so it is shown only where it is given.
    default_origin: Sequence[SupportsIndex] | UnsetType | None
    #: None or "cpu" for host memory.
    device: str | tuple[str, int] | UnsetType | None
    #: Names of the dimensions, in the order of the axes; any distinct names.
    dims: Sequence[str] | UnsetType | None
    #: Points around the domain, per dimension: an int for both ends, or a pair.
    halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | UnsetType
    #: Rank of each dimension's stride: 0 is the largest, `ndim - 1` is contiguous.
    layout: Sequence[SupportsIndex] | UnsetType | None
    #: Who synchronises host and device; has no effect in host memory.
    managed: Literal["gt4py", "cuda"] | UnsetType | None

class Storage:
    """A field: memory with named dimensions, halo and alignment.

    Made by `zeros`, `as_storage` and their like. Every view, capsule and exported array holds one
    reference to the memory, which is freed, or given back to its producer, when the last of them
    is gone, on whichever thread that is. Strides are in bytes, as in NumPy. Operators and
    comparisons raise TypeError: use `to_numpy()`.
    """

    __array_ufunc__: None
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
        """Points below and above the domain in each dimension: zeros where none was given."""
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
    def device(self) -> str | None:
        """None: a host storage has no device buffer (GDP-3)."""
    @property
    def door(self) -> str | None:
        """The protocol that the memory came through, or None where dlfield allocated it."""
    @property
    def domain_view(self) -> CPUStorage:
        """The part inside the halo, as a view whose halo is 0. Copies nothing."""
    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        """Names for GT4Py stencils: only where every one is I, J, K or a decimal."""
    @property
    def __gt_origin__(self) -> tuple[int, ...]:
        """Where stencils begin, in GT4Py's order: only where `default_origin=` was given."""
    @property
    def default_origin(self) -> tuple[int, ...]:
        """The same, under the name of the storage allocation note."""

@final
class CPUStorage(Storage):
    """A storage in host memory."""

    def to_numpy(self) -> npt.NDArray[Any]:
        """Give a NumPy array over the memory, in the storage's axis order.

        Zero-copy; the array holds a reference. Read-only where the storage is.
        """
    @property
    def ndarray(self) -> npt.NDArray[Any]:
        """The same as `to_numpy()`: what GT4Py reads first."""
    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]: ...
    def to_jax(self, copy: bool | None = None) -> Any:
        """Give a JAX array over the memory.

        Zero-copy, or BufferError: JAX is never made to copy silently. JAX arrays are immutable,
        so do not write the storage afterwards. With `copy=True` JAX makes a copy.
        """
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Version 3, with explicit strides in bytes; holds no reference. Absent for bfloat16 and float8."""
    @property
    def __gt_data_interface__(self) -> dict[str | None, dict[str, Any]]:
        """GDP-3: the host buffer under None, with dims and halo where known; holds no reference.

        Absent for bfloat16 and float8.
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
        """Give a DLPack capsule that holds a reference. Zero-copy unless `copy=True`.

        Versioned with `max_version=(1, 0)` or higher, else legacy.

        Raises
        ------
        BufferError
            For negative strides, for another device, and for read-only memory in a legacy capsule.
        """
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class BoundStencil:
    """A stencil that takes arrays of any framework. Made by `dlfield.bind`."""

    def __new__(
        cls,
        stencil: Any,
        name: str,
        fields: Sequence[Any],
        parameters: Sequence[Any],
        order: Sequence[str],
        *,
        positional: int,
        min_k: int,
        typed: bool,
        dims: Mapping[str, str],
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
        **kwargs: Any,
    ) -> None:
        """Run the stencil. Nothing is copied; every check is made at every call.

        Raises
        ------
        ValueError, BufferError, TypeError
            Before anything was written: dtype, dims, bounds, alignment, read-only or overlapping
            outputs, missing arguments. The text names the argument and a way out.
        """

def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> CPUStorage:
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
        For a GPU device or a preset of a GPU backend.
    """

def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> CPUStorage:
    """Allocate a storage of zeros. No page of it is touched. Parameters and errors as `empty`."""

def ones(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> CPUStorage:
    """Allocate a storage of ones. Parameters and errors as `empty`."""

def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: Any,
    dtype: npt.DTypeLike | UnsetType | None = None,
    **options: Unpack[StorageOptions],
) -> CPUStorage:
    """Allocate a storage with `fill_value` in every element, converted as NumPy does.

    Other parameters and errors as `empty`.
    """

def as_storage(data: Any, **options: Unpack[StorageOptions]) -> CPUStorage:
    """Put the memory of an array into a storage. Never copies.

    Parameters
    ----------
    data
        A storage, or anything that speaks `__gt_data_interface__`, DLPack, the buffer protocol or
        the array interface; an xarray.DataArray keeps its dims. JAX and Arrow arrays become
        read-only storages. An object with an `acquire` function is acquired, and released when the
        last view of it is gone.
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
    data: Any,
    *,
    dtype: npt.DTypeLike | UnsetType | None = None,
    copy: bool = True,
    **options: Unpack[StorageOptions],
) -> CPUStorage:
    """Copy an array into a new storage; with `copy=False` the same as `as_storage`.

    Parameters
    ----------
    data
        As for `as_storage`.
    dtype
        Of the storage; the data's own by default. Another one is converted as NumPy's `astype` does.
    copy
        Whether to copy; True by default.
    **options
        See `StorageOptions`. Without layout or preset the copy is in the order of the data.
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

def live_allocations() -> int:
    """Blocks of host memory that dlfield has allocated and not yet freed."""
