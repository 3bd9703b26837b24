"""GT4Py's own objects: the only file that knows ``gt4py.next`` beyond its public names.

Everything else speaks the types of `nodes`, `arguments` and `tables`. Where GT4Py 1.1 and 1.2 spell
a thing differently, the two spellings stand side by side here.
"""

from __future__ import annotations

import logging
import operator
import sys
from contextlib import suppress
from functools import cache, cached_property, partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import HOST_DEVICE_TYPE, DeviceUnavailable
from dlfield.stencils.compilation import say_if_slow
from dlfield.stencils.next.arguments import Collection, FieldKind, Kind, Signature, class_of
from dlfield.stencils.next.nodes import (
    ALL,
    RUN_TIME,
    Apply,
    Assign,
    Axis,
    Branch,
    Call,
    Function,
    Infinity,
    Literal,
    Move,
    Name,
    Node,
    Offset,
    Program,
    Shift,
    Statement,
    UnknownError,
)
from dlfield.stencils.next.tables import Connectivity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_log = logging.getLogger("dlfield")

#: The module that defines the classes of programs and operators.
CLASS_MODULE = "gt4py.next.ffront.decorator"


# Kinds of objects.


def is_operator(stencil: object) -> bool:
    """Return whether it is a field operator or a scan operator."""
    return _is_a(stencil, "decorator.FieldOperator")


def is_scan(stencil: Any) -> bool:
    """Return whether it is a scan operator, whose arguments have no dimensions."""
    is_defined = is_operator(stencil) and has_definition(stencil)
    return is_defined and hasattr(stencil.__gt_type__(), "axis")


def is_stencil(stencil: object) -> bool:
    """Return whether it is a program, a field operator or a scan operator."""
    return is_operator(stencil) or _is_a(stencil, "decorator.Program")


def classes_with_calls() -> list[type]:
    """Return each class of programs and operators that has a call. `CLASS_MODULE` is imported."""
    module = sys.modules[CLASS_MODULE]
    names = ("Program", "ProgramWithBoundArgs", "FieldOperator", "FieldOperatorFromFoast")
    classes = [getattr(module, name) for name in names if hasattr(module, name)]
    owners = dict.fromkeys(base for one in classes for base in one.__mro__)
    called = (one for one in owners if "__call__" in vars(one))
    return [one for one in called if one.__module__.startswith("gt4py.next.")]


def is_dimension(value: object) -> bool:
    """Return whether it is a ``gtx.Dimension``."""
    return _is_a(value, "common.Dimension")


def is_field(value: object) -> bool:
    """Return whether it is a field over an array."""
    return _is_a(value, "nd_array_field.NdArrayField")


def _is_a(value: object, name: str) -> bool:
    """Tell a class by its name and the last part of its module's, without importing GT4Py."""
    names = (f"{base.__module__}.{base.__name__}" for base in type(value).__mro__)
    return any(one.startswith("gt4py.next.") and one.endswith(f".{name}") for one in names)


def has_definition(stencil: Any) -> bool:
    """Return whether it is defined in Python, not made of GT4Py's own nodes."""
    return stencil.definition_stage is not None


def definition_of(stencil: Any) -> Any:
    """Return the function that was decorated."""
    return stencil.definition_stage.definition


def is_definition(value: object) -> bool:
    """Return whether it is what a program or operator holds its definition in."""
    return _is_a(value, "stages.DSLProgramDef") or _is_a(value, "stages.DSLFieldOperatorDef")


def parts_of(value: Any) -> dict[str, Any]:
    """Return the fields of a program, an operator or a definition, to make it of them again."""
    from dataclasses import fields

    own = (one.name for one in fields(value) if one.init and one.name != "sdfg_closure_cache")
    return {name: getattr(value, name) for name in own}


def place_of_backend(value: Any) -> tuple[str, str] | None:
    """Return the module of GT4Py and the name in it that a backend has."""
    import sys

    if not _is_a(value, "backend.Backend"):
        return None
    modules = [name for name in sys.modules if name.startswith("gt4py.next")]
    for module in sorted(modules):
        for name, known in list(vars(sys.modules[module]).items()):
            if known is value:
                return module, name
    return None


