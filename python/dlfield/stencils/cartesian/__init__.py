"""Stencils of gt4py.cartesian: what they declare and which points they touch.

Its files, each of which uses only those above it::

    nodes        a stencil in dlfield's own words
    levels       intervals of levels
    regions      parts of the horizontal plane that a block has points in
    places       blocks at their levels, whose values they read, and the loops that GT4Py joins
    around       points beside the domain that values are needed at, and computed at
    lost         values that GT4Py drops though they are read
    ternaries    which "debug" writes without parentheses
    source       GTScript of nodes
    internals    the one file that knows GT4Py's private face
    known        what is right for this version of GT4Py
    footprint    points that each field reads and writes
    trial        which is tried, not looked up
    declare      the declaration of a stencil
    temporaries  memory of its temporary fields
"""
