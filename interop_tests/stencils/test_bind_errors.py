"""What a bound stencil refuses: in plain words, and before anything was written."""

import ast
import mmap
import re

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.arguments import NamedByAttribute

SHAPE = (5, 6, 4)
VALUES = np.arange(5 * 6 * 4.0).reshape(SHAPE)


@pytest.fixture(params=["numpy", "gt:cpu_kfirst"])
def split(request, compiled):
    return dlf.bind(compiled("split", request.param))


def untouched(*shape):
    return np.full(shape or SHAPE, -1.0)


def xr_named(*names):
    return library("xarray").DataArray(VALUES, dims=names)


def torch_zeros(**options):
    torch = library("torch")
    return torch.zeros(SHAPE, **{"dtype": torch.float64, **options})


def torch_complex():
    return torch_zeros(dtype=library("torch").complex128).conj()


class MoreNamesThanAxes(NamedByAttribute):
    __gt_dims__ = "IJK0"


BAD_INPUTS = {
    "float32": (lambda: VALUES.astype("f4"), ValueError, "expected dtype float64, got float32"),
    "float32, what to do": (lambda: VALUES.astype("f4"), ValueError, "astype('float64')"),
    "int64": (lambda: VALUES.astype("i8"), ValueError, "expected dtype float64, got int64"),
    "torch float32": (
        lambda: torch_zeros(dtype=library("torch").float32),
        ValueError,
        "expected dtype float64, got float32",
    ),
    "object": (lambda: VALUES.astype(object), BufferError, "got 'O'"),
    "structured": (lambda: np.zeros(SHAPE, "f8,f8"), BufferError, "got 'T{"),
    "byte-swapped": (lambda: VALUES.astype(">f8"), BufferError, "newbyteorder"),
    "two dims": (lambda: VALUES[0], ValueError, "expected 3 dimensions ('I', 'J', 'K'), got 2"),
    "four dims": (lambda: VALUES[None], ValueError, "expected 3 dimensions"),
    "a list": (lambda: VALUES.tolist(), TypeError, "got an object of type 'list'"),
    "a number": (lambda: 1.0, TypeError, "got an object of type 'float'"),
    "None": (lambda: None, ValueError, "expected a field, got None"),
    "requires_grad": (lambda: torch_zeros(requires_grad=True), BufferError, "detach()"),
    "conj bit": (torch_complex, BufferError, "resolve_conj()"),
    "neg bit": (lambda: torch_complex().imag, BufferError, "resolve_neg()"),
    "sparse": (lambda: torch_zeros().to_sparse(), BufferError, "layout"),
    "strange names": (
        lambda: xr_named("lon", "lat", "level"),
        ValueError,
        'bind(stencil, dims={"lon": "I", "lat": "J", "level": "K"})',
    ),
    "strange names in another order": (
        lambda: xr_named("level", "lat", "lon"),
        ValueError,
        'dims={"level": "K", "lat": "J", "lon": "I"}',
    ),
    "names that say nothing": (
        lambda: xr_named("a", "b", "K"),
        ValueError,
        'dims={"a": ..., "b": ...}',
    ),
    "one strange name": (lambda: xr_named("K", "lat", "I"), ValueError, 'dims={"lat": "J"}'),
    "more names than axes": (
        lambda: MoreNamesThanAxes(VALUES),
        ValueError,
        "3 dimensions",
    ),
}


