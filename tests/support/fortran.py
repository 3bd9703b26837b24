"""A library of `support.fortran_functions`, and a Fortran program that calls it."""

import functools
import subprocess
import sys
from pathlib import Path

from support.fortran_functions import ALL, ELEMENTS
from support.optional import program
from support.processes import beside_tests

PROGRAM = Path(__file__).with_name("fortran_program.f90")
TYPES = {
    "float32": "real(c_float)",
    "float64": "real(c_double)",
    "int32": "integer(c_int32_t)",
    "int64": "integer(c_int64_t)",
    "bool": "logical(c_bool)",
    "complex64": "complex(c_float_complex)",
    "complex128": "complex(c_double_complex)",
}


def write(folder, targets, library="model", *, where=None):
    """Generate a library in a folder, with modules of another, and give how that ended."""
    command = ["fortran", ",".join(targets), "--library", library, "--out", folder]
    return run(sys.executable, "-m", "dlfield", *command, folder=where)


def run(*command, folder=None, **settings):
    """Run a program and give how it ended. A setting that is None is taken out."""
    environment = beside_tests(
        **{name: text for name, text in settings.items() if text is not None}
    )
    for name, text in settings.items():
        if text is None:
            environment.pop(name, None)
    return subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True,
        text=True, encoding="utf-8",  # whatever locale a library has set meanwhile
        timeout=240, check=False,
    )  # fmt: skip


def succeeded(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Program:
    """The program, built once: `case` runs one of its cases."""

    def __init__(self, folder):
        program("gfortran")
        self.folder = folder
        self.python_path = beside_tests()["PYTHONPATH"]
        self.generate(folder)
        flags = "-O1 -g -Wall -Wextra -Werror -std=f2008 -fcheck=all"
        succeeded(run("sh", "build.sh", folder=folder, FFLAGS=flags, CFLAGS="-Wall -Werror"))
        text = PROGRAM.read_text("utf-8").replace("! CASES\n", _cases())
        (folder / "program.f90").write_text(text, "utf-8")
        self.compile("-fopenmp", "program.f90", "-o", "program")
        self.case = functools.cache(self._case)

    @staticmethod
    def generate(folder):
        """Write the files of the library."""
        succeeded(write(folder, [f"support.fortran_functions:{name}" for name in ALL]))

    def compile(self, *arguments, expect=0):
        """Compile beside the library, linked with it."""
        options = ["-g", "-I.", "-L.", f"-Wl,-rpath,{self.folder}"]
        done = run("gfortran", *options, *arguments, "-lmodel", folder=self.folder)
        assert done.returncode == expect, done.stderr
        return done

    def _case(self, name, *arguments, **settings):
        return run(self.folder / "program", name, *arguments, **settings)

    def printed(self, name, *arguments):
        """Lines that a case prints, each in words."""
        return [line.split() for line in succeeded(self.case(name, *arguments)).splitlines()]

    def status(self, name, *arguments, **settings):
        """Status and text of the call that a case makes."""
        done = (self._case if settings else self.case)(name, *arguments, **settings)
        text = succeeded(done).partition("status ")[2]
        status, _, message = text.partition("\n")
        return int(status), message.rstrip()


def _cases():
    """Cases for every type, and for every rank, which are alike."""
    parts = []
    for name in ELEMENTS:
        value = ".false." if name == "bool" else "1"
        parts += [
            f"  case ('of_{name}')\n    block\n      {TYPES[name]}, target :: a(4, 3)",
            f"      a = {value}\n      call of_{name}(a)",
            f"      call told('of_{name}', c_loc(a(1, 1)), c_loc(a(2, 1)), shape(a))",
            (
                f"      print *, 'changed', all(a .{'eqv' if name == 'bool' else 'eq'}. "
                f"{'.true._c_bool' if name == 'bool' else '2'})\n    end block"
            ),
        ]
    for rank in range(1, 8):
        extents = ", ".join("23222222"[axis] for axis in range(rank))
        ones = ", ".join("1" * rank)
        parts += [
            f"  case ('rank{rank}')\n    block\n      real(c_double), target :: a({extents})",
            f"      a = 1\n      call rank{rank}(a)",
            f"      call told('rank{rank}', c_loc(a({ones})), &",
            f"          c_loc(a({ones.replace('1', '2', 1)})), shape(a))",
            "      print *, 'changed', all(a == 2)\n    end block",
        ]
    return "\n".join(parts) + "\n"
