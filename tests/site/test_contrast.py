"""What the tests of pages call hard to read."""

import pytest

PAGE = """
<style>
  body { background: #fff; color: #666 }
  @media (prefers-color-scheme: dark) { body { background: #000; color: SHOWN } }
</style>
<p>text</p>
"""


@pytest.mark.parametrize(("shown", "faint"), [("#999", False), ("#666", True)])
def test_a_text_is_compared_with_the_background_of_its_page(tab, shown, faint):
    tab.show(PAGE.replace("SHOWN", shown))
    assert tab.faint() == []
    tab.set_scheme("dark")
    assert bool(tab.faint()) == faint


def test_a_text_in_a_drawing_is_compared_with_what_is_drawn_behind_it(tab):
    box = "<rect width='90' height='40' fill='{}'/>"
    text = "<text x='10' y='20' fill='#000'>text</text>"
    for drawn, faint in [
        (box.format("#222") + text, True),
        (box.format("#ddd") + text, False),
        (text + box.format("#222"), False),
        (box.format("#222' transform='translate(0 90)") + text, False),
    ]:
        tab.show(f"<body style='background: #fff'><svg height='200'>{drawn}</svg>")
        assert bool(tab.faint()) == faint


def test_what_shows_through_is_part_of_the_colour(tab):
    tab.show("<body style='background: #fff'><p style='color: #000; opacity: 0.3'>text</p>")
    assert len(tab.faint()) == 1


@pytest.mark.parametrize(("opacity", "faint"), [(0.6, False), (0.3, True)])
def test_a_line_of_a_drawing_is_compared_as_a_text_is(tab, opacity, faint):
    line = f"<path d='M0 5h90' fill='none' stroke='#000' stroke-opacity='{opacity}'/>"
    tab.show(f"<body style='background: #fff'><svg>{line}</svg>")
    assert bool(tab.faint()) == faint


def test_a_text_that_sticks_out_of_its_drawing_is_cut_off(tab):
    tab.show("<svg width='40' height='20'><text y='12'>far too long</text></svg>")
    assert tab.cut_off() == ["far too long"]
    tab.show("<svg width='400' height='20'><text y='12'>not too long</text></svg>")
    assert tab.cut_off() == []
