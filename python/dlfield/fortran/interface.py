"""The Fortran module of a library: one explicit interface for each function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.fortran.kinds import FIELDS, MAX_RANK, Kind
from dlfield.fortran.signature import Declared, FieldParameter, ScalarParameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["module"]

#: Room for the text of a failure.
_MESSAGE = 8192

_WIDTH = 100


def module(library: str, functions: Sequence[Declared]) -> str:
    """Return the text of the module."""
    kinds = _arrays(functions)
    persistent, pointers = _arrays(functions, persistent=True), _pointers(functions)
    public = [one.name for one in functions] + ["dlfield_forget"]
    deallocate = ["dlfield_deallocate"] if persistent else []
    statuses = "dlfield_ok = 0, dlfield_refused = 1, dlfield_raised = 2, dlfield_kept = 3"
    parts = [
        f"! Functions of Python. Written by python -m dlfield fortran.\nmodule {library}",
        "  use, intrinsic :: iso_c_binding\n  use, intrinsic :: iso_fortran_env, only: error_unit",
        "  implicit none\n  private",
        _wrapped(f"  public :: {', '.join(public + deallocate)}"),
        "  public :: dlfield_ok, dlfield_refused, dlfield_raised, dlfield_kept",
        f"  integer, parameter :: {statuses}\n",
        _DESCRIPTION,
        _generic("describe", (_named("describe", *kind) for kind in kinds)),
        _generic("describe_pointer", (_named("pointer", *kind) for kind in pointers)),
        _generic("dlfield_deallocate", (_named("deallocate", *kind) for kind in persistent)),
        "  interface",
        *(_c_interface(library, one) for one in functions),
        _FORGET.format(library=library),
        "  end interface\n\ncontains\n",
        *(_wrapper(one) for one in functions),
        *(_describe(kind, rank) for kind, rank in kinds),
        *(_describe(kind, rank, pointer=True) for kind, rank in pointers),
        *(_deallocate(kind, rank) for kind, rank in persistent),
        _COMMON.format(message=_MESSAGE, finish=_FINISH),
        _C_TEXT if any(one.kind.name == "str" for f in functions for one in f.scalars) else "",
        f"end module {library}\n",
    ]
    return "\n".join(part for part in parts if part)


_DESCRIPTION = f"""\
  type, bind(C) :: dlf_array
    type(c_ptr) :: address
    integer(c_int32_t) :: type, rank
    integer(c_int64_t) :: extent({MAX_RANK}), stride({MAX_RANK}), lower({MAX_RANK})
  end type dlf_array
"""

_FORGET = """\
    function dlf_c_forget(address, message, size) result(code) bind(C, name="{library}_forget")
      import
      type(c_ptr), value :: address
      character(kind=c_char), intent(out) :: message(*)
      integer(c_size_t), value :: size
      integer(c_int) :: code
    end function dlf_c_forget
"""

_C_TEXT = """\
  !> Returns a text for C, without the blanks at its end.
  function c_text(text) result(characters)
    character(*), intent(in) :: text
    character(kind=c_char) :: characters(len_trim(text) + 1)
    integer :: at
    do at = 1, len_trim(text)
      characters(at) = text(at:at)
    end do
    characters(len_trim(text) + 1) = c_null_char
  end function c_text
"""

#: Tells the caller what failed; without `status` the program stops.
_FINISH = """\
    if (present(status)) status = int(dlf_code)
    if (present(message)) message = f_text(dlf_text)
    if (dlf_code /= dlfield_ok .and. .not. present(status)) call stop_with(dlf_text)"""

_COMMON = """\
  !> Forgets all arrays of earlier calls.
  recursive subroutine dlfield_forget(status, message)
    integer, intent(out), optional :: status
    character(:), allocatable, intent(out), optional :: message
    character(kind=c_char) :: dlf_text({message})
    integer(c_int) :: dlf_code
    dlf_code = dlf_c_forget(c_null_ptr, dlf_text, size(dlf_text, kind=c_size_t))
{finish}
  end subroutine dlfield_forget

  !> Stops the program with a text.
  recursive subroutine stop_with(text)
    character(kind=c_char), intent(in) :: text(:)
    write (error_unit, '(a)') f_text(text)
    flush (error_unit)
    error stop 1
  end subroutine stop_with

  !> Returns a text of C.
  pure function f_text(text) result(whole)
    character(kind=c_char), intent(in) :: text(:)
    character(:), allocatable :: whole
    integer :: at, length
    length = findloc_null(text) - 1
    allocate (character(length) :: whole)
    do at = 1, length
      whole(at:at) = text(at)
    end do
  end function f_text

  pure integer function findloc_null(text) result(at)
    character(kind=c_char), intent(in) :: text(:)
    do at = 1, size(text)
      if (text(at) == c_null_char) return
    end do
  end function findloc_null
