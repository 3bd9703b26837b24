"""Memory, files and threads that there are not: an exception of Python's, or another way."""

import re

import pytest

from support.processes import run_in_subprocess
from support.scarce import preloaded, run_scarce

#: A Rust allocation of so many bytes may end the process; what grows with the data may not.
SMALL = 1024


@pytest.fixture(scope="module")
def scarce(tmp_path_factory):
    settings = preloaded(tmp_path_factory.mktemp("scarce"))
    return lambda code, **more: run_scarce(code, {**settings, **more})


# --- memory --------------------------------------------------------------------------------------

TAKES_MUCH = [
    "dlf.zeros(SHAPE)",
    "dlf.ones(SHAPE)",
    "dlf.full(SHAPE, 2.0)",
    "dlf.empty(SHAPE)",
    "dlf.zeros_like(field)",
    "dlf.storage(field)",
    "dlf.storage(array, layout=(2, 1, 0))",
    "dlf.storage(array, dtype='float32')",
    "dlf.storage(swapped)",
    "field.copy()",
    "field + field",
    "field * array",
    "-field",
    "np.sqrt(field)",
    "field == turned",
    "field.sum('K')",
    "field.cumsum('K')",
    "np.where(field > 0, field, turned)",
    "np.concatenate([field, field])",
    "np.pad(field, 1)",
    "np.sort(field, axis='K')",
    "field[mask]",
    "field.__setitem__(..., swapped)",
    "field.__dlpack__(copy=True, max_version=(1, 0))",
    "np.asarray(field, 'float32')",
    "pickle.dumps(field, 4)",
    "pickle.loads(pickled)",
]


def test_memory_for_values_that_there_is_not_is_a_memory_error_and_leaves_nothing(scarce):
    printed = scarce(f"""
        import pickle
        from dlfield._core import live_allocations

        SHAPE = (200, 200, 20)
        options = {{"dims": "IJK", "halo": (1, 1, 1)}}
        field, turned = dlf.ones(SHAPE, **options), dlf.ones(SHAPE, layout=(2, 1, 0), **options)
        array, swapped = np.zeros(SHAPE), np.zeros(SHAPE, ">f8")
        mask = dlf.ones(SHAPE, bool, **options)
        pickled = pickle.dumps(field, 4)

        for text in {TAKES_MUCH}:
            eval(text)  # imports what it needs
            before = live_allocations()
            scarce.fail_from(200_000)
            try:
                eval(text)
                ended = "nothing"
            except BaseException as error:
                ended = type(error).__name__
                del error
            scarce.fail_from(PLENTY)
            print(ended, live_allocations() - before, text)
        assert (turned + 1).sum() == 2 * turned.size
    """)
    assert printed.splitlines() == [f"MemoryError 0 {text}" for text in TAKES_MUCH]


TAKES_LITTLE = {
    "zeros": "dlf.zeros((4, 4))",
    "import": "dlf.as_storage(array)",
    "view": "field[1:-1]",
    "sum": "field + field",
    "copy": "field.copy()",
    "export": "np.from_dlpack(field)",
    "bound call": "run(cube, other)",
}


@pytest.mark.parametrize("work", TAKES_LITTLE.values(), ids=TAKES_LITTLE)
def test_an_allocation_that_fails_is_a_memory_error_unless_it_is_small_and_of_rust(work, scarce):
    printed = scarce(
        f"""
        import resource, signal
        from dlfield.annotations import Access, Field

        def step(x: Field[np.float64], y: Field[np.float64, Access["out"]]):
            pass

        run, array, field = dlf.bind(step), np.zeros((4, 4)), dlf.zeros((4, 4))
        cube, other = dlf.zeros((4, 4, 4)), dlf.zeros((4, 4, 4))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work = lambda: {work}
        for _ in range(3):
            work()

        def ended_with(number):
            countdown.value = number
            try:
                work()
                ended = "done"
            except BaseException as error:
                ended = type(error).__name__
            if countdown.value:
                ended = "went through"
            countdown.value = 0
            os.write(1, ended.encode())
            os._exit(0)

        def end_of(number):
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.dup2(write, 1)
                os.dup2(write, 2)
                ended_with(number)
            os.close(write)
            with open(read, "rb") as pipe:
                text = pipe.read().decode()
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, -signal.SIGABRT), (status, text)
            return text.partition("\\n")[0]

        ends = []
        while not ends or ends[-1] != "went through":
            ends.append(end_of(len(ends) + 1))
        print(*ends, sep="\\n")
    """,
        PYTHONMALLOC="malloc",
    )
    *ends, last = printed.splitlines()
    assert last == "went through"
    assert "MemoryError" in ends
    of_rust = [re.fullmatch(r"memory allocation of (\d+) bytes failed", end) for end in ends]
    others = {end for end, match in zip(ends, of_rust, strict=True) if match is None}
    assert others <= {"MemoryError", "done"}
    assert all(int(match[1]) < SMALL for match in of_rust if match)


# --- files ---------------------------------------------------------------------------------------

NO_FILES = """
import resource
import dlfield as dlf
import numpy as np
from dlfield.annotations import Access, Field

def step(x: Field[np.float64], y: Field[np.float64, Access["out"]]):
    y += 1.0

def no_more_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))

limits = resource.getrlimit(resource.RLIMIT_NOFILE)
"""


def test_calls_and_large_copies_need_no_file():
    printed = run_in_subprocess(
        NO_FILES
        + """
run = dlf.bind(step)
field, other = dlf.zeros((100, 100, 60)), dlf.zeros((100, 100, 60))
dlf.set_num_threads(2)
no_more_files()
run(field, other)
turned = dlf.storage(other, layout=(2, 1, 0))
print((turned + other).to_numpy().sum(), repr(field)[:11], np.from_dlpack(turned).shape)
"""
    )
    assert printed == "1200000.0 <CPUStorage (100, 100, 60)"


@pytest.mark.parametrize("name", ["explain", "halo_exchange", "jax_call", "testing"])
def test_a_name_that_is_imported_late_raises_without_files_and_is_there_with_them(name):
    printed = run_in_subprocess(
        NO_FILES
        + f"""
no_more_files()
try:
    dlf.{name}
except OSError as error:
    print(error.errno)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(dlf.{name}.__name__)
"""
    )
    assert printed.split() == ["24", "dlfield.testing" if name == "testing" else name]


# --- threads -------------------------------------------------------------------------------------


def test_large_copies_and_fills_are_made_where_the_system_has_no_more_threads(scarce):
    printed = scarce("""
        source = dlf.storage(np.arange(2e6).reshape(100, 100, 200))
        dlf.set_num_threads(4)
        scarce.refuse_threads()
        turned = dlf.storage(source, layout=(2, 1, 0))
        filled = dlf.full((100, 100, 200), 3.0)
        print(np.array_equal(turned, source), filled.to_numpy().sum(), scarce.refused_threads() > 3)
    """)
    assert printed == "True 6000000.0 True"
