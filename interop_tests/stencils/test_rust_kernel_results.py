"""Storages that a kernel in Rust returns: `examples/rust_kernel`."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library
from support.processes import run_in_subprocess
from support.rust_kernel import LIBRARY, built

rust_kernel = built()

VALUES = np.arange(60.0).reshape(3, 4, 5)


def test_a_returned_storage_is_one_of_the_package_and_may_be_written():
    made = rust_kernel.column_mean(VALUES)
    assert type(made) is dlf.CPUStorage
    assert np.array_equal(made, VALUES.mean(axis=2))
    made[0, 0] = -1.0
    assert made.to_numpy()[0, 0] == -1.0


def test_a_returned_storage_has_the_names_and_the_halo_that_it_was_given():
    made = rust_kernel.column_mean(dlf.storage(VALUES, dims="IJK", halo=((1, 1), (2, 0), (0, 0))))
    assert (made.dims, made.halo) == (("I", "J"), ((1, 1), (2, 0)))


def test_a_returned_storage_of_an_array_without_names_has_none():
    made = rust_kernel.column_mean(library("torch").tensor(VALUES))
    assert (made.dims, made.halo) == (None, ((0, 0), (0, 0)))


def test_a_returned_storage_lives_as_long_as_a_view_of_it():
    printed = run_in_subprocess(
        f"""
        import gc, importlib.util
        import numpy as np

        spec = importlib.util.spec_from_file_location("rust_kernel", {str(LIBRARY)!r})
        kernel = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernel)
        view = kernel.column_mean(np.ones((3, 4, 5)))[1:].to_numpy()
        gc.collect()
        print(view.sum())
        """
    )
    assert printed == "8.0"


def test_a_mean_of_no_dimensions_is_refused():
    with pytest.raises(ValueError, match="at least 1 dimension"):
        rust_kernel.column_mean(np.float64(1.0).reshape(()))
