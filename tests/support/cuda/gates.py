"""Work that ends only after some thread of Python has run, such as a host function in Python.

A thread that waits for it and holds the interpreter waits for ever.

For processes of their own (`apart`).
"""

import ctypes
import faulthandler
import threading
import time

from support.cuda.driver import call

_libc = ctypes.CDLL(None)


class Gate:
    """Stands in a stream, closed; what is put there afterwards waits."""

    def __init__(self, stream):
        self._semaphore = (ctypes.c_uint64 * 8)()
        _libc.sem_init(self._semaphore, 0, 0)
        wait = ctypes.cast(_libc.sem_wait, ctypes.c_void_p)
        call("cuLaunchHostFunc", stream, wait, ctypes.addressof(self._semaphore))

    def open_later(self, *, give_up=4):
        """Let another thread open it. A process that still waits then prints where, and ends."""
        threading.Thread(target=self._open).start()
        faulthandler.dump_traceback_later(give_up, exit=True)

    def _open(self):
        time.sleep(0.2)  # by then the waiting has begun; sooner, the test would prove less
        _libc.sem_post(self._semaphore)


def elsewhere(function, *arguments):
    """Call a function on another thread, and give that once it is under way."""
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    time.sleep(0.2)
    return thread
