"""The doctor beside a driver: its lines about GPUs, and the doors of libraries on them."""

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
    ("name", "module", "doors"),
    [("numba-cuda", "numba_cuda", ["in", "out"]), ("cuda-core", "cuda.core", ["out"])],
)
def test_a_library_shares_memory_of_a_gpu_in_both_directions(driver, name, module, doors):
    pytest.importorskip(module)
    library = found("--only", name, **driver)["libraries"][name]
    assert [door["direction"] for door in library["doors"]] == doors
    assert all(door["result"] == "shared" and door["ns"] > 0 for door in library["doors"])


def test_cupy_shares_memory_of_a_gpu_in_both_directions(driver, tmp_path):
    fake(tmp_path, "cupy", DOUBLE)
    library = found("--only", "CuPy", fakes=tmp_path, **driver)["libraries"]["CuPy"]
    assert [(door["direction"], door["result"]) for door in library["doors"]] == [
        ("in", "shared"),
        ("out", "shared"),
    ]


def test_without_a_driver_the_doors_of_a_gpu_are_not_tried(tmp_path):
    fake(tmp_path, "cupy")
    report = found("--only", "CuPy", fakes=tmp_path)
    assert {door["error"] for door in report["libraries"]["CuPy"]["doors"]} == {"no GPU"}
    assert "libcuda.so.1" in report["cuda"]["reason"]
    assert report["ok"]
