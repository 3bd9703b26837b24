"""Objects with GT4Py's data interface in stencils: the order of hooks, and the examples."""

import itertools
import runpy
from pathlib import Path

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.stencils.cartesian import skewed_reference

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Told:
    """A field whose hooks write a common log, with the values of its memory at that time."""

    def __init__(self, name, log, values, *, refuses=None, **entries):
        self.name, self.log, self.refuses, self.entries = name, log, refuses, entries
        self.array = np.array(values, dtype=np.float64)
        self.at_touch = None

    def _telling(self, what):
        def tell():
            self.log.append(f"{what} {self.name}")
            if what == "touch":
                self.at_touch = self.array.copy()
            if what == self.refuses:
                raise RuntimeError(f"{what} refused by {self.name}")

        return tell

    @property
    def __gt_data_interface__(self):
        hooks = {what: self._telling(what) for what in ("acquire", "touch", "release")}
        return {None: {**self.array.__array_interface__, **hooks, **self.entries}}


@pytest.fixture
def log():
    return []


@pytest.fixture
def split(compiled):
    return dlf.bind(compiled("split", "numpy"))


ZEROS = np.zeros((3, 4, 2))


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`acquire` of every object is called before a stencil computes",
    "`release` of every object is called after the computation",
    "`touch` of each written object is called after the computation",
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "`acquire` is called before the computation, `release` after it",
    "`touch` is called for outputs only, after the computation",
)
def test_every_object_is_acquired_then_outputs_are_touched_then_every_object_released(split, log):
    inp, left, right = (Told(name, log, ZEROS) for name in ("inp", "left", "right"))
    split(inp, left, right)
    assert log == [
        *("acquire inp", "acquire left", "acquire right"),
        *("touch left", "touch right"),
        *("release inp", "release left", "release right"),
    ]
    assert (left.at_touch == 1.0).all()


def test_an_object_given_twice_has_its_hooks_called_once(compiled, log):
    field = Told("field", log, ZEROS)
    dlf.bind(compiled("split", "numpy"))(field, field, np.zeros((3, 4, 2)))
    assert log == ["acquire field", "touch field", "release field"]


def test_an_object_given_directly_and_in_a_wrapper_has_its_hooks_called_once(compiled, log):
    field = Told("field", log, ZEROS)

    class Wrapper:
        ndarray = field

    dlf.bind(compiled("split", "numpy"))(Wrapper(), field, np.zeros((3, 4, 2)))
    assert log == ["acquire field", "touch field", "release field"]


def test_a_refused_call_calls_no_hook(split, log):
    with refused(ValueError, "argument 'right'"):
        split(
            Told("inp", log, ZEROS),
            Told("left", log, ZEROS),
            Told("right", log, ZEROS[:, :1]),
            domain=(3, 4, 2),
        )
    assert log == []


def test_where_acquire_raises_those_before_are_released_and_nothing_runs(split, log):
    left = Told("left", log, ZEROS, refuses="acquire")
    with refused(RuntimeError, "acquire refused by left"):
        split(Told("inp", log, ZEROS), left, Told("right", log, ZEROS))
    assert log == ["acquire inp", "acquire left", "release inp"]
    assert not left.array.any()


def test_where_the_run_raises_outputs_are_touched_and_all_is_released(split, log, monkeypatch):
    def run(**_arguments):
        raise RuntimeError("half way")

    monkeypatch.setattr(type(split.stencil), "run", staticmethod(run))
    with refused(RuntimeError, "half way"):
        split(*(Told(name, log, ZEROS) for name in ("inp", "left", "right")))
    assert log[3:] == ["touch left", "touch right", "release inp", "release left", "release right"]


@pytest.mark.parametrize("what", ["touch", "release"])
def test_an_exception_of_a_hook_is_raised_after_all_hooks_were_called(split, log, what):
    left = Told("left", log, ZEROS, refuses=what)
    with refused(RuntimeError, f"{what} refused by left"):
        split(Told("inp", log, ZEROS), left, Told("right", log, ZEROS))
    assert log[-3:] == ["release inp", "release left", "release right"]
    assert (left.array == 1.0).all()


def test_the_first_of_several_errors_is_raised_and_the_others_reported(split, log, monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: reported.append(str(args.exc_value)))
    left, right = (Told(name, log, ZEROS, refuses="touch") for name in ("left", "right"))
    with refused(RuntimeError, "touch refused by left"):
        split(Told("inp", log, ZEROS), left, right)
    assert reported == ["touch refused by right"]


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`dims` names the dimensions",
    "the domain of a call is computed from the halos",
)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_dims_and_halo_of_an_interface_order_and_place_a_field(compiled, log, backend, order):
    values = np.random.default_rng(1).random((6, 7, 3))
    halo = np.array([(0, 1), (2, 0), (0, 0)])[list(order)].tolist()
    told = {"dims": ["IJK"[axis] for axis in order], "halo": [tuple(width) for width in halo]}
    inp = Told("inp", log, values.transpose(order), **told)
    out = Told("out", log, np.full(values.transpose(order).shape, -1.0), **told)
    dlf.bind(compiled("skewed", backend))(inp, out)
    np.testing.assert_allclose(out.array.transpose(np.argsort(order)), skewed_reference(values))


