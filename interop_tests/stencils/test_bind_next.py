"""Bound programs and field operators of gt4py.next: names, domains, memory that stays untouched."""

import ast
import re

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once
from support.stencils import next_programs as programs
from support.stencils.arguments import jax_array, read_only_page
from support.stencils.next_programs import (
    BACKENDS,
    QUIET,
    TABLE,
    Cell,
    I,
    J,
    K,
    connectivities,
    gtx,
    on,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

#: "roundtrip" is slow and runs in Python as "embedded" does: a few tests have it.
FAST = ("embedded", "gtfn_cpu")
SHAPE, HALO, INNER, FIRST = (6, 7, 3), (1, 1, 0), (4, 5, 3), (1, 1, 0)
SIZES = dict(zip(("ni", "nj", "nk"), np.array(INNER, dtype=np.int32), strict=True))
LABELS = {"lon": I, "lat": J, "level": K}


@pytest.fixture(params=FAST)
def backend(request):
    return request.param


def bound(backend, name, **options):
    return dlf.bind(on(backend, name), **options)


def values(*shape, seed=0):
    return np.random.default_rng(seed).random(shape or SHAPE)


def untouched(*shape):
    return np.full(shape or SHAPE, -1.0)


def storage(array, halo=HALO):
    made = dlf.empty(array.shape, dims="IJK", halo=halo)
    made.to_numpy()[...] = array
    return made


def labelled(array):
    """Return the same points as a DataArray in the order level, lon, lat."""
    turned = array.transpose(2, 0, 1).copy()
    return library("xarray").DataArray(turned, dims=("level", "lon", "lat"))


def misaligned(array):
    made = np.frombuffer(bytearray(array.nbytes + 4), offset=4).reshape(array.shape)
    made[...] = array
    return made


def assert_laplacian(out, inp):
    """Compare inside the halo, and see that nothing was written around it."""
    np.testing.assert_allclose(out[1:-1, 1:-1], programs.laplacian_reference(inp), atol=1e-14)
    assert (out == -1.0).sum() == out.size - np.prod(INNER)


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_of_ones_own_are_mapped_to_dimensions(backend):
    inp, out = values(), labelled(untouched())
    run = bound(backend, "laplacian", dims=LABELS)
    run(labelled(inp), out, **SIZES, origin=FIRST)
    assert_laplacian(out.transpose(*LABELS).to_numpy(), inp)


def test_a_dimension_that_the_program_does_not_have_is_refused_when_it_is_bound():
    with refused(ValueError, "dims: expected 'I', 'J', 'K'", "for 'lon', got 'Cell'"):
        bound("embedded", "lift", dims={"lon": Cell})


def test_the_way_out_for_strange_names_works_in_gt4py_next(backend):
    inp, out = values(), labelled(untouched())
    with pytest.raises(ValueError, match="argument 'inp': expected dims") as caught:
        bound(backend, "lift")(labelled(inp), out)
    dims = ast.literal_eval(re.search(r"bind\(stencil, dims=(\{.*\})\)", str(caught.value))[1])
    bound(backend, "lift", dims=dims)(labelled(inp), out)
    assert np.array_equal(out.to_numpy()[:-1], labelled(inp).to_numpy()[1:])


def test_strange_names_of_an_unstructured_grid_are_listed_to_be_filled_in():
    cells = library("xarray").DataArray(values(3, 2), dims=("ncells", "height"))
    with refused(ValueError, "('Cell', 'K')", 'bind(stencil, dims={"ncells": ..., "height": "K"})'):
        bound("embedded", "to_edges", offset_provider=connectivities())(cells, untouched(4, 2))


@pytest.mark.parametrize("shape", [(7, 3), (1, 6, 7, 3)])
def test_another_number_of_dimensions_is_refused_and_nothing_is_written(backend, shape):
    out = untouched()
    with refused(ValueError, f"expected 3 dimensions ('I', 'J', 'K'), got {len(shape)}"):
        bound(backend, "lift")(values(*shape), out)
    assert (out == -1.0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_field_operator_computes_on_the_domain_that_is_given(backend):
    inp, out = values(), untouched()
    bound(backend, "laplacian_of")(inp, out=out, origin=FIRST, domain=INNER)
    assert_laplacian(out, inp)


@pytest.mark.source("GDP-3", "Data Interface", "the domain of a call is computed from the halos")
def test_a_field_operator_computes_between_the_halos(backend):
    inp, out = values(), storage(untouched())
    bound(backend, "laplacian_of")(storage(inp), out=out)
    assert_laplacian(out.to_numpy(), inp)


def test_every_field_of_a_program_begins_at_its_own_lower_halo(backend):
    inp, out = values(), storage(untouched(7, 5, 3), halo=((2, 1), 0, 0))
    bound(backend, "laplacian")(storage(inp), out, **SIZES)
    got = out.to_numpy()
    np.testing.assert_allclose(got[2:-1], programs.laplacian_reference(inp), atol=1e-14)
    assert (got[[0, 1, -1]] == -1.0).all()


def test_every_field_of_a_program_may_have_an_origin_of_its_own(backend):
    inp, out = values(), untouched(*INNER)
    bound(backend, "laplacian")(inp, out, **SIZES, origin={"inp": FIRST})
    np.testing.assert_allclose(out, programs.laplacian_reference(inp), atol=1e-14)


def test_a_plain_array_of_the_whole_shape_begins_where_the_others_do(backend):
    inp, out = values(), untouched()
    bound(backend, "laplacian")(storage(inp), out, **SIZES)
    assert_laplacian(out, inp)


def test_a_program_is_not_told_where_to_compute(backend):
    inp, out = values(), untouched()
    with refused(TypeError, "domain: expected none for 'laplacian'", "slice the arrays"):
        bound(backend, "laplacian")(inp, out, **SIZES, origin=FIRST, domain=INNER)
    assert (out == -1.0).all()


def test_a_domain_that_the_output_does_not_have_is_refused_and_nothing_is_written(backend):
    out = untouched()
    with refused(
        ValueError,
        "argument 'out': expected points 0 to 6 along I, which 'scaled' writes",
        "got -1 to 5",
    ):
        bound(backend, "scaled")(values(9, 9, 9), 2.0, out=out, origin=FIRST, domain=(6, 5, 3))
    assert (out == -1.0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("hold", [read_only_page, jax_array], ids=["page", "JAX"])
def test_immutable_memory_is_an_input_and_keeps_its_values(backend, hold):
    held, out = hold(values()), untouched()
    bound(backend, "laplacian")(held.array, out, **SIZES, origin=FIRST)
    assert_laplacian(out, values())
    assert np.array_equal(held.read(), values())


#: What each of them writes, and how it is called with it.
WRITES = {
    "program": ("laplacian", "out", {"inp": values(), **SIZES, "origin": FIRST}),
    "field operator": ("scaled", "out", {"inp": values(), "factor": 2.0}),
    "tuple of outputs": ("split", "down", {"inp": values(), "spare": values()}),
    "slice as output": ("lift", "out", {"inp": values()}),
    "in and out": ("advance", "state", {"step": 0.5}),
    "between operators": ("advance", "tendency", {"step": 0.5}),
}


@pytest.mark.parametrize("hold", [read_only_page, jax_array], ids=["page", "JAX"])
@pytest.mark.parametrize(("name", "written", "given"), WRITES.values(), ids=WRITES)
def test_immutable_memory_is_refused_for_all_that_is_written(backend, name, written, given, hold):
    held, run = hold(untouched()), bound(backend, name)
    outputs = ({"up", "state", "tendency"} & set(run.argument_names)) - {written}
    others = {other: untouched() for other in outputs}
    with refused(BufferError, f"argument '{written}': expected a writable output"):
        run(**given, **others, **{written: held.array})
    assert all((array == -1.0).all() for array in (held.read(), *others.values()))


def test_two_operators_update_their_fields_in_place(backend):
    state, tendency = storage(values()), storage(untouched())
    expected = programs.advance_reference(values(), 0.5)
    bound(backend, "advance")(state, tendency, 0.5)
    np.testing.assert_allclose((state.to_numpy(), tendency.to_numpy()), expected)


OVERLAPPING = {
    "the same": lambda whole: (whole, whole),
    "shifted": lambda whole: (whole[:-1], whole[1:]),
    "backwards": lambda whole: (whole, whole[::-1]),
    "through a storage": lambda whole: (dlf.as_storage(whole), whole),
}


@pytest.mark.parametrize("make", OVERLAPPING.values(), ids=OVERLAPPING)
def test_an_input_that_overlaps_an_output_is_refused_and_nothing_is_written(backend, make):
    whole = values()
    inp, out = make(whole)
    with refused(BufferError, "arguments 'inp' and 'out'", "arrays that overlap", "pass a copy"):
        bound(backend, "lift")(inp, out)
    assert np.array_equal(whole, values())


def test_gt4py_next_gets_no_outputs_that_overlap(backend):
    whole = untouched()
    with refused(BufferError, "arguments 'up' and 'down'", "arrays that overlap"):
        bound(backend, "split")(values(), whole, whole, values())
    assert (whole == -1.0).all()


def test_an_input_may_lie_between_the_points_of_an_output(backend):
    whole = values(12, 7, 3)
    bound(backend, "scaled")(whole[::2], 2.0, out=whole[1::2])
    np.testing.assert_array_equal(whole[1::2], 2.0 * values(12, 7, 3)[::2])


@pytest.mark.source(
    "GDP-3 draft",
    "Run-time Checks",
    "a field that does not fit is an error if using it were undefined behaviour",
)
@pytest.mark.parametrize("name", ["inp", "out"])
def test_misaligned_memory_is_refused_where_it_would_be_undefined_behaviour(name):
    given = {"inp": values(), "out": untouched()}
    given[name] = misaligned(given[name])
    with refused(BufferError, f"argument '{name}'", 'on_mismatch={"memory": "copy"}'):
        bound("gtfn_cpu", "scaled")(**given, factor=2.0)
    assert (given["out"] == -1.0).all()


@pytest.mark.parametrize("backend", ["embedded", "roundtrip"])
def test_misaligned_memory_is_read_and_written_where_python_computes(backend):
    out = misaligned(untouched())
    bound(backend, "scaled")(misaligned(values()), 2.0, out=out)
    np.testing.assert_array_equal(out, 2.0 * values())


@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "a buffer that does not fit may be copied, and the results back: memory",
)
@pytest.mark.parametrize("answer", ["copy", {"memory": "copy"}], ids=["all", "memory"])
def test_misaligned_memory_is_copied_and_copied_back_where_that_is_asked_for(answer):
    out = misaligned(untouched())
    run = bound("gtfn_cpu", "lift", on_mismatch=answer)
    with pytest.warns(dlf.MemoryCopyWarning, match="aligned to 8 bytes"):
        run(misaligned(values()), out)
    np.testing.assert_array_equal(out[:, :, :-1], values()[:, :, 1:])
    assert (out[:, :, -1] == -1.0).all()


def test_a_field_of_another_type_is_never_converted(backend):
    run, out = bound(backend, "scaled", on_mismatch="copy"), untouched()
    with refused(ValueError, "argument 'inp': expected dtype float64, got float32"):
        run(values().astype("f4"), 2.0, out=out)
    assert (out == -1.0).all()


@pytest.mark.parametrize("factor", [2.0, np.float64(2.0)], ids=["Python", "NumPy"])
def test_gt4py_next_takes_scalars_of_python_and_numpy(backend, factor):
    out = untouched()
    bound(backend, "scaled")(values(), factor, out=out)
    np.testing.assert_array_equal(out, 2.0 * values())


def test_a_python_int_is_an_int32_as_in_gt4py():
    out, (ni, nj, nk) = untouched(), INNER
    bound("embedded", "laplacian")(values(), out, ni, nj, nk, origin=FIRST)
    assert_laplacian(out, values())


@pytest.mark.parametrize("factor", [2, np.float32(2.0), "2", None, True])
def test_gt4py_next_gets_no_scalar_of_another_type(backend, factor):
    out = untouched()
    with refused((ValueError, TypeError), "'factor'", "got"):
        bound(backend, "scaled")(values(), factor, out=out)
    assert (out == -1.0).all()


def test_a_field_that_a_program_does_not_use_must_be_given_all_the_same(backend):
    with refused(TypeError, "split: expected an argument 'spare', got none; the arguments"):
        bound(backend, "split")(values(), untouched(), untouched())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scan_in_a_program_sums_along_k(backend):
    out = labelled(untouched())
    bound(backend, "cumulate", dims=LABELS)(labelled(values()), out)
    np.testing.assert_allclose(out.transpose(*LABELS), np.cumsum(values(), axis=2))


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "dimensions other than I, J and K are possible"
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_unstructured_program_reads_neighbours_by_the_offset_provider(backend, xr):
    cells, edges = values(3, 2), untouched(4, 2)
    run = bound(
        backend, "to_edges", offset_provider=connectivities(), dims={"cell": Cell, "level": K}
    )
    run(xr.DataArray(cells.T.copy(), dims=("level", "cell")), edges)
    np.testing.assert_allclose(edges, cells[TABLE].sum(axis=1))


def test_an_offset_provider_is_refused_for_anything_else():
    with refused(TypeError, "offset_provider: expected it for a gt4py.next program only"):
        dlf.bind(assert_laplacian, offset_provider=connectivities())


def test_a_call_of_gt4py_next_holds_no_argument_afterwards(backend):
    run, out = bound(backend, "lift"), np.zeros((4, 3, 1))

    def call(inp):
        run(inp, out)
        return inp

    assert_freed_once(np.from_dlpack, lambda array: array[:, :, None], call)


def test_an_output_that_is_made_for_a_program_has_no_halo_in_which_it_might_compute(backend):
    inp = values()
    made = bound(backend, "laplacian").functional(storage(inp), **SIZES)
    assert (made.shape, made.halo) == (INNER, ((0, 0), (0, 0), (0, 0)))
    np.testing.assert_allclose(made.to_numpy(), programs.laplacian_reference(inp), atol=1e-14)


def test_an_output_that_is_made_for_an_operator_has_the_halo_of_the_input(backend):
    inp = values()
    made = bound(backend, "laplacian_of").functional(storage(inp))
    assert (made.shape, made.halo) == (SHAPE, ((1, 1), (1, 1), (0, 0)))
    expected = programs.laplacian_reference(inp)
    np.testing.assert_allclose(made.domain_view.to_numpy(), expected, atol=1e-14)


def test_a_program_as_a_function_makes_outputs_of_the_domain_that_is_given(backend):
    made = bound(backend, "laplacian").functional(
        values(), **SIZES, origin={"inp": FIRST}, domain=INNER
    )
    np.testing.assert_allclose(made, programs.laplacian_reference(values()), atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"domain": (3, 4, 2)}], ids=["table", "domain"])
