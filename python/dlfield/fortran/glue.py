"""The C header of a library, and its functions in C, which the Fortran module calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dlfield.fortran.kinds import FIELDS, MAX_RANK
from dlfield.fortran.names import in_c
from dlfield.fortran.parameters import Declared, FieldParameter, ScalarParameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["header", "source"]

_ARRAY = f"""\
#ifndef DLFIELD_ARRAY
#define DLFIELD_ARRAY
/* An array of the program. Its memory stays the program's. */
typedef struct dlfield_array {{
    void *address;       /* of the first element; any if an extent is 0 */
    int32_t type;        /* of the elements, as below */
    int32_t rank;        /* number of dimensions */
    int64_t extent[{MAX_RANK}];
    int64_t stride[{MAX_RANK}];   /* from one element to the next, in bytes */
    int64_t lower[{MAX_RANK}];    /* lower bounds, where they are taken; INT64_MIN: none */
}} dlfield_array;
enum {{ {", ".join(f"DLFIELD_{kind.name.upper()} = {kind.code}" for kind in FIELDS.values())} }};
/* What a function returns: 0, or what failed. */
enum {{
    DLFIELD_OK = 0,
    DLFIELD_REFUSED = 1, /* nothing was called, and nothing written */
    DLFIELD_RAISED = 2,  /* the function raised an exception; it may have written */
    DLFIELD_KEPT = 3     /* the function returned, and Python holds an array of the call */
}};
#endif
"""

#: Scalars that come as a pointer: an optional one may be NULL.
_BY_POINTER = ("str", "complex", "complex64", "complex128")


def header(library: str, functions: Sequence[Declared]) -> str:
    """Return the text of the header."""
    prototypes = "".join(f"{_comment(one)}{_prototype(library, one)};\n" for one in functions)
    guard = f"DLFIELD_{library.upper()}_H"
    return _HEADER.format(guard=guard, array=_ARRAY, prototypes=prototypes, library=library)


_HEADER = """\
/* Functions of Python for C and C++. Written by python -m dlfield fortran. */
#ifndef {guard}
#define {guard}
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

{array}
/* Each function returns 0 or what failed, and writes a text into `message`, of `size` bytes; NULL
 * if none is wanted. An optional argument may be NULL. */
{prototypes}
/* Forgets all arrays of earlier calls. Python must not hold one at `address`, unless it is NULL. */
int {library}_forget(void *address, char *message, size_t size);

#ifdef __cplusplus
}}
#endif
#endif
"""


def source(
    library: str,
    functions: Sequence[Declared],
    targets: Mapping[str, str],
    python: str,
    folder: str,
) -> str:
    """Return the text of the functions in C; `targets` are ``package.module:name``."""
    words = max([0, *(sum(1 + 3 * len(field.dims) for field in one.fields) for one in functions)])
    return _SOURCE.format(
        library=library,
        python=_quoted(python),
        folder=_quoted(folder),
        words=words,
        host=Path(__file__).with_name("host.c").read_text("utf-8"),
        functions="\n".join(_function(library, one, targets[one.name]) for one in functions),
    )


_SOURCE = """\
/* Written by python -m dlfield fortran. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "{library}.h"

#define DLFIELD_PYTHON {python}
#define DLFIELD_FOLDER {folder}
#define DLFIELD_WORDS {words}

{host}
{functions}
int {library}_forget(void *address, char *message, size_t size)
{{
    return dlf_forget(address, message, size);
}}
"""


def _comment(function: Declared) -> str:
    arrays = "".join(f"\n * {field}" for field in function.fields)
    text = function.documentation.replace("*/", "* /").replace("\n", "\n * ")
    return f"\n/* {text or function.name}\n *{arrays} */\n" if arrays else f"\n/* {text} */\n"


def _prototype(library: str, function: Declared) -> str:
    arguments = [_argument(one) for one in function.parameters]
    arguments += ["char *message", "size_t size"]
    return f"int {library}_{function.name}({', '.join(arguments)})"


def _argument(one: FieldParameter | ScalarParameter) -> str:
    if isinstance(one, FieldParameter):
        return f"const dlfield_array *{in_c(one.name)}"
    pointer = one.optional or one.kind.name in _BY_POINTER
    return f"{'const ' if pointer else ''}{one.kind.c} {'*' if pointer else ''}{in_c(one.name)}"


def _function(library: str, function: Declared, target: str) -> str:
    name, fields = function.name, function.fields
    types = ", ".join(str(one.kind.code) for one in fields) or "0"
    ranks = ", ".join(str(len(one.dims)) for one in fields) or "0"
    bounds = ", ".join(str(int(one.has_bounds)) for one in fields) or "0"
    arrays = ", ".join(in_c(one.name) for one in fields) or "NULL"
    values = "".join(f", {_value(one)}" for one in function.scalars)
    form = f'"({"N" * len(function.scalars)})"'
    return f"""\
static const int dlf_types_{name}[] = {{{types}}};
static const int dlf_ranks_{name}[] = {{{ranks}}};
static const int dlf_bounds_{name}[] = {{{bounds}}};
static dlf_function dlf_function_{name} = {{
    "{name}", {_quoted(target)},
    {_quoted(str(function))},
    {len(fields)}, dlf_types_{name}, dlf_ranks_{name}, dlf_bounds_{name}, NULL, NULL}};

{_prototype(library, function)}
{{
    const dlfield_array *const dlf_arrays[] = {{{arrays}}};
    dlf_thread dlf_own;
    int dlf_status = dlf_enter(&dlf_own, message, size);
    if (dlf_status != 0)
        return dlf_status;
    return dlf_call(&dlf_function_{name}, dlf_arrays, Py_BuildValue({form}{values}), &dlf_own,
                    message, size);
}}
"""


def _value(one: ScalarParameter) -> str:
    pointer = one.optional or one.kind.name in _BY_POINTER
    return f"dlf_{one.kind.name}({'' if pointer else '&'}{in_c(one.name)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
