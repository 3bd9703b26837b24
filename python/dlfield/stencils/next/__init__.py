"""Programs and operators of ``gt4py.next``: what they declare and which points they touch.

Its files, each of which uses only those above it::

    dimensions    names of dimensions
    boxes         boxes of points, and sums of them
    nodes         a program in dlfield's own words
    known         what is right for this version of GT4Py
    arguments     arguments of a call by name
    tables        connectivities, and what their rows hold
    internals     the one file that knows GT4Py's private face
    fields        fields of GT4Py over the memory of storages
    allocator     an allocator that GT4Py takes
    conditions    which branch of a program is taken
    scope         what names stand for, inside of the functions around
    walk          from outputs to the points that are read
    footprint     points that each field reads and writes
    workspace     memory that a caller hands to GT4Py
    trial         tries that the walk agrees with GT4Py
    declare       the declaration of a program or operator
    scan          scan operators whose fields come from the arguments
"""