"""


def _arrays(functions: Sequence[Declared], *, persistent: bool = False) -> list[tuple[Kind, int]]:
    """Return the kinds and ranks of arrays, each once."""
    fields = [field for one in functions for field in one.fields]
    known = {(one.kind.name, len(one.dims)) for one in fields if one.persistent or not persistent}
    return [(FIELDS[name], rank) for name, rank in sorted(known)]


def _pointers(functions: Sequence[Declared]) -> list[tuple[Kind, int]]:
    """Return the kinds and ranks of arrays that come as pointers, each once."""
    fields = [field for one in functions for field in one.fields if field.pointer]
    known = {(one.kind.name, len(one.dims)) for one in fields}
    return [(FIELDS[name], rank) for name, rank in sorted(known)]


def _named(what: str, kind: Kind, rank: int) -> str:
    return f"dlf_{what}_{kind.name}_{rank}"


def _generic(name: str, procedures: Iterable[str]) -> str:
    lines = [f"    module procedure {one}" for one in procedures]
    return "\n".join([f"  interface {name}", *lines, f"  end interface {name}\n"]) if lines else ""


def _wrapped(line: str) -> str:
    """Break a line at its commas: Fortran has 132 columns."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    lines, current = [], ""
    for piece in line.replace(", ", ",\0").split("\0"):
        if current and len(current) + len(piece) > _WIDTH:
            lines.append(f"{current.rstrip()} &")
            current = indent
        current += piece if not current.strip() or current.endswith("(") else f" {piece}"
    return "\n".join([*lines, current])


def _c_interface(library: str, function: Declared) -> str:
    names = [one.name for one in function.parameters]
    arguments = ", ".join([*names, "message", "size"])
    head = f"    function dlf_c_{function.name}({arguments}) result(dlf_code)"
    lines = [
        f'{_wrapped(head)} &\n        bind(C, name="{library}_{function.name}")',
        "      import",
        *(f"      {_c_dummy(one)}" for one in function.parameters),
        "      character(kind=c_char), intent(out) :: message(*)",
        "      integer(c_size_t), value :: size",
        "      integer(c_int) :: dlf_code",
        f"    end function dlf_c_{function.name}\n",
    ]
    return "\n".join(lines)


def _is_pointer(one: FieldParameter | ScalarParameter) -> bool:
    """Tell whether C gets a pointer."""
    return isinstance(one, FieldParameter) or one.optional or one.kind.name in _POINTERS


#: As in the header.
_POINTERS = ("str", "complex", "complex64", "complex128")


def _c_dummy(one: FieldParameter | ScalarParameter) -> str:
    if _is_pointer(one):
        return f"type(c_ptr), value :: {one.name}"
    kinds = {"bool": "logical(c_bool)", "comm": "integer(c_int32_t)"}
    return f"{kinds.get(one.kind.name, one.kind.fortran)}, value :: {one.name}"


