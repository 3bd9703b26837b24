"""`xarray.DataArray` gets its accessors whenever xarray is imported, and the import is as it was.

The xarray here is a stand-in of a few lines, which can fail, dawdle, or import dlfield itself. Each
snippet runs in a process of its own and ends it where an assertion does not hold.
"""

import os
import textwrap
import zipfile

import pytest

from support.processes import run_in_subprocess

#: Before each snippet. `given`: both accessors of a class are dlfield's. `waiting`: its finders.
HELPERS = """
import importlib, importlib.util, sys, threading

def given(cls):
    names = ("__gt_data_interface__", "__gt_dims__")
    return [type(vars(cls).get(name)).__name__ for name in names] == ["DefaultAccessor"] * 2

def waiting():
    return sum(type(finder).__module__ == "dlfield.xarray.accessors" for finder in sys.meta_path)
"""


def run(code):
    return run_in_subprocess(HELPERS + textwrap.dedent(code))


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Make a package named xarray of this text, for `run` to import."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.getenv("PYTHONPATH", "")]))

    def make(text="class DataArray: pass"):
        (tmp_path / "xarray").mkdir()
        (tmp_path / "xarray" / "__init__.py").write_text(text)

    return make


@pytest.mark.parametrize("order", ["dlfield, xarray", "xarray, dlfield"])
def test_the_hook_registers_the_accessors_in_either_order_of_imports(stand_in, order):
    stand_in()
    run(f"""
        import {order}
        assert given(xarray.DataArray)
    """)


def test_nothing_of_the_hook_stays(stand_in):
    stand_in()
    run("""
        before = list(sys.meta_path)
        import dlfield, xarray
        assert sys.meta_path == before
        assert type(xarray.__spec__) is type(sys.__spec__)
        assert set(vars(xarray.__loader__)) == {"name", "path"}
    """)


def test_where_xarray_is_there_already_the_finders_are_left_alone(stand_in):
    stand_in()
    run("""
        import xarray
        held, before = sys.meta_path, list(sys.meta_path)
        import dlfield
        assert sys.meta_path is held
        assert held == before
    """)


def test_installing_again_changes_nothing(stand_in):
    stand_in()
    run("""
        import dlfield
        dlfield.xarray.install()
        assert waiting() == 1
        import xarray
        before = dict(vars(xarray.DataArray))
        dlfield.xarray.install()
        assert waiting() == 0
        assert vars(xarray.DataArray) == before
    """)


def test_other_names_are_not_looked_for():
    run("""
        import dlfield
        assert sys.meta_path[0].find_spec("json", None) is None
        assert sys.meta_path[0].find_spec("xarray.core", []) is None
    """)


def test_asking_for_the_spec_of_xarray_answers_as_before_and_does_not_end_the_wait(stand_in):
    stand_in()
    run("""
        from importlib.machinery import ModuleSpec, PathFinder
        import dlfield
        spec = importlib.util.find_spec("xarray")
        assert spec == PathFinder.find_spec("xarray")
        assert isinstance(spec, ModuleSpec)
        assert "xarray" not in sys.modules
        import xarray
        assert given(xarray.DataArray)
    """)


def missing_xarray(first):
    """Return what an import prints without xarray, after a first line."""
    return run(f"""
        import traceback
        {first}
        sys.path = [one for one in sys.path if "-packages" not in one]
        assert importlib.util.find_spec("xarray") is None
        try:
            import xarray
        except ModuleNotFoundError as error:
            print(error.args, error.name, error.path, error.__context__, error.__cause__)
            print(len(traceback.extract_tb(error.__traceback__)))
    """)


def test_a_missing_xarray_is_missed_as_before():
    before = missing_xarray("pass")
    assert "No module named 'xarray'" in before
    assert missing_xarray("import dlfield") == before


