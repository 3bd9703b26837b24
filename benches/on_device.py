"""Time that passes on a GPU, by events of the CUDA driver.

All candidates work on one stream, on which an event is recorded before and after each statement.
The stream is kept busy until the statement has been put on it, so that what counts is the work and
not Python; what waits by itself is measured with its waiting.
"""

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

from timing import Samples

NON_BLOCKING = 1
BUSY_MICROSECONDS = 300


class Driver:
    """Those functions of the driver that are needed here, on the first GPU and one stream."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", c_uint(0))
        self._device = self._made("cuDeviceGet", c_int, c_int(0))
        context = self._made("cuDevicePrimaryCtxRetain", c_void_p, c_int(self._device))
        self._call("cuCtxSetCurrent", c_void_p(context))
        self.stream = self._made("cuStreamCreate", c_uint64, c_uint(NON_BLOCKING))
        self._events = [self._made("cuEventCreate", c_uint64, c_uint(0)) for _ in range(2)]
        self._usleep = ctypes.cast(ctypes.CDLL(None).usleep, c_void_p)

    def _call(self, name: str, *arguments: object) -> None:
        number = getattr(self._library, name)(*arguments)
        if number:
            raise RuntimeError(f"{name} gave error {number}")

    def _made(self, name: str, kind: type, *arguments: object) -> int:
        answer = kind()
        self._call(name, byref(answer), *arguments)
        return answer.value

    def describe(self) -> str:
        """Name the GPU and the driver's version of CUDA."""
        name = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", name, c_int(100), c_int(self._device))
        version = self._made("cuDriverGetVersion", c_int)
        return f"{name.value.decode()}, driver for CUDA {version // 1000}.{version % 1000 // 10}"

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Put a copy on the stream, of memory on whichever side."""
        addresses = c_uint64(target), c_uint64(source)
        self._call("cuMemcpyAsync", *addresses, c_size_t(nbytes), c_uint64(self.stream))

    def finish(self) -> None:
        """Wait for everything on the GPU."""
        self._call("cuCtxSynchronize")

    def nanoseconds(self, code: object, names: dict[str, object]) -> float:
        """Run a statement and give the time that passed on the stream."""
        start, end = map(c_uint64, self._events)
        self.finish()
        self._call("cuLaunchHostFunc", c_uint64(self.stream), self._usleep, BUSY_MICROSECONDS)
        self._call("cuEventRecord", start, c_uint64(self.stream))
        exec(code, names)
        self._call("cuEventRecord", end, c_uint64(self.stream))
        self._call("cuEventSynchronize", end)
        return self._made_float("cuEventElapsedTime", start, end) * 1e6

    def _made_float(self, name: str, *arguments: object) -> float:
        answer = c_float()
        self._call(name, byref(answer), *arguments)
        return answer.value

    def in_turns(self, rounds: int) -> object:
        """Return what measures statements in turns, after each has run once."""

        def measure(statements: Sequence[str], names: dict[str, object]) -> Samples:
            codes = {statement: compile(statement, "bench", "exec") for statement in statements}
            samples: Samples = {statement: [] for statement in statements}
            for _ in range(rounds):
                for statement, code in codes.items():
                    samples[statement].append(self.nanoseconds(code, names))
            return samples

        return measure
