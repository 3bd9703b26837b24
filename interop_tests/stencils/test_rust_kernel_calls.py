"""Functions in Rust (examples/rust_kernel): refusals, calls of hooks, and threads."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.rust_kernel import SHAPE, VALUES, Told, built, reference, untouched
from support.stencils.arguments import Interface

laplacian, domain_sum = built().laplacian, built().domain_sum

# --- what is refused -----------------------------------------------------------------------------


def misaligned():
    array = np.frombuffer(bytearray(VALUES.nbytes + 4), offset=4).reshape(SHAPE)
    array[...] = -1.0
    return array


def torch_zeros(**options):
    torch = library("torch")
    return torch.zeros(SHAPE, **{"dtype": torch.float64, **options})


def torch_complex():
    return torch_zeros(dtype=library("torch").complex128).conj()


def named(array, *names):
    return library("xarray").DataArray(array, dims=names)


class NamesOfFour(np.ndarray):
    __gt_dims__ = "IJKL"


#: What is wrong as an input and as an output alike; made of an array of the right shape.
BAD = {
    "a list": (lambda array: array.tolist(), TypeError, "got an object of type 'list'"),
    "a number": (lambda _: 1.0, TypeError, "got an object of type 'float'"),
    "None": (lambda _: None, TypeError, "got an object of type 'NoneType'"),
    "a class": (lambda _: np.ndarray, TypeError, "got the class 'ndarray'"),
    "float32": (lambda array: array.astype("f4"), ValueError, "elements of float64, got float32"),
    "int64": (lambda array: array.view("i8"), ValueError, "elements of float64, got int64"),
    "complex": (lambda array: array.astype(complex), ValueError, "float64, got complex128"),
    "bool": (lambda array: array > 0, ValueError, "elements of float64, got bool"),
    "object": (lambda array: array.astype(object), BufferError, "got 'O'"),
    "byte-swapped": (lambda array: array.astype(">f8"), BufferError, "newbyteorder('=')"),
    "misaligned": (lambda _: misaligned(), BufferError, "boundaries of 8 bytes"),
    "requires_grad": (lambda _: torch_zeros(requires_grad=True), BufferError, "detach()"),
    "conj bit": (lambda _: torch_complex(), BufferError, "resolve_conj()"),
    "neg bit": (lambda _: torch_complex().imag, BufferError, "resolve_neg()"),
    "sparse": (lambda _: torch_zeros().to_sparse(), BufferError, "layout"),
    "masked": (lambda a: np.ma.array(a, mask=True), BufferError, "x.filled(...)"),
    "names for four": (lambda array: Told(array, dims="IJKL"), ValueError, "got 4"),
    "a halo that is too wide": (lambda a: Told(a, halo=[(4, 3)] * 3), ValueError, "fit in extent"),
}
#: What only an output may not be.
READ_ONLY = {
    "read-only": (lambda array: frozen(array), "got a read-only array; pass a copy"),
    "broadcast": (lambda _: np.broadcast_to(np.float64(-1), SHAPE), "one index per element"),
    "repeated": (lambda _: Interface(repeated()), "one index per element"),
    "bytes": (lambda a: memoryview(a.tobytes()).cast("d", shape=SHAPE), "got a read-only"),
    "jax": (lambda array: library("jax.numpy").array(array), "got an immutable JAX array"),
    "pyarrow": (lambda array: library("pyarrow").Tensor.from_numpy(array), "immutable Arrow data"),
    "arrow tensors": (lambda array: dlf.storage(array).to_arrow(), "immutable Arrow data"),
    "storage": (lambda array: dlf.as_storage(frozen(array)), "got a read-only"),
    "said by an interface": (lambda a: Told(a, data=(a.ctypes.data, True)), "got a read-only"),
}


def frozen(array):
    array.flags.writeable = False
    return array


def repeated():
    return np.lib.stride_tricks.as_strided(np.full(3, -1.0), SHAPE, (0, 0, 8))


@pytest.mark.parametrize("name", ["inp", "out"])
@pytest.mark.parametrize(("make", "error", "text"), BAD.values(), ids=BAD)
def test_an_argument_that_is_not_a_field_is_named_and_nothing_is_written(name, make, error, text):
    arguments = {"inp": VALUES.copy(), "out": untouched()}
    out = arguments["out"]
    arguments[name] = make(arguments[name])
    with refused(error, f"'{name}'", text):
        laplacian(**arguments)
    assert (out == -1.0).all()


@pytest.mark.parametrize(("make", "text"), READ_ONLY.values(), ids=READ_ONLY)
def test_an_output_that_may_only_be_read_is_refused_and_not_written(make, text):
    library("pyarrow")
    array = untouched()
    out = make(array)
    with refused(BufferError, "'out'", text):
        laplacian(VALUES, out)
    assert (array == -1.0).all()
    read = np.full(SHAPE, 5.0)
    laplacian(out, read)
    assert (read[1:-1, 1:-1] == 0.0).all(), "the output was written"


#: Dimensions that do not fit, and their errors.
OTHER_DIMS = {
    "two": (lambda array: array[0], "expected dimensions ('I', 'J', 'K'), got shape [7, 3]"),
    "four": (
        lambda array: array[None],
        "expected dimensions ('I', 'J', 'K'), got shape [1, 6, 7, 3]",
    ),
    "labels": (lambda a: named(a, "lon", "lat", "level"), "got ('lon', 'lat', 'level'); rename"),
    "one label": (lambda a: named(a, "I", "lat", "K"), "got ('I', 'lat', 'K')"),
    "four names": (lambda a: named(a[None], "T", "I", "J", "K"), "got ('T', 'I', 'J', 'K')"),
    "names of a storage": (lambda a: dlf.as_storage(a, dims="KJL"), "got ('K', 'J', 'L')"),
    "another shape": (lambda array: array[:, :, :2], "as 'inp' has"),
    "another shape by name": (lambda a: named(a, "K", "I", "J"), "as 'inp' has"),
}


@pytest.mark.parametrize(("make", "text"), OTHER_DIMS.values(), ids=OTHER_DIMS)
def test_other_dims_are_refused_and_nothing_is_written(make, text):
    out = untouched()
    with refused(ValueError, text):
        laplacian(make(VALUES), out)
    with refused(ValueError, text):
        laplacian(VALUES, make(out))
    assert (out == -1.0).all()


@pytest.mark.parametrize("shape", [(1, 7, 3), (6, 1, 3), (0, 7, 3), (6, 0, 3)])
def test_a_field_without_neighbours_is_refused(shape):
    with refused(ValueError, "at least 2 points along I and J"):
        laplacian(np.zeros(shape), untouched(shape))


# --- memory that two arguments share -------------------------------------------------------------

#: Two views of one array of shape (6, 7, 6) that have an element in common.
OVERLAPPING = {
    "the same array": lambda whole: (whole, whole),
    "equal views": lambda whole: (whole[:, :, :3], whole[:, :, :3]),
    "shifted by one": lambda whole: (whole[:, :, :3], whole[:, :, 1:4]),
    "one element": lambda whole: (whole[:3, :4, :3], whole[2:5, 3:7, 2:5]),
    "one backwards": lambda whole: (whole, whole[::-1, :, ::-1]),
    "other steps": lambda whole: (whole[:, :, ::2], whole[:, :, :3]),
    "torch": lambda whole: (whole, library("torch").from_numpy(whole)),
    "xarray": lambda whole: (whole, named(whole, "I", "J", "K")),
    "a storage": lambda whole: (dlf.as_storage(whole), whole),
    "two storages": lambda whole: (dlf.as_storage(whole), dlf.as_storage(whole)),
    "memoryview": lambda whole: (whole, memoryview(whole)),
    "a type in other words": lambda whole: (whole, Interface(whole)),
    "pyarrow": lambda whole: (library("pyarrow").Tensor.from_numpy(whole), whole),
    "a row repeated": lambda whole: (np.broadcast_to(whole[2:3], whole.shape), whole),
}
#: Two that have none.
DISJOINT = {
    "halves": lambda whole: (whole[:, :, :3], whole[:, :, 3:]),
    "interleaved along K": lambda whole: (whole[:, :, ::2], whole[:, :, 1::2]),
    "interleaved along I": lambda whole: (whole[::2], whole[1::2]),
    "interleaved, one backwards": lambda whole: (whole[:, :, ::2], whole[:, :, ::-2]),
    "no elements": lambda whole: (whole[:, :, :0], whole[:, :, :0]),
}


@pytest.mark.parametrize("make", OVERLAPPING.values(), ids=OVERLAPPING)
def test_an_output_that_shares_elements_with_the_input_is_refused_and_not_written(make):
    whole = np.random.default_rng(0).random((6, 7, 6))
    before = whole.copy()
    inp, out = make(whole)
    with refused(BufferError, "'out'", "elements that are being read", "pass a copy"):
        laplacian(inp, out)
    assert np.array_equal(whole, before)


@pytest.mark.parametrize("make", DISJOINT.values(), ids=DISJOINT)
def test_two_parts_of_one_array_without_a_common_element_are_taken(make):
    whole = np.random.default_rng(0).random((6, 7, 6))
    inp, out = make(whole)
    expected, before = untouched(inp.shape) if inp.size else inp.copy(), inp.copy()
    laplacian(before, expected)
    laplacian(inp, out)
    assert np.array_equal(inp, before)
    assert np.array_equal(out[1:-1, 1:-1], expected[1:-1, 1:-1])


def fails():
    raise RuntimeError("half way")


#: Calls with two arrays that raise; some have taken one of them by then, some both.
FAILING = {
    "the same twice": lambda a, _: laplacian(a, a),
    "another shape": lambda a, b: laplacian(a, b[:, :, :1]),
    "names of the input": lambda a, b: laplacian(named(a, "x", "y", "z"), b),
    "names of the output": lambda a, b: laplacian(a, named(b, "x", "y", "z")),
    "dims of the input": lambda a, b: laplacian(a[0], b),
    "dims of the output": lambda a, b: laplacian(a, b[0]),
    "no array": lambda a, _: laplacian(a, [1.0]),
    "dtype of the output": lambda a, b: laplacian(a, b.view("i8")),
    "misaligned": lambda a, b: laplacian(a, b.view("u1").ravel()[4:-4].view("f8")),
    "acquire": lambda a, b: laplacian(a, Told(b, at={"acquire": fails})),
    "too few arguments": lambda a, _: laplacian(a),
    "another function": lambda a, _: domain_sum(a),
}


@pytest.mark.parametrize("call", FAILING.values(), ids=FAILING)
def test_after_an_error_both_arrays_are_free_to_be_read_and_written(call):
    one, other = VALUES.copy(), untouched()
    with pytest.raises((TypeError, ValueError, BufferError, RuntimeError)):
        call(one, other)
    laplacian(one, other)
    assert np.array_equal(other, reference(VALUES))
    laplacian(other, one)


# --- objects with hooks --------------------------------------------------------------------------


def told(**at):
    """Return a log, and an input and an output that write into it; `out_touch=f` calls f then."""
    log, arrays = [], (VALUES.copy(), untouched())
    fields = []
    for name, array in zip(("inp", "out"), arrays, strict=True):
        mine = {what.partition("_")[2]: f for what, f in at.items() if what.startswith(name)}
        fields.append(Told(array, log=log, name=name, at=mine))
    return log, *fields


def test_both_are_acquired_before_and_released_once_and_only_the_output_is_touched():
    log, inp, out = told()
    laplacian(inp, out)
    assert log[:2] == ["acquire inp", "acquire out"]
    assert sorted(log[2:]) == ["release inp", "release out", "touch out"]


def test_an_output_is_touched_before_it_is_released():
    log, inp, out = told()
    laplacian(inp, out)
    assert log.index("touch out") < log.index("release out")


def test_what_acquire_brings_is_what_is_read():
    _, inp, out = told(inp_acquire=lambda: np.multiply(inp.array, 3.0, out=inp.array))
    laplacian(inp, out)
    assert np.array_equal(out.array, reference(3.0 * VALUES))


def test_the_result_is_there_when_the_output_is_touched():
    seen = []
    _, inp, out = told(out_touch=lambda: seen.append(out.array.copy()))
    laplacian(inp, out)
    assert np.array_equal(seen, [reference(VALUES)])


@pytest.mark.parametrize("entries", [{"dims": "XYZ"}, {"shape": (3, 7, 3)}], ids=str)
def test_an_acquired_argument_is_released_once_if_the_function_raises(entries):
    log, inp, out = told()
    out.entries = entries
    with refused(ValueError, "field: expected" if "dims" in entries else "'out': expected"):
        laplacian(inp, out)
    assert (log.count("release inp"), log.count("release out")) == (1, 1)
    assert "touch inp" not in log
    assert (out.array == -1.0).all()


def test_an_input_is_released_if_the_output_is_refused():
    log, inp, _ = told()
    with refused(TypeError, "array: expected one that speaks the buffer protocol"):
        laplacian(inp, None)
    assert log == ["acquire inp", "release inp"]


def test_an_output_that_is_refused_is_not_touched():
    log, inp, out = told()
    out.entries = {"data": (out.array.ctypes.data, True)}
    with refused(BufferError, "may be written"):
        laplacian(inp, out)
    assert log.count("acquire out") == log.count("release out")
    assert "touch out" not in log


def test_what_acquire_raises_is_raised_and_those_before_are_released():
    log, inp, out = told(out_acquire=fails)
    with refused(RuntimeError, "half way"):
        laplacian(inp, out)
    assert log == ["acquire inp", "acquire out", "release inp"]
    assert (out.array == -1.0).all()


@pytest.mark.parametrize("what", ["inp_release", "out_touch", "out_release"])
def test_an_exception_of_a_hook_is_reported_after_all_hooks_were_called(monkeypatch, what):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(str(args.exc_value)))
    log, inp, out = told(**{what: fails})
    laplacian(inp, out)
    assert reported == ["half way"]
    assert sorted(log[2:]) == ["release inp", "release out", "touch out"]
    assert np.array_equal(out.array, reference(VALUES))


# --- unknown halos -------------------------------------------------------------------------------


UNKNOWN = [
    pytest.param(lambda storage: storage, id="storage"),
    pytest.param(lambda storage: named(storage, "I", "J"), id="xarray"),
    pytest.param(lambda storage: storage.to_arrow_batch("field", copy=True), id="arrow batch"),
]


@pytest.mark.parametrize("make", UNKNOWN)
def test_a_sum_inside_an_unknown_halo_is_refused(make):
    library("pyarrow")
    thinned = dlf.ones((4, 6), dims="IJ", dtype="float32", halo=(1, 1))[::2]
    with refused(ValueError, "domain: expected a halo, got a view whose halo is unknown"):
        domain_sum(make(thinned))


def test_there_is_a_name_for_each_dimension():
    with refused(ValueError, "expected one entry for each of the 3 dimensions", "got 4"):
        domain_sum(np.ones(SHAPE, "f4").view(NamesOfFour))


# --- threads -------------------------------------------------------------------------------------


def at_once(*calls):
    """Run functions on a thread each, and give what they returned."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [task.result(60) for task in [pool.submit(call) for call in calls]]


