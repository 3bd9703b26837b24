"""The stub of the compiled module, and the docstrings of what it has."""

import ast
import inspect
import re
from pathlib import Path

import dlfield as dlf
import pytest
from dlfield import _core

from support.stub_docs import STUB, described, rewritten

TEXT = STUB.read_text()


def test_the_docstrings_of_the_stub_are_those_of_the_module():
    assert rewritten(TEXT) == TEXT, "run `make pages`"


def test_only_what_does_not_exist_is_exempt_from_the_check_of_the_stub():
    root = Path(__file__).parents[3]
    lines = (root / "stubtest-allowed.txt").read_text("utf-8").splitlines()
    allowed = re.compile("|".join(line for line in lines if not line.startswith("#")))
    names = {f"dlfield._core.{name}" for name in vars(_core)}
    names |= {f"dlfield._core.Storage.{name}" for name in dir(_core.Storage)}
    exempt = [name.split(".") for name in names if allowed.fullmatch(name)]
    assert [one for one in exempt if len(one) == 3 or hasattr(_core.Storage, one[3])] == []
    assert exempt


def public(tree):
    for node, thing in described(tree):
        if not node.name.startswith("_"):
            yield pytest.param(node, thing, id=f"{node.name} {node.lineno}")


@pytest.mark.parametrize(("node", "thing"), list(public(ast.parse(TEXT))))
def test_everything_public_has_a_docstring(node, thing):
    setter = thing is None and any(isinstance(one, ast.Attribute) for one in node.decorator_list)
    assert setter or ast.get_docstring(node)


def members():
    """Go through public names of the package, and through those of its classes."""
    for name in sorted(set(dlf.__all__) - {"UNSET", "__version__"}):
        thing = getattr(dlf, name)
        yield pytest.param(thing, id=name)
        if inspect.isclass(thing):
            own = (one for one in sorted(vars(thing).items()) if not one[0].startswith("_"))
            yield from (pytest.param(found, id=f"{name}.{one}") for one, found in own)


@pytest.mark.parametrize("thing", list(members()))
def test_help_has_a_text_for_everything_public(thing):
    assert getattr(thing, "__doc__", None)


def test_the_stub_lists_what_the_module_has():
    made = {name for name in vars(_core) if not name.startswith("__")} | {"__version__"}
    assert set(_core_all()) == made


def _core_all():
    for node in ast.parse(TEXT).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError("no __all__ in the stub")
