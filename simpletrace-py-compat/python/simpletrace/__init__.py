"""Reads QEMU simpletrace files: takes the place of QEMU's scripts/simpletrace.py, many times faster.

    import simpletrace

    class Requests(simpletrace.Analyzer2):
        def virtio_blk_req_complete(self, vdev, req, status, *, timestamp_ns, **others):
            print(timestamp_ns, hex(req), status)

    simpletrace.process("trace-events-all", "trace-1234", Requests())

What the original does not have, in `help(simpletrace.read)` and so on: `read`, `stream`, `pairs` and `latency` return a `Table` or a `Stream`, which
polars, pyarrow and pandas take without a loop; `presets` lists what latencies are known by name; `DamageWarning` tells of damage.
"""

import contextlib as _contextlib
import io as _io
import os as _os
import struct as _struct
import sys as _sys
import weakref as _weakref

from . import _native
from ._events import Event, is_string, read_events
from ._tables import Preset, Stream, Table, _list, _number, _warn, latency, pairs, presets, read, stream

__all__ = ["Analyzer", "Analyzer2", "process", "run"]

header_event_id = 0xFFFFFFFFFFFFFFFF
header_magic = 0xF2B177CB0AA429B4
dropped_event_id = header_event_id - 1

record_type_mapping = 0
record_type_event = 1

log_header_fmt = "=QQQ"
rec_header_fmt = "=QQII"
rec_header_fmt_len = _struct.calcsize(rec_header_fmt)

# What a trace is taken for whose header nobody has read: the version, and whether it is big-endian.
_USUAL = 4, _sys.byteorder == "big"


class SimpleException(Exception):
    """What a script says to its user without a traceback."""


class DamageWarning(UserWarning):
    """A trace is damaged, and what is intact was read."""


class _Timestamp(int):
    """A time that scripts from before QEMU 2.12 may index: they were given it as a tuple of one."""

    __slots__ = ()

    def __getitem__(self, index):
        return (int(self),)[index]


_DROPPED_EVENT = Event.build("Dropped_Event(uint64_t num_events_dropped)\n", 1, __file__)


class Analyzer:
    """Deprecated: `Analyzer2` says which argument is which.

    A method named as an event is called for each of its records, with the arguments; if it has one parameter more, with the time
    in ns before them, if two, with the time and the process id:

        def runstate_set(self, new_state): ...
        def runstate_set(self, timestamp, new_state): ...
        def runstate_set(self, timestamp, pid, new_state): ...

    `catchall` is called for records without a method. The time may be indexed, `timestamp[0]`, as before QEMU 2.12.
    """

    def begin(self):
        """Called before the first record."""

    def catchall(self, event, rec):
        """Called for records that have no method: `rec` is the event's name, time, process id, and the arguments."""

    def end(self):
        """Called behind the last record, unless something was raised."""

    def _process_event(self, rec_args, *, event, event_id, timestamp_ns, pid, **others):
        try:
            chosen = self._chosen
        except AttributeError:
            chosen = self._chosen = {}
        if event_id not in chosen:
            chosen[event_id] = _choose(self, event)
        function, before = chosen[event_id]
        if before is None:
            function(event, (event_id, timestamp_ns, pid, *rec_args))
        else:
            function(*(_Timestamp(timestamp_ns), pid)[:before], *rec_args)

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        if exc_type is None:
            self.end()
        return False


class Analyzer2(Analyzer):
    """Is called for the records of a trace, by `process` or `run`.

    A method named as an event is called for each of its records with the arguments, and by keyword with

        event         the `Event`: its name, the types and names of its arguments
        event_id      the event's name in the trace
        timestamp_ns  the time in ns
        pid           the process id

        def runstate_set(self, new_state, *, timestamp_ns, **others): ...

    `catchall` is called for records without a method, in the same way. Where records are missing, the method is `Dropped_Event`, and
    its argument how many. Numbers are unsigned, text is bytes, unless they are asked for with `typed=True`.

    If an analyzer has no `catchall` of its own, records that it has no method for cost next to nothing. A method that a call brings into being
    is found after at most 4,096 records.
    """

    def catchall(self, *rec_args, event, timestamp_ns, pid, event_id, **kwargs):
        """Called for records that have no method."""

    def _process_event(self, rec_args, *, event, **keywords):
        method = getattr(self, event.name, self.catchall)
        method(*rec_args, event=event, **keywords)


