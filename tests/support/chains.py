"""Chains of owners: memory that goes from library to library, as a storage between each two.

Only the last object is kept, and then let go. A program, since a fault ends the process:

    python -m support.chains WHAT FILE [PART PARTS]

`WHAT` names a function of this module. The chain that is tried stands in the file.
"""

import contextlib
import gc
import itertools
import os
import sys
import threading

import dlfield as dlf
import numpy as np
from dlfield._core import live_allocations

from support.addresses import address_of
from support.detached import Bytes, Told, counted, inside_a_call
from support.dlpack_structs import Handover
from support.optional import library

LONGEST = 4
DEEP = 50
"""Twice that many links are more than dlfield drops inside each other."""


def _libraries():
    """Return what makes another library's object over the memory of a storage, for each way."""
    buffer, delayed = library("mpi4py.MPI").buffer, library("dask").delayed
    return {
        "NumPy": np.asarray,
        "NumPy, DLPack": np.from_dlpack,
        "memoryview": memoryview,
        "torch": library("torch").from_dlpack,
        "to torch": lambda storage: storage.to_torch(),
        "tvm-ffi": library("tvm_ffi").from_dlpack,
        "JAX": library("jax.dlpack").from_dlpack,
        "Arrow": library("pyarrow").array,
        "Arrow buffer": library("pyarrow").py_buffer,
        "mpi4py": buffer.frombuffer,
        "xarray": library("xarray").DataArray,
        "Dask": lambda storage: delayed(np.asarray)(storage).compute(),
    }


def _bytes():
    """Return memory on a boundary of 64 bytes, where JAX shares it, and what tells of its end."""
    owner = Bytes(128)
    freed, first = counted(owner), -np.frombuffer(owner, np.uint8).ctypes.data % 64
    return memoryview(owner)[first : first + 64], freed


def _array():
    owner = np.zeros(16)
    freed, first = counted(owner), -owner.ctypes.data % 64 // 8
    return owner[first : first + 8], freed


def _torch_tensor():
    memory, freed = _bytes()
    torch = library("torch")
    return torch.frombuffer(memory, dtype=torch.float64), freed


def _tensor():
    memory, freed = _array()
    return Handover(memory.__dlpack__(max_version=(1, 0))), freed


def _hooks():
    told = Told()
    told.array, _ = _array()
    return told, counted(told)


def _own():
    before = live_allocations()
    return dlf.zeros(8), lambda: before + 1 - live_allocations()


SOURCES = {
    "bytearray": _bytes,
    "NumPy array": _array,
    "torch tensor": _torch_tensor,
    "DLPack": _tensor,
    "hooks": _hooks,
    "own memory": _own,
}


class _Finalizer:
    def __init__(self, kept):
        self._kept = kept

    def __del__(self):
        self._kept.clear()


def _while_an_exception_is_pending(kept):
    with contextlib.suppress(ValueError):
        [].index(kept.pop())


def _on_a_second_thread(kept):
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()


def _in_a_cycle(kept):
    cycle = [kept.pop()]
    cycle.append(cycle)


WAYS = {
    "dropped": list.clear,
    "pending exception": _while_an_exception_is_pending,
    "second thread": _on_a_second_thread,
    "__del__": lambda kept: _Finalizer(kept) and None,
    "cycle": _in_a_cycle,
    "inside a call": lambda kept: inside_a_call(kept.clear),
}


class Chains:
    """Makes chains, and writes down which one is tried."""

    def __init__(self, path):
        self._libraries = _libraries()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.links, self.tried, self.refused = tuple(self._libraries), 0, 0

    def made(self, source, links, *, ends_as_storage=True):
        """Return the last object of a chain, and what tells how often the memory was freed.

        A library that takes no read-only memory ends the chain earlier.
        """
        self.tried += 1
        chain = " > ".join((source, *links[:LONGEST]))
        os.pwrite(self._file, f"{chain}, {len(links)} links".ljust(100).encode(), 0)
        first, freed = SOURCES[source]()
        storage = dlf.as_storage(first)
        start = address_of(storage)
        for last, name in enumerate(links, 1 - len(links)):
            try:
                other = self._libraries[name](storage)
            except (BufferError, RuntimeError, TypeError, ValueError):
                assert storage.readonly
                self.refused += 1
                break
            if last == 0 and not ends_as_storage:
                return [other], freed
            storage = dlf.as_storage(other)
            assert address_of(storage) == start, "a copy was made"
        return [storage], freed

    def check(self, source, links, way, **options):
        """Make a chain, let its last object go, and check that the memory was freed once, then."""
        kept, freed = self.made(source, links, **options)
        assert freed() == 0, "freed while it was in use"
        os.pwrite(self._file, f"{way:20}".encode(), 100)
        WAYS[way](kept)
        del kept
        for generation in range(3):  # the youngest, which is the smallest, first
            if freed() == 0:
                gc.collect(generation)  # of a cycle, in which libraries may keep an object too
        assert freed() == 1, f"freed {freed()} times"

    def up_to(self, length):
        """Give all sequences of links."""
        lengths = range(1, length + 1)
        return itertools.chain(*(itertools.product(self.links, repeat=n) for n in lengths))


def _turns(*choices):
    """Give all combinations but one, again and again: their number has no factor of that of links.

    Each last link then meets every source and way, and not the same ones each time.
    """
    return itertools.cycle(list(itertools.product(*choices))[:-1])


def short(chains):
    """All chains of up to two links, from each source, let go in each way, by both ends."""
    for links in chains.up_to(2):
        for source, way in itertools.product(SOURCES, WAYS):
            chains.check(source, links, way)
            chains.check(source, links, way, ends_as_storage=False)


def long(chains, part, parts):
    """All chains of more links; sources, ways and ends take turns."""
    turns = _turns(SOURCES, WAYS, (True, False))
    for number, (links, turn) in enumerate(zip(chains.up_to(LONGEST), turns, strict=False)):
        if len(links) > 2 and number % int(parts) == int(part):
            source, way, ends_as_storage = turn
            chains.check(source, links, way, ends_as_storage=ends_as_storage)


def deep(chains):
    """Chains with more links than are dropped inside each other, of each two kinds."""
    turns = _turns(SOURCES, WAYS)
    for pair, (source, way) in zip(itertools.product(chains.links, repeat=2), turns, strict=False):
        chains.check(source, pair * DEEP, way)


def at_the_end(chains):
    """Chains that live until the interpreter ends, in a module that goes early and a late one."""
    kept = [chains.made(source, links) for links in chains.up_to(2) for source in SOURCES]
    deep_ones = [chains.made("bytearray", pair * DEEP) for pair in itertools.pairwise(chains.links)]
    globals()["_kept"], sys.modules["builtins"]._kept = kept[::2] + deep_ones, kept[1::2]
    del kept, deep_ones


def main(what, path, *part):
    """Run some chains, and print how many were tried, and how many a library cut short."""
    chains = Chains(path)
    for link in chains.links:
        chains.check("own memory", (link,), "dropped")  # libraries import more at their first use
    gc.collect()
    gc.freeze()  # a collection then looks at the chain only
    globals()[what](chains, *part)
    print(chains.tried, chains.refused)


if __name__ == "__main__":
    main(*sys.argv[1:])
