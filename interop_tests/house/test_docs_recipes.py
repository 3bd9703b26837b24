"""`docs/recipes`: each program runs and says what it should, and each page shows its program."""

import re
import subprocess
from pathlib import Path

import pytest

from support.optional import library, program
from support.processes import printed_by

ROOT = Path(__file__).resolve().parents[2]
DOCS, PROGRAMS = ROOT / "docs", ROOT / "examples" / "recipes"
PAGES = {page.stem: page.read_text("utf-8") for page in (DOCS / "recipes").glob("*.md")}
GALLERY = (DOCS / "gallery.md").read_text("utf-8")
SAME = "the same bits True, dims ('I', 'J', 'K'), halo ((1, 1), (1, 1), (0, 0))"
#: What a program needs, and a pattern of each line that it prints.
PRINTED = {
    "assimilate": (
        ["torch", "jax"],
        [
            r"torch: relative error of the state 0\.0[234]\d",
            r"JAX: relative error of the state 0\.0[234]\d",
        ],
    ),
    "checkpoint": (
        ["xarray", "netCDF4", "zarr"],
        [rf"through_{kind}: {re.escape(SAME)}" for kind in ("netcdf", "zarr", "npz", "pickle")],
    ),
    "chunked": (
        ["xarray", "dask.array"],
        [r"{'lat': 48, 'lon': 96, 'level': 20}, the same bits as in one chunk: True"],
    ),
    "emulator": (
        ["torch"],
        [
            "the gradient is right: True",
            r"loss 0\.5\d? before, [\d.]+e-0[5-9] after; largest error 0\.0\d+",
            r"argument 't': .*, got requires_grad=True; to train, .* leaves the gradient out",
        ],
    ),
    "granule": (
        ["gt4py.next", "xarray"],
        [
            r"\('ncells', 'height'\) 290\.0 290\.0",
            "argument 'theta': expected points 0 to 6 along Cell, which 'relax' reads, got .*",
        ],
    ),
    "layout": (
        [],
        [
            r"argument 't': expected memory in the order \('I', 'J', 'K'\), .*",
            "",
            "ndarray: shared through .*",
            "(  .*\n)+",
            r"strides \(8, 320, 15360\) before, \(4608, 96, 8\) after; halo .*",
        ],
    ),
    "physics": (
        ["xarray"],
        [
            r"\('column', 'J', 'K'\) \[0\.5 1\.  1\.5 2\.  2\.5\]",
            "argument 'in_q': expected points 0 to 9 along I, which 'saturated' reads, got 0 to 8",
        ],
    ),
    "learn": (
        ["torch", "jax"],
        [
            r"torch: largest error of the coefficient \d\.\de-0[5-9]",
            r"JAX: largest error of the coefficient \d\.\de-0[5-9]",
        ],
    ),
    "shared_memory": ([], [r"exit status 0: 281\.5 in the domain, 280\.0 in the halo"]),
    "with_jax": (
        ["jax"],
        [
            r"dims \('I', 'J', 'K'\), halo \(\(1, 1\), \(1, 1\), \(0, 0\)\), mean 0\.\d+",
            "the same bits inside of jit: True",
        ],
    ),
}
#: Programs that compute for long, with the functions whose results the gallery draws.
DRAWN = {
    "assimilate": ["find_in_torch", "find_in_jax"],
    "learn": ["learn_in_torch", "learn_in_jax"],
}
#: Runs them, and draws the gallery of the same results.
ONCE = f"""
import functools, pathlib, sys
sys.path.insert(0, sys.argv[1])
import gallery
for name, functions in {DRAWN}.items():
    module = getattr(gallery, name)
    for one in functions:
        setattr(module, one, functools.cache(getattr(module, one)))
    print("\\n==", name)
    module.main()
gallery.main(pathlib.Path())
"""
STRICT = ("-W", "error::ResourceWarning", "-W", "error::UserWarning")
STRICT += ("-W", "ignore:Field View Program:UserWarning")  # GT4Py's advice about speed
#: Programs that tests of their own run.
ELSEWHERE = {"cupy_pool", "fortran", "gallery", "migrated"}