class Formatter2(Analyzer2):
    """Prints every record: what `python -m simpletrace` runs."""

    def begin(self):
        self.last_timestamp_ns = None

    def catchall(self, *rec_args, event, timestamp_ns, pid, event_id, **kwargs):
        before = timestamp_ns if self.last_timestamp_ns is None else self.last_timestamp_ns
        self.last_timestamp_ns = timestamp_ns
        args = [
            f"{name}={value}" if isinstance(value, bytes) else f"{name}=0x{value:x}"
            for (_, name), value in zip(event.args, rec_args)
        ]
        print(f"{event.name} {(timestamp_ns - before) / 1000:.3f} pid={pid} {' '.join(args)}")


def _choose(analyzer, event):
    """Returns what an Analyzer has for an event, and how many values stand before the arguments; for `catchall` None."""
    # Of this module, so that Python shows none unless it is asked to, as of the original.
    _warn("Analyzer is deprecated: use Analyzer2", DeprecationWarning, __name__)
    function = getattr(analyzer, event.name, None)
    if function is None:
        return analyzer.catchall, None
    # Takes longer to import than all the rest.
    import inspect

    more = len(inspect.getfullargspec(function).args) - 1 - len(event.args)
    return function, more if more in (1, 2) else 0


def _those_of(analyzer, names):
    """Returns those of the names that an analyzer has attributes of."""
    return [name for name in names if hasattr(analyzer, name)]


def _style(analyzer):
    """How the native half is to call an analyzer: by a `_process_event` of its own, if it has one."""
    of_class = getattr(type(analyzer), "_process_event", None)
    if "_process_event" not in getattr(analyzer, "__dict__", ()):
        if of_class is Analyzer2._process_event:
            return "keywords"
        if of_class is Analyzer._process_event:
            return "positional"
    return "process"


def _events(events):
    """Returns a list of events, or the text of a trace-events file, and its name."""
    if isinstance(events, (str, _os.PathLike)):
        with open(events, "rb") as file:
            return file.read(), _os.fspath(events)
    read = getattr(events, "read", None)
    if read:
        text = read()
        return text if isinstance(text, str) else bytes(memoryview(text)), str(getattr(events, "name", "the events"))
    try:
        listed = list(events)
    except TypeError:
        listed = [None]
    if listed and all(isinstance(line, str) for line in listed):
        return "".join(listed), str(getattr(events, "name", "the events"))
    if not all(hasattr(event, "name") and hasattr(event, "args") for event in listed):
        raise TypeError(f"events are the path of a trace-events file, a file object, or `Event`s, not {events!r:.60}")
    return listed, ""


def _options(only, limit, typed, strict):
    """Returns the options of the native half."""
    if only is not None:
        only = _list("only", only)
    return {"only": only, "limit": _number("limit", limit, 64), "typed": bool(typed), "strict": bool(strict)}


def _opened(log):
    """Opens what is no regular file, such as a FIFO: Python waits for its writer in a way that Ctrl-C ends."""
    if isinstance(log, (str, _os.PathLike)) and not _os.path.isfile(log):
        return open(log, "rb", buffering=0)
    return _contextlib.nullcontext(log)


# What `read_trace_header` found in a file, for `read_trace_records`: by the object's `id`, with a weak reference to it.
_headers = {}


def _remember(log, header):
    """Keeps the header of a file object while it lives. Raises ValueError if that cannot be and the header is not the usual one."""
    key = id(log)
    try:
        _headers[key] = _weakref.ref(log, lambda _: _headers.pop(key, None)), header
    except TypeError:
        if header != _USUAL:
            version, is_big = header
            raise ValueError(
                f"a trace of version {version}, {'big' if is_big else 'little'}-endian, which read_trace_records could not know:"
                f" there are no weak references to {type(log).__name__}; add '__weakref__' to its __slots__, or take process(...)"
            ) from None


def _header_of(log):
    found, header = _headers.get(id(log), (None, _USUAL))
    return header if found and found() is log else _USUAL


