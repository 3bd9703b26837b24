"""Arrow's C data interface in ctypes: honest producers, to be made to lie, and capsules by hand."""

import ctypes
import json
import math
import struct

from support.dlpack_structs import DESTRUCTOR, never_freed

SCHEMA, ARRAY = b"arrow_schema", b"arrow_array"
DEVICE_ARRAY, STREAM = b"arrow_device_array", b"arrow_array_stream"

EXTENSION, ITS_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
TENSOR, BOOL8 = b"arrow.fixed_shape_tensor", b"arrow.bool8"


class ArrowSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowArray(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = (
        ("array", ArrowArray),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    )


class ArrowArrayStream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FILL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
TEXT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def _function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


def _at(callback):
    return ctypes.cast(callback, ctypes.c_void_p).value


def _release(made):
    """Call the release callback of a struct where it has one, from a call that holds no GIL."""
    if made.release:
        RELEASE(made.release)(ctypes.addressof(made))


def _destructor(made):
    """Make a capsule's destructor, which releases a struct unless it was consumed."""
    return DESTRUCTOR(lambda _dying: _release(made))


_names = {}  # a capsule keeps a pointer to its name


def _capsule(made, name, destructor):
    return _new(ctypes.addressof(made), _names.setdefault(name, name), _at(destructor))


def encoded(pairs, *, count=None):
    """Write key-value metadata; lengths are those of the bytes unless a pair gives others.

    A pair is (key, value), or (key, value, length of key, length of value).
    """
    pairs = list(pairs.items()) if isinstance(pairs, dict) else pairs
    text = struct.pack("=i", len(pairs) if count is None else count)
    for key, value, *lengths in pairs:
        for part, length in zip((key, value), lengths or (len(key), len(value)), strict=True):
            text += struct.pack("=i", length) + part
    return text


def pairs_of(address):
    """Read key-value metadata."""
    if not address:
        return {}

    def number():
        nonlocal address
        address += 4
        return ctypes.c_int32.from_address(address - 4).value

    def part():
        nonlocal address
        length = number()
        address += length
        return ctypes.string_at(address - length, length)

    return {part(): part() for _ in range(number())}


class Producer:
    """An honest producer of float64 values 0, 1, 2, ... whose release callbacks count their calls.

    A lie is a change of `schema`, `array`, `device` or `buffers` before it is asked.
    """

    def __init__(self, format=b"g", length=4, *, values=None, children=(), name=None, buffers=2):
        self.calls, self.schema_freed, self.array_freed = [], 0, 0
        self.values = values or (ctypes.c_double * (length + 8))(*range(length + 8))
        self.buffers = (ctypes.c_void_p * 4)(None, ctypes.addressof(self.values))
        self.schema, self.device = ArrowSchema(format, name), ArrowDeviceArray()
        self.array, self.device.device_id, self.device.device_type = self.device.array, -1, 1
        self.array.length, self.array.n_buffers = length, buffers
        self.array.buffers = ctypes.addressof(self.buffers)
        self._callbacks = (RELEASE(self._free_schema), RELEASE(self._free_array))
        self._destructors = (_destructor(self.schema), _destructor(self.array))
        self.schema.release, self.array.release = map(_at, self._callbacks)
        self.adopt(children)
        never_freed.append(self)
        self.keep()

    def adopt(self, children):
        """Take these as children, in the schema and in the array."""
        self.children, count = tuple(children), len(children)
        self.child_schemas = (ctypes.c_void_p * max(count, 1))()
        self.child_arrays = (ctypes.c_void_p * max(count, 1))()
        for n, child in enumerate(children):
            self.child_schemas[n] = ctypes.addressof(child.schema)
            self.child_arrays[n] = ctypes.addressof(child.array)
        for owner, them in ((self.schema, self.child_schemas), (self.array, self.child_arrays)):
            owner.n_children, owner.children = count, ctypes.addressof(them) if count else None

    def keep(self):
        """Remember all fields, lies included: a consumer must not leave any of them behind."""
        self._kept = bytes(self.schema), bytes(self.device)
        for child in self.children:
            child.keep()

    def arm(self):
        """Make it what it was when it was kept, after it was released."""
        for made, kept in zip((self.schema, self.device), self._kept, strict=True):
            ctypes.memmove(ctypes.addressof(made), kept, len(kept))
        for child in self.children:
            child.arm()

    def released_by(self, function):
        """Put another function in the place of the array's release callback."""
        never_freed.append(callback := RELEASE(function))
        self.array.release = _at(callback)

    def says(self, pairs):
        """Add metadata: pairs of bytes, or bytes as they are."""
        text = pairs if isinstance(pairs, bytes) else encoded(pairs)
        never_freed.append(room := ctypes.create_string_buffer(text, len(text)))
        self.schema.metadata = ctypes.addressof(room)
        return self

    def nulls(self, bits, count=-1):
        """Add a bitmap in which a "0" stands for a null, and a number of nulls: -1 is unknown."""
        text = bytes(int(bits[n : n + 8][::-1], 2) for n in range(0, len(bits), 8))
        never_freed.append(room := ctypes.create_string_buffer(text, max(len(text), 1)))
        self.buffers[0], self.array.null_count = ctypes.addressof(room), count
        return self

    def part(self, offset, length):
        """Show a slice alone."""
        self.array.offset, self.array.length = offset, length
        return self

    @property
    def freed(self):
        """How often schema and array were released."""
        return [self.schema_freed, self.array_freed]

    def forget(self):
        self.calls.clear()
        self.schema_freed = self.array_freed = 0

    def _free_schema(self, address):
        self.schema_freed += 1
        for child in self.children:
            _release(child.schema)
        ArrowSchema.from_address(address).release = None

    def _free_array(self, address):
        self.array_freed += 1
        for child in self.children:
            _release(child.array)
        ArrowArray.from_address(address).release = None

    def schema_capsule(self, name=SCHEMA):
        return _capsule(self.schema, name, self._destructors[0])

    def array_capsule(self, name=ARRAY):
        return _capsule(self.array, name, self._destructors[1])

    def pair(self, name=ARRAY):
        """Return a capsule of each, for one consumer. The device array begins with the array."""
        return self.schema_capsule(), self.array_capsule(name)

    def __arrow_c_array__(self, requested_schema=None):
        self.calls.append(requested_schema)
        return self.pair()


def lists(size=3, child=None, *, length=4):
    """Make a producer of fixed-size lists."""
    child = child or Producer(length=size * length, name=b"item")
    return Producer(b"+w:%d" % size, length, children=[child], buffers=1)


def nested(*sizes, length=4):
    """Make a producer of fixed-size lists of fixed-size lists ... of numbers."""
    if not sizes:
        return Producer(length=length)
    child = nested(*sizes[1:], length=length * sizes[0])
    return lists(sizes[0], child, length=length)


def tensor(shape=(3, 2), *, length=4, text=None, field=None, **more):
    """Make a producer of arrow.fixed_shape_tensor, with metadata of dlfield where `field` is."""
    made = lists(math.prod(shape), length=length)
    words = json.dumps({"shape": list(shape), **more}).encode() if text is None else text
    pairs = {EXTENSION: TENSOR, ITS_METADATA: words}
    if field is not None:
        pairs[b"dlfield"] = field if isinstance(field, bytes) else json.dumps(field).encode()
    return made.says(pairs)


def batch(*columns, length=4):
    """Make a producer of a record batch."""
    return Producer(b"+s", length, children=columns, buffers=1)


def shown(answer, method="__arrow_c_array__"):
    """Make an object that answers with what is given, of a class of its own."""
    return type("Shown", (), {method: lambda _self, requested_schema=None, **_more: answer})()


class OnDevice:
    """Shows a producer by `__arrow_c_device_array__` alone."""

    def __init__(self, producer):
        self.producer = producer

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        self.producer.calls.append((requested_schema, keywords))
        return self.producer.pair(DEVICE_ARRAY)


class Stream:
    """An honest stream of producers as its chunks, which can be made to fail.

    `fails` maps "schema", or the number of a chunk, to an errno; `text` is what explains it.
    """

    def __init__(self, *chunks, schema=None, fails=(), text=b"the disk is on fire"):
        self.chunks, self.fails, self.text = chunks, dict(fails), text
        self.of, self.calls, self.stream_freed, self.asked = schema or chunks[0], [], 0, 0
        self.room = None if text is None else ctypes.create_string_buffer(text)
        self._callbacks = (
            FILL(self._get_schema),
            FILL(self._get_next),
            TEXT(lambda _stream: self.room and ctypes.addressof(self.room)),
            RELEASE(self._free),
        )
        self.stream = ArrowArrayStream(*map(_at, self._callbacks))
        self._destructor, self._kept = _destructor(self.stream), bytes(self.stream)
        never_freed.append(self)

    def arm(self):
        ctypes.memmove(ctypes.addressof(self.stream), self._kept, len(self._kept))
        self.asked = 0
        for one in (self.of, *self.chunks):
            one.arm()

    @property
    def freed(self):
        """How often the stream, its schema, and each of its chunks were released."""
        return [self.stream_freed, self.of.schema_freed, *(one.array_freed for one in self.chunks)]

    def keep(self):
        for one in (self.of, *self.chunks):
            one.keep()

    def forget(self):
        self.calls.clear()
        self.stream_freed = 0
        for one in (self.of, *self.chunks):
            one.forget()

    def _move(self, made, out):
        """Return a struct away, whose release is the receiver's business from then on."""
        ctypes.memmove(out, ctypes.addressof(made), ctypes.sizeof(made))
        made.release = None
        return 0

    def _get_schema(self, _stream, out):
        self.calls.append("get_schema")
        return self.fails.get("schema") or self._move(self.of.schema, out)

    def _get_next(self, _stream, out):
        self.calls.append("get_next")
        number, self.asked = self.asked, self.asked + 1
        if number in self.fails:
            return self.fails[number]
        if number < len(self.chunks):
            return self._move(self.chunks[number].array, out)
        ctypes.memset(out, 0, ctypes.sizeof(ArrowArray))
        return 0

    def _free(self, address):
        self.stream_freed += 1
        ArrowArrayStream.from_address(address).release = None

    def capsule(self, name=STREAM):
        return _capsule(self.stream, name, self._destructor)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule()


class Taken:
    """An export taken out of its capsules as a consumer does, and kept until released."""

    def __init__(self, pair):
        self.schema = self._out_of(pair[0], SCHEMA, ArrowSchema)
        of_device = "device" in repr(pair[1])
        kind = ArrowDeviceArray if of_device else ArrowArray
        made = self._out_of(pair[1], DEVICE_ARRAY if of_device else ARRAY, kind)
        self.device, self.array = (made, made.array) if of_device else (None, made)

    @staticmethod
    def _out_of(capsule, name, kind):
        there = kind.from_address(_pointer(capsule, name))
        ours = kind()
        ctypes.memmove(ctypes.addressof(ours), ctypes.addressof(there), ctypes.sizeof(kind))
        (there.array if kind is ArrowDeviceArray else there).release = None
        return ours

    def child(self):
        """Return the schema and the array of the only child, where they are."""
        schema, array = (ctypes.c_void_p.from_address(one.children) for one in self)
        return ArrowSchema.from_address(schema.value), ArrowArray.from_address(array.value)

    def __iter__(self):
        return iter((self.schema, self.array))

    def buffer(self, number=1, array=None):
        """Return the address of a buffer."""
        return (ctypes.c_void_p * (number + 1)).from_address((array or self.array).buffers)[number]

    def words(self):
        """Return the metadata, with JSON decoded."""
        pairs = pairs_of(self.schema.metadata)
        for key in (ITS_METADATA, b"dlfield"):
            if pairs.get(key):
                pairs[key] = json.loads(pairs[key])
        return pairs

    def address(self):
        return ctypes.addressof(self.array)

    def release(self):
        _release(self.schema)
        _release(self.array)
