"""A gt4py.next, or a program, that is not understood: compiled programs are refused when bound."""

import sys
from importlib import metadata

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.processes import end_of

library("gt4py.next")

from dlfield.stencils.next import footprint, internals, nodes, trial  # noqa: E402 (after the skip)

from support.stencils.next_programs import QUIET, on  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

SHAPE = (2, 3, 4)


@pytest.fixture(autouse=True)
def untried(monkeypatch):
    """Forget what was tried and said, before and after."""
    trial.problem.cache_clear()
    footprint._warned.clear()
    yield
    monkeypatch.undo()
    trial.problem.cache_clear()


def lack_a_node(monkeypatch):
    known = {name: made for name, made in internals._NODES.items() if name != "Lambda"}
    monkeypatch.setattr(internals, "_NODES", known)


def remove_a_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt4py.next.iterator.transforms.trace_shifts", None)
    transforms = library("gt4py.next.iterator.transforms")
    monkeypatch.delattr(transforms, "trace_shifts", raising=False)


def mirror_shifts(monkeypatch):
    read = internals._by
    monkeypatch.setattr(
        internals, "_by", lambda by: found if isinstance(found := read(by), str) else -found
    )


def swap_uses(monkeypatch):
    read = internals._of_program

    def swapped(program):
        found = read(program)
        return type(found)(found.kinds, found.writes, found.reads)

    monkeypatch.setattr(internals, "_of_program", swapped)


BROKEN = {
    "a node less": (lack_a_node, "an expression Lambda"),
    "a module less": (remove_a_module, "trace_shifts"),
    "mirrored shifts": (mirror_shifts, "the known program 'ahead'"),
    "swapped uses": (swap_uses, "the known program 'ahead'"),
}


@pytest.mark.parametrize(("break_it", "told"), BROKEN.values(), ids=BROKEN)
def test_a_compiled_program_of_a_gt4py_that_is_not_understood_is_refused(
    monkeypatch, break_it, told
):
    break_it(monkeypatch)
    with refused(ValueError, "lift: expected a program that dlfield understands", told):
        dlf.bind(on("gtfn_cpu", "lift"))


def test_a_compiled_program_of_a_gt4py_with_renamed_nodes_is_refused():
    # In a process of its own: GT4Py keeps what it finds by the names of its nodes.
    done = end_of("""
        import dlfield as dlf
        from dlfield.stencils.next import internals
        from gt4py.next.iterator import ir
        from support.stencils.next_programs import on

        lift = on("gtfn_cpu", "lift")
        internals.representation(lift, None)  # GT4Py itself has no trouble
        ir.FunCall.__name__ = "Application"
        dlf.bind(lift)
    """)
    refusal = "ValueError: lift: expected a program that dlfield understands"
    assert refusal in done.stderr
    assert "an expression Application" in done.stderr


def test_the_refusal_names_the_version_and_the_way_out(monkeypatch):
    lack_a_node(monkeypatch)
    with refused(ValueError, f"GT4Py {metadata.version('gt4py')}", "bind(..., unchecked=True)"):
        dlf.bind(on("gtfn_cpu", "lift"))


def test_what_is_refused_runs_unchecked_and_explain_says_so(monkeypatch):
    lack_a_node(monkeypatch)
    lift, out = dlf.bind(on("gtfn_cpu", "lift"), unchecked=True), np.zeros(SHAPE)
    lift(np.ones(SHAPE), out)
    assert (out[..., :-1] == 1.0).all()
    plan = dlf.explain(lift, np.ones(SHAPE), out).plan
    assert plan.checked == "unchecked"
    assert "bounds unchecked" in str(dlf.explain(lift, np.ones(SHAPE), out))


def test_an_embedded_program_of_a_gt4py_that_is_not_understood_warns_and_runs(monkeypatch):
    lack_a_node(monkeypatch)
    with pytest.warns(
        UserWarning, match=f"GT4Py {metadata.version('gt4py')}.*bounds are not checked"
    ):
        lift = dlf.bind(on("embedded", "lift"))
    out = np.zeros(SHAPE)
    lift(np.ones(SHAPE), out)
    assert (out[..., :-1] == 1.0).all()


def test_a_program_that_has_an_unknown_node_is_refused_although_gt4py_is_understood(monkeypatch):
    assert trial.problem() == ""
    known = internals._node

    def without_tuples(node):
        found = known(node)
        if isinstance(found, nodes.Call) and found.builtin == "get_domain_range":
            raise nodes.UnknownError("an expression GetDomainRange")
        return found

    monkeypatch.setattr(internals, "_node", without_tuples)
    with refused(ValueError, "lift: expected a program", "got an expression GetDomainRange"):
        dlf.bind(on("gtfn_cpu", "lift"))


def test_unchecked_is_for_gt4py_next_alone():
    with refused(TypeError, "unchecked: expected it for a gt4py.next program only"):
        dlf.bind(lambda out: None, unchecked=True)


def test_the_installed_gt4py_is_understood():
    assert trial.problem() == ""


def test_unequal_is_understood_as_the_installed_gt4py_computes_it():
    assert internals.knows_unequal() is not metadata.version("gt4py").startswith("1.1.")
