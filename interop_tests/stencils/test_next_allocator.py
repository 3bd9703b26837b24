"""Fields that gt4py.next makes in memory of dlfield."""

import gc
import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import Watch
from support.stencils import next_programs as programs
from support.stencils.next_programs import QUIET, Cell, E2CDim, I, J, K, gtx, on

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

DOMAIN = gtx.domain({I: (-3, 60), J: (-2, 5), K: (0, 3)})


def address_at(field, **index):
    """Address of an element by its indices, 0 unless given."""
    at = [index.get(one.dim.value, 0) - one.unit_range.start for one in field.domain]
    return field.ndarray.ctypes.data + sum(np.multiply(at, field.ndarray.strides))


def own_bytes():
    gc.collect()
    return dlf._core.live_allocations()


MAKERS = {
    "empty": lambda allocator: gtx.empty(DOMAIN, allocator=allocator),
    "zeros": lambda allocator: gtx.zeros(DOMAIN, allocator=allocator),
    "ones": lambda allocator: gtx.ones(DOMAIN, gtx.float32, allocator=allocator),
    "full": lambda allocator: gtx.full(DOMAIN, 7, allocator=allocator),
    "as_field": lambda allocator: gtx.as_field(DOMAIN, np.ones(DOMAIN.shape), allocator=allocator),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_every_constructor_makes_a_field_in_memory_of_dlfield(maker):
    before = own_bytes()
    field = MAKERS[maker](dlf.field_allocator())
    model = MAKERS[maker](None)
    assert own_bytes() == before + 1
    assert (field.domain, field.dtype) == (model.domain, model.dtype)
    if maker != "empty":
        np.testing.assert_array_equal(field.asnumpy(), model.asnumpy())


def test_the_memory_is_freed_with_the_last_view_of_the_field():
    before = own_bytes()
    field = gtx.zeros(DOMAIN, allocator=dlf.field_allocator())
    made, part = dlf.from_field(field), field.ndarray[1:]
    del field
    assert own_bytes() == before + 1
    part[...] = 3.0
    assert made[1, 0, 0] == 3.0
    del made, part
    assert own_bytes() == before


def test_a_storage_of_such_a_field_has_its_memory():
    field = gtx.zeros(DOMAIN, allocator=dlf.field_allocator())
    made = dlf.from_field(field)
    assert (address_of(made), made.strides) == (field.ndarray.ctypes.data, field.ndarray.strides)


def test_strides_are_those_of_gt4py_by_default():
    field = gtx.zeros(DOMAIN, allocator=dlf.field_allocator())
    assert field.ndarray.strides == gtx.zeros(DOMAIN).ndarray.strides


@pytest.mark.parametrize("alignment", [64, 128, 512])
def test_the_point_with_the_index_0_of_every_row_lies_on_the_boundary(alignment):
    for _ in range(5):
        field = gtx.zeros(DOMAIN, allocator=dlf.field_allocator(alignment_size=alignment))
        assert {address_at(field, J=j, K=k) % alignment for j in (-2, 4) for k in (0, 2)} == {0}


def test_the_aligned_index_of_gt4py_counts_instead():
    index = [gtx.common.NamedIndex(I, 5), gtx.common.NamedIndex(Cell, 1)]
    for _ in range(5):
        field = gtx.zeros(DOMAIN, allocator=dlf.field_allocator(), aligned_index=index)
        assert {address_at(field, I=5, J=j) % 64 for j in range(-2, 5)} == {0}
        assert address_at(field) % 64 != 0


@pytest.mark.parametrize(("start", "stop"), [(5, 40), (-40, -5)])
def test_the_nearest_point_is_aligned_in_a_field_without_the_index_0(start, stop):
    field = gtx.zeros({I: (start, stop), J: 3}, allocator=dlf.field_allocator())
    nearest = start if start > 0 else stop - 1
    assert {address_at(field, I=nearest, J=j) % 64 for j in range(3)} == {0}


PRESETS = {
    "gt:cpu_ifirst": dlf.zeros(DOMAIN.shape, dims="IJK", backend="gt:cpu_ifirst").layout,
    "gt:cpu_kfirst": dlf.zeros(DOMAIN.shape, dims="IJK", backend="gt:cpu_kfirst").layout,
    "C": (0, 1, 2),
}


@pytest.mark.parametrize("option", ["backend", "defaults"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_gives_layout_and_alignment(preset, option):
    field = gtx.zeros(DOMAIN, allocator=dlf.field_allocator(**{option: preset}))
    assert dlf.from_field(field).layout == PRESETS[preset]


def test_a_preset_knows_dimensions_by_their_kinds():
    level = gtx.Dimension("Level", gtx.DimensionKind.VERTICAL)
    kfirst = gtx.zeros({Cell: 4, level: 5}, allocator=dlf.field_allocator("gt:cpu_kfirst"))
    ifirst = gtx.zeros({Cell: 4, level: 5}, allocator=dlf.field_allocator("gt:cpu_ifirst"))
    assert (kfirst.ndarray.strides[1], ifirst.ndarray.strides[0]) == (8, 8)
    table = gtx.zeros({Cell: 4, E2CDim: 3}, allocator=dlf.field_allocator("gt:cpu_kfirst"))
    assert table.ndarray.strides == (8, 32), "data dimensions come outermost"


def test_options_override_defaults():
    allocator = dlf.field_allocator(defaults="gt:cpu_ifirst", layout=(2, 0, 1), alignment_size=256)
    field = gtx.zeros(DOMAIN, allocator=allocator)
    assert dlf.from_field(field).layout == (2, 0, 1)
    assert address_at(field, J=1) % 256 == 0


def test_a_layout_may_be_a_function_of_the_names_of_the_dimensions():
    def fastest(dims):
        names = [*(one for one in dims if one != "Cell"), "Cell"]
        return [names.index(one) for one in dims]

    field = gtx.zeros({Cell: 4, K: 5}, allocator=dlf.field_allocator(layout=fastest))
    assert field.ndarray.strides[0] == 8


@pytest.mark.parametrize("domain", [{}, {I: 0}, {I: 3, K: (0, 0)}], ids=str)
def test_fields_without_dimensions_or_points_can_be_made(domain):
    field = gtx.zeros(domain, allocator=dlf.field_allocator())
    assert field.domain == gtx.domain(domain)
    assert field.ndarray.shape == field.domain.shape


@pytest.mark.parametrize("dtype", [gtx.bool, gtx.int32, gtx.int64, gtx.float32, gtx.float64])
def test_fields_of_every_type_can_be_made(dtype):
    field = gtx.ones({I: 5}, dtype, allocator=dlf.field_allocator())
    assert (field.ndarray.dtype, field.ndarray.sum()) == (np.dtype(dtype), 5)


def test_a_compiled_program_writes_into_such_fields():
    values = np.random.default_rng(1).random((5, 6, 4))
    inp, out = (
        gtx.as_field([I, J, K], one, allocator=dlf.field_allocator()) for one in (values,) * 2
    )
    on("gtfn_cpu", "lift")(inp, out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy()[:, :, :-1], values[:, :, 1:])


def test_connectivities_can_lie_in_memory_of_dlfield():
    before = own_bytes()
    rows = np.array([[0, 1], [1, 2]])
    table = gtx.as_connectivity([I, E2CDim], Cell, rows, allocator=dlf.field_allocator())
    assert own_bytes() == before + 1
    np.testing.assert_array_equal(table.asnumpy(), rows)


def test_an_array_of_the_buffer_describes_it():
    made = dlf.field_allocator().__gt_allocate__(DOMAIN, dtype_of("float64"))
    assert made.memory_address == made.ndarray.ctypes.data == address_of(made.buffer)
    assert (made.shape, made.strides) == (DOMAIN.shape, made.ndarray.strides)
    assert (made.layout_map, made.byte_alignment, made.aligned_index) == ((2, 1, 0), 64, (3, 2, 0))
    assert tuple(made.device) == (1, 0)


def dtype_of(name):
    return library("gt4py._core.definitions").dtype(name)


def test_gt4py_takes_it_for_an_allocator_of_the_host():
    allocators = library("gt4py.next.custom_layout_allocators")
    definitions = library("gt4py._core.definitions")
    assert allocators.is_field_allocator_for(dlf.field_allocator(), definitions.DeviceType.CPU)


def test_equal_options_make_equal_allocators():
    make = dlf.field_allocator
    assert make(alignment_size=64, layout=[1, 0]) == make(layout=(1, 0))
    assert hash(make()) == hash(pickle.loads(pickle.dumps(make())))
    assert make() != make(alignment_size=128)


def test_an_allocator_holds_no_field():
    allocator = dlf.field_allocator()
    watch = Watch(gtx.zeros({I: 3}, allocator=allocator))
    assert watch.freed


REFUSED = {
    "an unknown backend": ({"backend": "gt:cpu"}, ValueError, "backend: expected"),
    "options beside a backend": (
        {"backend": "gt:cpu_ifirst", "alignment_size": 64},
        ValueError,
        "backend: expected no 'alignment_size' beside it",
    ),
    "a boundary that is none": ({"alignment_size": 3}, ValueError, "alignment_size: expected"),
    "a layout that is none": ({"layout": (0, 0)}, ValueError, "layout: expected"),
    "a device that is none": ({"device": "tpu"}, ValueError, "device: expected"),
    "a pair": ({"managed": "gt4py"}, ValueError, "managed: expected None or 'cuda'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_options_that_no_storage_takes_are_refused_when_the_allocator_is_made(what):
    options, kind, text = REFUSED[what]
    with refused(kind, text):
        dlf.field_allocator(**options)


def test_an_aligned_index_outside_the_domain_is_refused():
    index = [gtx.common.NamedIndex(I, 60)]
    with refused(ValueError, "aligned_index: expected an index from -3 to 59 along I, got 60"):
        gtx.zeros(DOMAIN, allocator=dlf.field_allocator(), aligned_index=index)


def test_another_cpu_is_refused():
    definitions = library("gt4py._core.definitions")
    second = definitions.Device(definitions.DeviceType.CPU, 1)
    with refused(ValueError, "device: expected 0 for memory of the host, got 1"):
        gtx.zeros({I: 3}, allocator=dlf.field_allocator(), device=second)


def test_a_layout_of_other_dimensions_is_refused():
    with refused(ValueError, "layout: expected"):
        gtx.zeros({I: 3}, allocator=dlf.field_allocator(layout=(1, 0)))


# --- fields of other allocators ----------------------------------------------------------------

ALLOCATORS = {
    "default": lambda: None,
    "numpy": lambda: np,
    "jax": lambda: library("jax.numpy"),
    "gtfn": lambda: gtx.gtfn_cpu,
    "roundtrip": lambda: gtx.itir_python,
    "dlfield": dlf.field_allocator,
}


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_field_of_every_allocator_goes_through_a_stencil_and_a_storage(allocator):
    own = ALLOCATORS[allocator]()
    values = np.random.default_rng(2).random((5, 6, 4))
    domain = {I: (-1, 4), J: (-1, 5), K: (0, 4)}
    inp = gtx.as_field(domain, values, allocator=own)
    out = gtx.zeros({I: (0, 3), J: (0, 4), K: (0, 4)})
    dlf.bind(on("embedded", "laplacian_of"))(inp, out=out)
    expected = programs.laplacian_reference(values)
    np.testing.assert_allclose(out.asnumpy(), expected)
    held = dlf.from_field(inp, domain={I: (0, 3), J: (0, 4)})
    assert held.dims == ("I", "J", "K")
    assert dlf.as_field(held).domain == inp.domain
    again = dlf.zeros((3, 4, 4), dims=("I", "J", "K"))
    dlf.bind(on("embedded", "laplacian_of"))(held, out=again)
    np.testing.assert_array_equal(again.to_numpy(), out.asnumpy())


@pytest.mark.parametrize("allocator", ["default", "gtfn", "roundtrip", "dlfield", "numpy"])
def test_a_stencil_writes_into_a_field_of_every_allocator_of_the_host(allocator):
    values = np.random.default_rng(2).random((5, 6, 4))
    domain = {I: (0, 3), J: (0, 4), K: (0, 4)}
    out = gtx.zeros(domain, allocator=ALLOCATORS[allocator]())
    inp = dlf.as_storage(values, halo=((1, 1), (1, 1), (0, 0)))
    dlf.bind(on("embedded", "laplacian_of"))(inp, out=out)
    np.testing.assert_allclose(out.asnumpy(), programs.laplacian_reference(values))


def test_a_constructor_of_gt4py_keeps_the_allocator():
    before = own_bytes()
    make = gtx.FieldConstructor(allocator=dlf.field_allocator(alignment_size=128))
    first, second = make.zeros(DOMAIN), make.full(DOMAIN, 3.0)
    assert own_bytes() == before + 2
    assert address_at(first) % 128 == address_at(second) % 128 == 0
