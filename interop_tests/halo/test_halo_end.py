"""Plans that are dropped, left open or cut short: how the ranks end."""

import pytest

from support.optional import library
from support.ranks import end_of_ranks, is_needed_beside_mpi, mpi_is_needed, started

mpi_is_needed()

START = """
import gc, sys, warnings
import dlfield as dlf
from mpi4py import MPI
from support.halo import assert_filled, numbered

comm = MPI.COMM_WORLD
cart = comm.Create_cart((comm.size, 1), (True, True))
EXTENTS, HALO = (12, 10), ((2, 2), (2, 2))
u = numbered(cart, EXTENTS, 40, HALO)
plan = dlf.halo_exchange({"u": u}, cart, engine=ENGINE)
"""
ENGINES = pytest.mark.parametrize("engine", ["packed", "ghex"])


def end_of(engine, code, *options):
    if engine == "ghex":
        is_needed_beside_mpi("ghex")
    return end_of_ranks(2, f"ENGINE = {engine!r}\n{START}\n{code}", *options)


def expect_success(done):
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
    assert "Exception ignored" not in done.stderr


@ENGINES
def test_a_process_that_ends_between_start_and_wait_ends_well(engine):
    expect_success(end_of(engine, "plan.start()\nprint('started')"))


@ENGINES
def test_a_process_that_ends_with_a_plan_ends_well(engine):
    expect_success(end_of(engine, "plan.exchange()\nassert_filled(u, cart, EXTENTS)"))


@ENGINES
def test_messages_of_a_plan_that_was_dropped_keep_its_memory(engine):
    code = """
plan.start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    del plan, u
    gc.collect()
assert [one.category for one in caught] == [ResourceWarning], caught
for _ in range(50):  # where the memory would be used again
    v = numbered(cart, EXTENTS, 40, HALO)
    with dlf.halo_exchange({"u": v}, cart, engine=ENGINE) as plan:
        plan.exchange()
    assert_filled(v, cart, EXTENTS)
print("fine", flush=True)
"""
    done = end_of(engine, code)
    expect_success(done)
    assert done.stdout.count("fine") == 2


def test_a_plan_may_outlive_the_end_of_mpi():
    expect_success(end_of("packed", "plan.exchange()\nMPI.Finalize()\nplan.free()"))


@ENGINES
@pytest.mark.parametrize("verb", ["wait", "test", "free"])
def test_a_plan_that_was_started_raises_once_mpi_is_finalized(engine, verb):
    code = f"""
plan.start()
plan._engine.wait()  # MPI ends well without messages under way
MPI.Finalize()
try:
    plan.{verb}()
except RuntimeError as error:
    print(error, flush=True)
"""
    done = end_of(engine, code)
    assert done.stdout.count(f"{verb}: needs MPI, which is finalized; exchange and wait") == 2
    assert done.returncode == 0, done.stderr


@ENGINES
@pytest.mark.parametrize("verb", ["start", "exchange"])
def test_a_plan_does_not_start_once_mpi_is_finalized(engine, verb):
    code = f"""
MPI.Finalize()
try:
    plan.{verb}()
except RuntimeError as error:
    print(error, flush=True)
"""
    done = end_of(engine, code)
    expect_success(done)
    assert done.stdout.count(f"{verb}: needs MPI, which is finalized; exchange and wait") == 2


def test_an_error_on_one_rank_ends_all_of_them_under_the_runner_of_mpi4py(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        f"ENGINE = 'packed'\n{START}\n"
        "if comm.rank == 1:\n    raise KeyError('one rank')\nplan.exchange()\n"
    )
    done = started(2, ["-m", "mpi4py", str(file)], timeout=60)
    assert done.returncode != 0
    assert "KeyError: 'one rank'" in done.stderr


def test_a_rank_that_dies_ends_the_others():
    code = "import os, signal\nif comm.rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    done = end_of("packed", code + "while True:\n    plan.exchange()")
    assert done.returncode != 0


def test_a_plan_of_a_program_that_imports_torch_first_ends_without_a_word():
    library("torch")
    code = f"import torch\nENGINE = 'packed'\n{START}\nplan.exchange()"
    expect_success(end_of_ranks(2, code))
