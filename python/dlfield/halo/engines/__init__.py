"""Engines, each of which moves the messages of a route.

Its files, each of which uses only those above it::

    engine         what every engine does: start, test, wait, free
    packed         messages that are packed, on the host and on GPUs
    ghex_fields    storages as fields of GHEX
    ghex           messages of GHEX
"""
