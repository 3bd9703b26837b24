"""Stand-ins for what a bound stencil meets: a stencil that notes its calls, objects that want to be
told, and memory that claims to be on a GPU. All of them write into one log, in order."""

import ctypes
import inspect
from types import SimpleNamespace

import dlfield as dlf
import numpy as np

from support.dlpack_structs import DLDevice, Producer

SHAPE = (3, 4, 5)


class Raising(dict):
    """What is to be raised, by what is called; everything else passes."""

    def pass_(self, what):
        if what in self:
            raise self[what]


class Told:
    """A field that records its hooks under its name, and whether it was written by then."""

    def __init__(self, log, name, array=None, *, raises=(), keys=(None,), lazily=False, **entries):
        self.log, self.name, self.raises = log, name, Raising(raises)
        self.array = np.zeros(SHAPE) if array is None else array
        self.keys, self.lazily, self.entries = keys, lazily, entries

    def _note(self, what, key):
        """Named after the device, where that is not the host."""
        said = f"{what} {self.name}" + ("" if key in (None, "cpu") else f" on {key}")

        def note():
            self.log.append(said)
            self.raises.pass_(what)

        return note

    def _describe(self, key):
        hooks = {what: self._note(what, key) for what in ("acquire", "touch", "release")}
        return {**self.array.__array_interface__, **hooks, **self.entries}

    def _value(self, key):
        def describe():
            self.log.append(f"describe {self.name} on {key}")
            return self._describe(key)

        return describe if self.lazily else self._describe(key)

    @property
    def __gt_data_interface__(self):
        return {key: self._value(key) for key in self.keys}


class Holds:
    """A wrapper, as a field of gt4py.next has its array."""

    def __init__(self, ndarray, dims=None):
        self.ndarray, self.__gt_dims__ = ndarray, dims


def field(access, dtype="float64", axes="IJK", boundary=((0, 0), (0, 0), (0, 0))):
    """Describe a field as `field_info` of a stencil does."""
    return SimpleNamespace(
        axes=tuple(axes),
        data_dims=(),
        dtype=np.dtype(dtype),
        access=SimpleNamespace(name=access),
        boundary=boundary,
    )


class StandIn:
    """Has the face of `dlfield.gt4py_cartesian.CartesianStencil` and compiles nothing.

    `run` records itself, calls `body` with the arrays, and raises `raises`; `seen` has the
    arrays of the last run.
    """

    def __init__(self, log=(), *, body=None, raises=(), backend="gt:cpu_kfirst", **fields):
        self.log = log if isinstance(log, list) else []
        self.raises, self.body, self.backend = Raising(raises), body, backend
        self.options = {"name": "stand_in"}
        self.field_info, self.parameter_info = fields, {}
        self.domain_info = SimpleNamespace(min_sequential_axis_size=1)
        self.seen = self.origin = self.domain = None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in fields])

    def run(self, *, _domain_, _origin_, exec_info, **arguments):
        self.log.append("run")
        self.seen, self.domain, self.origin = arguments, _domain_, _origin_
        if self.body is not None:
            self.body(**arguments)
        self.raises.pass_("run")

    def __call__(self, *, domain, origin, exec_info, **arguments):
        self.run(_domain_=domain, _origin_=origin, exec_info=exec_info, **arguments)


class Waiting(StandIn):
    """Ends some time after `run` returns."""

    def synchronize(self):
        self.log.append("synchronize")
        self.raises.pass_("synchronize")


class OnDevice:
    """Host memory that claims to be on GPU `number`, as memory of CuPy would."""

    def __init__(self, array, number=0):
        self.array, self.number = array, number

    @property
    def __gt_data_interface__(self):
        return {("gpu", self.number): self.array.__array_interface__}


class GpuStandIn(Waiting):
    """Computes on what claims to be a GPU. It can be given no array of the host."""

    device = "gpu"


class StagingStandIn(GpuStandIn):
    """One that copies arrays of the host to its device, and back; `made` is what it made."""

    def __init__(self, *args, number=0, **options):
        super().__init__(*args, **options)
        self.number, self.made = number, []

    def to_device(self, array):
        self.log.append("to_device")
        self.raises.pass_("to_device")
        assert type(array) is np.ndarray
        self.made.append(OnDevice(array.copy(), self.number))
        return self.made[-1]

    def to_host(self, data, array):
        self.log.append("to_host")
        self.raises.pass_("to_host")
        array[...] = data.array


def values_on(device_array):
    """Return the elements of a C-contiguous float64 array that a GPU stand-in was given."""
    interface = device_array.__cuda_array_interface__
    assert (interface["typestr"], interface["strides"]) == ("<f8", None)
    count = int(np.prod(interface["shape"]))
    memory = (ctypes.c_double * count).from_address(interface["data"][0])
    return np.frombuffer(memory).reshape(interface["shape"])


class FromDevice(Producer):
    """A producer on a CUDA device that makes a copy on the host on request."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        if keywords.get("dl_device") != (1, 0):
            self.managed.dl_tensor.device = DLDevice(2, 0)
        return self.capsule()


class StaysOnDevice(FromDevice):
    """A producer on a CUDA device that never copies."""

    def __dlpack__(self, **keywords):
        if keywords.get("dl_device") == (1, 0):
            raise BufferError("this memory stays where it is")
        return super().__dlpack__(**keywords)


def misaligned(shape=SHAPE, value=-1.0):
    """Return a writable float64 array whose items are off by four bytes."""
    array = np.frombuffer(bytearray(8 * int(np.prod(shape)) + 4), offset=4).reshape(shape)
    array[...] = value
    return array


def column(shape=SHAPE, value=-1.0, kind="f8"):
    """Return one field of a structured array, whose strides are not a multiple of its item size."""
    array = np.zeros(shape, [("a", "u1"), ("b", kind)])["b"]
    array[...] = value
    return array


def bound(**options):
    """Bind a stand-in with one input and one output, which copies."""

    def copy(inp, out):
        out[...] = inp

    stencil = StandIn(body=copy, inp=field("READ"), out=field("WRITE"))
    return stencil, dlf.bind(stencil, **options)
