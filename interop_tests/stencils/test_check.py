"""`checking`: what it finds in a model, where, and what it leaves as it is."""

import sys
import threading
import warnings
import weakref
from contextlib import suppress

import dlfield as dlf
import numpy as np
import pytest
from dlfield.check.asking import Asker
from dlfield.stencils.next.nodes import UnknownError

from support.optional import library

gtscript = library("gt4py.cartesian.gtscript")
gtx = library("gt4py.next")

from gt4py.cartesian.gtscript import PARALLEL, computation, interval  # noqa: E402 (after the skip)
from gt4py.cartesian.stencil_object import StencilObject  # noqa: E402
from gt4py.next.ffront.decorator import FieldOperator, Program, ProgramWithBoundArgs  # noqa: E402

from support import planted_model  # noqa: E402
from support.planted_model import PLACE, Model, damped  # noqa: E402
from support.processes import one_at_a_time  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::dlfield.RefusedCallWarning"),
    pytest.mark.filterwarnings("ignore:Field View Program:UserWarning"),
]


@pytest.fixture(scope="module")
def compile_model():
    def compiled(backend):
        with one_at_a_time(f"planted-{backend}".replace(":", "-")):
            return Model(backend)

    return compiled


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def check():
    with dlf.checking(summary=False) as report:
        yield report


def of_the_check(warned):
    """Leave out the deprecation warnings of libraries, which a new version of Python may bring."""
    return [one for one in warned if issubclass(one.category, dlf.RefusedCallWarning)]


def overlap(model):
    """Call a stencil that reads around what it writes."""
    model.stage(model.u, model.u_new, model.u_new, 0.002, **PLACE)


# Findings.


def test_a_model_has_the_three_mistakes_that_were_planted_and_no_other(model, check):
    model.run(2)
    assert [one.line for one in check.findings] == planted_model.planted_lines()


def test_a_model_without_mistakes_has_no_finding(model, check):
    model.run_well(2)
    assert check.findings == []


@pytest.mark.parametrize("backend", ["numpy", "gt:cpu_kfirst"])
def test_a_stage_that_reads_around_what_it_writes_is_found_on(backend, compile_model, check):
    overlap(compile_model(backend))
    assert "'u_now' and 'u_out'" in check.findings[0].text


def test_a_number_for_a_mask_is_found_in_an_operator(model, check):
    damped(model.edges, model.mask, out=model.damped, offset_provider={})
    assert "expected dtype bool, got float64; convert it" in check.findings[0].text


def test_run_of_a_stencil_is_checked_as_a_call_is(model, check):
    place = {"_origin_": dict.fromkeys(("u_old", "u_now", "u_out"), (3, 0, 0))}
    fields = {"u_old": model.u, "u_now": model.u_new, "u_out": model.u_new}
    model.stage.run(**fields, dt=0.1, _domain_=(12, 1, 2), exec_info=None, **place)
    assert len(check.findings) == 1


def test_a_run_beyond_the_array_is_found(compile_model, check):
    model = compile_model("gt:cpu_kfirst")
    fields = {"u_old": model.u[3:], "u_now": model.u[3:], "u_out": model.u_new[3:]}
    origins = dict.fromkeys(fields, (0, 0, 0))
    model.stage.run(**fields, dt=0.1, _domain_=(12, 1, 2), _origin_=origins, exec_info=None)
    assert "u_now" in check.findings[0].text


def test_a_call_that_asks_for_times_has_the_finding_of_one_that_does_not(model, check):
    given, beyond = (model.u, model.u, model.u_new, 0.1), {**PLACE, "domain": (99, 1, 2)}
    with suppress(ValueError):
        model.stage(*given, **beyond)
    with suppress(ValueError):
        model.stage(*given, **beyond, exec_info={})
    one, other = (found.text for found in check.findings)
    assert one == other


def test_a_frozen_stencil_is_checked(model, check):
    frozen = model.stage.freeze(
        origin=dict.fromkeys(("u_old", "u_now", "u_out"), (3, 0, 0)), domain=(12, 1, 2)
    )
    frozen(u_old=model.u, u_now=model.u_new, u_out=model.u_new, dt=0.1)
    assert len(check.findings) == 1


def test_a_stencil_that_is_compiled_inside_of_the_block_is_checked(check):
    overlap(Model())
    assert len(check.findings) == 1


def shifted(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):
    from __externals__ import FACTOR

    with computation(PARALLEL), interval(...):
        out = FACTOR * inp  # noqa: F841 (writes the field)


def twice_compiled():
    """Compile a definition for two factors, and return the first stencil."""
    options = {"backend": "numpy", "definition": shifted}
    first, _ = (gtscript.stencil(externals={"FACTOR": one}, **options) for one in (0.25, 0.75))
    return first


