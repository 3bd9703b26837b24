"""Arrays of Fortran whose addresses are on a device, for a function with ``device="gpu"``."""

import ctypes

import numpy as np
import pytest

from support.cuda import driver, fortran_functions
from support.fortran import run, succeeded, write
from support.optional import program

#: Fortran only takes addresses of its pointers; it does not touch what they point to.
CALLER = """
subroutine call_on_gpu(a, b, n, copies, code, text) bind(C)
  use, intrinsic :: iso_c_binding
  use on_device
  type(c_ptr), value :: a, b
  integer(c_int), value :: n, copies
  integer(c_int), intent(out) :: code
  character(kind=c_char), intent(out) :: text(1000)
  character(:), allocatable :: message
  real(c_double), pointer :: p(:, :), q(:, :)
  call c_f_pointer(a, p, [n, n])
  call c_f_pointer(b, q, [n, n])
  if (copies == 2) then
    call kept(p, code, message)
  else if (copies == 1) then
    call on_gpu(p, q, code, message)
  else
    call on_gpu(p(:, ::2), status=code, message=message)
  end if
  text(1:min(1000, len(message))) = transfer(message, text(1:len(message)))
end subroutine call_on_gpu
"""


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Call a function by way of Fortran, in this process, which has the driver."""
    compiler, folder = program("gfortran"), tmp_path_factory.mktemp("gpu")
    targets = [f"support.cuda.fortran_functions:{name}" for name in ("on_gpu", "kept")]
    succeeded(write(folder, targets, "on_device"))
    succeeded(run("sh", "build.sh", folder=folder))
    (folder / "caller.f90").write_text(CALLER)
    options = ["-shared", "-fPIC", "caller.f90", "-L.", "-lon_device", f"-Wl,-rpath,{folder}"]
    succeeded(run(compiler, *options, "-o", "libcaller.so", folder=folder))
    caller = ctypes.CDLL(str(folder / "libcaller.so"))

    def call(a, b=0, *, n=4, how=0):
        code, text = ctypes.c_int(), ctypes.create_string_buffer(1001)
        pointers = [ctypes.c_void_p(address) for address in (a, b)]
        caller.call_on_gpu(*pointers, n, how, ctypes.byref(code), text)
        return code.value, text.value.decode()

    return call


@pytest.fixture
def memory():
    addresses = [driver.made("cuMemAlloc_v2", 4 * 4 * 8, kind=ctypes.c_uint64) for _ in range(2)]
    yield addresses
    for address in addresses:
        driver.call("cuMemFree_v2", address)


def test_a_device_address_becomes_a_storage_on_the_gpu(call, memory):
    fortran_functions.SEEN.clear()
    assert call(memory[0]) == (0, "")
    [seen] = fortran_functions.SEEN
    halo = ((1, 1), (1, 1))
    assert seen == ("GPUStorage", memory[0], (4, 2), (8, 64), halo, True)


def test_values_are_copied_on_the_device(call, memory):
    values = np.arange(16.0).reshape(4, 4)
    driver.call("cuMemcpyHtoD_v2", memory[1], values.ctypes.data, values.nbytes)
    assert call(*memory, how=1) == (0, "")
    got = np.zeros((4, 4))
    driver.call("cuMemcpyDtoH_v2", got.ctypes.data, memory[0], got.nbytes)
    assert (got == values).all()


def test_an_array_on_a_gpu_that_python_keeps_is_named(call, memory):
    status, text = call(memory[0], how=2)
    fortran_functions.SEEN.clear()
    assert status == 3
    assert text.startswith("kept: expected that nothing holds argument 'a'")


def test_an_address_of_the_host_is_refused(call):
    host = np.zeros((4, 4))
    status, text = call(host.ctypes.data)
    assert status == 1
    assert text.startswith("on_gpu: ")
    assert "argument 'a' of 'on_gpu': " in text
