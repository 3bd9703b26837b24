"""Machines without a usable GPU: no driver, a broken one, one without devices.

The host works there, and requests for a GPU get an error with a reason. A process has
one driver, so each test has a process of its own.
"""

import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support import processes
from support.cuda import stand_in

CUDA = Path(__file__).parents[3] / "src" / "cuda"

PREAMBLE = """
import ctypes, pickle, sys
import dlfield as dlf
import numpy as np
from support.dlpack_structs import DLDevice, Producer

class Interface:
    __cuda_array_interface__ = {
        "shape": (3,), "typestr": "<f8", "data": (4096, False), "strides": None, "version": 3,
    }

class Tensor(Producer):
    def __init__(self):
        super().__init__()
        self.managed.dl_tensor.device = DLDevice(2, 0)
    def __dlpack_device__(self):
        return (2, 0)

WANTS_A_GPU = {
    "zeros": lambda: dlf.zeros(3, device="gpu"),
    "empty": lambda: dlf.empty(3, device=("gpu", 0), managed=None),
    "nothing": lambda: dlf.empty(0, device="gpu", managed="cuda"),
    "full_like": lambda: dlf.full_like(np.ones(3), 2, device="gpu"),
    "storage": lambda: dlf.storage(np.ones(3), device="gpu"),
    "as_storage": lambda: dlf.as_storage(np.ones(3), device="gpu"),
    "backend": lambda: dlf.zeros((3, 4, 5), backend="gt:gpu"),
    "defaults": lambda: dlf.zeros((3, 4, 5), defaults="dace:gpu"),
    "GPUStorage": lambda: dlf.GPUStorage(np.ones(3)),
    "SoftwareManagedGPUStorage": lambda: dlf.SoftwareManagedGPUStorage(np.ones(3)),
    "CUDAManagedGPUStorage": lambda: dlf.CUDAManagedGPUStorage(shape=3),
    "use_stream": lambda: dlf.use_stream(1),
    "interface": lambda: dlf.as_storage(Interface()),
    "a copy of an interface": lambda: dlf.storage(Interface(), device=None),
    "assignment": lambda: dlf.zeros(3).__setitem__(..., Interface()),
    "tensor": lambda: dlf.as_storage(Tensor()),
}

def refusals():
    said = {}
    for name, wants in WANTS_A_GPU.items():
        try:
            wants()
        except dlf.DeviceUnavailable as error:
            said[name] = str(error)
        else:
            raise AssertionError(f"{name}: there is a GPU")
    return said
"""

ON_THE_HOST = """
field = dlf.zeros((4, 5), dims="IJ", halo=(1, 1), alignment_size=64, managed="cuda")
field[...] = np.arange(20.0).reshape(4, 5)
assert dlf.storage(field, layout=(1, 0), device="cpu").to_numpy()[3, 4] == 19
assert np.from_dlpack(field).shape == np.asarray(field).shape == memoryview(field).shape
assert (field.device, field.device_id, field.device_data) == (None, None, None)
field.synchronize()
field.host_to_device()
with field.host() as array:
    array += 1
assert pickle.loads(pickle.dumps(field))[0, 0] == 1
assert dlf.as_storage(np.zeros(3), device=None, managed=None).domain_view.shape == (3,)
"""