@pytest.mark.source("GDP-3", "Data Interface", "I, J and K are the names that stencils understand")
@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "a field that does not fit is an error if using it were undefined behaviour",
    "backends that compute with NumPy only warn of a field that does not fit",
)
@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "a buffer that does not fit is an error: names or type"
)
@pytest.mark.parametrize(("make", "error", "text"), BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_a_bad_input_is_named_and_nothing_is_written(split, make, error, text):
    left, right = untouched(), untouched()
    with refused(error, "argument 'inp'", text):
        split(inp=make(), left=left, right=right)
    assert (left == -1.0).all()
    assert (right == -1.0).all()


def read_only():
    array = untouched()
    array.flags.writeable = False
    return array


def jax_ones():
    return -library("jax.numpy").ones(SHAPE)


BAD_OUTPUTS = {
    "read-only": (read_only, BufferError, "expected a writable output, got a read-only array"),
    "bytes": (
        lambda: memoryview(untouched().tobytes()).cast("d", shape=SHAPE),
        BufferError,
        "expected a writable output",
    ),
    "jax": (jax_ones, BufferError, "expected a writable output, got an immutable JAX array"),
    "jax, what to do": (jax_ones, BufferError, "write into a dlfield storage or a NumPy array"),
    "pyarrow": (
        lambda: library("pyarrow").Tensor.from_numpy(untouched()),
        BufferError,
        "expected a writable output, got immutable Arrow data",
    ),
    "storage over jax": (
        lambda: dlf.as_storage(jax_ones()),
        BufferError,
        "expected a writable output, got a read-only storage",
    ),
    "a list": (lambda: untouched().tolist(), TypeError, "got an object of type 'list'"),
    "float32": (lambda: untouched().astype("f4"), ValueError, "expected dtype float64"),
    "broadcast": (
        lambda: np.lib.stride_tricks.as_strided(untouched(4), SHAPE, (0, 0, 8)),
        BufferError,
        "expected an output with an element for every index",
    ),
    "requires_grad": (lambda: torch_zeros(requires_grad=True), BufferError, "detach()"),
}


@pytest.mark.parametrize(("make", "error", "text"), BAD_OUTPUTS.values(), ids=BAD_OUTPUTS)
def test_a_bad_output_is_named_and_nothing_is_written(split, make, error, text):
    left, right = untouched(), make()
    before = None if hasattr(right, "detach") else np.array(right)
    with refused(error, "argument 'right'", text):
        split(inp=VALUES, left=left, right=right)
    assert (left == -1.0).all()
    assert before is None or np.array_equal(np.array(right), before)


def test_a_wrong_dtype_is_refused_also_after_a_good_call_with_the_same_shapes(split):
    split(VALUES, untouched(), untouched())
    with refused(ValueError, "argument 'inp'", "expected dtype float64, got int64"):
        split(VALUES.astype("i8"), untouched(), untouched())


def test_a_read_only_output_is_refused_also_after_a_good_call_with_it(split):
    right = untouched()
    split(VALUES, untouched(), right)
    right.flags.writeable = False
    with refused(BufferError, "argument 'right'", "expected a writable output"):
        split(VALUES, untouched(), right)


def test_a_page_that_may_only_be_read_is_refused_as_output(split):
    page = mmap.mmap(-1, VALUES.nbytes, prot=mmap.PROT_READ)
    with refused(BufferError, "argument 'right'", "expected a writable output"):
        split(VALUES, untouched(), memoryview(page).cast("d", shape=SHAPE))


#: Two outputs made of one array of shape (5, 6, 8).
OVERLAPPING = {
    "the same array": lambda whole: (whole[:, :, :4], whole[:, :, :4]),
    "shifted by one": lambda whole: (whole[:, :, :4], whole[:, :, 1:5]),
    "one backwards": lambda whole: (whole[:, :, :4], whole[:, :, 3::-1]),
    "by way of torch": lambda whole: (
        whole[:, :, :4],
        library("torch").from_numpy(whole)[:, :, 2:6],
    ),
    "by way of a storage": lambda whole: (whole[:, :, :4], dlf.as_storage(whole[:, :, :4])),
}


@pytest.mark.parametrize("make", OVERLAPPING.values(), ids=OVERLAPPING)
def test_outputs_that_overlap_are_refused_and_nothing_is_written(split, make):
    whole = np.full((5, 6, 8), -1.0)
    left, right = make(whole)
    with refused(BufferError, "arguments 'left' and 'right'", "arrays that overlap", "pass a copy"):
        split(VALUES, left, right)
    assert (whole == -1.0).all()


def test_the_line_that_an_error_prints_for_strange_names_helps(compiled):
    stencil, out = compiled("split", "numpy"), xr_named("lon", "lat", "level").copy()
    with pytest.raises(ValueError, match=r"bind\(stencil, dims=") as caught:
        dlf.bind(stencil)(VALUES, untouched(), out)
    dims = ast.literal_eval(re.search(r"dims=(\{.*\})", str(caught.value))[1])
    dlf.bind(stencil, dims=dims)(VALUES, untouched(), out)
    assert np.array_equal(out, VALUES - 1.0)


def misaligned():
    array = np.frombuffer(bytearray(VALUES.nbytes + 4), offset=4).reshape(SHAPE)
    array[...] = -1.0
    return array


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "a field that does not fit is an error if using it were undefined behaviour",
)
@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "a buffer that does not fit is an error: memory"
)
@pytest.mark.parametrize("name", ["inp", "right"])
def test_a_misaligned_array_is_refused_where_it_would_be_undefined_behaviour(compiled, name):
    given = {"inp": VALUES, "left": untouched(), "right": untouched(), name: misaligned()}
    with refused(BufferError, f"argument '{name}'", "aligned to 8 bytes", "x.copy()"):
        dlf.bind(compiled("split", "gt:cpu_kfirst"))(**given)
    assert (given["left"] == -1.0).all()


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "backends that compute with NumPy accept memory of any kind",
)
def test_a_misaligned_array_is_fine_where_numpy_computes(compiled):
    right = misaligned()
    dlf.bind(compiled("split", "numpy"))(VALUES, untouched(), right)
    assert np.array_equal(right, VALUES - 1.0)
