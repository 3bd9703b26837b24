"""`docs/fortran.md`: what it shows works, as a new user would type it."""

import re
import sys
from pathlib import Path

import pytest

from support.fortran import run, succeeded
from support.optional import library, program

library("gt4py.cartesian.gtscript")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "fortran.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def test_the_first_call_of_the_page_prints_what_it_says(tmp_path):
    program("gfortran")
    (tmp_path / "physics.py").write_text(blocks("python")[0])
    (tmp_path / "main.f90").write_text(blocks("fortran")[0])
    generate, link = blocks("console")[:2]
    python = f"PATH={Path(sys.executable).parent}:$PATH\n"
    commands = re.findall(r"^\$ (.*)$", generate + link, re.M)
    done = run("sh", "-e", "-c", python + "\n".join(commands), folder=tmp_path)
    expected = [line for line in link.splitlines() if not line.startswith("$")]
    assert succeeded(done).splitlines()[-2:] == expected


@pytest.mark.parametrize("option", re.findall(r"^\| `(\w+)=\(", PAGE, re.M))
def test_the_options_of_the_page_are_those_of_the_decorator(option):
    import inspect

    import dlfield as dlf

    assert option in inspect.signature(dlf.fortran.function).parameters
