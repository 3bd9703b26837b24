"""Functions take of storages what they take of NumPy's arrays, in rare calls too."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJK", halo=((0, 1), 1, 0), layout=(2, 0, 1))


# --- reductions to numbers -----------------------------------------------------------------------


def test_a_norm_is_a_number_without_an_axis_and_a_storage_along_one(field):
    assert np.linalg.norm(field) == np.linalg.norm(VALUES)
    assert np.linalg.vector_norm(field, ord=1) == np.linalg.vector_norm(VALUES, ord=1)
    found = np.linalg.norm(field, axis="J")
    assert (found.dims, found.halo) == (("I", "K"), ((0, 1), (0, 0)))
    with refused(ValueError, "numpy.linalg.norm: expected an axis of the storage, got 'x'"):
        np.linalg.norm(field, axis="x")
    np.testing.assert_array_equal(found.to_numpy(), np.linalg.norm(VALUES, axis=1), strict=True)


def test_a_norm_with_keepdims_has_extents_of_1_without_a_halo(field):
    for axis, number in (("J", 1), (("I", "J"), (0, 1)), (None, None)):
        found = np.linalg.vector_norm(field, axis=axis, keepdims=True)
        wanted = np.linalg.vector_norm(VALUES, axis=number, keepdims=True)
        np.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-15)
        assert found.dims == ("I", "J", "K")
        assert found.halo[1] == (0, 0)


@pytest.mark.parametrize("name", ["cond", "det", "matrix_norm", "matrix_rank", "slogdet", "trace"])
def test_functions_of_a_matrix_give_the_number_that_they_give_of_an_array(name):
    matrix = VALUES[0, :, :3] + np.eye(3)
    function = getattr(np.linalg, name)
    assert function(dlf.storage(matrix, dims="IJ")) == function(matrix)


def test_a_product_of_all_elements_needs_the_same_names(field):
    assert np.vdot(field, field) == np.vdot(VALUES, VALUES)
    with refused(ValueError, "vdot: expected arrays whose dims agree", "transpose"):
        np.vdot(field, field.transpose("J", "I", "K"))


# --- averages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, [1.0, 3.0]], ids=["none", "some"])
def test_the_sum_of_weights_is_finite_where_the_average_is_not(weights):
    values = np.array([[1, np.inf], [2, 3]])
    found = np.average(dlf.storage(values, dims="IJ"), "I", weights, returned=True)
    wanted = np.average(values, 0, weights, returned=True)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.to_numpy(), other, strict=True)
    assert found[1].dims == ("J",)


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [np.split, np.array_split, np.hsplit])
def test_a_storage_may_say_where_an_array_is_split(split):
    at = dlf.storage(np.array([1, 3]))
    for found in (split(np.arange(4.0), at), split(dlf.storage(np.arange(4.0)), at)):
        assert [len(one) for one in found] == [1, 2, 1]


def test_integers_are_rounded_to_tens():
    field = dlf.storage(np.array([15, 25, 31]), dims="K")
    for found in (np.round(field, -1), field.round(-1)):
        assert found.dims == ("K",)
        np.testing.assert_array_equal(found.to_numpy(), [20, 20, 30], strict=True)


def test_tolerances_and_replacements_may_be_arrays(field):
    rtol = dlf.storage([0.0, 1.0, 0.0, 1.0], dims="K")
    wanted = np.isclose(VALUES, VALUES * 1.5, rtol=rtol.to_numpy())
    np.testing.assert_array_equal(np.isclose(field, field * 1.5, rtol=rtol), wanted)
    holes = dlf.storage([np.nan, 1.0, np.inf, -np.inf], dims="K")
    found = np.nan_to_num(holes, nan=dlf.full(4, 7.0, dims="K"), neginf=-1)
    assert found.dims == ("K",)
    assert found.tolist() == [7, 1, np.finfo(float).max, -1]


def test_nan_to_num_without_a_copy_writes_into_the_storage():
    holes = dlf.storage([np.nan, 1.0], dims="K")
    assert np.nan_to_num(holes, copy=False) is holes
    assert holes.tolist() == [0, 1]


def test_an_axis_may_be_rolled_twice(field):
    found = np.roll(field, (1, 1), ("I", "K"))
    np.testing.assert_array_equal(found, np.roll(VALUES, (1, 1), (0, 2)))
    found = np.roll(field, (1, 1), ("K", "K"))
    np.testing.assert_array_equal(found, np.roll(VALUES, 2, 2))


def test_a_number_is_copied_by_the_rule_that_is_given(field):
    with pytest.warns(np.exceptions.ComplexWarning):
        np.copyto(field, 2 + 1j, casting="unsafe")
    assert field.max() == field.min() == 2


def test_an_axis_is_no_truth(field):
    for function in (np.sum, np.argmax, np.cumsum):
        with refused(TypeError, "expected an axis by name or number, got True"):
            function(field, axis=True)


def test_a_running_sum_of_a_storage_without_dimensions_names_the_way_out():
    with refused(TypeError, "numpy.cumsum: needs an axis", "use ravel()"):
        np.cumsum(dlf.ones(()))
    assert np.cumsum(dlf.ones(()).ravel()).tolist() == [1]


def test_padding_along_a_data_dimension_is_no_halo():
    field = dlf.storage(np.ones((3, 2)), dims="I0", halo=(1, 0))
    found = np.pad(field, ((1, 0), (0, 2)))
    assert (found.dims, found.halo, found.shape) == (("I", "0"), ((2, 1), (0, 0)), (4, 4))


def test_indices_that_sort_are_a_method_too(field):
    np.testing.assert_array_equal((-field).argsort("J"), np.argsort(-VALUES, 1))
    assert field.argsort().dims == field.dims
    assert field[0, 0].searchsorted(1.5) == np.searchsorted(VALUES[0, 0], 1.5)


# --- comparisons and texts -----------------------------------------------------------------------


def test_no_element_equals_a_text(field):
    assert (field == "text").dims == field.dims
    assert not (field == "text").any()
    assert (field != "text").all()
    assert "text" not in field
    assert not (dlf.ones(3) == np.array(["a", "b", "c"])).any()


def test_an_element_without_dimensions_has_the_format_of_its_number():
    assert f"{dlf.full((), 2.5):.2f}" == "2.50"
    assert f"{dlf.full((), 2.5)}" == str(dlf.full((), 2.5))
    with refused(TypeError, "expected no dimensions for '.2f'", "numpy.array2string"):
        f"{dlf.ones(3):.2f}"


def test_the_parts_of_complex_values_are_views():
    field = dlf.storage([[1 + 2j, 3]], dims="IJ", halo=(0, 1), dtype=complex)
    for real, imag in ((field.real, field.imag), (np.real(field), np.imag(field))):
        assert (real.dims, real.halo) == (imag.dims, imag.halo) == (field.dims, field.halo)
        real[0, 1], imag[0, 1] = 5, 6
        assert field[0, 1] == 5 + 6j
        field[0, 1] = 3
        assert np.shares_memory(real, field)


def test_the_parts_of_real_values_are_themselves_and_zeros(field):
    assert field.real is field
    assert np.real(field) is field
    assert not field.imag.any()
    assert field.imag.dims == field.dims


def test_conjugates_are_methods_as_in_numpy():
    field = dlf.storage([1 + 2j, 3], dims="K", dtype=complex)
    for found in (field.conj(), field.conjugate(), np.conj(field)):
        assert found.dims == ("K",)
        assert found.tolist() == [1 - 2j, 3]
