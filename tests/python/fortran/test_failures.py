"""A call that fails gives a status and a text, and stops a program that asks for neither."""

import sys
import sysconfig

import pytest

from support.fortran import run, succeeded, write


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("raise", "fail: ValueError: on purpose\n\nTraceback"),
        ("NUL", "fail: ValueError: on\\0 purpose \\udcff\n\nTraceback"),
        ("nested", "fail: RuntimeError: around it\n\nTraceback"),
        ("exit", "fail: SystemExit: 3\n\nTraceback"),
        ("interrupt", "fail: KeyboardInterrupt: stopped by Ctrl-C\n\nTraceback"),
    ],
)
def test_what_a_function_raises_is_told(program, how, text):
    status, message = program.status("fail", how)
    assert status == 2
    assert message.replace("\n\nTypeError: ", "").startswith(text.partition("\n")[0])
    assert "Traceback" in message
    assert "fortran_functions.py" in message


def test_a_long_traceback_is_told_from_its_end(program):
    status, text = program.status("fail", "long trace")
    assert status == 2
    assert text.startswith("fail: ValueError: at the bottom\n\n[...]\n")
    assert 'raise ValueError("at the bottom")' in text


def test_a_text_that_is_not_utf_8_is_refused(program):
    status, text = program.status("fail", "not utf-8")
    assert status == 1
    assert text.startswith("fail: UnicodeDecodeError")


@pytest.mark.parametrize(
    "how", ["attribute", "attribute of a view", "argument of the exception", "cause"]
)
def test_an_array_that_only_the_exception_holds_is_not_told(program, how):
    status, text = program.status("fail", how)
    assert status == 2
    assert "Traceback" in text
    assert "nothing holds" not in text


@pytest.mark.parametrize(
    ("case", "what", "name", "at"),
    [("nul within", "fail", "how", 6), ("nul in an optional text", "may_be_absent", "name", 1)],
)
def test_a_text_with_a_nul_before_its_end_is_refused(program, case, what, name, at):
    status, text = program.status(case)
    assert status == 1
    assert text == (
        f"{what}: ValueError: argument '{name}' of '{what}': expected a text without NUL, "
        f"achar(0), before its end, got one at {at}; pass {name}(:{at - 1})"
    )


def test_nuls_at_the_end_of_a_text_are_left_out_as_blanks_are(program):
    status, text = program.status("nul")
    assert status == 2
    assert text.startswith("fail: ValueError: on purpose")


@pytest.mark.parametrize("case", ["halo that does not fit", "by_bounds"])
def test_a_wrong_halo_is_refused(program, case):
    status, text = program.status(case)
    assert status == 1
    assert "argument 'a' of " in text


def test_lower_bounds_that_tell_another_halo_than_declared_are_refused(program):
    status, text = program.status("two halos")
    assert status == 1
    assert "argument 'a' of 'two_halos': expected lower bounds that tell the halo ((1, 1)" in text
    assert "got ((2, 2), (1, 1)); leave one of the two away" in text


def test_a_write_to_an_array_of_intent_in_raises_and_writes_nothing(program):
    status, text = program.status("only_read", "write")
    assert status == 2
    assert "only_read: ValueError: assignment destination is read-only" in text
    assert "unchanged T" in text


@pytest.mark.parametrize("case", ["pointer", "allocatable"])
def test_a_dummy_without_memory_is_refused(program, case):
    status, text = program.status(case)
    assert status == 1
    what = f"by_{case}"
    assert text == f"{what}: ValueError: argument 'a' of '{what}': expected an array, got NULL"


@pytest.mark.parametrize("case", ["stop", "only a message"])
def test_without_a_status_the_program_stops_with_the_traceback(program, case):
    done = program.case(case)
    assert done.returncode == 1
    assert "fail: ValueError: on purpose\n\nTraceback" in done.stderr
    assert "not reached" not in done.stdout


# --- Python that does not start -------------------------------------------------------------------


