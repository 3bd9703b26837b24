"""Annotations of a plain callable's fields: the forms they take, and what is refused at once."""

# ruff: noqa: F403, F405 - they are made to be imported with a star

import inspect
from dataclasses import FrozenInstanceError

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import *

from support.optional import library

NONE = ((0, 0),) * 3


def declared(dtype, axes=("I", "J", "K"), data_shape=(), **more):
    """Write out every attribute that ``Field[...]`` is compared with."""
    others = {"layout": None, "preset": None, "alignment": None, "access": "inout"}
    others |= {"boundary": ((0, 0),) * len(axes)}
    return FieldAnnotation(np.dtype(dtype), axes, data_shape, **(others | more))


FORMS = {
    "only a dtype": (Field[np.float32], declared("float32")),
    "a Python type": (Field[float], declared("float64")),
    "a name": (Field["int16"], declared("int16")),
    "an instance of dtype": (Field[np.dtype(bool)], declared("bool")),
    "in brackets": (Field[DType[np.float32]], declared("float32")),
    "axes first": (Field[IJ, np.float32], declared("float32", ("I", "J"))),
    "axes last": (Field[np.float32, IJ], declared("float32", ("I", "J"))),
    "axes as text": (Field[np.float32, "IJ"], declared("float32", ("I", "J"))),
    "two texts": (Field["IJ", "float32"], declared("float32", ("I", "J"))),
    "one axis": (Field["K", "float32"], declared("float32", ("K",))),
    "a tuple of axes": (Field[(I, K), float], declared("float64", ("I", "K"))),
    "a tuple of names": (Field[("Cell", "K"), float], declared("float64", ("Cell", "K"))),
    "axes in brackets": (Field[float, Axes["KJI"]], declared("float64", ("K", "J", "I"))),
    "axes of a constant": (Field[float, Axes[JK]], declared("float64", ("J", "K"))),
    "names in brackets": (Field[float, Axes["Cell", "K"]], declared("float64", ("Cell", "K"))),
    "names in a tuple": (Field[float, Axes[("Cell", "K")]], declared("float64", ("Cell", "K"))),
    "names in a list": (Field[float, Axes[["Cell"]]], declared("float64", ("Cell",))),
    "no axes": (Field[float, Axes[()]], declared("float64", ())),
    "an array as item": (Field[IJK, (np.float64, (3,))], declared("float64", data_shape=(3,))),
    "only an array as item": (Field[(float, (3, 2))], declared("float64", data_shape=(3, 2))),
    "an array in brackets": (Field[DType[float, (3,)], IJ], declared("float64", ("I", "J"), (3,))),
    "NumPy's array type": (Field[np.dtype((float, 3))], declared("float64", data_shape=(3,))),
    "a preset": (Field[float, DefaultParameters["F"]], declared("float64", preset="F")),
    "a preset of a GPU": (
        Field[float, DefaultParameters["gt:gpu"]],
        declared("float64", preset="gt:gpu"),
    ),
    "an alignment": (Field[float, Alignment[8]], declared("float64", alignment=8)),
    "a layout": (Field[float, LayoutMap[(0, 2, 1)]], declared("float64", layout=(0, 2, 1))),
    "a layout of one": (Field[float, K, LayoutMap[0]], declared("float64", ("K",), layout=(0,))),
    "a layout of an array": (
        Field[float, LayoutMap[np.array([2, 1, 0])]],
        declared("float64", layout=(2, 1, 0)),
    ),
    "an access": (Field[float, Access["in"]], declared("float64", access="in")),
    "a boundary": (
        Field[float, Boundary[((1, 1), (2, 0), (0, 0))]],
        declared("float64", boundary=((1, 1), (2, 0), (0, 0))),
    ),
    "a boundary of one": (
        Field[float, K, Boundary[(1, 2)]],
        declared("float64", ("K",), boundary=((1, 2),)),
    ),
    "the draft's": (
        Field[DType[np.float32], Alignment[8], LayoutMap[(1, 0)], Axes["IJ"]],
        declared("float32", ("I", "J"), alignment=8, layout=(1, 0)),
    ),
}


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "`DType` is the type in an annotation",
    "`LayoutMap` is the layout in an annotation",
    "`Alignment` is the alignment in an annotation, in elements",
    "`Axes` gives the axes in an annotation, as text or as I, IJ and so on",
    "the type is required, other parameters are optional",
    "type and axes may be positional, other parameters are named in brackets",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Alternatives",
    "parameters of an annotation are given in brackets, not as slices",
)
@pytest.mark.parametrize(("made", "expected"), FORMS.values(), ids=FORMS)
def test_each_form_declares_what_it_says(made, expected):
    assert made == expected


@pytest.mark.parametrize("made", [made for made, _ in FORMS.values()], ids=FORMS)
def test_the_repr_can_be_pasted_back(made):
    assert eval(repr(made)) == made


