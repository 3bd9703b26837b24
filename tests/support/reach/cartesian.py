"""Calls of random stencils of gt4py.cartesian, in arrays about as large as they need.

What a stencil needs is seen while "debug" computes in ample arrays. A bound call has to take arrays
that have it, to compute there what GT4Py computes in the ample ones, and to refuse all others.
"""

import functools

import dlfield as dlf
import numpy as np
from dlfield.stencils.cartesian.internals import representation_of
from dlfield.stencils.cartesian.nodes import accesses
from dlfield.stencils.cartesian.regions import regions
from gt4py.cartesian import gtscript

from support.processes import one_at_a_time
from support.reach import boxes
from support.reach.definitions import FIELDS, REGION, definition
from support.reach.files import imported
from support.reach.guarded import guarded
from support.reach.touched import Watch

#: Points around the domain in the ample arrays; more than any stencil reaches.
AMPLE = 24
AXES = {name: ["IJK".index(dim) for dim in dims] for name, (dims, _) in FIELDS.items()}
IN_AMPLE = {
    name: (*(AMPLE for _ in dims), *(0 for _ in data)) for name, (dims, data) in FIELDS.items()
}


def compiled(function, backend):
    """Compile a definition; one process at a time, which GT4Py does not see to."""
    with one_at_a_time(f"{function.__name__}-{backend}".replace(":", "-")):
        return gtscript.stencil(backend=backend, definition=function, format_source=False)


def subject(folder, name, backend, rng):
    """Write random definitions until GT4Py takes one."""
    for attempt in range(100):
        path = folder / f"{name}_{attempt}.py"
        path.write_text(definition(rng, name), encoding="utf-8")
        try:
            return Subject(path, name, backend)
        except (ValueError, TypeError, gtscript_error()):  # GT4Py has rules of its own
            continue
    raise RuntimeError(f"{name}: GT4Py takes no definition")


@functools.cache
def gtscript_error():
    from gt4py.cartesian.frontend.exceptions import GTScriptSyntaxError

    return GTScriptSyntaxError


class Subject:
    """A definition for one backend, and what it touches."""

    def __init__(self, path, name, backend):
        self.path, self.name, self.backend = path, name, backend
        definition = imported(path, name)
        self.watched = compiled(definition, "debug")
        self.stencil = compiled(definition, backend)
        self.run = dlf.bind(self.stencil)
        self.order = "F" if backend.endswith("ifirst") else "C"
        infos = self.stencil.field_info.items()
        self.used = [name for name, info in infos if info.access.name != "NONE"]
        self.fewest = self.stencil.domain_info.min_sequential_axis_size
        covers = self.run.declaration.covers
        self.covered = [one for one in self.used if covers(one) and self.only_writes(one)]
        self.has_region = REGION in path.read_text(encoding="utf-8")
        self.touched = functools.cache(self._touched)

    def only_writes(self, name):
        return self.stencil.field_info[name].access.name == "WRITE"

    def _touched(self, domain):
        """Return the points of each field that are touched, by either branch, in boxes; and whether
        a temporary field is left."""
        arrays, found, left = ample(domain, 0), {}, False
        for flag in (-1.0, 1.0):
            with Watch(self.watched, arrays) as watch, np.errstate(all="ignore"):
                self.compute(self.watched, arrays, domain, flag)
            found = {
                name: boxes.hull(box, found.get(name, box)) for name, box in watch.boxes.items()
            }
            left |= watch.temporary_left
        return {name: box for name, box in found.items() if boxes.has_points(box)}, left

    @staticmethod
    def compute(stencil, arrays, domain, flag):
        """Run a stencil in ample arrays, as GT4Py does when it has checked a call."""
        options = {"_domain_": domain, "_origin_": IN_AMPLE, "exec_info": None}
        stencil.run(**arrays, flag=np.float64(flag), **options)

    def read_in_regions_without_points(self, domain):
        """Return the names of what is read in regions that have no point in so small a domain."""
        return {
            access.name
            for block in representation_of(self.stencil).blocks
            for region in regions(block, sliced=self.backend == "numpy")
            for access in accesses(region)
            if any(map(has_no_point, region.bounds, block.extents, domain))
        }

    def has_what_gt4py_says(self, name, box, domain):
        """Return whether a box has the points that GT4Py's own boundary of a field asks for."""
        ends = [self.stencil.field_info[name].boundary[axis] for axis in AXES[name]]
        points = zip(within(name, domain), ends, strict=True)
        return boxes.within([(-low, n + high) for (_, n), (low, high) in points], box)


def ample(domain, seed):
    """Make arrays of small whole numbers, whose sums are exact, around a domain."""
    numbers = np.random.default_rng(seed)
    shapes = {name: [domain[axis] + 2 * AMPLE for axis in axes] for name, axes in AXES.items()}
    return {
        name: numbers.integers(1, 9, (*shape, *FIELDS[name][1])).astype(np.float64)
        for name, shape in shapes.items()
    }


def spares():
    """Make an array for each field, for those that are not used."""
    return {name: np.zeros((1,) * len(dims) + data) for name, (dims, data) in FIELDS.items()}


def within(name, domain):
    """Return the points of the domain along the axes of a field."""
    return [(0, domain[axis]) for axis in AXES[name]]


def has_no_point(part, extent, n):
    """Return whether a part of an axis has none of the points of a block."""
    start, end = (None if one is None else one.offset + one.at_end * n for one in part.ends)
    first, last = extent[0], n + extent[1]
    return min(last, last if end is None else end) <= max(first, first if start is None else start)


