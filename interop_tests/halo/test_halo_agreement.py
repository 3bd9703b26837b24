"""All ranks refuse a plan with one and the same error, or none does."""

from unittest import mock

import dlfield as dlf
import numpy as np
import pytest
from dlfield.halo.engines.ghex import Ghex

from support.halo import assert_filled, numbered
from support.ranks import mpi_is_needed, on_ranks

mpi_is_needed()

EXTENTS, HALO = (13, 14), ((2, 1), (3, 2))


def grid(comm, periodic=(True, True)):
    from mpi4py import MPI

    return comm.Create_cart(MPI.Compute_dims(comm.size, 2), periodic)


def field(cart, **options):
    return numbered(cart, EXTENTS, 3, HALO, **options)


def refused_everywhere(cart, match, fields, **options):
    """Expect one error on all ranks, and a communicator that works afterwards."""
    with pytest.raises(ValueError, match=match) as caught:
        dlf.halo_exchange(fields, cart, **options)
    texts = cart.allgather(str(caught.value))
    assert len(set(texts)) == 1, texts
    u = field(cart)
    with dlf.halo_exchange({"u": u}, cart) as plan:
        plan.exchange()
    assert_filled(u, cart, EXTENTS)


@on_ranks(2, 4)
def test_an_undivided_extent_that_differs_is_an_error_on_all_ranks(comm):
    cart, last = grid(comm), comm.size - 1
    levels = 4 if comm.rank == last else 3
    refused_everywhere(
        cart,
        rf"^rank {last}: field 'u': extents that are not divided: expected \{{'K': 3\}}, as on "
        rf"rank 0, got \{{'K': 4\}}; make the same plan on every rank$",
        {"u": numbered(cart, EXTENTS, levels, HALO)},
    )
    cart.Free()


@on_ranks(2, 4)
def test_a_dtype_that_differs_is_an_error_on_all_ranks(comm):
    cart = grid(comm)
    dtype = "float32" if comm.rank == 1 else "float64"
    refused_everywhere(
        cart,
        "^rank 1: field 'u': dtype: expected float64, as on rank 0, got float32; make the same",
        {"u": field(cart, dtype=dtype)},
    )
    cart.Free()


@on_ranks(2, 4)
def test_another_number_of_fields_is_an_error_on_all_ranks(comm):
    cart = grid(comm)
    fields = {name: field(cart) for name in ("uvw" if comm.rank == 1 else "uv")}
    refused_everywhere(cart, r"^rank 1: fields: expected \('u', 'v'\), as on rank 0, got", fields)
    cart.Free()


@on_ranks(2, 4)
def test_fields_in_another_order_are_an_error_on_all_ranks(comm):
    cart = grid(comm)
    fields = {name: field(cart) for name in ("vu" if comm.rank == 1 else "uv")}
    refused_everywhere(cart, r"^rank 1: fields: expected \('u', 'v'\), .*got \('v', 'u'\);", fields)
    cart.Free()


@on_ranks(2, 4)
def test_other_dims_widths_and_engines_are_errors_on_all_ranks(comm):
    cart, other = grid(comm), comm.rank == 1
    u = field(cart)
    for options, text in [
        ({"dims": "JI" if other else "IJ"}, r"dims: expected \('I', 'J'\), as on rank 0, got"),
        ({"width": {"I": 0 if other else 1}}, "field 'u': width: expected .*, as on rank 0, got"),
        ({"engine": "ghex" if other else "packed"}, "engine: expected packed, as on rank 0"),
    ]:
        with mock.patch.object(Ghex, "refuse", return_value=None):  # with or without GHEX
            refused_everywhere(cart, f"^rank 1: {text}", {"u": u}, **options)
    named = u.rename({"K": "L"}) if other else u
    refused_everywhere(
        cart, r"^rank 1: field 'u': dims: expected \('I', 'J', 'K'\), ", {"u": named}
    )
    cart.Free()


