"""Halo exchange of storages with buffers on a GPU: which side is read, written and newer."""

from unittest import mock

import dlfield as dlf
import numpy as np
import pytest
from dlfield.halo import mpi

from support.cuda.buffers import Counted, pair, values
from support.cuda.kinds import DEVICE_NEWER, HOST_NEWER, every_class, every_state
from support.ranks import on_ranks

LABELS = {"dims": "IJ", "halo": (1, 1)}
VALUES = np.pad(np.arange(20.0).reshape(4, 5), 1, constant_values=-1)
FILLED = np.pad(VALUES[1:-1, 1:-1], 1, mode="wrap")


@every_class
def test_one_rank_wraps_the_halo_of_every_class_around(name, options):
    u = dlf.storage(VALUES, **LABELS, **options)
    assert type(u).__name__ == name
    plan = dlf.halo_exchange({"u": u}, None)
    for _ in range(2):
        plan.exchange()
        assert np.array_equal(values(u), FILLED)
    other = dlf.storage(VALUES, **LABELS, **options)
    plan.exchange(other)
    assert np.array_equal(values(other), FILLED)


@every_state
def test_one_rank_copies_a_pair_on_the_side_with_the_newest_values(state):
    u = pair(VALUES, state, **LABELS)
    dlf.halo_exchange({"u": u}, None).exchange()
    assert u.sync_state.state == (HOST_NEWER if state == HOST_NEWER else DEVICE_NEWER)
    assert np.array_equal(values(u), FILLED)


@on_ranks(2)
def test_a_pair_goes_through_the_host_to_another_rank(comm):
    cart = comm.Create_cart((1, 2), (True, True))
    columns = np.s_[:, [0, 1, 2, 3, 6]] if comm.rank == 0 else np.s_[:, [0, 4, 5, 6]]
    for state in (HOST_NEWER, DEVICE_NEWER):
        u = pair(VALUES[columns], state, **LABELS)
        with dlf.halo_exchange({"u": u}, cart) as plan:
            plan.exchange()
        assert u.sync_state.state == HOST_NEWER
        first = 0 if comm.rank == 0 else 3
        assert np.array_equal(values(u), FILLED[:, first : first + u.shape[1]])
    cart.Free()


@on_ranks(2)
def test_memory_of_a_gpu_alone_is_packed_there_and_goes_through_the_host(comm):
    cart = comm.Create_cart((1, 2), (True, True))
    columns = np.s_[:, [0, 1, 2, 3, 6]] if comm.rank == 0 else np.s_[:, [0, 4, 5, 6]]
    first = 0 if comm.rank == 0 else 3
    for layout in [(0, 1), (1, 0)]:
        make = {"device": "gpu", "managed": None, **LABELS, "layout": layout}
        u, v = dlf.storage(VALUES[columns], **make), dlf.storage(-VALUES[columns], **LABELS)
        assert type(u) is dlf.GPUStorage
        with dlf.halo_exchange({"u": u, "v": v}, cart) as plan:
            for _ in range(3):
                u[1:-1, 1:-1] = values(u)[1:-1, 1:-1] + 1
                plan.exchange()
        expected = FILLED[:, first : first + u.shape[1]]
        assert np.array_equal(values(u), expected + 3)
        assert np.array_equal(values(v), -expected)
    cart.Free()


def on_gpu(values, layout=(0, 1)):
    return dlf.storage(values, **LABELS, device="gpu", managed=None, layout=layout)


def part_of(comm):
    """Return the values of a rank, with its halo, before an exchange and after it."""
    columns = [0, 1, 2, 3, 6] if comm.rank == 0 else [0, 4, 5, 6]
    first = 0 if comm.rank == 0 else 3
    return VALUES[:, columns], FILLED[:, first : first + len(columns)]


