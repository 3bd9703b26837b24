"""A function in Rust of another extension module, on memory of the host that a GPU works on."""

import numpy as np
import pytest

from support.cuda.apart import run
from support.cuda.buffers import buffers, pair, values
from support.cuda.devices import new_stream
from support.cuda.kinds import DEVICE_NEWER, HOST_NEWER
from support.cuda.producers import MANAGED, OfNoKeywords, workshop
from support.rust_kernel import LIBRARY, built

if not LIBRARY.exists():
    pytest.skip("the example is not built on this machine", allow_module_level=True)

VALUES = np.random.default_rng(5).random((4, 5, 3))


laplacian, column_mean = built().laplacian, built().column_mean


class Told:
    """An array that calls `acquire` once the arguments before it are inside."""

    def __init__(self, array, acquire):
        hooks = {"acquire": acquire, "touch": lambda: None, "release": lambda: None}
        self.__gt_data_interface__ = {None: {**array.__array_interface__, **hooks}}


def test_the_newer_values_are_read_and_those_written_are_newer():
    inp, out = pair(VALUES, DEVICE_NEWER), pair(np.zeros_like(VALUES), DEVICE_NEWER)
    laplacian(inp, out)
    expected = np.zeros_like(VALUES)
    laplacian(VALUES, expected)
    assert out.sync_state.state == HOST_NEWER
    assert np.array_equal(values(out), expected)


def test_the_package_does_not_change_the_hosts_buffer_while_it_is_read():
    inp, out = pair(VALUES), np.zeros_like(VALUES)

    def meanwhile():
        with inp.device() as side:
            side[...] = -1.0
        with pytest.raises(BufferError, match="elements that are being read through another view"):
            inp.device_to_host()
        assert np.array_equal(buffers(inp)[0], VALUES)

    laplacian(inp, Told(out, meanwhile))
    inp.device_to_host()
    assert (inp.to_numpy() == -1.0).all()


def test_the_device_may_be_brought_up_to_date_while_the_hosts_buffer_is_read():
    inp, out = pair(VALUES, HOST_NEWER), np.zeros_like(VALUES)
    laplacian(inp, Told(out, inp.host_to_device))
    assert np.array_equal(buffers(inp)[1], VALUES)


def test_work_in_flight_on_managed_memory_is_waited_for():
    with workshop() as producer:
        late = producer(OfNoKeywords, kind=MANAGED, late=new_stream())  # writes 10 to 13
        assert column_mean(late.__dlpack__()).to_numpy() == 11.5


@pytest.mark.stand_in
def test_the_interpreter_is_free_while_a_function_waits_for_a_gpu():
    code = """
        from support.cuda.producers import MANAGED, OfNoKeywords
        from support.rust_kernel import built
        stream = new_stream()
        gate = Gate(stream)
        late = OfNoKeywords(kind=MANAGED, late=stream)
        capsule = late.__dlpack__()
        gate.open_later()
        print(built().column_mean(capsule).to_numpy(), flush=True)
        faulthandler.cancel_dump_traceback_later()
        call("cuCtxSynchronize")
    """
    assert run(code) == "11.5"
