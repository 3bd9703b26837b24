"""What a plan or a block is given on one rank: memory, names, widths, and how errors name it."""

import warnings
from dataclasses import dataclass

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import dim_names, first_sharing
from dlfield.halo import decomposition


@dataclass(frozen=True)
class Dimension:
    """Stand for a dimension of gt4py.next."""

    value: str

    def __str__(self):
        return f"{self.value}[horizontal]"


ROW, COLUMN = Dimension("I"), Dimension("J")


def row(points=6):
    return dlf.zeros((points,), dims="I", halo=(1,))


def over(array):
    return dlf.as_storage(array, dims="I", halo=(1,))


def test_fields_whose_memory_overlaps_are_refused_by_name():
    array = np.zeros(9)
    for other in (array[3:], array[5:], array[8:2:-1], array[1::3]):
        with pytest.raises(ValueError, match="field 'v': expected memory of its own, got that of"):
            dlf.halo_exchange({"u": over(array[:6]), "v": over(other)}, None, dims="I")


def test_fields_that_interleave_or_lie_side_by_side_are_exchanged():
    both = np.zeros(6, complex)
    parts = {"re": over(both.real), "im": over(both.imag)}
    both[1:-1] = [1, 2j, 3, 4j]
    dlf.halo_exchange(parts, None, dims="I").exchange()
    assert both.tolist() == [4j, 1, 2j, 3, 4j, 1]
    array = np.arange(12.0)
    dlf.halo_exchange([over(array[:6]), over(array[6:])], None, dims="I").exchange()
    assert array.tolist() == [4, 1, 2, 3, 4, 1, 10, 7, 8, 9, 10, 7]


def test_a_field_without_elements_shares_none():
    u = row()
    empty = u[0:0]
    empty.halo = (0,)
    dlf.halo_exchange({"u": u, "empty": empty}, None, dims="I").exchange()
    assert first_sharing([u, empty, row(), u[5:]]) == (0, 3)
    assert first_sharing([]) is None


def test_other_fields_that_share_memory_are_refused_by_name_and_nothing_is_written():
    plan, a = dlf.halo_exchange({"u": row(), "v": row()}, None, dims="I"), row()
    a[...] = np.arange(6.0)
    for other in (a, over(a.to_numpy()[::-1])):
        with pytest.raises(ValueError, match="field 'v': expected memory of its own, got that of"):
            plan.exchange(a, other)
    assert a.to_numpy().tolist() == [0, 1, 2, 3, 4, 5]
    plan.exchange(a, row())


def test_dimensions_of_gt4py_name_what_is_exchanged():
    u = dlf.zeros((4, 5), dims=(ROW, COLUMN), halo={ROW: 1, COLUMN: 1})
    u.domain_view[...] = [[1, 2, 3], [4, 5, 6]]
    dlf.halo_exchange([u], None, dims=(ROW, COLUMN), width={ROW: 1, COLUMN: (0, 1)}).exchange()
    assert u.to_numpy()[:, 1:].tolist() == [[4, 5, 6, 4], [1, 2, 3, 1], [4, 5, 6, 4], [1, 2, 3, 1]]
    shared = dlf.halo_exchange([row()], None, dims=[ROW], shared={ROW: 1})
    assert shared._route.fields[0].description()["field '0': shared"] == (("I", 1),)


def test_a_grid_with_dimensions_of_gt4py_is_the_one_with_their_names():
    made = dlf.halo.decompose((6, 5), None, (ROW, COLUMN), halo={ROW: 1}, periodic={COLUMN: True})
    named = dlf.halo.decompose((6, 5), None, "IJ", halo={"I": 1}, periodic={"J": True})
    assert (made.dims, made.divided, made.halo, made.cart) == (
        named.dims,
        named.divided,
        named.halo,
        named.cart,
    )
    assert made.zeros(dims=(COLUMN, ROW)).dims == ("J", "I")


