"""Version, device and copy as a consumer: what a producer is asked, in which order, how often."""

import enum

import dlfield as dlf
import numpy as np
import pytest

from support.dlpack_structs import DLDevice, Producer, contents
from support.no_driver import no_driver, without_driver

FIRST, SECOND, LAST = {"max_version": (1, 3), "copy": False}, {"max_version": (1, 3)}, {}


class Of2024(Producer):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return super().__dlpack__(max_version=max_version, copy=copy)


class Of2023(Producer):
    def __dlpack__(self, *, stream=None, max_version=None):
        return super().__dlpack__(max_version=max_version)


class CopyAlone(Producer):
    def __dlpack__(self, *, stream=None, copy=None):
        return super().__dlpack__()


class Of2021(Producer):
    def __dlpack__(self, stream=None):
        return super().__dlpack__()


class Oldest(Producer):
    def __dlpack__(self):
        return super().__dlpack__()


RUNGS = [(Of2024, FIRST), (Of2023, SECOND), (CopyAlone, LAST), (Of2021, LAST), (Oldest, LAST)]


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@pytest.mark.parametrize(("cls", "asked"), RUNGS)
def test_a_producer_is_asked_for_as_much_as_its_signature_knows(cls, asked, legacy):
    producer = cls(legacy=legacy)
    assert dlf.as_storage(producer).shape == (3, 4)
    assert producer.calls == [asked]
    assert producer.freed == 1


