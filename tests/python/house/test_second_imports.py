"""A second interpreter, or a second copy of the package, in one process."""

import shutil
from pathlib import Path

import dlfield as dlf
import pytest

from support.processes import run_in_subprocess


def test_another_interpreter_of_the_process_is_served_or_refused_without_a_crash():
    printed = run_in_subprocess("""
        import dlfield as dlf

        import importlib.util
        names = ("_interpreters", "_xxsubinterpreters")
        found = [name for name in names if importlib.util.find_spec(name)]
        if found:
            interpreters = importlib.import_module(found[0])
            other = interpreters.create()
            quiet = "import warnings; warnings.simplefilter('ignore')\\n"  # before NumPy 2.4
            code = "try:\\n import dlfield\\n dlfield.zeros((3,))\\nexcept ImportError:\\n pass"
            interpreters.run_string(other, quiet + code)
            interpreters.destroy(other)
        print(dlf.zeros((3,)).shape)
    """)
    assert printed == "(3,)"


@pytest.mark.parametrize("first", ["main", "sub"])
def test_a_second_interpreter_is_refused_and_leaves_the_first_one_whole(first):
    run_in_subprocess(
        f"""
        import sys

        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters

        import numpy as np

        IMPORT = "import sys; sys.path[:0] = {{}}; import dlfield".format(sys.path)

        def refused_in_a_sub_interpreter():
            number = interpreters.create()
            try:
                failed = interpreters.run_string(number, IMPORT)  # 3.13 returns the exception
            except interpreters.RunFailedError as error:
                failed = error
            interpreters.destroy(number)
            return "ImportError" in str(failed) or "ImportError" in repr(failed)

        if {first!r} == "main":
            import dlfield as dlf

            assert refused_in_a_sub_interpreter()
            field = dlf.zeros((3,))
            assert (field + 1).sum() == 3
            assert np.concatenate([field, field]).shape == (6,)
        elif not refused_in_a_sub_interpreter():  # NumPy may refuse it
            try:
                import dlfield
            except ImportError as error:
                assert "interpreter" in str(error)
            else:
                raise AssertionError("a second interpreter has imported dlfield")
    """,
        warnings="ignore",
    )


# --- a second copy of the package ----------------------------------------------------------------

COPIES = """
import sys
import numpy as np

def imported(folder):
    for name in [name for name in sys.modules if name.partition(".")[0] == "dlfield"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    import dlfield
    del sys.path[0]
    return dlfield

first, second = imported(FIRST), imported(SECOND)
assert first._core.__file__ != second._core.__file__
assert first.CPUStorage is not second.CPUStorage
field = first.storage(np.arange(12.0).reshape(3, 4), dims="IJ", halo=(1, 0), layout=(1, 0))
other = second.as_storage(field)
"""


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    own = Path(dlf.__file__).parent
    folder = tmp_path_factory.mktemp("second")
    shutil.copytree(own, folder / own.name)
    places = f"FIRST, SECOND = {str(own.parent)!r}, {str(folder)!r}\n"
    return lambda code: run_in_subprocess(places + COPIES + code)


def test_a_storage_of_one_copy_is_shared_with_the_other_and_back_with_its_names(copies):
    printed = copies("""
back = first.as_storage(other)
back[0, 0] = 7.0
print(*(type(one) is kind for one, kind in [(other, second.CPUStorage), (back, first.CPUStorage)]))
print(other.dims, other.halo, other.strides == field.strides, other[0, 0] == field[0, 0] == 7.0)
del field, back
print(np.from_dlpack(other).sum(), first._core.live_allocations())
del other
print(first._core.live_allocations())
""")
    assert printed.splitlines() == [
        "True True",
        "('I', 'J') ((1, 1), (0, 0)) True True",
        "73.0 1",
        "0",
    ]


def test_arithmetic_between_two_copies_is_refused_and_assignments_go(copies):
    printed = copies("""
for function in np.add, np.maximum, np.append:
    try:
        function(field, other)
    except TypeError:
        print("TypeError", end=" ")
print((second.as_storage(field) + other).sum())
target = second.zeros((3, 4), dims="IJ")
target[...] = field
print(target.sum(), first.storage(target).sum())
""")
    assert printed.splitlines() == ["TypeError TypeError TypeError 132.0", "66.0 66.0"]


def test_two_copies_end_with_the_interpreter_while_threads_use_both(copies):
    copies("""
import threading, time

def forever():
    while True:
        first.as_storage(second.as_storage(field).copy()).copy() + field

for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
""")