def test_outputs_on_another_dimension_than_the_inputs_have_the_points_of_the_table(
    backend, options
):
    cells = values(3, 2)
    run = bound(backend, "to_edges", offset_provider=connectivities())
    made = run.functional(cells, **options)
    np.testing.assert_allclose(made, cells[TABLE].sum(axis=1))


def test_outputs_are_of_the_framework_of_the_first_field(backend):
    jax, given = library("jax"), jax_array(values()).array
    up, down = bound(backend, "split").functional(given, spare=given)
    assert isinstance(up, jax.Array)
    np.testing.assert_array_equal((up, down), (values() + 1.0, values() - 1.0))


def test_outputs_are_labelled_as_the_first_field(backend):
    inp = labelled(values()).assign_coords(lon=np.arange(6.0))
    made = bound(backend, "scaled", dims=LABELS).functional(inp, 2.0)
    assert made.identical(2.0 * inp)


def test_a_field_that_is_updated_is_copied_and_stays_as_it_was(backend):
    state, tendency = values(), untouched()
    made = bound(backend, "advance").functional(state, tendency, 0.5)
    np.testing.assert_allclose(made, programs.advance_reference(values(), 0.5))
    assert np.array_equal(state, values())
    assert (tendency == -1.0).all()


def test_a_field_made_of_a_storage_begins_where_the_storage_does(backend):
    inp, out = values(), storage(untouched())
    run = bound(backend, "laplacian")
    run(dlf.as_field(storage(inp)), dlf.as_field(out), **SIZES)
    assert_laplacian(out.to_numpy(), inp)


