"""Every sequence of a few steps on memory of a GPU, on up to three streams, beside NumPy.

The stand-in delays work as long as a driver may, so what is out of order shows. Steps are made
without a wait in between, unless a step itself reads on the host.
"""

import itertools
import os

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, new_stream
from support.cuda.driver import call
from support.cuda.order import seen_from
from support.cuda.unwaited import SHAPE, VALUES, Unwaited, on_gpu, values_of

#: Steps of a sequence. DLFIELD_TEST_STEPS=5 makes all that are so long.
STEPS = int(os.environ.get("DLFIELD_TEST_STEPS", "3"))


class World:
    """A storage, a pair, and memory of a producer with a stream; and what has to be in them."""

    def __init__(self, streams):
        self.streams = streams
        self.memory = OnDevice(VALUES, stream=streams[0])
        self.fields = {
            "a": on_gpu(-VALUES),
            "pair": on_gpu(2.0 * VALUES, "gt4py"),
            "b": dlf.as_storage(self.memory, managed=None),
        }
        self.values = {"a": -VALUES, "pair": 2.0 * VALUES, "b": VALUES}
        self.number = 0.0

    def next(self):
        """Return a number that was nowhere before."""
        self.number -= 1.0
        return self.number

    def copied(self, source, target):
        self.values[target] = self.values[source].copy()

    def check(self):
        for name, field in self.fields.items():
            assert np.array_equal(values_of(field), self.values[name]), name


run = dlf.bind(Unwaited())


def compute(source, target):
    """Let a stencil that nobody waits for copy a field."""

    def step(world):
        run(world.fields[source], world.fields[target])
        world.copied(source, target)

    return step


def copy(source, target, stream):
    """Copy a field on a stream that keeps no order with the default stream."""

    def step(world):
        with dlf.use_stream(world.streams[stream]):
            world.fields[target][...] = world.fields[source]
        world.copied(source, target)

    return step


def fill(world):
    """Fill a field on dlfield's own stream."""
    world.values["a"] = np.full(SHAPE, world.next())
    world.fields["a"][...] = world.values["a"][0, 0, 0]


def write_on_the_host(world):
    """Write one side of the pair."""
    world.values["pair"] = np.full(SHAPE, world.next())
    with world.fields["pair"].host() as array:
        array[...] = world.values["pair"]


def read_on_the_host(world):
    """Read a field while other work is in flight."""
    assert np.array_equal(values_of(world.fields["a"]), world.values["a"])


def read_the_pair_on_the_host(world):
    """Read the newer side of a pair, which may be the other one."""
    assert np.array_equal(world.fields["pair"].to_numpy(), world.values["pair"])


def replace(world):
    """Free a field that may be in use, and make another, perhaps at its address."""
    world.fields["a"] = dlf.zeros(SHAPE, device="gpu", managed=None)
    world.values["a"] = np.zeros(SHAPE)


def write_by_the_producer(world):
    """Write memory on the stream that its producer has named."""
    world.values["b"] = np.zeros(SHAPE)
    call("cuMemsetD8Async", world.memory.address, 0, VALUES.nbytes, world.streams[0])


def read_by_the_producer(world):
    """Read memory on the stream that its producer has named."""
    seen = seen_from(world.streams[0], world.memory.address, SHAPE)
    assert np.array_equal(seen, world.values["b"])


EVERY = {
    "compute a to b": compute("a", "b"),
    "compute b to pair": compute("b", "pair"),
    "compute pair to a": compute("pair", "a"),
    "copy b to a": copy("b", "a", 1),
    "copy pair to b": copy("pair", "b", 2),
    **{
        one.__name__: one
        for one in (
            fill,
            write_on_the_host,
            read_on_the_host,
            read_the_pair_on_the_host,
            replace,
            write_by_the_producer,
            read_by_the_producer,
        )
    },
}


@pytest.mark.parametrize("first", EVERY)
def test_every_sequence_of_steps_on_three_streams_gives_the_values_of_numpy(first):
    streams = [new_stream() for _ in range(3)]
    for names in itertools.product(EVERY, repeat=STEPS - 1):
        world = World(streams)
        try:
            for name in (first, *names):
                EVERY[name](world)
            world.check()
        except AssertionError as error:
            raise AssertionError(" | ".join((first, *names))) from error
    call("cuCtxSynchronize")
