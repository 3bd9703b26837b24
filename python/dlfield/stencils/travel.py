"""Bound stencils in other processes: what is pickled is what GT4Py compiles a stencil from.

A definition goes by the name of its module where that can be imported, and by its source otherwise,
as from a script or a function. The other process compiles it once.
"""

from __future__ import annotations

import hashlib
import io
import linecache
import pickle
import threading
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from dlfield._core import BoundStencil
from dlfield.stencils.binding import rebind
from dlfield.stencils.cartesian import internals as cartesian
from dlfield.stencils.compilation import compile_again
from dlfield.stencils.next import internals as gt4py_next

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["reduced"]

#: Modules that differ between processes.
_SCRIPTS = ("__main__", "__mp_main__")


@dataclass(frozen=True)
class _Named:
    """An object of a module by its name, or its definition; without a name the module itself."""

    module: str
    name: str = ""
    is_definition: bool = False

    def found(self) -> Any:
        module = import_module(self.module)
        return reduce(getattr, self.name.split("."), module) if self.name else module


@dataclass(frozen=True)
class _Source:
    """A function by its source, with the values of the names that it uses."""

    file: str
    text: str
    name: str
    qualname: str
    module: str
    attributes: dict[str, Any]
    values: dict[str, Any]
    is_gtscript: bool


@dataclass(frozen=True)
class _Parts:
    """A frozen object of gt4py.next, made of its fields."""

    kind: Any
    fields: dict[str, Any]


@dataclass(frozen=True)
class _Compiled:
    """A stencil of gt4py.cartesian: its definition, and the keywords of ``gtscript.stencil``."""

    definition: _Named | _Source
    version: str
    options: dict[str, Any]


