"""A stand-in for a compiled stencil that records what it is run with."""

import inspect
from types import SimpleNamespace


class Recorder:
    """Has the face of a real stencil, on any backend, without compiling anything.

    `calls` has one entry for each run: the arrays and scalars by name, origin, domain, exec_info.
    """

    def __init__(self, stencil, backend="gt:cpu_kfirst"):
        self.backend = backend
        self.options = stencil.options
        self.field_info = stencil.field_info
        self.parameter_info = stencil.parameter_info
        self.domain_info = stencil.domain_info
        self.__signature__ = inspect.signature(stencil)
        self.calls = []

    def run(self, *, _domain_, _origin_, exec_info, **arguments):
        self.calls.append(
            SimpleNamespace(
                domain=_domain_, origin=_origin_, exec_info=exec_info, arguments=arguments
            )
        )

    def __call__(self, *, domain, origin, exec_info, **arguments):
        self.run(_domain_=domain, _origin_=origin, exec_info=exec_info, **arguments)
