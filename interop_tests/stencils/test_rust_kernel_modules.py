"""Functions in Rust of several extension modules: borrows are tracked across them."""

import shutil
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.interpreter_dict import interpreter_dict
from support.processes import run_in_subprocess
from support.rust_kernel import LIBRARY, SHAPE, VALUES, Told, built, load, reference, untouched

laplacian = built().laplacian


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Load the module once more, from another file: it has all its statics for itself."""
    copy = tmp_path_factory.mktemp("module") / LIBRARY.name
    shutil.copy(LIBRARY, copy)
    return load(copy)


def test_the_second_module_is_another_one(other):
    assert other.laplacian is not laplacian
    out = untouched()
    other.laplacian(VALUES, out)
    assert np.array_equal(out, reference(VALUES))


def test_what_one_module_reads_another_may_read_and_not_write(other):
    inp, out, copy = VALUES.copy(), untouched(), untouched()

    def meanwhile():
        other.laplacian(inp, copy)
        with refused(BufferError, "'out'", "elements that are being read through another view"):
            other.laplacian(copy, inp)

    laplacian(inp, Told(out, at={"acquire": meanwhile}))
    assert np.array_equal([out, copy], [reference(VALUES)] * 2)
    other.laplacian(copy, inp)


@pytest.mark.parametrize("turned", [False, True], ids=["the first writes", "the second writes"])
def test_what_one_module_writes_another_neither_reads_nor_writes(monkeypatch, other, turned):
    said, out = [], untouched()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: said.append(str(args.exc_value)))
    writer, reader = (other.laplacian, laplacian) if turned else (laplacian, other.laplacian)

    def meanwhile():
        for arguments in ((out, untouched()), (VALUES, out)):
            try:
                reader(*arguments)
            except BufferError as error:
                said.append(str(error))

    writer(VALUES, Told(out, at={"touch": meanwhile}))
    assert len(said) == 2
    assert all("elements that are being written" in text for text in said)
    reader(out, untouched())
    reader(VALUES, out)


def test_parts_without_a_common_element_are_taken_by_two_modules(other):
    whole = np.random.default_rng(0).random((*SHAPE[:2], 2 * SHAPE[2]))
    before, out = whole.copy(), untouched()
    halves = whole[:, :, ::2], whole[:, :, 1::2]

    def meanwhile():
        other.laplacian(VALUES, halves[1])

    laplacian(halves[0], Told(out, at={"acquire": meanwhile}))
    assert np.array_equal(out, reference(before[:, :, ::2]))
    assert np.array_equal(halves[1][1:-1, 1:-1], reference(VALUES)[1:-1, 1:-1])


def test_the_package_shows_its_list_under_a_name_with_a_version():
    assert dlf.as_storage(VALUES).shape == SHAPE
    assert 'capsule object "dlfield.borrows.1"' in repr(interpreter_dict()["dlfield.borrows.1"])


TWO_MODULES = f"""
    import ctypes, importlib.util, shutil, sys, tempfile
    import numpy as np

    def load(path):
        spec = importlib.util.spec_from_file_location("rust_kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    class Told:
        def __init__(self, array, acquire):
            ours = dict(acquire=acquire, touch=lambda: None, release=lambda: None)
            self.__gt_data_interface__ = {{None: {{**array.__array_interface__, **ours}}}}

    def meanwhile():
        try:
            second.laplacian(values.copy(), values)
            print("written")
        except BufferError as error:
            print("refused" if "being read" in str(error) else error)

    values, out = np.ones((4, 4, 4)), np.zeros((4, 4, 4))
    with tempfile.TemporaryDirectory() as folder:
        first = load({str(LIBRARY)!r})
        second = load(shutil.copy({str(LIBRARY)!r}, folder))
"""


def test_two_modules_need_no_package_to_know_of_each_other():
    printed = run_in_subprocess(
        TWO_MODULES
        + """
    assert "dlfield" not in sys.modules
    second.domain_sum(out.astype("f4"))  # it has a list, which the first will use
    first.laplacian(values, Told(out, meanwhile))
    assert "dlfield" not in sys.modules
    """
    )
    assert printed == "refused"


DICT = """
    from support.interpreter_dict import interpreter_dict
    shown = interpreter_dict()
"""


def test_a_module_that_looks_for_the_list_leaves_the_interpreter_its_dict():
    run_in_subprocess(
        TWO_MODULES
        + DICT
        + """
    before = sys.getrefcount(shown)
    for module in (first, second):
        module.domain_sum(out.astype("f4"))
    assert "dlfield.borrows.1" in shown
    assert sys.getrefcount(shown) == before, sys.getrefcount(shown) - before
    """
    )


def test_a_module_may_be_called_while_it_looks_for_the_list():
    printed = run_in_subprocess(
        TWO_MODULES
        + DICT
        + """
    class Key:
        def __hash__(self):
            return hash("dlfield.borrows.1")

        def __eq__(self, other):
            if not inside:
                inside.append("called")
                inside.append(first.domain_sum(np.ones(3, "f4")))
            return False

    inside = []
    shown[Key()] = None
    second.domain_sum(np.ones(3, "f4"))
    first.laplacian(values, Told(out, meanwhile))
    print(inside)
    """
    )
    assert printed == "refused\n['called', 3.0]"


@pytest.mark.parametrize("there", ["3", "None", "ctypes.py_object()", "capsule"])
def test_a_foreign_object_under_the_name_is_left_alone(there):
    printed = run_in_subprocess(
        TWO_MODULES
        + DICT
        + f"""
    api = ctypes.pythonapi
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    api.PyCapsule_New.restype = ctypes.py_object
    capsule = api.PyCapsule_New(1, b"somebody's", None)
    shown["dlfield.borrows.1"] = there = {there}
    import dlfield
    second = first
    first.laplacian(values, Told(out, meanwhile))
    assert shown["dlfield.borrows.1"] is there
    """
    )
    assert printed == "refused"
