"""A double of CuPy on the stand-in: NumPy computes in device memory, in the order of streams.

It takes and refuses what CuPy does: arrays on a device, numbers of Python and NumPy, and no arrays
of NumPy; `out`, `dtype` and `casting`, and no `where`. It copies an operand that it sees to overlap
an output, and sees that in one block of memory alone.
"""

import math
import types
import warnings

import numpy as np

from support.cuda.devices import LEGACY, current, read, write
from support.cuda.driver import HOST_FUNCTION, bytes_behind, call, made, stream

#: DLPack's code of memory on a device.
CUDA = 2
#: Universal functions of NumPy that CuPy does not have.
MISSING = {"spacing", "isnat", "vecdot", "matvec", "vecmat"}
#: Copies of operands that overlapped an output.
copies = []


# --- streams and devices -------------------------------------------------------------------------


class Stream:
    """A stream; current inside."""

    def __init__(self, *, null=False, non_blocking=False):
        self.ptr = 0 if null else stream(int(non_blocking))

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *exception):
        _streams.pop()

    def synchronize(self):
        """Wait for the work on it."""
        call("cuStreamSynchronize", self.ptr)


class Device:
    """A GPU, current inside."""

    compute_capability = "80"

    def __init__(self, number):
        self.id, self._entered = number, []

    def __enter__(self):
        self._entered.append(current(self.id))
        self._entered[-1].__enter__()
        _devices.append(self.id)
        return self

    def __exit__(self, *exception):
        _devices.pop()
        self._entered.pop().__exit__()


_streams, _devices = [Stream(null=True)], [0]
cuda = types.SimpleNamespace(
    Device=Device,
    Stream=Stream,
    get_current_stream=lambda: _streams[-1],
    is_available=lambda: True,
    runtime=types.SimpleNamespace(is_hip=False, CUDARuntimeError=RuntimeError),
)

_in_flight = {}


def _launch(work):
    """Do something once the current stream comes to it."""
    number = max(_in_flight, default=0) + 1

    def run(_):
        work()
        del _in_flight[number]

    _in_flight[number] = HOST_FUNCTION(run)
    call("cuLaunchHostFunc", _streams[-1].ptr, _in_flight[number], 0)


# --- arrays --------------------------------------------------------------------------------------


class _Block:
    """Memory that is allocated and freed in the order of a stream, as by CuPy's pool."""

    def __init__(self, nbytes):
        self._stream, self._device = _streams[-1].ptr, _devices[-1]
        self.ptr = made("cuMemAllocAsync", max(nbytes, 1), self._stream)

    def __del__(self):
        with current(self._device):
            call("cuMemFreeAsync", self.ptr, self._stream)


class _Foreign:
    """Memory of another library, which begins at the first element as far as CuPy knows."""

    def __init__(self, owner, ptr):
        self.owner, self.ptr = owner, ptr


