"""Fields in Arrow files: what they know of themselves comes back; mapped files are not copied."""

import io
import itertools
import pickle
import re
import time

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.addresses import address_of
from support.optional import library
from support.owners import frees
from support.processes import run_in_subprocess

pa = library("pyarrow")
feather = library("pyarrow.feather")
parquet = library("pyarrow.parquet")

HALO = ((1, 1), (0, 1), (1, 0))


def field(**options):
    """Make a field with every label, and with distinct values."""
    values = np.arange(60.0).reshape(5, 4, 3)
    known = {"dims": "KIJ", "halo": HALO, "default_origin": (0, 1, 1), **options}
    return dlf.storage(values, **known)


def known(storage):
    origin = getattr(storage, "default_origin", None)
    return storage.shape, storage.dtype, storage.dims, storage.halo, storage.layout, origin


def in_a_file(batch, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).get_batch(0)


def in_a_mapped_file(batch, path):
    in_a_file(batch, path)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(0)


def in_a_stream(batch, _path):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def in_a_compressed_stream(batch, _path):
    sink, options = io.BytesIO(), pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def read_whole(batch, path):
    in_a_file(batch, path)
    return pa.ipc.open_file(str(path)).read_all()


def in_a_feather_file(batch, path):
    feather.write_feather(pa.table(batch), str(path), compression="uncompressed")
    return feather.read_table(str(path), memory_map=True)


def in_a_compressed_feather_file(batch, path):
    feather.write_feather(pa.table(batch), str(path), compression="zstd")
    return feather.read_table(str(path))


def in_a_parquet_file(batch, path):
    parquet.write_table(pa.table(batch), str(path))
    return parquet.read_table(str(path))


def pickled(batch, _path):
    return pickle.loads(pickle.dumps(batch))


def with_another_name(batch, _path):
    return pa.table(batch).rename_columns(["other"])


def beside_another_column(batch, _path):
    table = pa.table(batch)
    return table.append_column("number", pa.array(range(len(table)))).select([0])


WAYS = (in_a_file, in_a_mapped_file, in_a_stream, in_a_compressed_stream, read_whole)
WAYS += (in_a_feather_file, in_a_compressed_feather_file, in_a_parquet_file, pickled)
WAYS += (with_another_name, beside_another_column)
every_way = pytest.mark.parametrize("through", WAYS)


@every_way
@pytest.mark.parametrize("layout", tuple(itertools.permutations(range(3))))
def test_a_field_comes_back_with_all_that_it_knew(through, layout, tmp_path):
    storage = field(layout=layout)
    back = dlf.as_storage(through(storage.to_arrow_batch("wind"), tmp_path / "field"))
    assert known(back) == known(storage)
    assert back.strides == storage.strides
    assert np.array_equal(back.to_numpy(), storage.to_numpy())
    assert back.readonly


@every_way
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32"])
def test_a_row_comes_back_with_all_that_it_knew(through, dtype, tmp_path):
    storage = dlf.storage(np.array([0, 1, 1, 0], dtype), dims="K", halo=((1, 2),))
    back = dlf.as_storage(through(storage.to_arrow_batch("wind"), tmp_path / "field"))
    assert known(back) == known(storage)
    assert back.to_numpy().tolist() == storage.to_numpy().tolist()


@every_way
def test_a_field_that_knows_nothing_comes_back_so(through, tmp_path):
    storage = dlf.storage(np.arange(6.0).reshape(3, 2))
    back = dlf.as_storage(through(storage.to_arrow_batch("a"), tmp_path / "field"))
    assert known(back) == known(storage)
    assert back.dims is None


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
        lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))
    ),
    st.lists(st.text(), min_size=4, max_size=4, unique=True),
)
def test_any_names_come_back_from_a_stream(shape_and_layout, names):
    shape, layout = shape_and_layout
    storage = dlf.zeros(shape, layout=layout, dims=names[: len(shape)])
    back = dlf.as_storage(in_a_stream(storage.to_arrow_batch("a"), None))
    assert (back.shape, back.dims) == (storage.shape, storage.dims)


# --- without a copy ------------------------------------------------------------------------------


def mapped_at(path):
    """Return where a file is mapped in this process: pairs of a first and a last address."""
    with open("/proc/self/maps") as maps:
        lines = [line for line in maps if line.rstrip().endswith(str(path))]
    return [[int(one, 16) for one in re.split("[- ]", line)[:2]] for line in lines]