def backend_of(stencil: Any) -> str | None:
    """Return the name of the backend; None for an embedded program."""
    return None if stencil.backend is None else str(getattr(stencil.backend, "name", ""))


def on_gpu(stencil: Any) -> bool:
    """Return whether the backend computes on a GPU."""
    allocator = getattr(stencil.backend, "allocator", None)
    kind = getattr(allocator, "__gt_device_type__", HOST_DEVICE_TYPE)  # DLPack's and GT4Py's
    return bool(kind != HOST_DEVICE_TYPE)


def bound_arguments(stencil: Any) -> Mapping[str, Any]:
    """Return the arguments that ``with_bound_args`` has bound."""
    bound: Mapping[str, Any] = getattr(stencil, "bound_args", {})
    return bound


# Arguments.


def signature_of(stencil: Any, fields: Mapping[str, Any] | None) -> Signature:
    """Return the arguments of a program or operator; of a program, without those that are bound.

    `fields` are the dimensions of the arguments of a scan operator: ``gtx.Field[...]`` by name.
    """
    return _of_operator(stencil, fields) if is_operator(stencil) else _of_program(stencil)


def _of_program(program: Any) -> Signature:
    node, bound = program.past_stage.past_node, bound_arguments(program)
    reads: set[str] = set()
    writes: set[str] = set()
    for call in node.body:
        for keyword, value in call.kwargs.items():
            (writes if keyword == "out" else reads).update(_names_in(value))
        reads.update(*map(_names_in, call.args))
    kinds = {str(one.id): _kind(str(one.id), one.type) for one in node.params}
    return Signature(
        {name: kind for name, kind in kinds.items() if name not in bound}, reads, writes
    )


def _names_in(expression: Any) -> set[str]:
    """Names at any depth: within slices, tuples, domains and calls."""
    from gt4py.next.ffront.program_ast import Name as NameNode

    return {str(name.id) for name in expression.pre_walk_values().if_isinstance(NameNode)}


def _of_operator(stencil: Any, fields: Mapping[str, Any] | None) -> Signature:
    types = _types_of_operator(stencil, fields)
    kinds = {name: _kind(name, kind) for name, kind in types.items()}
    return Signature(kinds, set(kinds) - {"out"}, {"out"})


def arguments_of_scan(stencil: Any) -> list[str]:
    """Return the names of the arguments of a scan operator, `out` last."""
    definition = stencil.__gt_type__().definition
    return [*(*definition.pos_or_kw_args, *definition.kw_only_args)[1:], "out"]


def axis_of_scan(stencil: Any) -> Any:
    """Return the dimension along which a scan operator carries its value."""
    return stencil.__gt_type__().axis


def _types_of_operator(stencil: Any, fields: Mapping[str, Any] | None) -> dict[str, Any]:
    """GT4Py's types of the arguments of an operator, `out` last."""
    kind = stencil.__gt_type__()
    types = {**kind.definition.pos_or_kw_args, **kind.definition.kw_only_args}
    if hasattr(kind, "axis"):
        del types[next(iter(types))]  # what a scan carries from level to level
    types["out"] = kind.definition.returns
    return _with_dimensions(types, fields or {})