@on_ranks(2, 4)
def test_a_field_that_one_rank_cannot_exchange_is_an_error_on_all_ranks(comm):
    cart, other = grid(comm), comm.rank == 1
    u = field(cart)
    frozen = u.to_numpy()
    frozen.flags.writeable = False
    for strange, text in [
        (u.to_numpy(), "dims: expected a field with names, got one without; name its dimensions"),
        (u[::2], "halo: expected a known halo, got a view whose halo is unknown"),
        (dlf.as_storage(frozen, dims="IJK", halo=u.halo), "readonly: expected a field whose halo"),
        ("text", "array: expected one that speaks the buffer protocol"),
    ]:
        match = f"^rank 1: field 'u': {text}"
        refused_everywhere(cart, match, {"u": strange if other else u})
    refused_everywhere(
        cart,
        r"^rank 1: field 'u': width: expected from \(0, 0\) to the halo \(2, 1\) along I, "
        r"got \(3, 3\);",
        {"u": u},
        width={"I": 3} if other else None,
    )
    cart.Free()


@on_ranks(2, 4)
def test_a_domain_that_is_too_small_is_an_error_on_all_ranks(comm):
    cart, last = comm.Create_cart((comm.size,), (True,)), comm.size - 1
    points = 2 if comm.rank == last else 5
    u = dlf.zeros((points + 6, 4), dims="IK", halo=(3, 0))
    with pytest.raises(
        ValueError, match=rf"^rank {last}: field 'u': domain: expected at"
    ) as caught:
        dlf.halo_exchange({"u": u}, cart, dims="I")
    assert "the 3 points along I that go to the neighbour, got 2; divide it" in str(caught.value)
    assert len(set(comm.allgather(str(caught.value)))) == 1
    dlf.halo_exchange({"u": u}, cart, dims="I", width={"I": 2}).free()
    cart.Free()


@on_ranks(2, 4)
def test_a_neighbour_of_another_extent_is_an_error_on_all_ranks(comm):
    cart, last = comm.Create_cart((comm.size, 1), (True, True)), comm.size - 1
    u = dlf.zeros((7, 7 if comm.rank == last else 6), dims="IJ", halo=(1, 1))
    with pytest.raises(
        ValueError,
        match=r"field 'u': expected I=1 x J=4 from rank \d, as the halo there has, got I=1",
    ) as caught:
        dlf.halo_exchange({"u": u}, cart)
    assert "blocks beside each other need the same extents" in str(caught.value)
    assert len(set(comm.allgather(str(caught.value)))) == 1
    cart.Free()


@on_ranks(2, 4)
def test_fields_that_differ_in_a_sequence_are_errors_on_all_ranks(comm):
    cart = grid(comm)
    fields = [field(cart), field(cart, dtype="float32")]
    refused_everywhere(
        cart,
        "^rank 1: field '0': dtype: expected float64, as on rank 0, got float32",
        fields[::-1] if comm.rank == 1 else fields,
    )
    cart.Free()


@on_ranks(2, 4)
def test_fields_that_share_memory_on_one_rank_are_an_error_on_all_ranks(comm):
    cart = grid(comm)
    u, v, other = field(cart), field(cart), comm.rank == 1
    refused_everywhere(
        cart,
        "^rank 1: field 'v': expected memory of its own, got that of field 'u'; give each",
        {"u": u, "v": u if other else v},
    )
    refused_everywhere(
        cart,
        "^rank 1: field 'v': expected memory of its own, got that of field 'u'; give each",
        {"u": u, "v": u[:, :, ::-1] if other else v},
    )
    cart.Free()


@on_ranks(2, 4)
def test_gpu_aware_exchange_and_unknown_engines_are_refused_on_all_ranks(comm):
    cart, other = grid(comm), comm.rank == 1
    u = field(cart)
    refused_everywhere(cart, "^rank 1: gpu_aware: expected", [u], gpu_aware=True if other else None)
    refused_everywhere(cart, "^rank 1: engine: ", [u], engine="pigeons" if other else "packed")
    refused_everywhere(cart, "^rank 1: dims: expected a name for", [u], dims="I" if other else "IJ")
    cart.Free()