@pytest.mark.parametrize(
    "one",
    [IK, DType[float], DType[float, (3,)], LayoutMap[1, 0], Alignment[8], Access["in"]],
    ids=repr,
)
def test_the_repr_of_a_parameter_can_be_pasted_back(one):
    assert eval(repr(one)) == one


def test_the_repr_leaves_out_what_is_so_by_default():
    assert repr(Field[np.float32, IJK, Access["inout"], Boundary[NONE]]) == "Field['float32']"


def test_the_repr_says_the_rest():
    made = Field[DefaultParameters["F"], Alignment[8], Access["out"], IJ, (int, (3,))]
    assert repr(made) == (
        "Field[('int64', (3,)), Axes[('I', 'J')], DefaultParameters['F'], Alignment[8], "
        "Access['out']]"
    )


def test_equal_annotations_are_one_key_whatever_the_order():
    first, second = Field[IJ, float, Alignment[2]], Field[Alignment[2], "float64", "IJ"]
    assert {first: 1}[second] == 1
    assert first != Field[IJ, float]


def test_an_annotation_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Field[float].alignment = 8


def test_a_text_of_axis_letters_is_axes_even_where_numpy_has_such_a_dtype():
    assert np.dtype("I") == np.uint32
    assert Field["I", float].axes == ("I",)
    assert Field[DType["I"]].dtype == np.uint32


def test_explicit_parameters_stand_beside_the_preset():
    made = Field[float, DefaultParameters["F"], LayoutMap[(0, 2, 1)], Alignment[8]]
    assert (made.preset, made.layout, made.alignment) == ("F", (0, 2, 1), 8)


def test_a_layout_that_is_a_function_is_asked_with_the_number_of_dimensions():
    asked = []

    def reverse(ndim):
        asked.append(ndim)
        return range(ndim)[::-1]

    assert Field[IJ, (float, (3,)), LayoutMap[reverse]].layout == (2, 1, 0)
    assert asked == [3]


def test_a_dtype_of_ml_dtypes_is_taken_by_its_name():
    ml_dtypes = library("ml_dtypes")
    assert Field["bfloat16"].dtype == ml_dtypes.bfloat16
    assert Field[ml_dtypes.bfloat16, "IJ"] == Field["bfloat16", IJ]


def test_a_signature_carries_the_annotation():
    def copy(inp: Field[np.float32, "IJ"], out: "Field[np.float32]"):
        """Annotated in both ways."""

    found = inspect.get_annotations(copy, eval_str=True, globals=globals())
    assert found == {"inp": Field[np.float32, IJ], "out": Field[np.float32]}


def test_help_says_what_each_parameter_means():
    assert "elements" in Alignment.__doc__
    assert "largest stride" in LayoutMap.__doc__
    assert "ValueError" in Field.__doc__


