"""Arrays of Fortran as storages: address, extents and strides are the same on both sides."""

import pytest

from support.fortran_functions import ELEMENTS, NAMES


def assert_same(printed):
    """Each storage is the array that Fortran printed: address, extents, the first stride."""
    of_python = [line[1:] for line in printed if line[0] == "python"]
    of_fortran = [line[1:] for line in printed if line[0] == "fortran"]
    assert len(of_python) == len(of_fortran) > 0
    for python, fortran in zip(of_python, of_fortran, strict=True):
        rank = (len(python) - 2) // 2
        assert fortran[: 2 + rank] == python[: 2 + rank]
        assert fortran[2 + rank :] == (python[2 + rank :][:1] or ["0"])


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_type_arrives_where_it_is(program, name):
    printed = program.printed(f"of_{name}")
    assert_same(printed)
    assert next(line for line in printed if line[0] == "labels")[2] == name


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_type_is_written_in_place(program, name):
    assert ["changed", "T"] in program.printed(f"of_{name}")


@pytest.mark.parametrize("rank", range(8))
def test_every_rank_arrives_where_it_is(program, rank):
    printed = program.printed(f"rank{rank}")
    assert_same(printed)
    assert ["changed", "T"] in printed


def test_dimensions_have_the_names_of_the_declaration(program):
    labels = next(line for line in program.printed("rank7") if line[0] == "labels")
    assert " ".join(labels).startswith(f"labels rank7 float64 {NAMES!r}")


@pytest.mark.parametrize(
    "case", ["slices", "component", "lower bounds of the caller", "pointer", "allocatable"]
)
def test_arrays_that_are_not_contiguous_are_not_copied(program, case):
    assert_same([line for line in program.printed(case) if line[0] in ("python", "fortran")])


def test_components_of_derived_types_are_written_in_place(program):
    assert ["changed", "T"] in program.printed("component")


def test_an_array_without_elements_arrives_with_its_extents(program):
    shapes = [line[3:-2] for line in program.printed("empty") if line[0] == "python"]
    assert shapes[0] == ["6", "0"]


def test_an_extent_of_one_needs_no_stride(program):
    [line] = [line for line in program.printed("one") if line[0] == "python"]
    assert line[3:5] == ["1", "4"]
    assert line[-1] == "48"


def test_an_array_of_intent_in_is_read_only(program):
    labels = next(line for line in program.printed("only_read") if line[0] == "labels")
    assert labels[-1] == "False"


def test_an_array_of_intent_out_is_written(program):
    assert program.printed("written") == [["changed", "T"]]


def test_absent_arguments_have_their_defaults(program):
    assert program.printed("absent") == [
        ["python", *words.split()]
        for words in (
            "True True 5 'none' True",
            "True False 5 'given' False",
            "False True 6 'none' True",
            "True True 5 'none' True",
        )
    ]


def test_scalars_arrive_with_their_types(program):
    [line] = program.printed("scalars")
    assert " ".join(line) == (
        "python float:1.5 int:-2 bool:True complex:(1-1j) str:grön float32:0.5 float64:2.5 "
        "int32:3 int64:4000000000 complex64:(0.5+1j)"
    )


def test_a_declared_halo_arrives(program):
    assert " ".join(program.printed("with_halo")[0]) == "python ((1, 1), (2, 1), (0, 0))"


def test_lower_bounds_tell_the_halo(program):
    lines = [" ".join(line[1:]) for line in program.printed("by_bounds") if line[0] == "python"]
    assert lines == ["((0, 0), (0, 0))", "((0, 0), (0, 0))", "((2, 2), (1, 1))"]


def test_lower_bounds_come_after_all_other_arguments(program):
    assert [" ".join(line) for line in program.printed("bounds are last")] == [
        "python ((0, 0), (0, 0)) [7] None",
        "python ((1, 1), (0, 0)) [7] ((2, 2),)",
        "python ((2, 2), (1, 1)) None None",
    ]


def test_positional_only_parameters_are_passed_and_left_out_as_others(program):
    assert [" ".join(line) for line in program.printed("by position")] == [
        "python False 1 False 2",
        "python True 5 False 6",
        "python True 5 True 3",
        "python True 4 True 6",
    ]


@pytest.mark.parametrize("case", ["pointer", "allocatable"])
def test_the_lower_bounds_of_a_dummy_with_its_own_tell_the_halo(program, case):
    labels = next(line for line in program.printed(case) if line[0] == "labels")
    assert " ".join(labels[3:-1]) == "('I', 'J') ((1, 1), (2, 2))"


def test_an_allocatable_array_is_written_and_an_optional_one_may_be_unallocated(program):
    assert ["changed", "T"] in program.printed("allocatable")


def test_logicals_of_default_kind_are_copied_there_and_back(program):
    assert program.printed("logicals") == [["changed", *"FTTT", *"TFT"]]
