"""Why an array does, or does not, get into a stencil without a copy."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dlfield._core import (
    BoundStencil,
    CUDAManagedGPUStorage,
    DeviceUnavailable,
    GPUStorage,
    SoftwareManagedGPUStorage,
    Storage,
    as_storage,
    doors_of,
    empty,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Explanation", "PlanExplanation", "explain"]

#: What JAX wants of an address to share the memory behind it; any dlfield allocation has it.
_SHARED_BY_JAX = 64


class Explanation:
    """What `explain` found. Prints as a few lines.

    Attributes
    ----------
    type : str
        Name of the object's class.
    doors : tuple of str
        Protocols that the object speaks.
    door : str or None
        The one that was taken; None where dlfield allocated the memory, or where nothing came in.
    storage : Storage or None
        What came in: its shape, dtype, dims, strides, ... None where nothing did.
    obstacles : tuple of str
        What stands in the way of using the memory without a copy, each with a way out.
    """

    def __init__(self, data: Any, backend: str | None) -> None:  # noqa: ANN401 - any array
        self.type = type(data).__name__
        self.doors = _doors(data)
        self.storage, self.obstacles = _tried(data, backend)
        self.door = self.storage.door if self.storage is not None else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Extents, in elements."""
        return None if self.storage is None else self.storage.shape

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Strides, in elements."""
        storage = self.storage
        if storage is None:
            return None
        return tuple(stride // storage.itemsize for stride in storage.strides)

    @property
    def alignment(self) -> int | None:
        """The largest power of two that divides the address, in bytes; at most a page of 4096."""
        with suppress(ImportError):  # of ml_dtypes, for types that NumPy lacks
            return None if self.storage is None else _alignment(self.storage)
        return None

    def __repr__(self) -> str:
        lines = [f"{self.type}: {self._verdict()}", f"  doors: {', '.join(self.doors) or 'none'}"]
        if self.storage is not None:
            lines += [f"  found: {self._found(self.storage)}"]
        lines += [f"  in the way: {obstacle}" for obstacle in self.obstacles or ("nothing",)]
        return "\n".join(lines)

    def _verdict(self) -> str:
        if self.storage is None:
            return "not taken"
        return f"shared through {self.door}" if self.door else "a storage of dlfield's own memory"

    def _found(self, storage: Storage) -> str:
        dims = f"dims {storage.dims}" if storage.dims is not None else "no dims"
        if storage.halo is None:
            dims += ", unknown halo"
        elif any(map(any, storage.halo)):
            dims += f", halo {storage.halo}"
        return (
            f"shape {storage.shape}, strides {self.strides} elements, {_dtype(storage)}, {dims}, "
            f"{_place(storage)}, {'read-only' if storage.readonly else 'writable'}, "
            f"aligned to {self.alignment} bytes"
        )


def explain(
    data: Any,  # noqa: ANN401 - any array, or a bound stencil
    /,
    *args: Any,  # noqa: ANN401
    backend: str | None = None,
    **keywords: Any,  # noqa: ANN401
) -> Explanation | PlanExplanation:
    """Say how an array would come in, or what a call of a bound stencil would do.

    Parameters
    ----------
    data
        Anything: an array of any library, a storage, an object that is none. It is imported as by
        `as_storage`, and let go when the explanation is dropped: what can be read once, as a
        RecordBatchReader, has been read then. Or a bound stencil.
    backend
        For an array: a GT4Py backend, whose wishes for the layout and alignment are compared too.
    *args, **keywords
        For a bound stencil: the arguments of a call, `origin` and `domain` included; with
        ``functional=True``, of a call of ``run.functional``. Nothing is
        acquired, copied or run.

    Returns
    -------
    Explanation or PlanExplanation
        Prints as a few lines: doors, the one taken, what was found, what is in the way; for a
        stencil the domain, and for each field its door, the order of its axes, origin, copies and
        warnings.

    Raises
    ------
    ValueError
        For a backend that nobody knows.
    TypeError
        For arguments beside an array.

    Examples
    --------
    >>> import numpy as np
    >>> print(explain(np.zeros((2, 3), dtype=">f4")))
    ndarray: not taken
      doors: buffer, dlpack, array_interface
      in the way: BufferError: dtype '>f': expected native byte order, got byte-swapped items; ...
    """
    if isinstance(data, BoundStencil):
        if backend is not None:
            keywords["backend"] = backend
        return PlanExplanation(data, args, keywords)
    if args or keywords:
        got = ", ".join([*("a further argument" for _ in args[:1]), *keywords])
        raise TypeError(f"explain: expected an array alone, or a bound stencil, got {got}")
    return Explanation(data, backend)


class PlanExplanation:
    """What a call of a bound stencil would do. Prints as a few lines.

    Attributes
    ----------
    plan : dict or None
        `domain` and `halo` in points along `axes`; `slow`, texts of warnings; and `fields`: for
        each that is given its `door`, own `shape`, `strides` (in elements), `own_dims`, `axes`
        (which of them is which declared dimension), `origin` and `copy` (why it would be copied, or
        None). None where the call would be refused.
    refusal : Exception or None
        What the call would raise.
    """

    def __init__(self, run: BoundStencil, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.name = repr(run)
        self.plan: dict[str, Any] | None = None
        self.refusal: Exception | None = None
        keywords.pop("exec_info", None)
        if "functional" not in run.argument_names:
            keywords["_functional"] = keywords.pop("functional", False)
        try:
            self.plan = run.plan(*args, **keywords)
        except Exception as error:  # a producer may raise anything, which is the answer
            self.refusal = error

    def __repr__(self) -> str:
        if self.plan is None:
            return f"{self.name}: refused\n  {type(self.refusal).__name__}: {self.refusal}"
        points = zip(self.plan["axes"], self.plan["domain"], strict=True)
        lines = [f"{self.name}: domain {', '.join(f'{axis}={n}' for axis, n in points)}"]
        fields = self.plan["fields"].items()
        lines += [f"  {name}: {_of_field(name, field)}" for name, field in fields]
        lines += [f"  slow: {text}" for text in self.plan["slow"]]
        return "\n".join(lines)


def _of_field(name: str, field: dict[str, Any]) -> str:
    if "shape" not in field:
        return f"{field['access']}, not given"
    own, declared = _joined(field["own_dims"] or field["dims"]), _joined(field["dims"])
    ordered = tuple(field["axes"]) == tuple(range(len(field["axes"])))
    order = "axes as they are" if ordered else f"axes transposed by {field['axes']} to {declared}"
    reason = (field["copy"] or "").removeprefix(f"argument '{name}': ")
    copied = f"copied: {reason}" if reason else "not copied"
    door = field["door"] or "a storage of dlfield's own memory"
    return (
        f"{field['access']}, through {door}, shape {field['shape']} as {own}, {order}, "
        f"origin {field['origin']}, {copied}"
    )


def _joined(dims: tuple[str, ...]) -> str:
    """Write names as IJK where they are single letters."""
    return ("" if all(len(dim) == 1 for dim in dims) else ", ").join(dims)


def _doors(data: Any) -> tuple[str, ...]:  # noqa: ANN401
    found: tuple[str, ...] = doors_of(data)
    return found


def _tried(data: Any, backend: str | None) -> tuple[Storage | None, tuple[str, ...]]:  # noqa: ANN401
    """Import, and collect what is in the way."""
    if backend is not None:
        _check_known(backend)
    storage = None
    try:
        # Of memory on a GPU alone no sibling is allocated on the host.
        known = isinstance(data, Storage)
        storage = as_storage(data) if known else as_storage(data, managed=None)
        return storage, tuple(_obstacles(storage, backend))
    except Exception as error:  # a producer may raise anything, and that is the answer
        return storage, (f"{type(error).__name__}: {error}",)


def _check_known(backend: str) -> None:
    """Raise ValueError for a name that is no backend, which says nothing about an array."""
    with suppress(DeviceUnavailable):  # a backend, though not for this machine
        empty((), backend=backend)


def _obstacles(storage: Storage, backend: str | None) -> Iterator[str]:
    if storage.readonly:
        yield "read-only: fine as an input; a stencil cannot write it: storage(...) copies it"
    item = storage.dtype.alignment
    if _address(storage) % item:
        yield f"items off their boundary of {item} bytes: compiled backends refuse them; copy them"
    elif _alignment(storage) < _SHARED_BY_JAX:
        yield f"first element off a boundary of {_SHARED_BY_JAX} bytes: to_jax() refuses"
    pairs = zip(storage.strides, storage.shape, strict=True)
    if any(stride < 0 for stride, extent in pairs if extent > 1):
        yield "negative strides: to_numpy() and the buffer protocol have them, DLPack refuses them"
    yield from _of_arrow(storage)
    if backend is not None:
        yield from _wishes(storage, backend)


def _of_arrow(storage: Storage) -> Iterator[str]:
    """Say what Arrow, whose rows have no gaps, cannot express."""
    try:
        storage.__arrow_c_schema__()
    except AttributeError:
        return  # built without that door
    except BufferError as error:
        yield f"to_arrow() refuses: {str(error).removeprefix('Arrow export: ')}"


def _wishes(storage: Storage, backend: str) -> Iterator[str]:
    """Say what the preset of a backend wants and the memory does not have."""
    try:
        as_storage(storage, backend=backend)
    except DeviceUnavailable as error:
        yield f"{type(error).__name__}: {error}"
    except ValueError as error:
        yield f"slower than it could be on {backend}: {error}"


def _dtype(storage: Storage) -> str:
    try:
        return str(storage.dtype)
    except ImportError as error:
        return f"a type unknown without ml_dtypes ({error})"


def _place(storage: Storage) -> str:
    if isinstance(storage, GPUStorage):
        return f"memory of GPU {storage.device_id}"
    if isinstance(storage, SoftwareManagedGPUStorage):
        return f"host memory and memory of GPU {storage.device_id}"
    if isinstance(storage, CUDAManagedGPUStorage):
        return f"memory that CUDA manages for GPU {storage.device_id}"
    return "host memory"


def _address(storage: Storage) -> int:
    """Where the first element lies; of two buffers, that on the GPU. Reads and copies nothing."""
    if storage.size == 0:
        return 0
    if storage.device is not None:
        return int(storage.__gt_data_interface__["gpu"]["data"][0])
    array = storage.to_numpy()
    return int(array.ctypes.data)


def _alignment(storage: Storage) -> int:
    address = _address(storage)
    return min(address & -address, 4096) or 4096