def test_a_stencil_is_understood_though_its_definition_is_compiled_again(model, check):
    twice_compiled()(model.u, model.u)
    assert (check.findings, dict(check.unchecked)) == ([], {})


def test_an_overlap_in_a_stencil_that_is_not_understood_is_no_finding(model):
    stencil = twice_compiled()  # before the check, so that its externals are forgotten
    with dlf.checking(summary=False) as report:
        stencil(model.u, model.u)
    assert report.findings == []
    assert next(iter(report.unchecked)).startswith("shifted: arguments 'inp' and 'out'")


def test_a_program_is_one_call_with_its_operators(model, check):
    mask = gtx.as_field([planted_model.Edge], np.zeros(18, bool))
    damp(model.edges, mask, model.damped, offset_provider={})
    assert dict(check.stencils) == {"damp": 1}


@gtx.program
def damp(values: planted_model.OnEdges, mask: planted_model.Mask, out: planted_model.OnEdges):
    damped(values, mask, out=out)


# How it tells.


def test_a_line_is_shown_once_and_all_its_calls_are_counted(model, check):
    with pytest.warns(dlf.RefusedCallWarning) as warned:
        model.run(4)
    shown = of_the_check(warned)
    assert (len(shown), [one.calls for one in check.findings]) == (3, [4, 4, 4])


def test_a_warning_stands_at_the_line_of_the_program(model, check):
    with pytest.warns(dlf.RefusedCallWarning) as warned:
        overlap(model)
    shown = of_the_check(warned)
    assert (shown[0].filename, shown[0].lineno) == (__file__, overlap.__code__.co_firstlineno + 2)


def test_a_warning_that_is_an_error_comes_at_each_call(model, check):
    with warnings.catch_warnings():
        warnings.simplefilter("error", dlf.RefusedCallWarning)
        for _ in range(2):
            with pytest.raises(dlf.RefusedCallWarning):
                overlap(model)


def test_error_raises_as_bind_does_before_anything_is_written(model):
    before = model.u_new.copy()
    with dlf.checking(error=True, summary=False), pytest.raises(BufferError, match="overlap"):
        overlap(model)
    assert np.array_equal(model.u_new, before)


def test_a_call_that_gt4py_refuses_is_counted_and_a_finding_at_its_line(model, check):
    with pytest.warns(dlf.RefusedCallWarning), pytest.raises(TypeError, match="dtype of field"):
        model.split(model.u.astype(np.float32), model.rain, model.snow)
    assert dict(check.stencils) == {"split": 1}
    finding = check.findings[0]
    assert (finding.file, finding.text[:24]) == (__file__, "split: argument 'total':")


def test_error_raises_as_bind_does_what_gt4py_refuses(model):
    with (
        dlf.checking(error=True, summary=False),
        pytest.raises(ValueError, match="expected dtype float64"),
    ):
        model.split(model.u.astype(np.float32), model.rain, model.snow)


def test_a_call_that_fails_while_it_runs_is_counted_once(model, check):
    with pytest.raises(TypeError):
        model.stage(model.u, model.u_new, model.u_new, "dt", **PLACE, validate_args=False)
    assert dict(check.stencils) == {"stage": 1}


def test_the_summary_tells_what_has_ended_the_program():
    with pytest.raises(ZeroDivisionError), dlf.checking(summary=False) as report:
        raise ZeroDivisionError
    assert repr(report).splitlines()[-1].startswith("  not checked: everything after the Zero")


def test_the_number_of_calls_stands_before_a_text_that_may_have_several_lines(check):
    check.found("stage", ("model.py", 7), "stage: a table\nof two lines")
    lines = repr(check).splitlines()[1:3]
    assert lines == ["  model.py:7: 1 call: stage: a table", "    of two lines"]


def test_the_summary_is_printed_at_the_end(model, capsys):
    with dlf.checking():
        model.run(1)
    printed = capsys.readouterr().err
    assert printed.startswith("dlfield check: 3 stencils, 4 calls checked, 3 findings\n")


def test_the_summary_says_so_if_no_call_was_seen():
    with dlf.checking(summary=False) as report:
        pass
    assert "no call of a stencil of GT4Py was made" in repr(report)


def test_a_stencil_that_bind_does_not_take_is_reported_as_not_checked(model, check, monkeypatch):
    monkeypatch.setattr("dlfield.check.asking.bind", refuse)
    overlap(model)
    assert dict(check.unchecked) == {"stage: ValueError: bind: expected another": 1}
    assert not check.stencils


