"""What a call tells its arguments, in which order, and what of that is left after an exception."""

import warnings

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused, unraisable
from support.no_driver import without_driver
from support.processes import run_in_subprocess
from support.stencils.stand_ins import (
    SHAPE,
    GpuStandIn,
    Holds,
    StagingStandIn,
    StandIn,
    Told,
    Waiting,
    column,
    field,
    misaligned,
)

ROLES = {"a": field("READ"), "b": field("WRITE"), "c": field("READ_WRITE")}

BEFORE = ["acquire a", "acquire b", "acquire c"]
STAGED = ["to_device", "to_device", "to_device"]
RUN = ["run", "synchronize", "to_host", "to_host"]
TOUCHED = ["touch b", "touch c"]
AFTER = ["release a", "release b", "release c"]
ALL = [*BEFORE, *STAGED, *RUN, *TOUCHED, *AFTER]

pytestmark = pytest.mark.filterwarnings(
    "ignore::dlfield.DeviceCopyWarning", "ignore::dlfield.MemoryCopyWarning"
)


class Call:
    """A staged call of a stencil for a GPU with three fields of the host, each of which is told."""

    def __init__(self, **raises):
        """Take what is raised by name: ``run=``, ``touch_b=``."""
        self.log = []
        own = {what: error for what, error in raises.items() if what[-2] != "_"}
        self.stencil = StagingStandIn(self.log, raises=own, **ROLES)
        self.fields = {}
        for name in ROLES:
            theirs = {key[:-2]: error for key, error in raises.items() if key[-2:] == f"_{name}"}
            self.fields[name] = Told(self.log, name, raises=theirs)

    def __call__(self):
        dlf.bind(self.stencil, on_mismatch="copy")(**self.fields)


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`acquire` of every object is called before a stencil computes",
    "`release` of every object is called after the computation",
    "`touch` of each written object is called after the computation",
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "`acquire` is called before the computation, `release` after it",
    "`touch` is called for outputs only, after the computation",
)
@without_driver
def test_a_call_acquires_stages_runs_waits_copies_back_touches_and_releases_in_this_order():
    call = Call()
    call()
    assert call.log == ALL


def test_a_call_without_copies_touches_once_the_computation_is_over():
    log = []
    dlf.bind(Waiting(log, **ROLES))(**{name: Told(log, name) for name in ROLES})
    assert log == [*BEFORE, "run", "synchronize", *TOUCHED, *AFTER]


def test_a_call_with_exec_info_tells_the_same():
    log = []
    dlf.bind(Waiting(log, **ROLES))(**{name: Told(log, name) for name in ROLES}, exec_info={})
    assert log == [*BEFORE, "run", "synchronize", *TOUCHED, *AFTER]


def test_arguments_are_acquired_in_the_order_of_the_definition_and_not_of_the_call():
    log = []
    dlf.bind(StandIn(log, **ROLES))(**{name: Told(log, name) for name in "cab"})
    assert log == [*BEFORE, "run", *TOUCHED, *AFTER]


#: What is called where something raises.
POINTS = {
    "acquire_b": ["acquire a", "acquire b", "release a"],
    "acquire_c": [*BEFORE, "release a", "release b"],
    "to_device": [*BEFORE, "to_device", *AFTER],
    "run": ALL,
    "synchronize": ALL,
    "to_host": ALL,
    "touch_b": ALL,
    "release_a": ALL,
}


@without_driver
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("point", POINTS)
def test_an_exception_is_raised_as_it_is_and_the_rest_is_still_told(point, error):
    raised = error(point)
    call = Call(**{point: raised})
    with unraisable() as reported, pytest.raises(error) as caught:
        call()
    assert caught.value is raised
    assert call.log == POINTS[point]
    assert reported == ([point] if point == "to_host" else [])  # of the other output


