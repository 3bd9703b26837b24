"""What extension modules keep in the interpreter: the dict of `PyInterpreterState_GetDict`."""

import ctypes

_interpreter = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", ctypes.pythonapi))
# The function returns a borrowed reference. As the result type `py_object` would take it for a
# new one: each call would drop a reference of the interpreter's own, and the first that reaches
# zero frees what every module keeps there (torch's classes among them).
_dict = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    ("PyInterpreterState_GetDict", ctypes.pythonapi)
)


def interpreter_dict():
    """Return this interpreter's dict, with a reference of the caller's own."""
    return ctypes.cast(_dict(_interpreter()), ctypes.py_object).value