def first(box):
    """Return the origin in an array of a box."""
    return tuple(-low for low, _ in box)


def draw(rng, subject):
    """Draw a call: a domain, and for each field the points that its array has."""
    fewest = max(1, subject.fewest - (rng.random() < 0.1))
    domain = (rng.randint(1, 4), rng.randint(1, 4), fewest + rng.choice((0, 0, 1, 2, 4)))
    touched, _ = subject.touched(domain)
    least = {name: boxes.hull(within(name, domain), touched.get(name)) for name in subject.used}
    given = {name: boxes.widened(rng, box) for name, box in least.items()}
    if rng.random() < 0.5:
        name = rng.choice(subject.used)
        given[name] = boxes.shortened(rng, least[name], given[name])
    call = {"domain": domain, "boxes": given, "flag": rng.choice((-1.0, 1.0))}
    call |= {"seed": rng.randrange(1000), "at_end": rng.random() < 0.5, "same": None}
    scalars = [name for name in ("a", "b", "out", "more") if name in given]
    if rng.random() < 0.15 and len(scalars) > 1:
        one, other = call["same"] = rng.sample(scalars, 2)
        given[one] = given[other] = boxes.hull(given[one], given[other])
    haloed = all(boxes.within(within(name, domain), box) for name, box in given.items())
    return {**call, "by_halo": haloed and rng.random() < 0.3}


def check(subject, call):
    """Make a call, and tell what became of it: what may, or AssertionError."""
    domain, given = call["domain"], call["boxes"]
    touched, left = subject.touched(domain)
    fits = not left and all(
        boxes.within(box, given[name]) for name, box in touched.items() if name in given
    )
    whole = ample(domain, call["seed"])
    cut = {name: tuple(slice(AMPLE + a, AMPLE + b) for a, b in box) for name, box in given.items()}
    arrays = {
        name: guarded(whole[name][at], subject.order, at_end=call["at_end"])
        for name, at in cut.items()
    }
    if call["same"]:
        one, other = call["same"]
        arrays[other], whole[other] = arrays[one], whole[one]
    before = {name: array.copy() for name, array in arrays.items()}
    try:
        made(subject, call, arrays)
    except BufferError:
        assert call["same"], "separate arrays"
        return "in place"
    except ValueError as refusal:
        unchanged(arrays, before)
        return necessary(subject, call, refusal, fits)
    assert fits, f"a call is taken that touches {touched}, temporary fields outside: {left}"
    subject.compute(subject.stencil, whole, domain, call["flag"])
    unchanged(arrays, {name: whole[name][at] for name, at in cut.items()})
    check_covered(subject, domain, call["flag"])
    return "taken"


def check_covered(subject, domain, flag):
    """Compute into other values: nothing of them is left in the domain of a covered field."""
    results = []
    for value in (-1e30, 1e30):
        arrays = ample(domain, 0)
        for name in subject.covered:
            arrays[name].fill(value)
        subject.compute(subject.stencil, arrays, domain, flag)
        points = tuple(slice(AMPLE, AMPLE + n) for n in domain)
        results.append({name: arrays[name][points] for name in subject.covered})
    unchanged(*results)


def made(subject, call, arrays):
    """Make a bound call; the domain is given, or found by the halos of storages."""
    options = {"domain": call["domain"]}
    options["origin"] = {name: first(box) for name, box in call["boxes"].items()}
    if call["by_halo"]:
        options = {}
        arrays = {name: storage(name, array, call) for name, array in arrays.items()}
    subject.run(**{**spares(), **arrays}, flag=np.float64(call["flag"]), **options)


def storage(name, array, call):
    """Put an array into a storage that tells which of its points are the domain."""
    dims, data = FIELDS[name]
    points = zip(call["boxes"][name], within(name, call["domain"]), strict=True)
    halo = [(-low, high - n) for (low, high), (_, n) in points]
    names = [*dims, *map(str, range(len(data)))]
    return dlf.as_storage(array, dims=names, halo=[*halo, *((0, 0) for _ in data)])


def necessary(subject, call, refusal, fits):
    """Tell why a call may be refused.

    Five kinds of calls that would touch nothing outside may be: GT4Py takes no domain of fewer
    levels than the intervals of a stencil need; arrays have the points of the domain, though an
    interval or a region may need fewer; GT4Py counts some regions outside of the domain; its
    "numpy" writes outside of a domain that is smaller than a region; and what a region reads along
    one axis is asked for, though so small a domain has no point of it along the other.
    """
    if not fits:
        return "refused"
    if call["domain"][2] < subject.fewest:
        return "too few levels"
    given, domain = call["boxes"].items(), call["domain"]
    if not all(boxes.within(within(name, domain), box) for name, box in given):
        return "without the domain"
    if subject.backend == "numpy" and "as many as a region needs" in str(refusal):
        assert subject.has_region, refusal
        assert min(domain[:2]) < 3, refusal
        return "smaller than a region"
    told = all(subject.has_what_gt4py_says(name, box, domain) for name, box in given)
    if subject.has_region and not told:
        return "by GT4Py's regions"
    if any(
        f"argument '{name}'" in str(refusal)
        for name in subject.read_in_regions_without_points(domain)
    ):
        return "in a region without points"
    raise AssertionError(f"refused without need: {refusal}") from refusal


def unchanged(arrays, expected):
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def again(path, name, backend, call):
    """Make a call again that failed."""
    print(check(Subject(path, name, backend), call))