def test_a_forbidden_xarray_stays_forbidden():
    printed = run("""
        sys.modules["xarray"] = None
        import dlfield
        try:
            import xarray
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert printed == "import of xarray halted; None in sys.modules"


def test_a_mock_is_left_alone():
    run("""
        from unittest import mock
        sys.modules["xarray"] = mock.MagicMock()
        import dlfield, xarray
        assert not hasattr(xarray.DataArray, "__gt_dims__")
        assert not xarray.mock_calls
    """)


FAILS_ONCE = """
import sys
class DataArray: pass
if not hasattr(sys, "tried"):
    sys.tried = True
    raise RuntimeError("the first time")
"""


def test_an_import_that_fails_fails_as_before_and_can_be_tried_again(stand_in):
    stand_in(FAILS_ONCE)
    run("""
        import traceback
        import dlfield
        try:
            import xarray
        except RuntimeError as error:
            files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert not any("dlfield" in name for name in files)
        assert waiting() == 1
        import xarray
        assert given(xarray.DataArray)
        assert waiting() == 0
    """)


@pytest.mark.parametrize("text", ["{}\nclass DataArray: pass", "class DataArray: pass\n{}"])
def test_an_xarray_that_imports_dlfield_has_the_accessors_once_it_is_imported(stand_in, text):
    stand_in(text.format("import dlfield") + "\nearly = hasattr(DataArray, '__gt_dims__')")
    run("""
        import xarray
        assert not xarray.early
        assert given(xarray.DataArray)
        assert waiting() == 0
        assert type(xarray.__spec__) is type(sys.__spec__)
    """)


def test_an_xarray_that_imports_dlfield_and_fails_can_be_tried_again(stand_in):
    stand_in("import dlfield" + FAILS_ONCE)
    run("""
        try:
            import xarray
        except RuntimeError:
            import xarray
        assert given(xarray.DataArray)
        assert waiting() == 0
    """)


SLOW = """
import sys, time
sys.times = getattr(sys, "times", 0) + 1
class DataArray: pass
time.sleep(0.3)
"""


def test_of_two_threads_that_import_xarray_both_see_the_accessors(stand_in):
    stand_in(SLOW)
    run("""
        import dlfield
        seen = []
        def look():
            import xarray
            seen.append(given(xarray.DataArray))
        threads = [threading.Thread(target=look) for _ in range(2)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        assert seen == [True, True]
        assert sys.times == 1
    """)


def test_an_xarray_that_another_thread_is_importing_gets_the_accessors(stand_in):
    stand_in("import sys\nclass DataArray: pass\nsys.go_on.wait()")
    run("""
        sys.go_on = threading.Event()
        thread = threading.Thread(target=importlib.import_module, args=("xarray",))
        thread.start()
        while not hasattr(sys.modules.get("xarray"), "DataArray"):
            pass
        import dlfield
        assert not given(sys.modules["xarray"].DataArray)
        sys.go_on.set()
        thread.join()
        assert given(sys.modules["xarray"].DataArray)
        assert waiting() == 0
    """)


def test_an_import_half_way_through_the_finders_skips_none_when_the_hook_goes(stand_in):
    stand_in()
    run("""
        import dlfield
        half_way, others = iter(sys.meta_path), sys.meta_path[1:]
        next(half_way)
        import xarray
        assert list(half_way) == others
    """)


@pytest.mark.parametrize("order", ["dlfield, asks_all", "asks_all, dlfield"])
def test_another_finder_that_asks_all_finders_makes_no_endless_loop(stand_in, tmp_path, order):
    stand_in()
    (tmp_path / "asks_all.py").write_text("""
import sys
class Asks:
    def find_spec(self, name, path, target=None):
        others = (one for one in sys.meta_path if one is not self)
        found = (one.find_spec(name, path, target) for one in others)
        return next((spec for spec in found if spec is not None), None)
sys.meta_path.insert(0, Asks())
""")
    run(f"""
        import {order}, xarray
        assert given(xarray.DataArray)
    """)


def test_an_xarray_in_an_archive_gets_the_accessors(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("xarray/__init__.py", "class DataArray: pass")
    run(f"""
        sys.path.insert(0, {str(tmp_path / "all.zip")!r})
        import dlfield, xarray
        assert type(xarray.__loader__).__name__ == "zipimporter"
        assert given(xarray.DataArray)
    """)


def test_an_xarray_that_is_reloaded_has_the_accessors(stand_in):
    stand_in("try: DataArray\nexcept NameError:\n    class DataArray: pass")
    run("""
        import dlfield, xarray
        assert importlib.reload(xarray) is xarray
        assert given(xarray.DataArray)
    """)


def test_a_lazy_xarray_is_not_loaded_and_gets_the_accessors_on_request(stand_in):
    stand_in("class DataArray: pass\nprint('loaded')")
    printed = run("""
        spec = importlib.util.find_spec("xarray")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        sys.modules["xarray"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["xarray"])
        import dlfield
        print("imported")
        sys.modules["xarray"].DataArray
        dlfield.xarray.install()
        assert given(sys.modules["xarray"].DataArray)
    """)
    assert printed.splitlines() == ["imported", "loaded"]


OWN = "class DataArray: __gt_dims__ = 'KJI'"
INHERITED = "class Base: __gt_dims__ = 'KJI'\nclass DataArray(Base): pass"


@pytest.mark.parametrize("text", [OWN, INHERITED], ids=["own", "inherited"])
def test_an_attribute_that_is_there_is_kept_and_the_other_is_added(stand_in, text):
    stand_in(text)
    run("""
        import dlfield, xarray
        assert xarray.DataArray.__gt_dims__ == "KJI"
        assert type(xarray.DataArray.__gt_data_interface__).__name__ == "DefaultAccessor"
    """)
