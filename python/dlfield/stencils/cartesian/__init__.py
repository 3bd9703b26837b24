"""Stencils of ``gt4py.cartesian``: what they declare and which points they touch."""
