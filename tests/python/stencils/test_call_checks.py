"""What a call checks every time, with plain callables: whatever would be undefined behaviour."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, IJK, Access, Alignment, Axes, Boundary, Field, K, LayoutMap

from support.errors import refused
from support.stencils.stand_ins import column, misaligned

SHAPE = (5, 6, 4)
AROUND = Boundary[(1, 1), (1, 1), (0, 0)]
FIELDS = {
    "inp": Field[float, Access["in"], AROUND],
    "out": Field[float, Access["out"]],
    "both": Field[float],
}
INSIDE = {"origin": (1, 1, 0), "domain": (3, 4, 4)}


class Noted:
    """A callable that is told where to compute, and how often it was run."""

    def __init__(self):
        self.runs, self.origin, self.domain = 0, None, None

    def __call__(self, inp, out, both, factor: float, origin, domain):
        self.runs += 1
        self.origin, self.domain = origin, domain


def good():
    return {name: np.zeros(SHAPE) for name in FIELDS} | {"factor": 1.0} | INSIDE


def read_only():
    array = np.zeros(SHAPE)
    array.flags.writeable = False
    return array


def named(names, shape=SHAPE):
    class Named(np.ndarray):
        __gt_dims__ = names

    return np.zeros(shape).view(Named)


#: By what goes wrong: what is changed in a good call, the error, and texts of it.
WRONG = {
    "dtype of an input": (
        {"inp": np.zeros(SHAPE, "f4")},
        ValueError,
        ("argument 'inp': expected dtype float64, got float32", "astype('float64')"),
    ),
    "dtype of an output": (
        {"out": np.zeros(SHAPE, "i8")},
        ValueError,
        ("argument 'out': expected dtype float64, got int64", "pass an array of float64"),
    ),
    "byte order": ({"inp": np.zeros(SHAPE, ">f8")}, BufferError, ("'inp'", "newbyteorder")),
    "structured": ({"inp": np.zeros(SHAPE, "f8,f8")}, BufferError, ("'inp'", "expected", "got")),
    "read-only output": (
        {"out": read_only()},
        BufferError,
        ("argument 'out': expected a writable output, got a read-only array", "write into"),
    ),
    "read-only update": (
        {"both": read_only()},
        BufferError,
        ("argument 'both': expected a writable output, got a read-only array", "write into"),
    ),
    "read-only storage": (
        {"out": dlf.as_storage(read_only())},
        BufferError,
        ("argument 'out': expected a writable output, got a read-only storage", "write into"),
    ),
    "misaligned input": (
        {"inp": misaligned(SHAPE)},
        BufferError,
        (
            "argument 'inp': expected items aligned to 8 bytes, got ones 4 bytes behind",
            "x.copy()",
        ),
    ),
    "misaligned output": (
        {"out": misaligned(SHAPE)},
        BufferError,
        (
            "argument 'out': expected items aligned to 8 bytes, got ones 4 bytes behind",
            "on_mismatch=",
        ),
    ),
    "column": (
        {"inp": column(SHAPE)},
        BufferError,
        ("argument 'inp'", "expected a multiple of the item size 8", "on_mismatch="),
    ),
    "below the memory": (
        {"origin": (0, 1, 0)},
        ValueError,
        ("argument 'inp': expected points -1 to 4 along I", "reads, got 0 to 5", "another origin="),
    ),
    "negative origin": (
        {"origin": {"_all_": (1, 1, 0), "out": (-1, 0, 0)}},
        ValueError,
        ("argument 'out': expected points 0 to 3 along I", "writes, got 1 to 6", "another origin="),
    ),
    "above the memory": (
        {"domain": (3, 5, 4)},
        ValueError,
        ("argument 'inp': expected points -1 to 6 along J", "got -1 to 5", "or domain="),
    ),
    "far above the memory": (
        {"domain": (2**62, 4, 4)},
        ValueError,
        ("argument 'inp': expected points -1 to 4611686018427387905 along I", "got -1 to 4"),
    ),
    "smaller than the others": (
        {"out": np.zeros((3, 6, 4))},
        ValueError,
        ("argument 'out': expected points 0 to 3 along I", "got -1 to 2", "a larger array"),
    ),
    "output that names elements twice": (
        {"out": np.lib.stride_tricks.as_strided(np.zeros(24), SHAPE, (0, 32, 8))},
        BufferError,
        ("argument 'out': expected an output with an element for every index", "pass a copy"),
    ),
    "too few dimensions": (
        {"inp": np.zeros(SHAPE[1:])},
        ValueError,
        ("argument 'inp': expected 3 dimensions ('I', 'J', 'K'), got 2 with shape [6, 4]", "add"),
    ),
    "strange names": (
        {"inp": named(("lon", "lat", "lev"))},
        ValueError,
        ("argument 'inp': expected dims ('I', 'J', 'K') in any order", '"lat": "J"'),
    ),
    "an axis of another field": (
        {"inp": named(("I", "J", "0"))},
        ValueError,
        ("argument 'inp': expected dims ('I', 'J', 'K') in any order, got ('I', 'J', '0')",),
    ),
    "a whole number for a scalar": (
        {"factor": 1},
        ValueError,
        ("argument 'factor': expected a scalar of float64, got 1 of type int", "numpy.float64"),
    ),
    "a truth for a scalar": ({"factor": True}, ValueError, ("'factor'", "got True of type bool")),
    "a narrower scalar": (
        {"factor": np.float32(1)},
        ValueError,
        ("argument 'factor': expected a scalar of float64", "of type float32"),
    ),
    "no scalar": ({"factor": None}, TypeError, ("expected an argument 'factor', got none",)),
    "no field": ({"inp": None}, ValueError, ("argument 'inp': expected a field, got None",)),
    "a list": ({"inp": [1.0]}, TypeError, ("argument 'inp'", "type 'list'", "np.asarray")),
}
EVERY_WRONG = pytest.mark.parametrize(("change", "error", "texts"), WRONG.values(), ids=WRONG)


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "a field that does not fit is an error if using it were undefined behaviour",
)
@EVERY_WRONG
def test_what_is_wrong_is_refused_in_words_and_nothing_is_run(change, error, texts):
    noted = Noted()
    with refused(error, *texts):
        dlf.bind(noted, fields=FIELDS)(**{**good(), **change})
    assert noted.runs == 0


@EVERY_WRONG
def test_what_is_wrong_is_refused_also_after_good_calls_with_the_same_shapes(change, error, texts):
    noted = Noted()
    run = dlf.bind(noted, fields=FIELDS)
    for _ in range(3):
        run(**good())
    with refused(error, *texts):
        run(**{**good(), **change})
    assert noted.runs == 3
    run(**good())


def test_an_output_that_became_read_only_is_refused():
    run, given = dlf.bind(Noted(), fields=FIELDS), good()
    run(**given)
    given["out"].flags.writeable = False
    with refused(BufferError, "argument 'out': expected a writable output"):
        run(**given)


OVERLAPS = {
    "the same output twice": lambda whole: dict.fromkeys(("out", "both"), whole[:5]),
    "shifted by one": lambda whole: {"out": whole[:5], "both": whole[1:]},
    "backwards": lambda whole: {"out": whole[:5], "both": whole[4::-1]},
    "through a storage": lambda whole: {"out": whole[:5], "both": dlf.as_storage(whole[:5])},
}


@pytest.mark.parametrize("make", OVERLAPS.values(), ids=OVERLAPS)
def test_outputs_that_overlap_are_refused_also_after_a_good_call(make):
    noted = Noted()
    run = dlf.bind(noted, fields=FIELDS)
    run(**good())
    with refused(BufferError, "'out' and 'both': expected outputs at different points", "pass a"):
        run(**{**good(), **make(np.zeros((6, 6, 4)))})
    assert noted.runs == 1


def test_an_input_that_is_read_beside_where_it_is_written_is_refused():
    one = np.zeros(SHAPE)
    with refused(BufferError, "'inp' and 'out'", "read apart from where the output is written"):
        dlf.bind(Noted(), fields=FIELDS)(**{**good(), "inp": one, "out": one})


def test_an_input_that_is_read_only_where_it_is_written_is_taken():
    noted, one = Noted(), np.zeros(SHAPE)
    fields = {**FIELDS, "inp": Field[float, Access["in"]]}
    dlf.bind(noted, fields=fields)(**{**good(), "inp": one, "out": one})
    assert noted.runs == 1


def test_an_input_beside_the_written_half_of_its_array_is_taken():
    noted, whole = Noted(), np.zeros((10, 6, 4))
    origin = {"_all_": (1, 1, 0), "out": (5, 1, 0)}
    given = {**good(), "inp": whole, "out": whole, "origin": origin}
    dlf.bind(noted, fields=FIELDS)(**given)
    assert noted.runs == 1


@pytest.mark.parametrize(("rows", "is_taken"), [(5, True), (4, True), (3, False)])
def test_outputs_in_one_array_are_taken_where_they_write_different_points(rows, is_taken):
    noted, whole = Noted(), np.zeros((10, 6, 4))
    arrays = {"inp": np.zeros((6, 6, 4)), "out": whole[:6], "both": whole[rows:][:6]}
    given = {**good(), **arrays, "origin": {"_all_": (1, 1, 0)}, "domain": (4, 4, 4)}
    run = dlf.bind(noted, fields=FIELDS)
    if is_taken:
        run(**given)
    else:
        with refused(BufferError, "'out' and 'both': expected outputs at different points"):
            run(**given)
    assert noted.runs == is_taken


def test_outputs_in_one_array_are_refused_where_copies_are_written_back():
    whole = np.zeros((10, 6, 4))
    arrays = {"inp": np.zeros((6, 6, 4)), "out": whole[:6], "both": whole[4:]}
    given = {**good(), **arrays, "origin": {"_all_": (1, 1, 0)}, "domain": (4, 4, 4)}
    with refused(BufferError, "'out' and 'both': expected outputs at different points"):
        dlf.bind(Noted(), fields=FIELDS, on_mismatch="copy")(**given)


def test_outputs_in_one_array_are_refused_by_a_callable_that_is_not_told_where_to_compute():
    def both(a, b):
        a[...], b[...] = 1.0, 2.0

    whole, out = np.zeros((10, 3, 2)), Field[float, Access["out"]]
    first, second = (
        dlf.as_storage(part, dims="IJK", halo={"I": 1}) for part in (whole[:6], whole[4:])
    )
    with refused(BufferError, "'a' and 'b': expected outputs at different points"):
        dlf.bind(both, fields={"a": out, "b": out})(first, second)
    assert not whole.any()


@pytest.mark.parametrize("name", ["origin", "domain"])
def test_only_a_callable_that_takes_it_may_be_given_origin_or_domain(name):
    def function(out):
        """Is not told where to compute."""

    run = dlf.bind(function, fields={"out": Field[float]})
    run(np.zeros(SHAPE))
    with refused(TypeError, f"{name}: expected none for 'function'", "slice the arrays"):
        run(np.zeros(SHAPE), **{name: (1, 1, 1)})


ORIGINS = {
    "one for all": ((1, 1, 0), dict.fromkeys(FIELDS, (1, 1, 0))),
    "a list": ([1, 1, 0], dict.fromkeys(FIELDS, (1, 1, 0))),
    "_all_": ({"_all_": (1, 1, 0)}, dict.fromkeys(FIELDS, (1, 1, 0))),
    "_all_ and another": (
        {"_all_": (1, 1, 0), "out": (2, 0, 0)},
        {"inp": (1, 1, 0), "out": (2, 0, 0), "both": (1, 1, 0)},
    ),
    "some alone": ({"inp": (1, 1, 0)}, {"inp": (1, 1, 0), "out": (0, 0, 0), "both": (0, 0, 0)}),
}


@pytest.mark.parametrize(("origin", "told"), ORIGINS.values(), ids=ORIGINS)
def test_an_origin_is_told_for_each_field(origin, told):
    noted = Noted()
    dlf.bind(noted, fields=FIELDS)(**{**good(), "origin": origin})
    assert (noted.origin, noted.domain) == (told, (3, 4, 4))


@pytest.mark.source("GDP-3", "Data Interface", "the domain of a call is computed from the halos")
def test_without_origin_the_halos_tell_it():
    noted = Noted()
    inp = dlf.zeros(SHAPE, dims="IJK", halo=((1, 1), (1, 1), 0))
    given = {"inp": inp, "out": np.zeros(SHAPE), "both": np.zeros((3, 4, 4)), "factor": 1.0}
    dlf.bind(noted, fields=FIELDS)(**given)
    assert noted.origin == {"inp": (1, 1, 0), "out": (1, 1, 0), "both": (0, 0, 0)}
    assert noted.domain == (3, 4, 4)


WRONG_PLACES = {
    "a short domain": ({"domain": (3, 4)}, ValueError, "domain: expected 3 numbers for I, J, K"),
    "a long domain": ({"domain": (3, 4, 4, 1)}, ValueError, "got [3, 4, 4, 1]\n  field  I"),
    "fewer points than none": (
        {"domain": (3, -1, 4)},
        ValueError,
        "expected at least 0 points along J, got -1 in [3, -1, 4]; pass another domain=",
    ),
    "no numbers": ({"domain": "abc"}, TypeError, "domain: expected an int, got 'a'"),
    "half a number": ({"origin": (1.5, 1, 0)}, TypeError, "origin: expected an int, got 1.5"),
    "a number of 70 bits": ({"origin": (2**70, 1, 0)}, ValueError, "an int of 64 bits"),
    "a short origin": ({"origin": (1, 1)}, ValueError, "origin: expected 3 numbers, got [1, 1]"),
    "a name of no field": (
        {"origin": {"_all_": (1, 1, 0), "factor": (0, 0, 0)}},
        ValueError,
        "origin: expected names of fields or '_all_', got 'factor'",
    ),
    "an unknown name": (
        {"colour": 1},
        TypeError,
        "Noted: expected one of its arguments, origin, domain or exec_info, got 'colour'; the arg",
    ),
}


@pytest.mark.parametrize(("change", "error", "text"), WRONG_PLACES.values(), ids=WRONG_PLACES)
def test_a_wrong_place_or_name_is_refused_in_words(change, error, text):
    noted = Noted()
    with refused(error, text):
        dlf.bind(noted, fields=FIELDS)(**{**good(), **change})
    assert noted.runs == 0


def test_an_error_about_the_domain_shows_every_field_along_every_axis():
    fields = {"inp": FIELDS["inp"], "plane": Field[IJ, float], "out": FIELDS["out"]}
    inp = dlf.zeros(SHAPE, dims="IJK", halo=((1, 1), (1, 1), 0))
    with refused(ValueError, "argument 'plane': expected 3 points") as caught:
        dlf.bind(lambda inp, plane, out, origin, domain: None, fields=fields)(
            inp, np.zeros((9, 9)), np.zeros(SHAPE)
        )
    assert str(caught.value).splitlines()[1:] == [
        "  field  I               J               K",
        "  inp    5, halo (1, 1)  6, halo (1, 1)  4",
        "  plane  9               9               -",
        "  out    5               6               4",
    ]


def cells():
    noted = {}

    def note(inp, weight, out, origin, domain):
        noted.update(origin=origin, domain=domain, inp=inp.shape)

    fields = {
        "inp": Field[float, Axes["Cell", "K"], Access["in"], Boundary[(0, 1), (0, 0)]],
        "weight": Field[K, float, Access["in"]],
        "out": Field[float, Axes["Cell", "K"]],
    }
    return noted, dlf.bind(note, fields=fields)


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "dimensions other than I, J and K are possible"
)
def test_a_callable_with_axes_of_its_own_is_told_the_domain_along_them():
    noted, run = cells()
    run(np.zeros((8, 3)), np.zeros(3), np.zeros((7, 3)))
    assert noted["domain"] == (7, 3)
    assert noted["origin"] == {"inp": (0, 0), "weight": (0,), "out": (0, 0)}


def test_an_origin_along_axes_of_its_own_goes_to_the_fields_that_have_them():
    noted, run = cells()
    run(np.zeros((8, 3)), np.zeros(3), np.zeros((7, 3)), origin=(2, 1), domain=(5, 2))
    assert noted["origin"] == {"inp": (2, 1), "weight": (1,), "out": (2, 1)}


def test_axes_of_its_own_are_ordered_by_name():
    noted, run = cells()
    run(named(("K", "Cell"), (3, 8)), np.zeros(3), np.zeros((7, 3)))
    assert noted["inp"] == (8, 3)


WRONG_CELLS = {
    "domain": ({"domain": (5, 2, 1)}, "domain: expected 2 numbers for Cell, K, got [5, 2, 1]"),
    "bounds": ({"domain": (8, 3)}, "argument 'inp': expected points 0 to 9 along Cell"),
    "weight": ({"weight": np.zeros(2), "domain": (7, 3)}, "'weight': expected points 0 to 3"),
    "names": ({"inp": named("IJ", (8, 3))}, "expected dims ('Cell', 'K') in any order"),
}


@pytest.mark.parametrize(("change", "text"), WRONG_CELLS.values(), ids=WRONG_CELLS)
def test_axes_of_its_own_are_checked(change, text):
    noted, run = cells()
    given = {"inp": np.zeros((8, 3)), "weight": np.zeros(3), "out": np.zeros((7, 3))}
    with refused(ValueError, text):
        run(**{**given, **change})
    assert noted == {}


@pytest.mark.source("Allocation note", "Dimension Mapping", "decimals stand for data dimensions")
def test_data_dimensions_are_checked_and_start_at_zero():
    run = dlf.bind(lambda out, origin: None, fields={"out": Field[IJK, (float, (3,))]})
    run(np.zeros((*SHAPE, 3)))
    with refused(ValueError, "argument 'out': expected data dimensions of [3], got [2]"):
        run(np.zeros((*SHAPE, 2)))
    with refused(ValueError, "argument 'out': origin: expected 0 along data dimensions"):
        run(np.zeros((*SHAPE, 3)), origin={"out": (0, 0, 0, 1)})


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "a field that does not fit is an error if using it were undefined behaviour",
)
@pytest.mark.parametrize("annotation", [LayoutMap[2, 1, 0], Alignment[8]], ids=str)
def test_memory_that_is_not_as_declared_is_refused_also_after_a_good_call(annotation):
    fields = {"out": Field[float, annotation]}
    run = dlf.bind(lambda out: None, fields=fields)
    run(dlf.zeros(SHAPE, layout=(2, 1, 0), alignment_size=64))
    with refused(BufferError, "argument 'out': expected", "got", 'on_mismatch={"memory": "copy"}'):
        run(np.zeros(SHAPE))


def test_fields_of_other_axes_are_not_one_point_although_they_are_one_memory():
    fields = {
        "inp": Field[float, Axes["IJ"], Access["in"]],
        "out": Field[float, Axes["JI"], Access["out"]],
    }

    def transpose(inp, out):
        out[...] = inp.T

    square = np.arange(9.0).reshape(3, 3)
    with refused(BufferError, "arguments 'inp' and 'out': expected an input that is read apart"):
        dlf.bind(transpose, fields=fields)(square, square)
    fields["out"] = Field[float, Axes["IJ"], Access["out"]]
    dlf.bind(transpose, fields=fields)(square, square)


def test_an_output_of_another_type_is_not_to_be_converted():
    run = dlf.bind(Noted(), fields=FIELDS)
    with pytest.raises(ValueError, match="got float32; pass an array of float64, or compile"):
        run(**(good() | {"out": np.zeros(SHAPE, "f4")}))


def test_a_masked_output_is_not_to_be_filled_alone():
    masked = np.ma.masked_array(np.zeros(SHAPE), mask=True)
    run = dlf.bind(Noted(), fields=FIELDS)
    with refused(BufferError, "or x.data as an output"):
        run(**(good() | {"out": masked}))


@pytest.mark.parametrize("names", [None, "IJK"])
def test_an_axis_too_many_is_dropped_where_the_field_lacks_it(names):
    run = dlf.bind(lambda inp, out: None, fields={"inp": Field[IJ, float], "out": Field[float]})
    with pytest.raises(ValueError, match=r"select a point along one, .* x\[:, :, 0\]$"):
        run(dlf.zeros(SHAPE, **({"dims": names} if names else {})), np.zeros(SHAPE))


def test_an_axis_too_few_is_added():
    run = dlf.bind(lambda inp, out: None, fields={"inp": Field[float], "out": Field[float]})
    with pytest.raises(ValueError, match=r"add the missing ones, .* x\[..., np.newaxis\]$"):
        run(np.zeros(SHAPE[:2]), np.zeros(SHAPE))


def test_a_domain_of_fewer_points_than_none_is_to_be_another():
    run = dlf.bind(Noted(), fields=FIELDS)
    with refused(ValueError, "got -1 in [-1, 2, 2]; pass another domain="):
        run(**(good() | {"domain": (-1, 2, 2)}))


def test_the_points_of_a_huge_origin_are_counted_exactly():
    run = dlf.bind(Noted(), fields=FIELDS)
    with refused(ValueError, f"got {2**63} to {2**63 + 5}"):
        run(**(good() | {"origin": (-(2**63), 1, 0)}))


def test_strides_of_bytes_are_called_bytes():
    memory = np.zeros(1000, "i1")
    out = np.ndarray(SHAPE, "f8", memory, strides=(4, 4, 8))
    run = dlf.bind(Noted(), fields=FIELDS, on_mismatch="copy")
    with pytest.raises(BufferError, match=r"got strides of \[4, 4, 8\] bytes"):
        run(**(good() | {"out": out}))


def test_an_axis_of_an_array_with_names_is_added_by_what_the_error_says():
    run = dlf.bind(
        lambda inp, out: out.__setitem__(..., inp),
        fields={"inp": Field[float, Access["in"]], "out": Field[float, Access["out"]]},
    )
    inp, out = dlf.storage(np.arange(4.0).reshape(2, 2), dims="JI"), np.zeros((2, 2, 1))
    with pytest.raises(ValueError, match="add the missing ones, for example with") as caught:
        run(inp, out)
    way_out = caught.value.args[0].rpartition("with ")[2].replace("dlfield.", "dlf.")
    run(eval(way_out, {"dlf": dlf, "np": np, "x": inp}), out)
    np.testing.assert_array_equal(out[..., 0], inp.to_numpy().T)


@pytest.mark.parametrize("given", [np.zeros(3), [1, 2]], ids=["array", "list"])
def test_times_are_told_to_a_dict(given):
    with refused(TypeError, "exec_info: expected a dict for times"):
        dlf.bind(Noted(), fields=FIELDS)(**good(), exec_info=given)


def test_a_value_that_cannot_be_shown_is_refused_all_the_same():
    run = dlf.bind(_counted)
    with refused(ValueError, "argument 'n': expected a scalar of int32, got an int of"):
        run(np.zeros(SHAPE), 10**5000)


def _counted(a: Field[float], n: np.int32): ...
