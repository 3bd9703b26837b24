"""`docs/frameworks.md`: each example prints what is shown, and is linked from the top."""

import contextlib
import gc
import io
import re
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import pytest
from dlfield._core import live_allocations

from support.optional import library

DOCS, PAGE = Path(__file__).resolve().parents[2] / "docs", "frameworks.md"
TEXT = (DOCS / PAGE).read_text("utf-8")
BEGINNING, *SECTIONS = re.split(r"^## ", TEXT, flags=re.M)
EXAMPLES = {section.partition("\n")[0]: section for section in SECTIONS}
#: What a section needs; CuPy needs a GPU too, and its example runs in `tests/gpu/interop`.
NEEDS = {
    "NumPy": (),
    "PyTorch": ("torch",),
    "JAX": ("jax",),
    "xarray": ("xarray",),
    "Dask": ("xarray", "dask.array"),
    "pyarrow": ("pyarrow",),
    "polars": ("polars",),
    "Numba": ("numba",),
    "tvm-ffi": ("tvm_ffi",),
    "nanobind": ("nanobind",),
}


def blocks(text, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def pattern(expected):
    """Make a pattern of a line in which three dots stand for anything."""
    return ".*".join(re.escape(part) for part in expected.split("..."))


def run(block, file, names):
    file.write_text(block, "utf-8")  # GT4Py reads a definition from its file
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, file, "exec"), names)
    expected = re.findall(r"^# -> (.*)$", block, re.M)
    assert re.fullmatch("\n".join(map(pattern, expected)), printed.getvalue().strip())


@pytest.fixture(scope="module")
def beginning(tmp_path_factory):
    """The names that the examples share."""
    library("gt4py.cartesian.gtscript")
    module = types.ModuleType("docs_frameworks")
    file = tmp_path_factory.mktemp("beginning") / "beginning.py"
    module.__file__ = str(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        [block] = blocks(BEGINNING)
        run(block, file, vars(module))
        yield vars(module)


@pytest.fixture
def physics(tmp_path, monkeypatch):
    """Compile the C++ of the page as it stands there, to be imported by its name."""
    nanobind = library("nanobind")
    [source] = blocks(EXAMPLES["nanobind"], "cpp")
    (tmp_path / "physics.cpp").write_text(source, "utf-8")
    sources = Path(nanobind.source_dir())
    headers = sources.parent / "ext" / "robin_map" / "include"
    includes = (nanobind.include_dir(), headers, sysconfig.get_path("include"))
    made = tmp_path / f"physics{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden"]
    command += ["-fno-strict-aliasing", *(f"-I{folder}" for folder in includes)]
    command += [tmp_path / "physics.cpp", sources / "nb_combined.cpp", "-o", made]
    subprocess.run(command, check=True)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("physics", None)


@pytest.fixture
def small_floats():
    """Let JAX convert float64 to float32, as it does by default."""
    config = library("jax").config
    config.update("jax_enable_x64", False)  # noqa: FBT003 (JAX takes the value by position)
    yield
    config.update("jax_enable_x64", True)  # noqa: FBT003


@pytest.fixture
def nothing_left():
    """All memory is given back, whichever libraries have had it."""
    gc.collect()
    before = live_allocations()
    yield
    gc.collect()
    assert live_allocations() == before


BEFORE = {"JAX": "small_floats", "nanobind": "physics"}


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.filterwarnings("error::dlfield.MemoryCopyWarning")
@pytest.mark.parametrize("name", NEEDS)
def test_an_example_prints_what_it_says(name, beginning, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)  # where an example writes its file
    for needed in NEEDS[name]:
        library(needed)
    if name in BEFORE:
        request.getfixturevalue(BEFORE[name])
    names = dict(beginning)
    examples = blocks(EXAMPLES[name])
    assert examples
    for number, block in enumerate(examples):
        run(block, tmp_path / f"block_{number}.py", names)
    names.clear()  # Numba and tvm-ffi keep a function, and its globals with it


def test_each_framework_has_its_example_and_is_named_at_the_top():
    assert set(EXAMPLES) == {*NEEDS, "CuPy"}
    assert re.findall(r"\[([\w-]+)\]\(#", BEGINNING) == list(EXAMPLES)


def test_each_example_shows_that_nothing_is_copied():
    proofs = r"shares_memory|data_ptr\(\) ==|unsafe_buffer_pointer\(\) ==|data\.ptr =="
    assert [name for name, text in EXAMPLES.items() if not re.search(proofs, text)] == []


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([\w.]*(?:#[\w-]+)?)\)", TEXT))))
def test_a_link_leads_somewhere(link):
    page, _, anchor = link.partition("#")
    headings = re.findall(r"^#+ (.*)$", (DOCS / (page or PAGE)).read_text("utf-8"), re.M)
    anchors = [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]
    assert not anchor or anchor in anchors
