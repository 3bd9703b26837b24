"""Functions in Rust (examples/rust_kernel) on the arrays of every library: results and memory.

What they refuse, and what they do with hooks and threads, is in `test_rust_kernel_calls.py`.
"""

import array
import ctypes
import functools
import gc
import itertools
import sys

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.errors import refused
from support.optional import library
from support.owners import CountedMemory, assert_freed_once
from support.processes import run_in_subprocess
from support.rust_kernel import LIBRARY, SHAPE, VALUES, Told, built, load, reference, untouched
from support.stencils import arguments, spy
from support.stencils.arguments import Held, Producer
from support.stencils.next_programs import QUIET

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

laplacian, domain_sum, known = built().laplacian, built().domain_sum, built().known


# --- producers -----------------------------------------------------------------------------------


def arrow_tensors(values):
    made = library("pyarrow").FixedShapeTensorArray.from_numpy_ndarray(values.copy())
    return Held(made, made.to_numpy_ndarray().ctypes.data, lambda: made.to_numpy_ndarray().copy())


def arrow_batch(values, layout):
    library("pyarrow")
    batch = dlf.storage(values, dims="IJK", layout=layout).to_arrow_batch("values")
    # The axis of Arrow's rows is the outermost one in memory.
    shown = np.moveaxis(batch.column(0).to_numpy_ndarray(), 0, layout.index(0))
    return Held(batch, shown.ctypes.data, shown.copy)


def memory_of_array(values):
    block = array.array("d", values.ravel())
    view = memoryview(block).cast("B").cast("d", shape=values.shape)
    return Held(view, block.buffer_info()[0], lambda: np.array(view.tolist()))


def storages():
    for dims in map("".join, itertools.permutations("IJK")):
        for layout in itertools.permutations(range(3)):
            options = {"dims": dims, "layout": layout, "halo": (1, 1, 1), "alignment_size": 64}
            yield Producer(
                f"storage {dims} {layout}",
                lambda values, options=options: arguments.storage(values, **options),
            )


def without_labels(all_of_them):
    """Leave out those whose names are not I, J and K: this function is not bound."""
    return [producer for producer in all_of_them if not producer.dims]


WRITABLE = [
    *without_labels(arguments.WRITABLE + spy.WRITABLE),
    Producer("memoryview of array.array", memory_of_array),
    *storages(),
]
ARROW = [
    Producer("arrow tensors", arrow_tensors, readonly=True),
    *(
        Producer(f"arrow batch {order}", lambda v, o=order: arrow_batch(v, o), readonly=True)
        for order in itertools.permutations(range(3))
    ),
]
READ_ONLY = [*without_labels(arguments.READ_ONLY + spy.READ_ONLY), *ARROW]

every_producer = pytest.mark.parametrize("producer", WRITABLE + READ_ONLY, ids=str)
writable_producers = pytest.mark.parametrize("producer", WRITABLE, ids=str)


@every_producer
def test_the_result_for_any_input_is_that_of_numpy_and_the_input_stays_as_it_is(producer):
    inp, out = producer.hold(VALUES), untouched()
    laplacian(inp.array, out)
    assert np.array_equal(out, reference(VALUES))
    assert np.array_equal(inp.read(), VALUES)


@writable_producers
def test_the_result_is_written_into_the_memory_of_any_producer(producer):
    out = producer.hold(untouched())
    laplacian(VALUES, out.array)
    assert np.array_equal(out.read(), reference(VALUES))


def doubling(producer, held):
    """Return a function that doubles the values in a producer's memory, read-only or not."""
    memory = np.frombuffer((ctypes.c_double * VALUES.size).from_address(held.address))
    if not producer.readonly:
        memory = dlf.as_storage(held.array).to_numpy()
    return lambda: np.multiply(memory, 2.0, out=memory)


@pytest.mark.parametrize(
    "producer",
    [one for one in WRITABLE + READ_ONLY if one.name != "numpy, read-only page"],
    ids=str,
)
def test_an_input_is_not_copied_so_a_late_write_to_it_is_seen(producer):
    inp, out = producer.hold(VALUES), untouched()
    # The second argument is acquired when the first was taken already.
    laplacian(inp.array, Told(out, at={"acquire": doubling(producer, inp)}))
    assert np.array_equal(out, reference(2.0 * VALUES))


@pytest.mark.parametrize("out_order", ["".join(dims) for dims in itertools.permutations("IJK")])
@pytest.mark.parametrize("inp_order", ["".join(dims) for dims in itertools.permutations("IJK")])
def test_two_arrays_with_names_in_different_orders_meet_by_name(inp_order, out_order):
    inp = arguments.data_array(VALUES, inp_order)
    out = arguments.data_array(untouched(), out_order)
    laplacian(inp.array, out.array)
    assert np.array_equal(out.read(), reference(VALUES))