class ndarray:
    """An array on a device."""

    __module__ = "cupy"
    __array_priority__ = 100

    def __init__(self, shape, dtype=float, memory=None, ptr=None, strides=None):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        memory = memory or _Block(self.nbytes)
        self.data = types.SimpleNamespace(mem=memory, ptr=memory.ptr if ptr is None else ptr)
        self.strides = np.empty(self.shape, self.dtype).strides if strides is None else strides

    @property
    def __cuda_array_interface__(self):
        """Return the dict of version 3."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data.ptr if self.size else 0, False),
            "strides": self.strides,
            "stream": _streams[-1].ptr or LEGACY,
            "version": 3,
        }

    def _here(self):
        """Return an array of the host of the same layout, to do what NumPy does with layouts."""
        first, end = self._bounds()
        block = np.lib.stride_tricks.as_strided(np.empty(0, np.uint8), (end - first,), (1,))
        offset = self.data.ptr - first
        return np.ndarray(self.shape, self.dtype, block, offset, self.strides), first, block

    def _bounds(self):
        ways = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        low = sum(way for way in ways if way < 0)
        high = sum(way for way in ways if way > 0) + self.dtype.itemsize
        return self.data.ptr + low, self.data.ptr + high

    def _like(self, view, start, block):
        """Return the view of this memory whose layout NumPy has found."""
        ptr = start + view.ctypes.data - block.ctypes.data if view.size else self.data.ptr
        return ndarray(view.shape, self.dtype, self.data.mem, ptr, view.strides)

    def __getitem__(self, key):
        if self.size == 0:
            return ndarray(np.empty(self.shape, self.dtype)[key].shape, self.dtype)
        here, start, block = self._here()
        return self._like(here[(*key, ...) if isinstance(key, tuple) else (key, ...)], start, block)

    def transpose(self, *axes):
        """Return a view with the axes in another order."""
        order = axes[0] if axes and not isinstance(axes[0], int) else axes or None
        if self.size == 0:
            return ndarray(np.empty(self.shape).transpose(order).shape, self.dtype)
        here, start, block = self._here()
        return self._like(here.transpose(order), start, block)

    def copy(self):
        """Copy on the device."""
        copied = ndarray(self.shape, self.dtype)
        into, values = _Place(copied), _Place(self)
        _launch(lambda: np.copyto(into.reached(), values.reached()))
        return copied

    def get(self):
        """Copy to the host, and wait."""
        _streams[-1].synchronize()
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        first, end = self._bounds()
        raw = read(first, (end - first,), np.uint8, _devices[-1])
        return np.ndarray(self.shape, self.dtype, raw, self.data.ptr - first, self.strides).copy()

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        own = functions.get(ufunc.__name__)
        if method != "__call__" or own is None:
            return NotImplemented
        if "out" in options:
            (options["out"],) = options["out"]
        return own(*inputs, **options)


class _Place:
    """Where the elements of an array are, for work to come; a launch keeps no memory."""

    def __init__(self, array):
        self.first, self.end = array._bounds() if array.size else (0, 0)
        offset = array.data.ptr - self.first
        self.layout = array.shape, array.dtype, offset, array.strides

    def reached(self):
        """Return the elements as work on the device reaches them."""
        shape, dtype, offset, strides = self.layout
        if self.first == self.end:
            return np.empty(shape, dtype)
        block = bytes_behind(self.first, self.end - self.first)
        return np.ndarray(shape, dtype, block, offset, strides)


def asarray(value, dtype=None):
    """Take an array on a device as it is; copy an array of the host there."""
    if isinstance(value, ndarray):
        return value
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        values = np.asarray(value, dtype)
        array = ndarray(values.shape, values.dtype)
        _streams[-1].synchronize()
        write(array.data.ptr, values, _devices[-1])
        return array
    if interface.get("stream") is not None:
        call("cuStreamSynchronize", interface["stream"])
    memory = _Foreign(value, interface["data"][0])
    shape, dtype = interface["shape"], np.dtype(interface["typestr"])
    return ndarray(shape, dtype, memory, memory.ptr, interface["strides"])


def from_dlpack(array):
    """Take an array on a device as it is."""
    assert array.__dlpack_device__()[0] == CUDA
    return asarray(array)


def empty(shape, dtype=float):
    """Allocate an array on the current device."""
    return ndarray(shape, dtype)


def asnumpy(array):
    """Copy an array to the host, and wait."""
    return array.get()


def byte_bounds(array):
    """Return the addresses of the first byte and of the end."""
    return array._bounds()


def _as_strided(array, shape, strides):
    return ndarray(shape, array.dtype, array.data.mem, array.data.ptr, strides)


lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=_as_strided))


def _operand(value):
    if isinstance(value, ndarray):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return asarray(value)
    if isinstance(value, bool | int | float | complex | np.generic):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


# --- functions -----------------------------------------------------------------------------------


def _placed(operands):
    return [_Place(one) if isinstance(one, ndarray) else one for one in operands]


def _reached(places):
    return [one.reached() if isinstance(one, _Place) else one for one in places]


def _model(operand):
    """Return an operand without elements, which tells NumPy the type."""
    return np.empty(0, operand.dtype) if isinstance(operand, ndarray) else operand


def _may_share(one, other):
    if one.data.mem.ptr != other.data.mem.ptr or one.size == 0 or other.size == 0:
        return False
    (a, b), (c, d) = one._bounds(), other._bounds()
    return a < d and c < b


def _apart(operand, outputs):
    """Return an operand that no output overlaps, as far as CuPy can tell."""
    if not isinstance(operand, ndarray):
        return operand
    for out in outputs:
        if operand is not out and _may_share(operand, out):
            copies.append(operand.shape)
            return operand.copy()
        assert operand is out or not _overlap(operand, out), "a kernel would race with itself"
    return operand


def _overlap(one, other):
    """Whether arrays share an element, by NumPy's own search in a block of as many bytes."""
    if one.size == 0 or other.size == 0:
        return False
    bounds = [*one._bounds(), *other._bounds()]
    if max(bounds) - min(bounds) > 1 << 24:
        return False
    block = np.empty(max(bounds) - min(bounds), np.uint8)
    views = [
        np.ndarray(a.shape, a.dtype, block, a.data.ptr - min(bounds), a.strides)
        for a in (one, other)
    ]
    return np.shares_memory(*views)


def _method(function):
    return lambda a, axis=0, **options: _reduction(function, "dtype")(a, axis, **options)


