"""`docs/recipes.md`: every program runs as it stands."""

import re
from pathlib import Path

import pytest

from support.optional import library
from support.processes import printed_by

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "recipes.md").read_text("utf-8")
PROGRAMS = {
    f"{title} {number}": program
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)
    for number, program in enumerate(re.findall(r"^```python\n(.*?)^```", body, re.M | re.S), 1)
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_the_program_runs(title, tmp_path):
    program = PROGRAMS[title]
    for name in re.findall(r"^(?:from|import) (xarray|torch|jax)", program, re.M):
        library(name)
    if "to_netcdf" in program:
        library("netCDF4")
    printed_by("-W", "error::ResourceWarning", "-c", program, folder=tmp_path)


def test_every_section_has_a_program():
    titles = re.findall(r"^## (.*)$", TEXT, re.M)
    assert titles == list(dict.fromkeys(title.rpartition(" ")[0] for title in PROGRAMS))
