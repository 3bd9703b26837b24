"""Random imports, exports, views and drops on several threads, and then a count of what is left.

Run by hand, `PYTHONPATH=tests python -m support.soak [operations] [threads] [seed]` does a million
operations and prints what it has done and found; the exit status is 1 where something is left.
"""

import contextlib
import ctypes
import gc
import itertools
import json
import queue
import random
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import dlfield as dlf
import numpy as np
from dlfield import _core

from support.dlpack_structs import (
    READ_ONLY,
    Handover,
    Producer,
    call_on_a_bare_thread,
    consume,
    release,
)
from support.exchange_structs import Exchange, Held, table, with_table
from support.lying_producers import resident

ROUNDS = 3  # after each everything is dropped: one that leaks grows from the first to the last
HELD = 64  # by each thread, at most
LARGE = 600_000  # float64 in memory of their own: a little more than 4 MiB, which are never touched
MAY_GROW = 2048  # KiB: one word forgotten by each of a million operations is more


class Count:
    """Counts on several threads at once, which `+= 1` does not promise to do."""

    def __init__(self):
        self._numbers = itertools.count()
        self.add = self._numbers.__next__

    @property
    def total(self):
        return int(repr(self._numbers).removeprefix("count(").removesuffix(")"))


class Pair:
    """How often something was taken, and how often it was given back."""

    def __init__(self):
        self.taken, self.given_back = Count(), Count()

    @property
    def left(self):
        return self.taken.total - self.given_back.total


ARRAYS, INTERFACES = Pair(), Pair()


class Watched(np.ndarray):
    """An array that counts its births and deaths."""

    def __array_finalize__(self, _whole):
        ARRAYS.taken.add()

    def __del__(self):
        ARRAYS.given_back.add()


class Interface:
    """Has only the array interface, and frees the memory when it dies."""

    def __init__(self, shape):
        INTERFACES.taken.add()
        self._array = np.zeros(shape)
        self.__array_interface__ = self._array.__array_interface__

    def __del__(self):
        INTERFACES.given_back.add()


class Synchronised:
    """Has GT4Py's data interface, and counts its `acquire` calls."""

    def __init__(self):
        self.array, self.pair = np.zeros((4, 5)), Pair()
        hooks = {"acquire": self.pair.taken.add, "release": self.pair.given_back.add}
        self.__gt_data_interface__ = {None: {**self.array.__array_interface__, **hooks}}


class Counting(Producer):
    """Gives its one tensor to everybody, and counts how often, and how often it is given back."""

    def __init__(self, **options):
        self.pair = Pair()
        super().__init__(**options)

    def _count(self, _managed):
        self.pair.given_back.add()

    def __dlpack__(self, **_keywords):
        self.pair.taken.add()
        return self.capsule()


class Exchanged(Held):
    """Gives such a tensor through a table."""

    def __init__(self):
        self.producer = Counting()
        self.pair = self.producer.pair


def _hand_out(held, room):
    held.pair.taken.add()
    room[0] = held.producer.address
    return 0


class Taken:
    """A tensor that was taken out of a capsule, and is released on whichever thread drops it."""

    def __init__(self, managed):
        self._managed = managed

    def __del__(self):
        release(self._managed)


CAPSULE = types.CapsuleType if hasattr(types, "CapsuleType") else type(dlf.zeros(1).__dlpack__())
TABLE = Exchange(dlf.CPUStorage)
PRODUCERS = {
    "versioned": Counting(),
    "legacy": Counting(legacy=True),
    "read-only": Counting(flags=READ_ONLY),
    "exchange table": with_table(table(_hand_out), Exchanged)(),
    "acquire and release": Synchronised(),
}
BYTEARRAYS = [bytearray(48) for _ in range(4)]


def small(rng):
    return tuple(rng.randint(0, 5) for _ in range(rng.randint(1, 3)))