def process(events, log, analyzer, read_header=True, *, only=None, limit=None, typed=False, strict=False):
    """Calls the methods of an analyzer for the records of a trace.

    events       a trace-events file: its path, or a file object; or `Event`s, such as a list
    log          the trace: its path, or a binary file object of any kind, such as sys.stdin.buffer or gzip.open(...)
    analyzer     an `Analyzer2`, or an old `Analyzer`
    read_header  False for records without a file header, whose ids count the events from 0
    only         names of events: others are passed over, and neither counted by `limit` nor missed in `events`
    limit        stop after so many records
    typed        give arguments by their declared type: signed numbers, bool, text as str
    strict       raise at damage. Otherwise one DamageWarning tells of it, and all intact records are read.

    Raises SimpleException if the trace has records of an event that is not declared, or is empty or shorter than its header;
    ValueError if it is no trace; and whatever a method raises.
    """
    text, name = _events(events)
    options = _options(only, limit, typed, strict)
    with _opened(log) as log, _native.Log(
        text, name, log, read_header=bool(read_header), header=None, **options
    ) as opened, analyzer:
        if type(analyzer) is Formatter2:
            warning = opened.print(_write())
        else:
            warning = opened.feed(analyzer, _style(analyzer))
        if warning:
            _warn(warning, DamageWarning)


def _write():
    """Returns how to write what is printed; None for descriptor 1."""
    out = _sys.stdout
    if out is None:
        # Closed before Python began: what is printed goes nowhere.
        return lambda text: None
    try:
        is_plain = out is _sys.__stdout__ and out.fileno() == 1 and out.encoding.lower().replace("-", "") == "utf8"
    except (AttributeError, _io.UnsupportedOperation, ValueError):
        is_plain = False
    if not is_plain:
        return out.write
    out.flush()
    return None


def run(analyzer, **options):
    """Runs an analyzer on the files that the command line names: [--no-header] <trace-events> <trace-file>.

    `options` are those of `process`. Raises SimpleException with the usage if the command line is another.
    """
    words = _sys.argv[1:]
    has_header = len(words) == 2
    if not has_header and not (len(words) == 3 and words[0] == "--no-header"):
        raise SimpleException(f"usage: {_sys.argv[0]} [--no-header] <trace-events> <trace-file>\n")
    process(words[-2], words[-1], analyzer, has_header, **options)


def read_header(fobj, hfmt):
    """Reads the values of a `struct` format. Raises SimpleException if the file ends before."""
    size = _struct.calcsize(hfmt)
    data = fobj.read(size)
    if len(data) < size:
        raise SimpleException(f"the file ends inside a header: {len(data)} of {size} bytes; is it a trace?")
    return _struct.unpack(hfmt, data)


def read_trace_header(fobj):
    """Reads the header of a trace, of any version and byte order. Raises ValueError if it is none.

    `read_trace_records` knows from here what it reads; `fobj` has to be an object that can be referred to weakly unless the version
    is 4 and the byte order the host's, else ValueError.
    """
    data = _struct.pack("=QQQ", *read_header(fobj, log_header_fmt))
    for order in "<>":
        event_id, magic, version = _struct.unpack(order + "QQQ", data)
        if (event_id, magic) == (header_event_id, header_magic):
            break
    else:
        raise ValueError(f"not a trace: it begins with {data[:16].hex(' ')}, not with the header id and the magic number")
    if version not in (0, 2, 3, 4):
        raise ValueError(f"version {version} of the trace format is unknown: there are 0, 2, 3 and 4")
    if version == 0:
        read_header(fobj, "=40x")
    _remember(fobj, (version, order == ">"))


def get_mapping(fobj):
    """Reads what follows the type of a mapping record: an id and the name of its event."""
    event_id, length = _struct.unpack("=QL", fobj.read(12))
    return event_id, bytes(fobj.read(length)).decode()


def read_record(fobj):
    """Reads what follows the type of an event record: its id, time, process id, and the bytes of its arguments."""
    event_id, timestamp_ns, length, pid = read_header(fobj, rec_header_fmt)
    return event_id, timestamp_ns, pid, bytes(fobj.read(length - rec_header_fmt_len))


def read_trace_records(events, fobj, read_header, *, only=None, limit=None, typed=False, strict=False):
    """Yields for each record a tuple: the `Event`, its name in the trace, the time in ns, the process id, and the arguments.

    `fobj` stands behind the header, which `read_trace_header` has read; or `read_header` is False, and there is none. The other
    options are those of `process`.
    """
    header = _header_of(fobj) if read_header else None
    text, name = _events(events)
    options = _options(only, limit, typed, strict)
    with _native.Log(text, name, fobj, read_header=False, header=header, **options) as opened:
        yield from opened
        warning = opened.warning()
        if warning:
            _warn(warning, DamageWarning)
