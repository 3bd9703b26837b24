"""What `declare` reads off stencils of gt4py.next, and that its `run` runs them in place."""

import dataclasses
import inspect

import numpy as np
import pytest
from dlfield import DeviceUnavailable
from dlfield._core import NextRun
from dlfield.stencils.next import internals
from dlfield.stencils.next.declare import declare, is_next
from dlfield.stencils.next.dimensions import domain_of

from support.errors import refused
from support.processes import run_in_subprocess
from support.stencils import next_programs as programs
from support.stencils.next_programs import BACKENDS, QUIET, connectivities, gtx, on

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

COMPILED = ("embedded", "gtfn_cpu")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def run(declaration, domain=(), origin=None, exec_info=None, **arguments):
    """Run with the same origin for all fields, where the domain begins; zeros unless given."""
    origins = {one.name: origin or (0,) * len(one.dims) for one in declaration.fields}
    ranges = tuple((0, points) for points in domain)
    arguments["offset_provider"] = declaration.connectivities
    declaration.run.run(_domain_=ranges, _origin_=origins, exec_info=exec_info, **arguments)


def noted(name, **changed):
    """Declare a program whose run only notes what it would call GT4Py with."""
    seen, stencil = {}, getattr(programs, name)
    kinds = internals.signature_of(stencil, None)
    cut = {"out": [0, 1, 2]} if internals.is_operator(stencil) else {}
    options = {
        "compiled": None,
        "field_class": internals.field_class(gpu=False),
        "origin_cache": None,
        "as_array": np.asarray,
        "domain_of": domain_of,
        "fields": {one: (kind.dims, cut.get(one)) for one, kind in kinds.fields.items()},
        "scalars": {one: dtype.type for one, dtype in kinds.scalars.items()},
        "order": tuple(kinds.kinds),
        "collections": {},
        "tables": None,
    }
    note = NextRun(lambda **given: seen.update(given), **{**options, **changed})
    return dataclasses.replace(declare(stencil), run=note), seen