@pytest.mark.parametrize("name", sorted(PRINTED.keys() - DRAWN.keys()))
def test_a_program_prints_what_it_should(name, tmp_path):
    assert re.fullmatch("\n".join(PRINTED[name][1]), printed_by_recipe(name, tmp_path).strip())


@pytest.mark.parametrize("name", DRAWN)
def test_a_program_whose_results_are_drawn_prints_what_it_should(name, drawn):
    printed = drawn[1].partition(f"\n== {name}\n")[2].partition("\n== ")[0]
    assert re.fullmatch("\n".join(PRINTED[name][1]), printed.strip())


def printed_by_recipe(name, folder):
    library("gt4py.cartesian.gtscript")
    for needed in PRINTED[name][0]:
        library(needed)
    return printed_by(*STRICT, PROGRAMS / f"{name}.py", folder=folder)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return a folder with the plots of the gallery, and what the programs have printed."""
    for needed in ("gt4py.cartesian.gtscript", "matplotlib", "torch", "jax", "xarray"):
        library(needed)
    library("dask.array")
    folder = tmp_path_factory.mktemp("gallery")
    program = folder / "once.py"
    program.write_text(ONCE, encoding="utf-8")
    return folder, printed_by(*STRICT, program, PROGRAMS, folder=folder)


def test_every_program_is_run_and_shown():
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {*PRINTED, *ELSEWHERE}
    shown = "".join([*PAGES.values(), GALLERY, (DOCS / "migration.md").read_text("utf-8")])
    files = [path.name for path in PROGRAMS.iterdir() if path.is_file()]
    assert [name for name in files if f"recipes/{name})" not in shown] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_program_and_says_what_is_copied(page):
    assert "```{literalinclude} ../../examples/" in PAGES[page]
    assert "**Copies.** " in PAGES[page]
    assert "**Traps**\n\n- " in PAGES[page]


@pytest.mark.parametrize("page", PAGES)
def test_the_index_leads_to_a_page(page):
    index = (DOCS / "recipes.md").read_text("utf-8")
    assert f"(recipes/{page}.md)" in index
    assert f"\nrecipes/{page}\n" in index


# --- pictures ------------------------------------------------------------------------------------


def test_the_drawings_of_layouts_are_up_to_date(tmp_path):
    printed_by_recipe("layout", tmp_path)
    for picture in ("slow.svg", "fast.svg"):
        drawn = (tmp_path / picture).read_text("utf-8")
        assert drawn == (DOCS / "gallery" / picture).read_text("utf-8"), "run `make gallery`"


def test_the_plots_of_the_gallery_are_drawn_again(drawn):
    pillow = library("PIL.Image")
    for name in ("assimilate.png", "chunked.png", "emulator.png", "learn.png"):
        with pillow.open(drawn[0] / name) as again, pillow.open(DOCS / "gallery" / name) as shown:
            assert again.size == shown.size
            assert len(again.convert("RGB").getcolors(10**6)) > 20


def test_the_gallery_shows_every_picture_which_is_small():
    pictures = [path.name for path in (DOCS / "gallery").iterdir()]
    assert [name for name in pictures if f"](gallery/{name})" not in GALLERY] == []
    assert max(path.stat().st_size for path in (DOCS / "gallery").iterdir()) < 100_000


def test_the_gallery_leads_to_a_recipe_from_each_picture():
    sections = GALLERY.split("\n## ")[1:]
    assert [one.partition("\n")[0] for one in sections if "](recipes/" not in one] == []


# --- Fortran -------------------------------------------------------------------------------------


def test_fortran_and_python_share_their_fields(tmp_path):
    library("gt4py.cartesian.gtscript")
    compiler, model = program("gfortran"), tmp_path / "libmodel.so"
    options = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", model]
    command = [compiler, *options, PROGRAMS / "fortran.f90"]
    subprocess.run(command, check=True, cwd=tmp_path)
    strict = ("-W", "error::UserWarning")
    printed = printed_by(*strict, PROGRAMS / "fortran.py", model, folder=tmp_path)
    assert printed.splitlines() == [
        "of the model: 281.0 in the domain, 279.5 in the halo, 281.5 above",
        "of dlfield: 299.5 below, 300.0 above",
    ]
