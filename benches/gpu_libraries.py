"""The libraries that take part in the benchmark of GPUs, or what says why one does not."""

import warnings
from collections.abc import Callable

import dlfield as dlf
import numpy as np
from timing import Missing, load


class Unavailable(Missing):
    """Stands for what a library could not make, and says so when it is used."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(self.library)

    def __setitem__(self, key: object, value: object) -> None:
        raise RuntimeError(self.library)


def attempt(make: Callable[[], object]) -> object:
    """Make something, or what says why it could not be made."""
    try:
        return make()
    except Exception as error:
        return Unavailable(str(error).partition("\n")[0] or type(error).__name__)


def on_gpu(module: str) -> object:
    """Import torch or CuPy, or give what stands for it where it sees no device."""
    library = load(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of what is_available then says
        if isinstance(library, Missing) or library.cuda.is_available():
            return library
    return Unavailable(f"{module} sees no device")


LIBRARIES = {
    "dlfield": dlf,
    "numpy": np,
    "torch": on_gpu("torch"),
    "cupy": on_gpu("cupy"),
    "numba_cuda": load("numba_cuda"),
    "cuda.core": load("cuda.core"),
}
TORCH, CUPY = LIBRARIES["torch"], LIBRARIES["cupy"]


def versions() -> str:
    """Name the libraries that take part, with their versions."""
    found = []
    for name, library in LIBRARIES.items():
        if isinstance(library, Unavailable):
            found.append(library.library)  # which says why
        elif isinstance(library, Missing):
            found.append(f"{name} missing")
        else:
            found.append(f"{name} {getattr(library, '__version__', '?')}")
    return ", ".join(found)
