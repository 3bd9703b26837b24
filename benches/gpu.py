"""What copies and exchanges cost on a GPU, beside the driver, torch and CuPy: `make gpu-bench`.

Copies are timed by events of CUDA, the time of exchanges is that of the host. Needs a CUDA driver
and NumPy; any other library that is missing, or sees no device, is named where it would be a peer.
Prints a table per area and writes `benches/results/gpu.csv`.
"""

import argparse
import itertools
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import dlfield as dlf
import numpy as np
from gpu_exchange import FROM_STORAGE, NAMES, TO_STORAGE
from gpu_libraries import CUPY, TORCH, attempt, versions
from on_device import Driver
from timing import Comparison, Missing, Peer, Row, compare_all, print_rows, write_csv

RESULTS = Path(__file__).parent / "results" / "gpu.csv"
LEVELS = 120  # as many as a model of the atmosphere has: extents that are no powers of two

DEVICE_COPY = "cuMemcpy(target, source)"


class Bench:
    """One run: the driver with its stream, how large and how often."""

    def __init__(self, nbytes: int, rounds: int) -> None:
        self.nbytes, self.driver = nbytes, Driver()
        self.measure = self.driver.in_turns(rounds)
        self.names = {"np": np, "dlf": dlf, "cuMemcpy": self.cu_memcpy}

    def cu_memcpy(self, target: object, source: object) -> None:
        """Copy as many bytes as the source has, as they lie."""
        self.driver.copy(address(target), address(source), source.nbytes)

    def on_one_stream(self) -> ExitStack:
        """Let everybody work on the stream that is timed."""
        stack = ExitStack()
        stack.enter_context(dlf.use_stream(self.driver.stream))
        for enter in (self._torch_stream, self._cupy_stream):
            context = attempt(enter)
            if not isinstance(context, Missing):
                stack.enter_context(context)
        return stack

    def _torch_stream(self) -> object:
        return TORCH.cuda.stream(TORCH.cuda.ExternalStream(self.driver.stream))

    def _cupy_stream(self) -> object:
        return CUPY.cuda.ExternalStream(self.driver.stream)

    def shape(self, itemsize: int) -> tuple[int, int, int]:
        """Extents of a field of about the size that is asked for."""
        side = max(2, int((self.nbytes / itemsize / LEVELS) ** 0.5))
        return (side, side, LEVELS)

    def peers(self, **arrays: object) -> dict[str, object]:
        """Name arrays, and views of torch and CuPy over the same memory."""
        named = dict(arrays)
        for name, array in arrays.items():
            named[f"torch_{name}"] = attempt(lambda array=array: self._torch_view(array))
            named[f"cupy_{name}"] = attempt(lambda array=array: CUPY.from_dlpack(array))
        return named

    def _torch_view(self, array: object) -> object:
        if isinstance(array, np.ndarray):
            return TORCH.from_numpy(array)
        return TORCH.from_dlpack(array)

    def permutations(self) -> Iterator[Comparison]:
        """Compare copies of a field in C order into every order."""
        for dtype in ("float32", "float64"):
            shape = self.shape(np.dtype(dtype).itemsize)
            options = {"device": "gpu", "managed": None}
            source = dlf.ones(shape, dtype, **options)
            for layout in itertools.permutations(range(3)):
                order = "".join("IJK"[layout.index(rank)] for rank in range(3))
                target = dlf.zeros(shape, dtype, layout=layout, **options)
                yield Comparison(
                    f"IJK to {order}, {dtype}",
                    "target[...] = source",
                    [
                        Peer(DEVICE_COPY, limit=1 / 0.8),
                        Peer("torch_target.copy_(torch_source)"),
                        Peer("cupy_target[...] = cupy_source"),
                    ],
                    names=self.peers(source=source, target=target),
                )

    def interiors(self) -> Iterator[Comparison]:
        """Compare copies of the domain of a field with a halo."""
        shape, halo = self.shape(8), (3, 3, 0)
        source = dlf.ones(shape, dims="IJK", halo=halo, device="gpu", managed=None).domain_view
        for order, layout in (("IJK", (0, 1, 2)), ("JIK", (1, 0, 2)), ("KJI", (2, 1, 0))):
            options = {"layout": layout, "device": "gpu", "managed": None}
            target = dlf.zeros(source.shape, dims="IJK", **options)
            yield Comparison(
                f"interior of IJK to {order}, float64",
                "target[...] = source",
                [
                    Peer("cuMemcpy(target, plain)", limit=1 / 0.8),
                    Peer("torch_target.copy_(torch_source)"),
                    Peer("cupy_target[...] = cupy_source"),
                ],
                # The limit is a copy of as many bytes that have no gaps.
                names=self.peers(source=source, target=target)
                | {"plain": dlf.zeros(source.shape, device="gpu", managed=None)},
            )

    def transfers(self) -> Iterator[Comparison]:
        """Compare copies between host and device that change no layout."""
        shape = self.shape(8)
        pair = dlf.ones(shape, device="gpu")
        pinned = pair.to_numpy()
        target = dlf.ones(shape, device="gpu", managed=None)
        source = dlf.ones(shape, device="gpu", managed=None)
        array = np.ones(shape)
        with pair.device() as gpu:
            names = self.peers(gpu=gpu, pinned=pinned, array=array, target=target, source=source)
        names |= {"pair": pair, "host": dlf.as_storage(array)}
        yield from (replace(transfer, names=names) for transfer in TRANSFERS)


