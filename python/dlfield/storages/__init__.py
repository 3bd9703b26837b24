"""The Python half of the class `Storage`, which is compiled.

Its files, each of which uses only those above it::

    flags           what `Storage.flags` returns
    sides           the two buffers of a pair, as context managers
    constructors    `Storage(...)` and its kinds as calls
    absent          what storages lack, and which array has it
    numbers         conversions of a single element
    by_name         `isel` and `broadcast_like`
    methods         methods, each in terms of the other rooms
"""

from dlfield.storages import absent, methods, numbers

__all__ = ["install_on"]


def install_on(cls: type) -> None:
    """Put the class together."""
    numbers.install_on(cls)
    methods.install_on(cls)
    absent.install_on(cls)
