"""Origins and domains of a call: before the array, and by the names of axes."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.stencils.stand_ins import StandIn, field

#: Reads from the next point of I on, as ``out = inp[1, 0, 0]``.
AHEAD = {"inp": field("READ", boundary=((-1, 1), (0, 0), (0, 0))), "out": field("WRITE")}


def arrays(*extents):
    return [np.zeros((extent, 2, 2)) for extent in extents]


def test_an_origin_before_the_array_is_legal_where_nothing_is_read_before_it():
    stencil = StandIn(**AHEAD)
    dlf.bind(stencil)(*arrays(3, 3), origin={"inp": (-1, 0, 0)}, domain=(3, 2, 2))
    assert (stencil.origin, stencil.domain) == ({"inp": (-1, 0, 0), "out": (0, 0, 0)}, (3, 2, 2))


def test_without_domain_all_points_behind_such_an_origin_are_computed():
    stencil = StandIn(**AHEAD)
    dlf.bind(stencil)(*arrays(3, 3), origin={"inp": (-1, 0, 0)})
    assert stencil.domain == (3, 2, 2)


@pytest.mark.parametrize(
    ("origin", "text", "got"),
    [
        (
            {"inp": (-2, 0, 0)},
            "'inp': expected points 1 to 2 along I",
            "got 2 to 5",
        ),
        (
            {"out": (-1, 0, 0)},
            "'out': expected points 0 to 1 along I",
            "got 1 to 4",
        ),
        (
            {"inp": (0, -1, 0)},
            "'inp': expected points 0 to 2 along J",
            "got 1 to 3",
        ),
    ],
)
def test_an_origin_is_refused_where_points_before_the_array_are_touched(origin, text, got):
    with refused(ValueError, text, got, "another origin="):
        dlf.bind(StandIn(**AHEAD))(*arrays(3, 3), origin=origin, domain=(1, 2, 2))


def test_an_empty_dict_of_origins_gives_none():
    stencil = StandIn(inp=field("READ"), out=field("WRITE"))
    dlf.bind(stencil)(*arrays(3, 3), origin={})
    assert stencil.origin == {"inp": (0, 0, 0), "out": (0, 0, 0)}
