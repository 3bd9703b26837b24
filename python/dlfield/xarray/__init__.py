"""What dlfield adds to xarray, and storages as DataArrays.

Its files, each of which uses only those above it::

    files        values of storages in files that xarray writes
    accessors    what GT4Py reads of a DataArray; noticing the import of xarray
    labels       `to_xarray` and `from_xarray`
    quantity     NDSL's `Quantity`, over the memory of a storage
"""

from dlfield.xarray.accessors import DefaultAccessor, install
from dlfield.xarray.labels import from_xarray, to_xarray

__all__ = ["DefaultAccessor", "from_xarray", "install", "to_xarray"]