def is_let_go(path):
    """Return whether a file is mapped no more. A thread of pyarrow may hold it a moment longer."""
    for _ in range(100):
        if not mapped_at(path):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)])
def test_a_field_of_a_mapped_file_lies_in_the_file(layout, tmp_path):
    path = tmp_path / "field.arrow"
    batch = in_a_mapped_file(field(layout=layout).to_arrow_batch("wind"), path)
    storage = dlf.as_storage(batch)
    del batch
    start = address_of(storage)
    assert any(low <= start and start + storage.nbytes <= high for low, high in mapped_at(path))
    assert storage.to_numpy()[4, 3, 2] == 59.0


def test_a_mapped_file_is_released_with_its_last_view(tmp_path):
    path = tmp_path / "field.arrow"
    storage = dlf.as_storage(in_a_mapped_file(field().to_arrow_batch("wind"), path))
    view = storage[1:, 2]
    del storage
    assert mapped_at(path)
    del view
    assert is_let_go(path)


def test_memory_of_a_read_file_is_released_with_its_last_view(tmp_path):
    batch = in_a_stream(field().to_arrow_batch("wind"), None)
    told = frees(batch)
    storage = dlf.as_storage(batch)
    del batch
    assert told == ["freed"]  # the object alone: the storage holds what was under it
    assert storage.to_numpy()[4, 3, 2] == 59.0


def test_a_field_of_a_mapped_file_cannot_be_written(tmp_path):
    path = tmp_path / "field.arrow"
    storage = dlf.as_storage(in_a_mapped_file(field().to_arrow_batch("wind"), path))
    with pytest.raises(BufferError, match="read-only"):
        storage[...] = 0.0
    dlf.storage(storage)[...] = 0.0  # a copy can


# --- parts, and what does not come back ----------------------------------------------------------


@pytest.mark.parametrize(("start", "length"), [(1, 2), (0, 4), (4, 1), (2, 0)])
def test_a_part_of_a_batch_knows_its_names_and_no_halo(start, length):
    whole = field()
    storage = dlf.as_storage(whole.to_arrow_batch("wind").slice(start, length))
    assert (storage.dims, storage.halo) == (("K", "I", "J"), None)
    assert np.array_equal(storage.to_numpy(), whole.to_numpy()[start : start + length])


def test_a_part_along_an_axis_that_is_not_the_first_is_one_along_that_axis():
    whole = field(layout=(2, 1, 0))
    storage = dlf.as_storage(whole.to_arrow_batch("wind").slice(1, 2))
    assert (storage.shape, storage.dims, storage.halo) == ((5, 4, 2), ("K", "I", "J"), None)
    assert np.array_equal(storage.to_numpy(), whole.to_numpy()[:, :, 1:3])


def test_a_slice_of_everything_is_the_whole():
    assert dlf.as_storage(field().to_arrow_batch("wind").slice(0, 5)).halo == HALO


def test_a_part_of_a_batch_stays_one_in_a_file(tmp_path):
    batch = in_a_file(field().to_arrow_batch("wind").slice(1, 3), tmp_path / "field")
    storage = dlf.as_storage(batch)
    assert (storage.shape, storage.dims, storage.halo) == ((3, 4, 3), ("K", "I", "J"), None)


def test_a_part_does_not_begin_where_the_whole_did():
    storage = dlf.as_storage(field().to_arrow_batch("wind").slice(1, 3))
    assert not hasattr(storage, "default_origin")


def test_fields_in_one_file_are_distinguished_by_their_columns(tmp_path):
    wind, rain = field(layout=(0, 1, 2)), dlf.ones((5, 2), dims=("K", "x"), halo=(1, 0))
    columns = [(one.to_arrow_batch(name)) for name, one in (("wind", wind), ("rain", rain))]
    schema = pa.schema([batch.schema.field(0) for batch in columns])
    both = pa.record_batch([batch.column(0) for batch in columns], schema=schema)
    back = in_a_file(both, tmp_path / "fields")
    with pytest.raises(BufferError, match="'wind', 'rain'"):
        dlf.as_storage(back)
    for name, storage in (("wind", wind), ("rain", rain)):
        assert known(dlf.as_storage(back.select([name]))) == known(storage)