@without_driver
def test_of_several_exceptions_the_first_is_raised_and_the_others_are_reported():
    points = ["run", "synchronize", "touch_b", "touch_c", "release_a", "release_c"]
    call = Call(**{point: RuntimeError(point) for point in points})
    with unraisable() as reported, pytest.raises(RuntimeError, match=r"^run$"):
        call()
    assert reported == points[1:]
    assert call.log == ALL


def test_what_release_raises_after_a_failed_acquire_is_reported():
    call = Call(acquire_b=RuntimeError("acquire_b"), release_a=RuntimeError("release_a"))
    with unraisable() as reported, pytest.raises(RuntimeError, match=r"^acquire_b$"):
        call()
    assert reported == ["release_a"]


@pytest.mark.source(
    "GDP-3", "Data Interface", "`acquire`, `touch` and `release` may be absent or None"
)
@pytest.mark.source("Interface note", "`__gt_interface__`", "None stands for an absent function")
def test_an_argument_without_functions_is_told_nothing():
    log = []
    told = Told(log, "b", acquire=None, release=None)
    dlf.bind(StandIn(log, **ROLES))(np.zeros(SHAPE), told, Told(log, "c", touch=None))
    assert log == ["acquire c", "run", "touch b", "release c"]


REFUSALS = {
    "dtype": (ValueError, lambda told: {"a": np.zeros(SHAPE, "f4")}),
    "byte order": (BufferError, lambda told: {"c": np.zeros(SHAPE, ">f8")}),
    "dimensions": (ValueError, lambda told: {"a": np.zeros(SHAPE[1:])}),
    "no array": (TypeError, lambda told: {"c": [1.0]}),
    "missing": (ValueError, lambda told: {"c": None}),
    "read-only": (BufferError, lambda told: {"c": np.broadcast_to(1.0, SHAPE)}),
    "overlap": (BufferError, lambda told: {"c": told["b"].array}),
    "misaligned": (BufferError, lambda told: {"a": misaligned()}),
    "domain": (ValueError, lambda told: {"domain": (9, 9, 9)}),
    "origin": (ValueError, lambda told: {"origin": {"q": (0, 0, 0)}}),
    "keyword": (TypeError, lambda told: {"q": 1}),
    "dims": (ValueError, lambda told: {"a": Told([], "a", dims=("x", "y", "z"))}),
}


@pytest.mark.parametrize(("error", "change"), REFUSALS.values(), ids=REFUSALS)
def test_a_call_that_is_refused_has_told_nobody(error, change):
    log = []
    told = {name: Told(log, name) for name in ROLES}
    run = dlf.bind(StandIn(log, **ROLES))
    with pytest.raises(error):
        run(**{**told, **change(told)})
    assert log == []


@pytest.mark.parametrize("make", [misaligned, column])
def test_a_warning_that_is_made_an_error_has_told_nobody(make):
    log = []
    told = {"a": Told(log, "a"), "b": Told(log, "b"), "c": make()}
    with warnings.catch_warnings(action="error"), pytest.raises(dlf.MemoryCopyWarning):
        dlf.bind(StandIn(log, **ROLES), on_mismatch="copy")(**told)
    assert log == []


def test_an_object_that_is_passed_twice_is_told_once():
    log = []
    told = Told(log, "x")
    dlf.bind(StandIn(log, a=field("READ"), b=field("WRITE"), c=field("READ")))(told, told, told)
    assert log == ["acquire x", "run", "touch x", "release x"]


def test_an_object_that_is_only_read_twice_is_not_touched():
    log = []
    told = Told(log, "x")
    dlf.bind(StandIn(log, a=field("READ"), b=field("READ")))(told, told)
    assert log == ["acquire x", "run", "release x"]


def test_an_object_within_wrappers_is_told_once():
    log = []
    told = Told(log, "x")
    stencil = StandIn(log, a=field("READ"), b=field("READ"), c=field("WRITE"))
    dlf.bind(stencil)(told, Holds(told), Holds(Holds(told)))
    assert log == ["acquire x", "run", "touch x", "release x"]


