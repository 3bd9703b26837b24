"""A Fortran or C program calls Python functions with its own arrays: `python -m dlfield fortran`.

Its files, each of which uses only those above it::

    kinds           the types of elements in Python, Fortran and C
    halos           the halo of a parameter, from the option of its function
    names           names that the generated files have for their own, and that C has
    parameters      a declared function and its parameters
    signature       `function`: what a function or a stencil declares
    communicator    a communicator of the program as one of mpi4py
    memory          an array of the program, as Python sees it
    calls           what the generated library calls
    procedures      the text of what every Fortran module has
    interface       the text of the Fortran module
    glue            the text of the C header and of the C functions
    writing         the files of a library, and how they are built
    command         ``python -m dlfield fortran``
"""

from dlfield.fortran.kinds import Communicator
from dlfield.fortran.signature import function

__all__ = ["Communicator", "function"]