def values(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def accesses(stencil):
    return {one.name: one.access for one in declare(stencil).fields}


# --- what is one -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["laplacian", "laplacian_of", "running_sum"])
def test_programs_field_operators_and_scan_operators_are_recognised(name):
    assert is_next(getattr(programs, name))


def test_a_program_with_bound_arguments_is_one_of_gt4py_next():
    assert is_next(programs.advance.with_bound_args(step=0.5))


@pytest.mark.parametrize("other", [print, 1, None, gtx.gtfn_cpu, gtx.Dimension("I"), gtx.program])
def test_other_objects_are_not_recognised_as_stencils_of_gt4py_next(other):
    assert not is_next(other)


def test_telling_what_is_one_imports_no_gt4py():
    said = run_in_subprocess(
        """
        import sys
        from dlfield.stencils.next.declare import is_next
        print(is_next(print), any(name.startswith("gt4py") for name in sys.modules))
        """
    )
    assert said == "False False"


# --- what is declared --------------------------------------------------------------------------


def test_a_field_that_is_only_an_output_is_written_and_one_that_is_only_an_input_read():
    assert accesses(programs.laplacian) == {"inp": "read", "out": "write"}


def test_a_slice_of_a_field_as_output_is_a_write_to_the_field():
    assert accesses(programs.lift) == {"inp": "read", "out": "write"}


def test_a_field_that_one_operator_writes_and_another_reads_is_updated():
    assert accesses(programs.advance) == {"state": "update", "tendency": "update"}


def test_each_part_of_a_tuple_of_outputs_is_written_and_what_is_never_named_counts_as_read():
    expected = {"inp": "read", "up": "write", "down": "write", "spare": "read"}
    assert accesses(programs.split) == expected


def test_arguments_are_in_the_order_of_the_definition_and_may_all_be_positional():
    declared = declare(programs.advance)
    assert declared.name == "advance"
    assert (declared.order, declared.positional) == (("state", "tendency", "step"), 3)


def test_dims_are_named_in_declared_order_and_types_are_those_of_numpy():
    declared = declare(programs.advance)
    field, scalar = declared.fields[0], declared.scalars[0]
    assert (field.dims, field.dtype) == (("I", "J", "K"), np.dtype("float64"))
    assert (scalar.name, scalar.dtype, scalar.used) == ("step", np.dtype("float64"), True)


def test_a_scalar_that_only_the_domain_names_is_used():
    scalars = declare(programs.laplacian).scalars
    assert [one.name for one in scalars if one.used] == ["ni", "nj", "nk"]


def test_connectivities_may_be_left_out_and_are_given_by_name():
    provider = connectivities()
    declared = declare(programs.to_edges, offset_provider=provider)
    assert declared.connectivities is provider
    assert declare(programs.to_edges).connectivities == {}
    kind = declared.signature().parameters["offset_provider"].kind
    assert kind is inspect.Parameter.KEYWORD_ONLY


def test_axes_are_all_dimensions_in_the_order_of_gt4py():
    assert declare(programs.laplacian).axes == ("I", "J", "K")
    assert declare(programs.to_edges).axes == ("Cell", "Edge", "K")


def test_a_field_operator_has_its_output_as_one_more_field_that_is_given_by_name():
    declared = declare(programs.scaled)
    assert (declared.order, declared.positional) == (("inp", "factor", "out"), 2)
    assert accesses(programs.scaled) == {"inp": "read", "out": "write"}
    assert declared.fields[-1].dims == ("I", "J", "K")


def test_bound_arguments_are_not_declared():
    declared = declare(programs.advance.with_bound_args(step=0.5))
    assert (declared.order, declared.positional) == (("state", "tendency"), 2)
    assert list(declared.scalars) == []


def test_only_compiled_backends_read_memory_as_items_of_its_type(backend):
    assert declare(on(backend, "lift")).typed is (backend == "gtfn_cpu")


def test_only_a_field_operator_follows_the_domain():
    assert declare(programs.scaled).decided_by == "outputs"
    assert declare(programs.lift).decided_by == "stencil"


# --- what is refused ---------------------------------------------------------------------------


def test_an_object_that_is_not_a_stencil_is_refused():
    with refused(TypeError, "expected a program or field operator", "'int'", "@gtx.program"):
        declare(1)


def test_an_operator_that_is_made_of_nodes_of_gt4py_is_refused_with_the_way_out():
    from gt4py.next.ffront.decorator import FieldOperatorFromFoast

    made = programs.laplacian_of
    made = FieldOperatorFromFoast(None, None, made.compilation_options, made.foast_stage)
    expected = "expected a program or operator that is defined in Python"
    with refused(TypeError, expected, "'FieldOperatorFromFoast'", "@gtx.field_operator"):
        declare(made)


def test_an_operator_that_returns_a_scalar_is_refused():
    @gtx.field_operator
    def constant(factor: programs.float64) -> programs.float64:
        return 2.0 * factor

    with refused(ValueError, "constant: expected an operator that returns fields", "broadcast("):
        declare(constant)


def test_a_scan_operator_by_itself_is_refused():
    with refused(
        ValueError, "fields: needs 'out' of", "'running_sum', a scan operator", "@gtx.program"
    ):
        declare(programs.running_sum)


def test_a_gpu_backend_without_cupy_is_refused():
    try:
        import cupy  # noqa: F401
    except ImportError:
        with refused(DeviceUnavailable, "needs CuPy for a GPU backend"):
            declare(programs.lift.with_backend(gtx.gtfn_gpu))
    else:
        assert declare(programs.lift.with_backend(gtx.gtfn_gpu)).device == "gpu"


def test_an_unused_field_that_is_left_out_is_refused():
    field = values(2, 2, 2)
    with refused(TypeError, "spare: expected an array, got None"):
        run(declare(programs.split), inp=field, up=field.copy(), down=field.copy(), spare=None)


@pytest.mark.parametrize("value", [2.5, 2**40, "4"])
def test_a_scalar_that_its_type_cannot_hold_is_refused(value):
    field = values(4, 4, 2)
    sizes = {"ni": value, "nj": 2, "nk": 2}
    with refused(TypeError, "ni: expected a number of int32, got"):
        run(declare(programs.laplacian), origin=(1, 1, 0), inp=field, out=field.copy(), **sizes)


# --- how it runs -------------------------------------------------------------------------------


def test_a_program_computes_where_it_says_counted_from_the_origin(backend):
    inp, out = values(6, 7, 3), np.full((6, 7, 3), -1.0)
    sizes = {"ni": 4, "nj": 5, "nk": 3}
    run(declare(on(backend, "laplacian")), origin=(1, 1, 0), inp=inp, out=out, **sizes)
    np.testing.assert_allclose(out[1:-1, 1:-1], programs.laplacian_reference(inp), atol=1e-14)
    assert (out == -1.0).sum() == out.size - 4 * 5 * 3


@pytest.mark.parametrize("backend", COMPILED)
def test_a_program_that_slices_its_output_leaves_the_rest_alone(backend):
    inp, out = values(3, 4, 5), np.full((3, 4, 5), -1.0)
    run(declare(on(backend, "lift")), inp=inp, out=out)
    np.testing.assert_array_equal(out[:, :, :-1], inp[:, :, 1:])
    assert (out[:, :, -1] == -1.0).all()


def test_a_field_operator_writes_the_domain_of_its_output_and_nothing_else(backend):
    inp, out = values(6, 7, 3), np.full((6, 7, 3), -1.0)
    declared = declare(on(backend, "laplacian_of"))
    run(declared, domain=(4, 5, 3), origin=(1, 1, 0), inp=inp, out=out)
    np.testing.assert_allclose(out[1:-1, 1:-1], programs.laplacian_reference(inp), atol=1e-14)
    assert (out == -1.0).sum() == out.size - 4 * 5 * 3


@pytest.mark.parametrize("backend", COMPILED)
def test_fields_of_any_layout_are_updated_in_place(backend):
    state = values(4, 3, 2).transpose(2, 1, 0)  # K is the slowest in memory
    tendency = np.zeros((4, 3, 5))[::2, ::-1, 1::2]
    state, tendency = state[:2, :3, :2], tendency[:2, :3, :2]
    expected = programs.advance_reference(state.copy(), 0.5)
    run(declare(on(backend, "advance")), state=state, tendency=tendency, step=0.5)
    np.testing.assert_allclose((state, tendency), expected)


@pytest.mark.parametrize("backend", COMPILED)
def test_a_tuple_of_outputs_and_an_unused_field_go_in_as_they_are(backend):
    inp, up, down = (values(3, 2, 2, seed=seed) for seed in range(3))
    run(declare(on(backend, "split")), inp=inp, up=up, down=down, spare=inp)
    np.testing.assert_array_equal((up, down), (inp + 1.0, inp - 1.0))


@pytest.mark.parametrize("backend", COMPILED)
def test_a_declared_scan_sums_along_k(backend):
    inp, out = values(2, 3, 4), np.zeros((2, 3, 4))
    run(declare(on(backend, "cumulate")), inp=inp, out=out)
    np.testing.assert_allclose(out, np.cumsum(inp, axis=2))


def test_a_declared_unstructured_program_reads_neighbours(backend):
    cells, edges = values(3, 2), np.zeros((4, 2))
    declared = declare(on(backend, "to_edges"), offset_provider=connectivities())
    run(declared, cells=cells, edges=edges)
    np.testing.assert_allclose(edges, cells[programs.TABLE].sum(axis=1))


@pytest.mark.parametrize("backend", COMPILED)
def test_a_python_number_becomes_what_the_scalar_is_declared_as(backend):
    inp, out = values(2, 2, 2), np.zeros((2, 2, 2))
    run(declare(on(backend, "scaled")), domain=(2, 2, 2), inp=inp, factor=3, out=out)
    np.testing.assert_allclose(out, 3.0 * inp)


@pytest.mark.parametrize("backend", COMPILED)
def test_a_program_with_bound_arguments_runs_without_them(backend):
    state, tendency = values(2, 2, 2), np.zeros((2, 2, 2))
    expected = programs.advance_reference(state.copy(), 0.5)
    bound = on(backend, "advance").with_bound_args(step=0.5)
    run(declare(bound), state=state, tendency=tendency)
    np.testing.assert_allclose((state, tendency), expected)


def test_the_fields_of_a_run_share_the_memory_of_the_arrays():
    declared, seen = noted("scaled")
    inp, out = values(4, 4, 4), values(4, 4, 4)
    run(declared, domain=(2, 3, 4), origin=(1, 1, 0), inp=inp, factor=1.0, out=out)
    assert seen["inp"].ndarray is inp
    assert seen["out"].ndarray.ctypes.data == out[1:, 1:].ctypes.data
    assert seen["inp"].domain == gtx.domain(
        {programs.I: (-1, 3), programs.J: (-1, 3), programs.K: (0, 4)}
    )
    assert seen["out"].domain == gtx.domain({programs.I: 2, programs.J: 3, programs.K: 4})


def test_a_field_that_is_only_read_may_be_read_only_where_python_runs_the_program():
    inp, out = values(2, 2, 2), np.zeros((2, 2, 2))
    inp.flags.writeable = False
    run(declare(on("embedded", "scaled")), domain=(2, 2, 2), inp=inp, factor=2.0, out=out)
    np.testing.assert_array_equal(out, 2.0 * inp)


def test_domains_are_made_once_for_each_shape_and_origin():
    made, field = [], values(2, 2, 2)
    declared, _ = noted("split", domain_of=lambda *place: made.append(place) or domain_of(*place))
    for _ in range(3):
        run(declared, inp=field, up=field, down=field, spare=field)
    assert len(made) == 4


def test_exec_info_gets_the_time_before_and_after_in_seconds():
    field, told = values(2, 2, 2), {}
    run(declare(programs.lift), exec_info=told, inp=field, out=field.copy())
    assert 0.0 < told["call_run_end_time"] - told["call_run_start_time"] < 60.0
