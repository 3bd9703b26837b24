"""`import dlfield` imports no framework and changes nothing."""

import json

from support.processes import run_in_subprocess

FRAMEWORKS = [
    "torch",
    "jax",
    "jaxlib",
    "xarray",
    "pyarrow",
    "gt4py",
    "cupy",
    "numba",
    "dask",
    "pandas",
    "ml_dtypes",
    "tvm_ffi",
    "mpi4py",
    "scipy",
]


def test_importing_imports_no_framework():
    imported = run_in_subprocess("""
        import sys
        import dlfield
        print(*{name.split(".")[0] for name in sys.modules})
    """)
    assert not set(imported.split()) & set(FRAMEWORKS)


def test_allocating_and_exchanging_imports_no_framework_either():
    imported = run_in_subprocess("""
        import sys
        import numpy as np
        import dlfield as dlf

        storage = dlf.storage(dlf.as_storage(np.zeros((3, 4))), dims="IJ", halo=(1, 1))
        np.from_dlpack(storage), np.asarray(storage), repr(storage), dlf.full((2,), 3)
        print(*{name.split(".")[0] for name in sys.modules})
    """)
    assert not set(imported.split()) & set(FRAMEWORKS)


def test_importing_changes_no_setting_of_the_process():
    printed = run_in_subprocess("""
        import decimal, gc, json, locale, os, signal, sys, threading, warnings
        import numpy as np

        def settings():
            # The finder that waits for xarray finds nothing itself, and goes when xarray is there.
            module = "dlfield.xarray.accessors"
            finders = [one for one in sys.meta_path if type(one).__module__ != module]
            found = (
                sys.path, finders, sys.path_hooks, sys.excepthook, sys.displayhook,
                sys.getrecursionlimit(), sys.getswitchinterval(), threading.excepthook,
                threading.active_count(), len(os.listdir("/proc/self/task")),
                warnings.filters, dict(os.environ), os.getcwd(), os.listdir("/proc/self/fd"),
                [signal.getsignal(number) for number in signal.valid_signals()],
                locale.setlocale(locale.LC_ALL), gc.get_threshold(), gc.callbacks,
                decimal.getcontext(), np.geterr(), np.geterrcall(), np.get_printoptions(),
                dir(np), dir(np.ndarray),
            )
            return [repr(one) for one in found]

        before = settings()
        import dlfield
        print(json.dumps([before, settings()]))
    """)
    before, after = json.loads(printed)
    assert len(before) == 24
    assert before == after


def test_importing_takes_a_tenth_of_the_time_of_numpy_beyond_it(monkeypatch):
    """Processor time, so that no other process counts."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # the first time compiles
    shares = [
        float(
            run_in_subprocess("""
                import time
                start = time.process_time()
                import numpy
                between = time.process_time()
                import dlfield
                print((time.process_time() - between) / (between - start))
            """)
        )
        for _ in range(7)
    ]
    assert min(shares) < 0.1


def test_importing_prints_nothing():
    assert run_in_subprocess("import dlfield") == ""


def test_every_public_name_is_there_without_any_framework():
    missing = run_in_subprocess(f"""
        import sys
        sys.modules.update(dict.fromkeys({FRAMEWORKS}))  # importing one of them is an error
        import dlfield
        print(*(name for name in dlfield.__all__ if not hasattr(dlfield, name)))
    """)
    assert missing == ""
