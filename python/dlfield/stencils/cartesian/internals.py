"""GT4Py's internals: the only file of cartesian that knows what GT4Py does not publish.

Everything else speaks the nodes of `nodes`. A change in GT4Py ends here: the spellings of two
versions stand side by side in this file, and nowhere else. `trial` tells whether it still fits.
Nothing imports GT4Py unless a stencil of GT4Py's own is read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlfield.stencils.cartesian import nodes
from dlfield.stencils.cartesian.nodes import NoDefinition, UnknownNode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CLASS_MODULE",
    "compiled",
    "finds_compiler_flags",
    "identity",
    "layout_of",
    "representation_of",
    "representation_of_definition",
    "stencil_class",
]

#: Attributes of the known nodes, other than those of `_COMMON`.
_KNOWN = {
    "Stencil": "name params vertical_loops declarations",
    **dict.fromkeys(("FieldDecl", "Temporary"), "name dimensions data_dims"),
    "VerticalLoop": "loop_order sections caches",
    "VerticalLoopSection": "interval horizontal_executions",
    "HorizontalExecution": "body declarations",
    **dict.fromkeys(("Interval", "HorizontalInterval"), "start end"),
    **dict.fromkeys(("AxisBound", "RuntimeAxisBound"), "level offset"),
    "AssignStmt": "left right",
    **dict.fromkeys(("MaskStmt", "HorizontalRestriction"), "mask body"),
    "HorizontalMask": "i j",
    "While": "cond body",
    "Literal": "value",
    **dict.fromkeys(("ScalarDecl", "ScalarAccess", "IteratorAccess"), "name"),
    "FieldAccess": "name offset data_index",
    "CartesianOffset": "i j k",
    **dict.fromkeys(("VariableKOffset", "AbsoluteKIndex"), "k"),
    "UnaryOp": "op expr",
    "BinaryOp": "op left right",
    "TernaryOp": "cond true_expr false_expr",
    "Cast": "expr",
    "NativeFuncCall": "func args",
}
#: Conversions that a definition asks for.
_CASTS = ("int32", "int64", "float32", "float64")
_COMMON = {"loc", "kind", "dtype"}

#: The module that defines the class of stencils.
CLASS_MODULE = "gt4py.cartesian.stencil_object"


def is_lazy(stencil: Any) -> bool:
    """Return whether it is a stencil that GT4Py compiles when it is first used."""
    module = sys.modules.get("gt4py.cartesian.lazy_stencil")
    return module is not None and isinstance(stencil, module.LazyStencil)


def compiled(stencil: Any, around: Callable[[str, str], Any]) -> Any:
    """Return the stencil of GT4Py behind a lazy one; any other object as it is.

    A lazy stencil is compiled inside of ``around(name, backend)`` unless it was before.
    """
    if not is_lazy(stencil):
        return stencil
    if "implementation" not in vars(stencil):
        with around(stencil.builder.options.name, stencil.backend.name):
            return stencil.implementation
    return stencil.implementation


def stencil_class() -> type:
    """Return the class of stencils. `CLASS_MODULE` has been imported."""
    found: type = sys.modules[CLASS_MODULE].StencilObject
    return found


def finds_compiler_flags() -> bool | None:
    """Return whether GT4Py finds the flags that setuptools keeps, before it compiles anything.

    None for a GT4Py that does not look for them there.
    """
    from gt4py.cartesian.backend import pyext_builder as builder

    if "_config_vars" not in builder.build_pybind_ext.__code__.co_names:
        return None
    return builder.distutils.sysconfig._config_vars is not None


def layout_of(name: str) -> tuple[Any, Any, bool] | None:
    """Return layout map, alignment and whether it is a GPU's, as GT4Py's registry has them now.

    None if GT4Py is not imported, or has no layout of that name.
    """
    module = sys.modules.get("gt4py.storage.cartesian.layout_registry")
    registry = getattr(module, "REGISTRY", None)
    if not isinstance(registry, Mapping) or name not in registry:
        return None
    info = registry[name]
    return info["layout_map"], info["alignment"], info["device"] == "gpu"


def representation_of(stencil: Any) -> nodes.Stencil:
    """Read the definition that a stencil of GT4Py was compiled from, in milliseconds.

    Raises UnknownNode; and NoDefinition if the definition or its source is missing, or if it was
    compiled again with other externals. GT4Py notes those at the function, where the next
    compilation overwrites them; the fingerprint tells.
    """
    return _lowered(_builder_of(stencil))


def _builder_of(stencil: Any) -> Any:
    import inspect  # takes milliseconds to import

    from gt4py.cartesian.definitions import BuildOptions
    from gt4py.cartesian.stencil_builder import StencilBuilder

    definition: Any = getattr(stencil, "definition_func", None)
    try:
        inspect.getsource(definition)
    except (OSError, TypeError) as error:
        raise NoDefinition(f"{definition}: no source") from error
    noted = {**stencil.options, "backend_opts": _with_passes(stencil.options["backend_opts"])}
    options = BuildOptions(impl_opts=noted.pop("_impl_opts"), **noted)
    builder = StencilBuilder(definition, backend=stencil.backend, options=options)
    builder._build_data["prepared_def"] = definition
    if builder.stencil_id.version != stencil._gt_id_:
        raise NoDefinition(f"{noted['name']}: compiled again with other externals")
    builder._build_data["externals"] = dict(definition._gtscript_["externals"])  # GT4Py adds some
    builder._build_data["dtypes"] = _types_of_temporaries(definition)
    return builder


def _with_passes(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of a backend with the passes of which GT4Py has noted the names."""
    from gt4py.cartesian.gtc.passes.oir_pipeline import DefaultPipeline

    names = options.get("oir_pipeline")
    if not isinstance(names, list):
        return options
    skipped = [one for one in DefaultPipeline.all_steps() if one.__name__ not in names]
    return {**options, "oir_pipeline": DefaultPipeline(skip=skipped)}


