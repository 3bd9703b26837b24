"""The Fortran module of a library: interfaces of its functions in C, and a wrapper for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.fortran.kinds import FIELDS, Kind
from dlfield.fortran.parameters import Declared, FieldParameter, ScalarParameter
from dlfield.fortran.procedures import (
    ALLOTTED,
    C_TEXT,
    COMMON,
    DESCRIPTION,
    FINISH,
    MESSAGE,
    colons,
    deallocate,
    describe,
    named,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["module"]


def module(library: str, functions: Sequence[Declared]) -> str:
    """Return the text of the module."""
    kinds = _arrays(functions)
    persistent = _arrays(functions, persistent=True)
    deferred = {form: _deferred(functions, form) for form in ALLOTTED}
    public = [one.name for one in functions] + ["dlfield_forget"]
    freeing = ["dlfield_deallocate"] if persistent else []
    statuses = "dlfield_ok = 0, dlfield_refused = 1, dlfield_raised = 2, dlfield_kept = 3"
    parts = [
        f"! Functions of Python. Written by python -m dlfield fortran.\nmodule {library}",
        "  use, intrinsic :: iso_c_binding\n  use, intrinsic :: iso_fortran_env, only: error_unit",
        "  implicit none\n  private",
        *(f"  public :: {name}" for name in public + freeing),
        "  public :: dlfield_ok, dlfield_refused, dlfield_raised, dlfield_kept",
        f"  integer, parameter :: {statuses}\n",
        DESCRIPTION,
        _generic("dlf_describe", (named("describe", *kind) for kind in kinds)),
        *(
            _generic(f"dlf_describe_{form}", (named(form, *kind) for kind in kinds))
            for form, kinds in deferred.items()
        ),
        _generic("dlfield_deallocate", (named("deallocate", *kind) for kind in persistent)),
        "  interface",
        *(_c_interface(library, one) for one in functions),
        _FORGET.format(library=library),
        "  end interface\n\ncontains\n",
        *(_wrapper(one) for one in functions),
        *(describe(kind, rank) for kind, rank in kinds),
        *(describe(*kind, form) for form, kinds in deferred.items() for kind in kinds),
        *(deallocate(kind, rank) for kind, rank in persistent),
        COMMON.format(message=MESSAGE, finish=FINISH),
        C_TEXT if any(one.kind.name == "str" for f in functions for one in f.scalars) else "",
        f"end module {library}\n",
    ]
    text = "\n".join(part for part in parts if part)
    return "\n".join(map(wrapped, text.split("\n")))


_FORGET = """\
    function dlf_c_forget(address, message, size) result(code) bind(C, name="{library}_forget")
      import
      type(c_ptr), value :: address
      character(kind=c_char), intent(out) :: message(*)
      integer(c_size_t), value :: size
      integer(c_int) :: code
    end function dlf_c_forget