def test_names_that_are_none_are_refused_with_the_argument():
    assert dim_names((ROW, "lat", np.str_("J"))) == ("I", "lat", "J")
    with pytest.raises(TypeError, match="width: expected names, got 1"):
        dim_names((1,), "width")
    with pytest.raises(TypeError, match=r"dims: expected a sequence of names .*, got 'NoneType'"):
        dlf.halo_exchange([row()], None, dims=None)


def test_a_plan_with_a_width_of_nothing_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dlf.halo_exchange([row()], None, dims="I", width={"I": 0})


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        (
            {"periodic": {"I": True, "K": True}},
            ValueError,
            r"periodic: expected a dimension that is divided, one of \('I', 'J'\), got 'K'; name",
        ),
        ({"periodic": (False, False, True)}, ValueError, "that is divided, .*, got 'K'"),
        ({"dims": "IJI"}, ValueError, r"dims: expected a different name .*, got \('I', 'J', 'I'\)"),
        ({"shape": (6, 5, -4)}, ValueError, "shape: expected at least 0 points along K, got -4"),
        ({"halo": {"I": 1.0}}, TypeError, "halo: expected an int or a pair of ints along I, got 1"),
        ({"halo": {"I": (1,)}}, TypeError, r"a pair of ints along I, got \(1,\)"),
        ({"halo": {"I": (1, None)}}, TypeError, r"a pair of ints along I, got \(1, None\)"),
        ({"halo": {1: 1}}, TypeError, "halo: expected names, got 1"),
    ],
)
def test_a_grid_that_would_be_another_one_is_refused(options, kind, text):
    arguments = {"shape": (6, 5, 4), "comm": None, "dims": "IJK"} | options
    with pytest.raises(kind, match=text):
        dlf.halo.decompose(**arguments)


class Ranks:
    """Stand for a communicator of some ranks, of which only the size counts."""

    def __init__(self, size):
        self.size = size


@pytest.mark.parametrize(
    ("shape", "size", "halo", "parts"),
    [
        ((5, 4), 2, ((3, 3), (0, 0)), (1, 2)),
        ((5, 4), 2, ((0, 0), (0, 0)), (2, 1)),
        ((5, 4), 2, ((3, 3), (3, 0)), (2, 1)),  # neither way is wide enough
        ((12, 12), 4, ((0, 7), (0, 0)), (1, 4)),
    ],
)
def test_blocks_are_as_wide_as_the_halo_if_there_is_a_way(shape, size, halo, parts):
    assert decomposition._parts(shape, Ranks(size), halo) == parts


def test_a_field_of_a_block_has_no_halo_of_its_own():
    block = dlf.halo.decompose((4, 6), None, "IJ", halo={"I": 1})
    with pytest.raises(ValueError, match=r"halo: expected none, .*, got \(2, 2\); leave it out"):
        block.zeros(halo=(2, 2))


def test_errors_of_a_plan_say_what_to_pass_instead():
    block = dlf.halo.decompose((4,), None, "I", (1,), (True,))
    with pytest.raises(TypeError, match=r"got Block; pass its `cart`, with `dims=block.divided`"):
        dlf.halo_exchange([row()], block, dims="I")
    with pytest.raises(ValueError, match="shared: expected a dict by the names of dimensions, got"):
        dlf.halo_exchange([row()], None, dims="I", shared=1)
    plan = dlf.halo_exchange({"u": row()}, None, dims="I")
    way_out = r"pass dlf.as_storage\(array, dims=\('I',\), halo=\(\(1, 1\),\)\)"
    with pytest.raises(ValueError, match=way_out):
        plan.exchange(np.zeros(6))


def test_a_rank_that_is_no_int_is_refused_and_one_of_numpy_is_taken():
    block = dlf.halo.decompose((6, 5), None, "IJ")
    assert block.gather(block.zeros(), root=np.int64(0)).shape == (6, 5)
    with pytest.raises(TypeError, match=r"root: expected an int, got 0\.0"):
        block.gather(block.zeros(), root=0.0)
