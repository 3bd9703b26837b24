"""Which class has an exchange table: where it is sought, what can be used, what is remembered."""

import json
import threading

import dlfield as dlf
import pytest

from support.addresses import address_of
from support.exchange_structs import ATTRIBUTE, HeldWithDlpack, hand_out, shown, table, with_table
from support.owners import Watch
from support.processes import run_in_fork

DOOR = "dlpack_c_exchange_api"


def printed_by(code):
    """Run code that may end the process, beside the helpers, and give what it printed."""
    names = "import ctypes, gc\nimport dlfield as dlf\nfrom support.lying_producers import *"
    return run_in_fork(f"{names}\nfrom support.exchange_structs import *\n{code}")


def outcome(made, base="HeldWithDlpack", prepare=""):
    """Import an object whose class has a table, and return the outcome and its releases."""
    code = f"{prepare}\nheld = with_table({made}, {base})()\nreport(held, held.producer)"
    return json.loads(printed_by(code))


def door_of(made):
    """Return the door that is used if there are two."""
    return printed_by(f"print(dlf.as_storage(with_table({made}, HeldWithDlpack)()).door)")


def test_a_subclass_inherits_the_table():
    base = with_table(table())
    dlf.as_storage(base())

    class Derived(base):
        pass

    assert dlf.as_storage(Derived()).door == DOOR


def test_a_subclass_may_take_the_table_away():
    class Without(with_table(table(), HeldWithDlpack)):
        __dlpack_c_exchange_api__ = None

    assert dlf.as_storage(Without()).door == "dlpack"


def test_a_table_of_an_instance_does_not_count():
    held = HeldWithDlpack()
    setattr(held, ATTRIBUTE, shown(table()))
    assert dlf.as_storage(held).door == "dlpack"


def test_a_property_for_instances_does_not_count():
    capsule = shown(table())
    cls = with_table(property(lambda _held: capsule), HeldWithDlpack)
    assert dlf.as_storage(cls()).door == "dlpack"


BAD_TABLES = {
    "a number": "ctypes.addressof(table())",
    "None": "None",
    "another name": "shown(table(), b'dltensor')",
    "no name": "shown(table(), None)",
    "a NULL function": "table(None)",
    "a NULL function before an older table": "table(None, major=1, prev=table())",
    "not aligned": "Table.from_address(ctypes.addressof(table()) + 1)",
    "version 0": "table(major=0)",
    "version 2 alone": "table(major=2)",
    "version 2 before version 3": "table(major=2, prev=table(major=3))",
    "version 2 before a NULL function": "table(major=2, prev=table(None))",
    "version 2 before what is not aligned": (
        "table(major=2, prev=Table.from_address(ctypes.addressof(table()) + 4))"
    ),
}


@pytest.mark.parametrize("made", BAD_TABLES.values(), ids=BAD_TABLES)
def test_behind_a_bad_table_the_next_door_is_tried(made):
    assert door_of(made) == "dlpack"


@pytest.mark.parametrize("made", BAD_TABLES.values(), ids=BAD_TABLES)
def test_without_another_door_a_bad_table_is_refused(made):
    seen = outcome(made, "Held")
    assert (seen["error"], seen["freed"]) == ("TypeError", 0)
    assert "speaks the buffer protocol or one of" in seen["text"]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_cycle_of_tables_ends(length):
    ring = f"ring = [table(major=2) for _ in range({length})]"
    tied = "for n, one in enumerate(ring): one.prev_api = ctypes.addressof(ring[n - 1])"
    assert outcome("ring[0]", prepare=f"{ring}\n{tied}")["error"] is None


def test_of_a_table_of_another_version_nothing_behind_the_header_is_read():
    prepare = """
pages = Pages(2)
at = pages.start + pages.size // 2 - 16
ctypes.memmove(at, ctypes.addressof(table(major=2)), 16)
pages.take_away(first=1)"""
    seen = outcome("Table.from_address(at)", prepare=prepare)
    assert (seen["error"], seen["freed"]) == (None, 1)