FORM = "Field: expected a dtype, axes, or what the brackets of one of DType, Axes, LayoutMap, "
WRONG = {
    "no dtype": (lambda: Field[IJ], ValueError, "Field: expected a dtype, got Axes[('I', 'J')]; "),
    "nothing": (lambda: Field[()], ValueError, "Field: expected a dtype, got (); add one, such as"),
    "None": (lambda: Field[None], TypeError, FORM),
    "a number": (lambda: Field[float, 8], TypeError, "got 8; write for example np.float64 or Al"),
    "no brackets": (lambda: Field[float, Alignment], TypeError, "got Alignment; write"),
    "the draft's misprint": (
        lambda: Field[float, Alignment : [8]],
        TypeError,
        "got slice(Alignment",
    ),
    "an unknown text": (lambda: Field["float23"], ValueError, "got 'float23'; write for example"),
    "names as dtype": (lambda: Field["Cell", "K"], ValueError, "got 'Cell'; write for example"),
    "objects": (lambda: Field[list], ValueError, "dtype: expected bool, int8..int64"),
    "byte order": (lambda: Field[np.dtype(">f4")], ValueError, "dtype: expected native byte order"),
    "two dtypes": (lambda: Field[float, DType[int]], ValueError, "Field: expected DType once, got"),
    "two axes": (lambda: Field["I", "I"], ValueError, "expected Axes once, got ('I', 'I'); leave"),
    "two alignments": (
        lambda: Field[float, Alignment[1], Alignment[2]],
        ValueError,
        "expected Alignment once",
    ),
    "empty items": (
        lambda: Field[(float, (0,))],
        ValueError,
        "DType: expected 1 or more elements, got (0,); leave out what is empty",
    ),
    "an axis twice": (lambda: Axes["II"], ValueError, "Axes: expected distinct names, got ('I', "),
    "a decimal": (lambda: Axes["0"], ValueError, "Axes: expected names other than numbers, got"),
    "an empty name": (lambda: Axes[""], ValueError, "Axes: expected names other than numbers"),
    "an axis by number": (lambda: Axes[3], TypeError, "Axes: expected names, got 3; write such as"),
    "no permutation": (
        lambda: LayoutMap[0, 0],
        ValueError,
        "LayoutMap: expected each rank from 0 to 1 once, got (0, 0); 0 is the largest stride",
    ),
    "a layout of text": (lambda: LayoutMap["ab"], TypeError, "LayoutMap: expected ints, got 'ab'"),
    "a layout too long": (
        lambda: Field[float, LayoutMap[0, 1, 2, 3], IJ],
        ValueError,
        "LayoutMap: expected a rank for each of the dimensions ('I', 'J'), got (0, 1, 2, 3)",
    ),
    "a layout without data dimensions": (
        lambda: Field[LayoutMap[0, 1], IJ, (float, (3,))],
        ValueError,
        "a rank for each of the dimensions ('I', 'J', '0'), got (0, 1)",
    ),
    "a function's layout": (
        lambda: Field[float, LayoutMap[lambda ndim: (1,) * ndim]],
        ValueError,
        "LayoutMap: expected each rank from 0 to 2 once, got (1, 1, 1)",
    ),
    "no alignment": (
        lambda: Alignment[0],
        ValueError,
        "Alignment: expected 1 or more elements, got 0; 1 is any place",
    ),
    "a true alignment": (lambda: Alignment[True], TypeError, "Alignment: expected ints, got (True"),
    "half an alignment": (lambda: Alignment[0.5], TypeError, "Alignment: expected ints, got (0.5"),
    "an unknown preset": (
        lambda: DefaultParameters["gtx87"],
        ValueError,
        "DefaultParameters: expected one of C, F, numpy, debug, gt:cpu_kfirst",
    ),
    "a layout without its name": (
        lambda: Field[np.float32, (0, 2, 1)],
        ValueError,
        "DType: expected 1 or more elements, got (0, 2, 1); write LayoutMap[(0, 2, 1)] for a",
    ),
    "a preset by number": (
        lambda: DefaultParameters[8],
        TypeError,
        "DefaultParameters: expected a name, got 8; write such as 'C' or 'F'",
    ),
    "an unknown access": (
        lambda: Access["rw"],
        ValueError,
        "Access: expected one of ('in', 'out', 'inout'), got 'rw'; 'inout' is both",
    ),
    "an access by number": (lambda: Access[1], TypeError, "Access: expected one of ('in', 'out',"),
    "a boundary for other axes": (
        lambda: Field[float, IJ, Boundary[NONE]],
        ValueError,
        "Boundary: expected a pair for each of the axes ('I', 'J'), got ((0, 0), (0, 0), (0, 0))",
    ),
    "no pairs": (lambda: Boundary[((1,),)], ValueError, "Boundary: expected pairs of 0 or more"),
    "negative points": (lambda: Boundary[-1, 0], ValueError, "expected pairs of 0 or more points"),
    "a boundary by number": (lambda: Boundary[3], TypeError, "Boundary: expected pairs, got 3"),
    "half a point": (lambda: Boundary[((0.5, 1),)], TypeError, "Boundary: expected ints, got (0.5"),
}


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "the type is required, other parameters are optional",
    "type and axes may be positional, other parameters are named in brackets",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Alternatives",
    "parameters of an annotation are given in brackets, not as slices",
)
@pytest.mark.parametrize(("make", "kind", "text"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_error_when_the_annotation_is_made(make, kind, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert caught.type is kind
    assert text in str(caught.value)


@pytest.mark.source(
    "GDP-3 draft", "Annotation of Stencils", "`DefaultParameters` is a preset in an annotation"
)
def test_every_preset_that_dlfield_knows_is_taken():
    with pytest.raises(ValueError, match="expected one of") as caught:
        dlf.empty((), backend="?")
    listed = str(caught.value).split("one of ")[1].split(", got")[0].split(", ")
    assert [Field[float, DefaultParameters[name]].preset for name in listed] == listed
    assert {"C", "F", "numpy", "debug", "gtcuda"} <= set(listed)


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "`Axes` gives the axes in an annotation, as text or as I, IJ and so on",
)
def test_the_constants_are_the_axes_of_their_letters():
    constants = [I, J, K, IJ, IK, JK, IJK]
    assert ["".join(Field[one, float].axes) for one in constants] == [
        *("I", "J", "K", "IJ", "IK", "JK", "IJK")
    ]


def test_ranks_of_i_j_and_k_are_those_of_the_axes_that_a_field_has():
    for axes, layout in {"IJ": (0, 1), "IK": (0, 1), "JK": (1, 0), "K": (0,)}.items():
        assert Field[DType[float], Alignment[8], LayoutMap[(0, 2, 1)], Axes[axes]].layout == layout
