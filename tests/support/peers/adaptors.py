"""How suites get storages: each adaptor changes the modules of one suite once they are imported."""

import contextlib
import functools
import itertools

import dlfield as dlf
import numpy as np

#: Functions of NumPy's namespace that make arrays.
MAKERS = ("arange", "array", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros")


#: How many storages tests have got.
given = itertools.count()


def storage(array):
    """Return a storage over the memory of an array, and count it."""
    made = dlf.as_storage(array)
    next(given)
    return made


def stored(array):
    """Return a storage over the memory of an array of NumPy; what none can hold stays an array."""
    if type(array) is not np.ndarray:
        return array
    with contextlib.suppress(TypeError, ValueError, BufferError):
        return storage(array)
    return array


class _Namespace:
    """A namespace of arrays whose functions give storages."""

    def __init__(self, namespace):
        self._namespace = namespace

    def __getattr__(self, name):
        found = getattr(self._namespace, name)
        if name not in MAKERS:
            return found

        @functools.wraps(found)
        def make(*args, **kwargs):
            if name == "asarray" and isinstance(args[0], dlf.Storage):
                return args[0]
            made = found(*args, **kwargs)
            return made if args and isinstance(args[0], memoryview) else stored(made)

        return make


def made_by_numpy(module):
    """What `np` makes in a module of tests is a storage."""
    module.np = _Namespace(np)


def through_from_dlpack(module):
    """What a module of tests gives to a function `from_dlpack` goes through a storage first."""
    for name in ("tvm_ffi", "xp", "jnp"):
        _replace(getattr(module, name, None))
    _replace(getattr(getattr(module, "jax", None), "dlpack", None))


def through_numpys_from_dlpack(module):
    """What a module of tests gives to `np.from_dlpack` goes through a storage first."""
    _replace(module.np)


def _replace(namespace):
    found = getattr(namespace, "from_dlpack", None)
    if found is not None and not hasattr(found, "through_storages"):
        namespace.from_dlpack = _through(found)
        namespace.from_dlpack.through_storages = True


def _through(from_dlpack):
    @functools.wraps(from_dlpack)
    def call(array, /, *args, **kwargs):
        return from_dlpack(storage(array), *args, **kwargs)

    return call


def duck_arrays_of_xarray(module):
    """xarray's tests of arrays in a DataArray, those of JAX, have storages."""

    def setup_for_test(self, request, namespace):
        self.namespace, self.xp = namespace, np
        self.Array, self.constructor = dlf.Storage, storage

    module._BaseTest.setup_for_test = setup_for_test


def backends_of_mpi4py(_module):
    """mpi4py's tests for each kind of array have storages alone."""
    import arrayimpl

    # Without long double, which storages do not hold.
    kinds = {code: kind for code, kind in arrayimpl.ArrayNumPy.TypeMap.items() if code not in "gG"}

    class ArrayOfStorage(arrayimpl.ArrayNumPy):
        backend, TypeMap = "dlfield", kinds

        def __init__(self, arg, typecode, shape=None):
            super().__init__(arg, typecode, shape)
            self.numpy, self.array = self.array, storage(self.array)

        typecode = property(lambda self: self.numpy.dtype.char)
        flat = property(lambda self: self.numpy.flat)

    arrayimpl.ArrayBackends[:] = [ArrayOfStorage]


def arrays_of_arrow(module):
    """What pyarrow makes goes into a storage, and comes back as an array, if one can hold it."""
    make = module.pa.array

    @functools.wraps(make)
    def array(*args, **kwargs):
        made = make(*args, **kwargs)
        with contextlib.suppress(TypeError, ValueError, BufferError):
            return make(storage(made))
        return made

    module.pa.array = array
