"""Derivatives of stencils of ``gt4py.cartesian``, as stencils that can be read, changed and kept.

Its files, each of which uses only those above it::

    expressions    how expressions are made, moved and differentiated
    program        what a stencil computes, sweep by sweep
    versions       stencils in single assignment
    sweeps         adjoint and tangent
    for_gt4py      sweeps in the form that GT4Py takes
    entrances      `dlfield.adjoint`, `dlfield.tangent`, `dlfield.adjoint_source`
"""