def test_a_compiled_program_that_is_not_understood_at_a_call_is_not_checked(model, monkeypatch):
    monkeypatch.setattr("dlfield.stencils.next.footprint.accesses", not_understood)
    mask = gtx.as_field([planted_model.Edge], np.zeros(18, bool))
    arguments = (model.edges, mask, model.damped)
    answer = Asker().ask(damp.with_backend(gtx.gtfn_cpu), arguments, {"offset_provider": {}})
    assert (answer.refusal, answer.asked) == (None, False)
    assert "got a new node" in answer.unchecked


def not_understood(*args, **keywords):
    raise UnknownError("a new node")


def refuse(stencil):
    raise ValueError("bind: expected another")


# The program runs as without a check.


@pytest.mark.parametrize("backend", ["numpy", "gt:cpu_kfirst"])
def test_results_are_the_same_bit_for_bit_with_and_without_a_check_on(backend, compile_model):
    without = compile_model(backend).run(3)
    with dlf.checking(summary=False):
        checked = compile_model(backend).run(3)
    assert checked.tobytes() == without.tobytes()


def functions(model):
    """Return what a check replaces."""
    classes = (Program, ProgramWithBoundArgs, FieldOperator)
    own = [vars(type(model.stage))["run"], vars(StencilObject).get("__init_subclass__")]
    return own + [one.__call__ for one in classes]


def test_gt4pys_own_functions_are_back_after_an_exception(model):
    own = functions(model)
    with suppress(ZeroDivisionError), dlf.checking(summary=False):
        inside = functions(model)
        raise ZeroDivisionError
    assert functions(model) == own
    assert not set(inside) & set(own)


def test_a_function_that_was_kept_from_a_check_computes_after_it(model):
    with dlf.checking(summary=False) as report:
        run = model.split.run
    domain, origins = (18, 1, 2), dict.fromkeys(("total", "rain", "snow"), (0, 0, 0))
    run(domain, origins, None, total=model.u, rain=model.rain, snow=model.snow)
    assert np.array_equal(model.rain, 0.75 * model.u)
    assert not report.stencils


def test_a_check_imports_nothing_of_gt4py():
    from support.processes import run_in_subprocess

    run_in_subprocess("""
        import sys
        import dlfield as dlf
        with dlf.checking():
            assert "gt4py" not in sys.modules
    """)


def test_a_check_keeps_no_array_of_a_refused_call_alive(check):
    model = Model()
    array = weakref.ref(model.u_new)
    overlap(model)
    model.u_new = None
    assert array() is None


def test_an_error_of_gt4py_reaches_the_program(model, check):
    with pytest.raises(TypeError, match="dtype of field"):
        model.split(model.u.astype(np.float32), model.rain, model.snow)


# Bound stencils, nested checks, threads.


def test_a_call_of_a_bound_stencil_is_not_counted(model, check):
    dlf.bind(model.split)(model.u, model.rain, model.snow)
    assert not check.stencils


def test_a_bound_program_is_not_counted_and_neither_are_its_operators(model, check):
    mask = np.zeros(18, bool)
    dlf.bind(damp)(model.edges, mask, model.damped, offset_provider={})
    assert not check.stencils


def test_a_stencil_that_a_bound_function_calls_is_checked(model, check):
    field = dlf.annotations.Field["IJK", np.float64]

    def stage(u, out):
        model.stage(u, out, out, 0.002, **PLACE)

    dlf.bind(stage, fields={"u": field, "out": field})(model.u, model.u_new)
    assert len(check.findings) == 1


def test_checks_may_be_nested_and_each_reports_what_it_has_seen(model, check):
    overlap(model)
    with dlf.checking(summary=False) as inner:
        overlap(model)
    overlap(model)
    assert (check.stencils["stage"], inner.stencils["stage"]) == (3, 1)
    assert (check.findings[0].calls, inner.findings[0].calls) == (3, 1)


def test_one_of_two_checks_is_enough_to_raise(model, check):
    with dlf.checking(error=True, summary=False), pytest.raises(BufferError):
        overlap(model)
    overlap(model)


def test_a_check_sees_the_calls_of_all_threads(check):
    models = [Model() for _ in range(4)]
    threads = [threading.Thread(target=model.run, args=(5,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert check.stencils.total() == 4 * 5 * 4
    assert [one.calls for one in check.findings] == [20, 20, 20]


def test_checks_that_end_in_another_order_leave_nothing_behind(model):
    first, second = dlf.checking(summary=False), dlf.checking(summary=False)
    first.__enter__()
    report = second.__enter__()
    first.__exit__(None, None, None)
    overlap(model)
    second.__exit__(None, None, None)
    assert len(report.findings) == 1
    assert not [one for one in sys.meta_path if type(one).__module__ == "dlfield.check.in_front"]
