"""The same functions for a program in C."""

import pytest

from support.fortran import run, succeeded


@pytest.fixture(scope="module")
def in_c(program):
    from pathlib import Path

    import support

    source = Path(support.__file__).with_name("fortran_program.c")
    options = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-std=c11",
        "-I.",
        "-L.",
        f"-Wl,-rpath,{program.folder}",
    ]
    command = ["cc", *options, source, "-lmodel", "-o", "in_c"]
    succeeded(run(*command, folder=program.folder))

    def outcome(name):
        values, _, rest = succeeded(run(program.folder / "in_c", name)).partition("\n")
        status, _, text = rest.removeprefix("status ").partition("\n")
        return values, int(status), text.rstrip()

    return outcome


@pytest.mark.parametrize(("case", "values"), [("", "values 3 1"), ("default", "values 2 1")])
def test_a_function_writes_an_array_of_c(in_c, case, values):
    assert in_c(case) == (values, 0, "")


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("absent", "ValueError: argument 'a' of 'add': expected an array, got NULL"),
        ("address", "expected the address of (4,) elements, got NULL"),
        ("negative", "argument 'a' of 'add': expected extents of 0 or more, got (-1,)"),
        ("large", "argument 'a' of 'add': "),
        ("rank", "TypeError: array 1: expected rank 1 and type 2, got rank 2 and type 2"),
        ("type", "TypeError: array 1: expected rank 1 and type 2, got rank 1 and type 1"),
        ("stride", "argument 'a' of 'add': "),
        ("short", "add: TypeEr"),
    ],
)
def test_a_wrong_array_is_refused_and_not_written(in_c, case, text):
    values, status, message = in_c(case)
    assert (values, status) == ("values 1 1", 1)
    assert text in message


def test_an_array_at_an_odd_address_ends_with_a_status(in_c):
    assert in_c("misaligned")[1] in (0, 1, 2)


def test_a_caller_may_want_no_message(in_c):
    assert in_c("no message")[1:] == (2, "")


def test_the_header_is_one_of_cpp(program):
    (program.folder / "of_cpp.cpp").write_text(
        '#include "model.h"\nint main() { return DLFIELD_OK; }\n'
    )
    succeeded(
        run(
            "c++",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            "of_cpp.cpp",
            folder=program.folder,
        )
    )
