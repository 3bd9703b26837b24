"""Snippets in forks of a process that has imported dlfield already, which saves each the start.

A fork ends as a process of its own does: by Python's finalisation, or by a signal. The process that
forks runs no snippet itself, and has one thread.
"""

import atexit
import gc
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

#: What is imported before; a snippet finds it in `sys.modules`.
IMPORTED = ("ctypes", "json", "dlfield", "support.arrow_structs", "support.lying_producers")


class Forks:
    """Runs snippets one after the other, in forks of one process.

    Parameters
    ----------
    options, environment
        Of the interpreter that is forked.
    """

    def __init__(self, options, environment):
        code = f"import {', '.join(IMPORTED)}, support.forked as server; server.serve()"
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", *options, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        atexit.register(self.end)

    def end(self):
        """End the process that forks."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def end_of(self, code, timeout):
        """Run a snippet, and give how its fork ended, as `subprocess.run` would."""
        with tempfile.TemporaryDirectory() as folder:
            printed = [Path(folder, name) for name in ("out", "err")]
            request = {"code": code, "files": list(map(str, printed)), "folder": os.getcwd()}
            print(json.dumps(request), file=self.process.stdin, flush=True)
            if not select.select([self.process.stdout], [], [], timeout)[0]:
                self.process.kill()
                raise subprocess.TimeoutExpired(code, timeout)
            answer = self.process.stdout.readline()
            if not answer:
                raise RuntimeError(f"the process that forks has ended: {self.process.wait()}")
            out, err = (one.read_text("utf-8") for one in printed)
        return subprocess.CompletedProcess(code, int(answer), out, err)


def serve():
    """Fork for each line, a request, and answer with the exit status; in the fork, run the code."""
    gc.freeze()  # what is here needs no collection in the forks
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            _run(**json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(code, files, folder):
    os.chdir(folder)
    for number, path in zip((0, 1, 2), (os.devnull, *files), strict=True):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    main = vars(sys.modules["__main__"])
    del main["server"]
    exec(compile(code, "<string>", "exec"), main)
