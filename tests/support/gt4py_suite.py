"""GT4Py's own tests with `bind` in front of every call of a stencil: a plugin for pytest.

`make gt4py-suite SOURCE=<checkout of GT4Py>` runs it. Each call goes to GT4Py as the test makes it,
and through `dlfield.bind` on copies of the arguments; the results have to be equal, bit for bit
where they are finite. The tests themselves see GT4Py's own answer. At the end stand the tables of
docs/stencils.md, with more columns.
"""

import copy
import functools
import json
import re
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

EQUAL, DIFFERENT = "bound and equal", "bound and different"
NOT_BOUND, REFUSED = REFUSALS = "refused at bind", "refused at the call"
NEITHER, ONLY_BOUND = "GT4Py fails, bind refuses", "GT4Py fails, bind computes"
OUTCOMES = (EQUAL, DIFFERENT, *REFUSALS, NEITHER, ONLY_BOUND)

#: Calls of the test that runs, with how often each was made; calls of all tests.
_of_this_test = Counter()
_of_all = []
_within = []


def pytest_addoption(parser):
    parser.addoption("--calls", help="file for every call, as JSON")
    parser.addoption("--part", default="1/1", help="1/3 runs the first of every three")


def pytest_configure(config):
    from gt4py.cartesian.stencil_object import StencilObject
    from gt4py.next.ffront import decorator

    _put_in_front(StencilObject, "_call_run", _call_cartesian)
    others = (decorator.ProgramWithBoundArgs, decorator.FieldOperatorFromFoast)
    for owner in {*decorator.Program.__mro__, *decorator.FieldOperator.__mro__, *others}:
        if "__call__" in vars(owner) and owner.__module__.startswith("gt4py.next."):
            _put_in_front(owner, "__call__", _call_next)


@pytest.hookimpl(trylast=True)  # after -k has chosen
def pytest_collection_modifyitems(config, items):
    """Keep one of so many parts, whole classes: one test compiles what another calls."""
    number, parts = map(int, config.getoption("--part").split("/"))
    together = [item.parent.nodeid if item.cls else item.nodeid for item in items]
    kept = set(list(dict.fromkeys(together))[number - 1 :: parts])
    items[:] = [item for item, one in zip(items, together, strict=True) if one in kept]


def pytest_sessionstart():
    """Take fewer random examples: each makes three calls, which are slow with "debug"."""
    from hypothesis import settings

    settings.register_profile("few", settings(), max_examples=10)
    settings.load_profile("few")


def pytest_runtest_teardown(item):
    made = [[dict(call), count] for call, count in _of_this_test.items()]
    _of_this_test.clear()
    item.user_properties.append(("calls", made))


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        for call, count in dict(report.user_properties).get("calls", ()):
            _of_all.append({**call, "test": report.nodeid, "count": count})


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.section("bind in front of every call")
    terminalreporter.write("\n".join(_summary(_of_all)) + "\n")
    if path := config.getoption("--calls"):
        Path(path).write_text(json.dumps(_of_all, indent=1))


def _put_in_front(owner, name, call):
    """Replace a method by one that makes the outermost call twice, which `call` describes."""
    own = vars(owner)[name]

    @functools.wraps(own)
    def in_front(*args, **kwargs):
        if _within:
            return own(*args, **kwargs)
        with _inside():
            return _twice(functools.partial(own, *args, **kwargs), call(*args, **kwargs))

    setattr(owner, name, in_front)


@contextmanager
def _inside():
    _within.append(True)
    try:
        yield
    finally:
        _within.pop()


def _call_cartesian(stencil, field_args, parameter_args, domain, origin, exec_info=None, **_):
    where = {"domain": domain, "origin": origin, "exec_info": exec_info}
    return stencil, (), {**field_args, **parameter_args, **where}, {}


def _call_next(stencil, *args, offset_provider=None, enable_jit=None, **kwargs):
    options = {} if offset_provider is None else {"offset_provider": offset_provider}
    return stencil, args, kwargs, options


def _twice(directly, call):
    """Let GT4Py compute, and `bind` on copies; note how it went. Give GT4Py's answer."""
    stencil, args, kwargs, options = call
    copies = copy.deepcopy((args, kwargs))
    try:
        answer = directly()
    except Exception as error:
        outcome, refusal = _bound(stencil, *copies, options)
        found = ONLY_BOUND if outcome is None else NEITHER
        _note(stencil, args, kwargs, found, f"{_text(error)} | {refusal}")
        raise
    outcome, refusal = _bound(stencil, *copies, options)
    if outcome is None:
        outcome = EQUAL if _same((args, kwargs), copies) else DIFFERENT
    _note(stencil, args, kwargs, outcome, refusal)
    return answer


