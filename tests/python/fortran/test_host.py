"""A call leaves the program as it was: its floating-point exceptions, and its signals."""

import signal

import pytest

from support.fortran import run, succeeded

SOURCE = """
#define _GNU_SOURCE
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

static void own(int number) { printf("own handler of %d\\n", number); fflush(stdout); _Exit(7); }

int main(int count, char **words)
{
    double values[4] = {1, 1, 1, 1};
    dlfield_array a = {values, DLFIELD_FLOAT64, 1, {4}, {8}, {0}};
    char message[8192];
    int status, traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
    if (count > 2 && strcmp(words[2], "own") == 0)
        signal(SIGINT, own);
    feenableexcept(traps);
    status = model_fail(&a, "divide", message, sizeof message);
    printf("%d %d %d\\n", status, fetestexcept(FE_ALL_EXCEPT), fegetexcept() == traps);
    status = model_fail(&a, "interrupt", message, sizeof message);
    printf("%d %.42s\\n", status, message);
    fflush(stdout);
    raise(atoi(words[1]));
    puts("not reached");
    return 0;
}
"""


@pytest.fixture(scope="module")
def host(program):
    (program.folder / "host.c").write_text(SOURCE)
    options = ["-Wall", "-I.", "-L.", f"-Wl,-rpath,{program.folder}"]
    command = ["cc", *options, "host.c", "-lmodel", "-lm", "-o", "host"]
    succeeded(run(*command, folder=program.folder))
    return program.folder / "host"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGPIPE])
def test_between_calls_a_signal_ends_the_program(host, number):
    done = run(host, int(number))
    assert done.returncode == -number
    traps, interrupted = done.stdout.splitlines()
    assert traps == "0 0 1"
    assert interrupted == "2 fail: KeyboardInterrupt: stopped by Ctrl-C"


def test_a_handler_of_the_program_is_its_own_in_a_call_and_after_it(host):
    done = run(host, int(signal.SIGINT), "own")
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["0 0 1", "own handler of 2"]


def test_a_python_that_is_not_there_is_named(program):
    status, text = program.status("fail", "", DLFIELD_PYTHON="/nowhere/python")
    assert status == 1
    assert text.startswith(
        "dlfield: expected a Python in the environment variable DLFIELD_PYTHON, got "
        "'/nowhere/python', which cannot be run"
    )
