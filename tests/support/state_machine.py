"""Random acts on storages and hostile objects, each done to NumPy's arrays as well.

Every storage has a twin: an array of NumPy over the same memory, on which NumPy does what dlfield
does. After each act all pairs have the same address, shape, strides and values. Run by hand,
`PYTHONPATH=tests python -m support.state_machine [examples] [acts of each] [seed]`; a crash shows
the last act, since each is written before it is done.
"""

import contextlib
import copy
import gc
import os
import pickle
import sys
import threading

import dlfield as dlf
import hypothesis
import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from support.stencils.stand_ins import StandIn, field

#: What hostile objects raise: anything may come out of foreign code.
FOREIGN = (
    ValueError,
    KeyError,
    AttributeError,
    TypeError,
    BufferError,
    MemoryError,
    RecursionError,
)
#: What dlfield raises for what it does not take.
REFUSED = (TypeError, ValueError, BufferError, IndexError, AttributeError)
DTYPES = st.sampled_from(["float64", "float32", "int32", "int8", "complex64", "bool"])
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)
SLICES = st.builds(
    slice, *[st.none() | st.integers(-5, 5)] * 2, st.sampled_from([None, 1, 2, -1, -2])
)
KEYS = st.lists(SLICES | st.integers(-4, 3), max_size=3).map(tuple)
#: Acts beside a producer's answer.
MISDEEDS = ["nothing", "raise", "collect", "drop", "import itself", "change"]


class Hostile:
    """An array that says something else each time, and meanwhile does what it should not."""

    def __init__(self, machine, protocol, misdeed, array, raises, after):
        self.machine, self.protocol, self.misdeed = machine, protocol, misdeed
        self.array, self.raises, self.after, self.asked = array, raises, after, 0

    def __getattr__(self, name):
        if name != self.__dict__.get("protocol"):
            raise AttributeError(name)
        self.asked += 1
        if self.asked > self.after:
            self._misbehave()
        return getattr(self.array, name)

    def _misbehave(self):
        if self.misdeed == "raise":
            raise self.raises("on purpose")
        if self.misdeed == "collect":
            gc.collect()
        if self.misdeed == "drop":
            self.machine.kept.clear()
            gc.collect()
        if self.misdeed == "import itself" and self.asked < 9:
            with contextlib.suppress(*FOREIGN):
                self.machine.kept.append(dlf.as_storage(self))
        if self.misdeed == "change":
            self.array = np.ones(self.array.ndim + self.asked % 3, "complex128")


PROTOCOLS = [
    "__array_interface__",
    "__array_struct__",
    "__dlpack__",
    "__dlpack_device__",
    "__array__",
]


