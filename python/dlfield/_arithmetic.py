"""What storages compute, beside what is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from dlfield._core import Storage

__all__ = ["install_on"]


def variable(self: Storage) -> xr.Variable:
    """Give an `xarray.Variable` around it: a DataArray beside it computes with that, by name.

    Absent without dims and without xarray.
    """
    if self.dims is None:
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute 'variable'; name its dims with "
            "dlfield.as_storage(storage, dims=...)"
        )
    try:
        import xarray as xr
    except ImportError as error:
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute 'variable'; pip install xarray"
        ) from error
    return xr.Variable(self.dims, self)


def rounded(self: Storage, decimals: int | None = None, out: Any = None) -> Any:  # noqa: ANN401
    """Round to a number of decimals, as NumPy does."""
    from dlfield._elementwise_functions import rounded

    return rounded(self, decimals or 0, out)


def clip(self: Storage, min: Any = None, max: Any = None, out: Any = None) -> Any:  # noqa: ANN401
    """Limit the values to a range, as NumPy does."""
    from dlfield._elementwise_functions import clip

    return clip(self, min, max, out)


def install_on(cls: type) -> None:
    """Give `cls` what it computes."""
    cls.variable = property(variable, doc=variable.__doc__)  # type: ignore[attr-defined]
    cls.__round__ = cls.round = rounded  # type: ignore[attr-defined]
    cls.clip = clip  # type: ignore[attr-defined]