@on_ranks(2)
def test_a_message_of_fields_on_a_gpu_goes_to_the_host_in_one_copy(comm):
    cart = comm.Create_cart((1, 2), (True, True))
    before, after = part_of(comm)
    fields = [on_gpu(before), on_gpu(-before, (1, 0)), on_gpu(2 * before)]
    with dlf.halo_exchange(fields, cart) as plan:
        plan.exchange()
        with Counted() as copies:
            plan.exchange()
        assert (copies.to_host, copies.to_device) == (plan.messages, plan.messages)
    for field, factor in zip(fields, (1, -1, 2), strict=True):
        assert np.array_equal(values(field), factor * after)
    cart.Free()


class TakesGpu:
    """Stands for requests of an MPI that takes memory of a GPU: it copies to the host and back."""

    def __init__(self, comm, sends, receives):
        self.taken = [type(buffer) for buffer, _, _ in (*sends, *receives)]
        self.sends, sends = self._on_host(sends)
        self.receives, receives = self._on_host(receives)
        self.real = REAL_REQUESTS(comm, sends, receives)

    @staticmethod
    def _on_host(messages):
        pairs = [(given, np.empty(given.shape, "uint8")) for given, _, _ in messages]
        host = [
            (array, rank, tag) for (_, array), (_, rank, tag) in zip(pairs, messages, strict=True)
        ]
        return pairs, host

    def start(self):
        for given, array in self.sends:
            array[...] = values(given) if isinstance(given, dlf.GPUStorage) else given
        self.real.start()

    def wait(self):
        self.real.wait()
        for given, array in self.receives:
            given[...] = array

    def free(self):
        self.real.free()


REAL_REQUESTS = mpi.persistent


@on_ranks(2)
def test_an_mpi_that_takes_memory_of_a_gpu_gets_it_for_fields_that_are_there_alone(comm):
    cart = comm.Create_cart((1, 2), (True, True))
    before, after = part_of(comm)
    made = []

    def persistent(*arguments):
        made.append(TakesGpu(*arguments))
        return made[-1]

    for gpu_aware, taken in ((None, dlf.GPUStorage), (True, dlf.GPUStorage), (False, np.ndarray)):
        u = on_gpu(before)
        with (
            mock.patch.object(mpi, "takes_gpu", return_value=True),
            mock.patch.object(mpi, "persistent", persistent),
            dlf.halo_exchange({"u": u}, cart, gpu_aware=gpu_aware) as plan,
        ):
            for _ in range(2):
                plan.exchange()
        assert set(made[-1].taken) == {taken}
        assert np.array_equal(values(u), after)
    cart.Free()


@on_ranks(2)
def test_an_mpi_that_does_not_say_that_it_takes_memory_of_a_gpu_never_gets_it(comm):
    cart = comm.Create_cart((1, 2), (True, True))
    u = on_gpu(part_of(comm)[0])
    with pytest.raises(ValueError, match=r"^rank 0: gpu_aware: expected an MPI that takes memory"):
        dlf.halo_exchange({"u": u}, cart, gpu_aware=True)
    with dlf.halo_exchange({"u": u}, cart) as plan:
        plan.exchange()
    assert np.array_equal(values(u), part_of(comm)[1])
    cart.Free()


@on_ranks(2)
def test_ranks_may_have_a_field_on_the_host_and_on_a_gpu(comm):
    cart = comm.Create_cart((1, 2), (True, True))
    options = {"device": "gpu", "managed": None} if comm.rank == 1 else {}
    columns = np.s_[:, [0, 1, 2, 3, 6]] if comm.rank == 0 else np.s_[:, [0, 4, 5, 6]]
    u = dlf.storage(VALUES[columns], **LABELS, **options)
    with dlf.halo_exchange({"u": u}, cart) as plan:
        plan.exchange()
    first = 0 if comm.rank == 0 else 3
    assert np.array_equal(values(u), FILLED[:, first : first + u.shape[1]])
    cart.Free()


def test_a_pair_is_not_taken_for_its_host_side():
    u = pair(VALUES, DEVICE_NEWER, **LABELS)
    alias = dlf.as_storage(u.to_numpy(), **LABELS)
    plan = dlf.halo_exchange({"u": alias}, None)
    u.set_device_modified()
    plan.exchange(u)
    assert u.sync_state.state == DEVICE_NEWER
    assert np.array_equal(values(u), FILLED)
