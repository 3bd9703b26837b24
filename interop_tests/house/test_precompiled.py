"""`support.precompiled`: whose compiled stencils a folder may keep."""

import sys

import pytest

from support.optional import library

library("gt4py.cartesian.gtscript")

from support import precompiled  # noqa: E402 (after the skip)


@pytest.fixture
def folder(tmp_path):
    """Return a folder that has compiled programs, and a file of somebody else's."""
    precompiled.keep_folder(tmp_path, tmp_path / "stencils.hpp")
    for cache in (".gt_cache", ".gt4py_cache"):
        (tmp_path / cache).mkdir()
        (tmp_path / cache / "program.so").touch()
    (tmp_path / "notes.txt").touch()
    return tmp_path


def kept(folder):
    """Return the caches of a folder that still have their program."""
    return sorted(one.parent.name for one in folder.glob("*/program.so"))


def test_the_same_versions_and_flags_keep_what_they_have_compiled(folder):
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    assert kept(folder) == [".gt4py_cache", ".gt_cache"]


def test_another_version_of_a_library_finds_no_compiled_program(folder, monkeypatch):
    monkeypatch.setattr(precompiled, "version", lambda name: f"another {name}")
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    names = sorted(one.name for one in folder.iterdir())
    assert names == ["filled_by.txt", "next_filled_by.txt", "notes.txt"]


def test_other_flags_of_stencils_find_programs_of_next_alone(folder, monkeypatch):
    monkeypatch.setenv("GT4PY_EXTRA_COMPILE_OPT_FLAGS", "-O3")
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    assert kept(folder) == [".gt4py_cache"]


def test_another_environment_finds_stencils_alone(folder, monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/another/environment")
    precompiled.keep_folder(folder, folder / "stencils.hpp")
    assert kept(folder) == [".gt_cache"]
