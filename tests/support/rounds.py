"""What is left after a statement has run many times, in a process of its own."""

import textwrap

from support.processes import run_in_subprocess

#: Expects of the setting: `objects`, whose references are counted; `after(n)`, called after round
#: n; `freed()`, how often each producer's memory was freed; `forget()`, which sets that to 0.
_SEEN = """
import gc, sys
import dlfield as dlf
from support.lying_producers import resident

def seen():
    gc.collect()
    references = [sys.getrefcount(one) for one in (*objects, type(own), None, TypeError)]
    return sys.getallocatedblocks(), resident(), references
"""


def assert_flat(setting, body, rounds, *, released):
    """Run a statement: all counts stay, and a producer releases memory each time or never."""
    printed = run_in_subprocess(
        _SEEN
        + setting
        + textwrap.dedent(f"""
        def run(times):
            for n in range(times):
                {body}
                after(n)

        run({rounds // 10})
        forget()
        blocks, memory, references = seen()
        run({rounds})
        counts = sorted(set(freed()))
        forget()
        blocks_after, memory_after, references_after = seen()
        print(blocks_after - blocks, memory_after - memory)
        print(max(abs(a - b) for a, b in zip(references, references_after)))
        print(*counts)
        """)
    )
    growth, references, counts = printed.split("\n")
    blocks, kibibytes = map(int, growth.split())
    assert abs(blocks) < 200
    assert kibibytes < 1_000
    assert int(references) < 20
    assert set(map(int, counts.split())) <= {0, rounds}
    assert (str(rounds) in counts.split()) is released


def refused(what, errors):
    """Return a statement that has to raise one of the errors."""
    return textwrap.indent(
        textwrap.dedent(f"""
            try:
                {what}
                raise AssertionError("taken")
            except ({errors}):
                pass
        """),
        " " * 16,
    ).strip()
