"""Many copies in one call, beside NumPy's assignments, and what a batch refuses."""

import gc
import threading
import weakref

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import CopyBatch
from hypothesis import given
from hypothesis import strategies as st

DTYPES = ["uint8", "float16", "float32", "float64", "complex128"]


@pytest.fixture
def threads():
    before = dlf.get_num_threads()
    yield dlf.set_num_threads
    dlf.set_num_threads(before)


def random_array(shape, dtype, random):
    """Return an array of random bytes, which are compared as such."""
    return np.frombuffer(
        random.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype
    ).reshape(shape)


@st.composite
def sides(draw, shape):
    """Draw a memory order for a shape: the extents of a block, and the view of it."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2, -3])) for _ in shape]
    before, after = ([draw(st.integers(0, 2)) for _ in shape] for _ in range(2))
    spans = [max(n - 1, 0) * abs(step) + 1 for n, step in zip(shape, steps, strict=True)]
    extents = [a + span + b for a, span, b in zip(before, spans, after, strict=True)]

    def view(block):
        key = [
            range(first, first + span)[::step][:n]
            for first, span, step, n in zip(before, spans, steps, shape, strict=True)
        ]
        slices = tuple(slice(k[0], _stop(k), k.step) if len(k) else slice(0, 0) for k in key)
        return block.transpose(np.argsort(order))[(*slices, ...)]

    return [extents[axis] for axis in order], view


def _stop(key):
    return None if key[-1] + key.step < 0 else key[-1] + key.step


@st.composite
def copies(draw):
    """Draw a type and both sides of a copy."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 9, 33]), max_size=4))
    while np.prod(shape) > 3000:
        shape.pop()
    return draw(st.sampled_from(DTYPES)), draw(sides(shape)), draw(sides(shape))


@given(st.lists(copies(), max_size=6), st.integers(0, 2**32))
def test_a_batch_copies_what_assignments_of_numpy_copy_and_nothing_else(batch, seed):
    random = np.random.default_rng(seed)
    sources, targets, found, expected = [], [], [], []
    for dtype, (extents, source_view), (target_extents, target_view) in batch:
        source = source_view(random_array(extents, dtype, random))
        block = random_array(target_extents, dtype, random)
        found.append(block.copy())
        expected.append(block.copy())
        target_view(expected[-1])[...] = source
        sources.append(dlf.as_storage(source))
        targets.append(dlf.as_storage(target_view(found[-1])))
    made = CopyBatch(sources, targets)
    made.run()
    assert [block.tobytes() for block in found] == [block.tobytes() for block in expected]


@pytest.mark.parametrize("layout", ["IJK", "KJI"])
def test_the_halo_of_a_field_arrives_in_the_halo_of_its_neighbour(layout):
    h, order = 3, tuple(layout.index(dim) for dim in "IJK")
    field = dlf.empty((17, 18, 5), halo=(h, h, 0), layout=order, dims="IJK")
    field.to_numpy()[...] = np.random.default_rng(1).random(field.shape)
    inner = [np.s_[h : 2 * h], np.s_[h:-h], np.s_[-2 * h : -h]]
    outer = [np.s_[-h:], np.s_[h:-h], np.s_[:h]]
    both = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    faces = [field[inner[i], inner[j]] for i, j in both]
    buffers = [dlf.empty_like(face) for face in faces]
    pack, unpack = (
        CopyBatch(faces, buffers),
        CopyBatch(buffers, [field[outer[i], outer[j]] for i, j in both]),
    )
    for _ in range(3):  # planned once
        field.domain_view.to_numpy()[...] += 1
        expected = np.pad(field.domain_view.to_numpy(), ((h, h), (h, h), (0, 0)), mode="wrap")
        pack.run()
        unpack.run()
        assert np.array_equal(field, expected)


def test_what_is_written_to_the_sources_between_two_runs_arrives():
    source, target = np.zeros(5), dlf.zeros((5,))
    batch = CopyBatch([dlf.as_storage(source)], [target])
    for number in (1, 2):
        source[...] = number
        batch.run()
        assert target.to_numpy().tolist() == [number] * 5


def test_dimensions_go_by_name_and_without_names_by_position():
    source = dlf.as_storage(np.arange(4.0).reshape(2, 2), dims="IJ")
    named, unnamed = dlf.zeros((2, 2), dims="JI"), dlf.zeros((2, 2))
    CopyBatch([source, source], [named, unnamed]).run()
    assert np.array_equal(named, [[0, 2], [1, 3]])
    assert np.array_equal(unnamed, [[0, 1], [2, 3]])


@pytest.mark.parametrize("number", [1, 3])
def test_a_large_batch_of_unequal_copies_is_shared_out_among_threads(threads, number):
    threads(number)
    random = np.random.default_rng(5)
    shapes = [(3, 5), (700, 1030), (1,), (41, 43, 47), (0, 3), (1 << 20, 3)]
    sources = [random.random(shape) for shape in shapes]
    targets = [dlf.zeros(shape, layout=range(len(shape))[::-1]) for shape in shapes]
    CopyBatch([dlf.as_storage(one) for one in sources], targets).run()
    assert all(map(np.array_equal, targets, sources))


def test_a_batch_of_nothing_does_nothing():
    CopyBatch([], []).run()
    empty = dlf.zeros((0, 3))
    CopyBatch([empty, empty], [empty, dlf.zeros((0, 3))]).run()


def test_one_source_fills_several_targets():
    source, targets = dlf.ones((3,)), [dlf.zeros((3,)) for _ in range(3)]
    CopyBatch([source] * 3, targets).run()
    assert [target.to_numpy().sum() for target in targets] == [3, 3, 3]


