"""Arrow capsules of other names, consumed twice, or missing; when and where they are released."""

import gc
import json

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import OnDevice, Producer, Stream, batch, lists, shown, tensor
from support.processes import run_in_fork

PRODUCERS = {
    "numbers": Producer,
    "lists": lists,
    "tensor": tensor,
    "batch": lambda: batch(Producer(name=b"a")),
}
every_producer = pytest.mark.parametrize("make", PRODUCERS.values(), ids=PRODUCERS)

METHODS = ("__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__")


def run(code):
    return run_in_fork(
        "import dlfield as dlf\n"
        "from support.arrow_structs import *\nfrom support.lying_producers import report\n" + code
    )


def outcome(statement, take="p"):
    return json.loads(run(f"p = Producer()\n{statement}\nreport({take}, p)"))


# --- capsules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [b"nope", b"arrow_schema", b"dltensor", b"", None])
@pytest.mark.parametrize("which", ["schema", "array"])
def test_an_arrow_capsule_of_another_name_is_left_to_its_producer(which, name):
    if which == "schema":
        name = b"arrow_array" if name == b"arrow_schema" else name
        answer = f"(p.schema_capsule({name!r}), p.array_capsule())"
    else:
        answer = f"(p.schema_capsule(), p.array_capsule({name!r}))"
    seen = outcome("", f"shown({answer})")
    assert (seen["error"], seen["freed"]) == ("ValueError", [1, 1]), seen
    assert f"arrow_{which}" in seen["text"]
    assert (name.decode() if name else "NULL" if name is None else "''") in seen["text"]


def test_a_device_array_where_an_array_belongs_is_left_to_its_maker():
    seen = outcome("", "shown(p.pair(b'arrow_device_array'))")
    assert (seen["error"], seen["freed"]) == ("ValueError", [1, 1]), seen


def test_an_array_where_a_device_array_belongs_is_left_to_its_maker():
    seen = outcome("", "shown(p.pair(b'arrow_array'), '__arrow_c_device_array__')")
    assert (seen["error"], seen["freed"]) == ("ValueError", [1, 1]), seen


