"""Names of functions and arguments: those that the generated files use, and those that C has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_arguments", "check_functions", "in_c"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What each wrapper in Fortran uses, besides names that begin with "dlf_".
_OF_WRAPPERS = _words("""
    status message dlfield_ok dlfield_refused
    present associated allocated size shape logical int len_trim
    c_ptr c_loc c_null_ptr c_char c_size_t c_int c_int32_t c_int64_t c_bool
    c_float c_double c_float_complex c_double_complex
    """)

#: What the module has, where a function of this name would take its place.
_OF_MODULE = _OF_WRAPPERS | _words("""
    dlfield_raised dlfield_kept dlfield_forget dlfield_deallocate error_unit iso_c_binding
    iso_fortran_env
    any huge index lbound len transfer trim verify
    c_associated c_f_pointer c_f_procpointer c_f_strpointer c_funloc c_sizeof f_c_string
    c_funptr c_null_funptr c_null_char c_alert c_backspace c_form_feed c_new_line
    c_carriage_return c_horizontal_tab c_vertical_tab c_short c_long c_long_long c_signed_char
    c_int8_t c_int16_t c_int128_t c_int_least8_t c_int_least16_t c_int_least32_t c_int_least64_t
    c_int_least128_t c_int_fast8_t c_int_fast16_t c_int_fast32_t c_int_fast64_t c_int_fast128_t
    c_intmax_t c_intptr_t c_ptrdiff_t c_long_double c_long_double_complex c_float128
    c_float128_complex c_uint8_t c_uint16_t c_uint32_t c_uint64_t c_uint128_t
    c_unsigned c_unsigned_char c_unsigned_short c_unsigned_long c_unsigned_long_long
    c_uintmax_t c_uint_fast8_t c_uint_fast16_t c_uint_fast32_t c_uint_fast64_t c_uint_fast128_t
    c_uint_least8_t c_uint_least16_t c_uint_least32_t c_uint_least64_t c_uint_least128_t
    """)

#: Functions of the library in C, behind its name.
_OF_LIBRARY = frozenset({"forget"})

#: Words of C and C++, macros of their headers, and types of the prototypes.
_WORDS_OF_C = _words("""
    alignas alignof asm auto bool break case char const constexpr continue default do double else
    enum extern false float for goto if inline int long nullptr register restrict return short
    signed sizeof static static_assert struct switch thread_local true typedef typeof typeof_unqual
    union unsigned void volatile while
    and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl
    concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend
    mutable namespace new noexcept not not_eq operator or or_eq private protected public
    reinterpret_cast requires static_cast template this throw try typeid typename using virtual
    wchar_t xor xor_eq
    environ errno i386 linux math_errhandling sa_handler sa_sigaction sched_priority si_addr
    si_addr_lsb si_arch si_band si_call_addr si_fd si_int si_lower si_overrun si_pid si_pkey si_ptr
    si_status si_stime si_syscall si_timerid si_uid si_upper si_utime si_value
    sigev_notify_attributes sigev_notify_function st_atime st_ctime st_mtime stderr stdin stdout
    unix
    dlfield_array int32_t int64_t size_t
    """)


def check_arguments(what: str, names: Sequence[str], added: Sequence[str]) -> None:
    """Refuse a function and arguments that Fortran cannot name, or has for something else.

    Raises ValueError. `added` are arguments that the wrapper has besides those that are declared.
    """
    for name in (what, *names):
        _check_form(what, name)
    seen = {what.lower()}
    for name in (*names, *added):
        if name.lower() in seen | _OF_WRAPPERS:
            others = "that of another argument" if name.lower() in seen else "one that is taken"
            expected = "names that differ whatever their case"
            got = f"'{name}', in lower case {others}"
            raise ValueError(f"{what}: expected {expected}, got {got}; rename it")
        seen.add(name.lower())


def _check_form(what: str, name: str) -> None:
    own = name.lower().startswith("dlf_")
    if own or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,50}", name):
        raise ValueError(
            f"{what}: expected names of at most 51 letters, digits and '_', which begin with a "
            f"letter and not with 'dlf_', got '{name}'; rename it"
        )


def check_functions(library: str, functions: Sequence[str]) -> None:
    """Refuse a library and functions of it that Fortran or C cannot name so. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", library):
        expected = "a name with a letter first, then letters, digits and '_'"
        raise ValueError(f"--library: expected {expected}, got '{library}'")
    seen = {library.lower()}
    for name in functions:
        if name.lower() in _OF_MODULE | _OF_LIBRARY:
            expected = "names of functions that the library does not have for its own"
            raise ValueError(f"{library}: expected {expected}, got '{name}'; rename it")
        if name.lower() in seen:
            expected = "names of functions that differ, and differ from that of the library"
            raise ValueError(f"{library}: expected {expected}, got '{name.lower()}'; rename one")
        seen.add(name.lower())


def in_c(name: str) -> str:
    """Return the name of an argument in C: in lower case, as macros are not, and no word of C."""
    lower = name.lower()
    return f"dlf_arg_{lower}" if lower in _WORDS_OF_C else lower