def test_a_batch_keeps_memory_alive_and_lets_go_of_it():
    class Block(np.ndarray):
        pass

    source, target = np.ones(3).view(Block), dlf.zeros((3,))
    gone = weakref.ref(source)
    batch = CopyBatch([dlf.as_storage(source)], [target])
    del source
    gc.collect()
    batch.run()
    assert target.to_numpy().sum() == 3
    assert gone() is not None
    del batch
    gc.collect()
    assert gone() is None


# ── threads ──


def test_of_two_runs_at_once_one_copies_and_the_other_is_refused_or_comes_later():
    source, target = dlf.ones((300, 400)), dlf.zeros((300, 400), layout=(1, 0))
    batch, ran, refused = CopyBatch([source], [target]), [], []

    def run():
        for _ in range(200):
            try:
                batch.run()
                ran.append(1)
            except BufferError as error:
                refused.append(str(error))

    started = [threading.Thread(target=run) for _ in range(4)]
    [thread.start() for thread in started]
    [thread.join() for thread in started]
    assert ran
    assert len(ran) + len(refused) == 800
    assert all(text.startswith("CopyBatch: target 0: ") for text in refused)
    assert np.array_equal(target, source)


def test_batches_with_the_same_sources_run_at_the_same_time():
    source, raised = dlf.ones((300, 400)), []
    targets = [dlf.zeros((300, 400)) for _ in range(4)]

    def run(batch):
        try:
            for _ in range(50):
                batch.run()
        except BufferError as error:
            raised.append(error)

    batches = [CopyBatch([source], [target]) for target in targets]
    started = [threading.Thread(target=run, args=(batch,)) for batch in batches]
    [thread.start() for thread in started]
    [thread.join() for thread in started]
    assert not raised
    assert all(np.array_equal(target, source) for target in targets)


# ── refusals ──


def refused(kind, text, sources, targets):
    with pytest.raises(kind, match=text) as caught:
        CopyBatch(sources, targets)
    assert type(caught.value) is kind


def test_another_number_of_targets_is_refused():
    one = dlf.zeros((3,))
    refused(
        ValueError, "one target for each source, got 2 sources and 1 targets", [one, one], [one]
    )


def test_another_dtype_is_refused_by_number():
    made = [dlf.zeros((3,)) for _ in range(3)]
    other = dlf.zeros((3,), "float32")
    text = "CopyBatch: source 1: expected float64, the type of its target, got float32; convert"
    refused(ValueError, text, [made[0], other], made[1:])


@pytest.mark.parametrize("shape", [(4, 3), (1, 4), (4,), (3, 4, 1), ()])
def test_another_shape_is_refused_and_not_broadcast(shape):
    text = r"CopyBatch: source 0: expected the shape \[3, 4\] of its target, got \["
    refused(ValueError, text, [dlf.zeros(shape)], [dlf.zeros((3, 4))])


def test_names_that_do_not_belong_together_are_refused():
    source, target = dlf.zeros((2, 3), dims="IJ"), dlf.zeros((2, 3), dims="IK")
    refused(ValueError, r"CopyBatch: source 0: dims: expected names among", [source], [target])


def test_a_read_only_target_is_refused():
    array = np.zeros(3)
    array.flags.writeable = False
    text = "CopyBatch: target 0: expected a writable storage, got a read-only one"
    refused(BufferError, text, [dlf.zeros((3,))], [dlf.as_storage(array)])
    CopyBatch([dlf.as_storage(array)], [dlf.zeros((3,))]).run()


@pytest.mark.parametrize(
    ("source", "target"),
    [(np.s_[:3], np.s_[:3]), (np.s_[:3], np.s_[2:5]), (np.s_[::2], np.s_[2:5])],
)
def test_a_target_that_shares_elements_with_a_source_is_refused(source, target):
    field, other = dlf.zeros((5,)), dlf.zeros((3,))
    text = "share no element .*, got source 0 and target 1 that overlap; put them into batches"
    refused(BufferError, text, [field[source], other], [dlf.zeros((3,)), field[target]])


def test_one_storage_as_two_targets_is_refused_unless_the_parts_are_disjoint():
    field, one = dlf.zeros((4, 5)), dlf.ones((4, 1))
    refused(BufferError, "got target 0 and target 1 that", [one, one], [field[:, :1], field[:, :1]])
    CopyBatch([one, one], [field[:, :1], field[:, 3:4]]).run()
    assert field.to_numpy().sum(axis=0).tolist() == [4, 0, 0, 4, 0]


def test_copies_within_one_field_need_no_buffer_if_the_parts_are_disjoint():
    field = dlf.as_storage(np.arange(6.0))
    CopyBatch([field[4:5], field[1:2]], [field[:1], field[5:]]).run()
    assert field.to_numpy().tolist() == [4, 1, 2, 3, 4, 1]


@pytest.mark.parametrize("wrong", [np.zeros(3), None, "a"], ids=["array", "None", "text"])
def test_what_is_no_storage_is_refused_with_the_function_that_makes_one(wrong):
    one = dlf.zeros((3,))
    refused(TypeError, "targets: expected a sequence of storages, got .*as_storage", [one], [wrong])


@pytest.mark.parametrize("wrong", [None, 3, {"a": 1}], ids=["None", "int", "dict"])
def test_what_is_no_sequence_is_refused(wrong):
    refused(TypeError, "sources: expected a sequence of storages, got", wrong, [])
