"""Fields of gt4py.next over the memory of storages, and storages over that of fields."""

import pickle

import dlfield as dlf
import numpy as np
import pytest
from dlfield.stencils.next.fields import as_field, from_field

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once
from support.stencils import next_programs as programs
from support.stencils.next_programs import BACKENDS, QUIET, Cell, I, J, K, gtx, on

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

Line = gtx.Field[gtx.Dims[I], gtx.float64]
HALO = ((1, 1), (2, 1), (0, 0))


def storage(**options):
    made = dlf.zeros((5, 6, 4), **{"dims": ("I", "J", "K"), "halo": HALO, **options})
    made.to_numpy()[...] = np.arange(5 * 6 * 4.0).reshape(5, 6, 4)
    return made


@pytest.fixture(params=BACKENDS)
def backend_of_programs(request):
    return request.param


def address(array):
    return array.__array_interface__["data"][0]


# --- storage to field --------------------------------------------------------------------------


def test_a_field_begins_where_the_storage_does_in_memory():
    made = storage()
    assert address(as_field(made).ndarray) == address_of(made)
    assert as_field(made).ndarray.strides == made.strides


def test_a_write_to_the_field_is_seen_in_the_storage_and_the_other_way():
    made = storage()
    field = as_field(made)
    field[programs.I(-1), programs.J(-2), programs.K(0)] = 7.0
    assert made[0, 0, 0] == 7.0
    made[1, 2, 3] = 9.0
    assert field[programs.I(0), programs.J(0), programs.K(3)].as_scalar() == 9.0


def test_ranges_begin_at_minus_the_lower_halo():
    assert as_field(storage()).domain == gtx.domain({I: (-1, 4), J: (-2, 4), K: (0, 4)})


def test_an_origin_counts_instead_of_the_halo():
    field = as_field(storage(), origin=(0, -3, 1))
    assert field.domain == gtx.domain({I: (0, 5), J: (3, 9), K: (-1, 3)})


def test_the_default_origin_of_the_storage_counts_before_its_halo():
    field = as_field(storage(default_origin=(0, -3, 1)))
    assert field.domain == gtx.domain({I: (0, 5), J: (3, 9), K: (-1, 3)})


@pytest.mark.parametrize("dims", [("K", "I", "J"), ("K", "I", "Cell")], ids="".join)
def test_the_default_origin_counts_as_in_the_storage_whatever_the_axes(dims):
    made = dlf.zeros((4, 5, 6), dims=dims, default_origin=(1, 2, 3))
    in_order = sorted(dims) if "J" in dims else dims  # as GT4Py has it, or that of the axes
    origin = dict(zip(in_order, (1, 2, 3), strict=True))
    starts = {one.dim.value: one.unit_range.start for one in as_field(made).domain}
    assert starts == {name: -at for name, at in origin.items()}


RANGES = {I: (-1, 4), J: (5, 11), K: (0, 4)}
DOMAINS = {
    "a Domain": gtx.domain(RANGES),
    "a dict": RANGES,
    "a dict of ranges": {dim: range(*ends) for dim, ends in RANGES.items()},
    "a sequence in another order": [(K, (0, 4)), (J, (5, 11)), (I, (-1, 4))],
}


@pytest.mark.parametrize("form", DOMAINS)
def test_a_domain_says_the_ranges_by_name(form):
    field = as_field(storage(), domain=DOMAINS[form])
    assert field.domain == gtx.domain(RANGES)
    assert (
        as_field(storage(), {"I": I, "J": J, "K": K}, domain=DOMAINS[form]).domain == field.domain
    )


def test_a_domain_says_the_dimensions_of_an_array_without_names_in_order():
    values = np.arange(12.0).reshape(4, 3)
    field = as_field(values, domain={K: (0, 4), Cell: (5, 8)})
    assert field.domain == gtx.domain({Cell: (5, 8), K: (0, 4)})
    np.testing.assert_array_equal(field.ndarray, values.T)


