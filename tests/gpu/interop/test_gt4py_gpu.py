"""GT4Py's own GPU backends, where GT4Py, CuPy and nvcc are."""

import shutil

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, device_view
from support.optional import library

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),  # what GT4Py and dace warn of is theirs
]

SHAPE = (12, 10, 5)


@pytest.fixture(scope="module", params=["gt:gpu", "dace:gpu"])
def laplacian(request):
    """Return a stencil that was compiled for a GPU."""
    gtscript = library("gt4py.cartesian.gtscript")
    library("cupy")
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc compiles stencils for a GPU, and is not there")

    def definition(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):
        with computation(PARALLEL), interval(...):  # noqa: F821 -- words of gtscript
            out = inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0] - 4.0 * inp  # noqa: F841

    return gtscript.stencil(backend=request.param)(definition)


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
