"""How a storage shows itself in a notebook."""

import re
import xml.etree.ElementTree as ET

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field, LayoutMap


def cells(storage):
    """Read the rows of the table."""
    table = parsed(storage).find(".//table")
    return {row.find("th").text: row.find("td").text or "" for row in table.iter("tr")}


def parsed(storage):
    """Read the text as XML, which it is where all is closed and escaped."""
    return ET.fromstring(storage._repr_html_())


def rectangles(storage):
    """Return the rectangles of the drawing: x, y, width, height."""
    names = ("x", "y", "width", "height")
    return [tuple(float(box.get(name)) for name in names) for box in parsed(storage).iter("rect")]


@pytest.fixture
def field():
    options = {"halo": ((2, 1), (0, 3), 0), "backend": "gt:cpu_ifirst"}
    return dlf.zeros((10, 20, 5), "float32", dims="IJK", **options)


def test_the_shape_is_shown_with_the_names(field):
    assert cells(field)["shape"] == "I 10 x J 20 x K 5"


def test_axes_without_names_are_numbered():
    assert re.search(r"\b0\D+3\b.*\b1\D+4\b", cells(dlf.zeros((3, 4)))["shape"])


def test_the_halo_is_shown_for_both_ends(field):
    assert cells(field)["halo"] == "2+1, 0+3, 0+0"
    assert cells(dlf.zeros((3, 4)))["halo"] == "none"


def test_an_unknown_halo_is_called_unknown(field):
    assert cells(field[::2])["halo"] == "unknown"


@pytest.mark.parametrize(
    ("backend", "order"),
    [
        ("gt:cpu_ifirst", "K → J → I (contiguous)"),
        ("gt:cpu_kfirst", "I → J → K (contiguous)"),
        ("dace:cpu", "K → I → J (contiguous)"),
    ],
)
def test_the_memory_order_ends_with_the_contiguous_dimension(backend, order):
    storage = dlf.zeros((2, 3, 4), dims="IJK", backend=backend)
    assert cells(storage)["memory order"] == order


def test_rows_with_gaps_between_them_are_contiguous_alone():
    padded = dlf.zeros((4, 5), dims="IJ", alignment_size=64)
    for storage in (padded, dlf.zeros((4, 5), dims="IJ")[:, 1:]):
        assert cells(storage)["memory order"] == "I → J (rows contiguous)"
    assert cells(dlf.zeros((1, 5), dims="IJ")[:, 1:])["memory order"] == "I → J (contiguous)"


def test_what_is_not_contiguous_is_not_called_so():
    storage = dlf.zeros((4, 6), dims="IJ")[:, ::2]
    assert "contiguous" not in cells(storage)["memory order"]


def test_dtype_alignment_bytes_and_class_are_shown():
    storage = dlf.zeros((100, 100), "int16", alignment_size=64)
    found = cells(storage)
    assert (found["dtype"], found["alignment"], found["bytes"]) == ("int16", "64 bytes", "20,000")
    assert parsed(storage).find("b").text == "dlfield.CPUStorage"


def test_read_only_memory_is_called_so(field):
    assert "read-only" in cells(dlf.as_storage(b"123"))["memory"]
    assert "read-only" not in cells(field)["memory"]


@pytest.mark.parametrize("name", ["<script>", "a&b", "it's", 'say "x"', "<b>", "]]>"])
def test_names_are_escaped_wherever_they_stand(name):
    storage = dlf.zeros((2, 3), dims=(name, "K"))
    assert name in cells(storage)["shape"]
    assert name in parsed(storage).find(".//svg").get("aria-label")
    assert "<script>" not in storage._repr_html_()


def test_the_two_dimensions_closest_in_memory_are_drawn(field):
    label = parsed(field).find(".//svg/text").text
    assert (label.index("I"), "K" in label) == (0, False)
    assert "J" in label


def test_the_domain_lies_inside_the_halo_where_the_widths_say(field):
    whole, domain = rectangles(field)
    x, y, width, height = whole
    point = width / 10
    assert height == pytest.approx(20 * point, abs=0.1)
    assert domain == pytest.approx(
        (x + 2 * point, y, width - 3 * point, height - 3 * point), abs=0.15
    )


@pytest.mark.parametrize(
    ("shape", "halo"), [((4,), (1,)), ((4, 4), (2, 2)), ((9, 3, 3), (0, 1, 0)), ((2, 2000), (1, 9))]
)
def test_the_domain_never_sticks_out(shape, halo):
    (x, y, width, height), domain = rectangles(dlf.zeros(shape, halo=halo))
    assert domain[0] >= x
    assert domain[1] >= y
    assert domain[0] + domain[2] <= x + width + 0.1
    assert domain[1] + domain[3] <= y + height + 0.1


