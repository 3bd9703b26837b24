"""Helpers of the tests of all folders, found by `pythonpath` in pyproject.toml.

What is for one kind of test has a folder: `cuda` for devices and their driver, `stencils` for bound
calls, `libraries` for exchange with other libraries.
"""
