"""A stencil of a GPU that nobody waits for, and storages for it."""

import dlfield as dlf
import numpy as np

from support.cuda.devices import LEGACY, delay
from support.cuda.driver import call
from support.cuda.kernel_calls import launch
from support.stencils.stand_ins import SHAPE, StandIn, field

__all__ = ["SHAPE", "VALUES", "ZEROS", "Unwaited", "on_gpu", "values_of"]

VALUES = np.arange(60.0).reshape(SHAPE)
ZEROS = np.zeros(SHAPE)


class Unwaited(StandIn):
    """Copies `inp` to `out` on its GPU, late, in the legacy default stream."""

    device = "gpu"

    def __init__(self, **options):
        super().__init__(inp=field("READ"), out=field("WRITE"), **options)
        self.options["backend_opts"] = {"device_sync": False}

    def run(self, *, _domain_, _origin_, exec_info, inp, out):
        delay(LEGACY)
        arrays = [one.__cuda_array_interface__ for one in (inp, out)]
        source, target = (
            one["strides"] or np.empty(one["shape"], one["typestr"]).strides for one in arrays
        )
        walks = list(zip(inp.shape, source, target, strict=True))
        launch("copy", 8, walks, source=arrays[0]["data"][0], target=arrays[1]["data"][0])
        self.raises.pass_("run")


def on_gpu(values, managed=None):
    """Return a storage with these values on its GPU, and nothing in flight."""
    storage = dlf.storage(values, device="gpu", managed=managed)
    storage.host_to_device()
    call("cuCtxSynchronize")
    return storage


def values_of(storage):
    """Return the values, wherever they are."""
    return dlf.storage(storage, device="cpu").to_numpy()
