"""Stencils of every kind, declared so that a bound call takes arrays of any framework."""
