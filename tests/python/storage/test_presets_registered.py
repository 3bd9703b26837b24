"""Presets of one's own: `register_preset`, and those that were registered with GT4Py."""

import sys
from types import ModuleType

import dlfield as dlf
import numpy as np
import pytest

NAMES = ["model:kij", "model:outermost", "model:innermost", "model:again", "model:f"]


@pytest.fixture(autouse=True)
def forget():
    """Leave no names to other tests."""
    yield
    for name in NAMES:
        dlf.register_preset(name, None)


@pytest.fixture
def registry(monkeypatch):
    """Stand in for GT4Py's registry of layouts."""
    names = "gt4py.storage.cartesian.layout_registry"
    module = ModuleType(names)
    module.REGISTRY = {}
    monkeypatch.setitem(sys.modules, names, module)
    return module.REGISTRY


def outermost(dims):
    """Return the layout K, I, J with data dimensions outermost, as GT4Py's factory makes it."""
    order = [*(dim for dim in dims if dim.isdecimal()), *(dim for dim in "KIJ" if dim in dims)]
    return tuple(order.index(dim) for dim in dims)


def innermost(dims):
    order = [*(dim for dim in "JIK" if dim in dims), *(dim for dim in dims if dim.isdecimal())]
    return tuple(order.index(dim) for dim in dims)


@pytest.mark.parametrize("option", ["defaults", "backend"])
def test_a_registered_preset_is_a_preset_like_others(option):
    dlf.register_preset("model:kij", layout=(1, 2, 0), alignment=8)
    field = dlf.zeros((3, 4, 5), "f4", dims="IJK", **{option: "model:kij"})
    assert (field.layout, field.alignment_size) == ((1, 2, 0), 32)
    assert dlf.zeros((3, 4), dims="KJ", **{option: "model:kij"}).layout == (0, 1)
    assert dlf.zeros((3, 4, 2), dims="IJ0", **{option: "model:kij"}).layout == (1, 2, 0)


@pytest.mark.parametrize(
    ("layout", "dims", "ranks"),
    [
        (outermost, "IJK", (1, 2, 0)),
        (outermost, "IJ0", (1, 2, 0)),
        (outermost, "0K1I", (0, 2, 1, 3)),
        (innermost, "IJK", (1, 0, 2)),
        (innermost, "0IJ1", (2, 1, 0, 3)),
    ],
)
def test_the_layout_of_a_preset_may_be_a_function_of_the_names(layout, dims, ranks):
    name = f"model:{layout.__name__}"
    dlf.register_preset(name, layout=layout)
    assert dlf.zeros((2,) * len(dims), dims=dims, defaults=name).layout == ranks


def test_a_preset_may_be_replaced_but_not_one_of_dlfield():
    dlf.register_preset("model:again", layout=(0, 1, 2))
    dlf.register_preset("model:again", layout=(2, 1, 0))
    assert dlf.zeros((2, 2, 2), dims="IJK", defaults="model:again").layout == (2, 1, 0)
    with pytest.raises(ValueError, match=r"name: expected .*, got 'gt:gpu'"):
        dlf.register_preset("gt:gpu", layout=(0, 1, 2))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"layout": (0, 1)}, ValueError, r"layout: expected ranks of I, J and K, .* got \[0, 1\]"),
        ({"layout": (0, 0, 1)}, ValueError, r"layout: expected ranks .* got \[0, 0, 1\]"),
        ({"layout": "IJK"}, TypeError, "layout: expected"),
        ({"layout": lambda _dims: "no"}, TypeError, "layout: expected"),
        (
            {"layout": lambda dims: (1, 0) if len(dims) == 2 else range(len(dims))},
            ValueError,
            "layout: expected a function that orders dimensions by their names",
        ),
        ({"layout": (0, 1, 2), "alignment": 0}, ValueError, "alignment: expected at least 1"),
        ({"layout": (0, 1, 2), "device": "cuda"}, ValueError, "device: expected"),
    ],
    ids=lambda one: str(one)[:40] if isinstance(one, str) else None,
)
def test_a_preset_that_cannot_hold_is_refused_when_it_is_registered(options, error, text):
    with pytest.raises(error, match=text):
        dlf.register_preset("model:wrong", **options)
    with pytest.raises(ValueError, match="defaults: expected one of"):
        dlf.zeros(3, defaults="model:wrong")


def test_a_preset_that_gt4py_alone_knows_is_read(registry):
    registry["mine"] = {"alignment": 4, "device": "cpu", "layout_map": outermost}
    field = dlf.zeros((3, 4, 5), "f8", dims="IJK", backend="mine")
    assert (field.layout, field.alignment_size) == ((1, 2, 0), 32)
    registry["mine"] = {"alignment": 1, "device": "cpu", "layout_map": innermost}
    assert dlf.zeros((3, 4, 5), dims="IJK", backend="mine").layout == (1, 0, 2)
    del registry["mine"]
    with pytest.raises(ValueError, match="backend: expected one of"):
        dlf.zeros(3, backend="mine")


def test_an_unknown_preset_is_named_with_the_option_and_what_is_close():
    with pytest.raises(ValueError, match="got 'gt:cpu_Ifirst'; did you mean 'gt:cpu_ifirst'"):
        dlf.zeros(3, backend="gt:cpu_Ifirst")
    with pytest.raises(ValueError, match=r"defaults: .*, got 'nonsense'; .*register_preset"):
        dlf.zeros(3, defaults="nonsense")


def test_a_registered_preset_suits_a_bound_callable():
    dlf.register_preset("model:f", layout=(2, 1, 0))

    def copy(inp, out):
        out[...] = inp

    from dlfield.annotations import Field

    run = dlf.bind(
        copy, fields={"inp": Field[np.float64], "out": Field[np.float64]}, backend="model:f"
    )
    with pytest.warns(dlf.LayoutWarning):
        run(np.zeros((32, 32, 32)), np.zeros((32, 32, 32)))
