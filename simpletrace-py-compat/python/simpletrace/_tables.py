"""Traces as Arrow tables: polars, pyarrow, pandas, DuckDB and others take them without a loop in Python."""

import collections as _collections
import operator as _operator
import os as _os
import sys as _sys
import warnings as _warnings

from . import _native
from ._native import Stream, Table

Preset = _collections.namedtuple("Preset", "name about operation on by exact note")
Preset.__doc__ = "An operation that is known by name: see `presets`."


def read(
    trace,
    events=None,
    *,
    event=None,
    long=False,
    columns=None,
    time=None,
    where=None,
    pid=None,
    limit=None,
    wall=False,
    read_header=True,
    strict=False,
):
    """Reads events into Arrow tables.

        polars.DataFrame(simpletrace.read("trace-1234", "trace-events-all", event="virtio_blk_req_complete"))
        pyarrow.table(...)
        simpletrace.read("trace-1234")["virtio_notify"]

    trace        the path of the trace, or of several; those that gzip or zstd has compressed, too. Several are read one behind the
                 other, in the order of their first records and not of the list; their records are not merged by time.
    events       the path of its trace-events file, or several; looked for beside the trace if there is none
    event        the name of an event: a `Table` with a column for each argument. A list of names and patterns such as "virtio_*",
                 or None for all: a dict of such tables by name, from one reading, with `dropped` for where events are missing. An
                 empty list is none.
    long         one `Table` of all these events, with their names in `event` and the arguments as JSON in `args`
    columns      only these
    time         only a window: "5s-", "-10s", "1s+200ms" since the start, "@1234.5s-" of the trace's clock
    where        only records that meet a condition, "ret < 0", or a list of them; docs/FILTERS.md says what they mean
    pid          only records of this process, or a list
    limit        stop after so many records
    wall         with the time of day as `wall_ns`; null where the trace does not say it, as QEMU's never do
    read_header  False for records without a file header
    strict       raise ValueError if the trace is damaged or does not fit its declarations. Otherwise one DamageWarning tells of
                 it, and all that is intact is read.

    Integers and pointers have 64 bits, signed or not as declared. A string that is not UTF-8 has each byte from 0x80 up, and each
    backslash, as \\xNN, and a warning says how many there are. Events that are not declared have their bytes as `payload`.
    """
    traces, events, name, asked = _asked(
        trace, events, event, long, columns, time, where, pid, limit, wall, read_header
    )
    if name is None and not long:
        tables, found = _native.read_events(traces, events, asked)
        _tell(traces, found, strict)
        return tables
    table, found = _native.open_events(traces, events, name, asked, None).whole()
    _tell(traces, found, strict)
    return table


def stream(
    trace,
    events=None,
    *,
    event=None,
    long=False,
    columns=None,
    time=None,
    where=None,
    pid=None,
    limit=None,
    wall=False,
    read_header=True,
    strict=False,
):
    """Reads the events of a name, or with `long` of many, in batches as they are taken, so that memory does not grow with the trace.

        for batch in simpletrace.stream("trace-1234", event="virtio_notify"):
            polars.DataFrame(batch)
        duckdb.arrow(pyarrow.RecordBatchReader.from_stream(simpletrace.stream(...)))

    The arguments are those of `read`. A `Stream` can be taken once, by the process that began it. What is wrong with the trace is
    told at its end. A batch has about 4 MiB, and comes when it is full or the trace ends: of a FIFO that stays open `process` hands
    over each record as it comes.
    """
    traces, events, name, asked = _asked(
        trace, events, event, long, columns, time, where, pid, limit, wall, read_header
    )
    if name is None and not long:
        raise ValueError("a stream is of one event, event='NAME', or of many with their arguments as JSON, long=True")
    return _native.open_events(traces, events, name, asked, lambda found: _tell(traces, found, strict))


