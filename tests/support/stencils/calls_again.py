"""Calls that come again: arguments that differ, and all that a stencil sees of a call."""

import dlfield as dlf
import numpy as np

from support.stencils.stand_ins import SHAPE, field

__all__ = ["ROLES", "changed", "outcome", "told"]

ROLES = {"a": field("READ"), "b": field("WRITE"), "c": field("READ_WRITE")}


class Subclass(np.ndarray):
    pass


class Named(np.ndarray):
    __gt_dims__ = ("K", "J", "I")


def changed(array, how):
    """Return an array of the same values that differs in one respect."""
    if how == "transposed":
        return array.T
    if how == "read-only":
        array.flags.writeable = False
    if how in ("float32", "int64", ">f8", "complex128"):
        return array.astype(how)
    if how == "subclass":
        return array.view(Subclass)
    if how == "named":
        return array.view(Named)
    if how == "part":
        return np.zeros((9, 9, 9))[1:4, 2:6, 3:8]
    if how == "reversed":
        return array[::-1]
    if how == "broadcast":
        return np.broadcast_to(array[:1], array.shape)
    if how == "warns":
        return np.broadcast_arrays(array[:1], array)[0]
    if how == "misaligned":
        return np.frombuffer(bytearray(8 * 60 + 4), offset=4).reshape(SHAPE)
    if how == "off by 8":
        return np.frombuffer(bytearray(8 * 60 + 8), offset=8).reshape(SHAPE)
    if how == "short":
        return array[:-1]
    if how == "storage":
        return dlf.as_storage(array)
    if how == "named storage":
        return dlf.as_storage(np.zeros(SHAPE[::-1]), dims="KJI")
    if how == "halo":
        return dlf.zeros(SHAPE, dims="IJK", halo=(1, 1, 0))
    if how == "origin":
        return dlf.zeros(SHAPE, dims="IJK", default_origin=(1, 0, 0))
    if how == "memoryview":
        return memoryview(array)
    return array


def told(array):
    """Return all that a stencil can see of an array but its values."""
    flags = (array.flags.writeable, array.flags.aligned)
    return type(array), array.ctypes.data, array.shape, array.strides, array.dtype, flags


def outcome(run, stencil, arguments, options):
    """Return what `run` was given, or what was raised."""
    stencil.seen = None
    try:
        run(**arguments, **options)
    except (BufferError, ValueError, TypeError) as error:
        return type(error), str(error)
    if stencil.seen is None:
        return "not run"
    own = {name: stencil.seen[name] is arguments[name] for name in ROLES}
    seen = {name: told(array) for name, array in stencil.seen.items()}
    return seen, own, stencil.origin, stencil.domain
