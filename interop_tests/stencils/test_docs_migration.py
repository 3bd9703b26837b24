"""`docs/migration.md`: its model runs with both imports, and its lines with a Quantity run."""

import re
from pathlib import Path

import dlfield as dlf
import numpy as np
from dlfield import gt4py_storage
from dlfield.annotations import Access, Field

from support import ndsl_double
from support.optional import library
from support.processes import printed_by

library("gt4py.storage")
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "migration.md").read_text("utf-8")
MODEL = (ROOT / "examples" / "recipes" / "migrated.py").read_text("utf-8")


def test_the_model_gives_the_same_with_storages_and_with_arrays_of_gt4py(tmp_path):
    before = MODEL.replace("from dlfield import gt4py_storage as", "from gt4py import")
    assert before != MODEL
    printed = []
    for number, text in enumerate((MODEL, before)):
        program = tmp_path / f"model_{number}.py"
        program.write_text(text, "utf-8")
        printed.append(printed_by(program, folder=tmp_path))
    assert printed[0] == printed[1]
    assert re.fullmatch(
        r"mean 280\.\d{12}, the same bits after the second step: True\n", printed[0]
    )


Input, Output = Field[np.float64, Access["in"]], Field[np.float64]


def diffuse(inp: Input, out: Output, *, origin, domain):
    """Stands for a stencil of a model of NDSL."""
    (i, j, k), (ni, nj, nk) = origin["inp"], domain
    out[i : i + ni, j : j + nj, k : k + nk] = 2 * inp[i : i + ni, j : j + nj, k : k + nk]


def test_the_lines_with_a_quantity_run():
    [block] = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    with ndsl_double.installed():
        t = ndsl_double.Quantity(
            np.ones((6, 7, 5)),
            ("i", "j", "k"),
            "K",
            backend=ndsl_double.Backend("st:numpy:cpu:IJK"),
            origin=(1, 2, 0),
            extent=(4, 4, 5),
        )
        names = {"dlf": dlf, "diffuse": diffuse, "t": t}
        exec(block, names)
    result = names["result"]
    assert (result.dims, result.origin, result.extent) == (t.dims, t.origin, t.extent)
    assert np.asarray(result).sum() == 6 * 7 * 5 + 4 * 4 * 5


def test_functions_are_five():
    assert f"has the {len(gt4py_storage.__all__)} functions".replace("5", "five") in TEXT
