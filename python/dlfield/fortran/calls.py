"""What the generated library calls: one `Entry` for each function."""

from __future__ import annotations

import importlib
import os
import struct
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlfield.fortran.communicator import communicator
from dlfield.fortran.memory import check_not_kept, storage_over, which_is_held
from dlfield.fortran.signature import declared

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield._core import Storage
    from dlfield.fortran.parameters import Declared, FieldParameter

__all__ = ["REFUSED", "Entry", "find", "forget", "open_entry"]

#: Statuses, as the generated module has them: nothing was called, the function raised, it returned
#: and Python holds an array.
REFUSED, RAISED, KEPT = 1, 2, 3

#: Different sets of arrays that an entry remembers.
_REMEMBERED = 256

#: The address of an argument that is absent, in the words of a call.
_ABSENT = -1

#: Characters at the end of a traceback that are told: the message of Fortran has 8192.
_LONGEST_TRACE = 5000

Outcome = tuple[int, str] | None


@dataclass(frozen=True)
class Prepared:
    """The storages of a call.

    Attributes
    ----------
    own
        Those that end with the call.
    persistent
        Those that Python may keep.
    names
        Names of all arguments, in this order, scalars included; None if they are those of the
        function, by position.
    """

    own: tuple[Storage, ...]
    persistent: tuple[Storage, ...]
    names: tuple[str, ...] | None


class Entry:
    """A function of the library. Remembers the storages of arrays that come again."""

    def __init__(self, function: Declared) -> None:
        self._declared, self._call = function, function.call
        self._defaults = [one.default for one in function.scalars]
        self._convert = _converters(function)
        self._remembered: dict[bytes, Prepared] = {}

    def __call__(self, words: bytes, scalars: tuple[Any, ...]) -> Outcome:
        """Call the function; `words` are those of all its arrays. Returns None, or what failed."""
        # Taken out, so that a call from another thread, or from within, makes storages of its own.
        prepared = self._remembered.pop(words, None)
        try:
            if prepared is None:
                prepared = self._prepare(words)
            if self._convert is not None:
                scalars = self._convert(scalars)
        except BaseException as error:
            return REFUSED, _for_c(f"{self._declared.name}: {_summary(error)}")
        own, names, raised = prepared.own, prepared.names, ""
        try:
            if names is None:
                self._call(*own, *scalars)
            else:
                # Without a name for all values: nothing here may hold a storage after the call.
                self._call_by_name(names, (*own, *prepared.persistent, *scalars))
        except BaseException as error:
            raised = self._told(error)
        # Only here is the exception gone, which may hold a storage itself.
        held = which_is_held(own)
        kept = "" if held is None else self._kept(prepared, held)
        if raised:
            return RAISED, _for_c("\n\n".join(filter(None, (raised, kept))))
        if kept:
            return KEPT, _for_c(kept)
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[words] = prepared
        return None

    def forget(self) -> None:
        """Let go of all storages."""
        self._remembered.clear()

    def _prepare(self, words: bytes) -> Prepared:
        function, given = self._declared, iter(struct.unpack(f"={len(words) // 8}q", words))
        found: dict[bool, dict[str, Storage]] = {False: {}, True: {}}
        for field in function.fields:
            own = tuple(next(given) for _ in range(_words_of(field)))
            if own[0] != _ABSENT:
                storage = storage_over(function.name, field, own, function.device)
                found[field.persistent][field.name] = storage
            elif not field.optional:
                raise ValueError(
                    f"argument '{field.name}' of '{function.name}': expected an array, got NULL"
                )
        names = (*found[False], *found[True], *(one.name for one in function.scalars))
        plain = names == tuple(one.name for one in function.parameters) and not found[True]
        by_position = plain and not function.by_name and not any(self._defaults)
        own_storages, persistent = tuple(found[False].values()), tuple(found[True].values())
        return Prepared(own_storages, persistent, None if by_position else names)

    def _call_by_name(self, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        """Call with the values that are present; parameters without a name come first."""
        given = _present(names, values)
        first = [given.pop(name, default) for name, default in self._declared.positional]
        self._call(*first, **given)

    def _told(self, error: BaseException) -> str:
        """Return the text of an exception, and take from it what would hold arrays."""
        text = f"{self._declared.name}: {_summary(error)}{_trace(error)}"
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return text

    def _kept(self, prepared: Prepared, held: int) -> str:
        own = [one.name for one in self._declared.fields if not one.persistent]
        present = own if prepared.names is None else [n for n in prepared.names if n in own]
        return (
            f"{self._declared.name}: expected that nothing holds argument '{present[held]}' after "
            f"the call, got a storage, view or export of it; copy what is to stay, or declare it "
            f"persistent"
        )


def _words_of(field: FieldParameter) -> int:
    return 1 + len(field.dims) * (3 if field.has_bounds else 2)


def _present(names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    """Arguments by name, without the scalars that were left out."""
    return {name: value for name, value in zip(names, values, strict=True) if value is not Ellipsis}


def _converters(function: Declared) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Return what makes the scalars that the function wants, or None if C makes them."""
    import numpy as np

    made = [_converter(one.kind.name, one.kind.convert, np) for one in function.scalars]
    if all(one is None for one in made):
        return None

    def convert(scalars: tuple[Any, ...]) -> tuple[Any, ...]:
        pairs = zip(made, scalars, strict=True)
        return tuple(one(v) if one and v is not Ellipsis else v for one, v in pairs)

    return convert


def _converter(name: str, numpy_name: str, np: Any) -> Any:
    if name == "comm":
        return communicator
    return getattr(np, numpy_name) if numpy_name else None


def _for_c(text: str) -> str:
    """Return a text that ends at no NUL and has no half of a character."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _summary(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "KeyboardInterrupt: stopped by Ctrl-C"
    return "".join(traceback.format_exception_only(error)).strip()


def _trace(error: BaseException) -> str:
    """Return the traceback without the frames of this file, if there is more of it."""
    whole = rest = error.__traceback__
    while rest is not None and rest.tb_frame.f_code.co_filename == __file__:
        rest = rest.tb_next
    if rest is None:
        return ""
    text = "".join(traceback.format_exception(error.with_traceback(rest))).strip()
    error.__traceback__ = whole
    cut = "" if len(text) <= _LONGEST_TRACE else "[...]\n"
    return f"\n\n{cut}{text[-_LONGEST_TRACE:]}"


_ENTRIES: list[Entry] = []


def find(target: str) -> Declared:
    """Import ``package.module:name`` and return its declaration."""
    module, _, name = target.partition(":")
    if not name:
        raise ValueError(
            f"function: expected 'package.module:name', got '{target}'; name the module of each "
            "function, as in physics:step,physics:init"
        )
    imported = importlib.import_module(module)
    if not hasattr(imported, name):
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    return declared(getattr(imported, name), name)


def open_entry(target: str, folders: str, signature: str) -> Entry:
    """Find a function for the library.

    Its module is in one of the folders, as in PYTHONPATH, unless another one is found first.
    """
    sys.path += [one for one in folders.split(os.pathsep) if one and one not in sys.path]
    function = find(target)
    if str(function) != signature:
        raise TypeError(
            f"{function.name}: expected the parameters that the library was generated for, "
            f"{signature}, got {function}; generate and build it again"
        )
    entry = Entry(function)
    _ENTRIES.append(entry)
    return entry


def forget(address: int) -> Outcome:
    """Let go of all storages; refuse if Python holds an array at `address`, unless it is 0."""
    for entry in _ENTRIES:
        entry.forget()
    try:
        if address:
            check_not_kept(address)
    except ValueError as error:
        return REFUSED, str(error)
    return None
