"""Arrays of Dask beside storages: Dask computes, and a storage is an array like one of NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import Storage
from dlfield.functions.host import each

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array

__all__ = ["computed"]


def computed(
    function: Callable[..., Any], inputs: Sequence[Array], options: Mapping[str, Array] | None
) -> Any:  # the function decides
    """Let Dask compute a function of its arrays and of storages; NotImplemented without any."""
    import dask.array as da

    given = dict(options or {})
    if not any(isinstance(one, da.Array) for one in each((*inputs, *given.values()))):
        return NotImplemented

    def chunked(one: Array) -> Array:
        if isinstance(one, list | tuple):
            return type(one)(map(chunked, one))
        return da.asanyarray(one) if isinstance(one, Storage) else one

    return function(*map(chunked, inputs), **{name: chunked(one) for name, one in given.items()})
