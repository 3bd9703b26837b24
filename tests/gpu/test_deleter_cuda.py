"""Deleters of GPU memory: the caller may hold a lock while another thread holds the interpreter."""

import pytest

from support.cuda.apart import run


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"], ids=["device", "pair", "managed"])
def test_a_deleter_that_is_called_without_the_interpreter_does_not_ask_for_it(managed):
    run(
        f"""
        from support.dlpack_structs import consume
        keeping = ctypes.PyDLL(None)  # whose calls keep the interpreter
        storage = dlf.zeros(4, device="gpu", managed={managed!r})
        tensor = consume(storage.__dlpack__(max_version=(1, 0)))
        del storage
        thread, start = ctypes.c_ulong(), ctypes.cast(tensor.deleter, ctypes.c_void_p)
        there = ctypes.c_void_p(ctypes.addressof(tensor))
        assert keeping.pthread_create(byref(thread), None, start, there) == 0
        assert keeping.pthread_join(thread, None) == 0
        """,
        seconds=20,
    )


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device", "pair"])
def test_a_deleter_that_is_called_detached_inside_a_call_frees_the_memory_once(managed):
    run(
        f"""
        from support.detached import inside_a_call
        from support.dlpack_structs import consume, release
        from support.owners import frees
        exporter = OnDevice((4,))
        told = frees(exporter)
        storage = dlf.as_storage(exporter, managed={managed!r})
        tensor = consume(storage.__dlpack__(max_version=(1, 0)))
        del exporter, storage
        gc.collect()
        assert told == []
        inside_a_call(lambda: release(tensor))
        gc.collect()
        assert told == ["freed"]
        """
    )
