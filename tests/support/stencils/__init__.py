"""Stencils, what stands in for one, and the arguments that they get."""
