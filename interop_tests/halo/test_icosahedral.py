"""The examples on an icosahedral mesh: the mesh itself, what they compute, and on several ranks."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.optional import library
from support.ranks import is_needed_beside_mpi, started

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
RADIUS = 2.0

icosahedral_mesh = runpy.run_path(str(EXAMPLES / "icosahedral_mesh.py"))["icosahedral_mesh"]


# --- the mesh ------------------------------------------------------------------------------------


@pytest.fixture(params=range(4))
def mesh(request):
    return icosahedral_mesh(request.param, RADIUS)


def test_the_mesh_is_a_closed_surface(mesh):
    cells, edges, vertices = len(mesh.c2e), len(mesh.e2c), len(mesh.v2c)
    assert cells - edges + vertices == 2
    assert 3 * cells == 2 * edges
    np.testing.assert_allclose(mesh.cell_area.sum(), 4 * np.pi * RADIUS**2)
    assert (mesh.cell_area > 0).all()


def test_each_table_of_the_mesh_is_the_other_way_round_of_its_partner(mesh):
    for there, back in ((mesh.c2e, mesh.e2c), (mesh.e2v, mesh.v2e), (mesh.c2v, mesh.v2c)):
        pairs = {(row, int(one)) for row, ones in enumerate(there) for one in ones}
        assert pairs == {
            (int(one), row) for row, ones in enumerate(back) for one in ones if one >= 0
        }


def test_twelve_vertices_have_five_neighbours_and_skip_the_sixth(mesh):
    for table in (mesh.v2e, mesh.v2c):
        skipped = np.flatnonzero((table == -1).any(axis=1))
        assert len(skipped) == 12
        assert (table[skipped, 5] == -1).all()
        assert (table[:, :5] >= 0).all()


def test_the_cells_behind_the_edges_of_a_cell_are_the_others_beside_them(mesh):
    cells = np.arange(len(mesh.c2e))[:, np.newaxis]
    assert (
        np.sort(mesh.e2c[mesh.c2e])
        == np.sort([np.broadcast_to(cells, mesh.c2e2c.shape), mesh.c2e2c], axis=0).transpose(
            1, 2, 0
        )
    ).all()
    assert (mesh.orientation == np.where(mesh.e2c[mesh.c2e, 0] == cells, 1.0, -1.0)).all()


def test_the_line_between_two_centres_crosses_the_edge_at_a_right_angle(mesh):
    edge = mesh.vertex[mesh.e2v[:, 1]] - mesh.vertex[mesh.e2v[:, 0]]
    dual = mesh.cell_center[mesh.e2c[:, 1]] - mesh.cell_center[mesh.e2c[:, 0]]
    np.testing.assert_allclose(np.einsum("ij,ij->i", edge, dual), 0.0, atol=1e-14)


def test_lengths_are_those_of_great_circles(mesh):
    ends = mesh.vertex[mesh.e2v]
    angle = np.arccos(np.einsum("ij,ij->i", ends[:, 0], ends[:, 1]))
    np.testing.assert_allclose(mesh.edge_length, RADIUS * angle)
    centres = mesh.cell_center[mesh.e2c]
    angle = np.arccos(np.einsum("ij,ij->i", centres[:, 0], centres[:, 1]))
    np.testing.assert_allclose(mesh.dual_edge_length, RADIUS * angle)


# --- diffusion -----------------------------------------------------------------------------------


def run(*arguments):
    return subprocess.run(
        [*map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.parametrize("backend", ["embedded", "gtfn_cpu"])
def test_the_example_finds_all_that_it_checks_right(backend):
    for name in ("gt4py.next", "torch", "xarray"):
        library(name)
    done = run(sys.executable, EXAMPLES / "icosahedral.py", "--backend", backend)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall("^checked: ", done.stdout, re.M)) == 6


def test_the_picture_shows_each_cell_before_and_isolines_after(tmp_path, monkeypatch):
    library("matplotlib")
    monkeypatch.syspath_prepend(EXAMPLES)
    mesh, picture = icosahedral_mesh(1), tmp_path / "picture.png"
    at_cells = 288.0 + np.arange(len(mesh.c2e)) / 4
    at_vertices = 288.0 + 8.0 * mesh.vertex[:, 0]
    library("icosahedral_plot").plot(picture, mesh, at_cells, at_cells, at_vertices, 1.5)
    with library("PIL.Image").open(picture) as drawn:
        colours = drawn.convert("RGB").getcolors(10**6)
        with library("PIL.Image").open(ROOT / "docs" / "icosahedral.png") as committed:
            assert drawn.size == committed.size
    assert sum(count > 50 for count, _ in colours) > 40  # of 80 cells half are in front


# --- on several ranks ----------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_find_the_same_as_one_with_halos_by_ghex(ranks):
    for name in ("gt4py.next", "torch", "xarray"):
        library(name)
    is_needed_beside_mpi("ghex")
    program = str(EXAMPLES / "icosahedral_ranks.py")
    done = started(ranks, ["-m", "mpi4py", program], timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"checked: {ranks} ranks find the same as one, bit by bit" in done.stdout
