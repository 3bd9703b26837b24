"""Stencils of GT4Py that a Fortran program calls as they are."""

import functools
from pathlib import Path

import pytest

from support.fortran import run, succeeded, write
from support.optional import library, program

library("gt4py.cartesian.gtscript")
HERE = Path(__file__).parent
PROGRAM = """
program main
  use of_stencils
  implicit none
  real(8) :: a(5, 6, 2), b(5, 6, 2), c(3, 4), d(3, 4)
  character(20) :: name
  character(:), allocatable :: message
  integer :: status, how, i
  call get_command_argument(1, name)
  a = 3; b = 1; c = 4; d = 0
  status = 0
  message = ''
  select case (name)
  case ('all')
    do i = 1, 5
      call scaled(a, b, by=2d0)
    end do
    print *, 'scaled', all(b(2:4, 2:5, :) == 6), sum(b) == 24 * 6 + 36
    b = 1
    call scaled(b, b, 2d0, status, message)
    print '(a, i0, 1x, a)', 'overlap ', status, message
    call scaled(a(:4, :, :), b, 2d0, status, message)
    print '(a, i0, 1x, a)', 'domain ', status, message
    print *, 'unchanged', all(b == 1)
    call double(c, d)
    call double(c(:, 4:1:-1), d)
    print *, 'double', all(d == 8)
    call doubled(d, c)
    print *, 'doubled', all(c == 16)
  case ('keep')
    do how = 0, 5
      call keep_from_stencil(a, how, status, message)
      call keep_from_stencil(a, how, status, message)
      print '(i0, 1x, i0, 1x, a)', how, status, message
    end do
  end select
end program main
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    compiler, folder = program("gfortran"), tmp_path_factory.mktemp("stencils")
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("fortran_stencils", HERE / "fortran_stencils.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    targets = [f"fortran_stencils:{name}" for name in module.ALL]
    succeeded(write(folder, targets, "of_stencils", where=HERE))
    succeeded(run("sh", "build.sh", folder=folder, FFLAGS="-Wall -Wextra -Werror"))
    (folder / "main.f90").write_text(PROGRAM)
    options = ["main.f90", "-L.", "-lof_stencils", f"-Wl,-rpath,{folder}", "-o", "main"]
    succeeded(run(compiler, *options, folder=folder))

    @functools.cache
    def lines(name):
        told = succeeded(run(folder / "main", name)).splitlines()
        return dict(line.strip().partition(" ")[::2] for line in told if line.strip())

    return lines


def test_a_stencil_computes_between_the_halos(printed):
    assert printed("all")["scaled"] == "T T"


def test_a_program_of_next_is_called_as_it_is(printed):
    assert printed("all")["double"] == "T"


def test_a_field_operator_is_called_as_it_is(printed):
    assert printed("all")["doubled"] == "T"


@pytest.mark.parametrize("what", ["overlap", "domain"])
def test_a_call_that_a_stencil_refuses_has_a_status_and_a_text(printed, what):
    assert printed("all")[what].startswith("2 scaled: ")


def test_a_call_that_a_stencil_refuses_has_written_nothing(printed):
    assert printed("all")["unchanged"] == "T"


def test_a_stencil_that_was_called_often_keeps_nothing(printed):
    assert printed("keep")["0"].strip() == "0"


@pytest.mark.parametrize(
    ("how", "needs"), list(enumerate([None, None, "torch", None, "xarray"], 1))
)
def test_an_array_that_python_keeps_beside_a_stencil_is_named(printed, how, needs):
    if needs:
        library(needs)
    text = "3 keep_from_stencil: expected that nothing holds argument 'a' after the call"
    assert printed("keep")[str(how)].startswith(text)
