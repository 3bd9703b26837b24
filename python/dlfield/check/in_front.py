"""Wraps GT4Py's own functions, so that no call is missed.

Those of gt4py.cartesian stand before ``run``, which ``__call__``, frozen stencils and NDSL call,
with origins, domain and arrays as GT4Py has resolved them. Calls that GT4Py refuses do not come
that far: they are asked about as they were made. Those of gt4py.next stand before ``__call__``.
GT4Py is not imported here: it reads the environment when the program imports it.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextlib import suppress
from importlib.abc import Loader
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from dlfield._core import is_bound_call
from dlfield.stencils.cartesian import internals as cartesian
from dlfield.stencils.next import internals as gt4py_next

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Ask = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
    Call = tuple[tuple[Any, ...], dict[str, Any]]

__all__ = ["InFront"]


class InFront:
    """Asks before every outermost call of GT4Py, from `install` to `remove`.

    A call inside another one is part of that one, and those of a bound stencil were checked. It is
    a finder on `sys.meta_path`, too, which notices that GT4Py is imported.

    Parameters
    ----------
    ask
        Called with the stencil, and arguments as a bound stencil takes them. What it raises ends
        the call before GT4Py makes it.
    compiled
        Called with each stencil of gt4py.cartesian when it has been compiled. GT4Py forgets its
        externals when the definition is compiled again with others.
    """

    def __init__(self, ask: Ask, compiled: Callable[[Any], object]) -> None:
        self._ask, self._compiled = ask, compiled
        self._thread = _Thread()
        self._replaced: list[tuple[type, str, Any, Any]] = []
        self._modules = {
            cartesian.CLASS_MODULE: self._open_cartesian,
            gt4py_next.CLASS_MODULE: self._open_next,
        }

    def install(self) -> None:
        """Stand in front of what is imported, and of what will be."""
        sys.meta_path.insert(0, self)
        for name, open_module in self._modules.items():
            if name in sys.modules:
                open_module()

    def remove(self) -> None:
        """Put GT4Py's functions back, unless another one stands before ours by now."""
        with suppress(ValueError):  # it was removed before
            sys.meta_path.remove(self)
        for owner, name, own, ours in reversed(self._replaced):
            if vars(owner).get(name) is not ours:
                continue
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._replaced.clear()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Find one of GT4Py's modules as Python does, and notice the end of its import."""
        if name not in self._modules:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Noticing(spec.loader, self._modules[name])
        return spec

    def _open_cartesian(self) -> None:
        """Replace the functions of every stencil that is compiled, and of each that will be."""
        base: Any = cartesian.stencil_class()
        own_new = base.__new__

        def new(owner: Any, /, *args: Any, **keywords: Any) -> Any:
            stencil = own_new(owner, *args, **keywords)
            self._compiled(stencil)
            return stencil

        def init_subclass(owner: Any, /, **keywords: Any) -> None:
            super(base, owner).__init_subclass__(**keywords)
            self._open_stencil(owner)

        self._replace(base, "__new__", staticmethod(new))
        self._replace(base, "__init_subclass__", classmethod(init_subclass))
        for owner in _subclasses(base):
            self._open_stencil(owner)

    def _open_stencil(self, owner: type) -> None:
        self._stand_before(owner, "run", _of_run)
        self._stand_behind(owner, "__call__", _of_call)

    def _open_next(self) -> None:
        for owner in gt4py_next.classes_with_calls():
            self._stand_before(owner, "__call__", _of_call)

    def _stand_before(
        self, owner: type, name: str, taken_as: Callable[[tuple[Any, ...], dict[str, Any]], Call]
    ) -> None:
        """Ask before each call of a function."""
        own, thread = vars(owner).get(name), self._thread
        if own is None:
            return  # inherited from one that has it

        @functools.wraps(own)
        def in_front(stencil: Any, /, *args: Any, **keywords: Any) -> Any:
            if thread.within:
                return own(stencil, *args, **keywords)
            thread.within = thread.asked = True
            try:
                if not is_bound_call(stencil):
                    self._ask(stencil, *taken_as(args, keywords))
                return own(stencil, *args, **keywords)
            finally:
                thread.within = False

        self._replace(owner, name, in_front)

    def _stand_behind(
        self, owner: type, name: str, taken_as: Callable[[tuple[Any, ...], dict[str, Any]], Call]
    ) -> None:
        """Ask about each call of a function that failed before anything else was asked."""
        own, thread = vars(owner).get(name), self._thread
        if own is None:
            return

        @functools.wraps(own)
        def behind(stencil: Any, /, *args: Any, **keywords: Any) -> Any:
            if thread.within:
                return own(stencil, *args, **keywords)
            thread.asked = False
            try:
                return own(stencil, *args, **keywords)
            except Exception:
                if not (thread.asked or is_bound_call(stencil)):
                    self._ask(stencil, *taken_as(args, keywords))
                raise

        self._replace(owner, name, behind)

    def _replace(self, owner: type, name: str, ours: Any) -> None:
        self._replaced.append((owner, name, vars(owner).get(name), ours))
        setattr(owner, name, ours)


class _Thread(threading.local):
    """Whether a thread is within a call, and whether `ask` knows of its last one."""

    within = False
    asked = False


class _Noticing(Loader):
    """The loader of a module, which leaves it to the own one and notices the end."""

    def __init__(self, own: Loader, end: Callable[[], None]) -> None:
        self._own, self._end = own, end

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create it as the own loader does."""
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute it, under its own loader."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        module.__loader__ = self._own
        self._own.exec_module(module)
        self._end()


def _of_run(args: tuple[Any, ...], keywords: dict[str, Any]) -> Call:
    """Return the arguments of ``run`` as a bound stencil takes them."""
    given = dict(zip(("_domain_", "_origin_", "exec_info"), args, strict=False)) | keywords
    given.pop("exec_info", None)
    return (), given | {name: given.pop(f"_{name}_", None) for name in ("origin", "domain")}


def _of_call(args: tuple[Any, ...], keywords: dict[str, Any]) -> Call:
    """Return the arguments of ``__call__`` as a bound stencil takes them."""
    unplanned = ("enable_jit", "exec_info")
    return args, {name: value for name, value in keywords.items() if name not in unplanned}


def _subclasses(base: type) -> Iterator[type]:
    owner: type
    for owner in type.__subclasses__(base):
        yield owner
        yield from _subclasses(owner)
