"""`support.precompiled`: whose compiled stencils a folder may keep."""

import pytest

from support.optional import library

library("gt4py.cartesian.gtscript")

from support import precompiled  # noqa: E402 (after the skip)


@pytest.fixture
def folder(tmp_path):
    """Return a folder that has a compiled stencil, and a file of somebody else's."""
    precompiled.keep_folder(tmp_path, tmp_path / "stencils.hpp")
    (tmp_path / ".gt_cache").mkdir()
    (tmp_path / ".gt_cache" / "stencil.so").touch()
    (tmp_path / "notes.txt").touch()
    return tmp_path


def test_the_same_versions_and_flags_keep_what_they_have_compiled(folder):
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    assert (folder / ".gt_cache" / "stencil.so").exists()


def test_another_version_of_a_library_finds_no_compiled_stencil(folder, monkeypatch):
    monkeypatch.setattr(precompiled, "version", lambda name: f"another {name}")
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    assert sorted(one.name for one in folder.iterdir()) == ["filled_by.txt", "notes.txt"]


def test_other_flags_find_no_compiled_stencil(folder, monkeypatch):
    monkeypatch.setenv("GT4PY_EXTRA_COMPILE_OPT_FLAGS", "-O3")
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    assert not (folder / ".gt_cache").exists()
