"""The `flags` of a storage, under the names that NumPy's flags have."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Flags"]


@dataclass(frozen=True, slots=True)
class Flags:
    """Facts about the memory of a storage, as attributes and by NumPy's keys. Read-only.

    ``flags.c_contiguous`` is ``flags["C_CONTIGUOUS"]``.
    """

    c_contiguous: bool
    f_contiguous: bool
    #: True if dlfield allocated the memory; unlike in NumPy, also for a view of it.
    owndata: bool
    writeable: bool
    aligned: bool
    #: False: a storage is never a copy that is written back.
    writebackifcopy: bool = False

    def __getitem__(self, key: str) -> bool:
        """Look up a flag by NumPy's key, such as ``"C_CONTIGUOUS"``."""
        keys = [field.name.upper() for field in fields(self)]
        if key not in keys:
            raise KeyError(f"flags: expected one of {', '.join(keys)}, got {key!r}")
        value: bool = getattr(self, key.lower())
        return value

    def __repr__(self) -> str:
        """Show the flags in NumPy's form."""
        keys = (field.name.upper() for field in fields(self))
        return "".join(f"  {key} : {self[key]}\n" for key in keys)
