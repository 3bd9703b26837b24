"""The doctor as a program, in an environment that a test has changed."""

import json
import os

from support import processes


def examined(*arguments, fakes=None, timeout=300, **settings):
    """Run `python -m dlfield` and give how it ended; modules of the folder `fakes` come first."""
    if fakes is not None:
        paths = [str(fakes), processes.beside_tests()["PYTHONPATH"]]
        settings["PYTHONPATH"] = os.pathsep.join(paths)
    return processes.end_of_module("dlfield", *arguments, timeout=timeout, **settings)


def found(*arguments, **options):
    """Run `python -m dlfield --json` and give the report; the exit status has to fit it."""
    done = examined("--json", *arguments, **options)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    return report


def fake(folder, name, text=""):
    """Write a module that stands before the real one of its name, if there is one."""
    (folder / f"{name}.py").write_text(text, "utf-8")
    return folder
