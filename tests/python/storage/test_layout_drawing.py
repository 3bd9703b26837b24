"""The drawing of a layout: what it tells, and that it is SVG."""

import re
import xml.etree.ElementTree as ET

import dlfield as dlf
import pytest

SVG = "{http://www.w3.org/2000/svg}"


def drawing(storage, **options):
    return ET.fromstring(storage.plot_layout(**options).svg)


def texts(storage):
    return [text.text for text in drawing(storage).iter(f"{SVG}text")]


def hatched(storage):
    """Return the width of what is hatched, in pixels; None if nothing is."""
    paths = [path.get("d") for path in drawing(storage).iter(f"{SVG}path")]
    found = [re.match(r"M[\d.]+ [\d.]+h([\d.]+)v[\d.]+h-", path) for path in paths]
    widths = [float(match[1]) for match in found if match]
    return widths[0] if widths else None


def test_extents_are_shown_with_the_points_of_the_halo():
    field = dlf.zeros((10, 20, 5), dims="IJK", halo=((2, 1), (0, 3), 0), layout=(2, 1, 0))
    first, _, second = texts(field)
    assert first == "I 10 = 2 + 7 + 1 →, J 20 = 0 + 17 + 3 ↓"
    assert second == "behind it: K 5"


def test_the_colour_of_a_halo_is_explained_where_one_is_drawn():
    assert "grey: halo" in texts(dlf.zeros((4, 4), halo=(0, 1)))
    for none in (dlf.zeros((4, 4)), dlf.zeros((4, 4, 4), halo=(1, 0, 0))):
        assert "grey: halo" not in texts(none)


@pytest.mark.parametrize("shape", [(40,), (3, 400), (400, 3)])
def test_a_narrow_face_has_room_for_an_arrow(shape):
    box = next(drawing(dlf.zeros(shape)).iter(f"{SVG}rect"))
    assert min(float(box.get("width")), float(box.get("height"))) == 20


def test_an_unknown_halo_is_called_so():
    assert "J 4, halo unknown →" in texts(dlf.zeros((6, 4), dims="IJ", halo=(2, 1))[::2])[0]


@pytest.mark.parametrize(("columns", "skipped"), [(8, None), (5, 3), (13, 3)])
def test_memory_between_rows_is_as_wide_as_it_is(columns, skipped):
    field = dlf.zeros((16, columns), dims="IJ", alignment_size=64)
    points = None if skipped is None else skipped * 240 / 16
    assert hatched(field) == (None if points is None else pytest.approx(points, abs=0.1))


def test_the_column_on_the_boundary_is_marked_where_it_is():
    field = dlf.zeros((16, 16), dims="IJ", alignment_size=64, aligned_index=(0, 4))
    (line,) = [path for path in drawing(field).iter(f"{SVG}path") if path.get("stroke-dasharray")]
    assert float(re.match(r"M([\d.]+) ", line.get("d"))[1]) == pytest.approx(1 + 4 * 15)
    assert "┆ on a boundary of 64 bytes" in texts(field)


def test_the_size_is_that_of_the_longer_side():
    for shape in [(4, 8), (8, 4)]:
        box = next(drawing(dlf.zeros(shape), size=100).iter(f"{SVG}rect"))
        assert max(float(box.get("width")), float(box.get("height"))) == 100


def test_lines_and_text_have_the_colour_of_the_page():
    svg = dlf.zeros((3, 4), dims="IJ", halo=(1, 1)).plot_layout().svg
    assert set(re.findall(r"stroke='(.*?)'", svg)) == {"currentColor"}
    assert set(re.findall(r"<text[^>]*fill='(.*?)'", svg)) == {"currentColor"}


def test_a_drawing_is_saved_and_shown(tmp_path):
    made = dlf.zeros((3, 4)).plot_layout()
    made.save(tmp_path / "layout.svg")
    assert (tmp_path / "layout.svg").read_text("utf-8") == made.svg == made._repr_svg_()


def test_a_notebook_has_the_drawing_in_its_page_and_so_in_its_colours():
    made = dlf.zeros((3, 4)).plot_layout()
    assert made._repr_html_().startswith("<svg ")
    assert ET.fromstring(made._repr_html_()).find("rect") is not None
    assert "font-family" not in made._repr_html_()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_a_storage_without_extent_has_no_drawing(shape):
    drawn = dlf.zeros(shape).plot_layout()
    assert (drawn._repr_svg_(), drawn._repr_html_()) == (None, None)


def test_names_are_escaped():
    assert "<K>" in texts(dlf.zeros((3,), dims=("<K>",)))[0]


def test_control_characters_in_names_leave_the_drawing_xml():
    assert "a\\x01\\nb" in texts(dlf.zeros((3,), dims=("a\x01\nb",)))[0]


def test_a_long_name_is_cut_in_the_drawing():
    assert len(dlf.zeros((3,), dims=("x" * 100_000,)).plot_layout().svg) < 2000


@pytest.mark.parametrize("size", [0, -3])
def test_a_drawing_without_extent_is_refused(size):
    with pytest.raises(ValueError, match=rf"size: expected at least 1 pixel, got {size}"):
        dlf.zeros((3,)).plot_layout(size)
