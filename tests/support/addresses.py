"""Addresses of memory, found without the code under test where that is possible."""

import ctypes

import numpy as np


def address_of(exporter):
    """Return the address of the first element according to the array interface."""
    return exporter.__array_interface__["data"][0]


def address_of_buffer(exporter):
    """Address of the first byte of a contiguous and writable buffer, found without dlfield."""
    return ctypes.addressof(ctypes.c_char.from_buffer(exporter))


def address_of_bytes(text):
    """Address of the bytes of an immutable buffer, found without dlfield."""
    return np.frombuffer(text, np.uint8).ctypes.data