class Storages(RuleBasedStateMachine):
    """The acts."""

    pairs = Bundle("pairs")

    def __init__(self):
        super().__init__()
        self.live, self.kept = [], []
        body = lambda a, b: np.copyto(b, a, casting="unsafe")  # noqa: E731
        self.stencil = StandIn(body=body, a=field("READ"), b=field("WRITE"))
        self.run = dlf.bind(self.stencil)

    def _pair(self, storage, twin):
        assert storage.shape == twin.shape
        assert twin.size == 0 or storage.to_numpy().ctypes.data == twin.ctypes.data
        self.live.append((storage, twin))
        return storage, twin

    @rule(target=pairs, shape=SHAPES, dtype=DTYPES, halo=st.integers(0, 1), named=st.booleans())
    def make(self, shape, dtype, halo, named):
        note("make", shape, dtype, halo, named)
        options = {"dims": "IJK"[: len(shape)], "halo": (halo,) * len(shape)} if named else {}
        try:
            storage = dlf.zeros(shape, dtype, **options)
        except ValueError:  # a halo wider than the field
            return multiple()
        return self._pair(storage, storage.to_numpy())

    @rule(
        target=pairs,
        shape=SHAPES,
        dtype=DTYPES,
        order=st.permutations(range(3)),
        step=st.sampled_from([1, 2, -1]),
    )
    def share(self, shape, dtype, order, step):
        note("share", shape, dtype, order, step)
        axes = [axis for axis in order if axis < len(shape)]
        array = np.ones(shape, dtype).transpose(axes)[::step]
        return self._pair(dlf.as_storage(array), array)

    @rule(target=pairs, pair=pairs, key=KEYS)
    def select(self, pair, key):
        note("select", key)
        storage, twin = pair
        key = key[: twin.ndim]
        try:
            expected = twin[key]
        except IndexError:
            expected = None
        if expected is None:
            expect_error(IndexError, lambda: storage[key])
            return multiple()
        got = storage[key]
        if not isinstance(expected, np.ndarray):
            assert same(np.asarray(got), np.asarray(expected))
            return multiple()
        return self._pair(got, expected)

    @rule(target=pairs, pair=pairs, way=st.sampled_from(["pickle", "copy", "deepcopy", "method"]))
    def duplicate(self, pair, way):
        note("duplicate", way)
        storage, twin = pair
        ways = {"pickle": lambda one: pickle.loads(pickle.dumps(one)), "copy": copy.copy}
        ways |= {"deepcopy": copy.deepcopy, "method": lambda one: one.copy()}
        made = ways[way](storage)
        if way != "copy":
            assert not np.shares_memory(made.to_numpy(), twin)
        assert same(made.to_numpy(), twin)
        return self._pair(made, made.to_numpy())

    @rule(
        target=pairs,
        pair=pairs,
        way=st.sampled_from(["dlpack", "numpy", "memoryview", "interface"]),
    )
    def round_trip(self, pair, way):
        note("round trip", way)
        storage, twin = pair
        ways = {"dlpack": np.from_dlpack, "numpy": np.asarray, "memoryview": memoryview}
        try:
            array = ways.get(way, np.asarray)(storage)
        except BufferError:  # DLPack has no strides below 0
            assert way == "dlpack"
            assert min(storage.strides) < 0
            return multiple()
        return self._pair(dlf.as_storage(array), twin)

    @rule(pair=pairs, value=st.sampled_from([0, 1, -3, True, 2.5]), key=KEYS)
    def fill(self, pair, value, key):
        note("fill", value, key)
        storage, twin = pair
        key = key[: twin.ndim]
        outcome = attempt(lambda: twin.__setitem__(key, value))
        assert type(attempt(lambda: storage.__setitem__(key, value))) is type(outcome)

    @rule(pair=pairs, other=pairs)
    def assign(self, pair, other):
        note("assign")
        (storage, twin), (given, given_twin) = pair, other
        before = given_twin.copy()
        try:
            storage[...] = given
        except REFUSED:
            return
        if storage.dims is None and given.dims is None:
            expected = np.empty_like(twin)
            with np.errstate(all="ignore"):
                expected[...] = before
            assert same(twin, expected)

    @rule(pair=pairs, other=pairs)
    def add(self, pair, other):
        note("add")
        (storage, twin), (given, given_twin) = pair, other
        try:
            with np.errstate(all="ignore"):
                got = storage + given
        except REFUSED:
            return
        if storage.dims is None and given.dims is None:
            assert same(got.to_numpy(), np.asarray(twin + given_twin))

    @rule(first=pairs, second=pairs)
    def call(self, first, second):
        note("call")
        (a, a_twin), (b, b_twin) = first, second
        outcome = attempt(lambda: self.run(a, b))
        after = b_twin.copy()
        anew = attempt(lambda: dlf.bind(self.stencil)(a, b))
        assert type(outcome) is type(anew)
        assert str(outcome) == str(anew)
        assert same(after, b_twin) or np.shares_memory(a_twin, b_twin)

    @rule(
        protocol=st.sampled_from(PROTOCOLS),
        misdeed=st.sampled_from(MISDEEDS),
        raises=st.sampled_from(FOREIGN),
        after=st.integers(0, 4),
        pair=pairs,
    )
    def meet(self, protocol, misdeed, raises, after, pair):
        note("meet", protocol, misdeed, raises.__name__, after)
        storage, _twin = pair
        hostile = Hostile(self, protocol, misdeed, np.ones(3), raises, after)
        acts = [
            lambda: self.kept.append(dlf.as_storage(hostile)),
            lambda: storage.__setitem__(..., hostile),
            lambda: self.kept.append(storage + hostile),
            lambda: self.run(hostile, storage),
            lambda: self.run(storage, hostile),
            lambda: dlf.explain(hostile),
        ]
        for act in acts:
            attempt(act)
        for kept in self.kept[:]:
            if isinstance(kept, dlf.Storage):
                assert np.isfinite(kept.to_numpy()).all()

    @rule(pair=pairs)
    def keep_a_capsule(self, pair):
        note("keep a capsule")
        with contextlib.suppress(BufferError):
            self.kept.append(pair[0].__dlpack__())
        self.kept.append(memoryview(pair[0].to_numpy()))
        del self.kept[:-20]

    @rule(pair=consumes(pairs), collect=st.booleans())
    def drop(self, pair, collect):
        note("drop", collect)
        self.live = [one for one in self.live if one[0] is not pair[0]]
        del pair
        if collect:
            gc.collect()

    @rule(pair=pairs, other=pairs)
    def at_once(self, pair, other):
        note("at once")
        acts = [
            lambda: pair[0].copy(),
            lambda: dlf.as_storage(other[1]),
            lambda: self.run(pair[0], other[0]),
            lambda: self.kept.clear(),
        ]
        threads = [threading.Thread(target=attempt, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @invariant()
    def the_twins_are_alike(self):
        for storage, twin in self.live:
            array = storage.to_numpy()
            assert (array.shape, array.dtype) == (twin.shape, twin.dtype)
            assert twin.size == 0 or place(array) == place(twin)

    def teardown(self):
        self.live.clear()
        self.kept.clear()


def attempt(act):
    """Do something, and return its error, or None."""
    try:
        with np.errstate(all="ignore"):
            act()
    except Exception as error:
        return error
    return None


def expect_error(kind, act):
    """Do something that has to raise."""
    error = attempt(act)
    assert isinstance(error, kind), error


def place(array):
    """Return the address of an array, and its strides along axes with more than one point."""
    strides = zip(array.strides, array.shape, strict=True)
    return array.ctypes.data, [stride for stride, extent in strides if extent > 1]


def same(one, other):
    """Return whether two arrays have the same type, shape and values; NaN is NaN."""
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


LOG = os.environ.get("DLFIELD_TEST_ACTS")


def note(*words):
    """Write the act that follows into the file that a crash leaves."""
    global acts
    acts += 1
    if LOG:
        with open(LOG, "a", encoding="utf-8") as file:
            print(*words, file=file)


acts = 0


def main(examples=20, steps=30, seed=0):
    """Run the machine, and print the number of acts."""
    gc.collect()
    gc.freeze()  # a collection then looks at what acts leave
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(hypothesis.seed(seed)(Storages), settings=settings)
    print(acts)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