# --- NumPy: order, steps, directions -------------------------------------------------------------


@st.composite
def views(draw, shape):
    """Draw the shape of an array, and how to take a view of `shape` from it."""
    order = draw(st.permutations(range(3)))
    steps = draw(st.tuples(*[st.sampled_from((-3, -2, -1, 1, 2, 3))] * 3))
    room = [n * abs(step) + draw(st.integers(0, 2)) for n, step in zip(shape, steps, strict=True)]

    def take(whole):
        stepped = whole.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
        return stepped[tuple(map(slice, shape))]

    return [room[axis] for axis in order], take


@given(st.data(), st.tuples(st.integers(2, 6), st.integers(2, 6), st.integers(0, 4)))
def test_views_with_any_strides_are_read_and_written_and_nothing_beside_them(data, shape):
    room, take = data.draw(views(shape), label="inp")
    inp = np.random.default_rng(0).random(room)
    before = inp.copy()
    out_room, take_out = data.draw(views(shape), label="out")
    out, expected = untouched(out_room), untouched(out_room)
    take_out(expected)[...] = reference(take(inp))
    laplacian(take(inp), take_out(out))
    assert np.array_equal(out, expected)
    assert np.array_equal(inp, before)


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 7, 3), (6, 7, 0)])
def test_a_field_without_a_point_inside_stays_as_it_is(shape):
    out = untouched(shape)
    laplacian(np.zeros(shape), out)
    assert (out == -1.0).all()


def test_an_input_may_repeat_its_elements():
    profile, out = np.array([1.0, 2.0, 4.0]), untouched()
    laplacian(np.broadcast_to(profile, SHAPE), out)
    assert not out[1:-1, 1:-1].any()


@pytest.mark.parametrize("order", ["C", "F"])
def test_threads_that_share_a_large_field_compute_what_one_does(order):
    values = np.random.default_rng(0).random((200, 200, 50))
    inp, out = np.array(values, order=order), np.array(untouched(values.shape), order=order)
    laplacian(inp, out)
    assert np.array_equal(out, reference(values))


# --- release -------------------------------------------------------------------------------------


class Cube(CountedMemory):
    """The same memory in three dimensions."""

    def __init__(self):
        super().__init__()
        shape, strides = (ctypes.c_int64 * 3)(4, 3, 1), (ctypes.c_int64 * 3)(3, 1, 1)
        self._tensor.ndim, self._tensor.shape, self._tensor.strides = 3, shape, strides


#: Calls that get memory and keep nothing of it.
CALLS = {
    "an input": lambda: (laplacian, Cube(), untouched((4, 3, 1))),
    "an output": lambda: (laplacian, VALUES[:4, :3, :1], Cube()),
    "the only argument": lambda: (known, Cube()),
}
#: Calls that raise.
FAILED_CALLS = {
    "an input of another shape": lambda: (laplacian, Cube(), untouched()),
    "an output of another shape": lambda: (laplacian, VALUES, Cube()),
    "an input beside no array": lambda: (laplacian, Cube(), None),
    "an input of other dims": lambda: (laplacian, CountedMemory(), untouched()),
    "an output of other dims": lambda: (laplacian, VALUES, CountedMemory()),
    "another type": lambda: (domain_sum, Cube()),
}


def deletions(arguments):
    gc.collect()
    return [one.deletions for one in arguments if isinstance(one, CountedMemory)]


@pytest.mark.parametrize("make", CALLS.values(), ids=CALLS)
def test_memory_is_freed_once_when_the_call_is_over(make):
    function, *arguments = make()
    function(*arguments)
    assert deletions(arguments) == [1]


@pytest.mark.parametrize("make", FAILED_CALLS.values(), ids=FAILED_CALLS)
def test_memory_is_freed_once_after_an_error(make):
    function, *arguments = make()
    with pytest.raises((TypeError, ValueError)):
        function(*arguments)
    assert deletions(arguments) == [1]


def test_an_output_is_written_by_way_of_a_capsule():
    out = Cube()
    out.values[...] = -1.0
    laplacian(VALUES[:4, :3, :1], out)
    assert np.array_equal(out.values[..., None], reference(VALUES[:4, :3, :1]))


@pytest.mark.parametrize("wrap", [np.from_dlpack, dlf.as_storage], ids=["numpy", "storage"])
def test_memory_that_others_hold_is_not_freed_by_a_call(wrap):
    def called(field):
        laplacian(field, untouched((4, 3, 1)))
        with refused(ValueError, "one shape"):
            laplacian(field, untouched())
        return field

    assert_freed_once(wrap, lambda field: field[:, :, None], called)


@every_producer
def test_no_call_keeps_a_reference_to_an_array(producer):
    held, small = producer.hold(VALUES), untouched((2, 2, 1))
    before = sys.getrefcount(held.array)
    laplacian(held.array, untouched())
    with refused(ValueError, "argument 'out': expected shape"):
        laplacian(held.array, small)
    after = sys.getrefcount(held.array)  # not inside of the assertion, which keeps it
    assert after == before