@pytest.mark.parametrize("dims", ["".join(dims) for dims in itertools.permutations("IJK")])
def test_a_storage_goes_into_an_unbound_stencil_in_any_order_of_dims(compiled, backend, dims):
    values = np.random.default_rng(1).random((6, 7, 3))
    order = ["IJK".index(name) for name in dims]
    options = {"dims": dims, "backend": backend, "default_origin": (0, 2, 0)}
    inp, out = (
        dlf.storage(array.transpose(order), **options) for array in (values, values * 0 - 1)
    )
    compiled("skewed", backend)(inp, out, domain=(5, 5, 3))
    np.testing.assert_allclose(
        out.to_numpy().transpose(np.argsort(order)), skewed_reference(values)
    )


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`default_origin` is the origin of a call without an origin",
)
@pytest.mark.source("Allocation note", "Default Origin", "`default_origin` is the origin of a call")
def test_an_unbound_stencil_starts_at_the_default_origin_and_ignores_the_halo(compiled):
    out = dlf.zeros((4, 4, 1), dims="IJK", halo=(1, 1, 0), default_origin=(1, 2, 0))
    compiled("split", "numpy")(dlf.zeros((3, 2, 1)), out, dlf.zeros((3, 2, 1)))
    written = np.zeros((4, 4, 1))
    written[1:, 2:] = 1.0
    np.testing.assert_array_equal(out.to_numpy(), written)


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`default_origin` is the origin of a call without an origin",
)
def test_a_bound_stencil_starts_at_the_default_origin_too(compiled):
    out = dlf.zeros((4, 4, 1), dims="KJI"[::-1], default_origin=(1, 2, 0))
    dlf.bind(compiled("split", "numpy"))(np.zeros((3, 2, 1)), out, np.zeros((3, 2, 1)))
    assert out.to_numpy()[1:, 2:].all()
    assert not out.to_numpy()[:1].any()


@pytest.fixture(scope="module")
def examples():
    for name in ("gt4py", "xarray"):
        library(name)
    return runpy.run_path(str(EXAMPLES / "data_interface.py"))


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`acquire` may bring the memory up to date",
    "a stencil uses the buffer on the device where it computes",
)
@pytest.mark.source(
    "Interface note", "Examples", "a class with buffers on host and GPU copies when it is told"
)
def test_a_pair_of_buffers_is_copied_when_it_is_acquired_and_marked_when_it_is_written(examples):
    pair = examples["synchronised_pair"]()
    assert pair.newer == "host"
    np.testing.assert_array_equal(pair.host.ravel(), np.arange(8.0))


@pytest.mark.source(
    "Interface note", "Examples", "a wrapper adds names to the interface of a storage"
)
def test_a_wrapper_adds_names_to_what_a_storage_says(examples):
    expected = np.arange(24.0).reshape(4, 3, 2).transpose()
    np.testing.assert_array_equal(examples["storage_wrapper"](), expected)


@pytest.mark.source(
    "Interface note",
    "Examples",
    'an accessor for DataArrays has the key "cpu"',
    "a stencil takes an array beside a DataArray with dims in another order",
)
def test_an_accessor_of_the_user_is_read(examples):
    xr = library("xarray")
    try:
        copied = examples["xarray_accessor"]()
    finally:
        del xr.DataArray.__gt_interface__
    np.testing.assert_array_equal(copied.to_numpy().ravel(), np.arange(1.0, 9.0))


@pytest.fixture
def registered():
    """Register an accessor of the user's, under a name, for one test."""
    xr = library("xarray")
    names = []

    def register(name, function):
        names.append(name)
        setattr(xr.DataArray, name, property(function))

    yield register
    for name in names:
        delattr(xr.DataArray, name)


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "the accessor of a user decides names, order of axes, side, and what is read-only",
)
def test_an_accessor_of_the_user_gives_names_that_dims_lack(registered):
    xr = library("xarray")

    def interface(array):
        return {None: {**array.data.__array_interface__, "dims": "JI", "halo": [(1, 1), (0, 0)]}}

    registered("__gt_interface__", interface)
    array = xr.DataArray(np.zeros((4, 5)), dims=("lat", "lon"))
    storage = dlf.as_storage(array)
    assert (storage.dims, storage.halo) == (("J", "I"), ((1, 1), (0, 0)))
    assert address_of(storage) == array.data.ctypes.data


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "users can replace the accessor",
    "the accessor of a user decides names, order of axes, side, and what is read-only",
)
def test_an_accessor_of_the_user_may_swap_the_names(registered, compiled):
    def swapped(array):
        return {None: {**array.data.__array_interface__, "dims": ("J", "I", "K")}}

    registered("__gt_interface__", swapped)
    values = np.random.default_rng(1).random((7, 6, 3))
    array = library("xarray").DataArray(values, dims=("I", "J", "K"))
    assert dlf.as_storage(array).dims == dlf.get_dims(array) == ("J", "I", "K")
    out = np.full((6, 7, 3), -1.0)
    place = {"origin": (0, 2, 0), "domain": (5, 5, 3)}
    dlf.bind(compiled("skewed", "numpy"))(array, out, **place)
    np.testing.assert_array_equal(out, skewed_reference(values.swapaxes(0, 1)))


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "users can replace the accessor",
    "the accessor of a user decides names, order of axes, side, and what is read-only",
)
def test_an_accessor_of_the_user_may_show_the_axes_in_another_order(registered):
    registered("__gt_interface__", lambda array: {None: array.data.T.__array_interface__})
    array = library("xarray").DataArray(np.arange(6.0).reshape(2, 3), dims=("x", "y"))
    storage = dlf.as_storage(array)
    np.testing.assert_array_equal(storage.to_numpy(), array.data.T)
    assert address_of(storage) == array.data.ctypes.data


