"""Pictures and tables of dlfield in a notebook are legible, in light and dark.

Those of a pair come from a process of its own, since it has the stand-in for a driver.
"""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field, LayoutMap

from support import processes
from support.cuda import stand_in
from support.notebook import page

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])

PAIR = """
import dlfield as dlf
pair = dlf.zeros((8, 6, 4), dims="IJK", halo=(1, 1, 0), device="gpu", managed="gt4py")
pair.set_device_modified()
print(pair._repr_html_(), pair.plot_layout()._repr_html_(), sep="\\f")
"""


def copied(inp, out, *, origin, domain):
    raise AssertionError("explained, and run")


def padded():
    """Return a field with all that a drawing can have, except a pair."""
    options = {"alignment_size": 64, "aligned_index": (0, 1, 1), "layout": (0, 1, 2)}
    return dlf.zeros((9, 12, 13), "float32", dims="IJK", halo=(0, (2, 3), 1), **options)


def plans():
    """Give plans of calls: one argument is transposed, one copied, one refused."""
    fields = {"inp": Field[np.float64, "IJ"], "out": Field[np.float64, "IJ", LayoutMap[1, 0]]}
    run = dlf.bind(copied, fields=fields, on_mismatch="copy")
    inp = dlf.zeros((5, 4), dims="JI")
    return [dlf.explain(run, inp, np.zeros((4, 5))), dlf.explain(run, inp, np.zeros((4, 5), "f4"))]


def outputs():
    """Return what a notebook shows of all of them."""
    field, thin = padded(), dlf.zeros((3, 400), dims=("lev", "cell"))
    shown = [one._repr_html_() for one in (field, thin, *plans(), dlf.explain(np.zeros(3)[::-1]))]
    return [*shown, *(one.plot_layout()._repr_html_() for one in (field, thin, dlf.zeros((40,))))]


@pytest.fixture(scope="session")
def all_outputs():
    done = stand_in.end_of(PAIR)
    processes.expect_success(done, PAIR)
    return [*outputs(), *done.stdout.split("\f")]


@SCHEMES
def test_texts_and_lines_stand_out(tab, all_outputs, scheme):
    tab.show(page(scheme, all_outputs))
    assert tab.faint() == []
    assert tab.complaints == []


def test_no_text_of_a_drawing_is_cut_off(tab, all_outputs):
    tab.show(page("light", all_outputs))
    assert tab.cut_off() == []


def test_outputs_are_no_wider_than_a_phone(tab, all_outputs):
    tab.set_width(390)
    tab.show(page("light", all_outputs))
    assert tab.overflow() == 0
