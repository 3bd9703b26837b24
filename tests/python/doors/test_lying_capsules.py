"""Capsules taken twice, answers that are none, and objects that change between two imports."""

import json

import dlfield as dlf
import numpy as np
import pytest

from support.dlpack_structs import Handover, Producer
from support.owners import Watch
from support.processes import run_in_fork

BOTH = pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])


def outcome(statement, shape=(3, 4), *, legacy=False, take="p"):
    printed = run_in_fork(
        f"""
        from support.lying_producers import *
        import ctypes

        p = Producer({shape}, legacy={legacy})
        m, t = p.managed, p.managed.dl_tensor
        {statement}
        report({take}, p)
        """
    )
    return json.loads(printed)


@BOTH
@pytest.mark.parametrize("off", [1, 2, 4])
def test_numbers_that_are_not_aligned_are_taken_and_read_where_they_are(off, legacy):
    printed = run_in_fork(f"""
        import ctypes
        import dlfield as dlf
        from support.lying_producers import Producer

        p = Producer((3,), legacy={legacy})
        t = p.managed.dl_tensor
        at = t.data + {off}
        ctypes.memmove(at, (ctypes.c_double * 3)(5, 6, 7), 24)
        t.data = at
        storage = dlf.as_storage(p)
        array = storage.to_numpy()
        print(array.tolist(), array.ctypes.data == at, array.flags.aligned)
    """)
    assert printed == "[5.0, 6.0, 7.0] True False"


def test_as_many_dimensions_as_numpy_has_are_taken():
    seen = outcome("", (1,) * 64)
    assert (seen["error"], seen["freed"]) == (None, 1), seen


@pytest.mark.parametrize("flags", [2, 4, 6, 2**63])
def test_flags_that_say_nothing_of_writing_change_nothing(flags):
    seen = outcome(f"m.flags = {flags}")
    assert (seen["error"], seen["freed"]) == (None, 1)
    assert "readonly=False" in seen["text"]


def test_a_stride_without_meaning_leaves_an_array_contiguous():
    producer = Producer((1, 4))
    producer.strides[0] = 12345
    storage = dlf.as_storage(producer)
    assert memoryview(storage).c_contiguous
    assert np.from_dlpack(storage).flags.c_contiguous


@pytest.mark.parametrize("off", [1, 4])
@BOTH
def test_a_struct_that_is_not_aligned_is_left_to_its_capsule(legacy, off):
    seen = outcome(f"p.address += {off}", legacy=legacy)
    assert (seen["error"], seen["freed"]) == ("BufferError", 1)
    assert "expected an aligned struct" in seen["text"]


@BOTH
def test_a_refused_capsule_may_be_repaired_and_taken(legacy):
    producer = Producer(legacy=legacy)
    handover = Handover(producer.capsule())
    producer.managed.dl_tensor.ndim = 65
    with pytest.raises(BufferError, match="got 65"):
        dlf.as_storage(handover)
    producer.managed.dl_tensor.ndim = 2
    assert producer.freed == 0
    assert dlf.as_storage(handover).shape == (3, 4)
    assert producer.freed == 1


@BOTH
def test_of_two_threads_that_take_one_capsule_one_wins_a_thousand_times(legacy):
    printed = run_in_fork(f"""
        import threading
        import dlfield as dlf
        from support.lying_producers import Handover, Producer

        rounds = [Producer(legacy={legacy}) for _ in range(1000)]
        capsules = [Handover(one.capsule()) for one in rounds]
        start, seen = threading.Barrier(2), []

        def take():
            for capsule in capsules:
                start.wait()
                try:
                    seen.append(dlf.as_storage(capsule).ndim)
                except ValueError as error:
                    seen.append("consumed before" in str(error))

        threads = [threading.Thread(target=take) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(seen.count(2), seen.count(True), sum(one.freed for one in rounds))
    """)
    assert printed == "1000 1000 1000"