def _wrapper(function: Declared) -> str:
    names = []
    for one in function.parameters:
        names.append(one.name)
        if isinstance(one, FieldParameter) and one.lower_bounds:
            names.append(f"{one.name}_lbound")
    head = f"  recursive subroutine {function.name}({', '.join([*names, 'status', 'message'])})"
    passed = [_passed(one) for one in function.parameters]
    passed += ["dlf_text", "size(dlf_text, kind=c_size_t)"]
    lines = [
        *(f"  !> {line}".rstrip() for line in function.documentation.splitlines()),
        *(f"  !> {field}" for field in function.fields),
        _wrapped(head),
        *(f"    {line}" for one in function.parameters for line in _dummies(one)),
        "    integer, intent(out), optional :: status",
        "    character(:), allocatable, intent(out), optional :: message",
        f"    character(kind=c_char) :: dlf_text({_MESSAGE})",
        "    integer(c_int) :: dlf_code",
        *(f"    {line}" for one in function.parameters for line in _locals(one)),
        *(f"    {line}" for one in function.parameters for line in _before(one, function.device)),
        _wrapped(f"    dlf_code = dlf_c_{function.name}({', '.join(passed)})"),
        *(f"    {line}" for one in function.fields for line in _after(one)),
        _FINISH,
        f"  end subroutine {function.name}\n",
    ]
    return "\n".join(lines)


def _colons(rank: int) -> str:
    return f"({', '.join(':' * rank)})" if rank else ""


def _dummies(one: FieldParameter | ScalarParameter) -> list[str]:
    optional = ", optional" if one.optional else ""
    if isinstance(one, ScalarParameter):
        target = ", target" if _is_pointer(one) and one.kind.name not in ("bool", "str") else ""
        return [f"{one.kind.fortran}, intent(in){optional}{target} :: {one.name}"]
    rank = len(one.dims)
    kind = "logical" if one.default_logical else one.kind.fortran
    attributes = "pointer, intent(in)" if one.pointer else f"intent({one.intent}), target"
    lines = [f"{kind}, {attributes}{optional} :: {one.name}{_colons(rank)}"]
    if one.lower_bounds:
        lines.append(f"integer, intent(in), optional :: {one.name}_lbound({rank})")
    return lines


def _locals(one: FieldParameter | ScalarParameter) -> list[str]:
    if isinstance(one, ScalarParameter):
        if not _is_pointer(one):
            return []
        lines = [f"type(c_ptr) :: dlf_p_{one.name}"]
        if one.kind.name == "bool":
            lines.append(f"logical(c_bool), target :: dlf_{one.name}")
        if one.kind.name == "str":
            lines.append(f"character(kind=c_char), allocatable, target :: dlf_{one.name}(:)")
        return lines
    lines = [f"type(dlf_array), target :: dlf_{one.name}", f"type(c_ptr) :: dlf_p_{one.name}"]
    if one.default_logical:
        colons = _colons(len(one.dims))
        allocatable = ", allocatable" if colons else ""
        lines.append(f"logical(c_bool){allocatable}, target :: dlf_copy_{one.name}{colons}")
    return lines


def _before(one: FieldParameter | ScalarParameter, device: str) -> list[str]:
    """Return the lines that make the pointer to an argument."""
    if not _is_pointer(one):
        return []
    pointer = f"dlf_p_{one.name}"
    if isinstance(one, FieldParameter):
        guard = f"if (associated({one.name})) " if one.pointer else ""
        made = [*_described(one, device), f"{guard}{pointer} = c_loc(dlf_{one.name})"]
        if one.pointer and not one.optional:
            made.insert(0, f"{pointer} = c_null_ptr")
    elif one.kind.name == "bool":
        made = [
            f"dlf_{one.name} = logical({one.name}, c_bool)",
            f"{pointer} = c_loc(dlf_{one.name})",
        ]
    elif one.kind.name == "str":
        made = [
            f"allocate (dlf_{one.name}(len_trim({one.name}) + 1))",
            f"dlf_{one.name} = c_text({one.name})",
            f"{pointer} = c_loc(dlf_{one.name})",
        ]
    else:
        made = [f"{pointer} = c_loc({one.name})"]
    if not one.optional:
        return made
    inside = [line if line.startswith("!$") else f"  {line}" for line in made]
    return [f"{pointer} = c_null_ptr", f"if (present({one.name})) then", *inside, "end if"]


def _described(one: FieldParameter, device: str) -> list[str]:
    name, rank = one.name, len(one.dims)
    lines = [f"call describe{'_pointer' if one.pointer else ''}({name}, dlf_{name})"]
    if one.default_logical:
        copy = f"dlf_copy_{name}"
        lines = [f"call describe({copy}, dlf_{name})"]
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
        lines.append(f"if (present({name}_lbound)) dlf_{name}%lower(1:{rank}) = {name}_lbound")
    return lines


