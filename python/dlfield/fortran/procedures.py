"""Procedures that every Fortran module has: they describe arrays, free them, and tell failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.fortran.kinds import MAX_RANK, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ALLOTTED", "COMMON", "C_TEXT", "DESCRIPTION", "FINISH", "MESSAGE", "colons", "deallocate",
    "describe", "named", "wrapped",
]  # fmt: skip

#: Room for the text of a failure.
MESSAGE = 8192

_WIDTH = 100

#: What asks whether a dummy has memory, by its attribute.
ALLOTTED = {"pointer": "associated", "allocatable": "allocated"}

DESCRIPTION = f"""\
  type, bind(C) :: dlf_array
    type(c_ptr) :: address
    integer(c_int32_t) :: type, rank
    integer(c_int64_t) :: extent({MAX_RANK}), stride({MAX_RANK}), lower({MAX_RANK})
  end type dlf_array
"""

C_TEXT = """\
  !> Returns a text for C, without the blanks at its end.
  function dlf_to_c(text) result(characters)
    character(*), intent(in) :: text
    character(kind=c_char) :: characters(len_trim(text) + 1)
    integer :: at
    do at = 1, len_trim(text)
      characters(at) = text(at:at)
    end do
    characters(len_trim(text) + 1) = c_null_char
  end function dlf_to_c

  !> Refuses a text that C would end at a NUL within. Nothing follows NULs and blanks at its end.
  subroutine dlf_check(text, what, name, code, message)
    character(*), intent(in), optional :: text
    character(*), intent(in) :: what, name
    integer(c_int), intent(inout) :: code
    character(kind=c_char), intent(inout) :: message(:)
    character(:), allocatable :: told
    character(20) :: found, before
    integer :: at
    if (code /= dlfield_ok .or. .not. present(text)) return
    at = index(text(:verify(text, ' '//c_null_char, back=.true.)), c_null_char)
    if (at == 0) return
    write (found, '(i0)') at
    write (before, '(i0)') at - 1
    told = what//": ValueError: argument '"//name//"' of '"//what//"': expected a text without"
    told = told//" NUL, achar(0), before its end, got one at "//trim(found)
    told = told//"; pass "//name//"(:"//trim(before)//")"
    message(:len(told) + 1) = dlf_to_c(told)
    code = dlfield_refused
  end subroutine dlf_check
"""

#: Tells the caller what failed; without `status` the program stops.
FINISH = """\
    if (present(status)) status = int(dlf_code)
    if (present(message)) message = dlf_from_c(dlf_text)
    if (dlf_code /= dlfield_ok .and. .not. present(status)) call dlf_stop_with(dlf_text)"""

COMMON = """\
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
  recursive subroutine dlf_stop_with(text)
    character(kind=c_char), intent(in) :: text(:)
    write (error_unit, '(a)') dlf_from_c(text)
    flush (error_unit)
    error stop 1
  end subroutine dlf_stop_with

  !> Returns a text of C.
  pure function dlf_from_c(text) result(whole)
    character(kind=c_char), intent(in) :: text(:)
    character(:), allocatable :: whole
    integer :: at, length
    length = dlf_findloc_null(text) - 1
    allocate (character(length) :: whole)
    do at = 1, length
      whole(at:at) = text(at)
    end do
  end function dlf_from_c

  pure integer function dlf_findloc_null(text) result(at)
    character(kind=c_char), intent(in) :: text(:)
    do at = 1, size(text)
      if (text(at) == c_null_char) return
    end do
  end function dlf_findloc_null
"""


def named(what: str, kind: Kind, rank: int) -> str:
    """Return the name of a procedure for arrays of one kind and rank."""
    return f"dlf_{what}_{kind.name}_{rank}"


def wrapped(line: str) -> str:
    """Break a line at its blanks: Fortran has 132 columns. Comments and directives stay whole."""
    if len(line) <= _WIDTH or line.lstrip().startswith("!"):
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    first, *pieces = line.split()
    lines, current = [], indent + first
    for piece in pieces:
        if len(current) + 1 + len(piece) > _WIDTH:
            lines.append(f"{current} &")
            current = f"{indent}    {piece}"
        else:
            current += f" {piece}"
    return "\n".join([*lines, current])


def colons(rank: int) -> str:
    """Return the shape of an assumed-shape array, empty for a scalar."""
    return f"({', '.join(':' * rank)})" if rank else ""


def describe(kind: Kind, rank: int, form: str = "") -> str:
    """Return the procedure that finds address, extents and strides of an array.

    Strides are the differences of addresses, which every compiler of Fortran 2003 has.
    """
    name = named(form or "describe", kind, rank)
    lower = [f"lbound(a, {axis + 1})" if form else "1" for axis in range(rank)]
    attributes = {"": "intent(in), target", "pointer": "pointer, intent(in)"}
    attributes["allocatable"] = "allocatable, intent(in), target"
    lines = [
        f"  recursive subroutine {name}(a, d)",
        f"    {kind.fortran}, {attributes[form]} :: a{colons(rank)}",
        "    type(dlf_array), intent(out) :: d",
        "    integer(c_intptr_t) :: start" if rank else "",
        f"    d%address = c_null_ptr\n    d%type = {kind.code}\n    d%rank = {rank}",
        f"    if (.not. {ALLOTTED[form]}(a)) return" if form else "",
    ]
    for axis in range(1, rank + 1):
        bound = f"lbound(a, {axis})" if form else "-huge(0_c_int64_t) - 1"
        lines += [
            f"    d%extent({axis}) = size(a, {axis}, kind=c_int64_t)",
            f"    d%stride({axis}) = 0\n    d%lower({axis}) = {bound}",
        ]
    if rank:
        lines.append("    if (any(d%extent(1:d%rank) == 0)) return")
    lines.append(f"    d%address = c_loc(a{_element(lower)})")
    lines.append("    start = transfer(d%address, start)" if rank else "")
    for axis in range(rank):
        second = [*lower]
        second[axis] = f"{lower[axis]} + 1" if form else "2"
        stride = f"transfer(c_loc(a{_element(second)}), start) - start"
        lines.append(f"    if (d%extent({axis + 1}) > 1) d%stride({axis + 1}) = {stride}")
    lines.append(f"  end subroutine {name}\n")
    return "\n".join(line for line in lines if line)


def _element(indices: Sequence[str]) -> str:
    return f"({', '.join(indices)})" if indices else ""


def deallocate(kind: Kind, rank: int) -> str:
    """Return the procedure that frees a persistent array."""
    name = named("deallocate", kind, rank)
    address = f"c_loc(a{_element(['lbound(a, ' + str(axis + 1) + ')' for axis in range(rank)])})"
    guard = "      if (size(a, kind=c_int64_t) > 0) address = " if rank else "      address = "
    return "\n".join(
        [
            "  !> Deallocates an array that Python no longer holds.",
            f"  recursive subroutine {name}(a, status, message)",
            f"    {kind.fortran}, allocatable, intent(inout), target :: a{colons(rank)}",
            "    integer, intent(out), optional :: status",
            "    character(:), allocatable, intent(out), optional :: message",
            f"    character(kind=c_char) :: dlf_text({MESSAGE})",
            "    integer(c_int) :: dlf_code\n    type(c_ptr) :: address",
            "    address = c_null_ptr",
            "    if (allocated(a)) then",
            f"{guard}{address}",
            "    end if",
            "    dlf_code = dlf_c_forget(address, dlf_text, size(dlf_text, kind=c_size_t))",
            "    if (dlf_code == 0 .and. allocated(a)) deallocate (a)",
            FINISH,
            f"  end subroutine {name}\n",
        ]
    )
