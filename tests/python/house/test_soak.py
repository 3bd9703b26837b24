"""Random operations on several threads end with nothing left, and the soak would notice."""

import json

import pytest

from support.processes import run_in_subprocess

SETTING = """
import json
import dlfield as dlf
import numpy as np
from support import soak
"""


def soaked(operations, before=""):
    printed = run_in_subprocess(
        f"{SETTING}{before}\nprint(json.dumps(soak.soak({operations}, 4, 1)))"
    )
    return json.loads(printed)


def test_random_operations_on_several_threads_leave_nothing_behind():
    outcome = soaked(250_000)
    assert outcome["left"] == {}
    assert outcome["grown"] < 2_048  # KiB
    assert min(outcome["taken"].values()) > 1_000


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        ("dlf.zeros(3)", {"own memory": 1}),
        ("dlf.zeros(soak.LARGE).__dlpack__()", {"own memory": 1}),
        ("dlf.as_storage(soak.BYTEARRAYS[0])", {"bytearrays": 1}),
        ("dlf.as_storage(np.zeros(3).view(soak.Watched))", {"arrays": 1}),
        ("dlf.as_storage(soak.Interface(3)).to_numpy()", {"array interfaces": 1}),
        *(
            (f"dlf.as_storage(soak.PRODUCERS[{name!r}]).domain_view", {name: 1})
            for name in ("versioned", "legacy", "exchange table", "acquire and release")
        ),
    ],
)
def test_one_object_that_is_kept_is_found(kept, left):
    assert soaked(100, before=f"kept = {kept}")["left"] == left