def _with_dimensions(every: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a scan operator, which are scalars, the dimensions of `fields`."""
    from gt4py.next.type_system import type_specifications as types
    from gt4py.next.type_system import type_translation

    def widened(kind: Any, dims: list[Any]) -> Any:
        if isinstance(kind, types.TupleType):
            return types.TupleType(types=[widened(one, dims) for one in kind])
        if isinstance(kind, types.NamedCollectionType):
            return types.NamedCollectionType(
                types=[widened(one, dims) for one in kind],
                keys=kind.keys,
                original_python_type=kind.original_python_type,
            )
        return types.FieldType(dims=dims, dtype=kind)

    for one, hint in fields.items():
        kind = type_translation.from_type_hint(hint)
        if not isinstance(kind, types.FieldType):
            raise TypeError(f"fields: expected gtx.Field[...] for '{one}', got {hint!r}")
        every[one] = widened(every[one], list(kind.dims))
    return every


def _kind(name: str, kind: Any) -> Kind:
    """Return one of our kinds for a type of GT4Py's."""
    from gt4py.next.type_system import type_specifications as types

    if isinstance(kind, types.FieldType):
        return FieldKind(tuple(kind.dims), _dtype(kind.dtype))
    if isinstance(kind, types.ScalarType):
        return _dtype(kind)
    if not isinstance(kind, types.TupleType | types.NamedCollectionType):
        expected = "expected a field, a scalar or a collection of them"
        raise TypeError(f"{name}: {expected}, got {kind}; declare each part as an argument")
    keys = tuple(getattr(kind, "keys", ()))
    labels = [f"{name}.{key}" for key in keys] or [f"{name}[{at}]" for at in range(len(kind))]
    parts = tuple(_kind(label, part) for label, part in zip(labels, kind, strict=True))
    return Collection(parts, keys, class_of(name, kind.original_python_type) if keys else tuple)


def _dtype(kind: Any) -> np.dtype[Any]:
    return np.dtype(str(kind.kind.name).lower())


def returned_by(operator: Any) -> str:
    """Return the type that an operator returns, for messages."""
    return str(operator.__gt_type__().definition.returns)


# Representation.


def representation(stencil: Any, fields: Mapping[str, Any] | None) -> Program:
    """Return a program, or the one that GT4Py makes of an operator with `out`, as our nodes.

    Raises
    ------
    UnknownError
        For a representation that cannot be had, or that has a node dlfield does not know.
    """
    try:
        from gt4py.next.iterator.transforms import inline_fundefs, inline_lambdas

        made = _program_of(stencil, fields) if is_operator(stencil) else stencil.gtir
        inlined = inline_fundefs.InlineFundefs().visit(made)
        pruned = inline_fundefs.prune_unreferenced_fundefs(inlined)
        # Operators that call others give names to values; one that is used once loses its name.
        program = inline_lambdas.InlineLambdas.apply(pruned, opcount_preserving=True)
        parameters = tuple(str(one.id) for one in program.params)
        return Program(str(program.id), parameters, tuple(map(_statement, program.body)))
    except UnknownError:
        raise
    except Exception as reason:
        raise UnknownError(f"{type(reason).__name__}: {reason}") from reason


def _program_of(operator: Any, fields: Mapping[str, Any] | None) -> Any:
    from gt4py.next.otf import arguments

    try:  # 1.2
        from gt4py.next.otf.workflow import ConcreteArtifact
    except ImportError:  # 1.1
        from gt4py.next.otf.toolchain import ConcreteArtifact
    steps, empty = operator._frontend_transforms, arguments.CompileTimeArgs.empty()
    kinds = tuple(_types_of_operator(operator, fields).values())
    given = arguments.CompileTimeArgs(kinds, {}, {}, None, {})
    program = steps.field_view_op_to_prog(ConcreteArtifact(operator.foast_stage, given))
    return steps.past_to_itir(ConcreteArtifact(program.data, empty)).data


def _statement(node: Any) -> Statement:
    kind = type(node).__name__
    if kind == "IfStmt":
        then, otherwise = (
            tuple(map(_statement, one)) for one in (node.true_branch, node.false_branch)
        )
        return Branch(_node(node.cond), then, otherwise)
    if kind != "SetAt":
        raise UnknownError(f"a statement {kind}")
    line = getattr(node.location or node.expr.location, "line", None)
    return Assign(_node(node.target), _node(node.expr), _node(node.domain), line)


def _node(node: Any) -> Node:
    made = _NODES.get(type(node).__name__)
    if made is None:
        raise UnknownError(f"an expression {type(node).__name__}")
    return made(node)


def _call(node: Any) -> Node:
    arguments = tuple(map(_node, node.args))
    if getattr(getattr(node.fun, "fun", None), "id", None) != "as_fieldop":
        return Call(_node(node.fun), arguments)
    function = node.fun.args[0]
    scans = getattr(getattr(function, "fun", None), "id", None) == "scan"
    shifts, problem = _shifts(function, len(arguments))
    return Apply(_node(function), arguments, scans, shifts, problem)


def _shifts(function: Any, count: int) -> tuple[tuple[tuple[tuple[Shift, ...], ...], ...], str]:
    from gt4py.next.iterator.transforms import trace_shifts

    try:
        found = trace_shifts.trace_stencil(function, num_args=count)
    except Exception as reason:  # it may run nevertheless
        return (), f"{type(reason).__name__}: {reason}"
    return tuple(tuple(map(_steps, rows)) for rows in found), ""


def _steps(row: Sequence[Any]) -> tuple[Shift, ...]:
    pairs = zip(row[::2], row[1::2], strict=True)
    return tuple(Shift(_along(offset), _by(by)) for offset, by in pairs)


def _along(offset: Any) -> str | Move:
    moves = type(offset).__name__ == "CartesianOffset"
    return Move(str(offset.domain.value), str(offset.codomain.value)) if moves else offset.value


def _by(by: Any) -> int | str:
    named = {"ALL_NEIGHBORS": ALL, "VALUE": RUN_TIME}.get(str(by))
    return by.value if named is None else named


_NODES: dict[str, Callable[[Any], Node]] = {
    "SymRef": lambda node: Name(str(node.id)),
    "Literal": lambda node: Literal(str(node.value), str(node.type)),
    "InfinityLiteral": lambda node: Infinity(node.name == "POSITIVE"),
    "NoneLiteral": lambda _: Literal("None", "None"),  # 1.1
    "AxisLiteral": lambda node: Axis(str(node.value)),
    "OffsetLiteral": lambda node: Offset(node.value),
    "CartesianOffset": lambda node: Move(str(node.domain.value), str(node.codomain.value)),
    "Lambda": lambda node: Function(tuple(str(one.id) for one in node.params), _node(node.expr)),
    "FunCall": _call,
}


@cache
def knows_unequal() -> bool:
    """Return whether ``!=`` of an axis is true on both sides, as in 1.2; in 1.1 it is nowhere."""
    try:
        from gt4py.next import DimensionKind, GridType
        from gt4py.next.iterator import ir
        from gt4py.next.iterator.ir_utils import ir_makers
        from gt4py.next.iterator.transforms.infer_domain_ops import InferDomainOps

        axis = ir.AxisLiteral(value="K", kind=DimensionKind.VERTICAL)
        condition = ir_makers.call("not_eq")(axis, ir_makers.literal("0", "int32"))
        infer = InferDomainOps(grid_type=GridType.CARTESIAN)
        return str(infer.visit(condition, recurse=True).fun.id) == "or_"
    except Exception:  # both values are needed everywhere, to be safe
        return False


def workspace_of(stencil: Any) -> Mapping[Any, Any]:
    """Return the memory of the caller in which a backend keeps values in between, by device."""
    workspace: Mapping[Any, Any] = getattr(stencil.backend, "external_workspace", None) or {}
    return workspace


# Calls.


def compiled_in(stencil: Any) -> tuple[frozenset[str], bool] | None:
    """Return the static scalars, and whether the ends of fields are static.

    `stencil` may have been compiled ahead for other parameters than its options say. None where
    nothing is compiled in: an embedded program computes as it is called, and a backend may be told
    to take all points of the mesh.
    """
    translation = getattr(getattr(stencil.backend, "executor", None), "translation", None)
    translation = getattr(translation, "step", translation)  # of one that is cached
    takes_all = getattr(translation, "use_max_domain_range_on_unstructured_shift", None)
    if stencil.backend is None or takes_all:
        return None
    if (pool := vars(stencil).get("_compiled_programs")) is not None:
        mapping = {one.__name__: names for one, names in pool.argument_descriptor_mapping.items()}
        return frozenset(mapping.get("StaticArg", ())), "FieldDomainDescriptor" in mapping
    options = stencil.compilation_options
    return frozenset(options.static_params or ()), bool(options.static_domains)


def compiled_call(
    stencil: Any,
) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]] | None:
    """Return what calls a compiled program without its check of types; None for any other.

    At each call GT4Py derives the type of every argument, which takes most of its time. Here they
    have the declared types. The first function returns the compiled variants of the program, the
    second the context of a call, so that whatever is hooked into GT4Py's own call is called, too;
    the keywords go to both.
    """
    own = getattr(type(stencil).__call__, "__qualname__", "")
    if stencil.backend is None or own != "Program.__call__":
        return None
    from gt4py.next.ffront.decorator import program_call_context

    context = partial(program_call_context, program=stencil, args=())
    options = {"enable_jit": stencil.compilation_options.enable_jit}
    return operator.attrgetter("_compiled_programs"), context, options


