"""`**` is NumPy's operator, which has other results than `numpy.power` for special values."""

import itertools
import operator

import dlfield as dlf
import numpy as np
import pytest

INF = float("inf")
BASES = [
    *(np.array([INF, -INF, np.nan, 0.0, -0.0, 2.5, 6e4], one) for one in ("f2", "f4", "f8")),
    np.array([INF, complex(INF, 0), complex(0, -INF), complex(np.nan, 1), 0, 2 - 1j], "complex128"),
    np.array([True, False]),
    *(np.array([0, 1, 2, 100], one) for one in ("int8", "uint16", "int64")),
]
EXPONENTS = [
    -1,
    0,
    1,
    2,
    3,
    2**70,
    -1.0,
    0.0,
    0.5,
    1.0,
    2.0,
    2.5,
    True,
    np.int8(2),
    np.float64(0.5),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("base", BASES, ids=lambda one: one.dtype)
@pytest.mark.parametrize("compute", [operator.pow, operator.ipow])
def test_a_power_is_that_of_numpys_operator(base, compute):
    for exponent in EXPONENTS * 2:
        storage = dlf.storage(base)
        try:
            wanted = compute(base.copy(), exponent)
        except (TypeError, ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                compute(storage, exponent)
            continue
        made = compute(storage, exponent)
        assert made.dtype == wanted.dtype
        np.testing.assert_array_equal(made.to_numpy(), wanted)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_number_to_the_power_of_a_storage_is_numpys():
    for number, values in itertools.product((2, 0.5, np.float32(3)), BASES[:3]):
        made = number ** dlf.storage(values)
        np.testing.assert_array_equal(made.to_numpy(), number**values, strict=True)


def test_a_square_keeps_the_labels():
    field = dlf.ones((4, 3), dims="KI", halo=(0, 1), layout=(1, 0))
    made = field**2
    assert (made.dims, made.halo, made.layout) == (field.dims, field.halo, field.layout)
