"""The model of `make halo-demo`: every number of ranks writes the same bits."""

import runpy
from pathlib import Path

import numpy as np

from support.optional import library
from support.processes import printed_by
from support.ranks import mpi_is_needed, started

library("gt4py.cartesian.gtscript")
zarr = library("zarr")
pillow = library("PIL.Image")
PROGRAM = str(Path(__file__).resolve().parents[2] / "examples" / "tracer.py")


def result_of(folder):
    assert (folder / "tracer.png").stat().st_size > 1000
    return np.asarray(zarr.open_array(folder / "tracer.zarr", mode="r")[...])


def test_the_picture_shows_less_than_nothing_as_nothing(tmp_path):
    program = runpy.run_path(PROGRAM)
    values = np.zeros(program["SHAPE"])
    values[0, 0], values[10, 10], values[40, 30] = 1.0, -0.01, 0.5
    program["draw"](tmp_path / "tracer.png", [values], [{"I": slice(None), "J": slice(None)}])
    with pillow.open(tmp_path / "tracer.png") as picture:
        shown = np.asarray(picture)[::-4, ::4]
    assert (shown[10, 10] == shown[5, 5]).all()
    assert (shown[30, 40] < shown[5, 5]).all()
    assert (shown[0, 0] == 0).all()


def test_the_model_writes_the_same_bits_on_one_and_on_four_ranks(tmp_path):
    mpi_is_needed()
    options = ["--steps", "30", "--out"]
    printed_by(PROGRAM, *options, tmp_path / "1")
    many = started(4, ["-m", "mpi4py", PROGRAM, *options, str(tmp_path / "4")], timeout=300)
    assert many.returncode == 0, many.stderr
    assert many.stdout.startswith("4 ranks, 30 steps, sum ")
    expected = result_of(tmp_path / "1")
    assert expected.std() > 0.1
    assert result_of(tmp_path / "4").tobytes() == expected.tobytes()
