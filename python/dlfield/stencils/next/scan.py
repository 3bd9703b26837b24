"""Scan operators that are bound without `fields`: the dimensions are those of the arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import BoundStencil, call_by_name, get_dims
from dlfield.stencils.declaration import Declaration, DeclaredScalar
from dlfield.stencils.next import internals
from dlfield.stencils.next.dimensions import ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dlfield._core import CallPlan

__all__ = ["ScanByArguments", "declare_scalars"]


def declare_scalars(stencil: Any) -> Declaration:
    """Declare a scan operator whose fields are not known yet: every argument may be anything."""
    names = internals.arguments_of_scan(stencil)
    return Declaration(
        stencil.__name__,
        run=stencil,
        fields=[],
        scalars=[DeclaredScalar(name, None, used=False) for name in names],
        order=names,
        positional=len(names) - 1,  # not `out`
        connectivities={},
        decided_by="outputs",
    )


class ScanByArguments(BoundStencil):
    """A scan operator that is bound again for each set of dimensions of its arguments."""

    #: Binds the operator with these `fields` and `dims`.
    bind: Callable[..., BoundStencil]
    #: The stencil's dimension for each of the user's names.
    dims: Mapping[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Call it, with the dimensions of these arguments."""
        place = {name: kwargs.pop(name, None) for name in ("origin", "domain", "exec_info")}
        run = self.of_call(args, kwargs)
        call_by_name(run, run.arguments(*args, **kwargs), **place)

    def plan(self, *args: Any, **kwargs: Any) -> CallPlan:
        """Plan a call."""
        place = {name: kwargs.pop(name, None) for name in ("origin", "domain")}
        return self.of_call(args, kwargs).plan(*args, **place, **kwargs)

    def functional(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with an output that is made here."""
        options = ("origin", "domain", "exec_info", "like", "halo")
        given = {name: value for name, value in kwargs.items() if name not in options}
        return self.of_call(args, given).functional(*args, **kwargs)

    def of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundStencil:
        """Return the operator that is bound for the dimensions of these arguments."""
        given = self.arguments(*args, **kwargs)
        found = {name: self._dims_of(name, value) for name, value in given.items()}
        known = {name: found[name] for name in self.argument_names if found.get(name)}
        known.setdefault("out", tuple(ordered(dim for dims in known.values() for dim in dims)))
        key = tuple(known.items())
        bound: dict[Any, BoundStencil] = self.__dict__.setdefault("_bound", {})
        if key not in bound:
            import gt4py.next as gtx

            fields = {name: gtx.Field[gtx.Dims[dims], gtx.float64] for name, dims in known.items()}
            used = {dim for dims in known.values() for one in dims for dim in (one, one.value)}
            names = {name: dim for name, dim in self.dims.items() if dim in used}
            bound[key] = self.bind(fields=fields, dims=names)
        return bound[key]

    def _dims_of(self, name: str, value: Any) -> tuple[Any, ...]:
        """Return the dimensions of an argument; none for a scalar."""
        while isinstance(value, tuple) and value:
            value = value[0]  # the parts of a collection have the same
        if internals.is_field(value):
            return tuple(value.domain.dims)
        names = get_dims(value)
        if names is None:
            if getattr(value, "ndim", 0):
                called = self.stencil.__name__
                raise ValueError(
                    f"argument '{name}': needs names of its dimensions, as '{called}' is a scan "
                    "operator, whose arguments have none; pass a DataArray, a storage with "
                    f"dims= or a field, or bind it with fields={{'{name}': gtx.Field[...], ...}}"
                )
            return ()
        return tuple(ordered(self._dimension(one) for one in names))

    def _dimension(self, name: str) -> Any:
        """Return the ``gtx.Dimension`` of a name."""
        axis = internals.axis_of_scan(self.stencil)
        known = [axis, *filter(internals.is_dimension, self.dims.values())]
        target = self.dims.get(name, name)
        for dim in known:
            if target in (dim, dim.value):
                return dim
        raise ValueError(
            f"dims: needs a gtx.Dimension for '{name}'; bind the operator with "
            f"dims={{'{name}': ...}}, or with fields={{...}} and gtx.Field[...]"
        )
