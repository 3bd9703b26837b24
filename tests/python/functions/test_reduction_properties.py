"""Every reduction of random storages: values and type as NumPy's, labels by a second implementation
of the rules."""

import warnings

import dlfield as dlf
import numpy as np
from dlfield._core import reducing_functions
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.optional import library

NEEDED = {
    np.percentile: (30,),
    np.nanpercentile: (30,),
    np.quantile: (0.3,),
    np.nanquantile: (0.3,),
}
REDUCTIONS = sorted({*reducing_functions(), np.count_nonzero}, key=lambda one: one.__name__)
RUNNING = [one for one in REDUCTIONS if "cum" in one.__name__]
WITH_DTYPE = [np.sum, np.prod, np.mean, np.std, np.var, np.nansum, np.nanmean, np.cumsum]
WITH_MASK = [np.sum, np.prod, np.mean, np.all, np.any, np.nansum]
REFUSED = (TypeError, ValueError, IndexError)


@st.composite
def calls(draw, named):
    names = draw(st.permutations(rules.NAMES))[:3]
    extents = {name: draw(st.integers(0, 4)) for name in names}
    operand = draw(rules.storages(extents, named=named))
    function = draw(st.sampled_from(REDUCTIONS))
    # NumPy refuses percentiles of truth values, but some of none; dlfield most of these, too.
    assume(operand.size > 0 or operand.dtype != bool or function not in NEEDED)
    numbers = draw(st.lists(st.integers(0, max(operand.ndim - 1, 0)), unique=True, max_size=3))
    options = draw(options_of(function, operand))
    axes = {"all": None, "one": numbers[0] if numbers else None}
    axes |= {} if function in RUNNING else {"several": tuple(numbers)}
    return function, operand, axes[draw(st.sampled_from(sorted(axes)))], options


@st.composite
def options_of(draw, function, operand):
    options = {}
    if function not in RUNNING and draw(st.booleans()):
        options["keepdims"] = draw(st.booleans())
    if function in WITH_DTYPE and draw(st.booleans()):
        options["dtype"] = draw(st.sampled_from(["float32", "float64"]))
    if function in WITH_MASK and draw(st.booleans()):
        size = draw(st.integers(0, operand.ndim))
        mask = np.arange(int(np.prod(operand.shape[:size]))).reshape(operand.shape[:size]) % 3 > 0
        named = {} if operand.dims is None else {"dims": operand.dims[:size]}
        options["where"] = dlf.storage(mask if named else np.ones(operand.shape, bool), **named)
    return options


def of_numpy(function, operand, axis, options):
    """What NumPy gives for the values; None if it refuses."""
    plain = dict(options)
    if isinstance(plain.get("where"), dlf.Storage):
        plain["where"] = rules.aligned(plain["where"], operand.dims or ())
    try:
        return function(operand.to_numpy(), *NEEDED.get(function, ()), axis=axis, **plain)
    except REFUSED:
        return None


def by_name(axis, dims):
    """The same axes by name where there are names."""
    if axis is None or not dims:
        return axis
    return tuple(dims[one] for one in axis) if isinstance(axis, tuple) else dims[axis]


@settings(max_examples=1500, deadline=None)
@given(st.booleans().flatmap(calls), st.booleans())
def test_a_reduction_gives_numpys_values_and_the_labels_of_what_stays(call, with_out):
    function, operand, axis, options = call
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = of_numpy(function, operand, axis, options)
        if function in RUNNING and operand.ndim != 1 and (axis is None or operand.ndim == 0):
            wanted = None  # NumPy's result has another number of dimensions
        arguments = (operand, *NEEDED.get(function, ()))
        options["axis"] = by_name(axis, operand.dims)
        if wanted is None:
            assert refuses(function, arguments, options)
            return
        made = function(*arguments, **options)
        check(made, wanted, function, operand, axis, bool(options.get("keepdims")))
        takes_out = function is not np.count_nonzero and isinstance(made, dlf.Storage)
        if with_out and takes_out:
            out = dlf.empty((2, *made.shape), made.dtype, **names_with_one_more(made))
            assert function(*arguments, **options, out=out) is out
            np.testing.assert_array_equal(out, np.broadcast_to(wanted, out.shape))


@settings(max_examples=400, deadline=None)
@given(calls(named=True))
def test_a_reduction_by_name_leaves_xarrays_dims_and_values(call):
    xarray = library("xarray")
    function, operand, axis, options = call
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assume(operand.dims and of_numpy(function, operand, axis, options) is not None)
        assume(function not in RUNNING or operand.ndim == 1 or axis is not None)
        names = by_name(axis, operand.dims)
        made = function(operand, *NEEDED.get(function, ()), axis=names, **options)
        if "where" in options:
            options["where"] = rules.aligned(options["where"], operand.dims)

        def reduce(values, **keywords):
            return function(values, *NEEDED.get(function, ()), **keywords, **options)

        keepdims = options.pop("keepdims", False)
        array = xarray.DataArray(operand.to_numpy(), dims=operand.dims)
        wanted = array.reduce(reduce, names, keepdims=keepdims)
    assert getattr(made, "dims", ()) == wanted.dims
    np.testing.assert_array_equal(made, wanted.values)


def refuses(function, arguments, options):
    """Return whether a call is refused, with a text of NumPy's or of dlfield's."""
    try:
        function(*arguments, **options)
    except REFUSED:
        return True
    return False


def names_with_one_more(made):
    return {} if made.dims is None else {"dims": ["more", *made.dims]}


def check(made, wanted, function, operand, axis, keepdims):
    if np.ndim(wanted) == 0:
        np.testing.assert_array_equal(made, wanted)
        assert not isinstance(made, dlf.Storage)
        return
    assert type(made) is dlf.CPUStorage
    assert made.dtype == wanted.dtype
    np.testing.assert_array_equal(made.to_numpy(), wanted)
    whole = range(operand.ndim)
    reduced = whole if axis is None else axis if isinstance(axis, tuple) else (axis,)
    reduced = () if function in RUNNING else reduced
    check_labels(made, operand, [one for one in whole if keepdims or one not in reduced], reduced)


def check_labels(made, operand, axes, reduced):
    dims, halo = operand.dims, operand.halo
    assert made.dims == (None if dims is None else tuple(dims[one] for one in axes))
    widths = halo and tuple((0, 0) if one in reduced else halo[one] for one in axes)
    assert made.halo == (widths if halo is not None else None)
    ranks = sorted(operand.layout[one] for one in axes)
    assert made.layout == tuple(ranks.index(operand.layout[one]) for one in axes)
    assert made.alignment_size == rules.expected_alignment([operand], made.dtype)
    order = rules.in_gt4py_order(dims, operand.ndim)
    first = getattr(operand, "default_origin", None)
    if first is not None:
        first = dict(zip(order, first, strict=True))
        first = [0 if one in reduced else first[one] for one in axes]
        # GT4Py may know all names that stay, and then has an order of its own for them.
        first = tuple(first[at] for at in rules.in_gt4py_order(made.dims, made.ndim))
    assert getattr(made, "default_origin", None) == first
    assert not made.readonly
    assert not np.shares_memory(made, operand)