"""


def _arrays(functions: Sequence[Declared], *, persistent: bool = False) -> list[tuple[Kind, int]]:
    """Return the kinds and ranks of arrays, each once."""
    fields = [field for one in functions for field in one.fields]
    known = {(one.kind.name, len(one.dims)) for one in fields if one.persistent or not persistent}
    return [(FIELDS[name], rank) for name, rank in sorted(known)]


def _deferred(functions: Sequence[Declared], form: str) -> list[tuple[Kind, int]]:
    """Return the kinds and ranks of dummies that are pointers, or allocatable, each once."""
    fields = [field for one in functions for field in one.fields if field.deferred == form]
    known = {(one.kind.name, len(one.dims)) for one in fields}
    return [(FIELDS[name], rank) for name, rank in sorted(known)]


def _generic(name: str, procedures: Iterable[str]) -> str:
    lines = [f"    module procedure {one}" for one in procedures]
    return "\n".join([f"  interface {name}", *lines, f"  end interface {name}\n"]) if lines else ""


def _c_interface(library: str, function: Declared) -> str:
    names = [one.name for one in function.parameters]
    arguments = ", ".join([*names, "message", "size"])
    head = f"    function dlf_c_{function.name}({arguments}) result(dlf_code)"
    bound = f'bind(C, name="{library}_{function.name}")'
    lines = [
        f"{head} {bound}",
        "      import",
        *(f"      {_c_dummy(one)}" for one in function.parameters),
        "      character(kind=c_char), intent(out) :: message(*)",
        "      integer(c_size_t), value :: size",
        "      integer(c_int) :: dlf_code",
        f"    end function dlf_c_{function.name}\n",
    ]
    return "\n".join(lines)


def _is_pointer(one: FieldParameter | ScalarParameter) -> bool:
    """Return whether C gets a pointer."""
    return isinstance(one, FieldParameter) or one.optional or one.kind.name in _POINTERS


#: Scalars that C takes by pointer, as the header of `glue` declares them.
_POINTERS = ("str", "complex", "complex64", "complex128")


def _c_dummy(one: FieldParameter | ScalarParameter) -> str:
    if _is_pointer(one):
        return f"type(c_ptr), value :: {one.name}"
    kinds = {"bool": "logical(c_bool)", "comm": "integer(c_int32_t)"}
    return f"{kinds.get(one.kind.name, one.kind.fortran)}, value :: {one.name}"


def _wrapper(function: Declared) -> str:
    names = [*(one.name for one in function.parameters), *function.bounds]
    head = f"  recursive subroutine {function.name}({', '.join([*names, 'status', 'message'])})"
    passed = [_passed(one) for one in function.parameters]
    passed += ["dlf_text", "size(dlf_text, kind=c_size_t)"]
    lines = [
        *(f"  !> {line}".rstrip() for line in function.documentation.splitlines()),
        *(f"  !> {field}" for field in function.fields),
        head,
        *(f"    {line}" for one in function.parameters for line in _dummies(one)),
        "    integer, intent(out), optional :: status",
        "    character(:), allocatable, intent(out), optional :: message",
        f"    character(kind=c_char) :: dlf_text({MESSAGE})",
        "    integer(c_int) :: dlf_code",
        *(f"    {line}" for one in function.parameters for line in _locals(one)),
        *(f"    {line}" for one in function.parameters for line in _before(one, function.device)),
        *(f"    {line}" for line in _called(function, passed)),
        *(f"    {line}" for one in function.fields for line in _after(one)),
        FINISH,
        f"  end subroutine {function.name}\n",
    ]
    return "\n".join(lines)


def _called(function: Declared, passed: Sequence[str]) -> list[str]:
    """Return the lines that call C, if it can have all texts."""
    call = f"dlf_code = dlf_c_{function.name}({', '.join(passed)})"
    texts = [one.name for one in function.scalars if one.kind.name == "str"]
    if not texts:
        return [call]
    labels = {text: f"'{function.name}', '{text}'" for text in texts}
    checks = [f"call dlf_check({text}, {labels[text]}, dlf_code, dlf_text)" for text in texts]
    return ["dlf_code = dlfield_ok", *checks, f"if (dlf_code == dlfield_ok) {call}"]


def _dummies(one: FieldParameter | ScalarParameter) -> list[str]:
    optional = ", optional" if one.optional else ""
    if isinstance(one, ScalarParameter):
        target = ", target" if _is_pointer(one) and one.kind.name not in ("bool", "str") else ""
        return [f"{one.kind.fortran}, intent(in){optional}{target} :: {one.name}"]
    rank = len(one.dims)
    kind = "logical" if one.default_logical else one.kind.fortran
    lines = [f"{kind}, {_attributes(one)}{optional} :: {one.name}{colons(rank)}"]
    if one.lower_bounds:
        lines.append(f"integer, intent(in), optional :: {one.name}_lbound({rank})")
    return lines


def _attributes(one: FieldParameter) -> str:
    if one.pointer:
        return "pointer, intent(in)"
    if one.allocatable:  # intent(out) would deallocate the caller's array
        return f"allocatable, intent({'in' if one.intent == 'in' else 'inout'}), target"
    return f"intent({one.intent}), target"


def _locals(one: FieldParameter | ScalarParameter) -> list[str]:
    if isinstance(one, ScalarParameter):
        if not _is_pointer(one):
            return []
        lines = [f"type(c_ptr) :: dlf_p_{one.name}"]
        if one.kind.name == "bool":
            lines.append(f"logical(c_bool), target :: dlf_a_{one.name}")
        if one.kind.name == "str":
            lines.append(f"character(kind=c_char), allocatable, target :: dlf_a_{one.name}(:)")
        return lines
    lines = [f"type(dlf_array), target :: dlf_a_{one.name}", f"type(c_ptr) :: dlf_p_{one.name}"]
    if one.default_logical:
        shape = colons(len(one.dims))
        allocatable = ", allocatable" if shape else ""
        lines.append(f"logical(c_bool){allocatable}, target :: dlf_l_{one.name}{shape}")
    return lines


def _before(one: FieldParameter | ScalarParameter, device: str) -> list[str]:
    """Return the lines that make the pointer to an argument."""
    if not _is_pointer(one):
        return []
    pointer = f"dlf_p_{one.name}"
    if isinstance(one, FieldParameter):
        guard = f"if ({ALLOTTED[one.deferred]}({one.name})) " if one.deferred else ""
        made = [*_described(one, device), f"{guard}{pointer} = c_loc(dlf_a_{one.name})"]
        if one.deferred and not one.optional:
            made.insert(0, f"{pointer} = c_null_ptr")
    elif one.kind.name == "bool":
        made = [
            f"dlf_a_{one.name} = logical({one.name}, c_bool)",
            f"{pointer} = c_loc(dlf_a_{one.name})",
        ]
    elif one.kind.name == "str":
        made = [
            f"allocate (dlf_a_{one.name}(len_trim({one.name}) + 1))",
            f"dlf_a_{one.name} = dlf_to_c({one.name})",
            f"{pointer} = c_loc(dlf_a_{one.name})",
        ]
    else:
        made = [f"{pointer} = c_loc({one.name})"]
    if not one.optional:
        return made
    inside = [line if line.startswith("!$") else f"  {line}" for line in made]
    return [f"{pointer} = c_null_ptr", f"if (present({one.name})) then", *inside, "end if"]


def _described(one: FieldParameter, device: str) -> list[str]:
    name, rank = one.name, len(one.dims)
    lines = [f"call {'_'.join(filter(None, ('dlf_describe', one.deferred)))}({name}, dlf_a_{name})"]
    if one.default_logical:
        copy = f"dlf_l_{name}"
        lines = [f"call dlf_describe({copy}, dlf_a_{name})"]
        if one.intent != "out":
            lines.insert(0, f"{copy} = logical({name}, c_bool)")
        if rank:
            lines.insert(0, f"allocate ({copy}{_extents(name, rank)})")
    if device == "gpu":
        lines = [
            f"!$acc host_data use_device({name})",
            f"!$omp target data use_device_addr({name})",
            *lines,
            "!$omp end target data",
            "!$acc end host_data",
        ]
    if one.lower_bounds:
        lines.append(f"if (present({name}_lbound)) dlf_a_{name}%lower(1:{rank}) = {name}_lbound")
    return lines


def _extents(name: str, rank: int) -> str:
    every = [f"size({name}, {axis})" for axis in range(1, rank + 1)]
    return f"({', '.join(every)})" if rank else ""


def _after(one: FieldParameter) -> list[str]:
    """Return the lines that copy a logical back."""
    if not one.default_logical or one.intent == "in":
        return []
    line = f"if (dlf_code /= dlfield_refused) {one.name} = dlf_l_{one.name}"
    if not one.optional:
        return [line]
    return [f"if (present({one.name})) then", f"  {line}", "end if"]


def _passed(one: FieldParameter | ScalarParameter) -> str:
    if _is_pointer(one):
        return f"dlf_p_{one.name}"
    return f"logical({one.name}, c_bool)" if one.kind.name == "bool" else one.name
