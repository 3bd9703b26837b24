"""Functions that Fortran cannot call are refused when they are declared, or generated."""

import functools
import types

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, Axes, Field, I
from dlfield.fortran import signature

from support.fortran import write

SMALL = Field[np.float16, I]
LARGE = Field[np.float64, Axes[tuple("ABCDEFGH")]]
PLAIN = Field[np.float64, I]


def function_of(annotations, defaults=(), name="step"):
    """Make a function whose parameters have these annotations."""
    parameters = ", ".join(annotations)
    scope = {}
    exec(f"def {name}({parameters}): pass", scope)
    made = scope[name]
    made.__annotations__, made.__defaults__ = dict(annotations), tuple(defaults)
    return made


@pytest.mark.parametrize(
    ("annotations", "defaults", "text"),
    [
        ({"a": SMALL}, (), "expected elements of one of float32, .*, got float16; "),
        ({"a": list}, (), "expected the annotation Field"),
        ({"a": None}, (), "expected the annotation Field"),
        ({"a": PLAIN}, (3,), "expected None or no default of an array, got the default 3"),
        ({"a": "missing"}, (), "expected annotations that can be evaluated, got NameError"),
    ],
)
def test_a_parameter_that_fortran_cannot_pass_is_refused(annotations, defaults, text):
    with pytest.raises(TypeError, match=text):
        dlf.fortran.function(function_of(annotations, defaults))


def test_a_parameter_without_an_annotation_is_refused():
    def step(a): ...

    with pytest.raises(TypeError, match=r"'a' of 'step': expected the annotation .*, got none"):
        dlf.fortran.function(step)


def test_parameters_without_names_are_refused():
    def step(*a: int): ...

    with pytest.raises(TypeError, match="expected a named parameter"):
        dlf.fortran.function(step)


def test_a_result_is_refused():
    def step(a: PLAIN) -> float: ...

    with pytest.raises(TypeError, match=r"step: expected no result, or None, got '-> float'; "):
        dlf.fortran.function(step)


@pytest.mark.parametrize(
    "names",
    [("a", "A"), ("status",), ("step",), ("dlf_a",), ("DLF_a",), ("c_ptr",), ("_a",), ("ä",)],
)
def test_names_that_fortran_cannot_have_are_refused(names):
    with pytest.raises(ValueError, match=r"step: expected names (that differ|of at most 51)"):
        dlf.fortran.function(function_of(dict.fromkeys(names, PLAIN)))


def test_more_dimensions_than_fortran_has_are_refused():
    with pytest.raises(ValueError, match="step: expected at most 7 dimensions, got 8 of 'a'"):
        dlf.fortran.function(function_of({"a": LARGE}))


@pytest.mark.parametrize(
    "option", ["persistent", "lower_bounds", "pointer", "allocatable", "default_logical"]
)
def test_an_option_for_an_unknown_array_is_refused(option):
    with pytest.raises(ValueError, match=f"{option}: expected arrays of 'step', a, got 'b'; "):
        dlf.fortran.function(**{option: ("b",)})(function_of({"a": PLAIN}))


def test_names_in_one_text_are_refused():
    with pytest.raises(TypeError, match=r"pointer: expected names in a tuple, got 'a'; write "):
        dlf.fortran.function(pointer="a")


def test_an_array_is_not_both_a_pointer_and_allocatable():
    with pytest.raises(ValueError, match="expected an array that is no pointer, got 'a'"):
        dlf.fortran.function(pointer=("a",), allocatable=("a",))(function_of({"a": PLAIN}))


def test_only_fields_of_bool_are_logicals():
    with pytest.raises(ValueError, match="expected fields of bool, got 'a' of float64"):
        dlf.fortran.function(default_logical=("a",))(function_of({"a": PLAIN}))


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="device: expected 'cpu' or 'gpu', got 'tpu'"):
        dlf.fortran.function(device="tpu")(function_of({"a": PLAIN}))


