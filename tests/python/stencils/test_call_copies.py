"""Copies that a call makes where it was asked to: of what, when, and what is copied back."""

import gc

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations
from dlfield.annotations import Access, Alignment, DefaultParameters, Field, LayoutMap

from support.errors import refused
from support.owners import tracked
from support.stencils.stand_ins import SHAPE, StandIn, bound, column, field, misaligned

pytestmark = pytest.mark.filterwarnings("ignore::dlfield.MemoryCopyWarning")

VALUES = np.arange(60.0).reshape(SHAPE)
HALF = {"origin": (0, 0, 0), "domain": (3, 4, 2)}

MADE = pytest.mark.parametrize("make", [misaligned, column])


def on_boundary(array, bytes_):
    return array.ctypes.data % bytes_ == 0


@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied, and the results back: memory",
)
@MADE
@pytest.mark.parametrize("answer", ["copy", {"memory": "copy"}], ids=str)
def test_an_input_that_cannot_be_read_in_place_is_read_from_a_copy(make, answer):
    stencil, run = bound(on_mismatch=answer)
    inp, out = make(), np.zeros(SHAPE)
    inp[...] = VALUES
    run(inp, out)
    assert np.array_equal(out, VALUES)
    seen = stencil.seen["inp"]
    assert seen.flags.aligned
    assert seen.ctypes.data != inp.ctypes.data


@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied, and the results back: memory",
)
@MADE
@pytest.mark.parametrize("answer", ["copy", {"memory": "copy", "device": "raise"}], ids=str)
def test_an_output_that_cannot_be_written_in_place_gets_what_was_written(make, answer):
    _, run = bound(on_mismatch=answer)
    out = make()
    run(VALUES, out)
    assert np.array_equal(out, VALUES)


@MADE
def test_a_field_that_is_read_and_written_has_its_values_in_the_copy(make):
    def double(both):
        both *= 2

    both = make(value=21.0)
    dlf.bind(StandIn(body=double, both=field("READ_WRITE")), on_mismatch="copy")(both)
    assert (both == 42.0).all()


@MADE
@pytest.mark.parametrize("access", ["WRITE", "READ_WRITE"])
def test_values_that_the_stencil_does_not_write_stay(make, access):
    def write(out):
        out[..., :2] = 1.0

    out = make(value=-1.0)
    dlf.bind(StandIn(body=write, out=field(access)), on_mismatch="copy")(out, **HALF)
    assert (out[..., :2] == 1.0).all()
    assert (out[..., 2:] == -1.0).all()


def test_the_bytes_between_the_items_of_an_output_stay():
    records = np.zeros(SHAPE, [("a", "u1"), ("b", "f8")])
    records["a"] = 7
    bound(on_mismatch="copy")[1](VALUES, records["b"])
    assert (records["a"] == 7).all()
    assert np.array_equal(records["b"], VALUES)


@MADE
def test_an_output_of_a_run_that_fails_is_copied_back_as_far_as_it_came(make):
    stencil, run = bound(on_mismatch="copy")
    stencil.raises["run"] = RuntimeError("run")
    out = make()
    with pytest.raises(RuntimeError, match=r"^run$"):
        run(VALUES, out)
    assert np.array_equal(out, VALUES)


@MADE
def test_an_input_that_may_not_be_written_is_copied(make):
    inp, out = make(value=3.0), np.zeros(SHAPE)
    inp.flags.writeable = False
    bound(on_mismatch="copy")[1](inp, out)
    assert (out == 3.0).all()


@MADE
def test_an_input_stays_as_it_is_also_where_the_stencil_writes_its_copy(make):
    stencil, run = bound(on_mismatch="copy")
    stencil.body = lambda inp, out: inp.fill(9.0)
    inp = make(value=3.0)
    run(inp, np.zeros(SHAPE))
    assert (inp == 3.0).all()


@MADE
@pytest.mark.parametrize("answer", ["copy", "raise"])
def test_an_output_that_may_not_be_written_is_refused(make, answer):
    out = make()
    out.flags.writeable = False
    with refused(BufferError, "argument 'out'"):
        bound(on_mismatch=answer)[1](VALUES, out)
    assert (out == -1.0).all()


@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "a buffer that does not fit is an error: memory"
)
@MADE
@pytest.mark.parametrize("name", ["inp", "out"])
@pytest.mark.parametrize("answer", [None, "raise", {"device": "copy"}, {}], ids=str)
def test_without_leave_nothing_is_copied_and_the_call_is_refused(make, name, answer):
    options = {} if answer is None else {"on_mismatch": answer}
    stencil, run = bound(**options)
    given = {"inp": VALUES, "out": np.zeros(SHAPE), name: make()}
    with refused(BufferError, f"argument '{name}'", 'on_mismatch={"memory": "copy"}'):
        run(**given)
    assert stencil.seen is None