def _bound(stencil, args, kwargs, options):
    """Call through `bind`: what refused it, and its words; nothing if it was computed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = dlf.bind(stencil, **options)
        except Exception as error:
            return NOT_BOUND, _text(error)
        try:
            run(*args, **kwargs)
        except Exception as error:
            return REFUSED, _text(error)
    return None, ""


def _text(error):
    return f"{type(error).__name__}: {error}"


def _leaves(value):
    """Return the arrays and scalars in arguments."""
    if isinstance(value, dict):
        return [leaf for name, one in value.items() if name != "exec_info" for leaf in _leaves(one)]
    if isinstance(value, tuple | list):
        return [leaf for one in value for leaf in _leaves(one)]
    if hasattr(value, "__dataclass_fields__") and not hasattr(value, "ndarray"):
        return _leaves(vars(value)) if hasattr(value, "__dict__") else [value]
    return [getattr(value, "ndarray", value)]


def _same(ones, others):
    return all(map(_equal, _leaves(ones), _leaves(others)))


def _equal(one, other):
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind == "O" or one.dtype != other.dtype:
        return one.dtype == other.dtype
    if one.dtype.kind not in "fc":
        return np.array_equal(one, other)
    finite = np.isfinite(one)
    exact = one[finite].tobytes() == other[finite].tobytes()
    return exact and np.array_equal(one, other, equal_nan=True)


def _note(stencil, args, kwargs, outcome, message):
    shapes = [_form(one) for one in args] + [f"{name}={_form(kwargs[name])}" for name in kwargs]
    call = {
        "flavour": "next" if type(stencil).__module__.startswith("gt4py.next") else "cartesian",
        "backend": _backend(stencil),
        "outcome": outcome,
        "message": message,
        "arguments": ", ".join(shapes) if message else "",
    }
    _of_this_test[tuple(call.items())] += 1


def _backend(stencil):
    name = "embedded" if stencil.backend is None else stencil.backend
    name = getattr(name, "name", name)
    return name if isinstance(name, str) else type(name).__name__


def _form(value):
    """Describe an argument in a few words."""
    if hasattr(value, "domain") and hasattr(value, "ndarray"):
        return f"{type(value).__name__}[{value.domain}, {value.dtype}]"
    if hasattr(value, "shape") and value.shape:
        return f"{type(value).__name__}[{tuple(value.shape)}, {value.dtype}]"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(_form, value))})"
    return f"{type(value).__name__} {value!r}"[:100]


def _summary(calls):
    """Count, in Markdown: outcomes by backend, and refusals by their words."""
    for flavour in sorted({call["flavour"] for call in calls}):
        some = [call for call in calls if call["flavour"] == flavour]
        yield from _table(f"gt4py.{flavour}", *OUTCOMES)
        for backend in sorted({call["backend"] for call in some}):
            here = [call for call in some if call["backend"] == backend]
            counts = (sum(one["count"] for one in here if one["outcome"] == it) for it in OUTCOMES)
            yield _row(backend, *counts)
        yield from _table("calls", "tests", "outcome", "words", "for example")
        yield from _refusals([one for one in some if one["outcome"] in (DIFFERENT, *REFUSALS)])
        yield ""


def _table(*heads):
    return _row(*heads), _row(*("---" for _ in heads))


def _row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def _words(message):
    """Leave out of a message what differs from call to call: names, numbers, types."""
    for differs, instead in (
        (r"; .*", ""),
        (r"'[^']*'", "'_'"),
        (r"-?\d+", "n"),
        (r"Error: [\w.]+(\(.*?\))?: ", "Error: _: "),
        (r"(got \w+)[\[{].*", r"\1"),
    ):
        message = re.sub(differs, instead, message, flags=re.DOTALL)
    return message[:200]


def _refusals(calls):
    groups = {}
    for call in calls:
        groups.setdefault((call["outcome"], _words(call["message"])), []).append(call)
    for (outcome, words), some in sorted(groups.items(), key=lambda one: -len(one[1])):
        tests = {call["test"] for call in some}
        example = min(tests).rpartition("/")[2]
        yield _row(sum(one["count"] for one in some), len(tests), outcome, words, example)
