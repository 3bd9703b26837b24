"""Many random calls in a process of their own, which guard pages may end.

`python -m support.reach.batch KIND BACKEND SEED SUBJECTS CALLS FOLDER` prints what became of the
calls. Before each one it writes a script into the folder that makes the same call again.
"""

import collections
import importlib
import json
import random
import sys
import warnings
from pathlib import Path

SCRIPT = """

if __name__ == "__main__":
    from support.reach.{kind} import again

    again({path!r}, {name!r}, {backend!r}, {call!r})
"""


def seeded(*parts):
    """Return the random numbers that belong to names and numbers."""
    return random.Random("-".join(map(str, parts)))


def batch(kind, backend, seed, subjects, calls, folder):
    """Make the calls, and count them by what became of them."""
    module, found = importlib.import_module(f"support.reach.{kind}"), collections.Counter()
    for number in range(int(subjects)):
        name = f"random_{seed}_{number}"
        subject = module.subject(Path(folder), name, backend, seeded(seed, number))
        source, example = subject.path.read_text(encoding="utf-8"), Path(folder) / "example.py"
        for at in range(int(calls)):
            call = module.draw(seeded(seed, number, at), subject)
            ending = SCRIPT.format(
                kind=kind, path=str(example), name=name, backend=backend, call=call
            )
            example.write_text(source + ending, encoding="utf-8")
            found[module.check(subject, call)] += 1
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(batch(*sys.argv[1:])))
