"""Fields on a GPU in the memory pool of CuPy, or in one of RMM.

python cupy_pool.py
python cupy_pool.py --rmm    # needs rmm
"""

import argparse

import cupy as cp
import dlfield as dlf

SHAPE = (64, 64, 40)


def use_rmm() -> None:
    """Let CuPy allocate from a pool of RMM. Call it before anything is allocated."""
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True, initial_pool_size=2**28)
    cp.cuda.set_allocator(rmm_cupy_allocator)


def zeros() -> dlf.Storage:
    """Make a field in the pool. `managed=None`: without a buffer on the host beside it."""
    return dlf.as_storage(cp.zeros(SHAPE), dims="IJK", halo=(3, 3, 0), managed=None)


def in_the_pool() -> None:
    """Show that CuPy's pool has the memory, until the last view is dropped."""
    pool = cp.get_default_memory_pool()
    before = pool.used_bytes()
    t = zeros()
    domain = t.domain_view.to_cupy()
    print(f"a field: {pool.used_bytes() - before} bytes of the pool")
    del t
    print(f"a view of it: {pool.used_bytes() - before} bytes")
    del domain
    print(f"nothing: {pool.used_bytes() - before} bytes")


def on_a_stream() -> None:
    """Work on a stream of CuPy, from the allocation to the result."""
    with cp.cuda.Stream(non_blocking=True) as stream, dlf.use_stream(stream):
        t = zeros()
        t.domain_view[...] = 1.5
        total = float(cp.asnumpy(cp.sum(t.to_cupy())))  # waits for the stream
    print(f"sum {total}, expected {1.5 * t.domain_view.size}")


def main() -> None:
    """Choose a pool, and use it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rmm", action="store_true")
    if parser.parse_args().rmm:
        use_rmm()
    else:
        in_the_pool()
    on_a_stream()


if __name__ == "__main__":
    main()