@pytest.mark.source("GDP-3 draft", "Annotation of Stencils", "`DType` is the type in an annotation")
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied: names or type",
)
@pytest.mark.parametrize("kind", ["<f4", "i8", "c16", "?"])
@pytest.mark.parametrize("name", ["inp", "out"])
def test_a_dtype_is_never_converted(name, kind):
    given = {"inp": VALUES, "out": np.zeros(SHAPE), name: np.zeros(SHAPE, kind)}
    way_out = "astype('float64')" if name == "inp" else "pass an array of float64"
    with refused(ValueError, f"argument '{name}'", "expected dtype float64", way_out):
        bound(on_mismatch="copy")[1](**given)


@MADE
@pytest.mark.parametrize("name", ["inp", "out"])
def test_a_dtype_is_not_converted_on_the_way_of_a_copy_either(make, name):
    other = column(kind="f4") if make is column else misaligned().view("i8")
    given = {"inp": VALUES, "out": np.zeros(SHAPE), name: other}
    with refused(ValueError, f"argument '{name}'", "expected dtype float64"):
        bound(on_mismatch="copy")[1](**given)


@pytest.mark.parametrize("make", [lambda: np.zeros(SHAPE, ">f8"), lambda: column(kind=">f8")])
@pytest.mark.parametrize("name", ["inp", "out"])
def test_bytes_are_never_swapped(name, make):
    given = {"inp": VALUES, "out": np.zeros(SHAPE), name: make()}
    with refused(BufferError, f"argument '{name}'"):
        bound(on_mismatch="copy")[1](**given)


BAD_ANSWERS = {
    "a number": (3, TypeError, "expected 'copy', 'raise' or a dict by kind, got 3"),
    "None": (None, TypeError, "got None"),
    "a list": (["device"], TypeError, "got ['device']"),
    "no answer": ("warn", ValueError, "expected 'copy' or 'raise', got 'warn'"),
    "no answer for a kind": ({"device": True}, ValueError, "got True for 'device'"),
    "no kind": ({"shape": "copy"}, ValueError, "expected 'device' or 'memory', got 'shape'"),
    "a dtype": ({"dtype": "copy"}, ValueError, "values are never converted"),
}


