"""`HaloExchange`: a plan that is agreed upon once and carried out many times."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self

from dlfield._core import as_storage
from dlfield.halo import mpi
from dlfield.halo.agreement import agree
from dlfield.halo.engines.ghex import Ghex
from dlfield.halo.engines.packed import Packed
from dlfield.halo.fields import check_apart
from dlfield.halo.transposed import Transposed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from dlfield._core import Storage
    from dlfield.halo.engines.engine import Engine
    from dlfield.halo.mpi import Connection
    from dlfield.halo.route import Route

    Place = tuple[dict[str, int], dict[str, int]]

__all__ = ["ENGINES", "HaloExchange"]

#: What carries messages, by name.
ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Packed, Ghex)}


class HaloExchange:
    """A planned exchange of halos. `halo_exchange` makes it; it is not picklable.

    Between `start` and `wait`, do not write the fields or read their halos.

    A plan keeps its fields, and those of the last exchanges, until it is freed. It is for one
    thread at a time; other threads need plans of their own.

    Examples
    --------
    >>> import dlfield as dlf
    >>> block = dlf.halo.decompose((8, 6), None, "IJ", {"I": 1}, {"I": True})  # or MPI.COMM_WORLD
    >>> u = block.zeros()
    >>> u.domain_view[:, 0] = range(8)
    >>> with dlf.halo_exchange({"u": u}, block.cart, dims=block.divided) as plan:
    ...     plan.exchange()
    >>> u[:, 0].to_numpy()
    array([7., 0., 1., 2., 3., 4., 5., 6., 7., 0.])
    """

    def __init__(
        self,
        connection: Connection,
        route: Route,
        engine: str,
        *,
        named: bool,
    ) -> None:
        self._route, self._connection, self._named = route, connection, named
        self._lock = threading.Lock()
        self._own = [field.storage for field in route.fields]
        self._engine = ENGINES[engine](route, self._own, connection)
        sent = [sum(view.nbytes for view in route.sent(self._own, edge)) for edge in route.messages]
        self._bytes_sent, self._messages = sum(sent), sum(map(bool, sent))
        if connection.channel is not None:
            connection.channel.plans += 1
        self._state = "idle"
        self._transposed: Transposed | None = None

    @property
    def fields(self) -> Mapping[str, Storage] | tuple[Storage, ...]:
        """The fields that the plan was made with, as it was given them."""
        if not self._named:
            return tuple(self._own)
        names = (field.name for field in self._route.fields)
        return dict(zip(names, self._own, strict=True))

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self._engine.name

    @property
    def bytes_sent(self) -> int:
        """Bytes of the elements that this rank sends to others in one exchange."""
        return self._bytes_sent

    @property
    def messages(self) -> int:
        """Messages that this rank sends to others in one exchange."""
        return self._messages

    def exchange(self, *fields: Any) -> None:
        """Fill the halos: `start` and `wait`.

        Parameters
        ----------
        *fields
            Other fields than the plan's, in the same order, or a dict of them under the names that
            the plan was made with: of the same dtypes, shapes, dims and halos. Their layouts may
            differ.

        Raises
        ------
        ValueError
            On this rank alone, for fields of another description. The other ranks would wait for
            it: run programs with ``python -m mpi4py``, which ends all ranks.
        RuntimeError
            While an exchange is under way, another thread uses the plan, after `free`, and after
            ``MPI.Finalize()``.
        """
        with self._one_thread("exchange"):
            self._start("exchange", fields)
            self._wait()

    def start(self, *fields: Any) -> None:
        """Read what goes to the neighbours, and begin to send it. Parameters as of `exchange`."""
        with self._one_thread("start"):
            self._start("start", fields)

    def wait(self) -> None:
        """Wait for the neighbours, and write the halos.

        Raises
        ------
        RuntimeError
            If nothing was started, and after ``MPI.Finalize()``.
        """
        with self._one_thread("wait"):
            self._check("wait", "started")
            self._wait()

    def test(self) -> bool:
        """Return whether `wait` would return at once. Lets MPI make progress.

        Raises
        ------
        RuntimeError
            If nothing was started, and after ``MPI.Finalize()``.
        """
        with self._one_thread("test"):
            self._check("test", "started")
            return self._engine.test()

    @contextmanager
    def overlap(self, *fields: Any) -> Iterator[None]:
        """Compute in a block while messages travel: `start`, the block, `wait`.

        An exception in the block waits too. Parameters as of `exchange`.
        """
        self.start(*fields)
        try:
            yield
        finally:
            self.wait()

    def interior(self, reach: Mapping[str, Any]) -> Place:
        """Return the part of the domain that needs no halo, of the first field.

        Parameters
        ----------
        reach
            How far a stencil reads below and above along the divided dimensions, by name: an int
            for both, or a pair.

        Returns
        -------
        origin, domain : dict of int
            By the names of the field's dimensions, as a bound stencil takes them.
        """
        return self._place(self._route.fields[0].boxes.interior(reach))

    def edges(self, reach: Mapping[str, Any]) -> list[Place]:
        """Return the rest of the domain in parts without overlap, each as `interior` does."""
        return [self._place(part) for part in self._route.fields[0].boxes.edges(reach)]

    def torch_op(self) -> Callable[..., Any]:
        """Return the exchange as a function of tensors that PyTorch differentiates.

        Returns
        -------
        callable
            Takes a tensor for each field of the plan, of its dtype and shape, and returns copies
            whose halos are filled: one, or a tuple. Its derivative is the transpose, an exchange
            as well: what a halo received goes back, and is added where it came from. Each call and
            each derivative is collective, in the same order on all ranks.

        Raises
        ------
        ValueError
            From the function, on all ranks, if one has arrays that do not fit, or makes another
            step than rank 0.
        NotImplementedError
            From the derivative on one rank, for fields in memory of a GPU. On several ranks this is
            a ValueError, too.
        """
        from dlfield.halo.in_torch import exchanged

        return exchanged(self._step)

    def jax_call(self) -> Callable[..., Any]:
        """Return the exchange as a function of arrays that JAX compiles and differentiates.

        As `torch_op`, with arrays of JAX, whose JaxRuntimeError all ranks raise. XLA makes all
        exchanges of a process, in the order of the program.
        """
        from dlfield.halo.in_jax import exchanged

        alone = self._connection.comm is None
        return exchanged(self, self._step, self._check_count, self._own, alone=alone)

    def _step(self, way: str, made: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Carry out the exchange or its transpose, in place, on all ranks or on none.

        Returns the arrays that `made` gives, and keeps none of them.
        """
        with self._one_thread(way):
            # That the plan is freed, or MPI has ended, all ranks see. They cannot agree any more.
            self._check(way, "started" if self._state == "started" else "idle")
            arrays: Sequence[Any] = ()
            accepted: list[Storage] = []
            problem: Exception | None = None
            try:
                self._check(way, "idle")
                arrays = made()
                accepted = self._labelled(arrays)
                if way == "transpose" and self._transposed is None:
                    self._transposed = Transposed(self._route, self._own, self._connection)
            except Exception as error:
                problem = error
            agree(self._connection.comm, problem, {"step": self._told(way)}, "take the same steps")
            if way == "transpose":
                assert self._transposed is not None
                self._transposed.run(accepted)
                return arrays
            try:
                self._engine.start(accepted)
                self._engine.wait()
            finally:
                self._engine.forget_last()
            return arrays

    def _told(self, way: str) -> str:
        names = ", ".join(field.name for field in self._route.fields)
        return f"{way} of ({names}) by plan {self._connection.number}"

    def _labelled(self, arrays: Sequence[Any]) -> list[Storage]:
        """Return arrays as fields of the plan, with its dims and halos."""
        self._check_count(arrays)
        planned = zip(self._route.fields, arrays, self._own, strict=True)
        accepted = [
            field.accept(as_storage(one, dims=own.dims, halo=own.halo))
            for field, one, own in planned
        ]
        check_apart(self._route.fields, accepted)
        self._check_engine(accepted)
        return accepted

    def _check_count(self, arrays: Sequence[Any]) -> None:
        if len(arrays) != len(self._own):
            raise ValueError(
                f"fields: expected {len(self._own)}, as many as the plan has, got {len(arrays)}"
            )

    def _check_engine(self, accepted: Sequence[Storage]) -> None:
        """Refuse fields that the engine cannot send to other ranks."""
        if self._connection.channel is not None:
            for field, one in zip(self._route.fields, accepted, strict=True):
                field.check_engine(one, self._engine.refuse)

    def free(self) -> None:
        """Free buffers and requests. Collective. Waits for an exchange that is under way.

        Raises
        ------
        RuntimeError
            If an exchange is under way after ``MPI.Finalize()``.
        """
        with self._one_thread("free"):
            if self._state == "started":
                self._check("free", "started")
                self._wait()
            if self._state != "freed":
                self._state = "freed"
                self._engine.free()
                if self._transposed is not None:
                    self._transposed.free()
                if self._connection.channel is not None:
                    self._connection.channel.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.free()

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_ending():
            return  # Python has taken modules apart, and all memory goes with the process
        state = getattr(self, "_state", "freed")
        if state == "started":
            text = (
                f"{self!r} was dropped between start and wait; its messages stay until Python ends"
            )
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)
        elif state == "idle":
            self._engine.free()
            if self._transposed is not None:
                self._transposed.free()
            if self._connection.channel is not None:
                self._connection.channel.plans -= 1  # freeing a communicator is not for a finalizer

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "HaloExchange: expected to stay in its process, got a copy; make another plan"
        )

    def __repr__(self) -> str:
        names = ", ".join(field.name for field in self._route.fields)
        return (
            f"<dlfield.HaloExchange of ({names}), engine {self.engine}, {self.messages} messages, "
            f"{self.bytes_sent} bytes, {self._state}>"
        )

    @contextmanager
    def _one_thread(self, verb: str) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"{verb}: expected one thread at a time in a plan, got a second one; make a plan "
                "for each thread"
            )
        try:
            yield
        finally:
            self._lock.release()

    def _check(self, verb: str, expected: str) -> None:
        if self._state != expected:
            way_out = {
                "idle": "start it first",
                "started": "wait for it first",
                "freed": "make another plan",
            }[self._state]
            raise RuntimeError(
                f"{verb}: expected an exchange that is {expected}, got one that is {self._state}; "
                f"{way_out}"
            )
        if self._connection.channel is not None and mpi.is_finalized():
            raise RuntimeError(
                f"{verb}: needs MPI, which is finalized; exchange and wait before MPI.Finalize()"
            )

    def _start(self, verb: str, others: Sequence[Any]) -> None:
        self._check(verb, "idle")
        planned, others = self._route.fields, self._in_order(others)
        if others:
            self._check_count(others)
        given = others or self._own
        accepted = [field.accept(one) for field, one in zip(planned, given, strict=True)]
        if others:
            self._check_engine(accepted)
        self._engine.start(accepted)
        self._state = "started"

    def _in_order(self, others: Sequence[Any]) -> Sequence[Any]:
        """Return fields in the order of the plan, which may have been given under its names."""
        if len(others) != 1 or not isinstance(others[0], Mapping):
            return others
        if not self._named:
            raise ValueError(
                "fields: expected them one by one, as the plan was made without names, got a dict"
            )
        names = [field.name for field in self._route.fields]
        if set(others[0]) != set(names):
            raise ValueError(
                f"fields: expected the names of the plan, {names}, got {list(others[0])}"
            )
        return [others[0][name] for name in names]

    def _wait(self) -> None:
        self._state = "idle"
        self._engine.wait()

    def _place(self, part: tuple[slice, ...]) -> Place:
        pairs = list(zip(self._route.fields[0].dims, part, strict=True))
        origin = {dim: one.start for dim, one in pairs}
        return origin, {dim: one.stop - one.start for dim, one in pairs}