def test_a_storage_made_of_a_field_shows_what_a_program_wrote_into_the_field(backend):
    inp, out = values(), gtx.zeros({I: (-1, 5), J: (-1, 6), K: (0, 3)})
    given, shown = dlf.from_field(dlf.as_field(storage(inp))), dlf.from_field(out)
    bound(backend, "laplacian")(given, out, **SIZES)
    expected = programs.laplacian_reference(inp)
    np.testing.assert_allclose(shown.to_numpy()[1:-1, 1:-1], expected, atol=1e-14)


ABOVE_ZERO = {I: (2, 8), J: (0, 7), K: (0, 3)}


def test_fields_of_a_program_may_begin_above_zero(backend):
    inp, out = gtx.as_field(ABOVE_ZERO, values()), gtx.zeros(ABOVE_ZERO)
    bound(backend, "lift")(inp, out)
    np.testing.assert_array_equal(out.asnumpy()[:, :, :-1], values()[:, :, 1:])


def test_fields_that_begin_at_different_indices_are_not_shifted(backend):
    out = gtx.zeros(ABOVE_ZERO)
    with refused(ValueError, "argument 'inp': expected points 2 to 8 along I", "got 0 to 6"):
        bound(backend, "scaled")(gtx.as_field([I, J, K], values()), 2.0, out=out)
    assert not out.asnumpy().any()
