"""Memory of a GPU and of the host beside it: where it lies, how much there is, that it goes."""

import gc
from itertools import product

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations
from hypothesis import given
from hypothesis import strategies as st

from support.addresses import address_of
from support.cuda import driver
from support.cuda.devices import device_view
from support.cuda.driver import call, made, pointer_attribute, stats
from support.cuda.order import device_count
from support.cuda.places import shapes
from support.cuda.stand_in import run

KINDS = [None, "gt4py", "cuda"]
every_kind = pytest.mark.parametrize("managed", KINDS)
ON_HOST, ON_DEVICE = 1, 2
MEMORY_TYPE, IS_MANAGED, ORDINAL = 2, 8, 9


def addresses(storage):
    """Return the address of the first element on every side that a storage has."""
    there = [storage.__cuda_array_interface__["data"][0]]
    return there if isinstance(storage, dlf.GPUStorage) else [*there, address_of(storage)]


def attribute(number, there):
    return pointer_attribute(number, there) & 0xFFFFFFFF


@given(st.data())
def test_the_aligned_element_of_every_row_is_on_its_boundary_on_both_sides(data):
    shape = tuple(max(extent, 1) for extent in data.draw(shapes(most_dims=3)))
    shape = shape or (3,)
    name = data.draw(st.sampled_from(["uint8", "float32", "float64", "complex128"]))
    item = np.dtype(name).itemsize
    wished = [item * count for count in (1, 2, 3, 8, 24, 33, 100)] + [256, 512, 4096]
    alignment = data.draw(st.sampled_from(wished))
    index = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    storage = dlf.ones(
        shape,
        name,
        device=("gpu", data.draw(st.integers(0, min(device_count(), 2) - 1))),
        managed=data.draw(st.sampled_from(KINDS)),
        layout=data.draw(st.permutations(range(len(shape)))),
        alignment_size=alignment,
        aligned_index=index,
    )
    inner = storage.layout.index(storage.ndim - 1)
    rows = [
        [0, extent - 1] if axis != inner else [index[axis]] for axis, extent in enumerate(shape)
    ]
    for first, row in product(addresses(storage), product(*rows)):
        at = sum(i * stride for i, stride in zip(row, storage.strides, strict=True))
        assert (first + at) % alignment == 0
    assert (device_view(storage) == 1).all()


@every_kind
def test_without_a_wish_a_gpu_begins_on_256_bytes_and_the_host_on_64(managed):
    fields = [dlf.empty(n, "uint8", device="gpu", managed=managed) for n in range(1, 20)]
    for field in fields:
        there, *here = addresses(field)
        assert there % 256 == 0
        assert not here or here[0] % 64 == 0


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", '`device="gpu"` asks for a buffer on a GPU'
)
@pytest.mark.source(
    "GDP-3",
    "Storage Types",
    "`GPUStorage` has device memory and no host buffer",
    "`CUDAManagedGPUStorage` has unified memory that CUDA synchronises",
    "`SoftwareManagedGPUStorage` has a host and a device buffer, kept equal by the library",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Types",
    "`SoftwareManagedGPUStorage` has a host and a device buffer",
    "`CUDAManagedGPUStorage` has unified memory that CUDA synchronises",
    "`GPUStorage` has device memory and no host buffer",
)
@pytest.mark.source(
    "CUDA array interface",
    "Pointer Attributes",
    "the driver tells the context of a pointer, and whether it is host or managed memory",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    '`device="gpu"` asks for a buffer on a GPU',
)
@pytest.mark.parametrize("number", range(min(device_count(), 2)))
def test_every_buffer_is_what_its_class_says(number):
    alone = dlf.empty(3, device=("gpu", number), managed=None)
    pair = dlf.empty(3, device=("gpu", number), managed="gt4py")
    both = dlf.empty(3, device=("gpu", number), managed="cuda")
    for there in (addresses(alone)[0], addresses(pair)[0]):
        assert (attribute(MEMORY_TYPE, there), attribute(IS_MANAGED, there)) == (ON_DEVICE, 0)
        assert attribute(ORDINAL, there) == number
    assert attribute(MEMORY_TYPE, addresses(pair)[1]) == ON_HOST
    assert len(set(addresses(both))) == 1
    assert attribute(IS_MANAGED, addresses(both)[0]) == 1