def field_class(*, gpu: bool) -> Any:
    """Return the class of fields for arrays of the host or of a GPU: ``(domain, array)``."""
    from gt4py.next.embedded import nd_array_field

    if not gpu:
        return nd_array_field.NumPyArrayField
    if not hasattr(nd_array_field, "CuPyArrayField"):
        raise DeviceUnavailable("declare: needs CuPy for a GPU backend; install cupy")
    return nd_array_field.CuPyArrayField


def origin_cache(kind: Any) -> str | None:
    """Return the attribute in which a class of fields caches the origin; None if there is none."""
    name = "__gt_origin__"
    return name if isinstance(getattr(kind, name, None), cached_property) else None


def as_array(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts an array for a class of fields. It never copies."""
    convert: Callable[[Any], Any] = kind.array_ns.asarray
    return convert


def device_type(*, gpu: bool) -> Any:
    """Return the number of a kind of device."""
    from gt4py._core.definitions import DeviceType

    return DeviceType.CUDA if gpu else DeviceType.CPU


def tensor_buffer(*, gpu: bool, number: int, **described: Any) -> Any:
    """Return what an allocator returns, for memory of the host or of the GPU of a number."""
    from gt4py._core.definitions import Device
    from gt4py.storage.allocators import TensorBuffer

    return TensorBuffer(device=Device(device_type(gpu=gpu), number), **described)


def scalar_types() -> list[str]:
    """Return NumPy's names of the types of elements."""
    from gt4py.next.type_system.type_specifications import ScalarKind

    return [kind.lower() for kind in ScalarKind.__members__ if kind != "STRING"]


@cache
def log_compilations() -> None:
    """Have GT4Py log what it compiles, which is at the first call of a program."""
    from gt4py.next.otf.compiled_program import compile_variant_hook

    @wraps(compile_variant_hook.definition)  # GT4Py warns of other annotations than its own
    def say(
        program_pool: Any,
        key: Any,
        backend: Any,
        argument_descriptors: Any,
        offset_provider: Any,
    ) -> None:
        name = program_pool.definition_stage.definition.__name__
        _log.info("compiling %s for %s", name, backend.name)
        say_if_slow(name, backend.name, lambda: _is_compiling(program_pool, key))

    compile_variant_hook.register(say)


def _is_compiling(pool: Any, key: Any) -> bool:
    """Return whether a variant is neither compiled nor has failed in another process."""
    job = getattr(pool, "_compilation_jobs", {}).get(key)
    return key not in pool.compiled_programs and not (job is not None and job.done())


def unit_stride(stencil: Any, dims: Sequence[Any], *, is_part: bool) -> str | None:
    """Return the dimension along which compiled code takes a stride of 1 for granted.

    It is the horizontal one of a field, where the backend was told so. dace asks nothing of the
    parts of collections.
    """
    executor = getattr(stencil.backend, "executor", None)
    steps = ("bindings",) if is_part else ("translation", "bindings")  # of dace, of gtfn
    found = (getattr(executor, name, None) for name in steps)
    known = (getattr(step, "step", step) for step in found)  # of one that is cached
    if not any(getattr(one, "unstructured_horizontal_has_unit_stride", False) for one in known):
        return None
    return next((str(dim.value) for dim in dims if str(dim.kind) == "horizontal"), None)


def connectivity(found: Any) -> Connectivity | str | None:
    """Return a connectivity as we know it, or the name of a dimension; None for anything else."""
    if hasattr(found, "kind") and not hasattr(found, "ndarray"):
        return str(found.value)
    if not hasattr(found, "__gt_type__"):
        return None
    kind, array = found.__gt_type__(), None
    with suppress(NotImplementedError):  # a shift along an axis has none
        array = getattr(found, "ndarray", None)
    if array is None:
        return str(kind.codomain.value)
    if len(kind.domain) != 2:
        return None
    rows = found.domain.ranges[0]
    names = [str(dim.value) for dim in kind.domain]
    return Connectivity(
        found,
        array,
        names[0],
        names[1],
        str(kind.codomain.value),
        found.skip_value,
        (int(rows.start), int(rows.stop)),
    )