def same_memory(log, *names):
    memory = np.zeros(SHAPE)
    return [Told(log, name, memory) for name in names]


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`touch` of each written object is called after the computation",
)
def test_an_input_whose_memory_is_written_through_another_argument_is_touched():
    log = []
    dlf.bind(StandIn(log, a=field("READ"), b=field("WRITE")))(*same_memory(log, "a", "b"))
    assert log == ["acquire a", "acquire b", "run", "touch a", "touch b", "release a", "release b"]


def test_an_input_beside_the_written_memory_is_not_touched():
    log, memory = [], np.zeros((6, 4, 5))
    told = Told(log, "a", memory[:3]), Told(log, "b", memory[3:])
    dlf.bind(StandIn(log, a=field("READ"), b=field("WRITE")))(*told)
    assert [entry for entry in log if "touch" in entry] == ["touch b"]


@pytest.mark.source(
    "GDP-3", "Data Interface", "`touch` of each written object is called after the computation"
)
def test_an_input_whose_memory_is_written_through_a_plain_array_is_touched():
    log = []
    [told] = same_memory(log, "a")
    dlf.bind(StandIn(log, a=field("READ"), b=field("WRITE")))(told, told.array)
    assert log == ["acquire a", "run", "touch a", "release a"]


@pytest.mark.source(
    "GDP-3", "Data Interface", "`touch` of each written object is called after the computation"
)
@pytest.mark.parametrize("make", [misaligned, column])
def test_an_input_whose_memory_is_written_through_a_copy_is_touched(make):
    log, memory = [], make()
    run = dlf.bind(StandIn(log, a=field("READ"), b=field("WRITE")), on_mismatch="copy")
    told = Told(log, "a", memory)
    run(told if make is misaligned else memory, memory)
    assert ("touch a" in log) == (make is misaligned)


class Forwards:
    """The wrapper of the notes: shows what it wraps under its own interface, with names."""

    def __init__(self, told, dims):
        self.told, self.dims = told, dims

    @property
    def __gt_data_interface__(self):
        shown = self.told.__gt_data_interface__
        return {key: {**value, "dims": self.dims} for key, value in shown.items()}


class Bound(Told):
    """Its functions are methods of its own, as those of the notes' example are."""

    def _acquire(self):
        self.log.append(f"acquire {self.name}")

    def _describe(self, key):
        return {**self.array.__array_interface__, "acquire": self._acquire}


def test_an_object_that_wrappers_show_as_their_own_is_told_once():
    log = []
    told = Bound(log, "x")
    stencil = StandIn(log, a=field("READ"), b=field("READ"))
    dlf.bind(stencil)(told, Forwards(told, "IJK"))
    assert log == ["acquire x", "run"]


@pytest.mark.source(
    "GDP-3", "Data Interface", "a stencil uses the buffer on the device where it computes"
)
@pytest.mark.parametrize("lazily", [False, True], ids=["dict", "function"])
@pytest.mark.parametrize("keys", [(None, "gpu"), ("gpu", "cpu"), (("gpu", 0), None)], ids=str)
def test_a_stencil_of_the_host_calls_the_functions_of_the_host_alone(keys, lazily):
    log = []
    told = Told(log, "b", keys=keys, lazily=lazily)
    dlf.bind(StandIn(log, b=field("WRITE")))(told)
    host = "cpu" if "cpu" in keys else None
    shown = [f"describe b on {host}"] if lazily else []
    assert log == [*shown, "acquire b", "run", "touch b", "release b"]


