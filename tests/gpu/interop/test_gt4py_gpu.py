"""GT4Py's own GPU backends, where GT4Py, CuPy and nvcc are."""

import shutil

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, OnDevice, delay, device_view, is_done, new_stream
from support.cuda.order import in_flight, seen_from
from support.optional import library

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),  # what GT4Py and dace warn of is theirs
]

SHAPE = (12, 10, 5)


every_backend = pytest.fixture(scope="module", params=["gt:gpu", "dace:gpu"])


def compiled(backend, **options):
    """Return a stencil for a GPU."""
    gtscript = library("gt4py.cartesian.gtscript")
    library("cupy")
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc compiles stencils for a GPU, and is not there")

    def definition(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):
        with computation(PARALLEL), interval(...):  # noqa: F821 -- words of gtscript
            out = inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0] - 4.0 * inp  # noqa: F841

    return gtscript.stencil(backend=backend, **options)(definition)


@every_backend
def laplacian(request):
    return compiled(request.param)


@every_backend
def unwaited(request):
    return compiled(request.param, name="unwaited", device_sync=False)


def expected(values):
    inner = values[1:-1, 1:-1]
    around = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
    return around - 4.0 * inner


def test_a_compiled_stencil_computes_in_storages_of_the_gpu(laplacian):
    values = np.random.default_rng(1).random(SHAPE)
    options = {"dims": "IJK", "halo": (1, 1, 0), "backend": laplacian.backend}
    inp = dlf.storage(values, **options)
    out = dlf.zeros(SHAPE, **options)
    dlf.bind(laplacian)(inp, out)
    assert np.allclose(out.to_numpy()[1:-1, 1:-1], expected(values))


def test_a_compiled_stencil_computes_in_memory_of_another_library(laplacian):
    values = np.random.default_rng(2).random(SHAPE)
    inp, out = OnDevice(values), dlf.zeros(SHAPE, device="gpu", managed=None)
    run = dlf.bind(laplacian)
    run(inp, out, origin=(1, 1, 0), domain=(SHAPE[0] - 2, SHAPE[1] - 2, SHAPE[2]))
    assert np.allclose(device_view(out)[1:-1, 1:-1], expected(values))


def test_arrays_of_the_host_go_to_a_compiled_stencil_and_come_back(laplacian):
    values = np.random.default_rng(3).random(SHAPE)
    out = np.zeros(SHAPE)
    with pytest.warns(dlf.DeviceCopyWarning):
        dlf.bind(laplacian, on_mismatch="copy")(
            values, out, origin=(1, 1, 0), domain=(SHAPE[0] - 2, SHAPE[1] - 2, SHAPE[2])
        )
    assert np.allclose(out[1:-1, 1:-1], expected(values))


INSIDE = {"origin": (1, 1, 0), "domain": (SHAPE[0] - 2, SHAPE[1] - 2, SHAPE[2])}


def test_a_stencil_compiled_without_a_wait_is_at_work_when_its_call_returns(unwaited):
    values = np.random.default_rng(4).random(SHAPE)
    inp, out = (dlf.storage(one, device="gpu", managed=None) for one in (values, np.zeros(SHAPE)))
    run = dlf.bind(unwaited)
    run(inp, out, **INSIDE)
    delay(LEGACY)
    run(inp, out, **INSIDE)
    assert not is_done(LEGACY)
    assert np.allclose(device_view(out)[1:-1, 1:-1], expected(values))


def test_a_stencil_compiled_without_a_wait_is_in_order_with_other_streams(unwaited):
    values, on = np.random.default_rng(5).random(SHAPE), new_stream()
    late = in_flight(np.zeros(SHAPE), values, on=new_stream)
    memory = OnDevice(np.zeros(SHAPE), stream=on)
    out = dlf.as_storage(memory, managed=None)
    delay(LEGACY)
    dlf.bind(unwaited)(late, out, **INSIDE)
    got = seen_from(on, memory.address, SHAPE)
    assert np.allclose(got[1:-1, 1:-1], expected(values))


def test_steps_of_a_stencil_compiled_without_a_wait_come_one_after_the_other(unwaited):
    values = np.random.default_rng(6).random((130, 120, 40))
    inside = {"origin": (1, 1, 0), "domain": (128, 118, 40)}
    one, other = (dlf.storage(values, device="gpu") for _ in range(2))
    run, by_numpy, swapped = dlf.bind(unwaited), values.copy(), values.copy()
    for _ in range(10):
        run(one, other, **inside)
        with dlf.use_stream(new_stream()):
            other[...] = other * 0.1
        one, other = other, one
        swapped[1:-1, 1:-1] = expected(by_numpy)
        swapped *= 0.1
        by_numpy, swapped = swapped, by_numpy
    assert np.allclose(one.to_numpy(), by_numpy)
