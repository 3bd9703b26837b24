"""GT4Py's own tests, with the derivatives of every stencil that they call: a plugin for pytest.

`make gt4py-suite SOURCE=<checkout of GT4Py>` runs it. Each stencil is derived once; its tangent is
compared with dual numbers, and its adjoint with its tangent by the dot product, on random values
between 0.5 and 1.5. At the end stands the table of docs/derivatives.md.
"""

import json
import warnings
from collections import Counter
from pathlib import Path

import dlfield as dlf

from support.derived import checked

RIGHT, WRONG, BROKEN, REFUSED, NOTHING, UNCHECKED = OUTCOMES = (
    "right",
    "wrong",
    "not derived",
    "refused",
    "nothing to derive",
    "not checked",
)
#: Outcomes by the fingerprint of a stencil: the outcome, its name, words.
_found = {}


def pytest_addoption(parser):
    parser.addoption("--derived", help="file for every stencil, as JSON")


def pytest_configure(config):
    from gt4py.cartesian.stencil_object import StencilObject

    own = StencilObject._call_run

    def call(stencil, *args, **kwargs):
        key = stencil._gt_id_
        if key not in _found:
            _found[key] = BROKEN, "", stencil.options["name"], key
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _found[key] = (*outcome(stencil), stencil.options["name"], key)
        return own(stencil, *args, **kwargs)

    StencilObject._call_run = call


def outcome(stencil):
    """Derive a stencil and check it: the outcome, and words."""
    inputs = [one for one in dlf.bind(stencil).declaration.fields if one.access != "write"]
    if not any(one.dtype.kind == "f" for one in inputs if one.access != "unused"):
        return NOTHING, "no input of a floating type"
    try:
        dlf.adjoint(stencil), dlf.tangent(stencil)
    except dlf.NotDifferentiable as error:
        nothing = "no output depends on" in str(error)
        return (NOTHING if nothing else REFUSED), str(error)
    except Exception as error:
        return BROKEN, f"{type(error).__name__}: {error}"
    try:
        checked(stencil)
    except AssertionError as error:
        return WRONG, str(error)
    except Exception as error:
        return UNCHECKED, f"{type(error).__name__}: {error}"
    return RIGHT, ""


def pytest_terminal_summary(terminalreporter, config):
    counts = Counter(found for found, *_ in _found.values())
    terminalreporter.section("derivatives of every stencil")
    terminalreporter.write(" ".join(f"{one}: {counts[one]};" for one in OUTCOMES) + "\n")
    for found, words, name, key in sorted(_found.values()):
        if found != RIGHT:
            terminalreporter.write(f"{found}: {name} {key}: {words[:300]}\n")
    if path := config.getoption("--derived"):
        Path(path).write_text(json.dumps(list(_found.values()), indent=1))
