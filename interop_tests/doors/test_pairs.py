"""Every library as a producer, through a storage, into every library as a consumer.

What a pair does is a cell of docs/protocols.md. Pairs that do not simply share are listed in
`tests/support/libraries/deviations.toml`; that they still behave so is asserted here, not skipped.
"""

import subprocess
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.libraries.counted import PRODUCERS
from support.libraries.deviations import DEVIATIONS, IMMUTABLE, Cell
from support.libraries.pairs import PAIRS, REFUSALS, Linked, pairs_that
from support.libraries.sides import dask_array
from support.libraries.table_of_pairs import DOCUMENT, with_table
from support.libraries.words import chunk_of
from support.optional import library

SHARING = (Cell.SHARED, Cell.READ_ONLY, Cell.UNGUARDED)


def each(pairs):
    return pytest.mark.parametrize("pair", pairs, ids=str)


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "a storage can wrap memory from another allocator without copying",
)
@each(pairs_that(*SHARING))
def test_producer_and_consumer_name_the_same_address(pair):
    given, taken = Linked(pair).addresses()
    assert given == taken


@each([pair for pair in pairs_that(*SHARING) if not pair.producer.readonly])
def test_a_write_by_the_producer_is_seen_by_the_consumer(pair):
    linked = Linked(pair)
    assert linked.write_as_producer(7.0)
    assert linked.values() == (7.0, 7.0)


@each(pairs_that(Cell.SHARED))
def test_a_write_by_the_consumer_is_seen_by_the_producer(pair):
    linked = Linked(pair)
    assert linked.write_as_consumer(7.0)
    assert linked.values() == (7.0, 7.0)


@each(pairs_that(Cell.READ_ONLY))
def test_a_consumer_of_constant_memory_refuses_to_write_it(pair):
    linked = Linked(pair)
    assert not linked.write_as_consumer(7.0)
    assert linked.values() == (0.0, 0.0)


@each(pairs_that(Cell.UNGUARDED))
def test_a_consumer_known_to_ignore_the_flag_writes_constant_memory(pair):
    linked = Linked(pair)
    assert linked.storage.readonly
    assert linked.write_as_consumer(7.0)
    assert linked.values() == (7.0, 7.0)


@each(pairs_that(*SHARING))
def test_the_memory_is_given_up_once_and_not_before_the_consumer_is_gone(pair):
    assert pair.deletions() == (0, 1)


@each(pairs_that(Cell.COPIES))
def test_a_consumer_known_to_copy_has_memory_of_its_own(pair):
    given, taken = Linked(pair).addresses()
    assert given != taken


@each([pair for pair in pairs_that(Cell.COPIES) if not pair.producer.readonly])
def test_a_write_by_the_producer_is_not_seen_in_a_copy(pair):
    linked = Linked(pair)
    assert linked.write_as_producer(7.0)
    assert linked.values() == (7.0, 0.0)


@each(pairs_that(Cell.COPIES))
def test_a_write_to_a_copy_is_not_seen_by_the_producer(pair):
    linked = Linked(pair)
    assert linked.write_as_consumer(7.0)
    assert linked.values() == (0.0, 7.0)


@each(pairs_that(Cell.COPIES))
def test_a_copy_keeps_no_memory_of_the_producer(pair):
    assert pair.deletions() == (1, 1)


@each(pairs_that(Cell.REFUSED))
def test_a_consumer_that_would_write_constant_memory_is_refused(pair):
    storage = pair.producer.storage(pair.producer.own())
    with pytest.raises(REFUSALS, match=pair.deviation.says):
        pair.consumer.take(storage)


@each(pairs_that(Cell.REFUSED))
def test_a_refused_consumer_keeps_no_memory_of_the_producer(pair):
    assert pair.deletions() == (1, 1)


@each(PAIRS)
def test_the_producer_has_as_many_references_as_before(pair):
    before, after = pair.references()
    assert before == after


@pytest.mark.parametrize(
    "producer", [side for side in PRODUCERS if side.readonly], ids=lambda side: side.library.name
)
def test_an_immutable_producer_refuses_writes_and_so_does_its_storage(producer):
    array = producer.own()
    assert not producer.library.writes(array, 7.0)
    assert producer.storage(array).readonly


