"""The same module, built by flang: its addresses and strides are Fortran's own, too."""

import pytest

from support import optional
from support.fortran import Program, run, succeeded

SMALL = """
program small
  use, intrinsic :: iso_c_binding
  use model
  implicit none
  real(c_double), target :: z(6, 4), x(6)
  real(c_double), pointer :: p(:, :)
  character(:), allocatable :: message
  integer :: status
  z = 3; x = 1
  call rank2(z(:, ::2))
  call rank2(z(6:1:-2, 4:1:-1))
  call may_be_absent(b=x, name='given', flag=.false.)
  allocate (p(0:4, -1:3))
  p = 1
  call by_pointer(p)
  call fail(x, 'raise', status, message)
  print '(i0, 1x, a)', status, message(:30)
  call keep(x, x, 'view', status, message)
  print '(i0, 1x, a)', status, message(:50)
  print '(i0)', transfer(c_loc(z(1, 1)), 0_c_intptr_t)
  print '(i0)', transfer(c_loc(z(6, 4)), 0_c_intptr_t)
end program small
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    flang = optional.program("flang-new-16", "flang-new", "flang")
    experimental = " -flang-experimental-exec" if flang.endswith("-16") else ""
    folder = tmp_path_factory.mktemp("flang")
    Program.generate(folder)
    settings = {"FC": flang + experimental, "FFLAGS": "-O1"}
    succeeded(run("sh", "build.sh", folder=folder, **settings))
    (folder / "small.f90").write_text(SMALL)
    options = ["small.f90", "-L.", "-lmodel", f"-Wl,-rpath,{folder}", "-o", "small"]
    succeeded(run(flang, *experimental.split(), *options, folder=folder))
    return succeeded(run(folder / "small")).splitlines()


def test_slices_arrive_where_they_are(lines):
    first, reversed_ = (line.split()[2:] for line in lines if line.startswith("python rank2"))
    assert first == [lines[-2], "6", "2", "8", "96"]
    assert reversed_ == [lines[-1], "3", "4", "-16", "-48"]


def test_the_lower_bounds_of_a_pointer_tell_the_halo(lines):
    [labels] = [line for line in lines if line.startswith("labels by_pointer")]
    assert labels.endswith("((1, 1), (2, 2)) True")


def test_absent_arguments_have_their_defaults(lines):
    assert "python True False 5 'given' False" in lines


def test_failures_have_a_status_and_a_text(lines):
    assert [line for line in lines if line.startswith("2 fail: ValueError: on purpose")]
    assert [line for line in lines if line.startswith("3 keep: expected that nothing holds")]
