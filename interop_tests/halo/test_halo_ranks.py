"""Halo exchange among ranks of MPI, beside what the global index says of every point."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.halo import ORDERS, assert_filled, block_of, numbered
from support.ranks import mpi_is_needed, on_ranks

mpi_is_needed()

import ml_dtypes  # noqa: E402, F401 (bfloat16; after the skip)
from mpi4py import MPI  # noqa: E402

EXTENTS, HALO = (13, 14), ((2, 1), (3, 2))
DTYPES = ["bool", "int8", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def grid(comm, periodic=(True, True), parts=None):
    parts = parts or MPI.Compute_dims(comm.size, len(periodic))
    return comm.Create_cart(parts, periodic)


@on_ranks(1, 2, 4)
def test_every_halo_has_the_points_of_the_neighbours_whatever_the_layouts(comm):
    cart = grid(comm)
    for turn, dtype in enumerate(DTYPES):
        layout = ORDERS[(comm.rank + turn) % len(ORDERS)]  # another one on each rank
        u = numbered(cart, EXTENTS, 4, HALO, layout=layout, dtype=dtype)
        with dlf.halo_exchange({"u": u}, cart) as plan:
            plan.exchange()
        assert_filled(u, cart, EXTENTS)
    cart.Free()


@on_ranks(2, 4)
def test_physical_edges_and_the_corners_beside_them_are_left_alone(comm):
    for periodic in [(False, True), (True, False), (False, False)]:
        cart = grid(comm, periodic)
        u = numbered(cart, EXTENTS, 4, HALO, layout=ORDERS[comm.rank])
        with dlf.halo_exchange([u], cart) as plan:
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
        ({"I": 0, "J": 0}, ((0, 0), (0, 0))),
    ]:
        u = numbered(cart, EXTENTS, 4, HALO, layout=ORDERS[comm.rank])
        with dlf.halo_exchange([u], cart, width=width) as plan:
            plan.exchange()
        assert_filled(u, cart, EXTENTS, pairs)
    cart.Free()


@on_ranks(2, 4)
def test_points_that_both_neighbours_have_are_not_sent(comm):
    cart = grid(comm)
    u = numbered(cart, EXTENTS, 4, HALO, shared=(1, 0))
    with dlf.halo_exchange([u], cart, shared={"I": 1}) as plan:
        plan.exchange()
    assert_filled(u, cart, EXTENTS, shared=(1, 0))
    cart.Free()


@on_ranks(4)
def test_many_fields_of_several_dtypes_and_dims_go_in_one_message_per_neighbour(comm):
    cart = grid(comm)
    (first, _), (size, _) = block_of(cart, EXTENTS)
    u = numbered(cart, EXTENTS, 4, HALO, layout=ORDERS[comm.rank])
    v = numbered(cart, EXTENTS, 2, ((1, 1), (1, 1)), dtype="float32", seed=7)
    row = np.full(size + 2, -1, np.int8)
    row[1:-1] = np.arange(first, first + size)
    fields = {"u": u, "v": v, "row": dlf.as_storage(row, dims="I", halo=(1,))}
    with dlf.halo_exchange(fields, cart) as plan:
        assert plan.messages == 8
        plan.exchange()
    assert_filled(u, cart, EXTENTS)
    assert_filled(v, cart, EXTENTS, seed=7)
    assert (row == np.arange(first - 1, first + size + 1) % EXTENTS[0]).all()
    cart.Free()


@on_ranks(1, 2, 4)
def test_random_plans_fill_what_they_say_and_nothing_else(comm):
    for number in range(60):
        alike, own = np.random.default_rng(number), np.random.default_rng([number, comm.rank])
        periodic = [bool(one) for one in alike.integers(2, size=2)]
        ways = [(n, comm.size // n) for n in (1, 2, 4) if comm.size % n == 0 and n <= comm.size]
        cart = grid(comm, periodic, ways[alike.integers(len(ways))])
        shared = tuple(int(one) for one in alike.integers(2, size=2))
        width = tuple(tuple(int(n) for n in alike.integers(4, size=2)) for _ in range(2))
        fields, seeds = {}, range(alike.integers(1, 4))
        for seed in seeds:
            levels, dtype = int(alike.integers(1, 5)), DTYPES[alike.integers(1, len(DTYPES))]
            halo = tuple((a + int(own.integers(3)), b + int(own.integers(3))) for a, b in width)
            layout = ORDERS[own.integers(len(ORDERS))]
            fields[f"f{seed}"] = numbered(
                cart, (17, 18), levels, halo, layout=layout, dtype=dtype, seed=seed, shared=shared
            )
        by_name = [dict(zip("IJ", pair, strict=True)) for pair in (width, shared)]
        with dlf.halo_exchange(fields, cart, width=by_name[0], shared=by_name[1]) as plan:
            plan.exchange()
        for seed in seeds:
            assert_filled(
                fields[f"f{seed}"],
                cart,
                (17, 18),
                width,
                seed=seed,
                periodic=periodic,
                shared=shared,
            )
        cart.Free()


@on_ranks(2, 4)
def test_time_levels_take_turns_in_one_plan(comm):
    cart = grid(comm)
    levels = [numbered(cart, EXTENTS, 3, HALO, layout=one) for one in ORDERS]
    plan = dlf.halo_exchange({"u": levels[0]}, cart)
    for step in range(13):
        u = levels[step % len(levels)]  # more than a plan remembers
        u.domain_view.to_numpy()[...] += 1
        plan.exchange(u)
    for at, u in enumerate(levels):
        assert_filled(u, cart, EXTENTS, more=3 if at == 0 else 2)
    plan.free()
    cart.Free()


@on_ranks(4)
def test_rows_and_columns_of_ranks_in_any_grid(comm):
    for parts in [(4, 1), (1, 4), (2, 2)]:
        for order in ["IJ", "JI"]:
            cart = grid(comm, parts=parts)
            extents = EXTENTS if order == "IJ" else EXTENTS[::-1]
            u = numbered(cart, extents, 3, ((1, 2), (1, 1)))
            if order == "JI":
                u = u.rename({"I": "J", "J": "I"})
            with dlf.halo_exchange([u], cart, dims=order) as plan:
                plan.exchange()
            assert_filled(u, cart, extents)
            cart.Free()


@on_ranks(4)
def test_a_grid_of_one_and_of_three_dimensions(comm):
    row = grid(comm, [True])
    (first,), (size,) = block_of(row, (9,))
    line = np.full(size + 3, -1.0)
    line[2:-1] = np.arange(first, first + size)
    with dlf.halo_exchange(
        [dlf.as_storage(line, dims=["x"], halo=((2, 1),))], row, dims=["x"]
    ) as plan:
        plan.exchange()
    assert (line == np.arange(first - 2, first + size + 1) % 9).all()
    row.Free()

    cube = grid(comm, (True,) * 3)
    firsts, sizes = block_of(cube, (6, 5, 4))
    u = dlf.zeros([size + 2 for size in sizes], dims="IJK", halo=(1, 1, 1))
    rows = [np.arange(-1, size + 1) + first for first, size in zip(firsts, sizes, strict=True)]
    i, j, k = np.ix_(*(one % n for one, n in zip(rows, (6, 5, 4), strict=True)))
    whole = 100 * i + 10 * j + k
    u.domain_view.to_numpy()[...] = whole[1:-1, 1:-1, 1:-1]
    with dlf.halo_exchange([u], cube, dims="IJK") as plan:
        plan.exchange()
    assert np.array_equal(u, whole)
    cube.Free()


@on_ranks(2, 4)
def test_padded_fields_views_and_arrays_of_others_are_exchanged_in_place(comm):
    cart = grid(comm)
    model = numbered(cart, EXTENTS, 4, HALO)
    block = np.full([2 * extent + 2 for extent in model.shape], -7.0)
    view = block[1:-1:2, 2::2, 1:-1:2]
    view[...] = model
    with dlf.halo_exchange([dlf.as_storage(view, dims="IJK", halo=model.halo)], cart) as plan:
        plan.exchange()
    assert_filled(dlf.as_storage(view, dims="IJK", halo=model.halo), cart, EXTENTS)
    view[...] = -7
    assert (block == -7).all()
    backwards = numbered(cart, EXTENTS, 4, HALO).to_numpy()[::-1, :, ::-1].copy()[::-1, :, ::-1]
    u = dlf.as_storage(backwards, dims="IJK", halo=model.halo)
    with dlf.halo_exchange([u], cart) as plan:
        plan.exchange()
    assert_filled(u, cart, EXTENTS)
    cart.Free()


@on_ranks(2)
def test_start_reads_the_fields_and_wait_writes_the_halos(comm):
    cart = grid(comm)
    u = numbered(cart, EXTENTS, 4, HALO)
    with dlf.halo_exchange([u], cart) as plan:
        with plan.overlap():
            while not plan.test():
                pass
        assert_filled(u, cart, EXTENTS)
        assert plan.messages == 6
        assert plan.bytes_sent % 8 == 0
        assert plan.bytes_sent > 0
    cart.Free()


@on_ranks(2, 4)
def test_plans_that_are_started_in_another_order_on_each_rank_do_not_mix(comm):
    cart = grid(comm)
    fields = [numbered(cart, EXTENTS, 3, HALO, seed=seed) for seed in range(3)]
    plans = [dlf.halo_exchange([u], cart) for u in fields]
    order = plans if comm.rank % 2 else plans[::-1]
    for plan in order:
        plan.start()
    for plan in order[::-1]:
        plan.wait()
    for seed, u in enumerate(fields):
        assert_filled(u, cart, EXTENTS, seed=seed)
    for plan in plans:
        plan.free()
    cart.Free()


@on_ranks(2)
def test_threads_with_a_plan_each_do_not_disturb_each_other(comm):
    from concurrent.futures import ThreadPoolExecutor

    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return
    cart = grid(comm)
    fields = [numbered(cart, EXTENTS, 3, HALO, seed=seed) for seed in range(4)]
    plans = [dlf.halo_exchange([u], cart) for u in fields]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda plan: [plan.exchange() for _ in range(20)], plans))
    for seed, u in enumerate(fields):
        assert_filled(u, cart, EXTENTS, seed=seed)
    for plan in plans:
        plan.free()
    cart.Free()


@on_ranks(4)
def test_a_duplicate_is_made_once_for_a_communicator_and_goes_with_it(comm):
    from dlfield.halo import mpi

    cart = grid(comm)
    u = numbered(cart, EXTENTS, 1, HALO)
    one, other = dlf.halo_exchange([u], cart), dlf.halo_exchange([u], cart)
    channel = mpi.channel_of(cart)
    assert channel.plans == 2
    cart.Free()
    one.exchange()  # the duplicate stays for the plans
    assert_filled(u, channel.comm, EXTENTS)
    one.free()
    assert channel.comm != MPI.COMM_NULL
    other.free()
    assert channel.comm == MPI.COMM_NULL


@on_ranks(2)
def test_a_plan_that_is_dropped_does_not_keep_the_duplicate(comm):
    from dlfield.halo import mpi

    cart = grid(comm)
    plan = dlf.halo_exchange([numbered(cart, EXTENTS, 1, HALO)], cart)
    channel = mpi.channel_of(cart)
    del plan
    gc.collect()
    cart.Free()
    assert channel.comm == MPI.COMM_NULL


@on_ranks(2)
def test_explain_names_the_neighbours_with_the_bytes_for_each(comm):
    cart = grid(comm, (True, False), parts=(2, 1))
    u = numbered(cart, EXTENTS, 4, ((1, 2), (0, 0)))
    with dlf.halo_exchange({"u": u}, cart) as plan:
        told = dlf.explain(plan)
    other, point = 1 - comm.rank, 14 * 4 * 8
    assert told.neighbours == ((other, "I-", 2 * point, point), (other, "I+", point, 2 * point))
    assert f"  I-: {2 * point} bytes to rank {other}, {point} back" in repr(told).splitlines()
    cart.Free()


@on_ranks(2)
def test_a_communicator_that_is_freed_takes_its_duplicate_along(comm):
    u = numbered(None, (4, 4), 1, ((1, 1), (1, 1)))
    for _ in range(1100):  # with duplicates more than the 2,048 that MPICH has
        cart = comm.Create_cart((comm.size, 1), (True, True))
        dlf.halo_exchange([u], cart).free()
        cart.Free()


@on_ranks(2)
def test_fifteen_hundred_plans_that_are_freed_leave_nothing(comm):
    import resource

    cart = grid(comm)
    u = numbered(cart, (4, 4), 1, ((1, 1), (1, 1)))
    gc.collect()
    before, live = None, dlf._core.live_allocations()
    for number in range(1500):
        dlf.halo_exchange([u], cart).free()
        if number == 500:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert dlf._core.live_allocations() == live
    assert grown < 2400, f"{grown} KiB for 1,000 plans"
    cart.Free()


@on_ranks(2, 4)
def test_a_block_of_decompose_is_exchanged_and_its_regions_are_the_grid(comm):
    for periodic in [(True, True), (False, True)]:
        block = dlf.halo.decompose((11, 9, 3), comm, "IJK", {"I": (2, 1), "J": 1}, periodic)
        u = block.zeros()
        firsts = [block.region[dim].start for dim in "IJ"]
        i, j, k = np.indices(block.domain)
        u.domain_view.to_numpy()[...] = (i + firsts[0]) * 100 + (j + firsts[1]) * 10 + k
        with dlf.halo_exchange({"u": u}, block.cart, dims=block.divided) as plan:
            plan.exchange()
        inside = u.isel(I=slice(0, 2), J=slice(1, -1)).to_numpy()
        if firsts[0] or periodic[0]:
            rows = (np.array([-2, -1]) + firsts[0]) % 11
            assert (inside == rows[:, None, None] * 100 + (j[:2] + firsts[1]) * 10 + k[:2]).all()
        else:
            assert (inside == 0).all()
        regions = comm.allgather(block.region)
        seen = np.zeros((11, 9), int)
        for region in regions:
            seen[region["I"], region["J"]] += 1
        assert (seen == 1).all()
        block.free()
        block.free()


@on_ranks(2, 4)
def test_a_gathered_field_is_whole_on_one_rank_and_none_on_the_others(comm):
    block = dlf.halo.decompose((11, 9, 3), comm, "IJK", {"I": (2, 1), "J": 1})
    whole = np.arange(11 * 9 * 3 * 2).reshape(3, 11, 2, 9)
    extents = dict(zip("IJK", block.local_shape, strict=True))
    halo = {"I": (2, 1), "J": 1}
    field = dlf.full((3, extents["I"], 2, extents["J"]), -1, dims=("K", "I", "0", "J"), halo=halo)
    field.domain_view[...] = whole[:, block.region["I"], :, block.region["J"]]
    found = block.gather(field, root=1)
    assert found is None if comm.rank != 1 else np.array_equal(found, whole)
    with pytest.raises(ValueError, match="dtype"):
        block.gather(block.zeros(dtype="float32" if comm.rank else "float64"))
    with pytest.raises(ValueError, match="rank 1: field: expected"):
        block.gather(block.zeros() if comm.rank != 1 else dlf.zeros((1, 1), dims="IJ"))
    block.free()


@on_ranks(4)
def test_a_cartesian_communicator_is_divided_as_it_is(comm):
    cart = grid(comm, [True])
    block = dlf.halo.decompose((10, 6), cart, "JI", {"J": 1})
    assert block.cart is cart
    assert block.divided == ("J",)
    assert block.local_shape == ([2, 3, 2, 3][comm.rank] + 2, 6)
    with pytest.raises(ValueError, match=r"rank 0: periodic: expected \(True,\), as the communic"):
        dlf.halo.decompose((10, 6), cart, "JI", {"J": 1}, periodic=(False,))
    with pytest.raises(
        ValueError, match=r"rank 0: shape: expected at least 4 points along J, .* 3$"
    ):
        dlf.halo.decompose((3, 6), cart, "JI", {"J": 1})
    with pytest.raises(
        ValueError, match=r"rank 2: shape: expected \(10, 6\), as on rank 0, got \(10"
    ):
        dlf.halo.decompose((10, 7 if comm.rank == 2 else 6), cart, "JI")
    cart.Free()