REFUSED_DOMAINS = {
    "other extents": ({**RANGES, I: (0, 4)}, "expected ranges of the extents (5, 6, 4) along"),
    "a dimension that is missing": ({I: (0, 5), K: (0, 4)}, "expected a gtx.Dimension for 'J'"),
    "names": ({"I": (0, 5)}, "domain: expected a gtx.Domain, or ranges by gtx.Dimension"),
    "a number": (3, "domain: expected a gtx.Domain, or ranges by gtx.Dimension"),
    "no end": (
        gtx.Domain(dims=(I,), ranges=(gtx.common.UnitRange.infinite(),)),
        "domain: expected ranges with a first point and an end",
    ),
}


@pytest.mark.parametrize("form", REFUSED_DOMAINS)
def test_a_domain_that_does_not_fit_is_refused(form):
    domain, text = REFUSED_DOMAINS[form]
    with refused(ValueError, text):
        as_field(storage(), domain=domain)


def test_an_origin_beside_a_domain_is_refused():
    with refused(ValueError, "domain: expected no origin= beside it, got both"):
        as_field(storage(), origin=(0, 0, 0), domain=RANGES)


def test_a_storage_without_dimensions_becomes_a_field_without_and_comes_back():
    made = dlf.full((), 3.0)
    field = as_field(made)
    assert (field.domain.ndim, field.as_scalar()) == (0, 3.0)
    assert address_of(from_field(field)) == address_of(made)


def test_a_storage_without_points_becomes_a_field_without_and_comes_back():
    field = as_field(dlf.zeros((0, 3), dims=("I", "K")))
    assert field.domain == gtx.domain({I: 0, K: 3})
    assert from_field(field).shape == (0, 3)


def test_k_is_vertical_and_other_names_are_horizontal_unless_given():
    assert as_field(storage()).domain.dims == (I, J, K)


def test_dimensions_are_taken_by_name():
    lon, lat, level = (gtx.Dimension(name) for name in ("LonDim", "MeridionalDim", "OtherDim"))
    named = {"K": level, "J": lat, "I": lon}
    assert as_field(storage(), named).domain.dims == (lon, lat, level)


def test_dimensions_are_used_by_position_if_axes_have_no_names():
    field = as_field(np.zeros((2, 3)), (I, K))
    assert field.domain == gtx.domain({I: 2, K: 3})


