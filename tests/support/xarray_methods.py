"""What xarray's own methods make of a DataArray around a storage, whole and in chunks.

Each is called around a storage and around the same values in NumPy. The test of the table compares
the results; `make pages` writes the table of what they are into docs/xarray.md.
"""

import asyncio
import functools
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import dlfield as dlf
import numpy as np

from support.function_tables import between_marks
from support.optional import library

xr = library("xarray")
pd = library("pandas")

DOCUMENT = Path(__file__).parents[2] / "docs" / "xarray.md"
#: Accessors, and what makes a DataArray of something else.
OTHERS = {"dt", "plot", "str", "from_dict", "from_iris", "from_series"}
#: Methods that need libraries which the tests do not have: bottleneck, numbagg, iris.
LEFT_OUT = {"bfill", "ffill", "rank", "rolling_exp", "to_iris"}


def dated(a, calendar="standard"):
    dates = xr.date_range("2000-01-01", periods=4, calendar=calendar)
    return a.rename(I="time").assign_coords(time=dates)


def into_file(write):
    with tempfile.TemporaryDirectory() as folder:
        return write(Path(folder) / "array")


def written(a, **options):
    def write(path):
        a.to_netcdf(path, engine="h5netcdf", **options)
        return xr.load_dataarray(path, engine="h5netcdf")

    return into_file(write)


def zarred(a):
    def write(path):
        a.rename("a").to_zarr(path)
        return xr.open_zarr(path)["a"].load()

    return into_file(write)


def row(a):
    return a.isel(I=0)


def stacked(a):
    return a.stack(z=("I", "J"))


def profile(a):
    """Return weights of NumPy."""
    return xr.DataArray(np.arange(1.0, 1 + a.sizes["J"]), dims="J")


def line(x, slope):
    return slope * x