def _extents(name: str, rank: int) -> str:
    every = [f"size({name}, {axis})" for axis in range(1, rank + 1)]
    return f"({', '.join(every)})" if rank else ""


def _after(one: FieldParameter) -> list[str]:
    """Return the lines that copy a logical back."""
    if not one.default_logical or one.intent == "in":
        return []
    line = f"if (dlf_code /= dlfield_refused) {one.name} = dlf_copy_{one.name}"
    if not one.optional:
        return [line]
    return [f"if (present({one.name})) then", f"  {line}", "end if"]


def _passed(one: FieldParameter | ScalarParameter) -> str:
    if _is_pointer(one):
        return f"dlf_p_{one.name}"
    return f"logical({one.name}, c_bool)" if one.kind.name == "bool" else one.name


def _describe(kind: Kind, rank: int, *, pointer: bool = False) -> str:
    """Return the procedure that finds address, extents and strides of an array.

    Strides are the differences of addresses, which every compiler of Fortran 2003 has.
    """
    name = _named("pointer" if pointer else "describe", kind, rank)
    lower = [f"lbound(a, {axis + 1})" if pointer else "1" for axis in range(rank)]
    attributes = "pointer, intent(in)" if pointer else "intent(in), target"
    lines = [
        f"  recursive subroutine {name}(a, d)",
        f"    {kind.fortran}, {attributes} :: a{_colons(rank)}",
        "    type(dlf_array), intent(out) :: d",
        "    integer(c_intptr_t) :: start" if rank else "",
        f"    d%address = c_null_ptr\n    d%type = {kind.code}\n    d%rank = {rank}",
        "    if (.not. associated(a)) return" if pointer else "",
    ]
    for axis in range(1, rank + 1):
        bound = f"lbound(a, {axis})" if pointer else "-huge(0_c_int64_t) - 1"
        lines += [
            f"    d%extent({axis}) = size(a, {axis}, kind=c_int64_t)",
            f"    d%stride({axis}) = 0\n    d%lower({axis}) = {bound}",
        ]
    if rank:
        lines.append("    if (any(d%extent(1:d%rank) == 0)) return")
    lines.append(_wrapped(f"    d%address = c_loc(a{_element(lower)})"))
    lines.append("    start = transfer(d%address, start)" if rank else "")
    for axis in range(rank):
        second = [*lower]
        second[axis] = f"{lower[axis]} + 1" if pointer else "2"
        lines.append(f"    if (d%extent({axis + 1}) > 1) &")
        stride = f"transfer(c_loc(a{_element(second)}), start) - start"
        lines.append(_wrapped(f"        d%stride({axis + 1}) = {stride}"))
    lines.append(f"  end subroutine {name}\n")
    return "\n".join(line for line in lines if line)


def _element(indices: Sequence[str]) -> str:
    return f"({', '.join(indices)})" if indices else ""


def _deallocate(kind: Kind, rank: int) -> str:
    name = _named("deallocate", kind, rank)
    address = f"c_loc(a{_element(['lbound(a, ' + str(axis + 1) + ')' for axis in range(rank)])})"
    guard = "      if (size(a, kind=c_int64_t) > 0) address = " if rank else "      address = "
    return "\n".join(
        [
            "  !> Deallocates an array that Python no longer holds.",
            f"  recursive subroutine {name}(a, status, message)",
            f"    {kind.fortran}, allocatable, intent(inout), target :: a{_colons(rank)}",
            "    integer, intent(out), optional :: status",
            "    character(:), allocatable, intent(out), optional :: message",
            f"    character(kind=c_char) :: dlf_text({_MESSAGE})",
            "    integer(c_int) :: dlf_code\n    type(c_ptr) :: address",
            "    address = c_null_ptr",
            "    if (allocated(a)) then",
            _wrapped(f"{guard}{address}"),
            "    end if",
            "    dlf_code = dlf_c_forget(address, dlf_text, size(dlf_text, kind=c_size_t))",
            "    if (dlf_code == 0 .and. allocated(a)) deallocate (a)",
            _FINISH,
            f"  end subroutine {name}\n",
        ]
    )
