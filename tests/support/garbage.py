"""Collections of garbage: what they look at."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def libraries_are_not_searched():
    """Let the collections of a file look at what its tests make, not at every imported library."""
    gc.collect()
    gc.freeze()