def test_a_pair_in_the_wrong_order_is_left_to_its_maker():
    seen = outcome("", "shown(p.pair()[::-1])")
    assert (seen["error"], seen["freed"]) == ("ValueError", [1, 1]), seen
    assert "arrow_schema" in seen["text"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("answer", [None, 3, b"arrow_array", object(), (), "ab", {}])
def test_an_answer_that_is_none_is_refused_by_its_type(method, answer):
    with pytest.raises(TypeError, match=method):
        dlf.as_storage(shown(answer, method))


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("answer", [(None, None), (3, 4), ("a", "b"), (b"", object())])
def test_a_pair_of_other_objects_is_refused_by_its_type(method, answer):
    with pytest.raises(TypeError, match="capsule"):
        dlf.as_storage(shown(answer, method))


@pytest.mark.parametrize("cut", ["[0]", "[1]", "[:1]", "[1:]", " * 2", "[:1] + (None,)"])
def test_what_is_not_a_pair_of_capsules_is_left_as_it_is(cut):
    seen = outcome("pair = p.pair()", f"shown(pair{cut})")
    assert (seen["error"], seen["freed"]) == ("TypeError", [0, 0]), seen  # `pair` is still there


@pytest.mark.parametrize("which", ["schema", "array"])
def test_what_was_released_before_is_called_consumed(which):
    seen = outcome(f"p.{which}.release = None")
    assert seen["error"] == "ValueError", seen
    assert "consumed" in seen["text"]
    assert seen["freed"] == ([0, 1] if which == "schema" else [1, 0])


@pytest.mark.parametrize("method", METHODS[:2])
def test_a_pair_is_taken_once(method):
    producer = Producer()
    name = "arrow_array" if method == METHODS[0] else "arrow_device_array"
    pair = producer.pair(name.encode())
    storage = dlf.as_storage(shown(pair, method))
    with pytest.raises(ValueError, match="consumed"):
        dlf.as_storage(shown(pair, method))
    assert storage.to_numpy().tolist() == [0, 1, 2, 3]
    assert producer.array_freed == 0
    del storage, pair
    gc.collect()
    assert producer.freed == [1, 1]


def test_a_stream_is_taken_once():
    stream = Stream(Producer())
    capsule = stream.capsule()
    storage = dlf.as_storage(shown(capsule, METHODS[2]))
    with pytest.raises(ValueError, match="consumed"):
        dlf.as_storage(shown(capsule, METHODS[2]))
    assert storage.to_numpy().tolist() == [0, 1, 2, 3]
    del storage, capsule
    gc.collect()
    assert stream.freed == [1, 1, 1]


def test_a_refused_pair_may_be_repaired_and_taken():
    producer = Producer()
    pair = producer.pair()
    producer.array.length = -1
    with pytest.raises(BufferError, match="-1"):
        dlf.as_storage(shown(pair))
    assert producer.freed == [0, 0]
    producer.array.length = 3
    assert dlf.as_storage(shown(pair)).shape == (3,)
    del pair
    gc.collect()
    assert producer.freed == [1, 1]


def test_of_two_threads_that_take_one_pair_one_wins_a_thousand_times():
    printed = run("""
import gc, threading
rounds = [Producer() for _ in range(1000)]
pairs = [shown(one.pair()) for one in rounds]
start, seen = threading.Barrier(2), []

def take():
    for pair in pairs:
        start.wait()
        try:
            dlf.as_storage(pair)
            seen.append("taken")
        except ValueError as error:
            seen.append("consumed" if "consumed" in str(error) else str(error))

threads = [threading.Thread(target=take) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(seen.count("taken"), seen.count("consumed"))
del pairs
gc.collect()
print(*{tuple(one.freed) for one in rounds})
""")
    assert printed == "1000 1000\n(1, 1)"


# --- producers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "error", [RuntimeError, NotImplementedError, BufferError, TypeError, KeyError]
)
def test_what_a_producer_raises_passes_unchanged(method, error):
    raised = error("of the producer")

    def ask(_self, *_arguments, **_keywords):
        raise raised

    with pytest.raises(error) as caught:
        dlf.as_storage(type("Raising", (), {method: ask})())
    assert caught.value is raised


@pytest.mark.parametrize("method", METHODS)
def test_what_the_attribute_of_a_producer_raises_passes_unchanged(method):
    def attribute(_self):
        raise RuntimeError("device lost")

    with pytest.raises(RuntimeError, match="device lost"):
        dlf.as_storage(type("Lost", (), {method: property(attribute)})())


@pytest.mark.parametrize("method", METHODS)
def test_a_class_is_not_asked_for_what_its_instances_have(method):
    with pytest.raises(TypeError, match="the class"):
        dlf.as_storage(type(shown(None, method)))


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_is_none_is_none(method):
    with pytest.raises(TypeError):
        dlf.as_storage(type("Without", (), {method: None})())


@pytest.mark.parametrize("method", METHODS)
def test_an_arrow_producer_that_imports_itself_endlessly_gets_an_exception(method):
    assert (
        run(f"""
class Endless:
    def {method}(self, requested_schema=None, **_more):
        return dlf.as_storage(self)

try:
    dlf.as_storage(Endless())
except RecursionError:
    print("RecursionError")
""")
        == "RecursionError"
    )


def test_a_producer_that_hands_its_pair_over_while_it_is_asked_has_none_left():
    class Twice(Producer):
        def __arrow_c_array__(self, requested_schema=None):
            pair = self.pair()
            self.inner = dlf.as_storage(shown(pair))
            return pair

    producer = Twice()
    with pytest.raises(ValueError, match="consumed"):
        dlf.as_storage(producer)
    assert producer.array_freed == 0
    del producer.inner
    gc.collect()
    assert producer.freed == [1, 1]