@pytest.mark.parametrize("halo", [{"a": (1,)}, {"b": (1, 1)}, (1,)])
def test_a_halo_that_does_not_fit_the_declaration_is_refused(halo):
    with pytest.raises(ValueError, match="halo: expected "):
        dlf.fortran.function(halo=halo)(function_of({"a": Field[np.float64, Axes["Cell", "K"]]}))


@pytest.mark.parametrize(
    "halo",
    [5, "110", (1, 1, 0, 0, 0), (-1, 1, 0), (1, 1, "x"), (1, 1, 0.5), (1, 1, True),
     (1, 1, (0, 1, 2)), (1, 1, (0, -1)), {"a": 5}, {"a": (1, 1, -1)}],
)  # fmt: skip
def test_a_halo_that_is_no_width_for_each_dimension_is_refused(halo):
    with pytest.raises(ValueError, match=r"^halo: expected .*, got .*; ") as told:
        dlf.fortran.function(halo=halo)(function_of({"a": IJK_FIELD}))
    assert repr(halo["a"] if isinstance(halo, dict) else halo) in str(told.value)


def test_widths_of_numpy_and_mappings_are_halos():
    halo = types.MappingProxyType({"a": np.array([1, 2, 3]), "b": [np.int64(1), [0, 1]]})
    declared = dlf.fortran.function(halo=halo)(function_of({"a": IJK_FIELD, "b": IJ_FIELD}))
    halos = [field.halo for field in declared.__dlfield_fortran__.fields]
    assert halos == [(1, 2, 3), (1, (0, 1))]


def test_one_halo_goes_along_the_axes_that_an_array_has():
    declared = dlf.fortran.function(halo=(1, 2, 3))(function_of({"a": IJK_FIELD, "b": IJ_FIELD}))
    halos = [field.halo for field in declared.__dlfield_fortran__.fields]
    assert halos == [(1, 2, 3), (1, 2)]


IJK_FIELD, IJ_FIELD = Field[np.float64], Field[np.float64, IJ]


@pytest.mark.parametrize("library", ["rank1", "1model", "my-model"])
def test_a_name_that_the_library_cannot_have_is_refused(tmp_path, library):
    functions = "support.fortran_functions:rank1"
    done = write(tmp_path, [functions], library)
    assert done.returncode == 1
    assert done.stderr.startswith("ValueError: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("support.fortran_functions", "ValueError: function: expected 'package.module:name'"),
        ("support.fortran_functions:missing", "AttributeError: module 'support.fortran_functions'"),
        ("not_there:step", "ModuleNotFoundError: No module named 'not_there'"),
        (
            "support.fortran:write",
            "TypeError: write: expected a declared function, got a plain one",
        ),
        ("support.fortran:TYPES", "TypeError: bind: expected a stencil"),
    ],
)
def test_a_function_that_is_not_found_is_told(tmp_path, target, text):
    done = write(tmp_path, [target])
    assert done.returncode == 1
    assert done.stderr.startswith(text)


def test_two_functions_of_one_name_are_refused(tmp_path):
    done = write(tmp_path, ["support.fortran_functions:rank1"] * 2)
    assert done.returncode == 1
    assert "expected names of functions that differ" in done.stderr


def test_a_decorator_around_a_declared_function_is_what_is_called():
    own = dlf.fortran.function(function_of({"a": IJ_FIELD}))

    @functools.wraps(own)
    def around(*args):
        return own(*args)

    assert signature.declared(around, "around").call is around
    assert signature.declared(own, "own").call is own


@pytest.mark.parametrize("annotation", [[int], {"a": int}], ids=str)
def test_an_annotation_that_is_no_type_is_refused_by_its_parameter(annotation):
    with pytest.raises(TypeError, match="parameter 'x' of 'step'"):
        dlf.fortran.function(function_of({"x": annotation}))
