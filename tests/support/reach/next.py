"""Calls of random programs of gt4py.next, in arrays about as large as they need.

What a program needs is seen while "roundtrip" computes in ample arrays. A bound call has to take
arrays that have it, to compute there what GT4Py computes in the ample ones, and to refuse others.
"""

import contextlib
import random
from pathlib import Path

import dlfield as dlf
import gt4py.next as gtx
import numpy as np
from gt4py.next.embedded.exceptions import IndexOutOfBounds
from gt4py.next.embedded.nd_array_field import NumPyArrayField

from support.reach import boxes
from support.reach.files import imported
from support.reach.guarded import guarded
from support.reach.programs import may_store, random_definition, with_both_values
from support.reach.tables import MESH, POINTS, connectivities, random_tables
from support.reach.visited import Visits, stored

BACKENDS = {"roundtrip": gtx.itir_python, "gtfn_cpu": gtx.gtfn_cpu}
#: Ways to call, by the definition that is called.
FORMS = {"by_scalars": 1, "by_output": 2, "operator": 0, "operator_on_domain": 0}
#: Points around the domain of a grid in the ample arrays; more than any program reaches.
AMPLE = 12


class NothingStored(Exception):
    """GT4Py's "roundtrip" cannot compute a program for a domain."""


def subject(folder, name, backend, rng):
    """Write random definitions until GT4Py takes one."""
    for attempt in range(100):
        path = folder / f"{name}_{attempt}.py"
        path.write_text(random_definition(rng, name), encoding="utf-8")
        try:
            return Subject(path, name, backend)
        except gtx.errors.DSLError:  # GT4Py has rules of its own
            continue
    raise RuntimeError(f"{name}: GT4Py takes no definition")


class Subject:
    """An operator and the programs around it, of which one is called, on one mesh.

    GT4Py compiles each program anew for each mesh, which takes most of the time.
    """

    def __init__(self, path, name, backend):
        self.path, self.name = path, name
        rng = random.Random(name)
        self.form = rng.choice(list(FORMS))
        plain = imported(path, name)
        called = plain[FORMS[self.form]]
        self.watched = called.with_backend(BACKENDS["roundtrip"])
        self.storing = called.with_backend(BACKENDS["roundtrip"])
        on_other = backend != "roundtrip"
        self.run = dlf.bind(called.with_backend(BACKENDS[backend]) if on_other else self.watched)
        kind = plain[0].__gt_type__().definition
        #: Types of the arguments, and dimensions of the fields, by name.
        self.kinds = kind.pos_or_kw_args | {"out": kind.returns}
        self.dims = {
            one: of.dims for name, kind in self.kinds.items() for one, of in _parts(name, kind)
        }
        self.outs = [name for name in self.dims if name.startswith("out")]
        self.axes = [dim.value for dim in self.dims[self.outs[0]]]
        self.tables = random_tables(rng) if self.axes[0] in MESH else {}
        source = path.read_text(encoding="utf-8")
        self.may_store = may_store(source)
        #: Reads both values of a condition with `!=`; None if there is no such condition.
        self.reading_both = self._reading_both(source)

    def _reading_both(self, source):
        if (changed := with_both_values(source)) == source:
            return None
        path = self.path.with_name(f"{self.path.stem}_both.py")
        path.write_text(changed, encoding="utf-8")
        called = imported(path, self.name)[FORMS[self.form]]
        return called.with_backend(BACKENDS["roundtrip"])

    def arguments(self, fields):
        """Put fields, by name, into the arguments."""
        return {name: _built(name, kind, fields) for name, kind in self.kinds.items()}

    def seen(self, call):
        """Return the points that fields are visited at, and what is computed, if all rows exist."""
        return self._seen(self.watched, call)

    def seen_at_most(self, call):
        """Return the same for a program that puts into memory what is read at an offset."""
        with stored():
            return self._seen(self.storing, call)

    def seen_in_both(self, call):
        """Return the same for a program that reads both values of a condition with `!=`."""
        return self._seen(self.reading_both, call)

    def _seen(self, program, call):
        arrays, ends = ample(self, call), ample_boxes(self, call)
        with Visits(arrays) as visits:
            given = dict(arrays)
            if call["form"] != "by_scalars":  # it computes wherever its output is
                own = list(call["domain"].values())
                given |= {name: arrays[name][_slices(own, ends[name])] for name in self.outs}
                ends |= dict.fromkeys(self.outs, own)
            try:
                program(
                    **self.arguments(fields(self, given, ends)),
                    **(bounds(call["domain"]) if call["form"] == "by_scalars" else {}),
                    offset_provider=connectivities(call["tables"]),
                )
            except (IndexError, IndexOutOfBounds):
                arrays = None
            except StopIteration:  # "roundtrip" stores no value at no point
                raise NothingStored from None
        for name in self.outs:
            visits.boxes[name] = list(call["domain"].values())
        return visits.boxes, arrays


def _parts(name, kind):
    if hasattr(kind, "types"):
        return [(f"{name}[{at}]", one) for at, one in enumerate(kind.types)]
    return [(name, kind)]


def _built(name, kind, fields):
    parts = tuple(fields[one] for one, _ in _parts(name, kind))
    return parts if hasattr(kind, "types") else parts[0]


def bounds(domain):
    """Return the scalars of a program that tell its domain."""
    found = {}
    for dim, (first, end) in domain.items():
        found |= {f"first_{dim}": np.int32(first), f"end_{dim}": np.int32(end)}
    return found


def ample_boxes(subject, call):
    def ends(dim):
        if dim in MESH:
            return 0, POINTS
        first, end = call["domain"].get(dim, (0, 1))
        return first - AMPLE, end + AMPLE

    return {name: [ends(dim.value) for dim in dims] for name, dims in subject.dims.items()}


