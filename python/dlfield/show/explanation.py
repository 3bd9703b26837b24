"""Explains why an array does, or does not, get into a stencil without a copy."""

from __future__ import annotations

import functools
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dlfield._core import (
    HOST_ALIGNMENT,
    BoundStencil,
    DeviceUnavailable,
    Storage,
    arguments_functional,
    as_storage,
    doors_of,
    look_at,
    preset,
)
from dlfield.functions.host import is_on_host_alone
from dlfield.show.drawing import dtype_of, place_of
from dlfield.stencils.binding import take_option
from dlfield.stencils.cartesian.temporaries import temporaries_of
from dlfield.stencils.functional import place_of_call, planned, with_halo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlfield._core import Array, CallPlan, FieldPlan
    from dlfield.halo import ExchangeExplanation
    from dlfield.stencils.cartesian.temporaries import Temporaries

__all__ = ["Explanation", "PlanExplanation", "explain"]


class Explanation:
    """Result of `explain` for an array. Prints as a few lines; a notebook shows a table.

    Attributes
    ----------
    type : str
        Name of the object's class.
    doors : tuple of str
        Protocols that the object speaks.
    door : str or None
        The one that was taken; None if dlfield allocated the memory, or if the import failed.
    storage : Storage or None
        The imported array: its shape, dtype, dims, strides, ... None if the import failed. The
        values may be old if the object has an `acquire` function, which is not called.
    shape, strides : tuple of int or None
        Extents and strides of the storage, in elements.
    alignment : int or None
        The largest power of two that divides the address, in bytes; at most a page of 4096.
    obstacles : tuple of str
        Reasons why the memory cannot be used without a copy, each with a way out.

    Examples
    --------
    >>> import dlfield as dlf, numpy as np
    >>> found = dlf.explain(np.zeros((4, 3)).T)
    >>> found.shape, found.strides, found.door
    ((3, 4), (1, 3), 'buffer')
    """

    def __init__(self, data: Array, backend: str | None) -> None:
        self.type = type(data).__name__
        self.doors: tuple[str, ...] = doors_of(data)
        self.storage, self.obstacles = _tried(data, backend)
        self.door = self.shape = self.strides = self.alignment = None
        if (storage := self.storage) is not None:
            self.door, self.shape = storage.door, storage.shape
            self.strides = tuple(stride // storage.itemsize for stride in storage.strides)
            with suppress(AttributeError):  # of an interface that cannot name the type
                self.alignment = _alignment(storage)

    def __repr__(self) -> str:
        return "\n  ".join([self._title(), *map(": ".join, self._facts())])

    def _repr_html_(self) -> str:
        """Show the same in a notebook, as a table."""
        from dlfield.show.html import page_of_facts

        return page_of_facts(self._title(), self._facts())

    def _title(self) -> str:
        if self.storage is None:
            return f"{self.type}: not taken"
        way = f"shared through {self.door}" if self.door else "a storage of dlfield's own memory"
        return f"{self.type}: {way}"

    def _facts(self) -> list[tuple[str, str]]:
        found = [] if self.storage is None else [("found", self._found(self.storage))]
        ways = [("in the way", obstacle) for obstacle in self.obstacles or ("nothing",)]
        return [("doors", ", ".join(self.doors) or "none"), *found, *ways]

    def _found(self, storage: Storage) -> str:
        dims = f"dims {storage.dims}" if storage.dims is not None else "no dims"
        if storage.halo is None:
            dims += ", unknown halo"
        elif any(map(any, storage.halo)):
            dims += f", halo {storage.halo}"
        return (
            f"shape {storage.shape}, strides {self.strides} elements, {dtype_of(storage)}, {dims}, "
            f"{place_of(storage)}, {'read-only' if storage.readonly else 'writable'}, "
            f"aligned to {self.alignment} bytes"
        )


def explain(
    data: Array,  # or a bound stencil
    /,
    *args: Any,
    backend: str | None = None,
    **keywords: Any,
) -> Explanation | PlanExplanation | ExchangeExplanation:
    """Say how an array would come in, or what a call of a bound stencil would do.

    Parameters
    ----------
    data
        An array of any library, a storage, or any other object. It is imported as by `as_storage`
        and released with the explanation; nothing is acquired. An object that can be read only
        once, such as a RecordBatchReader or a DLPack capsule, has then been read. Or a bound
        stencil, or a plan of `halo_exchange`.
    backend
        For an array: a GT4Py backend, whose preferred layout and alignment are compared, too.
    *args, **keywords
        For a bound stencil: the arguments of a call, `origin` and `domain` included; with
        ``functional=True``, of a call of ``run.functional``. Nothing is
        acquired, copied or run.

    Returns
    -------
    Explanation, PlanExplanation or ExchangeExplanation
        Prints as a few lines: doors, the one taken, what was found, what is in the way; for a
        stencil the domain, and for each field its door, the order of its axes, origin, copies and
        warnings; for an exchange of halos its engine, the neighbours and the bytes for each.

    Raises
    ------
    ValueError
        For an unknown backend.
    TypeError
        For arguments beside an array.

    Examples
    --------
    >>> import numpy as np
    >>> print(explain(np.zeros((2, 3), dtype=">f4")))
    ndarray: not taken
      doors: buffer, dlpack, array_interface, array_struct
      in the way: BufferError: dtype '>f': expected native byte order, got byte-swapped items; ...
    """
    if isinstance(data, BoundStencil):
        if backend is not None:
            keywords["backend"] = backend
        return PlanExplanation(data, args, keywords)
    exchanges = sys.modules.get("dlfield.halo")
    if exchanges is not None and isinstance(data, exchanges.HaloExchange):
        told: ExchangeExplanation = exchanges.ExchangeExplanation(data)
        return told
    if args or keywords:
        got = ", ".join([*("a further argument" for _ in args[:1]), *keywords])
        raise TypeError(f"explain: expected an array alone, or a bound stencil, got {got}")
    return Explanation(data, backend)


class PlanExplanation:
    """Plan of a call of a bound stencil. Prints as a few lines; a notebook shows a table.

    Attributes
    ----------
    plan : CallPlan or None
        `domain` and `halo` in points along `axes`; `checked`, whether all the points that the call
        touches are known ("checked", "partly checked" or "unchecked"); `slow`, texts of warnings;
        and `fields` by name.
        Each has what the stencil declares, with the points that the call `reads` and `writes` along
        each axis, counted from the origin, and `complete` (whether these are all), and as
        `given` the array: its `door`, own `shape`, `strides` (in elements) and `dims`, `axes` (its
        axis for each declared dimension), `origin` and `copy` (the reason why it would be copied,
        or None). None if the call would be refused.
    temporaries : Temporaries or None
        `number` of the temporary fields of a stencil of gt4py.cartesian, and the `nbytes` that they
        have at most in this call; None where that is not known.
    refusal : Exception or None
        The error that the call would raise.

    Examples
    --------
    >>> import dlfield as dlf, numpy as np
    >>> from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil
    >>> @stencil(backend="numpy")
    ... def smooth(t: Field[float], out: Field[float]):
    ...     with computation(PARALLEL), interval(...):
    ...         out = 0.5 * (t[-1, 0, 0] + t[1, 0, 0])
    >>> found = dlf.explain(dlf.bind(smooth), *np.ones((2, 6, 5, 4)), origin=(1, 0, 0))
    >>> found.plan.domain, found.plan.fields["t"].reads
    ((4, 5, 4), ((-1, 5), (0, 5), (0, 4)))
    """

    def __init__(self, run: BoundStencil, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.name = repr(run)
        self._arguments = run.argument_names
        self.plan: CallPlan | None = None
        self.temporaries: Temporaries | None = None
        self.refusal: Exception | None = None
        keywords.pop("exec_info", None)
        functional = take_option(run, keywords, "functional")
        try:
            plan = functools.partial(_plan_of_functional, run) if functional else run.plan
            self.plan = plan(*args, **keywords)
        except Exception as error:  # a producer may raise anything, which is the answer
            self.refusal = error.with_traceback(None)  # whose frames hold the arguments
            return
        domain = dict(zip(self.plan.axes, self.plan.domain, strict=True))
        self.temporaries = temporaries_of(getattr(run, "stencil", None), domain)

    def __repr__(self) -> str:
        if self.plan is None:
            return f"{self.name}: refused\n  {type(self.refusal).__name__}: {self.refusal}"
        lines = [f"{self.name}: domain {_domain_of(self.plan)}, bounds {self.plan.checked}"]
        lines += [f"  {name}: {_of_field(name, field)}" for name, field in self.plan.fields.items()]
        lines += [f"  {text}" for text in self._remarks(self.plan)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: a row for each argument, or for the one that is refused."""
        from dlfield.show.html import page_of_plan

        if self.plan is None:
            return page_of_plan(f"{self.name}: refused", *self._refused())
        rows = [((name, False), *_told(name, field)) for name, field in self.plan.fields.items()]
        title = f"{self.name}: domain {_domain_of(self.plan)}, bounds {self.plan.checked}"
        return page_of_plan(title, _COLUMNS, rows, self._remarks(self.plan))

    def _remarks(self, plan: CallPlan) -> list[str]:
        """Return what concerns the whole call."""
        found = [f"slow: {text}" for text in plan.slow]
        if self.temporaries is not None and self.temporaries.number:
            number, nbytes = self.temporaries
            found.append(f"temporaries: {number}, {nbytes} bytes at most")
        return found

    def _refused(self) -> tuple[Sequence[str], list[list[tuple[str, bool]]], list[str]]:
        """Return the table and the remarks of a refusal, which may name an argument."""
        name, _, reason = str(self.refusal).removeprefix("argument '").partition("': ")
        if name not in self._arguments:
            return (), [], [f"{type(self.refusal).__name__}: {self.refusal}"]
        return ("argument", "refused"), [[(name, True), (reason, False)]], []


def _plan_of_functional(run: BoundStencil, /, *args: Any, **keywords: Any) -> CallPlan:
    """Plan a call of ``run.functional``; `like` changes nothing in the plan."""
    halo, _ = take_option(run, keywords, "halo"), take_option(run, keywords, "like")
    place = {name: keywords.pop(name, None) for name in ("origin", "domain")}
    if hasattr(type(run), "of_call"):  # a scan operator without fields
        run = run.of_call(args, keywords)
    place = place_of_call(run, place)
    given = arguments_functional(run, args, keywords)
    if halo is not None:
        given = with_halo(run, given, halo, place)
    plan, _ = planned(run, given, place)
    return plan


def _domain_of(plan: CallPlan) -> str:
    """Spell the points along each axis that an output has; as a range, if they begin elsewhere."""
    if plan.decided_by == "stencil":
        return "as the program decides"
    outputs = [one for one in plan.fields.values() if one.access in ("write", "update")]
    axes = {dim for field in outputs for dim in field.dims}
    ranges = zip(plan.axes, plan.start, plan.domain, strict=True)
    return ", ".join(
        f"{axis}={f'{first}:{first + points}' if first else points}"
        for axis, first, points in ranges
        if plan.decided_by != "outputs" or axis in axes
    )


def _of_field(name: str, field: FieldPlan) -> str:
    return ", ".join(text for text, _ in _told(name, field))


#: Columns of a plan: the name of an argument, and what `_told` tells of it.
_COLUMNS = ("argument", "access", "door", "array", "axes", "origin", "copy", "footprint")


def _told(name: str, field: FieldPlan) -> list[tuple[str, bool]]:
    """Tell what the plan has of an argument, and whether that is striking: copied, unchecked."""
    given = field.given
    if given is None:
        return [(field.access, False), ("not given", False)]
    own, declared = _joined(given.dims or field.dims), _joined(field.dims)
    ordered = given.axes == tuple(range(len(given.axes)))
    order = "axes as they are" if ordered else f"axes transposed by {given.axes} to {declared}"
    reason = (given.copy or "").removeprefix(f"argument '{name}': ")
    return [
        (field.access, False),
        ("through " + (given.door or "a storage of dlfield's own memory"), False),
        (f"shape {given.shape} as {own}", False),
        (order, False),
        (f"origin {given.origin}", False),
        (f"copied: {reason}", True) if reason else ("not copied", False),
        *([] if field.complete else [("footprint incomplete", True)]),
    ]


def _joined(dims: tuple[str, ...]) -> str:
    """Write names as IJK if they are single letters."""
    return ("" if all(len(dim) == 1 for dim in dims) else ", ").join(dims)


def _tried(data: Array, backend: str | None) -> tuple[Storage | None, tuple[str, ...]]:
    """Import, and collect what is in the way."""
    if backend is not None:
        preset(backend, "backend")  # an unknown name says nothing about an array
    storage = None
    try:
        storage = as_storage(data) if isinstance(data, Storage) else look_at(data)
        return storage, tuple(_obstacles(storage, backend))
    except Exception as error:  # a producer may raise anything, and that is the answer
        return storage, (f"{type(error).__name__}: {error}",)


def _obstacles(storage: Storage, backend: str | None) -> Iterator[str]:
    if storage.readonly:
        yield "read-only: fine as an input; a stencil cannot write it: storage(...) copies it"
    item = storage.dtype.alignment
    if _address(storage) % item:
        yield f"items off their boundary of {item} bytes: compiled backends refuse them; copy them"
    elif _alignment(storage) < HOST_ALIGNMENT:  # as JAX wants it
        yield f"first element off a boundary of {HOST_ALIGNMENT} bytes: to_jax() refuses"
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


def _address(storage: Storage) -> int:
    """Return the address of the first element; of two buffers, of the one on the GPU."""
    if is_on_host_alone(storage) or storage.size == 0:
        return storage.ptr if storage.size else 0
    return int(storage.__gt_data_interface__["gpu"]["data"][0])


def _alignment(storage: Storage) -> int:
    address = _address(storage)
    return min(address & -address, 4096) or 4096
