"""Ctrl-C during long work: it is seen when the work is done, which is whole."""

import pytest

from support.processes import run_in_subprocess

WORK = {
    "copy": "target[...] = source",
    "sum": "np.add(source, 0.0, out=target)",
    "batch": "batch.run()",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_interrupted_work_is_whole_or_not_begun_and_nothing_more_is_done(work, threads):
    """A timer interrupts it, again with another delay until that was during the work."""
    printed = run_in_subprocess(f"""
        import signal
        import dlfield as dlf
        import numpy as np
        from dlfield._core import CopyBatch

        source = dlf.ones((160, 160, 160))
        target = dlf.zeros((160, 160, 160), layout=(2, 1, 0))
        batch = CopyBatch([source], [target])
        dlf.set_num_threads({threads})
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        seen = set()
        for number in range(200):
            target[...] = 0.0
            after, delay = [], 0.0005 * (1 + number % 20)
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                {work}
                while True:
                    after.append(1)
            except KeyboardInterrupt:
                pass
            found = {{float(target.min()), float(target.max())}}
            assert len(found) == 1, found
            if found == {{1.0}} and len(after) < 2:  # a call looks for signals
                seen.add("interrupted")
                break
        print(*seen, (target + 1.0).sum() == 2 * target.size)
    """)
    assert printed == "interrupted True"
