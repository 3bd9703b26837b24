"""What GT4Py does not publish is known to two files alone: every other file of dlfield is read."""

import ast
import re
from pathlib import Path

import dlfield
import pytest

PACKAGE = Path(dlfield.__file__).parent
INTERNALS = {"stencils/cartesian/internals.py", "stencils/next/internals.py"}
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

#: What GT4Py documents: its modules, and the names of packages that have modules beside them.
PUBLIC = {"gt4py", "gt4py.cartesian", "gt4py.cartesian.gtscript", "gt4py.storage", "gt4py.next"}
EXPORTED = {
    "gt4py": {"cartesian", "next", "storage", "__version__"},
    "gt4py.cartesian": {"gtscript"},
    "gt4py.storage": {"empty", "from_array", "from_name", "full", "ones", "register", "zeros"},
}
#: The protocols between arrays and stencils, which dlfield serves.
PROTOCOLS = {
    "__gt_allocate__",
    "__gt_axis_name__",
    "__gt_data_interface__",
    "__gt_device_type__",
    "__gt_dims__",
    "__gt_origin__",
}
#: Underscore attributes of others than GT4Py: of dlfield's own objects, and of other libraries.
NOT_OF_GT4PY = {
    "check/command.py": {"_threads_queues"},
    "functions/ufuncs.py": {"_NoValue"},
    "xarray/files.py": {"_data", "_meta"},
    "operators/torch_functions.py": {
        *("_AutoDispatchBelowAutograd", "_C", "_are_functorch_transforms_active"),
        *("_current_level", "_get_tracing_state", "_dispatch_keys", "_len_torch_dispatch_stack"),
    },
    "storages/sides.py": {"_device_side", "_finish", "_storage"},
    "doctor/trial.py": {"_exit"},
    "doctor/surroundings.py": {"_is_gil_enabled"},
    "doctor/traps.py": {"_asdict"},
    "halo/explanation.py": {"_connection", "_route"},
    "halo/engines/packed.py": {"_device_side", "_finish"},
    "xarray/accessors.py": {"_initializing"},
}


def leaks(source):
    """Return what a source knows of GT4Py's internals."""
    tree = ast.parse(source)
    own = {"self", "cls"} | {name for node in ast.walk(tree) for name in own_modules(node)}
    return [told for node in ast.walk(tree) for told in told_by(node, own)]


def own_modules(node):
    """Yield the names by which an import makes dlfield's modules known."""
    module = getattr(node, "module", None)
    for alias in (
        getattr(node, "names", ()) if isinstance(node, ast.Import | ast.ImportFrom) else ()
    ):
        if (module or alias.name).partition(".")[0] == "dlfield":
            yield alias.asname or alias.name.partition(".")[0]


def told_by(node, own):
    """Yield what one node knows: modules by import or in a string, and attributes."""
    match node:
        case ast.Import(names):
            yield from (alias.name for alias in names if is_internal(alias.name))
        case ast.ImportFrom(module=str(module), names=names, level=0):
            found = [f"{module}.{alias.name}" for alias in names]
            yield from [module] if is_internal(module) else filter(is_internal_name, found)
        case ast.Constant(str(text)) if re.fullmatch(r"gt4py(\.\w+)+", text):
            yield from filter(is_internal, [text])
        case ast.Attribute():
            yield from filter(is_internal_name, [ast.unparse(node)])
            yield from hidden(node.value, node.attr, own)
        case ast.Call(ast.Name(function), [value, ast.Constant(str(name)), *_]):
            if function in ("getattr", "hasattr", "setattr"):
                yield from hidden(value, name, own)


def is_internal(module):
    return module.partition(".")[0] == "gt4py" and module not in PUBLIC


def is_internal_name(dotted):
    package, _, name = dotted.rpartition(".")
    return package in EXPORTED and name not in EXPORTED[package]


def hidden(value, name, own):
    """Yield an attribute with an underscore, unless it belongs to dlfield or to a protocol."""
    is_own = isinstance(value, ast.Name) and value.id in own
    dunder = name.startswith("__")
    if (name.startswith("__gt_") if dunder else name.startswith("_")) and not is_own:
        yield from {name} - PROTOCOLS


@pytest.mark.parametrize("name", [name for name in FILES if name not in INTERNALS])
def test_a_file_knows_nothing_of_gt4pys_internals(name):
    source = (PACKAGE / name).read_text(encoding="utf-8")
    assert set(leaks(source)) <= NOT_OF_GT4PY.get(name, set())


LEAKS = {
    "import gt4py.cartesian.definitions": "gt4py.cartesian.definitions",
    "import gt4py.next.common as common": "gt4py.next.common",
    "def late():\n    from gt4py.next.ffront import decorator": "gt4py.next.ffront",
    "from gt4py import eve": "gt4py.eve",
    "from gt4py.cartesian import stencil_builder": "gt4py.cartesian.stencil_builder",
    "from gt4py.storage import layout_registry": "gt4py.storage.layout_registry",
    "import gt4py\nprint(gt4py.cartesian.backend)": "gt4py.cartesian.backend",
    "importlib.import_module('gt4py.next.otf')": "gt4py.next.otf",
    "sys.modules.get('gt4py.cartesian.lazy_stencil')": "gt4py.cartesian.lazy_stencil",
    "stencil._gt_id_": "_gt_id_",
    "definition._gtscript_['externals']": "_gtscript_",
    "getattr(program, '_compiled_programs')": "_compiled_programs",
    "self.stencil._options": "_options",
    "operator.__gt_type__()": "__gt_type__",
}


@pytest.mark.parametrize(("source", "told"), LEAKS.items())
def test_a_line_that_knows_an_internal_is_found(source, told):
    assert leaks(source) == [told]


@pytest.mark.parametrize(
    "source",
    [
        "import gt4py\nprint(gt4py.__version__)",
        "from gt4py.cartesian import gtscript",
        "from gt4py.cartesian.gtscript import Field, computation",
        "def late():\n    from gt4py.next import Dimension, common",
        "importlib.import_module('gt4py.next')",
        "name.startswith('gt4py.')",
        "self._stencil",
        "from dlfield.stencils.cartesian import internals\ninternals._kind",
        "array.__gt_dims__",
        '"""Words about gt4py.cartesian.definitions."""',
    ],
)
def test_a_line_that_knows_what_gt4py_publishes_is_not_found(source):
    assert leaks(source) == []


def test_the_internals_of_cartesian_would_be_found():
    assert leaks((PACKAGE / "stencils/cartesian/internals.py").read_text(encoding="utf-8"))