def reduced(run: BoundStencil, options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return what a bound stencil is pickled as.

    Raises
    ------
    pickle.PicklingError
        For a stencil of GT4Py that cannot be compiled elsewhere. The text has the line to write.
    """
    stencil = run.stencil
    is_cartesian = cartesian.is_compiled(stencil)
    if not (is_cartesian or gt4py_next.is_stencil(stencil)):
        return rebind, (stencil, options)
    try:
        made = _compiled(stencil) if is_cartesian else _packed(stencil)
        cargo, key = pickle.dumps(made), _key(made)
    except Exception as reason:
        raise _refused(run, reason) from reason
    _stencils.setdefault(key, stencil)
    binding = None
    if not (options["offset_provider"] or any(options["partial"])):  # which may be large
        with suppress(Exception):  # the pickler will tell
            binding = _key(options)
    return _arrived, (key, cargo, options, binding)


def _key(made: Any) -> str:
    """Return one key for equal contents: which objects are one object is left out."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.fast = True
    pickler.dump(made)
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def _refused(run: BoundStencil, reason: Exception) -> pickle.PicklingError:
    name = run.declaration.name
    line = f"@functools.cache\ndef {name}_here():\n    return dlfield.bind({name}, ...)"
    return pickle.PicklingError(
        f"{name}: expected a definition that another process can compile, got {reason}; bind it in "
        f"a function of a module that the other process imports, and call that there:\n\n{line}"
    )


#: The stencils that left or arrived, by what they are compiled from.
_stencils: dict[str, Any] = {}
#: Those that are bound, besides by the keywords of `bind`: each warns of slow orders once.
_bound: dict[tuple[str, str], BoundStencil] = {}
_locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
_guard = threading.Lock()


def _arrived(key: str, cargo: bytes, options: dict[str, Any], binding: str | None) -> BoundStencil:
    """Bind a stencil that was pickled. It is compiled and bound once in a process."""
    with _guard:
        lock = _locks[key]
    with lock:
        if key not in _stencils:
            made = pickle.loads(cargo)
            _stencils[key] = _compile(made) if isinstance(made, _Compiled) else _unpacked(made)
        if binding is None:
            return rebind(_stencils[key], options)
        if (key, binding) not in _bound:
            _bound[key, binding] = rebind(_stencils[key], options)
        return _bound[key, binding]


def _compiled(stencil: Any) -> _Compiled:
    definition, version, options = cartesian.origin_of(stencil)
    origin = _reference(definition) or replace(_source(definition), is_gtscript=False)
    externals = {name: _packed(value) for name, value in options.pop("externals").items()}
    return _Compiled(origin, version, options | {"externals": externals})


def _compile(made: _Compiled) -> Any:
    origin = made.definition
    found = origin.found() if isinstance(origin, _Named) else _unpacked(origin)
    backend, version = made.options["backend"], made.version
    if cartesian.is_compiled(found, version) and found.backend == backend:
        return found
    options = dict(made.options)
    externals = {name: _unpacked(value) for name, value in options.pop("externals").items()}
    definition = _definition_of(found)
    with _alone(version):
        stencil = compile_again(definition, externals, options)
    if cartesian.identity(stencil) != version:
        name = definition.__name__
        expected = f"the stencil {version}, which was pickled"
        got = f"{cartesian.identity(stencil)}: names in '{name}' have other values here"
        way_out = "pass the values as externals=, or as arguments"
        raise pickle.UnpicklingError(f"{name}: expected {expected}, got {got}; {way_out}")
    return stencil


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Keep out other processes of this machine: GT4Py would write the same files."""
    import tempfile

    try:
        import fcntl
    except ImportError:  # not on this system
        yield
        return
    path = Path(tempfile.gettempdir()) / f"dlfield-{Path.home().name}-{name}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _packed(value: Any) -> Any:
    """Return something that can be pickled for a value that a definition uses."""
    if isinstance(value, ModuleType):
        return _Named(value.__name__)
    if isinstance(value, FunctionType):
        return _function(value)
    if gt4py_next.is_stencil(value) or gt4py_next.is_definition(value):
        named = _reference(value) if gt4py_next.is_stencil(value) else None
        fields = gt4py_next.parts_of(value)
        return named or _Parts(type(value), {name: _packed(part) for name, part in fields.items()})
    if (place := gt4py_next.place_of_backend(value)) is not None:
        return _Named(*place)
    pickle.dumps(value)  # or it raises
    return value


def _unpacked(made: Any) -> Any:
    if isinstance(made, _Named):
        return _definition_of(made.found()) if made.is_definition else made.found()
    if isinstance(made, _Parts):
        return made.kind(**{name: _unpacked(part) for name, part in made.fields.items()})
    return _made(made) if isinstance(made, _Source) else made


def _definition_of(found: Any) -> Any:
    """Return the function behind what stands in a module under the name of a definition."""
    if isinstance(found, BoundStencil):
        found = found.stencil
    found = getattr(getattr(found, "builder", None), "definition", found)  # a lazy one
    found = getattr(found, "definition_func", found)
    return gt4py_next.definition_of(found) if gt4py_next.is_stencil(found) else found


def _reference(value: Any) -> _Named | None:
    """Name a function, or a program of the same definition, that a module has."""
    definition = _definition_of(value)
    module, name = definition.__module__, definition.__qualname__
    if module in _SCRIPTS or "<locals>" in name:
        return None
    with suppress(AttributeError, ImportError):
        found = _Named(module, name).found()
        if found is value:
            return _Named(module, name)
        if value is definition and _definition_of(found) is definition:
            return _Named(module, name, is_definition=True)
    return None


def _function(function: Any) -> _Named | _Source:
    return _reference(function) or _source(function)


def _source(function: Any) -> _Source:
    """Take a function apart: its source, and what the names in it stand for."""
    import ast
    import inspect
    import textwrap

    text = textwrap.dedent(inspect.getsource(function))
    tree: Any = ast.parse(text).body[0]
    annotations = dict(function.__annotations__)
    texts = [ast.parse(one) for one in annotations.values() if isinstance(one, str)]
    used = [node for part in (*tree.body, *texts) for node in ast.walk(part)]
    names = {node.id for node in used if isinstance(node, ast.Name)}
    own = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
    scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    scope |= cartesian.fixed_values(function)  # others may have been put there since
    attributes = {
        "__annotations__": {name: _packed(one) for name, one in annotations.items()},
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__doc__": function.__doc__,
    }
    return _Source(
        file=f"<{function.__qualname__} {hashlib.sha256(text.encode()).hexdigest()[:12]}>",
        text=text,
        name=function.__name__,
        qualname=function.__qualname__,
        module=function.__module__,
        attributes=attributes,
        values={name: _packed(scope[name]) for name in sorted(names - own) if name in scope},
        is_gtscript=cartesian.is_function(function),
    )


def _made(source: _Source) -> Any:
    """Put a function together. GT4Py finds its source, with the decorators, which do not run."""
    import ast

    lines = source.text.splitlines(keepends=True)
    linecache.cache[source.file] = (len(source.text), None, lines, source.file)
    tree: Any = ast.parse(source.text)
    tree.body[0].decorator_list = []
    for argument in ast.walk(tree.body[0].args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    tree.body[0].returns = None
    tree.body[0].args.defaults = []
    tree.body[0].args.kw_defaults = [None] * len(tree.body[0].args.kwonlyargs)
    scope = {name: _unpacked(value) for name, value in source.values.items()}
    scope["__name__"] = source.module
    exec(compile(tree, source.file, "exec"), scope)
    function = scope[source.name]
    function.__code__ = function.__code__.replace(co_firstlineno=1)
    for name, value in source.attributes.items():
        setattr(function, name, value)
    function.__annotations__ = {
        name: _unpacked(one) for name, one in source.attributes["__annotations__"].items()
    }
    function.__qualname__, function.__module__ = source.qualname, source.module
    if not source.is_gtscript:
        return function
    from gt4py.cartesian import gtscript

    return gtscript.function(function)
