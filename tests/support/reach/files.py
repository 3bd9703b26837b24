"""Definitions in files of their own: GT4Py reads the source of what it compiles."""

import importlib.util
import sys


def imported(path, name):
    """Import a file as a module of this name, and give what has the name in it."""
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