def own(rng):
    if rng.random() < 0.01:
        return rng.choice((dlf.empty, dlf.zeros))(LARGE)
    shape = small(rng)
    halo = [(rng.randint(0, extent // 2), 0) for extent in shape]
    return rng.choice((dlf.empty, dlf.zeros, dlf.ones))(shape, halo=halo, alignment_size=64)


#: What makes storages out of nothing.
SOURCES = (
    own,
    own,
    lambda rng: dlf.as_storage(np.zeros(small(rng)).view(Watched)),
    lambda rng: dlf.as_storage(Interface(small(rng))),
    lambda rng: dlf.as_storage(rng.choice(BYTEARRAYS)),
    lambda rng: dlf.as_storage(rng.choice(list(PRODUCERS.values()))),
    lambda rng: dlf.as_storage(rng.choice(list(PRODUCERS.values()))),
)


def copied(storage):
    """Copy what is small. A large one would be touched."""
    return dlf.storage(storage) if storage.size < LARGE else storage


def copied_capsule(storage):
    return storage.__dlpack__(max_version=(1, 0), copy=storage.size < LARGE)


def legacy_capsule(storage):
    """Export without a version, which cannot mark memory as read-only."""
    return storage.__dlpack__(max_version=(1, 0) if storage.readonly else None)


def by_table(storage):
    return Taken(TABLE.tensor_of(storage))


def through_table(storage):
    """Hand a tensor over, which makes a storage over a storage."""
    return TABLE.object_over(ctypes.addressof(TABLE.tensor_of(storage)))


def released_on_a_bare_thread(capsule):
    managed = consume(capsule)
    call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))


#: What makes something of what is held, by its class.
STEPS = {
    dlf.CPUStorage: (
        dlf.as_storage,
        lambda storage: storage.domain_view,
        copied,
        np.from_dlpack,
        np.asarray,
        memoryview,
        lambda storage: storage.to_numpy(),
        lambda storage: storage.__dlpack__(max_version=(1, 0)),
        copied_capsule,
        legacy_capsule,
        by_table,
        through_table,
    ),
    np.ndarray: (dlf.as_storage, lambda array: array[1:], lambda array: array.T),
    memoryview: (dlf.as_storage, np.asarray),
    CAPSULE: (
        lambda capsule: dlf.as_storage(Handover(capsule)),
        lambda capsule: np.from_dlpack(Handover(capsule)),
        lambda capsule: Taken(consume(capsule)),
    ),
    Taken: (lambda taken: taken,),
}


class Shared:
    """What all threads use at once, and a letterbox through which things change threads."""

    def __init__(self):
        self.storages, self.letterbox = [dlf.zeros(3) for _ in range(4)], queue.SimpleQueue()


class Worker:
    """What one thread holds, and what it does next."""

    def __init__(self, seed, shared):
        self.rng, self.shared, self.held = random.Random(seed), shared, [dlf.zeros(3)]

    def work(self, operations):
        weights = {self.take: 24, self.make: 44, self.pop: 20, self.send: 6, self.receive: 6}
        choices = [choice for choice, weight in weights.items() for _ in range(weight)]
        for _ in range(operations):
            self.rng.choice(choices)()
            if not 0 < len(self.held) < HELD:
                self.make_room()

    def make_room(self):
        """Drop many at once, in any order, and never hold nothing."""
        self.rng.shuffle(self.held)
        self.held[self.rng.randrange(HELD) :] = [dlf.zeros(3)]

    def take(self):
        self.held.append(self.rng.choice(SOURCES)(self.rng))

    def make(self):
        """Make something of what is held, or of what all threads use. A capsule is used up."""
        at = self.rng.randrange(len(self.held))
        if type(self.held[at]) is CAPSULE:
            self.use_up(self.held.pop(at))
            return
        thing = self.any_storage() if self.rng.random() < 0.3 else self.held[at]
        self.held.append(self.rng.choice(STEPS[type(thing)])(thing))

    def any_storage(self):
        """Return a storage that other threads use too; now and then put another in its place."""
        storages, at = self.shared.storages, self.rng.randrange(4)
        if type(self.held[-1]) is dlf.CPUStorage:
            storages[at] = self.held[-1]
        return storages[at]

    def use_up(self, capsule):
        if self.rng.random() < 0.05:
            released_on_a_bare_thread(capsule)
        else:
            self.held.append(self.rng.choice(STEPS[CAPSULE])(capsule))

    def pop(self):
        return self.held.pop(self.rng.randrange(len(self.held)))

    def send(self):
        self.shared.letterbox.put(self.pop())

    def receive(self):
        with contextlib.suppress(queue.Empty):
            self.held.append(self.shared.letterbox.get_nowait())


def one_round(operations, threads, seed):
    """Work on several threads, and drop everything that they hold."""
    shared = Shared()
    workers = [Worker(f"{seed} {n}", shared) for n in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(Worker.work, workers, [operations // threads] * threads))


def stuck(text):
    """Return whether a bytearray still has a view, which keeps it from growing."""
    try:
        text.append(0)
    except BufferError:
        return 1
    del text[-1]
    return 0


def left():
    """Return what was not given back, by name."""
    gc.collect()
    pairs = {name: producer.pair.left for name, producer in PRODUCERS.items()}
    pairs |= {"arrays": ARRAYS.left, "array interfaces": INTERFACES.left}
    pairs |= {"bytearrays": sum(map(stuck, BYTEARRAYS)), "own memory": _core.live_allocations()}
    return {name: count for name, count in pairs.items() if count}


def soak(operations, threads, seed):
    """Work in rounds, and give what was left after any of them, and by how many KiB it grew."""
    sys.setswitchinterval(1e-4)  # threads interrupt each other often
    found, sizes = {}, []
    for n in range(ROUNDS):
        one_round(operations // ROUNDS, threads, f"{seed} {n}")
        found |= left()
        sizes.append(resident())
    taken = {name: producer.pair.taken.total for name, producer in PRODUCERS.items()}
    return {"left": found, "grown": sizes[-1] - sizes[0], "resident": sizes[-1], "taken": taken}


if __name__ == "__main__":
    asked = [*map(int, sys.argv[1:]), *(1_000_000, 4, 0)[len(sys.argv) - 1 :]]
    outcome = soak(*asked)
    print(json.dumps(outcome))
    sys.exit(bool(outcome["left"]) or outcome["grown"] > MAY_GROW)