@pytest.mark.parametrize("error", [AttributeError, BufferError, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(("cls", "asked"), RUNGS[:2])
def test_what_a_producer_raises_on_any_rung_passes_and_is_not_retried(cls, asked, error):
    raised = error("of the producer")

    class Raising(cls):
        def capsule(self, name=None):
            raise raised

    producer = Raising()
    with pytest.raises(error) as caught:
        dlf.as_storage(producer)
    assert caught.value is raised
    assert producer.calls == [asked]


@pytest.mark.parametrize("error", [BufferError, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("cls", [Of2021, Oldest])
def test_what_a_producer_raises_on_the_last_rung_passes(cls, error):
    class Raising(cls):
        def capsule(self, name=None):
            raise error("of the producer")

    with pytest.raises(error, match=r"^of the producer$"):
        dlf.as_storage(Raising())


@pytest.mark.parametrize("inner", [Of2023, CopyAlone, Of2021, Oldest])
def test_a_wrapper_that_forwards_all_keywords_is_asked_for_what_its_producer_knows(inner):
    class Forwarding:
        def __init__(self, inner):
            self.inner = inner

        def __dlpack__(self, *args, **keywords):
            return self.inner.__dlpack__(*args, **keywords)

        def __dlpack_device__(self):
            return (1, 0)

    producer = inner()
    assert dlf.as_storage(Forwarding(producer)).shape == (3, 4)
    assert producer.calls == [dict(RUNGS)[inner]]
    assert producer.freed == 1


def test_the_first_type_error_of_a_producer_is_shown_after_three_calls():
    class Special(TypeError):
        pass

    class Raising(Producer):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            raise Special(f"call {len(self.calls)}")

    producer = Raising()
    with pytest.raises(Special, match=r"^call 1$"):
        dlf.as_storage(producer)
    assert producer.calls == [FIRST, SECOND, LAST]


def test_the_refusal_of_an_old_producer_is_shown_instead_of_a_type_error():
    class Refusing(Of2021):
        def capsule(self, name=None):
            raise BufferError("of the producer")

    class Forwarding(Refusing):
        def __dlpack__(self, **keywords):
            return super().__dlpack__(**keywords)

    with pytest.raises(BufferError, match=r"^of the producer$"):
        dlf.as_storage(Forwarding())


class Refusing(staticmethod):
    """A callable in C that notes how it is called and takes no such arguments."""

    calls = ()

    def __new__(cls, *_arguments, **keywords):
        cls.calls.append(keywords)
        return super().__new__(cls)


def test_where_every_rung_fails_the_first_error_is_raised_after_three_calls():
    strange = type("Strange", (Refusing,), {"calls": []})

    class Exporter:
        __dlpack__ = strange

        def __dlpack_device__(self):
            return (1, 0)

    # CPython answers so; it checks keywords first up to 3.14, and the number of arguments in 3.15.
    with pytest.raises(TypeError, match=r"takes no keyword|staticmethod expected 1 arg"):
        dlf.as_storage(Exporter())
    assert strange.calls == [FIRST, SECOND, LAST]


class Kind(enum.IntEnum):
    CPU = 1
    PINNED = 3
    CUDA = 2


class Announcing(Producer):
    """Answers `__dlpack_device__` with what it was given, or raises it."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def __dlpack_device__(self):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "device", [(1, 0), (1, 7), (3, 0), (3, 2), (11, 0), (13, 1), (Kind.CPU, 0), (Kind.PINNED, 0)]
)
def test_memory_announced_within_reach_of_the_host_is_asked_for(device):
    producer = Announcing(device)
    assert dlf.as_storage(producer).shape == (3, 4)
    assert (len(producer.calls), producer.freed) == (1, 1)


@without_driver
@pytest.mark.parametrize("device", [(2, 0), (2, 999), (Kind.CUDA, 0)])
def test_memory_announced_on_a_gpu_is_out_of_reach_and_not_asked_for(device):
    producer = Announcing(device)
    with no_driver(f"memory on cuda:{device[1]}: "):
        dlf.as_storage(producer)
    assert producer.calls == []


@pytest.mark.parametrize("number", [0, 3])
def test_memory_announced_on_rocm_is_asked_for_where_it_is_and_passed_on(number):
    producer = Announcing((10, number))
    producer.managed.dl_tensor.device = DLDevice(10, number)
    storage = dlf.as_storage(producer)
    assert producer.calls == [{"max_version": (1, 3), "copy": False}]
    assert (type(storage), storage.__dlpack_device__()) == (dlf.GPUStorage, (10, number))
    passed_on = contents(storage.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (passed_on.device.device_type, passed_on.device.device_id) == (10, number)
    assert passed_on.data == producer.managed.dl_tensor.data


@pytest.mark.parametrize("code", [0, 4, 5, 6, 7, 8, 9, 12, 14, 15, 19, 77, 2**31 - 1, -1])
def test_memory_announced_on_an_unsupported_device_is_refused_and_not_asked_for(code):
    producer = Announcing((code, 0))
    with pytest.raises(BufferError, match=rf"{code}\b"):
        dlf.as_storage(producer)
    assert producer.calls == []


@pytest.mark.parametrize(
    "answer",
    [
        *(None, 1, "cpu", [1, 0], (), (1,), (1, 0, 1), {1: 0}),
        *((None, 0), (1, None), ("cpu", 0), (1.0, 0), (1, "0"), (b"1", 0)),
    ],
    ids=repr,
)
def test_an_announcement_must_be_a_pair_of_ints(answer):
    producer = Announcing(answer)
    with pytest.raises(TypeError, match="__dlpack_device__: expected"):
        dlf.as_storage(producer)
    assert producer.calls == []


@pytest.mark.parametrize(
    "answer", [(2**40, 0), (-(2**40), 0), (2**70, 0), (1, 2**40), (1, -(2**70))]
)
def test_an_announcement_with_a_number_too_large_is_refused_and_nothing_asked(answer):
    producer = Announcing(answer)
    with pytest.raises(ValueError, match="__dlpack_device__: expected"):
        dlf.as_storage(producer)
    assert producer.calls == []


def test_a_producer_that_announces_no_device_is_refused():
    class Silent:
        def __dlpack__(self, **_keywords):
            raise AssertionError("asked in vain")

    with pytest.raises(TypeError, match="__dlpack_device__: expected"):
        dlf.as_storage(Silent())


@pytest.mark.parametrize("error", [RuntimeError, BufferError, TypeError, KeyboardInterrupt])
def test_what_an_announcement_raises_passes_and_nothing_is_asked(error):
    producer = Announcing(error("of the producer"))
    with pytest.raises(error) as caught:
        dlf.as_storage(producer)
    assert caught.value is producer.answer
    assert producer.calls == []


@pytest.mark.parametrize(
    ("said", "true"), [((3, 0), (1, 0)), ((1, 0), (13, 4)), ((13, 1), (11, 0))]
)
def test_where_capsule_and_announcement_differ_the_capsule_is_right(said, true):
    producer = Announcing(said)
    producer.managed.dl_tensor.device = DLDevice(*true)
    assert dlf.as_storage(producer).to_numpy()[2, 3] == 11


@without_driver
@pytest.mark.parametrize(
    ("true", "error"), [((2, 0), dlf.DeviceUnavailable), ((99, 0), BufferError)], ids=str
)
def test_a_capsule_out_of_reach_is_refused_whatever_was_announced(true, error):
    producer = Announcing((1, 0))
    producer.managed.dl_tensor.device = DLDevice(*true)
    with pytest.raises(error, match=f"{true[0]}|cuda"):
        dlf.as_storage(producer)
    assert producer.freed == 1


def test_a_method_that_is_none_leaves_an_array_to_its_other_doors():
    class Without:
        __dlpack__ = None
        __array_interface__ = property(lambda self: ARRAY.__array_interface__)

    assert dlf.as_storage(Without()).ptr == ARRAY.ctypes.data


def test_an_old_producer_on_another_device_is_refused_by_its_device():
    class Old:
        def __dlpack_device__(self):
            return (10, 0)

        def __dlpack__(self):
            raise AssertionError

    with pytest.raises((BufferError, dlf.DeviceUnavailable), match="copy the array to the host"):
        dlf.as_numpy(Old())


ARRAY = np.arange(3.0)
