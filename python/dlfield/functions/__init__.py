"""NumPy's functions of storages.

Its files, each of which uses only those above it::

    host          which array has the values of a storage
    axes          axes by name or number
    table         what every function makes of storages
    views         axes moved, added, dropped; parts
    joins         one storage of several arrays
    copies        copies, and NumPy's arrays of the values
    shapes        reshape, roll, pad, tile
    by_name       `isel` and `broadcast_like`
    along         functions along one axis
    pointwise     functions of elements that are no universal functions
    reductions    reductions
    ufuncs        methods of universal functions
    dispatch      finds what a function of NumPy is for storages
"""
