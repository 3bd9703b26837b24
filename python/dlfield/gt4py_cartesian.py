"""The attributes that a stencil of ``gt4py.cartesian`` has, for stencils of one's own."""

from dlfield.stencils.cartesian.declare import CartesianStencil

__all__ = ["CartesianStencil"]