@pytest.mark.parametrize("shape", [(0,), (3, 0, 4), (0, 0)])
@every_kind
def test_a_storage_of_no_elements_exists_on_a_gpu(shape, managed):
    field = dlf.zeros(shape, device="gpu", managed=managed, alignment_size=64)
    assert (field.shape, field.size, field.device_id) == (shape, 0, 0)
    assert field.__cuda_array_interface__["data"][0] == 0
    field[...] = np.zeros(shape)
    np.testing.assert_array_equal(dlf.storage(field, device=None).to_numpy(), np.zeros(shape))


@every_kind
def test_a_storage_of_no_dimensions_holds_one_number(managed):
    field = dlf.full((), 2.5, device="gpu", managed=managed)
    assert field.item() == 2.5
    field[()] = 3.5
    assert device_view(field)[()] == 3.5


@pytest.mark.parametrize(("managed", "blocks"), [(None, 1), ("gt4py", 2), ("cuda", 1)])
def test_each_block_counts_as_one_live_allocation_until_its_last_view_is_gone(managed, blocks):
    gc.collect()
    before = live_allocations()
    field = dlf.zeros((4, 5), device="gpu", managed=managed)
    assert live_allocations() == before + blocks
    view = field[1:].T
    del field
    assert live_allocations() == before + blocks
    del view
    assert live_allocations() == before


@every_kind
def test_an_error_on_the_way_leaves_no_memory(managed):
    gc.collect()
    before = live_allocations()
    with pytest.raises(ValueError, match="halo: expected"):
        dlf.zeros((4, 5), device="gpu", managed=managed, halo=(1,))
    with pytest.raises(ValueError, match="alignment_size: expected"):
        dlf.zeros((4, 5), device="gpu", managed=managed, alignment_size=12)
    with pytest.raises(TypeError):
        dlf.storage([1, None], dtype=float, device="gpu", managed=managed, layout=1)
    assert live_allocations() == before


@pytest.mark.parametrize("managed", [None, "gt4py"])
@pytest.mark.parametrize("bytes_wanted", [1 << 45, 1 << 60])
def test_more_than_the_gpu_has_is_a_memory_error_and_it_works_afterwards(managed, bytes_wanted):
    gc.collect()
    before = live_allocations()
    for make in (dlf.empty, dlf.zeros):
        with pytest.raises(MemoryError, match=str(bytes_wanted)):
            make(bytes_wanted, "uint8", device="gpu", managed=managed)
    assert live_allocations() == before
    assert (device_view(dlf.ones((3, 4), device="gpu", managed=managed)) == 1).all()


@pytest.mark.stand_in
def test_memory_is_refused_only_after_pending_frees():
    storage = dlf.zeros(1 << 20, "uint8", device="gpu", managed=None)
    del storage  # is free once the stream has come so far
    before = stats().live_bytes
    with pytest.raises(MemoryError):
        dlf.empty(1 << 45, "uint8", device="gpu", managed=None)
    assert stats().live_bytes == before - (1 << 20)


def test_more_bytes_than_an_address_counts_are_refused_before_anything_is_asked():
    with pytest.raises(ValueError, match="expected at most"):
        dlf.empty((1 << 60, 16), device="gpu")


SMALL = {"DLFIELD_FAKE_CUDA_ARENA_GIB": "1"}  # for memory of each kind


@pytest.mark.stand_in
def test_more_managed_memory_than_there_is_is_a_memory_error():
    run(
        """
        start()
        import dlfield as dlf
        try:
            dlf.zeros(1 << 31, "uint8", device="gpu", managed="cuda")
        except MemoryError as error:
            assert str(1 << 31) in str(error)
        else:
            raise AssertionError("there was memory for it")
        assert dlf.ones(5, device="gpu", managed="cuda").to_numpy().tolist() == [1] * 5
        """,
        **SMALL,
    )


@pytest.mark.stand_in
def test_a_pair_whose_half_on_the_host_does_not_fit_leaves_nothing_behind():
    run(
        """
        start()
        import dlfield as dlf
        from dlfield._core import live_allocations
        taken = made("cuMemHostAlloc", (1 << 30) - (1 << 20), 0)
        before = stats().live_bytes
        try:
            dlf.zeros(1 << 21, "uint8", device="gpu")
        except MemoryError:
            pass
        else:
            raise AssertionError("there was memory for it")
        call("cuCtxSynchronize")
        assert (stats().live_bytes, live_allocations()) == (before, 0)
        assert dlf.ones(5, device="gpu").to_numpy().tolist() == [1] * 5
        """,
        **SMALL,
    )


