"""Functions that the Fortran program of tests/python/fortran calls."""

import os
import sys

import dlfield as dlf
import numpy as np
from dlfield.annotations import IJ, Access, Axes, Field, I

READ, WRITTEN = Access["in"], Access["out"]

ELEMENTS = ("float32", "float64", "int32", "int64", "bool", "complex64", "complex128")
NAMES = ("I", "J", "K", "A", "B", "C", "D")
KEPT = []


def described(label, storage):
    """Print what a storage is: memory by `support.fortran`, labels as they are."""
    words = [storage.ptr, *storage.shape, *storage.strides]
    print("python", label, *words, flush=True)
    print(
        "labels",
        label,
        storage.dtype.name,
        storage.dims,
        storage.halo,
        storage.to_numpy().flags.writeable,
    )


def _probe(name, dtype, rank):
    def probe(a):
        described(name, a)
        values = a.to_numpy()
        values[...] = ~values if dtype == "bool" else values + 1

    probe.__name__ = probe.__qualname__ = name
    probe.__annotations__ = {"a": Field[np.dtype(dtype), Axes[NAMES[:rank]]]}
    return dlf.fortran.function(probe)


for _dtype in ELEMENTS:
    globals()[f"of_{_dtype}"] = _probe(f"of_{_dtype}", _dtype, 2)
for _rank in range(8):
    globals()[f"rank{_rank}"] = _probe(f"rank{_rank}", "float64", _rank)


@dlf.fortran.function
def only_read(a: Field[np.float64, IJ, READ], how: int):
    described("only_read", a)
    if how:
        a.to_numpy()[...] = 0


@dlf.fortran.function
def written(a: Field[np.float64, IJ, WRITTEN]):
    a.to_numpy()[...] = 7


@dlf.fortran.function
def may_be_absent(
    a: Field[np.float64, I] = None,
    b: Field[np.float64, I] = None,
    n: int = 5,
    name: str = "none",
    flag: bool = True,  # noqa: FBT001, FBT002
):
    """Print what came."""
    print("python", a is None, b is None, n, repr(name), flag)


@dlf.fortran.function
def scalars(
    f: float, i: int, b: bool, c: complex, s: str,  # noqa: FBT001
    f32: np.float32, f64: np.float64, i32: np.int32, i64: np.int64, c64: np.complex64,
):  # fmt: skip
    given = (f, i, b, c, s, f32, f64, i32, i64, c64)
    print("python", *(f"{type(one).__name__}:{one}" for one in given))


@dlf.fortran.function(halo={"a": (1, (2, 1), 0)})
def with_halo(a: Field[np.float64]):
    print("python", a.halo)


@dlf.fortran.function(lower_bounds=("a",))
def by_bounds(a: Field[np.float64, IJ]):
    print("python", a.halo)


@dlf.fortran.function(halo=(1, 1), lower_bounds=("a",))
def two_halos(a: Field[np.float64, IJ]):
    print("python", a.halo)


@dlf.fortran.function(lower_bounds=("a", "b"))
def bounds_are_last(
    a: Field[np.float64, IJ], n: Field[np.int32, I, READ] = None, b: Field[np.float64, I] = None
):
    print("python", a.halo, None if n is None else n.to_numpy(), None if b is None else b.halo)


@dlf.fortran.function(persistent=("b",))
def by_position(
    a: Field[np.float64, I] = None, n: int = 5, b: Field[np.float64, I] = None, /, m: int = 6
):
    print("python", a is None, n, b is None, m)


@dlf.fortran.function(pointer=("a", "b"))
def by_pointer(a: Field[np.float64, IJ], b: Field[np.float64, Axes[()]] = None):
    described("by_pointer", a)
    a.to_numpy()[...] += 1


@dlf.fortran.function(allocatable=("a", "b"))
def by_allocatable(a: Field[np.float64, IJ, WRITTEN], b: Field[np.float64, I] = None):
    described("by_allocatable", a)
    a.to_numpy()[...] += 1 if b is None else b.to_numpy()[0]


@dlf.fortran.function(default_logical=("mask", "made"))
def logicals(
    mask: Field[bool, IJ],
    made: Field[bool, I, WRITTEN],
):
    mask.to_numpy()[...] ^= True
    made.to_numpy()[...] = [True, False, True]


@dlf.fortran.function
def fail(a: Field[np.float64, I], how: str):
    if how == "raise":
        raise ValueError("on purpose")
    if how == "NUL":
        raise ValueError("on\0 purpose \udcff")
    if how == "nested":
        try:
            len(a.to_numpy() / None)
        except TypeError as error:
            raise RuntimeError("around it") from error
    if how == "divide":
        a[...] = 1.0 / a.to_numpy() - 1.0
        with np.errstate(all="ignore"):
            a[...] = np.log(a.to_numpy()) / a.to_numpy()
    if how == "exit":
        sys.exit(3)
    if how == "long trace":
        fail_at_depth(60)
    if how == "attribute":
        a.data_view[...] += 1
    if how == "attribute of a view":
        a.domain_view.nothing()
    if how == "argument of the exception":
        raise KeyError(a)
    if how == "cause":
        try:
            raise KeyError(a[1:])
        except KeyError as error:
            raise RuntimeError("around it") from error
    if how == "interrupt":
        os.kill(os.getpid(), 2)
        for _ in range(1000):
            pass


def fail_at_depth(depth):
    if depth == 0:
        raise ValueError("at the bottom")
    (fail_at_depth, fail_again)[depth % 2](depth - 1)


def fail_again(depth):
    fail_at_depth(depth)


@dlf.fortran.function
def keep(a: Field[np.float64, I], b: Field[np.float64, I], how: str):
    view = {
        "storage": lambda: b,
        "view": lambda: b[1:],
        "numpy": b.to_numpy,
        "slice": lambda: b.to_numpy()[1:],
        "capsule": b.__dlpack__,
        "closure": lambda: lambda: b,
    }
    if how == "cycle":
        circle = [b]
        circle.append(circle)
    elif how == "let go":
        KEPT.clear()
    elif how == "raise":
        KEPT.append(b)
        raise ValueError("on purpose")
    elif how:
        KEPT.append(view[how]())


@dlf.fortran.function(persistent=("state",))
def remember(state: Field[np.float64, I], other: Field[np.float64, I]):
    KEPT.append(state)


@dlf.fortran.function
def add_to_state(by: float):
    for state in KEPT:
        state.to_numpy()[...] += by


@dlf.fortran.function
def let_go():
    KEPT.clear()


IDENTITIES = []


@dlf.fortran.function
def again(a: Field[np.float64, I]):
    """Print whether the storage is that of the last call."""
    print("python", id(a) in IDENTITIES)
    IDENTITIES[:] = [id(a)]


@dlf.fortran.function
def add(a: Field[np.float64, I], by: float = 1.0):
    a.to_numpy()[...] += by


@dlf.fortran.function
def blocks():
    print("python", sys.getallocatedblocks())


ALL = [
    *(f"of_{one}" for one in ELEMENTS), *(f"rank{one}" for one in range(8)),
    "only_read", "written", "may_be_absent", "scalars", "with_halo", "by_bounds",
    "two_halos", "bounds_are_last", "by_position", "by_pointer", "by_allocatable", "logicals",
    "fail", "keep", "remember", "add_to_state", "let_go", "again", "add", "blocks",
]  # fmt: skip