def _types_of_temporaries(definition: Any) -> dict[str, Any]:
    """Return the fields that temporaries may be annotated with, as they are named where it stands.

    GT4Py takes them as `dtypes` and does not keep those.
    """
    from gt4py.cartesian.gtscript import _FieldDescriptor

    names = definition.__globals__.items()
    return {name: one for name, one in names if isinstance(one, _FieldDescriptor)}


def is_compiled(stencil: Any, version: str | None = None) -> bool:
    """Return whether it is a stencil that GT4Py has compiled, of a certain definition if asked."""
    modules = [base.__module__ for base in type(stencil).__mro__]
    known = "gt4py.cartesian.stencil_object" in modules
    return known and version in (None, getattr(stencil, "_gt_id_", None))


def identity(stencil: Any) -> str | None:
    """Return GT4Py's text for what a stencil computes, which is the same in each process."""
    own = getattr(stencil, "_gt_id_", None)
    return own if isinstance(own, str) else None


def origin_of(stencil: Any) -> tuple[Callable[..., Any], str, dict[str, Any]]:
    """Return what a stencil was compiled from: definition, version, options for `compile_again`.

    Raises NoDefinition as `representation_of`.
    """
    _builder_of(stencil)
    definition = stencil.definition_func
    noted = definition._gtscript_
    own = noted["externals"]
    externals = {name: own[name] for name in own if name not in noted["nonlocals"]}
    dtypes = {}
    arguments = zip(noted["api_signature"], noted["api_annotations"], strict=True)
    for argument, resolved in arguments:
        declared = definition.__annotations__.get(argument.name)
        key = getattr(declared, "dtype", declared)
        if isinstance(key, str):
            dtypes[key] = resolved.dtype if hasattr(declared, "axes") else resolved
    if any(_dtype_name(one) not in _DEFAULT_TYPES for one in dtypes.values()):
        # Types of literals and temporaries may have been given, too, which GT4Py forgets.
        raise NoDefinition("one that was compiled with dtypes=, which GT4Py does not keep")
    known = {"dtypes": dtypes, "externals": externals}
    return definition, str(stencil._gt_id_), options_of(stencil) | known


