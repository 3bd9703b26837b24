"""The `flags` of a storage, under the names that NumPy's flags have."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Flags"]

#: Attributes, each with NumPy's keys for it.
_ATTRIBUTES = {
    "c_contiguous": ("C", "CONTIGUOUS", "C_CONTIGUOUS"),
    "f_contiguous": ("F", "FORTRAN", "F_CONTIGUOUS"),
    "writeable": ("W", "WRITEABLE"),
    "aligned": ("A", "ALIGNED"),
    "owndata": ("O", "OWNDATA"),
    "writebackifcopy": ("X", "WRITEBACKIFCOPY"),
    "behaved": ("B", "BEHAVED"),
    "carray": ("CA", "CARRAY"),
    "farray": ("FA", "FARRAY"),
    "fnc": ("FNC",),
    "forc": ("FORC",),
}
_KEYS = {key: attribute for attribute, keys in _ATTRIBUTES.items() for key in keys}
_SHOWN = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")


@dataclass(frozen=True, slots=True)
class Flags:
    """Facts about the memory of a storage, as attributes and as NumPy's keys. Read-only."""

    c_contiguous: bool
    f_contiguous: bool
    writeable: bool
    aligned: bool
    #: True if dlfield allocated the memory, which views share.
    owndata: bool

    def __getitem__(self, key: str) -> bool:
        """Look up a flag by NumPy's key, such as ``"C_CONTIGUOUS"`` or ``"W"``."""
        if key not in _KEYS:
            raise KeyError(f"flags: expected one of {', '.join(_KEYS)}, got {key!r}")
        value: bool = getattr(self, _KEYS[key])
        return value

    @property
    def writebackifcopy(self) -> bool:
        """False: a storage is never a copy that is written back."""
        return False

    @property
    def contiguous(self) -> bool:
        """The same as `c_contiguous`."""
        return self.c_contiguous

    @property
    def behaved(self) -> bool:
        """True if the memory is aligned and writeable."""
        return self.aligned and self.writeable

    @property
    def carray(self) -> bool:
        """True if `behaved` and `c_contiguous`."""
        return self.behaved and self.c_contiguous

    @property
    def farray(self) -> bool:
        """True if `behaved` and `fnc`."""
        return self.behaved and self.fnc

    @property
    def fnc(self) -> bool:
        """True if `f_contiguous` and not `c_contiguous`."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """True if `f_contiguous` or `c_contiguous`."""
        return self.f_contiguous or self.c_contiguous

    def __repr__(self) -> str:
        """Show the flags that NumPy shows, in its form."""
        return "\n".join(f"  {key} : {self[key]}" for key in _SHOWN) + "\n"