_REDUCED = ("all any count max mean median min prod std sum var", "cumprod cumsum")
CALLS = {
    **{
        name: functools.partial(lambda name, a: getattr(a, name)("J"), name)
        for names in _REDUCED
        for name in names.split()
    },
    "argmax": lambda a: (a.fillna(0).argmax("J"), a.fillna(0).argmax(["J", "I"])),
    "argmin": lambda a: (a.fillna(0).argmin("J"), a.fillna(0).argmin(["J", "I"])),
    "argsort": lambda a: a.argsort(),
    "as_numpy": lambda a: a.as_numpy(),
    "assign_attrs": lambda a: a.assign_attrs(units="K"),
    "assign_coords": lambda a: a.assign_coords(K=1.0),
    "astype": lambda a: a.astype("float32"),
    "broadcast_equals": lambda a: a.broadcast_equals(a.copy()),
    "broadcast_like": lambda a: row(a).broadcast_like(a),
    "chunk": lambda a: a.chunk(J=3),
    "clip": lambda a: a.clip(1, profile(a)),
    "close": lambda a: a.copy().close(),
    "coarsen": lambda a: a.coarsen(J=2).mean(),
    "combine_first": lambda a: a.combine_first(a.fillna(0) + 1),
    "compute": lambda a: a.compute(),
    "conj": lambda a: a.conj(),
    "conjugate": lambda a: a.conjugate(),
    "convert_calendar": lambda a: dated(a).convert_calendar("noleap"),
    "copy": lambda a: a.copy(),
    "cumulative": lambda a: a.cumulative("J").sum(),
    "cumulative_integrate": lambda a: a.cumulative_integrate("J"),
    "curvefit": lambda a: a.fillna(0).curvefit("J", line)["curvefit_coefficients"],
    "diff": lambda a: a.diff("J"),
    "differentiate": lambda a: a.differentiate("J"),
    "dot": lambda a: (a.dot(a), a.dot(profile(a))),
    "drop": lambda a: a.drop_vars("I").drop_attrs(),
    "drop_attrs": lambda a: a.drop_attrs(),
    "drop_duplicates": lambda a: a.assign_coords(I=[0, 0, 1, 1]).drop_duplicates("I"),
    "drop_encoding": lambda a: a.drop_encoding(),
    "drop_indexes": lambda a: a.drop_indexes("I"),
    "drop_isel": lambda a: a.drop_isel(J=[1, 2]),
    "drop_sel": lambda a: a.drop_sel(J=[1.0, 2.0]),
    "drop_vars": lambda a: a.drop_vars("I"),
    "dropna": lambda a: a.dropna("J"),
    "equals": lambda a: a.equals(a.copy()),
    "expand_dims": lambda a: a.expand_dims("K"),
    "fillna": lambda a: a.fillna(profile(a)),
    "get_axis_num": lambda a: a.get_axis_num("J"),
    "get_index": lambda a: a.get_index("J"),
    "groupby": lambda a: (
        a.assign_coords(I=[0, 0, 1, 1]).groupby("I").mean(),
        a.groupby("J") - row(a),
    ),
    "groupby_bins": lambda a: a.groupby_bins("J", [-1, 2, 6]).sum(),
    "head": lambda a: a.head(J=2),
    "identical": lambda a: a.identical(a.copy()),
    "idxmax": lambda a: a.idxmax("J"),
    "idxmin": lambda a: a.idxmin("J"),
    "integrate": lambda a: a.integrate("J"),
    "interp": lambda a: a.interp(J=[0.5, 1.5]),
    "interp_calendar": lambda a: dated(a, "noleap").interp_calendar(dated(a).time),
    "interp_like": lambda a: a.interp_like(xr.DataArray(np.zeros(2), coords={"J": [0.5, 1.5]})),
    "interpolate_na": lambda a: a.interpolate_na("J"),
    "isel": lambda a: (a.isel(I=0), a.isel(J=slice(1, None, 2)), a.isel(J=[0, 2])),
    "isin": lambda a: a.isin([1, 2]),
    "isnull": lambda a: a.isnull(),
    "item": lambda a: a[0, 1].item(),
    "load": lambda a: a.copy().load(),
    "load_async": lambda a: asyncio.run(a.copy().load_async()),
    "map_blocks": lambda a: a.map_blocks(lambda block: block + 1, template=a),
    "notnull": lambda a: a.notnull(),
    "pad": lambda a: (a.pad(J=1), a.pad(J=(1, 2), mode="edge")),
    "persist": lambda a: a.persist(),
    "pipe": lambda a: a.pipe(lambda one: one * 2),
    "polyfit": lambda a: a.fillna(0).polyfit("J", 1)["polyfit_coefficients"],
    "quantile": lambda a: (
        a.chunk(J=-1).quantile([0.25, 0.5], "J") if a.chunks else a.quantile([0.25, 0.5], "J")
    ),
    "query": lambda a: a.rename("a").query(J="J > 1"),
    "reduce": lambda a: a.reduce(np.max, "J"),
    "reindex": lambda a: a.reindex(J=[1.0, 7.0]),
    "reindex_like": lambda a: a.reindex_like(a.isel(J=[2, 1])),
    "rename": lambda a: a.rename(J="x"),
    "reorder_levels": lambda a: stacked(a).reorder_levels(z=["J", "I"]),
    "resample": lambda a: dated(a).resample(time="2D").mean(),
    "reset_coords": lambda a: a.assign_coords(K=1.0).reset_coords("K", drop=True),
    "reset_encoding": lambda a: a.drop_encoding(),
    "reset_index": lambda a: a.reset_index("I"),
    "roll": lambda a: a.roll(J=2),
    "rolling": lambda a: (
        a.rolling(J=2).mean(),
        a.rolling(J=3, min_periods=1, center=True).median(),
        a.rolling(J=3).construct("window"),
    ),
    "round": lambda a: a.round(1),
    "searchsorted": lambda a: row(a).fillna(0).cumsum().searchsorted(2.5),
    "sel": lambda a: (a.sel(J=2.0), a.sel(J=[1.0, 2.0]), a.sel(J=slice(1, 3))),
    "set_close": lambda a: a.copy().set_close(lambda: None),
    "set_index": lambda a: a.assign_coords(n=("I", list("abcd"))).set_index(I="n"),
    "set_xindex": lambda a: a.assign_coords(n=("I", list("abcd"))).set_xindex("n"),
    "shift": lambda a: a.shift(J=1),
    "sortby": lambda a: a.sortby("J", ascending=False),
    "squeeze": lambda a: a.isel(I=slice(1)).squeeze(),
    "stack": lambda a: (stacked(a), a.stack(z=("J", "I"))),
    "swap_dims": lambda a: a.assign_coords(n=("I", list("abcd"))).swap_dims(I="n"),
    "tail": lambda a: a.tail(J=2),
    "thin": lambda a: a.thin(J=2),
    "to_dask_dataframe": lambda a: a.rename("a").to_dask_dataframe().compute(),
    "to_dataframe": lambda a: a.to_dataframe("a"),
    "to_dataset": lambda a: (a.to_dataset(name="a"), a.to_dataset("I")),
    "to_dict": lambda a: a.to_dict(),
    "to_index": lambda a: a.J.to_index(),
    "to_masked_array": lambda a: a.to_masked_array().filled(-1),
    "to_netcdf": written,
    "to_numpy": lambda a: a.to_numpy(),
    "to_pandas": lambda a: a.to_pandas(),
    "to_series": lambda a: a.to_series(),
    "to_unstacked_dataset": lambda a: (
        xr.Dataset({"a": a, "b": a}).to_stacked_array("z", ["I"]).to_unstacked_dataset("z")
    ),
    "to_zarr": zarred,
    "transpose": lambda a: a.transpose("J", "I"),
    "unify_chunks": lambda a: a.unify_chunks(),
    "unstack": lambda a: stacked(a).unstack("z"),
    "weighted": lambda a: (
        a.weighted(profile(a)).mean(),
        a.weighted(profile(a)).sum("J"),
        a.weighted(a.fillna(0)).std("J"),
    ),
    "where": lambda a: (a.where(a > 1), a.where(profile(a) > 2), a.where(a > 1, profile(a))),
}