@pytest.mark.parametrize("shared", [False, True], ids=["an input each", "one input"])
def test_two_threads_are_inside_the_function_at_once(shared):
    both_are_inside = threading.Barrier(2, timeout=30)
    outs, inps = [untouched(), untouched()], [VALUES, VALUES if shared else VALUES + 1.0]

    def call(inp, out):
        return lambda: laplacian(inp, Told(out, at={"acquire": both_are_inside.wait}))

    at_once(*map(call, inps, outs))
    assert np.array_equal(outs, [reference(inp) for inp in inps])


def test_an_input_is_not_written_by_another_call_and_may_be_read():
    inp, out, other = VALUES.copy(), untouched(), untouched()

    def meanwhile():
        laplacian(inp, other)
        with refused(BufferError, "'out'", "elements that are being read through another view"):
            laplacian(other, inp)

    laplacian(inp, Told(out, at={"acquire": meanwhile}))
    assert np.array_equal([out, other], [reference(VALUES)] * 2)
    laplacian(other, inp)


@pytest.mark.parametrize("turned", [False, True], ids=["two writers", "a reader and a writer"])
def test_of_two_threads_with_one_array_one_may_be_refused_and_the_array_is_free_afterwards(turned):
    values = np.random.default_rng(0).random((40, 40, 20))
    one, other = values.copy(), untouched(values.shape)
    start, errors = threading.Barrier(2, timeout=30), []

    def run(inp, out):
        for _ in range(100):
            start.wait()
            try:
                laplacian(inp, out)
            except BufferError as error:
                errors.append(str(error))

    at_once(lambda: run(one, other), lambda: run(*((other, one) if turned else (one, other))))
    assert all("being written" in text or "being read" in text for text in errors)
    laplacian(values, other)
    assert np.array_equal(other[1:-1, 1:-1], reference(values)[1:-1, 1:-1])


def test_four_threads_compute_what_one_does():
    inps = np.random.default_rng(0).random((4, 60, 60, 20))
    outs = [untouched(inp.shape) for inp in inps]

    def run(inp, out):
        for _ in range(20):
            laplacian(inp, out)

    at_once(*(lambda inp=inp, out=out: run(inp, out) for inp, out in zip(inps, outs, strict=True)))
    assert np.array_equal(outs, [reference(inp) for inp in inps])


def test_torch_learns_that_a_kernel_wrote_a_tensor_and_that_it_read_another():
    inp, out = torch_zeros(), torch_zeros()
    laplacian(inp, out)
    assert (inp._version, out._version) == (0, 1)