def test_axes_are_put_in_the_order_of_gt4py():
    values = np.arange(24.0).reshape(4, 2, 3)
    made = dlf.as_storage(values, dims=("K", "I", "J"), halo=(1, 0, 0))
    field = as_field(made)
    assert field.domain == gtx.domain({I: 2, J: 3, K: (-1, 3)})
    assert address(field.ndarray) == address(values)
    np.testing.assert_array_equal(field.ndarray, values.transpose(1, 2, 0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_runs_on_fields_of_storages_and_writes_into_them(backend):
    inp, out = storage(), dlf.zeros((5, 6, 4), dims=("I", "J", "K"), halo=HALO)
    arguments = {"ni": 3, "nj": 3, "nk": 4, "offset_provider": {}}
    on(backend, "laplacian")(as_field(inp), as_field(out), **arguments)
    expected = programs.laplacian_reference(inp.to_numpy()[:, 1:])
    np.testing.assert_allclose(out.domain_view.to_numpy(), expected, atol=1e-12)
    assert not out.to_numpy()[0].any()


def test_a_torch_tensor_becomes_a_field_over_its_own_memory():
    torch = library("torch")
    tensor = torch.zeros((2, 3), dtype=torch.float64)
    field = as_field(tensor, (I, K))
    field[I(1), K(2)] = 5.0
    assert address(field.ndarray) == tensor.data_ptr()
    assert tensor[1, 2] == 5.0


def test_a_field_of_a_read_only_array_is_read_only():
    values = np.zeros((2, 3))
    values.flags.writeable = False
    field = as_field(values, (I, K))
    with refused(ValueError, "read-only"):
        field[I(0), K(0)] = 1.0


def test_a_compiled_program_cannot_write_through_the_field_of_a_jax_array():
    jnp = library("jax.numpy")
    values = jnp.zeros((2, 2, 2))
    field, inp = as_field(values, (I, J, K)), as_field(np.ones((2, 2, 2)), (I, J, K))
    with refused(TypeError, "incompatible function arguments"):
        on("gtfn_cpu", "lift")(inp, field, offset_provider={})
    assert not values.any()


def test_an_array_without_names_asks_for_dims():
    with refused(ValueError, "dims: needs a gtx.Dimension for each axis", "no names", "dims="):
        as_field(np.zeros((2, 3)))


def test_a_mapping_that_lacks_a_name_is_refused():
    with refused(ValueError, "dims: expected a gtx.Dimension for 'J', got ['I', 'K']"):
        as_field(storage(), {"I": I, "K": K})


def test_too_few_dimensions_are_refused():
    with refused(ValueError, "dims: expected 3, one for each axis, got 2"):
        as_field(storage(), (I, J))


def test_names_in_place_of_dimensions_are_refused():
    with refused(TypeError, "dims: expected a gtx.Dimension for each axis, got 'IJK'"):
        as_field(storage(), "IJK")


def test_one_dimension_for_two_axes_is_refused():
    with refused(ValueError, "dims: expected a different one for each axis, got ('I', 'I', 'K')"):
        as_field(storage(), (I, I, K))


def test_a_storage_of_unknown_halo_asks_for_the_origin():
    made = storage()
    made.halo = None
    with refused(ValueError, "origin: expected one, got a storage of unknown halo", "origin="):
        as_field(made)
    assert as_field(made, origin=(1, 2, 0)).domain == gtx.domain({I: (-1, 4), J: (-2, 4), K: 4})


def test_an_origin_of_too_few_numbers_is_refused():
    with refused(ValueError, "origin: expected 3 numbers, got (1, 1)"):
        as_field(storage(), origin=(1, 1))


def test_a_type_that_gt4py_next_does_not_have_is_refused():
    with refused(TypeError, "as_field: expected one of", "float64", "got float16; convert"):
        as_field(dlf.zeros((2,), dtype="float16", dims=("I",)))


# --- field to storage --------------------------------------------------------------------------


def test_a_field_of_gt4py_becomes_a_storage_over_its_memory():
    field = gtx.zeros(gtx.domain({I: (-1, 4), J: (2, 5), K: 3}))
    made = from_field(field)
    assert address_of(made) == address(field.ndarray)
    assert (made.dims, made.strides) == (("I", "J", "K"), field.ndarray.strides)
    made[0, 0, 0] = 3.0
    assert field.ndarray[0, 0, 0] == 3.0


def test_the_lower_halo_is_what_lies_below_zero_and_the_upper_one_is_not_known():
    field = gtx.zeros(gtx.domain({I: (-1, 4), J: (2, 5), K: 3}))
    assert from_field(field).halo == ((1, 0), (0, 0), (0, 0))


@pytest.mark.parametrize(
    "ranges",
    [
        {I: (-1, 4), J: (5, 11), K: (0, 4)},
        {I: (2, 5), J: (1, 2), K: (7, 9)},
        {Cell: (5, 12), K: (-1, 3)},
        {Cell: (-5, 0)},
    ],
)
def test_a_field_that_begins_anywhere_has_its_domain_again(ranges):
    field = gtx.zeros(ranges)
    made = from_field(field)
    dims = {dim.value: dim for dim in ranges}
    again = {
        "whole": made,
        "without from_field": dlf.as_storage(field),
        "transposed": made.T,
        "wrapped": dlf.as_storage(made),
        "copied": made.copy(),
        "pickled": pickle.loads(pickle.dumps(made)),
        "through xarray": dlf.from_xarray(dlf.storage(made).to_xarray().copy()),
    }
    assert {name: as_field(one, dims).domain for name, one in again.items()} == dict.fromkeys(
        again, field.domain
    )
    assert as_field(made[1:], dims).domain.ranges[1:] == field.domain.ranges[1:]


def test_a_storage_of_a_field_that_begins_above_zero_has_an_origin_before_its_memory():
    made = from_field(gtx.zeros({Cell: (5, 12), K: (0, 3)}))
    assert (made.halo, made.default_origin) == (((0, 0), (0, 0)), (-5, 0))


def test_a_bound_program_reads_such_storages_where_the_fields_are(backend_of_programs):
    values = np.arange(5 * 6 * 4.0).reshape(5, 6, 4)
    inp = from_field(gtx.as_field({I: (2, 7), J: (0, 6), K: (0, 4)}, values))
    out = dlf.zeros((4, 6, 4), dims="KJI", default_origin=(-3, 0, 0))  # I from 3 to 7
    dlf.bind(on(backend_of_programs, "lift"))(inp, out)
    np.testing.assert_array_equal(out.to_numpy().T[:, :, :3], values[1:, :, 1:])


Aside = gtx.Dimension("Aside")
Plane = gtx.Field[gtx.Dims[Aside, Cell], gtx.float64]


@gtx.field_operator
def doubled(inp: Plane) -> Plane:
    return inp + inp


@gtx.program
def double(inp: Plane, out: Plane):
    doubled(inp, out=out)


def test_the_axes_of_a_bound_storage_have_their_origin_by_name():
    made = dlf.zeros((3, 4), dims=("Cell", "Aside"), default_origin=(-2, 1))
    plan = dlf.explain(dlf.bind(double), made, out=made.copy()).plan
    assert plan.fields["inp"].dims == ("Aside", "Cell")
    assert plan.fields["inp"].given.origin == (1, -2)


def test_the_domain_of_a_computation_gives_halos_on_both_sides():
    field = gtx.zeros({I: (-1, 4), J: (-2, 5), K: (0, 3)})
    made = from_field(field, domain={I: (0, 3), J: (0, 5)})
    assert made.halo == ((1, 1), (2, 0), (0, 0))
    assert not hasattr(made, "default_origin"), "the index 0 is where the lower halo ends"


def test_a_domain_that_begins_elsewhere_than_at_zero_keeps_the_indices():
    field = gtx.zeros({Cell: (0, 12), K: (0, 3)})
    made = from_field(field, domain=gtx.domain({Cell: (2, 9), K: (0, 3)}))
    assert (made.halo, made.default_origin) == (((2, 3), (0, 0)), (0, 0))
    assert as_field(made).domain == field.domain


@pytest.mark.parametrize("domain", [{I: (-2, 3)}, {I: (0, 5)}, {Cell: (0, 1)}], ids=str)
def test_a_domain_that_leaves_the_field_is_refused(domain):
    with refused(ValueError, "domain: expected a part of the field, which has I=(-1:4), got"):
        from_field(gtx.zeros({I: (-1, 4)}), domain=domain)


def test_a_field_that_ends_below_zero_is_refused():
    with refused(ValueError, "from_field: expected a field that ends at 0 or above", "as_storage"):
        from_field(gtx.zeros({I: (-9, -4)}))


def test_a_storage_comes_back_from_its_field_except_for_the_upper_halo():
    made = storage(layout=(2, 1, 0))
    back = from_field(as_field(made))
    assert address_of(back) == address_of(made)
    same = ("shape", "strides", "dims", "dtype", "readonly")
    assert [getattr(back, name) for name in same] == [getattr(made, name) for name in same]
    assert [low for low, _ in back.halo] == [low for low, _ in made.halo]


def test_the_memory_lives_as_long_as_the_last_view_of_it_and_is_freed_once():
    field_of = lambda made: as_field(made, (I, K))  # noqa: E731 (a step of the chain)
    assert_freed_once(dlf.as_storage, field_of, from_field)


def test_a_field_over_a_jax_array_becomes_a_read_only_storage():
    jnp = library("jax.numpy")
    values = jnp.ones((2, 3))
    made = from_field(gtx.common._field(values, domain={I: 2, K: 3}))
    assert made.readonly
    assert address_of(made) == values.unsafe_buffer_pointer()


def test_an_object_that_is_not_a_field_is_refused():
    with refused(
        TypeError, "from_field: expected a field of gt4py.next", "'ndarray'", "as_storage"
    ):
        from_field(np.zeros(3))


def test_a_shifted_field_has_no_array():
    with refused(TypeError, "got an object of type 'CartesianConnectivity'"):
        from_field(I + 1)


def test_a_field_that_is_broadcast_is_refused():
    field = gtx.broadcast(as_field(np.zeros(3), (I,)), (I, K))
    with refused(ValueError, "from_field: expected ranges that are the extents", "gtx.empty"):
        from_field(field)


# --- what gt4py.next does with a storage in a call that is not bound ------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_that_is_not_bound_refuses_a_storage(backend):
    with refused(ValueError, "Type <class 'dlfield.CPUStorage'> not supported"):
        on(backend, "lift")(as_field(storage()), storage(), offset_provider={})


NOT_TAKEN = {
    "an operator": lambda made, field: on("embedded", "scaled")(made, 2.0, out=field),
    "an operand": lambda made, field: field + made,
    "where": lambda made, field: gtx.where(field > 0.0, field, made),
}


@pytest.mark.parametrize("use", NOT_TAKEN)
def test_embedded_execution_takes_no_storage_among_its_fields(use):
    made = storage()
    with pytest.raises(AssertionError):
        NOT_TAKEN[use](made, as_field(made))


def test_values_are_assigned_between_fields_and_storages():
    made, field = storage(), gtx.zeros({I: 5, J: 6, K: 4})
    field[...] = made
    np.testing.assert_array_equal(field.ndarray, made.to_numpy())
    turned = dlf.zeros((4, 6, 5), dims="KJI")
    turned[...] = field
    np.testing.assert_array_equal(turned.to_numpy(), made.to_numpy().T)


def test_gt4py_s_own_constructors_copy_a_storage():
    made = storage()
    field = gtx.as_field([I, J, K], made)
    np.testing.assert_array_equal(field.ndarray, made.to_numpy())
    assert not np.shares_memory(field.ndarray, made.to_numpy())


# --- beside arrays that begin elsewhere --------------------------------------------------------


@gtx.field_operator
def _below(inp: Line) -> Line:
    return inp(I - 1)


@gtx.program
def _first_points(inp: Line, out: Line, count: gtx.int32):
    _below(inp, out=out, domain={I: (0, count)})


@pytest.mark.parametrize("extent", [8, 4])
def test_a_field_that_begins_at_0_does_so_beside_a_halo_too(extent):
    inp = dlf.as_storage(np.arange(8.0), dims=("I",), halo=((2, 1),))
    out = gtx.zeros({I: (0, extent)}, dtype=np.float64)
    run = dlf.bind(_first_points)
    for _ in range(2):
        run(inp, out, 3)
    np.testing.assert_array_equal(out.ndarray[:4], [1.0, 2.0, 3.0, 0.0])


def test_an_input_that_begins_at_0_does_so_beside_a_halo_too():
    inp = gtx.as_field({I: (0, 8)}, np.arange(8.0))
    out = dlf.zeros((8,), dims=("I",), halo=((2, 1),))
    dlf.bind(_below)(inp, out=out, domain={I: (1, 3)})
    np.testing.assert_array_equal(out, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def test_an_origin_may_be_a_dict_by_dimension():
    for origin in ({"K": 2, "I": 1}, {K: 2, I: 1}):
        field = as_field(np.zeros((4, 4)), dims=(I, K), origin=origin)
        assert field.domain == gtx.domain({I: (-1, 3), K: (-2, 2)})


@pytest.mark.parametrize("origin", [1, {"I": 1}, {"I": 1, "J": 2}])
def test_an_origin_that_does_not_fit_is_refused_with_what_was_given(origin):
    with refused(ValueError, "origin: expected", f"got {origin!r}"):
        as_field(np.zeros((4, 4)), dims=(I, K), origin=origin)