@pytest.mark.parametrize(
    "answer", ["None", "3", "b'dltensor'", "[]", "(p.capsule(),)", "p.capsule"]
)
def test_the_answer_must_be_a_capsule(answer):
    seen = outcome("", take=f"Handover({answer})")
    assert seen["error"] == "TypeError"
    assert "__dlpack__: expected a capsule, got an object of type" in seen["text"]


def test_a_producer_may_import_others_while_it_is_asked():
    class Reentering(Producer):
        def __dlpack__(self, **keywords):
            self.inner = dlf.as_storage(Producer((2,)))
            return super().__dlpack__(**keywords)

    producer = Reentering()
    assert dlf.as_storage(producer).shape == (3, 4)
    assert producer.inner.shape == (2,)
    assert producer.freed == 1


def test_a_producer_that_hands_its_capsule_over_while_it_is_asked_has_none_left():
    class Twice(Producer):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            self.inner = dlf.as_storage(Handover(capsule))
            return capsule

    producer = Twice()
    with pytest.raises(ValueError, match="consumed before"):
        dlf.as_storage(producer)
    assert producer.freed == 0
    del producer.inner
    assert producer.freed == 1


@pytest.mark.parametrize(
    "attributes",
    [
        "__dlpack_device__ = lambda self: (1, 0); __dlpack__ = lambda self, **_: ask(self)",
        "__dlpack_device__ = lambda self: ask(self) and (1, 0); __dlpack__ = len",
        "__array_interface__ = property(ask)",
        "ndarray = property(ask)",
        "__gt_dims__ = property(ask)",
    ],
)
def test_a_producer_that_imports_itself_endlessly_gets_an_exception(attributes):
    printed = run_in_fork(f"""
        from dlfield import as_storage as ask

        class Endless:
            {attributes}

        try:
            ask(Endless())
        except RecursionError:
            print("RecursionError")
    """)
    assert printed == "RecursionError"


class Late:
    """Has no protocol until a test adds one."""


def test_what_an_object_did_not_speak_is_not_remembered():
    late, source = Late(), np.arange(3.0)
    with pytest.raises(TypeError, match="speaks the buffer protocol"):
        dlf.as_storage(late)
    late.__array_interface__ = source.__array_interface__
    assert dlf.as_storage(late).to_numpy().tolist() == [0, 1, 2]
    del late.__array_interface__
    with pytest.raises(TypeError, match="speaks the buffer protocol"):
        dlf.as_storage(late)


def test_what_a_class_did_not_speak_is_not_remembered():
    class LateClass:
        pass

    late, producer = LateClass(), Producer()
    with pytest.raises(TypeError, match="speaks the buffer protocol"):
        dlf.as_storage(late)
    LateClass.__dlpack_device__ = lambda self: (1, 0)
    LateClass.__dlpack__ = lambda self, **keywords: producer.__dlpack__(**keywords)
    assert dlf.as_storage(late).door == "dlpack"
    assert producer.freed == 1


@pytest.mark.parametrize("fault", ["raises", "lies", "no capsule"])
def test_an_object_that_failed_once_is_asked_again(fault):
    producer = Producer()
    answers = {"lies": producer.capsule, "no capsule": lambda: None}

    class Learning(Producer):
        def __dlpack__(self, **keywords):
            if fault == "raises":
                raise BufferError("not yet")
            return answers[fault]()

    producer.managed.dl_tensor.ndim = -1
    learning = Learning()
    with pytest.raises((BufferError, TypeError)):
        dlf.as_storage(learning)
    Learning.__dlpack__ = Producer.__dlpack__
    assert dlf.as_storage(learning).shape == (3, 4)
    assert learning.freed == 1


def test_an_object_that_was_refused_is_not_held():
    late = Late()
    watch = Watch(late)
    with pytest.raises(TypeError):
        dlf.as_storage(late)
    del late
    assert watch.freed
