"""What one rank gives that others do not, or that none should: all ranks refuse it, or none."""

import warnings

import dlfield as dlf
import numpy as np
import pytest
from dlfield.halo import Edge, Neighbours

from support.optional import library
from support.ranks import mpi_is_needed, on_ranks

mpi_is_needed()


def row_of(comm):
    return dlf.full((4,), comm.rank + 1.0, dims="I", halo=(1,))


def refused_everywhere(comm, match, call, error=ValueError):
    with pytest.raises(error, match=match) as caught:
        call()
    texts = comm.allgather(str(caught.value))
    assert len(set(texts)) == 1, texts


@on_ranks(2)
def test_fields_that_overlap_on_one_rank_are_an_error_on_all(comm):
    cart, array = comm.Create_cart([2], [True]), np.arange(12.0)
    part = array[3:9] if comm.rank else array[6:]
    u, v = (dlf.as_storage(one, dims="I", halo=(1,)) for one in (array[:6], part))
    refused_everywhere(
        comm,
        "^rank 1: field 'v': expected memory of its own, got that of field 'u'; give each field",
        lambda: dlf.halo_exchange({"u": u, "v": v}, cart, dims="I"),
    )
    assert array.tolist() == list(range(12))
    cart.Free()


@on_ranks(2)
def test_a_plan_that_fills_nothing_warns_on_rank_0_alone(comm):
    cart = comm.Create_cart([2], [True])
    for field in (dlf.zeros((4,), dims="I"), dlf.zeros((4,), dims=("x",), halo=(1,))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dlf.halo_exchange({"u": field}, cart, dims="I").free()
        told = [str(one.message) for one in caught]
        text = "halo_exchange: needs a halo along I to fill anything on 2 ranks; create the fields"
        assert len(told) == (comm.rank == 0)
        assert all(one.startswith(text) for one in told), told
    cart.Free()


@on_ranks(2)
def test_a_warning_that_is_an_error_is_one_on_all_ranks(comm):
    cart, field = comm.Create_cart([2], [True]), dlf.zeros((4,), dims="I")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused_everywhere(
            comm,
            "^rank 0: halo_exchange: needs a halo along I to fill anything on 2 ranks",
            lambda: dlf.halo_exchange({"u": field}, cart, dims="I"),
        )
    cart.Free()


@on_ranks(2)
def test_a_plan_that_fills_a_halo_on_one_rank_alone_does_not_warn(comm):
    cart, field = comm.Create_cart([2], [False]), dlf.zeros((4,), dims="I", halo={"I": (1, 0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dlf.halo_exchange([field], cart, dims="I").free()
    cart.Free()


@on_ranks(2)
def test_dimensions_of_gt4py_name_the_halo_that_is_filled(comm):
    dimension = library("gt4py.next").Dimension("I")
    cart = comm.Create_cart([2], [True])
    field = dlf.zeros((4,), dims=(dimension,), halo=(1,))
    field[...] = comm.rank + 1.0
    with dlf.halo_exchange({"u": field}, cart, dims=(dimension,), width={dimension: 1}) as plan:
        plan.exchange()
    assert field.to_numpy().tolist() == ([2, 1, 1, 2] if comm.rank == 0 else [1, 2, 2, 1])
    cart.Free()


@on_ranks(2)
def test_a_data_array_has_the_halo_that_is_written_in_it(comm):
    library("xarray")
    cart, array = comm.Create_cart([2], [True]), row_of(comm).to_xarray()
    with dlf.halo_exchange({"u": array}, cart, dims="I") as plan:
        plan.exchange()
    assert array.values.tolist() == ([2, 1, 1, 2] if comm.rank == 0 else [1, 2, 2, 1])
    cart.Free()


@on_ranks(2)
def test_an_edge_without_a_direction_is_an_error_on_all_ranks(comm):
    other, up = 1 - comm.rank, {"I": 1}
    for steps in ({}, {"I": 0}):
        for edge in (Edge(other, steps, up), Edge(other, up, steps)):
            given = [edge if comm.rank else Edge(other, up, up)]
            refused_everywhere(
                comm,
                "^rank 1: edges: expected a direction of -1 or 1 to (send|receive) along",
                lambda given=given: Neighbours(comm, given),
            )


@on_ranks(2)
def test_two_edges_that_fill_one_halo_are_named_on_all_ranks(comm):
    other, up, down = 1 - comm.rank, {"I": 1}, {"I": -1}
    second = Edge(other, down, up if comm.rank else down, tag=1)
    refused_everywhere(
        comm,
        r"^rank 1: edges: expected one edge for each halo, got two that fill that of \{'I': 1\}, "
        "from ranks 0 and 0",
        lambda: Neighbours(comm, [Edge(other, up, up), second]),
    )


@on_ranks(2)
def test_equal_values_of_other_types_are_the_same_plan(comm):
    names = ["I", (str, np.str_)[comm.rank]("J")]
    block = dlf.halo.decompose((4, 6), comm, names)
    whole = block.gather(block.zeros(), root=(0, np.int64(0))[comm.rank])
    assert (whole is None) == (comm.rank == 1)
    cart = block.cart
    dlf.halo_exchange(
        [dlf.zeros((4, 4), dims="IJ", halo=(1, 1))], cart, shared={"I": (1, np.int32(1))[comm.rank]}
    ).free()
    block.free()


@on_ranks(2)
def test_blocks_are_cut_so_that_neighbours_can_fill_the_halo(comm):
    block = dlf.halo.decompose((5, 4), comm, "IJ", halo={"I": 3}, periodic={"J": True})
    assert block.domain == (5, 2)
    block.free()


def of_torch(comm):
    torch = library("torch")
    return torch.ones(5, dtype=torch.float64)


def plan_of(comm):
    cart = comm.Create_cart([2], [True])
    return dlf.halo_exchange({"t": dlf.zeros((5,), dims="I", halo=(1,))}, cart, dims="I")


@on_ranks(2)
def test_what_is_no_tensor_on_one_rank_is_an_error_of_torch_on_all(comm):
    plan, x = plan_of(comm), of_torch(comm)
    exchange = plan.torch_op()
    for wrong, text in [
        ([np.ones(5)], "fields: expected tensors of PyTorch, got ndarray"),
        ([x, x], "fields: expected 1, as many as the plan has, got 2"),
        ([], "fields: expected 1, as many as the plan has, got 0"),
    ]:
        given = wrong if comm.rank else [x]
        refused_everywhere(comm, f"^rank 1: {text}", lambda given=given: exchange(*given))
    assert exchange(x * comm.rank)[0] == 1 - comm.rank
    plan.free()


@on_ranks(2)
def test_arrays_that_do_not_fit_on_one_rank_are_an_error_of_jax_on_all(comm):
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (JAX's own signature)
    plan, x = plan_of(comm), jax.numpy.ones(5)
    exchange = plan.jax_call()
    for wrong, text in [
        ([x, x], "fields: expected 1, as many as the plan has, got 2"),
        (["text"], ""),
    ]:
        given = wrong if comm.rank else [x]
        for call in (exchange, jax.jit(lambda: exchange(*given))):  # noqa: B023
            refused_everywhere(
                comm,
                f"rank 1: {text}",
                lambda call=call, given=given: jax.block_until_ready(
                    call(*given) if call is exchange else call()
                ),
                jax.errors.JaxRuntimeError,
            )
    assert exchange(x * comm.rank)[0] == 1 - comm.rank
    plan.free()