def methods():
    """Return the names of xarray's public methods of a DataArray."""
    names = [name for name in dir(xr.DataArray) if not name.startswith("_")]
    return [name for name in names if callable(getattr(xr.DataArray, name)) and name not in OTHERS]


# --- calls ---------------------------------------------------------------------------------------


def example():
    """Make a DataArray around a storage, with missing values."""
    values = np.arange(24.0).reshape(4, 6) % 5
    values[1, 2:4] = np.nan
    coords = {"I": np.arange(4.0), "J": np.arange(6.0)}
    return xr.DataArray(dlf.storage(values, dims="IJ"), dims=("I", "J"), coords=coords)


def in_chunks(array):
    return array.chunk(I=2, J=4)


def around_numpy(array):
    """Return the same DataArray around an array of NumPy."""
    return array.copy(data=array.data.to_numpy())


class Outcome(NamedTuple):
    """The result of a call, or the error."""

    result: object
    error: Exception | None


def called(name, array):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Outcome(CALLS[name](array), None)
    except Exception as error:
        return Outcome(None, error)


def each(result):
    """Yield what is in tuples and dicts."""
    if isinstance(result, tuple | dict):
        for one in result.values() if isinstance(result, dict) else result:
            yield from each(one)
    else:
        yield result


def arrays(result):
    """Return the arrays inside what xarray returns, those of chunks computed."""
    found = [one for one in each(result) if isinstance(one, xr.DataArray | xr.Dataset)]
    data = [
        one.variable.data if isinstance(one, xr.DataArray) else [v.data for v in one.values()]
        for one in (one.compute() for one in found)
    ]
    return [one for some in data for one in (some if isinstance(some, list) else [some])]


def kind(outcome, plain):
    """Say in words what a call gives, beside what it gives around NumPy."""
    if plain.error is not None:
        return "refused by xarray, as around NumPy"
    if outcome.error is not None:
        return "refused"
    found = arrays(outcome.result)
    if not found:
        return "what it gives around NumPy"
    if all(isinstance(one, dlf.Storage) for one in found):
        return "storages"
    some = any(isinstance(one, dlf.Storage) for one in found)
    return "storages or NumPy arrays" if some else "NumPy arrays"


# --- the table -----------------------------------------------------------------------------------


def kinds(name):
    """Say what a method gives of a DataArray around a storage: whole, and in chunks."""
    array = example()
    return tuple(
        kind(called(name, make(array)), called(name, make(around_numpy(array))))
        for make in (lambda one: one, in_chunks)
    )


def table():
    """Write the rows: methods with the same results."""
    rows = defaultdict(list)
    for name in sorted(CALLS):
        rows[kinds(name)].append(name)
    text = f"With xarray {xr.__version__}:\n\n"
    text += "| methods | around a storage | in chunks |\n|---|---|---|\n"
    for (whole, chunked), names in sorted(rows.items(), key=lambda row: -len(row[1])):
        text += f"| {', '.join(f'`{name}`' for name in names)} | {whole} | {chunked} |\n"
    return text


if __name__ == "__main__":
    text = DOCUMENT.read_text("utf-8")
    DOCUMENT.write_text(between_marks(text, "methods", table()), "utf-8")
