"""The library of the stand-in driver."""

import os
from pathlib import Path

ENVIRONMENT = "DLFIELD_FAKE_CUDA"
CRATE = Path(__file__).parents[2] / "fake_cuda"


def library_path():
    """Return the path of the stand-in, or None unless it is built."""
    built = CRATE / "target" / "release" / "libfake_cuda.so"
    path = Path(os.environ.get(ENVIRONMENT, built))
    return path if path.is_file() else None