def pairs(
    trace,
    events=None,
    operation=None,
    *,
    preset=None,
    presets=(),
    on=None,
    by=None,
    discipline=None,
    columns=None,
    time=None,
    where=None,
    pid=None,
    read_header=True,
    strict=False,
):
    """Finds operations, which begin with one event and end with another: a `Table` with a row for each.

        simpletrace.pairs("trace-1234", "trace-events-all", "thread_pool_submit -> thread_pool_complete", on="req")
        simpletrace.pairs("trace-1234", "trace-events-all", preset="virtio-blk", by="pid")

    operation    "BEGIN -> END", "A|B -> C -> D"
    preset       one that is known by name, instead; `presets` is files with more
    on           the arguments that the records of one operation have in common, as in "req" or "vq,elem"
    by           arguments to have as columns; [] for none where a preset has some
    discipline   "last", "first", "fifo" or "lifo": which one ends, of several with the same key

    All others are those of `read`. The columns are `begin_ns`, `end_ns`, `latency_ns`, of more than two stages `hop1_ns` and so on,
    `suspect` where events may be missing between, and those of `on` and `by`.
    """
    return _operation(
        False, trace, events, operation, preset, presets, on, by, discipline, False, None, columns, time, where, pid, read_header, strict
    )


def latency(
    trace,
    events=None,
    operation=None,
    *,
    preset=None,
    presets=(),
    on=None,
    by=None,
    discipline=None,
    without_suspects=False,
    percentiles=None,
    columns=None,
    time=None,
    where=None,
    pid=None,
    read_header=True,
    strict=False,
):
    """Measures how long operations took: a `Table` with a row for each group, and of more than two stages for each hop.

        simpletrace.latency("trace-1234", "trace-events-all", preset="virtio-blk", by="vdev")

    without_suspects  leave out operations that events may be missing from
    percentiles       by nearest rank, such as [50, 99.9]; 50, 90, 99 and 99.9 if there are none
    by                arguments to group by, `pid` and `event`; "count:log2" groups by powers of two, [] not at all

    All others are those of `pairs`. The columns are those of `groups` in what `simpletrace-rs latency -F json` prints.
    """
    return _operation(
        True,
        trace,
        events,
        operation,
        preset,
        presets,
        on,
        by,
        discipline,
        without_suspects,
        percentiles,
        columns,
        time,
        where,
        pid,
        read_header,
        strict,
    )


def presets(files=()):
    """Returns a list of all presets that `pairs` and `latency` know, with those of files: name, about, operation, on, by, exact, note."""
    return [Preset(*row) for row in _native.presets(_paths("files", files))]


def _operation(
    is_latency, trace, events, operation, preset, presets, on, by, discipline, without_suspects, percentiles, columns, time, where, pid, read_header, strict
):
    traces, events, _, asked = _asked(trace, events, None, False, columns, time, where, pid, None, False, read_header)
    words = {
        "operation": _text("operation", operation),
        "preset": _text("preset", preset),
        "presets": _paths("presets", presets),
        "on": None if on is None else ",".join(_list("on", on)),
        # To the native half, an empty list is what the preset says.
        "by": [word.strip() for text in _list("by", by) for word in text.split(",")] or ([] if by is None else ["none"]),
        "discipline": _text("discipline", discipline),
        "without_suspects": bool(without_suspects),
        "percentiles": _percentiles(percentiles),
    }
    opened = _native.open_operation(traces, events, words, asked, is_latency)
    table, found = opened.whole()
    _tell(traces, found, strict)
    return table


def _asked(trace, events, event, long, columns, time, where, pid, limit, wall, read_header):
    """The files, the event if it is one with a table of its own, and all else for the native half."""
    if isinstance(event, str) and "*" in event and not long:
        raise ValueError(f"event={event!r} is a pattern; event=[{event!r}] reads all events that it matches")
    names, pids = _list("event", event), _numbers("pid", pid, 32)
    limit = _number("limit", limit, 64)
    # To the native half, empty lists are all.
    if (event is not None and not names) or (pid is not None and not pids):
        limit = 0
    asked = {
        "event": names,
        "columns": None if columns is None else _list("columns", columns),
        "time": _text("time", time),
        "filters": _list("where", where),
        "pid": pids,
        "limit": limit,
        "wall": bool(wall),
        "read_header": bool(read_header),
    }
    single = event if isinstance(event, str) and not long else None
    return _paths("trace", trace), _paths("events", events), single, asked


