"""Exchanges of small arrays on a GPU, in the time of the host: nothing is copied."""

import dlfield as dlf
from gpu_libraries import CUPY, TORCH, attempt
from timing import Comparison, Peer, load


class Shown:
    """Shows memory by the CUDA array interface, and by nothing else."""

    def __init__(self, storage: dlf.Storage) -> None:
        self.kept, self.__cuda_array_interface__ = storage, storage.__cuda_array_interface__


NAMES = {
    "dlf": dlf,
    "Shown": Shown,
    "attempt": attempt,
    "torch": TORCH,
    "cupy": CUPY,
    "cuda": load("numba.cuda"),
    "core": load("cuda.core.utils"),
    "small": {"device": "gpu", "managed": None},
}

IMPORT = "dlf.as_storage(x, managed=None)"
BY_TORCH, BY_CUPY = "torch.from_dlpack(x)", "cupy.from_dlpack(x)"
BY_CUPY_CAI, BY_NUMBA = "cupy.asarray(x)", "cuda.as_cuda_array(x)"
BY_CORE = "core.StridedMemoryView.from_dlpack(x, stream_ptr=1)"
BY_CORE_CAI = "core.StridedMemoryView.from_cuda_array_interface(x, stream_ptr=1)"

TO_STORAGE = [
    Comparison(
        "torch tensor",
        IMPORT,
        [Peer(BY_CUPY), Peer(BY_CUPY_CAI), Peer(BY_NUMBA), Peer(BY_CORE)],
        setup="x = torch.zeros((8, 8, 8), dtype=torch.float64, device='cuda')",
    ),
    Comparison(
        "CuPy array",
        IMPORT,
        [Peer(BY_TORCH), Peer(BY_NUMBA), Peer(BY_CORE)],
        setup="x = cupy.zeros((8, 8, 8))",
    ),
    Comparison(
        "numba array",
        IMPORT,
        [Peer(BY_CUPY_CAI), Peer(BY_NUMBA), Peer(BY_CORE_CAI)],
        setup="x = cuda.device_array((8, 8, 8))",
    ),
    Comparison(
        "array interface",
        IMPORT,
        [Peer(BY_CUPY_CAI), Peer(BY_NUMBA), Peer(BY_CORE_CAI)],
        setup="x = Shown(dlf.zeros((8, 8, 8), **small))",
    ),
]

STORAGE = "s = dlf.zeros((8, 8, 8), **small)"
# What the peers get in its place.
BESIDE_CUPY = f"{STORAGE}; x = attempt(lambda: cupy.zeros((8, 8, 8)))"
BESIDE_TORCH = f"{STORAGE}; x = attempt(lambda: torch.zeros((8, 8, 8), device='cuda').double())"
BESIDE_SHOWN = f"{STORAGE}; x = Shown(dlf.zeros((8, 8, 8), **small))"

FROM_STORAGE = [
    Comparison("torch", "torch.from_dlpack(s)", [Peer(BY_TORCH)], setup=BESIDE_CUPY),
    Comparison("CuPy", "cupy.from_dlpack(s)", [Peer(BY_CUPY)], setup=BESIDE_TORCH),
    Comparison("CuPy", "cupy.asarray(s)", [Peer(BY_CUPY_CAI)], setup=BESIDE_SHOWN),
    Comparison("numba", "cuda.as_cuda_array(s)", [Peer(BY_NUMBA)], setup=BESIDE_SHOWN),
    Comparison(
        "cuda.core",
        "core.StridedMemoryView.from_cuda_array_interface(s, stream_ptr=1)",
        [Peer(BY_CORE_CAI)],
        setup=BESIDE_SHOWN,
    ),
    Comparison(
        "cuda.core",
        "core.StridedMemoryView.from_dlpack(s, stream_ptr=1)",
        [Peer(BY_CORE)],
        setup=BESIDE_TORCH,
    ),
]