def test_the_immutable_producers_are_those_that_the_deviations_speak_of():
    assert {side.library.name for side in PRODUCERS if side.readonly} == IMMUTABLE


@pytest.mark.parametrize("known", DEVIATIONS, ids=lambda known: known.link)
def test_every_known_deviation_is_the_reason_for_a_pair(known):
    assert any(pair.deviation is known for pair in PAIRS)


def test_numba_is_known_to_write_read_only_memory_through_flat():
    @library("numba").njit
    def write(array):
        array.flat[0] = 7.0

    array = np.zeros(3)
    array.flags.writeable = False
    write(dlf.as_storage(array).to_numpy())
    assert array[0] == 7.0


def test_pyarrow_is_known_to_end_the_process_that_would_write_a_read_only_buffer():
    library("pyarrow")
    code = "import dlfield, pyarrow as pa; pa.output_stream(pa.py_buffer(dlfield.as_storage(b'x')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode < 0
    assert "mutable buffer" in done.stderr


def test_polars_is_known_to_give_a_series_that_is_written_memory_of_its_own():
    series = library("polars").Series([0.0, 0.0])
    storage = dlf.as_storage(series)
    series[0] = 7.0
    assert (series[0], storage.to_numpy()[0]) == (7.0, 0.0)


def test_an_image_is_known_to_arrive_as_a_copy_unless_it_comes_by_arrow():
    image = library("PIL.Image").new("L", (4, 3))
    copy, shared = dlf.as_storage(image), dlf.as_storage(library("pyarrow").array(image))
    image.putpixel((0, 0), 7)
    assert (copy.to_numpy()[0, 0], shared.to_numpy()[0]) == (0, 7)


IMAGES = {
    "frombuffer": lambda Image, storage: Image.frombuffer("L", (4, 3), storage, "raw", "L", 0, 1),
    "fromarray": lambda Image, storage: Image.fromarray(storage.to_numpy()),
    "fromarrow": lambda Image, storage: Image.fromarrow(
        dlf.as_storage(storage.to_numpy().ravel()), "L", (4, 3)
    ),
}


@pytest.mark.parametrize("make", IMAGES.values(), ids=IMAGES)
def test_an_image_is_known_to_share_bytes_until_a_pixel_is_put(make):
    storage = dlf.zeros((3, 4), dtype="uint8")
    image = make(library("PIL.Image"), storage)
    storage[0, 0] = 7
    assert image.getpixel((0, 0)) == 7
    image.putpixel((0, 0), 8)
    storage[0, 1] = 9
    assert (image.getpixel((0, 0)), image.getpixel((1, 0))) == (8, 0)
    assert storage.to_numpy()[0].tolist() == [7, 9, 0, 0]


def test_an_image_of_a_storage_itself_is_a_copy_without_padding():
    storage = dlf.storage(np.arange(40, dtype="uint8").reshape(5, 8))[:, 1:7]
    image = library("PIL.Image").fromarray(storage)
    storage[0, 0] = 99
    assert (image.mode, image.size, image.getpixel((0, 0))) == ("L", (6, 5), 1)
    assert np.array_equal(np.asarray(image)[1:], storage.to_numpy()[1:])


def test_an_image_of_floats_is_known_to_be_shared_by_arrow_alone():
    Image = library("PIL.Image")
    storage = dlf.zeros(12, dtype="float32")
    copy = Image.fromarray(storage.to_numpy().reshape(3, 4))
    shared = Image.fromarrow(storage, "F", (4, 3))
    storage[0] = 7.0
    assert (copy.getpixel((0, 0)), shared.getpixel((0, 0))) == (0.0, 7.0)


def test_dask_is_known_to_copy_what_it_computes_and_not_its_chunk():
    storage = dlf.zeros(3)
    array = dask_array(storage)
    assert address_of(array.compute()) != address_of(storage)
    assert chunk_of(array) is storage


def test_the_document_says_what_every_pair_does_now():
    document = DOCUMENT.read_text("utf-8")
    assert with_table(document) == document
