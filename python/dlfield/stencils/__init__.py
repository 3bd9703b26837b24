"""Stencils of every kind, declared so that a bound call takes arrays of any framework.

Its files, each of which uses only those above it::

    footprint      the points that a call touches
    declaration    what a stencil declares: fields, scalars, how it is run
    halos          points around the domain in arrays without labels
    compilation    GT4Py's compilations: told, and failures that are errors
    lifetime       what is remembered as long as an object lives
    plain          functions of one's own and their annotations
    cartesian      stencils of gt4py.cartesian
    next           programs and operators of gt4py.next
    binding        `bind`: which of these a stencil is
    travel         bound stencils in other processes
    memory         storages as a bound stencil wants them
    functional     calls that return their outputs
"""
