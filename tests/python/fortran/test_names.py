"""A name that is not refused compiles, whatever it means in Fortran, C or C++."""

import re

import pytest

from support import optional
from support.fortran import run, succeeded, write
from support.processes import run_in_subprocess

HEAD = """
import dlfield as dlf
import numpy as np
from dlfield.annotations import Axes, Field

Line, Mask = Field[np.float64, Axes["I"]], Field[bool, Axes["I"]]
"""

#: Every kind of argument: its parameter, and the option of the function.
KINDS = {
    "array": ("{name}: Line", ""),
    "optional": ("{name}: Line = None", ""),
    "lower_bounds": ("{name}: Line", "lower_bounds=('{name}',)"),
    "pointer": ("{name}: Line", "pointer=('{name}',)"),
    "optional_pointer": ("{name}: Line = None", "pointer=('{name}',)"),
    "allocatable": ("{name}: Line", "allocatable=('{name}',), lower_bounds=('{name}',)"),
    "default_logical": ("{name}: Mask = None", "default_logical=('{name}',)"),
    "logical": ("{name}: bool = True", ""),
    "number": ("{name}: float", ""),
    "optional_number": ("{name}: int = 3", ""),
    "complex": ("{name}: complex", ""),
    "text": ("{name}: str", ""),
    "optional_text": ("{name}: str = 'none'", ""),
}

#: Those that use most names: all of them for each word would take a minute.
MOST = ["array", "optional_pointer", "allocatable", "default_logical", "logical", "number"]
MOST += ["optional_text"]

#: Words of C and C++, of Fortran, of headers, of modules, and of the glue itself.
TEXT = """
long short default switch static struct union register volatile restrict inline typedef unsigned
signed extern sizeof goto auto char const enum void new delete this template operator namespace
virtual private public xor bitand errno stdin stdout linux unix NULL EOF INFINITY PRId32 st_atime
int32_t size_t dlfield_array int bool float double complex true_ message size status
array code text p_text a_text c_step copy_array describe describe_pointer describe_allocatable
c_text f_text stop_with findloc_null check_text deallocate function types ranks bounds call enter
outcome words own forget forget_ arrays signals_of tell raised start leave ready
end data type real integer character logical program module subroutine call_ do then stop
c_ptr c_int c_char c_loc c_long c_short c_double c_sizeof c_associated c_funloc iso_c_binding
iso_fortran_env
transfer lbound ubound huge any all index verify min present associated allocated len_trim kind
shape error_unit dlfield_ok dlfield_kept dlfield_forget dlfield_deallocate dlfield_step DLF_text
address extent stride lower rank type_ at length whole a d start_ name library
"""
WORDS = TEXT.split()


def written_function(kind, name, function):
    parameter, options = (part.format(name=name) for part in KINDS[kind])
    return f"@dlf.fortran.function({options})\ndef {function}({parameter}):\n    pass\n\n"


def is_refused(text):
    """Return whether a function is refused; the text must name the word and the way out."""
    try:
        exec(HEAD + text, {})
    except ValueError as error:
        told = str(error)
    else:
        return False
    assert re.search(r"got '\w+'.*; rename it$", told)
    return True


def built(folder, text, functions, library="named"):
    """Build a library of functions, and its header as C++."""
    optional.program("gfortran")
    (folder / "named_functions.py").write_text(HEAD + text)
    succeeded(write(folder, [f"named_functions:{one}" for one in functions], library, where=folder))
    flags = "-O0 -Wall -Wextra -Werror -std=f2008"
    succeeded(run("sh", "build.sh", folder=folder, FFLAGS=flags, CFLAGS="-O0 -Wall -Werror"))
    header = ["c++", "-fsyntax-only", "-x", "c++", "-include", "complex.h", f"{library}.h"]
    succeeded(run(*header, folder=folder))


def test_every_kind_of_argument_may_have_a_name_of_51_characters(tmp_path):
    functions = {f"{kind}_".ljust(51, "f"): kind for kind in KINDS}
    texts = [written_function(kind, "a" * 51, name) for name, kind in functions.items()]
    built(tmp_path, "".join(texts), functions)


def test_an_argument_compiles_or_is_refused(tmp_path):
    functions = {}
    for word in WORDS:
        for kind in MOST:
            text = written_function(kind, word, f"of_{word}_{kind}")
            if not is_refused(text):
                functions[f"of_{word}_{kind}"] = text
    assert len(functions) > 500
    built(tmp_path, "".join(functions.values()), functions)


def test_a_function_compiles_or_is_refused(tmp_path):
    from dlfield.fortran.writing import write_library

    texts = {word: written_function("array", "x", word) for word in WORDS}
    (tmp_path / "words_of_names.py").write_text(
        HEAD + "".join(text for text in texts.values() if not is_refused(text))
    )
    accepted = []
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        for word in WORDS:
            try:
                write_library([f"words_of_names:{word}"], "named", tmp_path / "one")
            except (ValueError, AttributeError):
                continue
            accepted.append(word)
    assert len(accepted) > 50
    built(tmp_path, "".join(texts[word] for word in accepted), accepted)


@pytest.mark.parametrize("word", ["long", "default", "unix", "new"])
def test_a_word_of_c_names_an_argument_under_another_name_in_the_header(tmp_path, word):
    built(tmp_path, written_function("array", word, "step"), ["step"])
    assert f"const dlfield_array *dlf_arg_{word}" in (tmp_path / "named.h").read_text()


@pytest.mark.parametrize("name", ["forget", "size", "transfer", "c_long", "status", "Dlfield_kept"])
def test_a_function_that_would_take_the_place_of_the_librarys_own_is_refused(tmp_path, name):
    (tmp_path / "taken.py").write_text(HEAD + written_function("array", "x", name))
    done = write(tmp_path, [f"taken:{name}"], where=tmp_path)
    assert done.returncode == 1
    expected = "expected names of functions that the library does not have for its own"
    assert done.stderr == f"ValueError: model: {expected}, got '{name}'; rename it\n"


def test_an_argument_may_have_the_name_of_the_library(tmp_path):
    built(tmp_path, written_function("array", "named", "step"), ["step"])


def test_a_library_looks_for_the_modules_of_all_its_functions(tmp_path):
    text = "import dlfield as dlf\n@dlf.fortran.function\ndef {name}(n: int): ...\n"
    for folder, module, name in (("a", "chemistry.py", "react"), ("b", "physics/step.py", "rise")):
        file = tmp_path / folder / module  # the second in a folder without __init__.py
        file.parent.mkdir(parents=True)
        file.write_text(text.format(name=name))
    run_in_subprocess(f"""
        import sys
        from pathlib import Path

        folders = [{str(tmp_path / "a")!r}, {str(tmp_path / "b")!r}]
        sys.path += folders
        from dlfield.fortran.writing import write_library

        out = Path({str(tmp_path)!r})
        write_library(["chemistry:react", "physics.step:rise"], "both", out)
        assert ":".join(folders) in (out / "both.c").read_text()
    """)