@pytest.mark.source(
    "GDP-3", "Default xarray Data Interface", "the accessor of a user may describe any memory"
)
@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "several interfaces of one object must agree"
)
def test_an_accessor_that_describes_other_memory_is_refused(registered):
    xr = library("xarray")
    kept = np.zeros((4, 5))
    registered("__gt_interface__", lambda array: {None: kept.__array_interface__})
    with refused(BufferError, "accessor", "before `data` was replaced"):
        dlf.as_storage(xr.DataArray(np.zeros((4, 5)), dims=("lat", "lon")))


@pytest.mark.source(
    "GDP-3", "Default xarray Data Interface", "the accessor of a user may describe any memory"
)
def test_an_accessor_that_describes_more_than_the_data_is_refused(registered):
    memory = np.zeros((4, 5))
    registered("__gt_interface__", lambda array: {None: memory.__array_interface__})
    smaller = memory.view(np.float32).reshape(-1)[:20].reshape(4, 5)
    with refused(BufferError, "accessor", "before `data` was replaced"):
        dlf.as_storage(library("xarray").DataArray(smaller, dims=("lat", "lon")))


@pytest.mark.parametrize("dtype", [">f8", [("x", "<f8"), ("y", "u1")]])
def test_an_accessor_does_not_speak_for_data_that_is_refused(registered, dtype):
    before = np.zeros((4, 5))
    registered("__gt_interface__", lambda array: {None: before.__array_interface__})
    data = np.zeros((4, 5), dtype)
    with pytest.raises((BufferError, ValueError, TypeError)):
        dlf.as_storage(library("xarray").DataArray(data if data.dtype.names is None else data["x"]))


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "the accessor of a user decides names, order of axes, side, and what is read-only",
)
def test_an_accessor_that_forbids_writing_is_obeyed(registered):
    xr, memory = library("xarray"), np.zeros(4)
    registered(
        "__gt_interface__",
        lambda array: {None: {**memory.__array_interface__, "data": (memory.ctypes.data, True)}},
    )
    assert dlf.as_storage(xr.DataArray(memory, dims="I")).readonly


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4, 1), order="F"), np.zeros((3, 0, 5))[::2]], ids=["extent 1", "size 0"]
)
def test_strides_without_a_meaning_make_no_accessor_stale(registered, array):
    registered("__gt_interface__", lambda held: {None: held.data.__array_interface__})
    assert dlf.as_storage(library("xarray").DataArray(array)).shape == array.shape


def test_an_accessor_serves_data_that_has_no_door_of_its_own(registered):
    xr, memory = library("xarray"), np.arange(4.0)

    class Opaque:
        shape, dtype, ndim = (4,), np.dtype(float), 1

        def __array_function__(self, *_arguments):
            return NotImplemented

        def __array_ufunc__(self, *_arguments):
            return NotImplemented

    registered("__gt_interface__", lambda array: {None: memory.__array_interface__})
    storage = dlf.as_storage(xr.DataArray(Opaque(), dims="I"))
    assert (address_of(storage), storage.dims) == (memory.ctypes.data, ("I",))


def test_names_of_gt4py_that_contradict_those_of_the_data_are_refused():
    xr = library("xarray")

    class Named(np.ndarray):
        __gt_dims__ = ("I", "J")

    def data_array(dims):
        made = xr.DataArray(np.zeros((4, 5)), dims=dims)
        made.variable._data = np.zeros((4, 5)).view(Named)
        return made

    assert dlf.as_storage(data_array(("I", "J"))).dims == ("I", "J")
    assert dlf.as_storage(data_array(("lat", "lon"))).dims == ("lat", "lon")
    with refused(ValueError, "('I', 'J') as the data", "('J', 'I') from the DataArray"):
        dlf.as_storage(data_array(("J", "I")))