def test_a_producer_is_not_asked_for_another_schema():
    producer = Producer()
    dlf.as_storage(producer)
    assert producer.calls == [None]


def test_a_device_is_asked_with_nothing_that_it_may_not_know():
    producer = Producer()
    dlf.as_storage(OnDevice(producer))
    assert producer.calls == [(None, {})]


# --- release: when, where, and how often ---------------------------------------------------------


@every_producer
def test_memory_is_released_once_with_the_last_view_of_it(make):
    producer = make()
    storage = dlf.as_storage(producer)
    views = [storage[1:], storage.T, storage.to_numpy(), memoryview(storage)]
    views += [np.from_dlpack(storage), dlf.as_storage(storage.to_numpy())]
    del storage
    while views:
        gc.collect()
        assert producer.array_freed == 0
        views.pop()
    gc.collect()
    assert producer.freed == [1, 1]


@every_producer
def test_children_are_released_once_with_their_parent(make):
    producer = make()
    dlf.as_storage(producer)
    for child in producer.children:
        assert child.freed == [1, 1]


@every_producer
def test_children_of_a_refused_array_are_released_once_with_their_parent(make):
    producer = make()
    producer.array.length = -1
    with pytest.raises(BufferError):
        dlf.as_storage(producer)
    assert producer.freed == [1, 1]
    for child in producer.children:
        assert child.freed == [1, 1]


@pytest.mark.parametrize("view", ["dlf.as_storage(p)", "dlf.as_storage(p).to_numpy()"])
def test_the_last_view_of_an_arrow_array_may_be_dropped_on_another_thread(view):
    assert (
        run(f"""
import threading
p, ran_on = tensor(), []
p.released_by(lambda at: (p._free_array(at), ran_on.append(threading.get_ident())))
held = [{view}]
thread = threading.Thread(target=held.clear)
thread.start()
thread.join()
print(p.freed, ran_on == [thread.ident])
""")
        == "[1, 1] True"
    )


def test_the_last_view_may_be_dropped_on_a_thread_that_python_does_not_know():
    assert (
        run("""
import ctypes
from support.dlpack_structs import call_on_a_bare_thread, consume
p = Producer()
managed = consume(dlf.as_storage(p).__dlpack__(max_version=(1, 0)))
assert p.array_freed == 0
call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))
print(p.freed)
""")
        == "[1, 1]"
    )


@pytest.mark.parametrize("error", ["ValueError()", "SystemExit(3)", "KeyboardInterrupt()"])
def test_an_exception_of_a_release_does_not_reach_the_code_that_drops_the_storage(error):
    assert (
        run(f"""
import sys
unraisable = []
sys.unraisablehook = lambda args: unraisable.append(args.exc_type.__name__)
p = Producer()

def raising(at):
    p._free_array(at)
    raise {error}

p.released_by(raising)
dlf.as_storage(p)
print(p.freed, len(unraisable))
""")
        == "[1, 1] 1"
    )


def test_a_release_that_forgets_to_say_so_is_not_called_again():
    assert (
        run("""
p = Producer()

def forgetful(at):
    p.array_freed += 1

p.released_by(forgetful)
dlf.as_storage(p)
print(p.freed)
""")
        == "[1, 1]"
    )


def test_a_release_may_import_from_its_own_producer_again():
    assert (
        run("""
p = Producer()

def again(at):
    p._free_array(at)
    if p.array_freed < 5:
        p.arm()
        dlf.as_storage(p)

p.released_by(again)
p.keep()
dlf.as_storage(p)
print(p.freed)
""")
        == "[5, 5]"
    )


@pytest.mark.parametrize(
    "held", ["dlf.as_storage(Producer())", "Producer().pair()", "Stream(Producer()).capsule()"]
)
def test_what_is_alive_at_the_end_of_the_process_does_no_harm(held):
    run(f"""
import builtins, sys
builtins.held = {held}
sys.held_too = [{held}]
sys.held_too.append(sys.held_too)
""")