@on_ranks(2, 4)
def test_start_twice_and_wait_alone_are_refused_and_the_exchange_goes_on(comm):
    cart = grid(comm)
    u = field(cart)
    plan = dlf.halo_exchange({"u": u}, cart)
    with pytest.raises(RuntimeError, match=r"wait: expected an exchange that is started, got on"):
        plan.wait()
    plan.start()
    with pytest.raises(RuntimeError, match=r"start: expected an exchange that is idle, got one"):
        plan.start()
    plan.wait()
    assert_filled(u, cart, EXTENTS)
    plan.free()
    cart.Free()


@on_ranks(2)
def test_a_communicator_without_a_topology_is_refused(comm):
    with pytest.raises(
        TypeError, match=r"comm: expected a Cartesian communicator .* got Intracomm; "
    ):
        dlf.halo_exchange([np.zeros(3)], comm)


@on_ranks(2, 4)
def test_another_number_of_shared_points_is_an_error_on_all_ranks(comm):
    cart = grid(comm)
    refused_everywhere(
        cart,
        r"^rank 1: field 'u': shared: expected \(\('I', 0\), \('J', 0\)\), as on rank 0, got "
        r"\(\('I', 1\), \('J', 0\)\); make the same",
        {"u": field(cart)},
        shared={"I": 1} if comm.rank == 1 else None,
    )
    cart.Free()


@on_ranks(2)
def test_arguments_of_the_wrong_type_on_one_rank_are_an_error_on_all_ranks(comm):
    cart, wrong = grid(comm), comm.rank == 1
    u = {"u": field(cart)}
    match = "^rank 1: dims: expected a sequence of names such as .*, got 'NoneType'$"
    refused_everywhere(cart, match, u, dims=None if wrong else ("I", "J"))
    match = r"^rank 1: engine: expected one of \('packed', .*, got <function"
    refused_everywhere(cart, match, u, engine=(lambda: 0) if wrong else "packed")
    match = "^rank 1: fields: expected a mapping or a sequence of fields, got NoneType$"
    refused_everywhere(cart, match, None if wrong else u)
    match = "^rank 1: fields: expected names that are strings, got 1$"
    refused_everywhere(cart, match, {1: u["u"]} if wrong else u)
    cart.Free()


@on_ranks(2)
def test_names_of_numpy_are_names(comm):
    cart, u = grid(comm), numbered(None, (4, 4), 1, ((1, 1), (1, 1)))
    names = map(np.str_, "IJ") if comm.rank == 1 else "IJ"
    dlf.halo_exchange([u], cart, dims=tuple(names)).free()
    cart.Free()


@on_ranks(2)
def test_a_grid_that_one_rank_cannot_divide_is_an_error_on_all_ranks(comm):
    shape = (0, 5) if comm.rank == 1 else (8, 5)
    with pytest.raises(ValueError, match=r"^rank 1: shape: expected at least [12] points? along"):
        dlf.halo.decompose(shape, comm, "IJ")
    with pytest.raises(
        ValueError, match=r"^rank 0: dims: needs the name of at least one dimension; "
    ):
        dlf.halo.decompose((), comm, "")


@on_ranks(2)
def test_a_plan_that_could_not_be_made_is_dropped_without_a_word(comm):
    import gc
    import sys
    from unittest import mock

    cart = grid(comm)
    u = dlf.zeros((12, 12), dims="IJ", halo=(1, 1))
    failing = mock.patch("dlfield.halo.engines.packed.CopyBatch", side_effect=ValueError("no copy"))
    with mock.patch.object(sys, "unraisablehook") as ignored:
        with failing, pytest.raises(ValueError, match=r"^rank 0: no copy$"):
            dlf.halo_exchange([u], cart)
        gc.collect()
    assert not ignored.called
    cart.Free()