def ample(subject, call):
    """Make arrays of small whole numbers, whose sums are exact."""
    numbers = np.random.default_rng(call["seed"])
    shapes = {name: [b - a for a, b in box] for name, box in ample_boxes(subject, call).items()}
    return {
        name: numbers.integers(1, 9, shape).astype(np.float64) for name, shape in shapes.items()
    }


def _slices(box, outer):
    """Return the place of a box in an array that has the points of another."""
    return tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(box, outer, strict=True))


def fields(subject, arrays, given):
    """Give GT4Py's own fields over arrays that have the points of boxes."""
    made = {}
    for name, array in arrays.items():
        ranges = [gtx.UnitRange(low, high) for low, high in given[name]]
        made[name] = NumPyArrayField(gtx.Domain(dims=subject.dims[name], ranges=ranges), array)
    return made


def draw(rng, subject):
    """Draw a call: a domain, tables, and for each field the points that its array has."""
    call = {"form": subject.form, "seed": rng.randrange(1000), "at_end": rng.random() < 0.5}
    #: With fields of gt4py.next, which know where they begin; else the call says it.
    call["as_fields"] = rng.random() < 0.3
    call["tables"] = subject.tables
    most = POINTS * rng.randint(0, 1)  # with arrays of the whole mesh, or of what is needed
    for _ in range(100):
        call["domain"] = {dim: _ends(rng, dim, call) for dim in subject.axes}
        with contextlib.suppress(NothingStored):
            both = subject.reading_both and rng.random() < 0.7
            touched, _ = subject.seen_in_both(call) if both else subject.seen(call)
            break
    short = rng.choice((*subject.dims, None, None))
    call["boxes"] = {
        name: _given(rng, call, [dim.value for dim in dims], touched.get(name), name, short, most)
        for name, dims in subject.dims.items()
    }
    return call


def _given(rng, call, dims, touched, name, short, most):
    """Draw the points of one array; those of a mesh begin at 0."""
    domain = list(call["domain"].values())
    if name.startswith("out") and call["form"] == "by_output":
        return domain
    if name.startswith("out") and call["form"] == "operator":
        below = rng.choice((0, 1)) * (not call["as_fields"])  # it computes from the origin on
        return [
            (low - below * (dim not in MESH), high)
            for (low, high), dim in zip(domain, dims, strict=True)
        ]
    origin = [(0, 0)] * len(dims)
    least = touched if call["as_fields"] and touched else boxes.hull(origin, touched)
    given = boxes.widened(rng, least)
    if name == short:
        given, most = boxes.shortened(rng, least, given), 0
    if not call["as_fields"]:
        given = boxes.hull(given, origin)
    return [
        (0, max(high, most)) if dim in MESH else (low, max(high, 0))  # `bind` refuses an end below
        for (low, high), dim in zip(given, dims, strict=True)
    ]


def _ends(rng, dim, call):
    computed_from_0 = call["form"] == "operator" and not call["as_fields"]
    if computed_from_0 or (dim in MESH and call["form"] in ("by_output", "operator")):
        first = 0
    else:
        first = rng.choice((0, 0, 1)) if dim in MESH else -rng.choice((0, 0, 1, 2))
    return first, rng.randint(max(first + 1, 0 if call["as_fields"] else 1), 4)


def check(subject, call):
    """Make a call, and tell what became of it: what may, or AssertionError."""
    given, ends = call["boxes"], ample_boxes(subject, call)
    touched, computed = subject.seen(call)
    whole = ample(subject, call)
    cut = {name: _slices(given[name], ends[name]) for name in given}
    arrays = {
        name: guarded(whole[name][at], "C", at_end=call["at_end"]) for name, at in cut.items()
    }
    try:
        made(subject, call, arrays)
    except ValueError as refusal:
        unchanged(arrays, {name: whole[name][at] for name, at in cut.items()})
        return necessary(subject, call, refusal, fits(given, touched, computed))
    assert fits(given, touched, computed), f"a call is taken that touches {touched}"
    unchanged(arrays, {name: computed[name][at] for name, at in cut.items()})
    return "taken"


def fits(given, touched, computed):
    """Return whether arrays and tables have what is touched."""
    return computed is not None and all(
        boxes.within(box, given[name]) for name, box in touched.items()
    )


def made(subject, call, arrays):
    """Call what is bound."""
    form, given = call["form"], call["boxes"]
    options = {"offset_provider": connectivities(call["tables"])}
    if call["as_fields"]:
        arrays = fields(subject, arrays, given)
    else:
        options["origin"] = {name: tuple(-low for low, _ in box) for name, box in given.items()}
    if form == "by_scalars":
        options |= bounds(call["domain"])
    if form == "operator_on_domain":
        options["domain"] = call["domain"]
    subject.run(**subject.arguments(arrays), **options)


def necessary(subject, call, refusal, fitted):
    """Tell why a call may be refused.

    Two kinds of calls that would touch nothing outside may be: those of programs that read a value
    in between several times, or by one table behind another. GT4Py might put it into memory, for
    all points of the mesh or around the parts of a region, where that would leave the arrays. And
    those of programs with `!=` in a condition, which GT4Py 1.1 computes wrongly.
    """
    if not fitted:
        return "refused"
    with contextlib.suppress(NothingStored):
        if subject.reading_both and not fits(call["boxes"], *subject.seen_in_both(call)):
            return "both values"
        if subject.may_store and not fits(call["boxes"], *subject.seen_at_most(call)):
            return "in memory"
    raise AssertionError(f"refused without need: {refusal}") from refusal


def unchanged(arrays, expected):
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def again(path, name, backend, call):
    """Make a call again that failed."""
    print(check(Subject(Path(path), name, backend), call))
