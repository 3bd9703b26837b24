"""What tests are repeated for: classes of storages on a GPU, states of a pair, devices."""

import dlfield as dlf
import pytest

from support.cuda.order import device_count

CLEAN = dlf.SyncState.SYNC_CLEAN
HOST_NEWER = dlf.SyncState.SYNC_HOST_DIRTY
DEVICE_NEWER = dlf.SyncState.SYNC_DEVICE_DIRTY
#: The value of `managed` for each class.
CLASSES = {
    None: dlf.GPUStorage,
    "gt4py": dlf.SoftwareManagedGPUStorage,
    "cuda": dlf.CUDAManagedGPUStorage,
}

#: The options that give each class.
KINDS = {"CPUStorage": {}} | {
    kind.__name__: {"device": "gpu", "managed": managed} for managed, kind in CLASSES.items()
}

every_class = pytest.mark.parametrize(("name", "options"), KINDS.items(), ids=KINDS)
every_kind = pytest.mark.parametrize("managed", CLASSES, ids=["device", "pair", "managed"])
host_backed = pytest.mark.parametrize("managed", ["gt4py", "cuda"], ids=["pair", "managed"])
every_state = pytest.mark.parametrize(
    "state", [CLEAN, HOST_NEWER, DEVICE_NEWER], ids=["clean", "host newer", "device newer"]
)
two_devices = pytest.mark.skipif(device_count() < 2, reason="needs two GPUs")
every_device = pytest.mark.parametrize("device", [0, pytest.param(1, marks=two_devices)])