# --- names and halos -----------------------------------------------------------------------------


def named_array(*dims):
    return library("xarray").DataArray(np.zeros(SHAPE), dims=dims)


def halo_field(**options):
    return dlf.zeros(SHAPE, **{"dims": "KJI", "halo": ((1, 2), 1, 0), **options})


NO_HALO = [(0, 0)] * 3
KNOWN = {
    "numpy": (lambda: VALUES, (None, NO_HALO)),
    "no dimensions": (lambda: np.float64(1.0), (None, [])),
    "storage": (lambda: halo_field(), (["K", "J", "I"], [(1, 2), (1, 1), (0, 0)])),
    "transposed": (
        lambda: halo_field().transpose("I", "K", "J"),
        (["I", "K", "J"], [(0, 0), (1, 2), (1, 1)]),
    ),
    "backwards": (lambda: halo_field()[::-1], (["K", "J", "I"], [(2, 1), (1, 1), (0, 0)])),
    "a part": (lambda: halo_field()[:, 0], (["K", "I"], [(1, 2), (0, 0)])),
    "its domain": (lambda: halo_field().domain_view, (["K", "J", "I"], NO_HALO)),
    "xarray": (lambda: named_array("time", "lat", "lon"), (["time", "lat", "lon"], NO_HALO)),
    "xarray over a storage": (
        lambda: library("xarray").DataArray(halo_field(dims=None), dims=("a", "b", "c")),
        (["a", "b", "c"], [(1, 2), (1, 1), (0, 0)]),
    ),
    "__gt_dims__": (lambda: arguments.NamedByMethod(VALUES), (["K", "I", "J"], NO_HALO)),
    "__gt_data_interface__": (
        lambda: Told(VALUES, dims="JIK", halo=[(1, 0), (0, 2), (0, 0)]),
        (["J", "I", "K"], [(1, 0), (0, 2), (0, 0)]),
    ),
    "a halo of None": (lambda: Told(VALUES, halo=None), (None, NO_HALO)),
    "an unknown halo": (lambda: halo_field()[::2], (["K", "J", "I"], None)),
    "an unknown halo of an object": (lambda: Told(VALUES, halo_unknown=True), (None, None)),
    "arrow batch": (
        lambda: library("pyarrow") and halo_field().to_arrow_batch("field"),
        (["K", "J", "I"], [(1, 2), (1, 1), (0, 0)]),
    ),
}


@pytest.mark.parametrize(("make", "expected"), KNOWN.values(), ids=KNOWN)
def test_names_and_halo_are_those_that_the_array_came_with(make, expected):
    assert known(make()) == expected


ones = functools.partial(dlf.ones, dtype="float32")


SUMS = {
    "no dimensions": (lambda: np.float32(3.0), 3.0),
    **{f"{n} dimensions": (lambda n=n: np.ones((2,) * n, "f4"), 2.0**n) for n in range(1, 8)},
    "repeated": (lambda: np.broadcast_to(np.arange(3, dtype="f4"), (4, 3)), 12.0),
    "array.array": (lambda: array.array("f", [1.0, 2.0, 4.0]), 7.0),
    "torch": (lambda: library("torch").full((2, 3), 2.0).T, 12.0),
    "jax": (lambda: library("jax.numpy").full((2, 3), 2.0, "float32"), 12.0),
    "arrow": (lambda: library("pyarrow").array([1.0, 2.0], "float32"), 3.0),
    "storage": (lambda: ones((4, 5)), 20.0),
    "halo": (lambda: ones((4, 5), halo=(1, 2)), 2.0),
    "halo on one side": (lambda: ones((4, 5), halo=((3, 0), (0, 1))), 4.0),
    "nothing but halo": (lambda: ones((4, 5), halo=(2, 0)), 0.0),
    "halo, transposed": (lambda: ones((4, 5), dims="IJ", halo=((3, 0), 0)).T, 5.0),
}


@pytest.mark.parametrize(("make", "expected"), SUMS.values(), ids=SUMS)
def test_the_sum_is_that_of_the_values_inside_the_halo(make, expected):
    assert domain_sum(make()) == expected


# --- the module ----------------------------------------------------------------------------------


def test_the_functions_need_no_package_of_python():
    code = f"""
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location("rust_kernel", {str(LIBRARY)!r})
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        view = memoryview(bytearray(24)).cast("d")
        print(module.known(view), "numpy" in sys.modules, "dlfield" in sys.modules)
    """
    assert run_in_subprocess(code) == "(None, [(0, 0)]) False False"


def test_a_missing_library_fails_with_the_command_that_builds_it(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="make test builds it"):
        load(tmp_path / "librust_kernel.so")