class Function:
    """A universal function."""

    def __init__(self, ufunc):
        self.ufunc, self.__name__ = ufunc, ufunc.__name__
        if self.__name__ in ("add", "multiply"):
            self.reduce = _method(ufunc.reduce)
            self.accumulate = _method(ufunc.accumulate)

    def __call__(self, *args, out=None, dtype=None, casting="same_kind", **others):
        ufunc = self.ufunc
        if others:
            raise TypeError(f"Wrong arguments {others}")
        if not ufunc.nin <= len(args) <= ufunc.nargs:
            raise TypeError(f"Wrong number of arguments for {self.__name__!r}")
        inputs = [_operand(one) for one in args[: ufunc.nin]]
        given = args[ufunc.nin :] or (out if isinstance(out, tuple) else (out,) * ufunc.nout)
        outputs = [_operand(one) if one is not None else None for one in given]
        inputs = [_apart(one, [out for out in outputs if out is not None]) for one in inputs]
        arrays = [one for one in [*inputs, *outputs] if isinstance(one, ndarray)]
        shape = np.broadcast_shapes(*(one.shape for one in arrays))
        types = self._types(inputs, dtype)
        outputs = [
            ndarray(shape, own) if out is None else out
            for out, own in zip(outputs, types, strict=True)
        ]
        for out, own in zip(outputs, types, strict=True):
            if out.shape != shape:
                raise ValueError(f"Out shape is mismatched: {out.shape}, {shape}")
            if not np.can_cast(own, out.dtype, casting):
                raise TypeError(f"output (typecode {own.char!r}) could not be coerced")
        options = {} if dtype is None else {"dtype": dtype}

        read, written = _placed(inputs), _placed(outputs)

        def work():
            with np.errstate(all="ignore"):
                ufunc(*_reached(read), out=tuple(_reached(written)), casting="unsafe", **options)

        _launch(work)
        return outputs[0] if ufunc.nout == 1 else tuple(outputs)

    def _types(self, inputs, dtype):
        """Return the types of the results."""
        options = {} if dtype is None else {"dtype": dtype}
        with np.errstate(all="ignore"):
            model = self.ufunc(*map(_model, inputs), **options)
        model = model if isinstance(model, tuple) else (model,)
        if any(np.asarray(one).dtype == object for one in model):
            raise TypeError(f"Wrong type for {self.__name__}")
        return [np.asarray(one).dtype for one in model]


def _reduction(function, *names):
    """A function that reduces, with these keywords beside axis, out and keepdims."""

    def call(a, axis=None, out=None, keepdims=None, **options):
        if unknown := set(options) - set(names):
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown}")
        if not isinstance(a, ndarray):
            raise TypeError(f"Argument 'a' has incorrect type {type(a)}")
        options |= {"axis": axis} | ({"keepdims": True} if keepdims else {})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of values that do not count
            model = np.asarray(function(np.ones(a.shape, a.dtype), **options))
        out = ndarray(model.shape, model.dtype) if out is None else out

        def quietly(values):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return function(values, **options)

        return _into(quietly, [a], out)

    return call


def _into(function, operands, out, **options):
    """Compute a function of NumPy into an array."""
    read, into = _placed(operands), _Place(out)
    _launch(lambda: np.copyto(into.reached(), function(*_reached(read), **options)))
    return out


def _elementwise(name):
    """A function that is no universal one, and makes its result."""
    function = getattr(np, name)

    def call(*operands, **options):
        operands = [_operand(one) for one in operands]
        shape = np.broadcast_shapes(*(one.shape for one in operands if isinstance(one, ndarray)))
        model = function(*(np.ones(0, o.dtype) if isinstance(o, ndarray) else o for o in operands))
        return _into(function, operands, ndarray(shape, model.dtype), **options)

    return call


def clip(a, a_min, a_max, out=None):
    """Limit the values."""
    out = ndarray(a.shape, a.dtype) if out is None else out
    return _into(np.clip, [a, a_min, a_max], out)


def around(a, decimals=0, out=None):
    """Round to decimals."""
    out = ndarray(a.shape, a.dtype) if out is None else out
    return _into(lambda values: np.round(values, decimals), [a], out)


def copyto(dst, src, casting="same_kind", where=None):
    """Copy where a mask is true."""
    if not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(f"Cannot cast {src.dtype} to {dst.dtype} in {casting} casting mode")
    places = _placed([dst, src, True if where is None else where])

    def work():
        into, values, mask = _reached(places)
        np.copyto(into, values, casting, where=mask)

    _launch(work)


functions = {
    name: Function(one)
    for name, one in vars(np).items()
    if isinstance(one, np.ufunc) and one.signature is None and name not in MISSING
}
for _name in (
    "where",
    "isclose",
    "angle",
    "nan_to_num",
    "imag",
    "real",
    "iscomplex",
    "isreal",
    "sinc",
):
    functions[_name] = _elementwise(_name)
functions |= {"around": around, "round": around}
_TYPED = ["sum", "prod", "mean", "cumsum", "cumprod"]
_TYPED += [f"nan{name}" for name in _TYPED]
_PLAIN = ["max", "min", "argmax", "argmin", "median"]
_PLAIN += [f"nan{name}" for name in _PLAIN] + ["amax", "amin", "all", "any", "ptp"]
for _name in (*_TYPED, *_PLAIN):
    functions[_name] = _reduction(getattr(np, _name), *(["dtype"] if _name in _TYPED else []))
for _name in ("std", "var", "nanstd", "nanvar"):
    functions[_name] = _reduction(getattr(np, _name), "dtype", "ddof")
for _name in ("percentile", "quantile"):
    functions[_name] = _reduction(getattr(np, _name), "q", "method")


def __getattr__(name):
    """Return a function by its name; the names of many are Python's own."""
    if name in functions:
        return functions[name]
    raise AttributeError(name)