def _text(option, text):
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{option}= takes text, not {text!r:.60}")
    return text


def _list(option, texts):
    """A text or several, as a list."""
    if texts is None:
        return []
    if isinstance(texts, str):
        return [texts]
    try:
        listed = list(texts)
    except TypeError:
        listed = [None]
    if not all(isinstance(text, str) for text in listed):
        raise TypeError(f"{option}= takes text, or a list of texts, not {texts!r:.60}")
    return listed


def _number(option, value, bits):
    """A number of any kind that is whole: numpy's, too."""
    if value is None:
        return None
    try:
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{option}= takes a whole number, not {value!r:.60}") from None
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{option}={number} is not between 0 and {(1 << bits) - 1}")
    return number


def _numbers(option, values, bits):
    if values is None:
        return []
    if hasattr(values, "__index__") and not hasattr(values, "__len__") or isinstance(values, (str, bytes)):
        values = [values]
    try:
        listed = list(values)
    except TypeError:
        raise TypeError(f"{option}= takes a whole number, or a list of them, not {values!r:.60}") from None
    return [_number(option, value if value is not None else "None", bits) for value in listed]


def _percentiles(values):
    if values is None:
        return []
    try:
        is_one = isinstance(values, str) or hasattr(values, "__float__") and not hasattr(values, "__len__")
        listed = [values] if is_one else list(values)
    except TypeError:
        listed = [None]
    if not all(isinstance(value, str) or hasattr(value, "__float__") for value in listed):
        raise TypeError(f"percentiles= takes numbers such as [50, 99.9], not {values!r:.60}")
    if not listed or any(isinstance(value, str) and "," in value for value in listed):
        raise ValueError(
            f"percentiles= takes one or more numbers such as [50, 99.9], not {values!r:.60}; columns= leaves columns out"
        )
    return [_plain(value) for value in listed]


def _plain(value):
    """A number in digits, as the native half reads it: 1e-7 is 0.0000001, and 50.0 is 50."""
    text = str(value)
    if isinstance(value, str):
        return text
    if "e-" in text or "e+" in text:
        # Is seldom wanted.
        import decimal

        text = format(decimal.Decimal(text), "f")
    return text[:-2] if text.endswith(".0") else text


def _paths(option, paths):
    if paths is None:
        return []
    if hasattr(paths, "read"):
        raise TypeError("tables are read from files by their paths, not from file objects; a FIFO or /dev/stdin will do")
    try:
        listed = [_os.fsdecode(path) for path in ([paths] if isinstance(paths, (str, bytes, _os.PathLike)) else paths)]
    except TypeError:
        raise TypeError(f"{option}= takes a path, or a list of paths, not {paths!r:.60}") from None
    for path in listed:
        if "\0" in path:
            raise ValueError(f"{option}={path!r} has an embedded null byte, which no path has")
    return listed


def _tell(traces, found, strict):
    """Warns of what was found in a trace, or raises."""
    from . import DamageWarning

    verdict, wrong, gaps, dropped = found
    if strict and verdict != "sound":
        raise ValueError("; ".join(wrong))
    if wrong or gaps:
        most = 3
        told = wrong[:most] + ([f"and {len(wrong) - most} more"] if len(wrong) > most else [])
        if verdict != "sound" and told:
            told[-1] += " (strict=True makes it an error)"
        if gaps:
            known = f"{dropped} {'is' if dropped == 1 else 'are'} known of"
            told.append(f"events are missing in {gaps} {'place' if gaps == 1 else 'places'}, {known}")
        text = "; ".join(told)
        # Mostly it says itself which file it is about.
        about = "" if any(trace in text for trace in traces) else f"{', '.join(traces)}: "
        _warn(f"{about}{text}", DamageWarning)


def _warn(text, category, module=None):
    """Warns of what the first frame outside of this package has done."""
    frame = _sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = module or frame.f_globals.get("__name__", "<unknown>")
    _warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, module, registry)