def test_a_broken_home_of_python_is_told(program):
    status, text = program.status("fail", "", PYTHONHOME="/nowhere")
    assert status == 1
    assert text.startswith("dlfield: expected a Python that starts, got '")
    assert "PYTHONHOME" in text


def test_a_python_without_dlfield_is_told(program):
    plain = f"{sys.base_prefix}/bin/python{sysconfig.get_python_version()}"
    status, text = program.status("fail", "", DLFIELD_PYTHON=plain, PYTHONPATH=None)
    assert status == 1
    assert text.startswith("fail: ModuleNotFoundError: No module named 'dlfield'")


def test_a_missing_numpy_is_told(program, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('numpy is not there')\n")
    path = f"{tmp_path}:{program.python_path}"
    status, text = program.status("fail", "", PYTHONPATH=path)
    assert status == 1
    assert text.startswith("fail: ImportError: numpy is not there")


MODULE = """
import dlfield as dlf
{first}
@dlf.fortran.function
def step(n: int, {more}):
    print("python", n)
"""

STEP = """
program main
  use late
  integer :: status
  character(:), allocatable :: message
  call step(3, status=status, message=message)
  print '(a, i0, a, a)', 'status ', status, new_line('a'), message
end program main
"""


@pytest.fixture(scope="module")
def late(program, tmp_path_factory):
    """Run a program whose module is written again, after the library was built."""
    folder = tmp_path_factory.mktemp("late")
    path = folder / "late_functions.py"
    path.write_text(MODULE.format(first="", more=""))
    command = ["-m", "dlfield", "fortran", "late_functions:step", "--library", "late"]
    succeeded(run(sys.executable, *command, folder=folder))
    succeeded(run("sh", "build.sh", folder=folder))
    (folder / "main.f90").write_text(STEP)
    options = ["main.f90", "-L.", "-llate", f"-Wl,-rpath,{folder}", "-o", "main"]
    succeeded(run("gfortran", *options, folder=folder))

    def outcome(text):
        path.write_text(text)
        return succeeded(run(folder / "main", folder="/", PYTHONDONTWRITEBYTECODE="1"))

    return outcome


def test_a_module_is_found_where_it_was_when_the_library_was_generated(late):
    assert late(MODULE.format(first="", more="")) == "python 3\nstatus 0\n\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise OSError('no')", "status 1\nstep: OSError: no\n"),
        ("def (", "status 1\nstep: SyntaxError: "),
        ("raise SystemExit(4)", "status 1\nstep: SystemExit: 4\n"),
        (
            "x = 1",
            "status 1\nstep: AttributeError: module 'late_functions' has no attribute 'step'",
        ),
        ("def step(n: int): ...", "status 1\nstep: TypeError: step: expected a declared function"),
        (
            MODULE.format(first="", more="more: float = 1.0"),
            "status 1\nstep: TypeError: step: expected the parameters that the library was",
        ),
    ],
)
def test_a_module_that_no_longer_has_the_function_is_told(late, text, told):
    assert late(text).startswith(told)


# --- what does not compile ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("call rank2(a)", "Rank mismatch"),
        ("call of_float32(b)", "Type mismatch"),
        ("call rank2(mask)", "Type mismatch"),
        ("call of_bool(mask)", "Type mismatch"),
        ("call rank1()", "Missing actual argument"),
        ("call rank1(2 * a)", "Non-variable expression"),
    ],
)
def test_a_wrong_argument_does_not_compile(program, call, error):
    text = f"use model\nreal(8) :: a(3), b(3, 3)\nlogical :: mask(2, 2)\n{call}\nend\n"
    (program.folder / "wrong.f90").write_text(text)
    assert error in program.compile("-fsyntax-only", "wrong.f90", expect=1).stderr


def test_a_function_without_the_decorator_is_not_generated(tmp_path):
    done = write(tmp_path, ["support.fortran:write"])
    assert done.returncode == 1
    assert done.stderr == (
        "TypeError: write: expected a declared function, got a plain one; decorate it with "
        "@dlfield.fortran.function\n"
    )