@pytest.mark.parametrize(("answer", "error", "text"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_an_answer_that_is_none_is_refused_when_the_stencil_is_bound(answer, error, text):
    with refused(error, "on_mismatch: ", text):
        bound(on_mismatch=answer)


def test_that_a_dtype_raises_may_be_said():
    bound(on_mismatch={"dtype": "raise", "device": "copy"})


def test_nothing_is_copied_where_nothing_must_be():
    stencil, run = bound(on_mismatch="copy")
    inp, out = np.asfortranarray(VALUES)[::-1], np.zeros(SHAPE[::-1]).T
    run(inp, out)
    for name, given in (("inp", inp), ("out", out)):
        assert stencil.seen[name].ctypes.data == given.ctypes.data
        assert stencil.seen[name].strides == given.strides


def test_only_the_argument_that_needs_it_is_copied():
    stencil, run = bound(on_mismatch="copy")
    inp = VALUES.copy()
    run(inp, misaligned())
    assert stencil.seen["inp"].ctypes.data == inp.ctypes.data


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "backends that compute with NumPy accept memory of any kind",
)
@pytest.mark.parametrize("backend", ["numpy", "debug"])
def test_misaligned_memory_is_used_in_place_where_numpy_computes(backend):
    inp, out = misaligned(value=5.0), misaligned()
    stencil, _ = bound()
    stencil.backend = backend
    dlf.bind(stencil)(inp, out)
    assert stencil.seen["out"].ctypes.data == out.ctypes.data
    assert (out == 5.0).all()


def in_place():
    def add(inp, out):
        out += inp

    stencil = StandIn(body=add, inp=field("READ"), out=field("READ_WRITE"))
    return stencil, dlf.bind(stencil, on_mismatch="copy")


def test_a_misaligned_object_that_is_read_and_written_is_copied_once():
    stencil, run = in_place()
    both = misaligned(value=3.0)
    run(both, both)
    assert stencil.seen["inp"].ctypes.data == stencil.seen["out"].ctypes.data
    assert (both == 6.0).all()


def test_a_column_that_is_read_and_written_is_copied_once():
    stencil, run = in_place()
    both = column(value=3.0)
    run(both, both)
    assert (both == 6.0).all()
    assert stencil.seen["inp"].ctypes.data == stencil.seen["out"].ctypes.data


def two_outputs():
    def write(left, right):
        left.fill(1.0)
        right.fill(2.0)

    stencil = StandIn(body=write, left=field("WRITE"), right=field("WRITE"))
    return dlf.bind(stencil, on_mismatch="copy")


def test_outputs_in_one_misaligned_memory_are_refused():
    whole = misaligned((4, 4, 5))
    with refused(BufferError, "'left' and 'right'", "overlap"):
        two_outputs()(whole[:3], whole[1:])
    assert (whole == -1.0).all()


@pytest.mark.parametrize("start", [0, 1])
def test_outputs_in_one_column_are_refused(start):
    whole = column((4, 4, 5))
    with refused(BufferError, "'left' and 'right'", "overlap"):
        two_outputs()(whole[:3], whole[start : start + 3])
    assert (whole == -1.0).all()


@MADE
def test_nothing_of_a_copy_is_alive_after_the_call(make):
    stencil, run = bound(on_mismatch="copy")
    inp, watch = tracked(VALUES)
    gc.collect()
    before = live_allocations()
    run(inp, make())
    run(make(), np.zeros(SHAPE))
    stencil.seen = None
    gc.collect()
    assert live_allocations() == before
    del inp
    assert watch.freed


@MADE
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_of_a_copy_is_alive_after_a_run_that_failed(make, error):
    stencil, run = bound(on_mismatch="copy")
    stencil.raises["run"] = error("run")
    gc.collect()
    before = live_allocations()
    with pytest.raises(error):
        run(make(), make())
    stencil.seen = None
    stencil.raises.clear()
    gc.collect()
    assert live_allocations() == before


C, F = Field[float, LayoutMap[0, 1, 2]], Field[float, LayoutMap[2, 1, 0]]

#: What is declared, what does not have it, and what has.
DECLARED = {
    "C order": (C, np.zeros(SHAPE, order="F"), lambda a: a.flags.c_contiguous),
    "Fortran order": (F, np.zeros(SHAPE), lambda a: a.strides == tuple(sorted(a.strides))),
    "default parameters": (
        Field[float, DefaultParameters["F"]],
        np.zeros(SHAPE),
        lambda a: a.strides == tuple(sorted(a.strides)),
    ),
    "alignment": (
        Field[float, Alignment[8]],
        np.zeros((3, 4, 5)),  # rows of five
        lambda a: on_boundary(a, 64) and all(stride % 64 == 0 for stride in a.strides[:2]),
    ),
}


def declared(annotation):
    """Bind a callable that adds one, and notes what it gets."""
    seen = []

    def add_one(both):
        seen.append(both)
        both += 1

    return seen, lambda **options: dlf.bind(add_one, fields={"both": annotation}, **options)


@pytest.mark.parametrize(("annotation", "given", "holds"), DECLARED.values(), ids=DECLARED)
def test_memory_that_is_not_as_declared_is_copied_to_such_as_is(annotation, given, holds):
    seen, bind = declared(annotation)
    both = given.copy("K")
    bind(on_mismatch="copy")(both)
    assert holds(seen[0])
    assert (both == 1.0).all()


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "`LayoutMap` is the layout in an annotation",
    "`DefaultParameters` is a preset in an annotation",
)
@pytest.mark.parametrize(("annotation", "given", "holds"), DECLARED.values(), ids=DECLARED)
def test_memory_that_is_not_as_declared_is_refused_without_leave(annotation, given, holds):
    seen, bind = declared(annotation)
    with refused(BufferError, "argument 'both'", "expected", "got", "storage(x, layout="):
        bind()(given)
    assert seen == []
    assert not holds(given)


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "a storage whose layout differs from the backend's is declared to the stencil",
)
@pytest.mark.parametrize(("annotation", "given", "holds"), DECLARED.values(), ids=DECLARED)
def test_memory_that_is_as_declared_is_not_copied(annotation, given, holds):
    made, bind = declared(annotation)
    bind(on_mismatch="copy")(given.copy("K"))
    [fitting] = made
    again, bind = declared(annotation)
    bind(on_mismatch="copy")(fitting)
    assert again[0].ctypes.data == fitting.ctypes.data


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "`Alignment` is the alignment in an annotation, in elements",
)
def test_the_alignment_is_that_of_the_first_point_of_the_domain():
    seen = []

    def note(inp, origin, domain):
        i, j, k = origin["inp"]
        seen.append(inp[i:, j:, k:].ctypes.data)

    annotation = Field[float, Alignment[8], Access["in"]]
    run = dlf.bind(note, fields={"inp": annotation}, on_mismatch="copy")
    run(VALUES, origin=(1, 1, 1), domain=(2, 2, 2))
    assert seen[0] % 64 == 0


def test_an_object_that_is_passed_twice_is_as_each_argument_declares_it():
    seen = []

    def note(one, other):
        seen.extend([one.strides, other.strides])

    fields = {"one": Field[float, LayoutMap[0, 1, 2], Access["in"]], "other": F}
    both = misaligned()
    dlf.bind(note, fields=fields, on_mismatch="copy")(both, both)
    assert seen[0] == tuple(sorted(seen[0], reverse=True))
    assert seen[1] == tuple(sorted(seen[1]))


def test_a_misaligned_array_with_names_in_another_order_is_copied_back_where_it_belongs():
    def number(out):
        out[...] = VALUES

    class Named(np.ndarray):
        __gt_dims__ = ("K", "I", "J")

    out = misaligned((5, 3, 4)).view(Named)
    dlf.bind(StandIn(body=number, out=field("WRITE")), on_mismatch="copy")(out)
    assert np.array_equal(out.transpose(1, 2, 0), VALUES)