@pytest.mark.stand_in
def test_a_copy_without_enough_memory_leaves_source_and_device_unchanged():
    run(
        """
        start()
        import dlfield as dlf
        from dlfield._core import live_allocations
        source = dlf.full((1 << 9, 1 << 12), 7, "uint8", device="gpu", managed=None)
        other = dlf.empty((1 << 30) - (3 << 20), "uint8", device="gpu", managed=None)
        before = live_allocations()
        for work in (source.copy, source.T.copy):
            try:
                work()
            except MemoryError:
                pass
            else:
                raise AssertionError("there was memory for it")
        assert live_allocations() == before
        assert source[-1, -3:].item(2) == 7
        """,
        **SMALL,
    )


@pytest.mark.stand_in
def test_elements_further_apart_than_32_bits_count_are_found():
    """One field of more than 4 GiB, of which a few elements are touched."""
    run(
        """
        start()
        import dlfield as dlf
        size, step = (1 << 32) + 1000, (1 << 31) + 7
        field = dlf.empty(size, "uint8", device="gpu", managed=None)
        assert (field.nbytes, field.shape) == (size, (size,))
        first = field.__cuda_array_interface__["data"][0]
        for place in (0, step - 5, 2 * step - 5, size - 10):
            call("cuMemsetD8_v2", first + place, 0, 10)
        field[size - 3:] = np.array([1, 2, 3], np.uint8)
        field[1::step] = np.array([4, 5, 6], np.uint8)
        field[2::step] = dlf.storage(np.array([7, 8, 9], np.uint8), device="gpu", managed=None)
        host = lambda part: dlf.storage(part, device=None).to_numpy().tolist()
        assert host(field[:5]) == [0, 4, 7, 0, 0]
        assert host(field[step - 1:step + 4]) == [0, 0, 5, 8, 0]
        assert host(field[2 * step - 1:2 * step + 4]) == [0, 0, 6, 9, 0]
        assert host(field[-5:]) == [0, 0, 1, 2, 3]
        assert host(field[1::step]) == [4, 5, 6]
        assert host(field[2 + 2 * step::-step]) == [9, 8, 7]
        """,
        DLFIELD_FAKE_CUDA_ARENA_GIB="5",
    )


@pytest.mark.stand_in
@pytest.mark.parametrize("devices", ["1", "2"])
def test_without_memory_pools_everything_works_and_is_given_back(devices):
    run(
        """
        import os
        start()
        import dlfield as dlf
        last = int(os.environ["DLFIELD_FAKE_CUDA_DEVICES"]) - 1
        for managed in (None, "gt4py", "cuda"):
            field = dlf.storage(np.arange(12.0).reshape(3, 4), device="gpu", managed=managed)
            other = dlf.zeros((4, 3), device=("gpu", last), managed=managed, layout=(1, 0))
            other[...] = field.T
            values = dlf.storage(other, device=None).to_numpy()
            assert values.tolist() == np.arange(12.0).reshape(3, 4).T.tolist()
            other[...] = dlf.full((4, 3), 7.0, device="gpu", managed=None)  # dropped in flight
            del field, other
        call("cuCtxSynchronize")
        assert (stats().live_bytes, stats().violations) == (0, 0)
        assert stats().allocs == stats().frees
        """,
        DLFIELD_FAKE_CUDA_NO_POOLS="1",
        DLFIELD_FAKE_CUDA_DEVICES=devices,
    )


@pytest.mark.stand_in
def test_memory_is_given_back_when_its_last_view_is_gone():
    before = driver.stats().live_bytes
    for managed in KINDS:
        view = dlf.zeros((40, 50), device="gpu", managed=managed)[3:].T
        assert driver.stats().live_bytes >= before + 16_000
        del view
        call("cuCtxSynchronize")
        assert driver.stats().live_bytes == before


def free_bytes():
    call("cuCtxSynchronize")
    total = np.zeros(1, np.uint64)
    return made("cuMemGetInfo_v2", total.ctypes.data)


def test_many_rounds_need_as_much_memory_as_one():
    dlf.zeros(1 << 20, "uint8", device="gpu").to_numpy()
    before = free_bytes()
    for _ in range(50):
        dlf.zeros(1 << 20, "uint8", device="gpu").to_numpy()
    assert free_bytes() >= before - (8 << 20)  # a pool may keep some
