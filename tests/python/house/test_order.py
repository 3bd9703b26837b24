"""The order of the Python package: a file uses only what stands above it in the lists of its rooms.

The list of a room is in the docstring of its ``__init__.py``. Imports count wherever they stand: at
the top of a file, inside a function, and for types alone.
"""

import ast
import re
from pathlib import Path

import dlfield as dlf
import pytest

PACKAGE = Path(dlf.__file__).parent
#: Upward imports, each with its reason.
UPWARD = {
    ("show.explanation", "halo"): "a type: what `explain` returns for an exchange",
}
#: The front of the package imports everything, and the compiled module stands above all.
FRONT, COMPILED = "", "_core"


def modules():
    """Return files by the names of their modules below dlfield; a room by that of its folder."""
    files = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        files[".".join(part for part in parts if part not in ("__init__", "__main__"))] = path
    files[FRONT] = PACKAGE / "__init__.py"
    return files


MODULES = modules()
ROOMS = sorted(name for name, path in MODULES.items() if path.name == "__init__.py")


def listed(room):
    """Return the names in the list of a room, in their order."""
    text = ast.get_docstring(ast.parse(MODULES[room].read_text("utf-8")))
    return re.findall(r"^    (\w+)  +\S", text.partition("::\n")[2], re.M)


def below(room):
    """Return the names of the modules and rooms right below a room."""
    names = {name.removeprefix(f"{room}.") for name in MODULES if name and name != room}
    if room:
        names = {name for name in names if f"{room}.{name}" in MODULES}
    return {name for name in names if "." not in name}


def place(module):
    """Return where a module stands: its number in each list on the way to it."""
    parts = module.split(".")
    rooms = [".".join(parts[:depth]) for depth in range(len(parts))]
    numbers = [listed(room).index(part) for room, part in zip(rooms, parts, strict=True)]
    # The front of a room stands behind its files.
    return (*numbers, 1000) if module in ROOMS else tuple(numbers)


def imports(tree):
    """Return the modules of dlfield that a file names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found = [f"{node.module}.{one.name}" for one in node.names]
        else:
            continue
        for name in found:
            if name.split(".")[0] == "dlfield":
                yield module_of(name.removeprefix("dlfield").removeprefix("."))


def module_of(name):
    """Return the module that a name below dlfield is in."""
    while name not in MODULES and name.split(".")[0] != COMPILED:
        name = name.rpartition(".")[0]
    return name


def is_upward(user, used):
    if used.split(".")[0] == COMPILED or used == FRONT:
        return used == FRONT
    return place(used) >= place(user)


def upward(user, text):
    found = {used for used in imports(ast.parse(text)) if is_upward(user, used)}
    return sorted(used for used in found if (user, used) not in UPWARD)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_all_its_files_and_no_others(room):
    assert sorted(listed(room)) == sorted(below(room))


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name != FRONT))
def test_a_file_imports_only_what_stands_above_it(module):
    assert upward(module, MODULES[module].read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("halo.mpi", "from dlfield.halo.plan import halo_exchange"),
        ("halo.mpi", "def late():\n    import dlfield.halo.plan"),
        ("halo.mpi", "from dlfield.halo import plan"),
        ("functions.views", "from dlfield.storages import methods"),
        ("functions.views", "import dlfield"),
        ("stencils.next.walk", "from dlfield.stencils.binding import bind"),
        ("stencils.next.walk", "if TYPE_CHECKING:\n    from dlfield.stencils.next import trial"),
    ],
)
def test_an_import_of_what_stands_below_is_found(user, text):
    assert len(upward(user, text)) == 1


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("halo.plan", "from dlfield.halo import mpi\nfrom dlfield._core import Storage"),
        ("stencils.binding", "from dlfield.stencils.next.declare import declared"),
        ("halo", "from dlfield.halo.plan import halo_exchange"),
    ],
)
def test_an_import_of_what_stands_above_is_taken(user, text):
    assert upward(user, text) == []


def test_every_listed_upward_import_is_there():
    there = {
        (user, used)
        for user, used in UPWARD
        if used in set(imports(ast.parse(MODULES[user].read_text("utf-8"))))
    }
    assert there == set(UPWARD)


def test_no_room_or_file_has_the_name_of_a_public_function():
    # A module replaces what had its name in dlfield, on its first import.
    names = {part for name in MODULES for part in name.split(".")}
    shared = names & set(dlf.__all__)
    assert shared == set()