@pytest.mark.parametrize("newer", [(2,), (2, 3), (7, 6, 5, 4, 3, 2)])
def test_an_older_table_behind_newer_ones_is_used(newer):
    made = table()
    for major in newer:
        made = table(None, major=major, prev=made)
    assert dlf.as_storage(with_table(made)()).door == DOOR


def test_a_class_that_gets_a_table_after_it_was_asked_still_imports():
    class Late(HeldWithDlpack):
        pass

    assert dlf.as_storage(Late()).door == "dlpack"
    setattr(Late, ATTRIBUTE, shown(table()))
    held = Late()
    assert address_of(dlf.as_storage(held)) == held.producer.managed.dl_tensor.data
    assert held.producer.freed == 1


def test_a_class_that_is_made_where_one_without_a_table_was_still_imports():
    printed = printed_by("""
capsule, met = shown(table()), 0
for _ in range(1000):
    mute = type("Mute", (), {})
    try:
        dlf.as_storage(mute())
    except TypeError:
        there = id(mute)
    del mute
    gc.collect()
    held = with_table(capsule)()
    met += id(type(held)) == there
    assert dlf.as_storage(held).shape == (3, 4), f"after {met} of the same address"
    if met > 3:
        break
""")
    assert printed == ""


def test_each_of_many_classes_is_asked_by_its_own_table():
    def answering(seen):
        return table(lambda held, room: seen.append(type(held)) or hand_out(held, room))

    asked = [[] for _ in range(60)]
    classes = [with_table(answering(seen)) for seen in asked]
    for cls in classes * 3:
        assert dlf.as_storage(cls()).door == DOOR
    assert asked == [[cls] * 3 for cls in classes]


def test_threads_that_meet_classes_for_the_first_time_get_their_tensors():
    classes = [with_table(table()) for _ in range(50)]
    start, doors = threading.Barrier(4), []

    def meet():
        start.wait()
        doors.extend(dlf.as_storage(cls()).door for cls in classes)

    threads = [threading.Thread(target=meet) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert doors == [DOOR] * 200


SHORT_LIVED = """
import weakref
capsule, producer, alive = shown(table()), Producer(), weakref.WeakSet()

def meet(count):
    for _ in range(count):
        cls = with_table({made}, HeldWithDlpack)
        alive.add(cls)
        held = cls.__new__(cls)
        held.producer = producer
        assert dlf.as_storage(held).shape == (3, 4)
        producer.calls.clear()
    del cls, held
    gc.collect()

meet(2_000)
before = resident()
meet(10_000)
print(len(alive), producer.freed, resident() - before)
"""


@pytest.mark.parametrize(("made", "kept"), [("capsule", 16), ("None", 0)])
def test_ten_thousand_short_lived_classes_are_forgotten(made, kept):
    alive, freed, grown = map(int, printed_by(SHORT_LIVED.format(made=made)).split())
    assert alive <= kept
    assert freed == 12_000
    assert grown < 4_000  # KiB


def test_a_class_that_had_no_table_is_not_kept_alive():
    cls = with_table(None, HeldWithDlpack)
    watch = Watch(cls)
    dlf.as_storage(cls())
    del cls
    assert watch.freed


def meta(error):
    """Make a metaclass whose classes raise an error when they are asked for a table."""

    class Meta(type):
        def __getattr__(cls, name):
            raise error if name == ATTRIBUTE else AttributeError(name)

    return Meta


def test_what_a_metaclass_raises_passes_unchanged():
    raised = RuntimeError("of the metaclass")
    cls = meta(raised)("Asked", (HeldWithDlpack,), {})
    with pytest.raises(RuntimeError) as caught:
        dlf.as_storage(cls())
    assert caught.value is raised


def test_an_attribute_error_of_a_metaclass_means_that_there_is_no_table():
    cls = meta(AttributeError("of the metaclass"))("Asked", (HeldWithDlpack,), {})
    assert dlf.as_storage(cls()).door == "dlpack"
