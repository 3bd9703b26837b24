"""Halo exchange by GHEX, beside what the global index says of every point: `make ghex`."""

import dlfield as dlf
import numpy as np
import pytest

from support.halo import ORDERS, assert_filled, block_of, numbered
from support.ranks import is_needed_beside_mpi, on_ranks

is_needed_beside_mpi("ghex")

from mpi4py import MPI  # noqa: E402 (after the skip)

EXTENTS, HALO = (13, 14), ((2, 1), (3, 2))
DTYPES = ["bool", "int8", "uint32", "float32", "int64", "float64", "complex64"]


def grid(comm, periodic=(True, True)):
    return comm.Create_cart(MPI.Compute_dims(comm.size, 2), periodic)


@on_ranks(1, 2, 4)
def test_every_halo_has_the_points_of_the_neighbours_in_any_layout(comm):
    cart = grid(comm)
    for turn, dtype in enumerate(DTYPES):
        for levels in (1, 4):
            layout = ORDERS[turn % len(ORDERS)]
            u = numbered(cart, EXTENTS, levels, HALO, layout=layout, dtype=dtype)
            with dlf.halo_exchange({"u": u}, cart, engine="ghex") as plan:
                plan.exchange()
            assert_filled(u, cart, EXTENTS)
    cart.Free()


@on_ranks(2, 4)
def test_physical_edges_and_the_corners_beside_them_are_left_alone(comm):
    for periodic in [(False, True), (True, False), (False, False)]:
        cart = grid(comm, periodic)
        u = numbered(cart, EXTENTS, 4, HALO, layout=ORDERS[4])
        with dlf.halo_exchange([u], cart, engine="ghex") as plan:
            plan.exchange()
        assert_filled(u, cart, EXTENTS, periodic=periodic)
        cart.Free()


@on_ranks(1, 2, 4)
def test_only_the_width_is_filled(comm):
    cart = grid(comm)
    for width, pairs in [
        ({"I": 1, "J": (1, 2)}, ((1, 1), (1, 2))),
        ({"I": (0, 1), "J": (3, 0)}, ((0, 1), (3, 0))),
        ({"J": 0}, ((2, 1), (0, 0))),
    ]:
        u = numbered(cart, EXTENTS, 4, HALO)
        with dlf.halo_exchange([u], cart, width=width, engine="ghex") as plan:
            plan.exchange()
        assert_filled(u, cart, EXTENTS, pairs)
    cart.Free()


@on_ranks(2, 4)
def test_fields_of_several_layouts_and_dtypes_and_time_levels_go_in_one_plan(comm):
    cart = grid(comm)
    kinds = [("IJK", "float64"), ("KJI", "float64"), ("IJK", "float64"), ("IJK", "float32")]

    def fields(seed):
        return [
            numbered(cart, EXTENTS, 3, HALO, layout=layout, dtype=dtype, seed=seed + number)
            for number, (layout, dtype) in enumerate(kinds)
        ]

    with dlf.halo_exchange(fields(0), cart, engine="ghex") as plan:
        for seed in (10, 20, 30):
            others = fields(seed)
            plan.start(*others)
            while not plan.test():
                pass
            plan.wait()
            for number, field in enumerate(others):
                assert_filled(field, cart, EXTENTS, seed=seed + number)
        assert "by GHEX" in str(dlf.explain(plan))
        turned = [numbered(cart, EXTENTS, 3, HALO, layout="KJI", dtype=dtype) for _, dtype in kinds]
        with pytest.raises(ValueError, match=r"^field '0': expected the layout of the field"):
            plan.start(*turned)
    cart.Free()


@on_ranks(2, 4)
def test_what_ghex_cannot_move_is_refused_on_all_ranks_with_the_way_out(comm):
    cart, other = grid(comm), comm.rank == 1
    u = numbered(cart, EXTENTS, 4, HALO)
    for field, options, text in [
        (numbered(cart, EXTENTS, 4, HALO, dtype="complex128"), {}, "items of 1, 4, 8 bytes"),
        (u[:, :, ::-1], {}, "expected steps forwards for GHEX"),
        (u[:, :, 0][:, 0], {}, "expected all divided dimensions for 'ghex'"),
        (u, {"shared": {"I": 1}}, "expected no shared points for 'ghex'"),
    ]:
        given = field if other or options else u
        with pytest.raises(ValueError, match=f"^rank [01]: field '0': engine: .*{text}"):
            dlf.halo_exchange([given], cart, engine="ghex", **options)
    with dlf.halo_exchange([u], cart, engine="ghex") as plan:
        plan.exchange()
        with pytest.raises(
            ValueError, match=r"^field '0': engine: expected steps forwards for GHEX"
        ):
            plan.exchange(u.copy()[:, :, ::-1])
    assert_filled(u, cart, EXTENTS)
    turned = numbered(cart, EXTENTS, 4, HALO, layout="KJI") if other else u
    with pytest.raises(ValueError, match=r"^rank 1: field '0': order of memory: expected \('I', "):
        dlf.halo_exchange([turned], cart, engine="ghex")
    ring = dlf.halo.Neighbours(comm, [])
    with pytest.raises(ValueError, match=r"^rank 0: engine: expected a Cartesian communicator"):
        dlf.halo_exchange([u], ring, engine="ghex")
    cart.Free()


@on_ranks(1, 2, 4)
def test_a_storage_is_a_field_of_ghexs_own_interface(comm):
    from ghex.context import make_context
    from ghex.structured.cartesian_sets import UnitRange
    from ghex.structured.regular import (
        DomainDescriptor,
        HaloGenerator,
        make_communication_object,
        make_pattern,
    )

    cart = grid(comm)
    (i, j), (ni, nj) = block_of(cart, EXTENTS)
    for levels in (1, 4):
        u = numbered(cart, EXTENTS, levels, HALO, layout=ORDERS[4])
        levels_of = UnitRange(0, levels)
        own = UnitRange(i, i + ni) * UnitRange(j, j + nj) * levels_of
        whole = UnitRange(0, EXTENTS[0]) * UnitRange(0, EXTENTS[1]) * levels_of
        domain = DomainDescriptor(comm.rank, own)
        context = make_context(cart, MPI.Query_thread() == MPI.THREAD_MULTIPLE)
        halos = HaloGenerator(whole, (*HALO, (0, 0)), (True, True, False))
        pattern = make_pattern(context, halos, [domain])
        field = dlf.ghex_field(u, domain)
        make_communication_object(context).exchange([pattern(field)]).wait()
        assert_filled(u, cart, EXTENTS)
        assert np.shares_memory(u.to_numpy(), u.domain_view.to_numpy())
    cart.Free()


@on_ranks(1)
def test_a_storage_that_ghex_would_read_wrong_is_refused(comm):
    u = dlf.zeros((4, 4), dims="IJ", halo=(1, 1))
    unknown = dlf.zeros((6, 4), dims="IJ", halo=(2, 1))[::2]
    for storage, error, text in [
        (u.to_numpy(), TypeError, "storage: expected one in host memory alone, got ndarray"),
        (u[::-1], ValueError, "storage: expected steps forwards"),
        (u.astype("float16"), ValueError, "storage: expected items of 1, 4, 8 bytes"),
        (dlf.as_storage(bytes(8)), ValueError, "storage: expected one that can be written"),
        (unknown, ValueError, "storage: expected a known halo"),
    ]:
        with pytest.raises(error, match=f"^{text}"):
            dlf.ghex_field(storage, None)
