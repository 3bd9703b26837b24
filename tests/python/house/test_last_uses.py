"""Storages that are used while the interpreter ends: by exit handlers, and by daemon threads."""

import pytest

from support.processes import run_in_subprocess

USES = """
import atexit, copy, pickle, threading, time
import numpy as np

def prepare():
    global dlf, run, source, target, plan
    import dlfield as dlf
    from dlfield.annotations import Access, Field

    def step(x: Field[np.float64], y: Field[np.float64, Access["out"]]):
        np.add(x, 1.0, out=y)

    dlf.set_num_threads(2)
    run, shape = dlf.bind(step), (100, 100, 60)
    source, target = dlf.ones(shape), dlf.zeros(shape, layout=(2, 1, 0))
    plan = dlf.halo_exchange([dlf.ones((6, 6), dims="IJ", halo=(1, 1))], None)

def use():
    made = dlf.storage(source, layout=(2, 1, 0))
    run(made, target)
    target[1:] = source[1:]
    plan.exchange()
    pickle.loads(pickle.dumps(copy.copy(made[:2, :2])))
    again = dlf.as_storage(np.from_dlpack(made))
    memoryview(again).release()
    repr(again), dlf.explain(again), again.__arrow_c_array__
    return float((again + target)[0].sum()), float(np.sqrt(made).sum())
"""


def test_exit_handlers_may_use_storages_before_and_after_those_of_dlfield():
    printed = run_in_subprocess(
        USES
        + """
atexit.register(lambda: print(use()))  # runs last
prepare()
atexit.register(lambda: print(use()))
assert use()
"""
    )
    assert printed.splitlines() == ["(18000.0, 600000.0)"] * 2


def test_an_exit_handler_may_be_the_first_use_of_all():
    printed = run_in_subprocess(
        USES
        + """
@atexit.register
def first():
    prepare()
    print(use())
"""
    )
    assert printed == "(18000.0, 600000.0)"


AT_WORK = {
    "everything": "use()",
    "large copies": "dlf.storage(source, layout=(2, 1, 0))",
    "arithmetic": "source + target",
    "unconsumed capsules": "source.__dlpack__(max_version=(1, 0))",
    "bound call": "run(source, target)",
}


@pytest.mark.parametrize("work", AT_WORK.values(), ids=AT_WORK)
def test_daemon_threads_go_on_until_the_interpreter_has_ended(work):
    """The main thread also uses storages until the last moment."""
    run_in_subprocess(
        USES
        + f"""
prepare()
use()

def forever():
    while True:
        {work}

for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
atexit.register(use)
cycle = [source, target, source.__dlpack__(), source.__arrow_c_array__(), plan, run]
cycle.append(cycle)
"""
    )
