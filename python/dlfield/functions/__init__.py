"""NumPy's functions of storages.

Its files, each of which uses only those above it::

    host          where the values of a storage are
    axes          axes by name or number
    labels        rules for the names and the halo of a result
    table         the signature of every function
    views         axes moved, added, dropped, repeated; parts
    copies        new storages: copies, likes, joins
    chunks        beside arrays of Dask
    ufuncs        functions composed of universal functions, and methods of those
    averages      averages with weights
    dispatch      executes signatures
"""
