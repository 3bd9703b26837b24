"""The doctor beside a driver: its lines about GPUs, and the probes of libraries on them."""

import os

import pytest

from support.cuda.built import library_path
from support.doctor import examined, fake, found

pytestmark = pytest.mark.stand_in

#: As CuPy does, it makes the context of the device current.
DOUBLE = "from support.cuda import driver\nfrom support.cuda.cupy_double import *\ndriver.start()\n"


@pytest.fixture
def driver(tmp_path):
    """A folder in which the loader finds the stand-in by the name of the driver."""
    (tmp_path / "libcuda.so.1").symlink_to(library_path())
    return {
        "LD_LIBRARY_PATH": os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    }


@pytest.mark.parametrize("count", [1, 3])
def test_the_devices_are_told_with_their_memory(driver, count):
    driver["DLFIELD_FAKE_CUDA_DEVICES"] = str(count)
    cuda = found("--only", "Python", **driver)["cuda"]
    assert (cuda["version"], cuda["reason"]) == ("13.0", None)
    assert [device["name"] for device in cuda["devices"]] == [
        f"fake CUDA device {number}" for number in range(count)
    ]
    text = examined("--only", "Python", **driver).stdout
    assert f"driver for CUDA 13.0, {count} device{'s' if count > 1 else ''}\n" in text
    for number, device in enumerate(cuda["devices"]):
        size = f"{device['bytes'] / 2**30:.1f} GiB"
        assert f"GPU {number}     {device['name']}, {size}, compute capability 9.0\n" in text


def test_a_driver_without_devices_is_a_trap(driver):
    report = found("--only", "Python", DLFIELD_FAKE_CUDA_DEVICES="0", **driver)
    assert report["cuda"]["version"] is None
    assert [trap["name"] for trap in report["traps"]][-1:] == ["cuda-driver"]
    assert report["ok"]


@pytest.mark.parametrize(
    ("name", "module"), [("numba-cuda", "numba_cuda"), ("cuda-core", "cuda.core")]
)
def test_a_library_shares_memory_of_a_gpu(driver, name, module):
    pytest.importorskip(module)
    probe = found("--only", name, **driver)["libraries"][name]["probe"]
    assert (probe["result"], probe["error"]) == ("shared", None)


def test_cupy_shares_memory_of_a_gpu(driver, tmp_path):
    fake(tmp_path, "cupy", DOUBLE)
    library = found("--only", "CuPy", fakes=tmp_path, **driver)["libraries"]["CuPy"]
    assert library["probe"] == {"name": "storage.to_cupy", "result": "shared", "error": None}


def test_without_a_driver_the_probe_of_a_gpu_is_not_run(tmp_path):
    fake(tmp_path, "cupy")
    report = found("--only", "CuPy", fakes=tmp_path)
    assert report["libraries"]["CuPy"]["probe"]["error"] == "no GPU"
    assert "libcuda.so.1" in report["cuda"]["reason"]
    assert report["ok"]
