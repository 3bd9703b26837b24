"""Where a bound stencil starts in each field, and how far it goes."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.stencils.recorder import Recorder


@pytest.fixture
def split(compiled):
    """`split` reads `inp` and writes `left` and `right`; it reaches nowhere beside its domain."""
    return Recorder(compiled("split", "numpy"))


@pytest.fixture
def mixed(compiled):
    return Recorder(compiled("mixed", "numpy"))


def call(recorder, **arguments):
    """Run, and return what the stencil was given."""
    dlf.bind(recorder)(**arguments)
    return recorder.calls[-1]


def plain(*shape):
    return np.zeros(shape)


@pytest.mark.source("GDP-3", "Data Interface", "the domain of a call is computed from the halos")
def test_halos_alone_give_origin_and_domain(split):
    fields = {name: dlf.zeros((8, 9, 4), halo=(2, 3, 0)) for name in ("inp", "left", "right")}
    called = call(split, **fields)
    assert called.domain == (4, 3, 4)
    assert called.origin == dict.fromkeys(fields, (2, 3, 0))


def test_halos_may_differ_where_the_points_between_agree(split):
    called = call(
        split,
        inp=dlf.zeros((8, 9, 5), halo=((3, 1), 3, (1, 0))),
        left=dlf.zeros((4, 3, 6), halo=(0, 0, (0, 2))),
        right=dlf.zeros((6, 5, 4), halo=(1, 1, 0)),
    )
    assert called.domain == (4, 3, 4)
    assert called.origin == {"inp": (3, 3, 1), "left": (0, 0, 0), "right": (1, 1, 0)}


def test_a_halo_follows_its_dimension_by_name(split):
    fields = {
        "inp": dlf.zeros((4, 9, 8), dims="KJI", halo=(0, (3, 1), (2, 0))),
        "left": plain(6, 5, 4),
        "right": plain(6, 5, 4),
    }
    called = call(split, **fields)
    assert called.domain == (6, 5, 4)
    assert called.origin["inp"] == (2, 3, 0)


def test_a_plain_array_of_the_domains_shape_starts_at_its_first_point(split):
    halo = dlf.zeros((8, 9, 4), halo=(2, 3, 0))
    called = call(split, inp=plain(4, 3, 4), left=halo, right=plain(4, 3, 4))
    assert called.origin == {"inp": (0, 0, 0), "left": (2, 3, 0), "right": (0, 0, 0)}


def test_a_plain_array_of_the_whole_shape_starts_after_the_lower_halo(split):
    halo = dlf.zeros((8, 9, 4), halo=((3, 1), 3, 0))
    called = call(split, inp=plain(8, 9, 4), left=halo, right=plain(8, 9, 4))
    assert called.domain == (4, 3, 4)
    assert called.origin == dict.fromkeys(("inp", "left", "right"), (3, 3, 0))


def test_the_view_inside_a_halo_starts_at_its_first_point(split):
    out = dlf.zeros((8, 9, 4), halo=(2, 3, 0))
    inp = dlf.zeros((8, 9, 4), halo=(2, 3, 0))
    called = call(split, inp=inp, left=out.domain_view, right=plain(4, 3, 4))
    assert called.domain == (4, 3, 4)
    assert called.origin == {"inp": (2, 3, 0), "left": (0, 0, 0), "right": (0, 0, 0)}


def test_without_any_halo_the_domain_is_the_largest_that_fits(split):
    called = call(split, inp=plain(5, 6, 4), left=plain(4, 6, 9), right=plain(5, 5, 4))
    assert called.domain == (4, 5, 4)
    assert called.origin == dict.fromkeys(("inp", "left", "right"), (0, 0, 0))


@pytest.mark.parametrize("name", ["skewed", "ahead", "cumulate", "lowest"])
@pytest.mark.parametrize("shape", [(5, 6, 4), (4, 6, 9), (9, 5, 3)])
def test_without_any_halo_the_domain_is_what_gt4py_itself_takes(compiled, name, shape):
    stencil, inp = compiled(name, "numpy"), np.random.default_rng(seed=0).random((6, 7, 5))
    ours, theirs = np.zeros(shape), np.zeros(shape)
    stencil(inp, theirs, origin=(0, 2, 0))
    dlf.bind(stencil)(inp, ours, origin=(0, 2, 0))
    assert theirs.any()
    assert np.array_equal(ours, theirs)


def test_an_origin_for_all_fields_wins_over_their_halos(split):
    fields = {name: dlf.zeros((8, 9, 4), halo=(2, 3, 0)) for name in ("inp", "left", "right")}
    called = call(split, **fields, origin=(1, 0, 0), domain=(2, 3, 4))
    assert called.origin == dict.fromkeys(fields, (1, 0, 0))


def test_a_field_without_an_origin_of_its_own_keeps_that_of_its_halo(split):
    fields = {name: dlf.zeros((8, 9, 4), halo=(2, 3, 0)) for name in ("inp", "left", "right")}
    called = call(split, **fields, origin={"inp": (1, 0, 0)}, domain=(4, 3, 4))
    assert called.origin == {"inp": (1, 0, 0), "left": (2, 3, 0), "right": (2, 3, 0)}


def test_a_field_without_an_origin_of_its_own_takes_that_of_all(split):
    fields = {name: plain(5, 6, 4) for name in ("inp", "left", "right")}
    called = call(split, **fields, origin={"_all_": (1, 1, 1), "left": (0, 2, 0)})
    assert called.origin == {"inp": (1, 1, 1), "left": (0, 2, 0), "right": (1, 1, 1)}
    assert called.domain == (4, 4, 3)


def test_a_domain_of_the_callers_leaves_the_origins_of_the_halos(split):
    fields = {name: dlf.zeros((8, 9, 4), halo=(2, 3, 0)) for name in ("inp", "left", "right")}
    called = call(split, **fields, domain=(2, 1, 3))
    assert called.domain == (2, 1, 3)
    assert called.origin == dict.fromkeys(fields, (2, 3, 0))


@pytest.mark.parametrize("kind", [list, np.array, tuple])
def test_origin_and_domain_may_be_any_sequence_of_ints(split, kind):
    fields = {name: plain(5, 6, 4) for name in ("inp", "left", "right")}
    called = call(split, **fields, origin=kind((1, 1, 1)), domain=kind((2, 2, 2)))
    assert called.domain == (2, 2, 2)
    assert called.origin["inp"] == (1, 1, 1)


def test_an_origin_along_three_axes_gives_each_field_the_axes_it_has(mixed):
    called = call(
        mixed,
        field=plain(5, 6, 4),
        plane=plain(5, 6),
        profile=plain(4),
        pair=plain(5, 6, 4, 2),
        scale=1.0,
        origin=(1, 2, 3),
    )
    assert called.domain == (4, 4, 1)
    assert called.origin["plane"] == (1, 2)
    assert called.origin["profile"] == (3,)
    assert called.origin["pair"][:3] == (1, 2, 3)


def test_an_origin_of_a_plane_or_column_counts_its_own_axes(mixed):
    called = call(
        mixed,
        field=plain(2, 2, 2),
        plane=plain(5, 6),
        profile=plain(4),
        pair=plain(2, 2, 2, 2),
        scale=1.0,
        origin={"plane": (3, 4), "profile": (2,)},
    )
    assert called.domain == (2, 2, 2)
    assert (called.origin["plane"], called.origin["profile"]) == ((3, 4), (2,))


def test_the_halo_of_a_plane_gives_the_domain_along_its_axes(mixed):
    called = call(
        mixed,
        field=plain(4, 3, 2),
        plane=dlf.zeros((6, 7), halo=(1, 2)),
        profile=plain(2),
        pair=plain(6, 7, 2, 2),
        scale=1.0,
    )
    assert called.domain == (4, 3, 2)
    assert (called.origin["plane"], called.origin["pair"][:3]) == ((1, 2), (1, 2, 0))


def test_a_data_dimension_has_no_part_in_the_domain(mixed):
    called = call(
        mixed,
        field=plain(5, 6, 4),
        plane=plain(5, 6),
        profile=plain(4),
        pair=dlf.zeros((7, 8, 4, 2), halo=(1, 1, 0, 0)),
        scale=1.0,
    )
    assert called.domain == (5, 6, 4)
    assert called.origin["pair"][:3] == (1, 1, 0)


def test_an_unused_field_has_no_part_in_the_domain(mixed):
    called = call(
        mixed,
        field=plain(5, 6, 4),
        plane=plain(5, 6),
        profile=plain(4),
        pair=plain(5, 6, 4, 2),
        spare=plain(1, 1, 1),
        scale=1.0,
    )
    assert called.domain == (5, 6, 4)


def test_exec_info_gets_the_same_origin_and_domain(split):
    fields = {name: dlf.zeros((8, 9, 4), halo=(2, 3, 0)) for name in ("inp", "left", "right")}
    info = {}
    called = call(split, **fields, exec_info=info)
    assert called.exec_info is info
    assert (called.domain, called.origin["inp"]) == ((4, 3, 4), (2, 3, 0))


class Placed(np.ndarray):
    """An array that says where its domain begins."""

    __gt_origin__ = (2, 1, 0)


@pytest.mark.source("Allocation note", "Default Origin", "`default_origin` is the origin of a call")
def test_an_origin_that_the_array_names_counts_as_in_gt4py(split):
    fields = {name: plain(8, 9, 4).view(Placed) for name in ("inp", "left", "right")}
    called = call(split, **fields)
    assert called.origin == dict.fromkeys(fields, (2, 1, 0))
    assert called.domain == (6, 8, 4)


@pytest.mark.source(
    "Allocation note", "Default Origin", "`origin=` of a call overrides `default_origin`"
)
def test_an_origin_of_the_call_wins_over_one_that_the_array_names(split):
    fields = {name: plain(8, 9, 4).view(Placed) for name in ("inp", "left", "right")}
    called = call(split, **fields, origin=(0, 0, 0))
    assert called.origin == dict.fromkeys(fields, (0, 0, 0))


def test_a_field_that_is_only_read_ahead_may_begin_behind_the_domain(compiled, backend):
    run, out, inp = dlf.bind(compiled("ahead", backend)), plain(1, 1, 1), np.ones((2, 1, 2))
    run(inp, out, origin={"inp": (-1, 0, 0)})
    assert out == 2.0
    with refused(ValueError, "argument 'inp': expected points 1 to 3 along I", "got 2 to 4"):
        run(inp, out, origin={"inp": (-2, 0, 0)}, domain=(1, 1, 1))
