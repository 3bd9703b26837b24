"""What tests are repeated for: types, views; and how a parameter is named in a test's name."""

import re

import pytest

#: Types that NumPy itself has. The others come from ml_dtypes.
NUMPY_DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
ML_DTYPES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]

#: Attributes of a storage, except its values, its address and its origin.
KNOWN = ("shape", "dtype", "dims", "halo", "layout", "alignment_size", "aligned_index")

#: Views of a field of two dimensions and 6 by 7 points with a halo, as hard to copy as they come.
VIEWS = {
    "part": lambda field: field[1:, 2:5],
    "reversed": lambda field: field[::-1],
    "thinned out": lambda field: field[::2, ::-3],
    "transposed": lambda field: field.T,
    "row": lambda field: field[3],
    "nothing": lambda field: field[:0],
    "domain": lambda field: field.domain_view,
}
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def readable(value):
    """Name a parameter in a test's name, by the same text in every process."""
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, set):
        value = sorted(value)
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)[:50]
