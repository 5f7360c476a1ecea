"""Takes the capsules of tables with ctypes alone, by the layout of Arrow's C data interface, so that every Python can test them."""

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, py_object


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Schema))),
    ("private", c_void_p),
]
Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Array))),
    ("private", c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Stream))),
    ("private", c_void_p),
]

NUMBERS = {b"L": ctypes.c_uint64, b"l": c_int64, b"I": ctypes.c_uint32, b"g": ctypes.c_double}
OFFSETS = {b"u": ctypes.c_int32, b"U": c_int64}

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [py_object, c_char_p]


def take(kind, capsule):
    """Returns what is in a capsule, which has to be kept meanwhile."""
    name = {Schema: b"arrow_schema", Stream: b"arrow_array_stream"}[kind]
    return kind.from_address(_pointer(capsule, name))


def fields(schema):
    """The names of columns and how they are laid out."""
    if schema.format != b"+s":
        raise ValueError(f"not a struct: {schema.format}")
    return [(field.name.decode(), field.format) for field in (schema.children[at][0] for at in range(schema.n_children))]


def schema_of(table):
    """The columns as `__arrow_c_schema__` has them."""
    capsule = table.__arrow_c_schema__()
    schema = take(Schema, capsule)
    found = fields(schema)
    schema.release(byref(schema))
    if schema.release:
        raise ValueError("a schema that was released does not say so")
    return found


def rows_of(table, batches=None):
    """The columns, and all rows or those of so many batches, of `__arrow_c_stream__`."""
    capsule = table.__arrow_c_stream__()
    stream = take(Stream, capsule)
    schema, rows = Schema(), []
    _check(stream, stream.get_schema(byref(stream), byref(schema)))
    columns = fields(schema)
    schema.release(byref(schema))
    while batches != 0:
        array = Array()
        _check(stream, stream.get_next(byref(stream), byref(array)))
        if not array.release:
            break
        if (array.offset, array.n_children) != (0, len(columns)):
            raise ValueError("not a batch of these columns")
        rows += zip(*(_values(array.children[at][0], layout) for at, (_, layout) in enumerate(columns)))
        array.release(byref(array))
        batches = batches and batches - 1
    stream.release(byref(stream))
    if schema.release or stream.release:
        raise ValueError("what was released does not say so")
    return columns, rows


def _check(stream, code):
    if code != 0:
        raise OSError(code, stream.get_last_error(byref(stream)).decode())


def _values(array, layout):
    places = range(array.offset, array.offset + array.length)
    if layout in NUMBERS:
        values = ctypes.cast(array.buffers[1], POINTER(NUMBERS[layout]))
        found = [values[at] for at in places]
    elif layout == b"b":
        found = [_bit(array.buffers[1], at) for at in places]
    else:
        offsets = ctypes.cast(array.buffers[1], POINTER(OFFSETS[layout]))
        found = [ctypes.string_at(array.buffers[2] + offsets[at], offsets[at + 1] - offsets[at]).decode() for at in places]
    if array.null_count != 0 and array.buffers[0]:
        found = [value if _bit(array.buffers[0], at) else None for at, value in zip(places, found)]
    return found


def _bit(bits, at):
    return bool(ctypes.cast(bits, POINTER(ctypes.c_uint8))[at // 8] >> at % 8 & 1)
