"""What a call warns of where it goes on: in which words, on whose line, and how often."""

import linecache
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Alignment, DefaultParameters, Field, LayoutMap

from support.no_driver import without_driver
from support.stencils.stand_ins import (
    FromDevice,
    StagingStandIn,
    StandIn,
    bound,
    column,
    field,
    misaligned,
)

#: So large that the order of memory matters.
SHAPE = (32, 32, 20)
IN_C, IN_F = np.zeros(SHAPE), np.zeros(SHAPE, order="F")


@contextmanager
def warned(action="default"):
    """Return what is warned of, as Python filters it where nobody has said anything."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter(action)
        yield caught


def fast_with(backend, **fields):
    fields = fields or {"inp": field("READ"), "out": field("WRITE")}
    return dlf.bind(StandIn(backend=backend, **fields), on_mismatch="copy")


def only(caught):
    [warning] = caught
    return warning.category, str(warning.message)


@pytest.mark.source(
    "GDP-3 draft", "Run-time Checks", "a field that does not fit but is safe to use gives a warning"
)
def test_a_layout_that_is_slow_is_named_with_the_backend_and_a_way_to_a_fast_one():
    with warned() as caught:
        fast_with("gt:cpu_ifirst")(IN_C, IN_F)
    text = (
        "argument 'inp': expected memory in the order ('K', 'J', 'I'), largest stride first, with "
        "which 'gt:cpu_ifirst' is fast (8 to 13 times, measured), got ('I', 'J', 'K'); "
        "dlfield.storage(inp, layout=(2, 1, 0)) is a copy in that order"
    )
    assert only(caught) == (dlf.LayoutWarning, text)


@pytest.mark.source(
    "GDP-3 draft", "Run-time Checks", "a field that does not fit but is safe to use gives a warning"
)
@pytest.mark.parametrize(
    ("backend", "slow"), [("gt:cpu_kfirst", IN_F), ("gt:cpu_ifirst", IN_C), ("numpy", IN_F)]
)
def test_each_backend_warns_of_the_layout_that_is_slow_with_it(backend, slow):
    with warned() as caught:
        fast_with(backend, out=field("WRITE"))(slow)
    category, text = only(caught)
    order = ("I", "J", "K") if slow is IN_C else ("K", "J", "I")
    assert category is dlf.LayoutWarning
    for said in ("argument 'out'", f"'{backend}' is fast (", f"got {order}; make it with layout=("):
        assert said in text


def test_every_argument_that_is_slow_is_listed_in_one_warning():
    with warned() as caught:
        fast_with("gt:cpu_kfirst")(IN_F, IN_F.copy("K"))
    category, text = only(caught)
    expected = (
        "expected memory in the order ('I', 'J', 'K'), largest stride first, with which "
        "'gt:cpu_kfirst' is fast (8 to 11 times, measured), got ('K', 'J', 'I')"
    )
    assert category is dlf.LayoutWarning
    assert text == (
        f"argument 'inp': {expected}; dlfield.storage(inp, layout=(0, 1, 2)) is a copy in that "
        f"order; argument 'out': {expected}; make it with layout=(0, 1, 2)"
    )


def test_a_stencil_warns_of_slow_orders_once_whatever_comes_later_and_wherever_it_is_called():
    run = fast_with("gt:cpu_kfirst")
    with warned("always") as caught:
        run(IN_F, np.zeros(SHAPE))
        run(IN_F, np.zeros(SHAPE))
        run(IN_C, IN_F.copy("K"))
    assert len(caught) == 1


def test_a_stencil_that_is_bound_again_warns_again():
    with warned("always") as caught:
        for _ in range(2):
            fast_with("gt:cpu_kfirst")(IN_F, np.zeros(SHAPE))
    assert len(caught) == 2


def test_a_warning_of_a_slow_order_that_was_an_error_has_not_been_shown():
    run = fast_with("gt:cpu_kfirst")
    for _ in range(2):
        with warnings.catch_warnings(action="error"), pytest.raises(dlf.LayoutWarning):
            run(IN_F, np.zeros(SHAPE))
    with warned() as caught:
        run(IN_F, np.zeros(SHAPE))
    assert len(caught) == 1


def test_threads_that_call_at_once_warn_once():
    run = fast_with("gt:cpu_kfirst")
    with warned("always") as caught, ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(run, IN_F, np.zeros(SHAPE)) for _ in range(16)]
        assert [call.result() for call in calls] == [None] * 16
    assert len(caught) == 1


SILENT = {
    "so few points that the call itself takes the time": (
        "gt:cpu_kfirst",
        np.zeros((25, 25, 25), order="F"),
    ),
    "the right layout": ("gt:cpu_kfirst", IN_C),
    "an extent of one": ("gt:cpu_kfirst", np.zeros((20_000, 1, 1)).T.copy().T),
    "a backend that no preset knows": ("of:mine", IN_F),
}


@pytest.mark.parametrize(("backend", "out"), SILENT.values(), ids=SILENT)
def test_no_layout_is_warned_of_with(backend, out):
    with warned() as caught:
        fast_with(backend, out=field("WRITE"))(out)
    assert caught == []


@pytest.mark.parametrize("out", [IN_C, IN_F], ids=["C", "F"])
def test_a_callable_without_a_backend_and_declarations_warns_of_nothing(out):
    with warned() as caught:
        dlf.bind(lambda out: None, fields={"out": Field[float]})(out)
    assert caught == []


def test_misaligned_memory_that_is_copied_is_named_with_how_far_it_is_off():
    out = misaligned(SHAPE)
    with warned() as caught:
        bound(on_mismatch="copy")[1](IN_C, out)
    text = (
        "argument 'out': expected items aligned to 8 bytes, got ones "
        f"{out.ctypes.data % 8} bytes behind such a boundary; copied at each call"
    )
    assert only(caught) == (dlf.MemoryCopyWarning, text)


def test_a_column_that_is_copied_is_named_with_its_stride():
    with warned() as caught:
        bound(on_mismatch="copy")[1](column(SHAPE), np.zeros(SHAPE))
    category, text = only(caught)
    assert category is dlf.MemoryCopyWarning
    for said in (
        "argument 'inp'",
        "multiple of the item size 8, got 180 bytes",
        "; copied at each",
    ):
        assert said in text


@pytest.mark.source(
    "GDP-3", "Data Interface", "copying a buffer from the other side gives a warning"
)
@without_driver
def test_an_array_of_a_device_that_is_copied_is_named_with_it():
    with warned() as caught:
        bound(on_mismatch="copy")[1](FromDevice(SHAPE), np.zeros(SHAPE))
    category, text = only(caught)
    assert category is dlf.DeviceCopyWarning
    for said in ("argument 'inp'", "the host", "cuda:0", "; copied at each call"):
        assert said in text


@pytest.mark.source(
    "GDP-3", "Data Interface", "copying a buffer from the other side gives a warning"
)
@without_driver
def test_arrays_of_the_host_that_a_gpu_gets_are_warned_of():
    stencil = StagingStandIn(inp=field("READ"), out=field("WRITE"), backend="of:mine")
    with warned() as caught:
        dlf.bind(stencil, on_mismatch="copy")(IN_C, np.zeros(SHAPE))
    texts = [
        f"argument '{name}': expected memory of a GPU, got cpu; copied at each call"
        for name in ("inp", "out")
    ]
    assert [str(one.message) for one in caught] == texts
    assert {one.category for one in caught} == {dlf.DeviceCopyWarning}


def test_the_categories_are_different_warnings_of_users():
    kinds = (dlf.LayoutWarning, dlf.MemoryCopyWarning, dlf.DeviceCopyWarning)
    assert all(kind.__base__ is UserWarning for kind in kinds)
    assert len({kind.__name__ for kind in kinds}) == len(kinds)


MAKERS = {
    "layout": lambda: (fast_with("gt:cpu_kfirst"), (IN_F, np.zeros(SHAPE))),
    "memory": lambda: (bound(on_mismatch="copy")[1], (misaligned(SHAPE), np.zeros(SHAPE))),
    "device": pytest.param(
        lambda: (bound(on_mismatch="copy")[1], (FromDevice(SHAPE), np.zeros(SHAPE))),
        marks=without_driver,
    ),
}
EVERY_KIND = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
COPIES = {kind: make for kind, make in MAKERS.items() if kind != "layout"}
EVERY_COPY = pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)


@EVERY_KIND
def test_a_warning_names_the_line_of_the_call(make):
    run, arguments = make()
    with warned() as caught:
        run(*arguments)  # this very line
    [warning] = caught
    assert warning.filename == __file__
    assert "# this very line" in linecache.getline(__file__, warning.lineno)


@EVERY_KIND
def test_a_warning_names_the_line_of_a_call_by_keywords(make):
    run, (inp, out) = make()
    with warned() as caught:
        run(inp=inp, out=out, exec_info={})  # and this one
    [warning] = caught
    assert "# and this one" in linecache.getline(__file__, warning.lineno)


@EVERY_KIND
def test_a_call_in_a_loop_is_warned_of_once(make):
    run, arguments = make()
    with warned() as caught:
        for _ in range(5):
            run(*arguments)
    assert len(caught) == 1


def of_new_address(kept=[]):  # noqa: B006 - so that no address comes twice
    kept.append(misaligned(SHAPE))
    return kept[-1]


def test_a_call_in_a_loop_with_new_arrays_is_warned_of_once():
    _, run = bound(on_mismatch="copy")
    with warned() as caught:
        for _ in range(5):
            run(of_new_address(), np.zeros(SHAPE))
    assert len(caught) == 1


@EVERY_COPY
def test_another_line_of_calls_that_copy_is_warned_of_again(make):
    run, arguments = make()
    with warned() as caught:
        run(*arguments)
        run(*arguments)
    assert [warning.lineno for warning in caught] == [caught[0].lineno, caught[0].lineno + 1]


@EVERY_KIND
def test_a_call_is_warned_of_also_after_a_good_one_with_the_same_shapes(make):
    run, arguments = make()
    with warned() as caught:
        for given in ((IN_C, np.zeros(SHAPE)), arguments):
            run(*given)
    assert len(caught) == 1


@EVERY_COPY
def test_every_call_that_copies_is_warned_of_where_a_filter_says_so(make):
    run, arguments = make()
    with warned("always") as caught:
        for _ in range(3):
            run(*arguments)
    assert len(caught) == 3


@pytest.mark.source(
    "GDP-3 draft", "Run-time Checks", "a field that does not fit but is safe to use gives a warning"
)
@EVERY_KIND
def test_a_call_that_is_warned_of_goes_on(make):
    run, (inp, out) = make()
    run.stencil.body = lambda inp, out: out.fill(1.0)
    with warned():
        run(inp, out)
    assert (out == 1.0).all()


@EVERY_KIND
def test_a_warning_that_is_made_an_error_stops_the_call(make):
    run, arguments = make()
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning):
        run(*arguments)
    assert run.stencil.seen is None


#: What is declared, and an array that does not have it.
DECLARED = {
    "layout": (Field[float, LayoutMap[0, 1, 2]], IN_F, "ordered as [0, 1, 2]"),
    "default parameters": (Field[float, DefaultParameters["F"]], IN_C, "ordered as [2, 1, 0]"),
    "alignment": (Field[float, Alignment[8]], IN_C, "on a boundary of 64 bytes"),
}
EVERY_DECLARED = pytest.mark.parametrize(
    ("annotation", "given", "text"), DECLARED.values(), ids=DECLARED
)


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "backends that compute with NumPy accept memory of any kind",
    "backends that compute with NumPy only warn of a field that does not fit",
)
@EVERY_DECLARED
@pytest.mark.parametrize("backend", ["numpy", "debug"])
@pytest.mark.parametrize("answer", ["copy", "raise"])
def test_what_is_declared_only_warns_where_numpy_computes(annotation, given, text, backend, answer):
    seen = []
    run = dlf.bind(
        lambda field: seen.append(field),
        fields={"field": annotation},
        backend=backend,
        on_mismatch=answer,
    )
    with warned() as caught:
        run(given)
    category, said = only(caught)
    assert category is dlf.LayoutWarning
    assert said.startswith("argument 'field': expected ")
    assert text in said
    assert seen[0].ctypes.data == given.ctypes.data


@EVERY_DECLARED
def test_what_is_declared_and_copied_is_warned_of(annotation, given, text):
    run = dlf.bind(lambda field: None, fields={"field": annotation}, on_mismatch="copy")
    with warned() as caught:
        run(given.copy("K"))
    category, said = only(caught)
    assert category is dlf.MemoryCopyWarning
    assert text in said


def test_what_is_declared_and_kept_is_not_warned_of_though_the_backend_is_faster_otherwise():
    annotation = Field[float, LayoutMap[2, 1, 0], Access["in"]]
    run = dlf.bind(lambda inp: None, fields={"inp": annotation}, backend="gt:cpu_kfirst")
    with warned() as caught:
        run(IN_F)
    assert caught == []