TRANSFERS = [
    Comparison(
        "host to device, pinned",
        "pair.host_to_device(force=True)",
        [
            Peer("cuMemcpy(gpu, pinned)", limit=1 / 0.95),
            Peer("torch_gpu.copy_(torch_pinned)"),
            Peer("cupy_gpu.set(pinned)"),
            Peer(DEVICE_COPY),
        ],
    ),
    Comparison(
        "device to host, pinned",
        "pair.device_to_host(force=True)",
        [
            Peer("cuMemcpy(pinned, gpu)", limit=1 / 0.95),
            Peer("torch_pinned.copy_(torch_gpu)"),
            Peer("cupy_gpu.get(out=pinned)"),
            Peer(DEVICE_COPY),
        ],
    ),
    Comparison(
        "host to device, pageable",
        "gpu[...] = array",
        [
            Peer("cuMemcpy(gpu, array)"),
            Peer("torch_gpu.copy_(torch_array)"),
            Peer("cupy_gpu.set(array)"),
            Peer(DEVICE_COPY),
        ],
    ),
    Comparison(
        "device to host, pageable",
        "host[...] = gpu",
        [
            Peer("cuMemcpy(array, gpu)"),
            Peer("torch_array.copy_(torch_gpu)"),
            Peer("cupy_gpu.get(out=array)"),
            Peer(DEVICE_COPY),
        ],
    ),
]


def address(array: object) -> int:
    """Where an array of NumPy or a storage on a device begins."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return array.__gt_data_interface__["gpu"]["data"][0]


def with_rates(rows: list[Row], nbytes: int) -> list[Row]:
    """Note how many bytes a second dlfield has moved, counting those that were read."""
    return [
        replace(row, note=row.note or f"{nbytes / row.dlfield_ns:.1f} GB/s")
        if row.dlfield_ns
        else row
        for row in rows
    ]


def main() -> None:
    """Measure every area, print its table, and keep all rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the fields that are copied")
    parser.add_argument("--rounds", type=int, default=31, help="of which the median is taken")
    parser.add_argument("--csv", type=Path, default=RESULTS, help="where all rows are kept")
    options = parser.parse_args()
    bench = Bench(options.mib << 20, options.rounds)
    print(f"Python {platform.python_version()}, {bench.driver.describe()}, {versions()}")
    kept = []
    with bench.on_one_stream():
        for area, comparisons in (
            (f"layout-changing copies of {options.mib} MiB", bench.permutations()),
            (f"copies of a domain, {options.mib} MiB", bench.interiors()),
            (f"between host and device, {options.mib} MiB", bench.transfers()),
        ):
            rows = compare_all(area, comparisons, bench.names, bench.measure)
            kept += with_rates(rows, bench.nbytes)
            print_rows(kept[-len(rows) :])
    for area, exchanges in (
        ("device array -> Storage", TO_STORAGE),
        ("Storage -> device array", FROM_STORAGE),
    ):
        rows = compare_all(area, exchanges, NAMES)
        print_rows(rows)
        kept += rows
    write_csv(options.csv, kept)
    print(f"\nalso written to {os.path.relpath(options.csv)}")


if __name__ == "__main__":
    main()
