"""Engines, each of which moves the messages of a route.

Its files, each of which uses only those above it::

    packed         messages that are packed, on the host and on GPUs
    datatypes      messages that MPI packs by its datatypes
    ghex_fields    storages as fields of GHEX
    ghex           messages of GHEX
"""
