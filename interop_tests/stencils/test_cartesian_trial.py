"""A GT4Py, or a stencil, that is not understood: GT4Py's own bounds, and no memory is shared."""

import sys
import warnings
from importlib import metadata

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.cartesian")

from dlfield.stencils.cartesian import declare as reading  # noqa: E402 (after the skip)
from dlfield.stencils.cartesian import internals, trial  # noqa: E402
from dlfield.stencils.cartesian.nodes import Access  # noqa: E402
from dlfield.stencils.footprint import Span  # noqa: E402

SHAPE = (2, 2, 4)


@pytest.fixture(autouse=True)
def untried(monkeypatch):
    """Forget what was tried and read, before and after."""
    for forget in (trial.not_understood.cache_clear, trial._warn.cache_clear):
        forget()
    monkeypatch.setattr(reading, "_known", {})
    yield
    monkeypatch.undo()
    for forget in (trial.not_understood.cache_clear, trial._warn.cache_clear):
        forget()


def rename_nodes(monkeypatch):
    oir = library("gt4py.cartesian.gtc.oir")

    class StoreStmt(oir.AssignStmt):
        pass

    monkeypatch.setattr(oir, "AssignStmt", StoreStmt)


def add_an_attribute(monkeypatch):
    monkeypatch.setitem(internals._KNOWN, "FieldAccess", "name offset")


def remove_a_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt4py.cartesian.gtc.gtir_to_oir", None)


def mirror_offsets(monkeypatch):
    read = internals._Reader.access

    def mirrored(self, node):
        found = read(self, node)
        i, j, k = found.offset
        return Access(found.name, (-i, -j, k), found.data_index, found.level)

    monkeypatch.setattr(internals._Reader, "access", mirrored)


def change_extents(monkeypatch):
    read = internals._Reader.block
    monkeypatch.setattr(
        internals._Reader,
        "block",
        lambda self, node: type(found := read(self, node))(found.statements, ((0, 0), (0, 0))),
    )


BROKEN = {
    "renamed nodes": (rename_nodes, "node StoreStmt"),
    "an attribute more": (add_an_attribute, "node FieldAccess with data_index"),
    "a module less": (remove_a_module, "gt4py.cartesian.gtc.gtir_to_oir"),
    "mirrored offsets": (mirror_offsets, "the footprint of the known definition 'sideways'"),
    "other extents": (change_extents, "the footprint of the known definition 'sideways'"),
}


@pytest.fixture(params=BROKEN.values(), ids=BROKEN)
def broken(request, monkeypatch):
    """Put a GT4Py in front that is not understood; give the words for it."""
    breaks, words = request.param
    breaks(monkeypatch)
    return words


def quiet(bind, stencil):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bind(stencil)


def test_this_gt4py_is_understood():
    assert trial.not_understood() == ""


def test_a_gt4py_that_is_not_understood_is_named_in_one_warning(compiled, broken):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for name in ("split", "skewed", "split"):
            dlf.bind(compiled(name, "numpy"))
    texts = [str(one.message) for one in seen if one.category is UserWarning]
    assert len(texts) == 1
    for text in (f"got gt4py {metadata.version('gt4py')}", broken, "must be apart from outputs"):
        assert text in texts[0]


def test_a_gt4py_that_is_not_understood_leaves_its_own_bounds(compiled, broken):
    stencil = compiled("far_above_in_temporary", "numpy")
    declaration = quiet(reading.declare, stencil)
    assert declaration.checked == "partly checked"
    assert declaration.footprint.smallest[2] == stencil.domain_info.min_sequential_axis_size
    for name, info in stencil.field_info.items():
        found = declaration.footprint.fields[name]
        assert (found.reads or found.writes) == tuple(Span(*pair) for pair in info.boundary)
        assert (found.complete, found.pointwise) == (False, False)


def test_a_gt4py_that_is_not_understood_keeps_inputs_apart_from_outputs(compiled, broken):
    field, spare = np.ones(SHAPE), np.zeros(SHAPE)
    run = quiet(dlf.bind, compiled("split", "numpy"))
    with refused(BufferError, "arguments 'inp' and 'left'", "arrays that overlap"):
        run(field, field, spare)
    run(field, np.zeros(SHAPE), spare)
    assert not spare.any()


def test_a_gt4py_that_is_not_understood_still_has_its_bounds_checked(compiled, broken):
    run = quiet(dlf.bind, compiled("skewed", "numpy"))
    with refused(ValueError, "argument 'inp'", "along I"):
        run(np.ones(SHAPE), np.zeros(SHAPE), domain=(2, 0 + 1, 4), origin=(0, 1, 0))


def test_explain_says_how_far_a_stencil_is_checked(compiled, broken):
    run, fields = quiet(dlf.bind, compiled("split", "numpy")), [np.zeros(SHAPE) for _ in range(3)]
    assert "partly checked" in str(dlf.explain(run, *fields))


def test_a_node_that_is_not_known_leaves_other_stencils_checked(compiled, monkeypatch):
    monkeypatch.delitem(internals._KNOWN, "TernaryOp")
    with pytest.warns(UserWarning, match="does not understand node TernaryOp; bounds"):
        chosen = reading.declare(compiled("choose", "numpy"))
    assert chosen.checked == "partly checked"
    assert reading.declare(compiled("skewed", "numpy")).checked == "checked"


def test_gt4py_is_tried_once_and_compiles_nothing_for_it(compiled, monkeypatch):
    tried, read = [], internals.representation_of_definition
    stencils = [compiled(name, "numpy") for name in ("split", "skewed")]
    builder = library("gt4py.cartesian.stencil_builder").StencilBuilder
    monkeypatch.setattr(builder, "build", lambda self: pytest.fail("compiled"))

    def noted(definition):
        tried.append(definition.__name__)
        return read(definition)

    monkeypatch.setattr(internals, "representation_of_definition", noted)
    for stencil in stencils:
        dlf.bind(stencil)
    assert tried == ["sideways", "upwards", "at_run_time"]


def test_a_stencil_that_is_bound_again_is_not_read_again(compiled, monkeypatch):
    stencil = compiled("skewed", "numpy")
    first = dlf.bind(stencil).declaration
    monkeypatch.setattr(internals, "_lowered", lambda *_: pytest.fail("read again"))
    assert dlf.bind(stencil).declaration.reach() == first.reach()


def test_a_definition_without_source_is_partly_checked_without_a_warning(compiled):
    stencil = compiled("split", "numpy")
    kind = type(stencil)
    foreign = type(kind.__name__, (kind,), {"definition_func": None, "_instance": None})()
    assert reading.declare(foreign).checked == "partly checked"


def test_a_layout_is_read_from_the_registry_at_each_call(monkeypatch):
    registry = library("gt4py.storage.cartesian.layout_registry").REGISTRY
    assert internals.layout_of("of_this_test") is None
    info = {"layout_map": (2, 1, 0), "alignment": 8, "device": "gpu"}
    monkeypatch.setitem(registry, "of_this_test", info)
    assert internals.layout_of("of_this_test") == ((2, 1, 0), 8, True)


def test_without_gt4py_no_layout_is_known_and_none_is_imported(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "gt4py"]:
        monkeypatch.delitem(sys.modules, name)
    assert internals.layout_of("gt:gpu") is None
    assert not [name for name in sys.modules if name.partition(".")[0] == "gt4py"]