#: A driver whose other functions always return 0.
LIBRARY = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
static int number(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}
__attribute__((constructor)) static void loaded() {
    if (number("SAY_LOADED")) fputs("loaded", stderr);
}
extern "C" {
int initialised = 0;
int cuInit(unsigned) {
    initialised++;
    return number("ANSWER_OF_CUINIT");
}
int cuDeviceGetCount(int *count) {
    *count = number("DEVICES");
    return 0;
}
int cuGetErrorName(int code, const char **name) {
    *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 999 ? "CUDA_ERROR_UNKNOWN" : nullptr;
    return *name ? 0 : 1;
}
"""


def functions():
    """Every function of the driver that dlfield calls."""
    called = re.findall(
        r"\b(cu[A-Z]\w+)\(", "".join(p.read_text(encoding="utf-8") for p in CUDA.glob("*.rs"))
    )
    return sorted(set(called))


def build(folder, without=()):
    """Make a library that takes the place of the driver, and give the folder it is in."""
    answered = re.findall(r"\b(cu\w+)\(", LIBRARY)
    source = LIBRARY + "".join(
        f"int {name}(void) {{ return 0; }}\n" for name in functions() if name not in answered
    )
    for name in without:
        source = re.sub(rf"\b{name}\(", f"not_{name}(", source)
    (folder / "driver.cpp").write_text(source + "}\n")
    options = "-shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1"
    subprocess.run(["g++", *options.split(), "driver.cpp"], cwd=folder, check=True)
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return build(tmp_path_factory.mktemp("driver"))


def run(code, library=None, **settings):
    """Run a snippet where the loader finds a library in a folder, and give what it has printed."""
    folders = [str(library or ""), os.environ.get("LD_LIBRARY_PATH", "")]
    settings["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    done = processes.end_of(PREAMBLE + textwrap.dedent(code), **settings)
    processes.expect_success(done, code)
    return done.stdout, done.stderr


def run_without_driver(code):
    """Run a snippet without a driver; skip the test on a machine with one."""
    load = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"]
    if subprocess.run(load, capture_output=True, check=False).returncode == 0:
        pytest.skip("this machine has a driver")
    return run(code)


SAYS_WHY = """
first, second = refusals(), refusals()
assert first == second
for name, text in first.items():
    assert {expected!r} in text, (name, text)
"""


def test_without_a_driver_the_host_works_and_nothing_is_printed():
    assert run_without_driver(ON_THE_HOST) == ("", "")


def test_without_a_driver_whatever_wants_a_gpu_says_so_every_time_and_the_host_goes_on():
    code = SAYS_WHY.format(expected="expected the driver's library (libcuda.so.1), got none")
    assert run_without_driver(code + ON_THE_HOST) == ("", "")


def test_work_on_the_host_never_loads_the_driver(driver):
    assert run(ON_THE_HOST, driver, SAY_LOADED="1") == ("", "")
    assert "loaded" in run("refusals()", driver, SAY_LOADED="1")[1]


def test_a_driver_is_looked_for_once():
    """One that comes later is not found: the search is long."""
    later = stand_in.built_library()
    assert run_without_driver(f"""
        before = refusals()
        ctypes.CDLL({str(later)!r}, mode=ctypes.RTLD_GLOBAL)
        assert refusals() == before
    """) == ("", "")


@pytest.mark.parametrize(
    "name", ["cuInit", "cuMemAllocAsync", "cuMemcpy3DAsync_v2", "cuLaunchKernel", "cuGetErrorName"]
)
def test_a_driver_without_a_function_is_too_old_and_the_function_is_named(name, tmp_path):
    code = SAYS_WHY.format(
        expected=f"expected a driver for CUDA 12.0 or later, got one without {name}; update"
    )
    said = run(code + ON_THE_HOST, build(tmp_path, without=[name]))
    assert said == ("", "")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("999", "expected cuInit to succeed, got error 999 (CUDA_ERROR_UNKNOWN"),
        ("4711", "expected cuInit to succeed, got error 4711 (unknown"),
    ],
)
def test_a_driver_that_does_not_start_says_its_number(answer, expected, driver):
    code = SAYS_WHY.format(expected=expected)
    assert run(code + ON_THE_HOST, driver, ANSWER_OF_CUINIT=answer) == (
        "",
        "",
    )


def test_a_driver_that_does_not_start_is_asked_once(driver):
    code = """
        refusals(), refusals()
        assert ctypes.c_int.in_dll(ctypes.CDLL("libcuda.so.1"), "initialised").value == 1
    """
    assert run(code, driver, ANSWER_OF_CUINIT="999") == ("", "")


@pytest.mark.parametrize("threads", [16])
def test_threads_that_ask_at_once_all_get_the_error(driver, threads):
    code = f"""
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        together = Barrier({threads})
        def ask(_):
            together.wait()
            return str(refusals())
        with ThreadPoolExecutor({threads}) as pool:
            assert len(set(pool.map(ask, range({threads})))) == 1
        assert ctypes.c_int.in_dll(ctypes.CDLL("libcuda.so.1"), "initialised").value == 1
    """
    assert run(code, driver, ANSWER_OF_CUINIT="999") == ("", "")


def test_a_driver_that_counts_no_device_has_none(driver):
    code = SAYS_WHY.format(
        expected="expected a device, got a driver without any (see CUDA_VISIBLE_DEVICES)"
    )
    assert run(code + ON_THE_HOST, driver, DEVICES="0") == ("", "")


def test_a_driver_that_does_not_start_without_a_device_says_that_there_is_none(driver):
    """Which is what drivers do where CUDA_VISIBLE_DEVICES hides every device."""
    code = SAYS_WHY.format(expected="CUDA_VISIBLE_DEVICES")
    run(code, driver, ANSWER_OF_CUINIT="100")


def test_a_file_that_is_not_a_library_counts_as_no_driver(tmp_path):
    for name in ("libcuda.so", "libcuda.so.1"):
        (tmp_path / name).write_text("no library")
    code = "assert all('expected the driver' in text for text in refusals().values())"
    assert run(code + ON_THE_HOST, tmp_path) == ("", "")


def test_a_pickle_of_a_gpu_says_at_the_other_end_that_there_is_none(tmp_path):
    there = tmp_path / "pickles"
    stand_in.run(f"""
        import pickle
        import dlfield as dlf
        kinds = (None, "gt4py", "cuda")
        pickles = [pickle.dumps(dlf.ones((2, 3), device="gpu", managed=kind)) for kind in kinds]
        open({str(there)!r}, "wb").write(pickle.dumps(pickles))
    """)
    assert len(pickle.loads(there.read_bytes())) == 3
    assert run_without_driver(f"""
        for one in pickle.load(open({str(there)!r}, "rb")):
            try:
                pickle.loads(one)
            except dlf.DeviceUnavailable as error:
                assert "libcuda.so.1" in str(error)
            else:
                raise AssertionError("there is a GPU")
    """) == ("", "")
