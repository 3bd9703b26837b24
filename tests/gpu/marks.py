"""What tests are repeated for: devices, and kinds of storages on them."""

import pytest
from order import device_count

two_devices = pytest.mark.skipif(device_count() < 2, reason="needs two GPUs")
every_device = pytest.mark.parametrize("device", [0, pytest.param(1, marks=two_devices)])

#: `managed=` of each.
KINDS = {"alone": None, "pair": "gt4py", "managed": "cuda"}
every_kind = pytest.mark.parametrize("managed", KINDS.values(), ids=KINDS)