@pytest.mark.source(
    "GDP-3", "Data Interface", "a stencil uses the buffer on the device where it computes"
)
@without_driver
@pytest.mark.parametrize("lazily", [False, True], ids=["dict", "function"])
@pytest.mark.parametrize(
    ("device", "keys", "chosen"),
    [
        ("gpu", (None, "gpu"), "gpu"),
        ("gpu", ("cpu", ("gpu", 0)), ("gpu", 0)),
        (("gpu", 1), (None, ("gpu", 0), ("gpu", 1)), ("gpu", 1)),
        (("gpu", 1), (None, "gpu", ("gpu", 1)), ("gpu", 1)),
    ],
    ids=str,
)
def test_a_stencil_of_a_gpu_calls_the_functions_of_its_gpu_alone(device, keys, chosen, lazily):
    log = []
    stencil = GpuStandIn(log, b=field("WRITE"))
    stencil.device = device
    dlf.bind(stencil)(Told(log, "b", keys=keys, lazily=lazily))
    shown = [f"describe b on {chosen}"] if lazily else []
    told = [f"{what} b on {chosen}" for what in ("acquire", "touch", "release")]
    assert log == [*shown, told[0], "run", "synchronize", *told[1:]]


def test_what_acquire_writes_is_in_the_copy_that_the_stencil_gets():
    array, seen = misaligned(), []
    told = Told([], "a", array, acquire=lambda: array.fill(7.0))
    stencil = StandIn(body=lambda a: seen.append(a.copy()), a=field("READ"))
    dlf.bind(stencil, on_mismatch="copy")(told)
    assert (seen[0] == 7.0).all()


@pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails"])
def test_touch_finds_what_was_written_also_where_the_run(fails):
    array, seen = misaligned(), []
    told = Told([], "b", array, touch=lambda: seen.append(array.copy()))
    stencil = StandIn(body=lambda b: b.fill(3.0), b=field("WRITE"))
    stencil.raises.update({"run": RuntimeError("run")} if fails else {})
    run = dlf.bind(stencil, on_mismatch="copy")
    if fails:
        with pytest.raises(RuntimeError, match=r"^run$"):
            run(told)
    else:
        run(told)
    assert (seen[0] == 3.0).all()


def test_a_later_call_with_the_same_object_tells_it_again():
    log = []
    told, run = Told(log, "b"), dlf.bind(StandIn(log, b=field("WRITE")))
    run(told)
    with refused(TypeError, "got none"):
        run()
    run(told)
    assert log == ["acquire b", "run", "touch b", "release b"] * 2


PROTECTED = """
    import ctypes, mmap, warnings
    import numpy as np, dlfield as dlf
    from support.stencils.stand_ins import StandIn, field

    memory = mmap.mmap(-1, mmap.PAGESIZE)
    whole = np.frombuffer(memory, "u1")
    inp = np.frombuffer(memory, count=60, offset={offset}).reshape(3, 4, 5)
    inp[...] = np.arange(60.0).reshape(3, 4, 5)
    inp.flags.writeable = {writeable}
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(whole.ctypes.data, mmap.PAGESIZE, mmap.PROT_READ) == 0
    warnings.simplefilter("ignore")

    def body(inp, out):
        {body}

    out = np.zeros((3, 4, 5))
    stencil = StandIn(body=body, inp=field("READ"), out=field("WRITE"))
    dlf.bind(stencil, on_mismatch="copy")(inp, out)
    print((inp == np.arange(60.0).reshape(3, 4, 5)).all(), (out == inp).all())
"""


@pytest.mark.parametrize("writeable", [True, False], ids=["writable", "read-only"])
@pytest.mark.parametrize("offset", [0, 4], ids=["aligned", "misaligned"])
def test_an_input_on_pages_that_may_only_be_read_is_not_written(offset, writeable):
    code = PROTECTED.format(offset=offset, writeable=writeable, body="out[...] = inp")
    assert run_in_subprocess(code) == "True True"


def test_a_write_to_such_pages_would_have_ended_the_process():
    code = PROTECTED.format(offset=0, writeable=True, body="inp[0, 0, 0] = 1.0")
    with pytest.raises(pytest.fail.Exception, match="Segmentation fault"):
        run_in_subprocess(code)
