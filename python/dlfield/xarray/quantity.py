"""NDSL's `Quantity` over the memory of a storage.

The other direction needs no code here: `as_storage` and bound stencils read the dims of a
`Quantity`, and take its points outside the domain as halo.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from dlfield.functions.host import has_host_buffer

if TYPE_CHECKING:
    from dlfield._core import Array, Storage

__all__ = ["to_quantity"]


def to_quantity(self: Storage, units: str, *, backend: Any) -> Any:  # an ndsl.Quantity
    """Implement `Storage.to_quantity`."""
    try:
        from ndsl import Backend, Quantity, constants
    except ImportError as error:
        text = f"to_quantity: needs NDSL ({error}); install ndsl"
        raise ImportError(text) from error
    if self.dims is None or self.halo is None:
        missing = "dims" if self.dims is None else "a known halo"
        raise ValueError(
            f"to_quantity: expected a storage with {missing}, got one of shape {self.shape} "
            "without; give as_storage(storage, dims=..., halo=...)"
        )
    names = {"I": constants.I_DIM, "J": constants.J_DIM, "K": constants.K_DIM}
    data = self.to_numpy() if has_host_buffer(self) else self.to_cupy()
    origin = tuple(low for low, _ in self.halo)
    extent = (n - low - high for n, (low, high) in zip(self.shape, self.halo, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NDSL warns of a copy, which is refused below
        quantity = Quantity(
            data,
            tuple(names.get(dim, dim) for dim in self.dims),
            units,
            backend=Backend(backend) if isinstance(backend, str) else backend,
            origin=origin,
            extent=tuple(extent),
            allow_mismatch_float_precision=True,
            number_of_halo_points=max((max(pair) for pair in self.halo), default=0),
        )
    if _address(quantity) != _address(data):
        raise ValueError(
            f"to_quantity: expected a layout and a device that suit backend '{backend}', got "
            f"layout {self.layout} of {self.dims} on {self.device}; pass GT4Py's name of that "
            "backend as backend= when you allocate the storage"
        )
    return quantity


def _address(array: Array) -> int:
    for name in ("__array_interface__", "__cuda_array_interface__"):
        if (found := getattr(array, name, None)) is not None:
            return int(found["data"][0])
    raise TypeError(
        f"to_quantity: needs the array interface of NDSL's {type(array).__name__}; install ndsl of "
        "another version"
    )