def fixed_values(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the values that GT4Py has taken for names of a definition's surroundings."""
    noted = getattr(function, "_gtscript_", {"nonlocals": {}})["nonlocals"]
    return {name: value for name, value in noted.items() if "." not in name}


def options_of(stencil: Any) -> dict[str, Any]:
    """Return backend, name and options that a stencil was compiled with, for `compile_again`."""
    options = dict(stencil.options)
    implementing, backend_options = options.pop("_impl_opts"), options.pop("backend_opts")
    name = f"{options.pop('module')}.{options.pop('name')}"
    known = {"backend": stencil.backend, "name": name, "rebuild": False}
    return {**options, **backend_options, **implementing, **known}


#: What GT4Py takes for float, int and bool unless `dtypes` says otherwise.
_DEFAULT_TYPES = ("float64", "int64", "bool")


def _dtype_name(given: Any) -> str:
    import numpy as np

    return str(np.dtype(given))


def keeps_loops(stencil: Any) -> bool:
    """Return whether a stencil was compiled with passes of one's own that join no loops."""
    names = stencil.options.get("backend_opts", {}).get("oir_pipeline")
    return isinstance(names, list) and "AdjacentLoopMerging" not in names


def is_function(value: Any) -> bool:
    """Return whether it is a function or a definition of GTScript."""
    return hasattr(value, "_gtscript_")


def representation_of_definition(definition: Callable[..., Any]) -> nodes.Stencil:
    """Read a definition that is not compiled."""
    from gt4py.cartesian.stencil_builder import StencilBuilder

    return _lowered(StencilBuilder(definition, backend="numpy"))


def stages_of(stencil: Any) -> nodes.Stencil:
    """Read a stencil behind GT4Py's passes: what they merge is one block, a stage of GridTools."""
    builder = _builder_of(stencil)
    return _lowered(builder, _passes(builder).run)


def merged(stencil: Any) -> nodes.Stencil:
    """Read a stencil behind the passes before "OnTheFlyMerging", which take a tenth of the time.

    Passes of another class than GT4Py's tell no order: such a stencil is read in front of them all.
    """
    from gt4py.cartesian.gtc.passes.oir_pipeline import DefaultPipeline

    builder = _builder_of(stencil)
    passes, every = _passes(builder), DefaultPipeline.all_steps()
    if type(passes) is not DefaultPipeline:
        return _lowered(builder)
    first = [one.__name__ for one in every].index("OnTheFlyMerging")
    return _lowered(builder, DefaultPipeline(skip=[*passes.skip, *every[first:]]).run)


def _passes(builder: Any) -> Any:
    from gt4py.cartesian.gtc.passes.oir_pipeline import DefaultPipeline

    return builder.options.backend_opts.get("oir_pipeline", DefaultPipeline())


def _lowered(builder: Any, passes: Callable[[Any], Any] = lambda lowered: lowered) -> nodes.Stencil:
    from gt4py.cartesian.gtc.gtir_to_oir import GTIRToOIR
    from gt4py.cartesian.gtc.passes.oir_optimizations.utils import compute_horizontal_block_extents

    lowered = passes(GTIRToOIR().visit(builder.gtir))
    return _Reader(lowered, compute_horizontal_block_extents(lowered)).stencil(lowered)


def _kind(node: Any) -> str:
    """Return the name of a node's class, whose attributes are all known."""
    kind = type(node).__name__
    known = {*_KNOWN.get(kind, "").split(), *_COMMON}
    if kind not in _KNOWN:
        raise UnknownNode(f"node {kind}")
    if unknown := {field.name for field in node.__datamodel_fields__.values()} - known:
        raise UnknownNode(f"node {kind} with {', '.join(sorted(unknown))}")
    return kind


def _line(*having: Any) -> int | None:
    """Return the first line that one of the nodes has."""
    return next((int(node.loc.line) for node in having if node.loc is not None), None)


class _Reader:
    """Makes our nodes of GT4Py's."""

    def __init__(self, stencil: Any, extents: Any) -> None:
        self.extents = extents
        # GT4Py names the field of a condition by an address.
        masks = (one.name for one in stencil.declarations if re.fullmatch(r"mask_\d+", one.name))
        self.renamed = {str(name): f"mask#{at}" for at, name in enumerate(masks)}

    def name(self, node: Any) -> str:
        return self.renamed.get(str(node.name), str(node.name))

    def scalar(self, node: Any) -> nodes.Scalar:
        return nodes.Scalar(self.name(node))

    def stencil(self, node: Any) -> nodes.Stencil:
        _kind(node)
        parameters = [(_kind(one), one) for one in node.params]
        return nodes.Stencil(
            name=str(node.name),
            fields=tuple(self.declared(one) for kind, one in parameters if kind == "FieldDecl"),
            scalars=tuple(self.scalar(one) for kind, one in parameters if kind == "ScalarDecl"),
            temporaries=tuple(self.declared(one) for one in node.declarations),
            loops=tuple(self.loop(one) for one in node.vertical_loops),
        )

    def declared(self, node: Any) -> nodes.FieldDeclaration:
        _kind(node)
        axes = "".join(axis for axis, has in zip("IJK", node.dimensions, strict=True) if has)
        data_shape = tuple(map(int, node.data_dims))
        return nodes.FieldDeclaration(self.name(node), node.dtype.name.lower(), axes, data_shape)

    def loop(self, node: Any) -> nodes.VerticalLoop:
        _kind(node)
        return nodes.VerticalLoop(node.loop_order.value, tuple(map(self.section, node.sections)))

    def section(self, node: Any) -> nodes.Section:
        _kind(node)
        blocks = tuple(map(self.block, node.horizontal_executions))
        return nodes.Section(self.interval(node.interval), blocks)

    def block(self, node: Any) -> nodes.Block:
        _kind(node)
        (i_from, i_to), (j_from, j_to) = self.extents[id(node)]
        extents = (int(i_from), int(i_to)), (int(j_from), int(j_to))
        return nodes.Block(self.body(node), extents)

    def interval(self, node: Any) -> nodes.Interval:
        _kind(node)
        return nodes.Interval(self.bound(node.start), self.bound(node.end))

    def bound(self, node: Any) -> nodes.Bound | None:
        if node is None:
            return None
        at_run_time = _kind(node) == "RuntimeAxisBound"
        offset = self.expression(node.offset) if at_run_time else int(node.offset)
        return nodes.Bound({"START": False, "END": True}[node.level.name], offset)

    def body(self, node: Any) -> tuple[nodes.Statement, ...]:
        return tuple(map(self.statement, node.body))

    def statement(self, node: Any) -> nodes.Statement:
        match _kind(node):
            case "AssignStmt":
                target = self.expression(node.left)
                if isinstance(target, nodes.Access | nodes.Scalar):
                    line = _line(node, node.left)
                    return nodes.Assign(target, self.expression(node.right), line)
            case "MaskStmt":
                condition = self.expression(node.mask)
                return nodes.Branch(condition, self.body(node), _line(node))
            case "While":
                return nodes.Loop(self.expression(node.cond), self.body(node), _line(node))
            case "HorizontalRestriction":
                _kind(node.mask)
                bounds = self.interval(node.mask.i), self.interval(node.mask.j)
                return nodes.Region(bounds, self.body(node), _line(node, node.mask))
        raise UnknownNode(f"node {type(node).__name__} as a statement")

    def expression(self, node: Any) -> nodes.Expression:
        match _kind(node):
            case "FieldAccess":
                return self.access(node)
            case "ScalarAccess":
                return self.scalar(node)
            case "IteratorAccess":
                return nodes.Index(str(node.name.value))
            case "Literal":
                return nodes.Constant(str(node.value), node.dtype.name.lower())
            case "Cast":
                return nodes.Cast(node.dtype.name.lower(), self.expression(node.expr))
            case "UnaryOp":
                return nodes.Operation(str(node.op.value), self.all(node.expr))
            case "BinaryOp":
                return nodes.Operation(str(node.op.value), self.all(node.left, node.right))
            case "NativeFuncCall" if node.func.value in _CASTS:
                return nodes.Cast(str(node.func.value), self.expression(node.args[0]))
            case "NativeFuncCall":
                return nodes.Operation(str(node.func.value), self.all(*node.args))
            case "TernaryOp":
                operands = self.all(node.cond, node.true_expr, node.false_expr)
                return nodes.Operation("if", operands)
        raise UnknownNode(f"node {type(node).__name__} in an expression")

    def all(self, *given: Any) -> tuple[nodes.Expression, ...]:
        return tuple(map(self.expression, given))

    def access(self, node: Any) -> nodes.Access:
        name, data_index = self.name(node), self.all(*node.data_index)
        match _kind(node.offset):
            case "CartesianOffset":
                offset = int(node.offset.i), int(node.offset.j), int(node.offset.k)
                return nodes.Access(name, offset, data_index)
            case "VariableKOffset":
                level = self.expression(node.offset.k)
                return nodes.Access(name, (0, 0, None), data_index, level)
            case "AbsoluteKIndex":
                level = node.offset.k
                number = isinstance(level, int)
                found = nodes.Constant(str(level), "int") if number else self.expression(level)
                return nodes.Access(name, (0, 0, None), data_index, found, absolute=True)
        raise UnknownNode(f"node {type(node.offset).__name__} as an offset")