def test_several_batches_in_a_file_are_put_together_first(tmp_path):
    batch = field().to_arrow_batch("wind")
    path = str(tmp_path / "field")
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    table = pa.ipc.open_file(path).read_all()
    with pytest.raises(BufferError, match="combine_chunks"):
        dlf.as_storage(table)
    storage = dlf.as_storage(table.combine_chunks())
    assert (storage.shape, storage.dims) == ((10, 4, 3), ("K", "I", "J"))


def test_an_array_alone_has_no_place_for_halo_and_first_name(tmp_path):
    array = field().to_arrow()
    batch = in_a_file(pa.record_batch([array], ["wind"]), tmp_path / "field")
    for one in (array, batch):
        storage = dlf.as_storage(one)
        assert storage.dims == ("dim_0", "I", "J")
        assert storage.halo == ((0, 0),) * 3
        assert not hasattr(storage, "default_origin")


def test_an_unregistered_type_keeps_its_names(tmp_path):
    path = tmp_path / "field"
    in_a_file(field().to_arrow_batch("wind"), path)
    pa.unregister_extension_type("arrow.fixed_shape_tensor")
    try:
        batch = pa.ipc.open_file(str(path)).get_batch(0)
        storage = dlf.as_storage(batch)
    finally:
        pa.register_extension_type(pa.fixed_shape_tensor(pa.float64(), [1]))
    assert known(storage) == known(field())


# --- stencils ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)])
def test_a_stencil_reads_a_field_of_a_mapped_file(compiled, layout, tmp_path):
    run = dlf.bind(compiled("skewed", "gt:cpu_ifirst"))
    values = np.arange(120.0).reshape(5, 6, 4)
    halo = ((0, 1), (2, 0), 0)
    storage = dlf.storage(values, dims="IJK", halo=halo, layout=layout)
    batch = in_a_mapped_file(storage.to_arrow_batch("wind"), tmp_path / "field")
    out = np.full(values.shape, -1.0)
    run(inp=batch, out=out)
    expected = np.full(values.shape, -1.0)
    run(inp=storage, out=expected)
    assert np.array_equal(out, expected)
    assert out.max() > 0


def test_a_stencil_does_not_write_into_a_field_of_arrow(compiled):
    run = dlf.bind(compiled("skewed", "numpy"))
    batch = dlf.zeros((5, 6, 4), dims="IJK", halo=((0, 1), (2, 0), 0)).to_arrow_batch("wind")
    with pytest.raises(BufferError, match="got immutable Arrow data"):
        run(inp=dlf.ones((5, 6, 4), dims="IJK"), out=batch)


def test_a_stream_may_be_filled_by_threads_that_need_python(tmp_path):
    library("fsspec")
    path = str(tmp_path / "t.parquet")
    library("pyarrow.parquet").write_table(pa.table({"x": [1.0, 2.0, 3.0]}), path)
    printed = run_in_subprocess(
        f"""
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        import dlfield as dlf
        import pyarrow.dataset as ds
        import pyarrow.fs as pf
        from fsspec.implementations.local import LocalFileSystem

        files = pf.PyFileSystem(pf.FSSpecHandler(LocalFileSystem()))  # asked on pyarrow's threads
        table = ds.dataset({path!r}, filesystem=files, format="parquet").scanner().to_reader()
        print(dlf.as_storage(table).to_numpy())
        """
    )
    assert printed == "[1. 2. 3.]"


# --- without rows ------------------------------------------------------------------------------


def test_a_file_without_rows_comes_back_with_its_names(tmp_path):
    batch = dlf.zeros((0, 3), dims="IJ").to_arrow_batch("x")
    with pa.ipc.new_file(tmp_path / "none.arrow", batch.schema) as writer:
        writer.write(batch)
    back = dlf.as_storage(pa.ipc.open_file(tmp_path / "none.arrow").read_all())
    assert (back.shape, back.dims) == ((0, 3), ("I", "J"))


def test_a_column_without_chunks_has_no_elements():
    made = dlf.as_storage(pa.chunked_array([], pa.int16()))
    assert (made.shape, made.dtype) == ((0,), np.int16)


def test_a_reader_that_was_read_has_not_just_no_rows():
    batch = dlf.ones((2, 3), dims="IJ").to_arrow_batch("x")
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    assert dlf.as_storage(reader).shape == (2, 3)
    with pytest.raises(BufferError, match="the stream is empty, or was read already"):
        dlf.as_storage(reader)