@pytest.mark.parametrize(
    "shape",
    [
        (3, 4),
        (7,),
        (1000, 3),
    ],
    ids=repr,
)
def test_without_a_halo_the_domain_is_all_there_is(shape):
    whole, domain = rectangles(dlf.zeros(shape))
    assert domain == pytest.approx(whole, abs=0.1)


def test_a_halo_that_fills_the_extent_leaves_a_domain_of_no_width():
    _, domain = rectangles(dlf.zeros((5, 4), halo=(0, 2)))
    assert domain[2] == 0


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0, 2)], ids=repr)
def test_a_field_without_extent_is_described_without_a_drawing(shape):
    storage = dlf.zeros(shape)
    assert rectangles(storage) == []
    assert cells(storage)["bytes"] == str(storage.nbytes)


def test_a_thinned_out_field_is_drawn(field):
    assert rectangles(field[::2])


@pytest.mark.parametrize("shape", [(1,), (1, 10**6), (10**6, 1), (2, 3, 4, 5)], ids=repr)
def test_a_drawing_fits_on_a_page_whatever_the_shape(shape):
    drawing = parsed(dlf.empty(shape, "int8")).find(".//svg")
    assert 0 < float(drawing.get("width")) < 300
    assert 0 < float(drawing.get("height")) < 300


def test_no_element_is_read():
    assert cells(dlf.zeros((1024, 1024, 1024)))["bytes"] == f"{8 << 30:,}"


def test_a_type_that_numpy_lacks_is_named():
    pytest.importorskip("ml_dtypes")
    assert cells(dlf.zeros((2,), "bfloat16"))["dtype"] == "bfloat16"


def test_the_plan_of_a_call_is_a_table_with_a_row_for_each_argument():
    def copy(inp, out, *, origin, domain):
        out[...] = inp

    fields = {"inp": Field[np.float64, "IJ"], "out": Field[np.float64, "IJ"]}
    run = dlf.bind(copy, fields=fields, on_mismatch="copy")
    plan = dlf.explain(run, np.ones((4, 5)), np.ones((4, 5)))
    page = ET.fromstring(plan._repr_html_())
    head, *rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    assert {len(head)} == {len(row) for row in rows}
    assert (head[0], head[-1]) == ("argument", "copy")
    assert [row[:2] for row in rows] == [["inp", "update"], ["out", "update"]]
    assert page.find("b").text.endswith("domain I=4, J=5, K=1, bounds checked")
    for field, row in zip(plan.plan.fields.values(), rows, strict=True):
        assert f"shape {field.given.shape} as IJ" in row
        assert ("not copied" in row) == (field.given.copy is None)


def test_what_is_copied_is_bold_whatever_its_name():
    def copied(inp, copied, *, origin, domain):
        pass

    fields = {"inp": Field[np.float64, "IJ"], "copied": Field[np.float64, "IJ", LayoutMap[1, 0]]}
    run = dlf.bind(copied, fields=fields, on_mismatch="copy")
    page = ET.fromstring(dlf.explain(run, np.ones((4, 5)), np.ones((4, 5)))._repr_html_())
    first, second = ([bold.text for bold in row.iter("b")] for row in page.findall(".//tbody/tr"))
    assert first == []
    assert [text.partition(":")[0] for text in second] == ["copied"]


def test_a_refused_call_is_a_table_of_the_argument_and_the_reason():
    def nothing(inp, *, origin, domain):
        pass

    run = dlf.bind(nothing, fields={"inp": Field[np.float64, "IJ"]})
    page = ET.fromstring(dlf.explain(run, np.ones((4, 5), "float32"))._repr_html_())
    assert page.find("b").text.endswith(": refused")
    name, reason = page.findall(".//tbody/tr/td")
    assert name.find("b").text == "inp"
    assert reason.text.startswith("expected dtype float64, got float32; pass an array of ")


def test_a_call_that_is_refused_for_no_argument_is_shown_with_its_error():
    def nothing(inp, *, origin, domain):
        pass

    run = dlf.bind(nothing, fields={"inp": Field[np.float64, "IJ"]})
    plan = dlf.explain(run)
    page = ET.fromstring(plan._repr_html_())
    assert page.find("div").text == f"{type(plan.refusal).__name__}: {plan.refusal}"


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((2, 3))[:, ::-1],
        lambda: np.zeros(3, ">f4"),
        lambda: [1],
        lambda: dlf.halo_exchange({"<u>": dlf.zeros((4, 4), dims="IJ", halo=(1, 1))}, None),
    ],
    ids=["array", "refused", "none", "halo"],
)
def test_an_explanation_is_a_table_of_what_is_printed(make):
    explanation = dlf.explain(make())
    page = ET.fromstring(explanation._repr_html_())
    rows = [f"  {row.find('th').text}: {row.find('td').text}" for row in page.iter("tr")]
    assert [page.find("b").text, *rows] == str(explanation).split("\n")


def test_an_alignment_of_one_byte_is_none(field):
    assert cells(field)["alignment"] == "any"
