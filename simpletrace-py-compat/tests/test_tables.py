"""Tables: the same values as `process` hands out, and as the command line prints, in whatever library takes them."""

import bz2
import copy
import gzip
import importlib
import json
import lzma
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import simpletrace
from support import DEMO, EVENTS, Case, Trace, many, shared, skip, small

DEMO_EVENTS = DEMO.parent / "disk.trace-events"
PROGRAM = os.environ.get("SIMPLETRACE_RS", "")


def library(name, test):
    try:
        return importlib.import_module(name)
    except ImportError:
        skip(test, f"{name} is not installed")


def quiet(call, *args, **options):
    """Calls, with no word of missing events."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", simpletrace.DamageWarning)
        return call(*args, **options)


def as_column(raw):
    """A string as a table has it: one that is not UTF-8 is written otherwise."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 and byte != 0x5C else f"\\x{byte:02x}" for byte in raw)


class Wide(simpletrace.Analyzer2):
    """The rows that tables should have."""

    def __init__(self):
        self.rows = {}

    def catchall(self, *args, event, timestamp_ns, pid, event_id, **others):
        name = "dropped" if event.name == "Dropped_Event" else event.name
        names = ["count"] if name == "dropped" else event.args.names()
        row = {"ts_ns": timestamp_ns, "pid": pid, **dict(zip(names, args))}
        self.rows.setdefault(name, []).append(row)


def expected(trace, events):
    typed, raw = Wide(), Wide()
    quiet(simpletrace.process, str(events), str(trace), typed, typed=True)
    quiet(simpletrace.process, str(events), str(trace), raw)
    for name, rows in raw.rows.items():
        for row, own in zip(rows, typed.rows[name]):
            own.update((arg, as_column(value)) for arg, value in row.items() if isinstance(value, bytes))
    return typed.rows


class Values(Case):
    def test_of_a_small_trace_every_value(self):
        polars = library("polars", "Values")
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        with self.assertWarnsRegex(simpletrace.DamageWarning, "not UTF-8: 1;.*missing in 1 place, 17 are known of$"):
            table = simpletrace.read(trace, events, event="open")
        self.assertEqual(table.column_names, ["ts_ns", "pid", "path", "flags"])
        self.assertEqual(len(table), 2)
        frame = polars.DataFrame(table)
        self.assertEqual(frame.dtypes, [polars.UInt64, polars.UInt32, polars.String, polars.Int64])
        rows = [(1_000, 7, "/dev/null", 2), (4_000, 7, "it's\n\\xff", 0)]
        self.assertEqual(frame.rows(), rows)
        # Again, and of all at once.
        self.assertEqual(polars.DataFrame(table).rows(), rows)
        tables = quiet(simpletrace.read, trace, events)
        rows = {name: polars.DataFrame(table).rows() for name, table in tables.items()}
        self.assertEqual(rows["read"], [(2_500, 7, 0xFFFF_8000_0000_1000, 512, -5)])
        self.assertEqual(rows["ready"], [(3_000, 7, True)])
        self.assertEqual(rows["nothing"], [(2_900, 7)])
        self.assertEqual(rows["dropped"], [(3_100, 7, 17)])
        self.assertEqual(sorted(rows), ["dropped", "nothing", "open", "read", "ready"])
        long = quiet(simpletrace.read, trace, events, long=True, columns=["event", "args"])
        rows = [(event, json.loads(args)) for event, args in polars.DataFrame(long).rows()]
        self.assertEqual(rows[1], ("read", {"file": 0xFFFF_8000_0000_1000, "bytes": 512, "ret": -5}))
        self.assertEqual(rows[-1], ("open", {"path": {"hex": "697427730aff"}, "flags": 0}))

    def test_every_record_of_real_traces_is_what_process_hands_out(self):
        polars = library("polars", "Values")
        pairs = [(DEMO, DEMO_EVENTS)]
        folder = shared("Values")
        pairs += [(folder / version / "img-convert.trace", folder / version / "trace-events-all") for version in ("qemu-8.2", "qemu-10.2")]
        pairs += [(path, path.with_suffix(".trace-events")) for path in sorted((folder / "old").glob("v[234]*.trace"))]
        self.assertEqual(len(pairs), 8)
        for trace, events in pairs:
            with self.subTest(trace=trace.name):
                tables = quiet(simpletrace.read, trace, events)
                rows = {name: polars.DataFrame(table).to_dicts() for name, table in tables.items()}
                process = expected(trace, events)
                self.assertEqual(sorted(rows), sorted(process))
                for name, of_name in rows.items():
                    for found, wanted in zip(of_name, process[name]):
                        self.assertEqual(found, wanted, name)
                    self.assertEqual(len(of_name), len(process[name]))
                name = max(rows, key=lambda name: len(rows[name]))
                streamed = quiet(polars.DataFrame, simpletrace.stream(trace, events, event=name))
                self.assertEqual(streamed.to_dicts(), rows[name])

    def test_options_choose_records_and_columns(self):
        polars = library("polars", "Values")
        read = expected(DEMO, DEMO_EVENTS)["virtio_blk_handle_read"]
        start = min(row["ts_ns"] for rows in expected(DEMO, DEMO_EVENTS).values() for row in rows)
        of = lambda **options: polars.DataFrame(
            quiet(simpletrace.read, DEMO, event="virtio_blk_handle_read", **options)
        ).to_dicts()
        self.assertEqual(of(), read)
        self.assertEqual(of(where="count >= 32"), [row for row in read if row["count"] >= 32])
        self.assertEqual(of(where=["count >= 32", "first > 0"], limit=2), [row for row in read if row["count"] >= 32][:2])
        self.assertEqual(of(time="-100ms"), [row for row in read if row["ts_ns"] < start + 100_000_000])
        self.assertEqual(of(pid=1), [])
        self.assertEqual(of(columns=["count", "ts_ns"]), [{"ts_ns": row["ts_ns"], "count": row["count"]} for row in read])
        self.assertEqual(of(wall=True, limit=1), [{**read[0], "wall_ns": None}])
        tables = quiet(simpletrace.read, [DEMO], [DEMO_EVENTS], event=["virtio_blk_*", "-virtio_blk_rw_complete"])
        self.assertEqual(sorted(tables), ["virtio_blk_handle_read", "virtio_blk_handle_write", "virtio_blk_req_complete"])

    def test_libraries_take_tables_and_streams(self):
        table = quiet(simpletrace.read, DEMO, event="virtio_notify")
        times = [row["ts_ns"] for row in expected(DEMO, DEMO_EVENTS)["virtio_notify"]]
        self.assertGreater(len(times), 10)
        stream = lambda: simpletrace.stream(DEMO, event="virtio_notify")
        for name, take in [
            ("pyarrow", lambda library, table: library.table(table)["ts_ns"].to_pylist()),
            ("polars", lambda library, table: library.DataFrame(table)["ts_ns"].to_list()),
            ("duckdb", lambda library, table: [row[0] for row in library.sql("select ts_ns from table").fetchall()]),
            ("pandas", lambda library, table: library.DataFrame.from_arrow(table)["ts_ns"].tolist()),
        ]:
            with self.subTest(library=name):
                try:
                    found = importlib.import_module(name)
                except ImportError:
                    print(f"SKIPPED: tables in {name}: it is not installed", flush=True)
                    continue
                if name == "pandas" and not hasattr(found.DataFrame, "from_arrow"):
                    print(f"SKIPPED: tables in {name}: it is too old to take them itself", flush=True)
                    continue
                if name == "duckdb":
                    take = lambda library, own: [row[0] for row in library.sql("select ts_ns from own").fetchall()]
                self.assertEqual(take(found, table), times)
                self.assertEqual(quiet(take, found, stream()), times)


class Operations(Case):
    def test_pairs_are_those_of_the_records(self):
        polars = library("polars", "Operations")
        rows = expected(DEMO, DEMO_EVENTS)
        pairs = polars.DataFrame(
            quiet(simpletrace.pairs, DEMO, DEMO_EVENTS, "thread_pool_submit -> thread_pool_complete", on="req")
        ).to_dicts()
        ends = {(row["ts_ns"], row["req"]) for row in rows["thread_pool_complete"]}
        begins = {(row["ts_ns"], row["req"]) for row in rows["thread_pool_submit"]}
        self.assertGreater(len(pairs), 20)
        for pair in pairs:
            self.assertIn((pair["begin_ns"], pair["req"]), begins)
            self.assertIn((pair["end_ns"], pair["req"]), ends)
            self.assertEqual(pair["latency_ns"], pair["end_ns"] - pair["begin_ns"])
        by = quiet(simpletrace.pairs, DEMO, preset="virtio-blk", by=["count:log2", "pid"])
        self.assertEqual(by.column_names[-2:], ["count_log2", "pid"])
        self.assertEqual(len(by), 32)

    def test_latencies_are_those_of_the_pairs(self):
        polars = library("polars", "Operations")
        table = quiet(simpletrace.latency, DEMO, preset="virtio-blk", by="none", percentiles=[0, 50, "99.9", 100])
        [group] = polars.DataFrame(table).to_dicts()
        latencies = sorted(polars.DataFrame(quiet(simpletrace.pairs, DEMO, preset="virtio-blk"))["latency_ns"].to_list())
        self.assertEqual(len(latencies), 32)
        self.assertEqual(
            {name: group[name] for name in ("pairs", "min_ns", "p0_ns", "p50_ns", "p99_9_ns", "max_ns", "total_ns", "mean_ns")},
            {
                "pairs": 32,
                "min_ns": latencies[0],
                "p0_ns": latencies[0],
                "p50_ns": latencies[15],
                "p99_9_ns": latencies[31],
                "max_ns": latencies[31],
                "total_ns": sum(latencies),
                "mean_ns": sum(latencies) // 32,
            },
        )
        facts = table.facts
        self.assertEqual((facts["begins"], facts["orphans"], facts["replaced"], facts["preset"]["name"]), (34, 1, 2, "virtio-blk"))
        certain = quiet(simpletrace.latency, DEMO, preset="virtio-blk", by="none", without_suspects=True)
        pairs = polars.DataFrame(quiet(simpletrace.pairs, DEMO, preset="virtio-blk"))
        self.assertEqual(polars.DataFrame(certain)["pairs"].sum(), pairs.filter(~polars.col("suspect")).height)
        # What there is nothing of says why.
        nothing = quiet(simpletrace.latency, DEMO, preset="virtio-blk", pid=1)
        self.assertEqual(len(nothing), 0)
        self.assertTrue(any("none of pid=1" in remark for remark in nothing.remarks), nothing.remarks)

    def test_latencies_are_what_the_command_prints(self):
        polars = library("polars", "Operations")
        if not os.access(PROGRAM, os.X_OK):
            skip("Operations", "SIMPLETRACE_RS does not name the program simpletrace-rs")
        for preset in ("virtio-blk", "virtio-blk-hops", "thread-pool"):
            command = [PROGRAM, "latency", str(DEMO), "--preset", preset, "-F", "json"]
            printed = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
            table = quiet(simpletrace.latency, DEMO, preset=preset)
            self.assertEqual(polars.DataFrame(table).to_dicts(), printed.pop("groups"), preset)
            self.assertEqual(table.facts, printed)

    def test_presets_are_listed_and_files_add_some(self):
        mine = self.file("mine.toml", "[mine]\nabout = 'x'\noperation = 'open -> read'\nexact = false\nby = ['event']\n")
        presets = {preset.name: preset for preset in simpletrace.presets(mine)}
        self.assertIn("virtio-blk", presets)
        self.assertEqual(presets["mine"][1:], ("x", "open -> read", None, ["event"], False, ""))
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        table = quiet(simpletrace.pairs, trace, events, preset="mine", presets=mine)
        self.assertEqual(len(table), 1)


class Trouble(Case):
    def test_damage_is_one_warning_or_an_error(self):
        events = self.file("e", EVENTS)
        base = small()
        torn = self.file("torn.trace", base[:-1])
        # The length of the second record.
        at = base.index(b"\xc4\x09\0\0\0\0\0\0") + 8
        damaged = self.file("damaged.trace", base[:at] + b"\xff\xff\xff\x7f" + base[at + 4 :])
        for trace, text, rows in (
            (torn, f"{torn} ends inside a record at offset 345: 49 bytes left over", 1),
            (damaged, f"{damaged}: offset 177: record length", 0),
        ):
            for call in (
                lambda **strict: simpletrace.read(trace, events, event="read", **strict),
                lambda **strict: simpletrace.read(trace, events, event=["read"], **strict)["read"],
            ):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    table = call()
                self.assertEqual([warning.category for warning in caught], [simpletrace.DamageWarning])
                self.assertIn(text, str(caught[0].message))
                self.assertEqual(caught[0].filename, __file__)
                self.assertEqual(len(table), rows)
                with self.assertRaisesRegex(ValueError, text):
                    call(strict=True)
            stream = simpletrace.stream(trace, events, event="read", strict=True)
            with self.assertRaisesRegex(ValueError, text):
                list(stream)
        # Whoever takes it through C raises something of its own.
        pyarrow = library("pyarrow", "Trouble")
        with self.assertRaisesRegex(Exception, "record length"):
            pyarrow.table(simpletrace.stream(damaged, events, event="read", strict=True))

    def test_warnings_say_how_they_become_errors(self):
        events, trace = self.file("e", EVENTS), Trace().map(1, "nothing").dropped(1, 1).event(1, 2).bytes
        said = "events are missing in 1 place, 1 is known of"
        torn = self.file("t.trace", trace + Trace(header=False).event(1, 3).bytes[:10])
        for path, text in (
            (self.file("whole.trace", trace), said),
            (torn, f"ends inside a record at offset 123: 10 bytes left over, as when the traced program was killed (strict=True makes it an error); {said}"),
        ):
            with self.assertWarns(simpletrace.DamageWarning) as caught:
                simpletrace.read(path, events)
            self.assertEqual(str(caught.warning), f"{path}: {text}" if path != torn else f"{path} {text}")
        trace = Trace().map(1, "nothing").dropped(1, 1).event(1, 2).dropped(3, 2).bytes
        with self.assertWarnsRegex(simpletrace.DamageWarning, "missing in 2 places, 3 are known of$"):
            simpletrace.read(self.file("two.trace", trace), events)

    def test_torn_compressed_files_are_told_with_file_and_offset(self):
        events = self.file("e", EVENTS)
        torn = self.file("torn.gz", gzip.compress(many(1000))[:-20])
        text = f"{torn}: the compressed data ends early, at offset "
        with self.assertWarnsRegex(simpletrace.DamageWarning, f"^{text}[0-9]+ of what it holds .strict=True makes it an error.$"):
            tables = simpletrace.read(torn, events)
        self.assertGreater(len(tables["read"]), 0)
        for call in (simpletrace.read, lambda *args, **options: list(simpletrace.stream(*args, event="read", **options))):
            with self.assertRaisesRegex(ValueError, f"^{text}[0-9]+ of what it holds$"):
                call(torn, events, strict=True)

    def test_what_is_not_decompressed_is_told_so(self):
        events = self.file("e", EVENTS)
        self.assertEqual(len(quiet(simpletrace.read, self.file("t.gz", gzip.compress(small())), events, event="open")), 2)
        for name, compress in (("bzip2", bz2.compress), ("xz", lzma.compress)):
            path = self.file(f"t.{name}", compress(small()))
            with self.assertRaisesRegex(ValueError, f"^{path}: not a trace file: .*; it is compressed with {name}: decompress it first"):
                simpletrace.read(path, events)

    def test_a_path_with_a_null_byte_is_shown_as_python_writes_it(self):
        for call, text in (
            (lambda: simpletrace.read("a\0b"), r"trace='a\\x00b' has an embedded null byte"),
            (lambda: simpletrace.read("a", ["b", b"c\0"]), r"events='c\\x00' has an embedded null byte"),
            (lambda: simpletrace.presets("\0"), r"files='\\x00' has an embedded null byte"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()

    def test_errors_say_what_is_wrong(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        for kind, text, call in (
            (FileNotFoundError, "missing", lambda: simpletrace.read(trace + ".missing", events)),
            (ValueError, "no event is called opne; did you mean open?", lambda: simpletrace.read(trace, events, event="opne")),
            (ValueError, "did you mean flags?", lambda: simpletrace.read(trace, events, event="open", columns="flag")),
            (ValueError, r"event=\['op\*'\]", lambda: simpletrace.read(trace, events, event="op*")),
            (ValueError, "time window '5'", lambda: simpletrace.read(trace, events, time="5")),
            (ValueError, "long=True", lambda: simpletrace.stream(trace, events)),
            (ValueError, "there is no preset x", lambda: simpletrace.latency(trace, events, preset="x")),
            (ValueError, "not a trace", lambda: simpletrace.read(self.file("no.trace", b"\xff" * 30), events)),
            (TypeError, "", lambda: simpletrace.read(5)),
            (TypeError, "not from file objects", lambda: simpletrace.read(sys.stdin)),
        ):
            with self.assertRaisesRegex(kind, text):
                quiet(call)
        stream = simpletrace.stream(trace, events, event="nothing")
        self.assertEqual([len(batch) for batch in quiet(list, stream)], [1])
        with self.assertRaisesRegex(ValueError, "only once"):
            stream.__arrow_c_stream__()
        self.assertEqual(list(stream), [])
        stream = simpletrace.stream(trace, events, event="nothing")
        taken = stream.__arrow_c_stream__()
        for again in (stream.__arrow_c_stream__, lambda: next(stream), lambda: list(stream)):
            with self.assertRaisesRegex(ValueError, "a stream can be taken only once, and was"):
                again()
        del taken

    def test_wrong_types_name_the_option_and_what_it_takes(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        for kind, text, options in (
            (TypeError, "limit= takes a whole number, not 'many'", {"limit": "many"}),
            (TypeError, "limit= takes a whole number, not 1.5", {"limit": 1.5}),
            (ValueError, "limit=-1 is not between 0 and 18446744073709551615", {"limit": -1}),
            (TypeError, "pid= takes a whole number, not '7'", {"pid": "7"}),
            (TypeError, "pid= takes a whole number, not '7'", {"pid": ["7"]}),
            (TypeError, "pid= takes a whole number, or a list of them, not 7.0", {"pid": 7.0}),
            (ValueError, "pid=4294967296 is not between", {"pid": 1 << 32}),
            (TypeError, "time= takes text, not 5", {"time": 5}),
            (TypeError, "where= takes text, or a list of texts, not 5", {"where": 5}),
            (TypeError, "columns= takes text, or a list of texts, not \\[1\\]", {"columns": [1]}),
            (TypeError, "event= takes text, or a list of texts, not 5", {"event": 5}),
        ):
            with self.assertRaisesRegex(kind, text):
                simpletrace.read(trace, events, **options)
        for text, options in (
            ("operation= takes text, not 5", {"operation": 5}),
            ("preset= takes text, not", {"preset": ["x"]}),
            ("on= takes text, or a list of texts, not 5", {"operation": "open -> read", "on": 5}),
            ("percentiles= takes numbers such as", {"operation": "open -> read", "percentiles": [None]}),
            ("presets= takes a path, or a list of paths, not 5", {"presets": 5}),
        ):
            with self.assertRaisesRegex(TypeError, text):
                simpletrace.latency(trace, events, **options)
        with self.assertRaisesRegex(TypeError, "trace= takes a path, or a list of paths, not 5"):
            simpletrace.read(5)

    def test_options_have_the_names_of_their_keywords(self):
        trace = self.file("t.trace", small())
        events = self.file("e", EVENTS + 'again(bool yes, int ret) "%d"\n')
        read = lambda **options: simpletrace.read(trace, events, **options)
        latency = lambda operation="open -> read", **options: simpletrace.latency(trace, events, operation, **options)
        for text, call, options in (
            ("where=, 1:9: a value should stand here, and the filter ends\n  flags ==\n          ^", read, {"where": "flags =="}),
            (
                "where=, 1:10: '\\'' means nothing here\n  event == '--by x -w of --pid '\n           ^\nhelp: strings stand in double quotes",
                read,
                {"where": "event == '--by x -w of --pid '"},
            ),
            (
                "where=, 1:1: no event that is asked for has an argument zzzzzz\n  zzzzzz==1\n  ^^^^^^\n"
                "help: there are bytes, file, flags, path, ret, yes",
                read,
                {"where": "zzzzzz==1"},
            ),
            (
                "where=, 1:1: gaps are no events, and no filter takes them out\n  dropped: x==1\n  ^^^^^^^\nhelp: event=['-dropped'] leaves them out",
                read,
                {"where": "dropped: x==1"},
            ),
            ("event pattern '-' is empty; leave out event= for all events", read, {"event": ["-"]}),
            ("by=vdevv: none of the events has an argument vdevv; there are bytes, file, flags, path, ret", latency, {"by": "vdevv"}),
            ("by=event:log2: the name of an event has no powers of two; by=event", latency, {"by": "event:log2"}),
            ("by=path:log2: path is text, and has no powers of two; by=path", latency, {"by": "path:log2"}),
            ("by= has 4 arguments, and the most is 3", latency, {"by": "a,b,c,d"}),
            ("by= is empty; by=[] groups by nothing", latency, {"by": ""}),
            ("on= has 5 parts, and the most is 4", latency, {"on": "a,b,c,d,e"}),
            ("on=path=ret is text in open and a number in read, and these are never equal", latency, {"on": "path=ret"}),
            ("percentiles= has 50 twice", latency, {"percentiles": [50, 50]}),
            (
                "no operation is given; write 'BEGIN -> END', or take a preset (preset=; simpletrace.presets() lists them)",
                latency,
                {"operation": None},
            ),
            (
                "'open' is one event; write 'BEGIN -> END', or the name of a preset (simpletrace.presets() lists them)",
                latency,
                {"operation": "open"},
            ),
            ("there is no preset x; simpletrace.presets() lists them", latency, {"operation": None, "preset": "x"}),
        ):
            with self.subTest(text=text), self.assertRaises(ValueError) as caught:
                call(**options)
            self.assertEqual(str(caught.exception), text)
        for text, call, options in (
            ("note: 2 records of open, none let through by where=", latency, {"where": ["open: flags == 77", "read: bytes == 1"]}),
            ("note: 2 records of open, none within time=100s-", latency, {"time": "100s-"}),
            ("note: 2 records of open, none of pid=1", latency, {"pid": 1}),
            (
                "note: records of read, ready, nothing have no arguments for on=flags",
                latency,
                {"operation": "* -> open", "on": "flags"},
            ),
        ):
            with self.subTest(text=text):
                self.assertIn(text, quiet(call, **options).remarks)
        # As warnings, too.
        trace = self.file("other.trace", Trace().map(1, "read").map(2, "other").event(1, 2, 3, 4, -5).event(2, 3, 4).bytes)
        events = self.file("e2", EVENTS + 'other(uint32_t ret) "%u"\n')
        with self.assertWarnsRegex(simpletrace.DamageWarning, "left out by where=: ret of other is uint32_t, .* and -5 is not$"):
            self.assertEqual(len(simpletrace.read(trace, events, where="ret == -5")["read"]), 1)

    def test_numbers_of_other_kinds_and_truth(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        numpy = library("numpy", "Trouble")
        read = lambda **options: quiet(simpletrace.read, trace, events, event="open", **options)
        self.assertEqual(len(read(limit=numpy.int64(1), pid=numpy.uint32(7))), 1)
        self.assertEqual(len(read(pid=numpy.array([7, 8]))), 2)
        self.assertEqual(read(wall=1, strict="", read_header="x").column_names[1], "wall_ns")
        operation = "open -> read"
        table = quiet(simpletrace.latency, trace, events, operation, percentiles=numpy.array([50.0, 99.9]), without_suspects=1)
        self.assertIn("p99_9_ns", table.column_names)

    def test_percentiles_are_numbers_however_they_are_written(self):
        read = lambda percentiles: simpletrace.latency(DEMO, DEMO_EVENTS, preset="virtio-blk", percentiles=percentiles)
        names = lambda percentiles: [name for name in quiet(read, percentiles).column_names if re.fullmatch(r"p[\d_]+_ns", name)]
        self.assertEqual(names([1e-7, 50.0]), ["p0_0000001_ns", "p50_ns"])
        self.assertEqual(names("50"), ["p50_ns"])
        self.assertEqual(names(99.9), ["p99_9_ns"])
        self.assertEqual(names(None), ["p50_ns", "p90_ns", "p99_ns", "p99_9_ns"])
        with self.assertRaisesRegex(ValueError, "'True' is not a percentile"):
            read([True])
        for wrong in ("1,50", ["1,50"], [], ()):
            with self.assertRaisesRegex(ValueError, rf"percentiles= takes one or more numbers such as \[50, 99.9\], not {re.escape(repr(wrong))}"):
                read(wrong)

    def test_an_empty_list_is_none(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        self.assertEqual(quiet(simpletrace.read, trace, events, event=[]), {})
        self.assertEqual(quiet(simpletrace.read, trace, events, pid=[]), {})
        self.assertEqual(len(quiet(simpletrace.read, trace, events, event="open", pid=())), 0)
        self.assertEqual(len(quiet(simpletrace.read, trace, events, event=[], long=True)), 0)
        self.assertEqual(len(quiet(simpletrace.pairs, trace, events, "open -> read", pid=[])), 0)
        self.assertEqual(len(quiet(simpletrace.pairs, trace, events, "open -> read", pid=[7])), 1)
        for call in (simpletrace.latency, simpletrace.pairs):
            columns = lambda **options: quiet(call, DEMO, DEMO_EVENTS, preset="virtio-blk", **options).column_names
            self.assertIn("event", columns())
            self.assertNotIn("event", columns(by=[]))
            self.assertEqual(columns(by=()), columns(by="none"))

    def test_without_declarations_a_warning_or_an_error_says_so(self):
        trace = self.file("t.trace", small())
        for call in (
            lambda **strict: simpletrace.read(trace, event="open", **strict),
            lambda **strict: simpletrace.read(trace, **strict)["open"],
            lambda **strict: list(simpletrace.stream(trace, event="open", **strict))[0],
        ):
            with self.assertWarnsRegex(simpletrace.DamageWarning, "no trace-events file was given or found"):
                self.assertEqual(call().column_names, ["ts_ns", "pid", "payload"])
            with self.assertRaisesRegex(ValueError, "no trace-events file was given or found"):
                call(strict=True)

    def test_what_cannot_be_pickled_says_what_can(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        table = quiet(simpletrace.read, trace, events, event="open")
        stream = simpletrace.stream(trace, events, event="open")
        for own, text in (
            (table, r"a Table cannot be pickled or copied; pyarrow.table\(table\), polars"),
            (stream, r"a Stream cannot be pickled or copied; hand on the path of the trace, and call stream\(\) there"),
        ):
            for call in (pickle.dumps, copy.copy, copy.deepcopy):
                with self.assertRaisesRegex(TypeError, text):
                    call(own)
            self.assertIn("pyarrow.", type(own).__doc__)
        self.assertEqual(sum(len(batch) for batch in quiet(list, stream)), 2)

    def test_several_traces_come_by_their_first_records_and_not_merged(self):
        pyarrow = library("pyarrow", "Trouble")
        events, one, other = self.file("e", EVENTS), Trace().map(1, "nothing"), Trace().map(1, "nothing")
        for time_ns in (10, 30, 50):
            one.event(1, time_ns)
        for time_ns in (20, 40):
            other.event(1, time_ns)
        one, other = self.file("one", one.bytes), self.file("other", other.bytes)
        for traces in ([one, other], [other, one]):
            table = pyarrow.table(quiet(simpletrace.read, traces, events, event="nothing"))
            self.assertEqual(table["ts_ns"].to_pylist(), [10, 30, 50, 20, 40])

    def test_a_name_that_is_of_no_event_is_an_error_and_a_pattern_a_warning(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        for options in ({}, {"long": True}):
            with self.assertRaisesRegex(ValueError, "no event is called opne; did you mean open?"):
                simpletrace.read(trace, events, event=["opne", "ready"], **options)
            with self.assertWarnsRegex(simpletrace.DamageWarning, r"no event is called as in the pattern blk_\*"):
                simpletrace.read(trace, events, event=["blk_*", "ready"], **options)

    def test_errors_of_files_are_those_of_open(self):
        events, missing = self.file("e", EVENTS), str(self.folder / "missing")
        for call in (lambda: simpletrace.read(missing, events), lambda: simpletrace.read(self.file("t.trace", small()), missing)):
            with self.assertRaises(FileNotFoundError) as caught:
                call()
            self.assertEqual(str(caught.exception), f"[Errno 2] No such file or directory: {missing!r}")
            self.assertEqual(str(caught.exception.filename), missing)
        with self.assertRaises(IsADirectoryError) as caught:
            simpletrace.read(str(self.folder), events)
        self.assertEqual(str(caught.exception.filename), str(self.folder))

    def test_a_warning_names_its_file_once(self):
        events = self.file("e", EVENTS)
        damaged = self.file("damaged.trace", small() + b"\xff" * 100)
        for trace in (damaged, self.file("torn.trace", small()[:-1])):
            with self.assertWarns(simpletrace.DamageWarning) as caught:
                simpletrace.read(trace, events, event="ready")
            self.assertEqual(str(caught.warning).count(trace), 1, caught.warning)

    def interrupt(self, child):
        """Presses Ctrl-C until the child has ended; it may be anywhere before the waiting at first."""
        self.assertEqual(child.stdout.readline(), b"ready\n")
        deadline = time.monotonic() + 60
        while child.poll() is None:
            if time.monotonic() > deadline:
                child.kill()
                self.fail("Ctrl-C does not end it")
            child.send_signal(signal.SIGINT)
            try:
                child.wait(1)
            except subprocess.TimeoutExpired:
                continue
        self.assertIn(b"KeyboardInterrupt", child.stderr.read())

    def test_ctrl_c_ends_the_waiting_for_a_pipe(self):
        events, fifo = self.file("e", EVENTS), str(self.folder / "fifo")
        os.mkfifo(fifo)
        for call in ("read(*sys.argv[1:], event='open')", "read(*sys.argv[1:])", "pairs(*sys.argv[1:], 'open -> read')"):
            for has_writer in (False, True):
                with self.subTest(call=call, has_writer=has_writer):
                    script = f"import sys, simpletrace\nprint('ready', flush=True)\nsimpletrace.{call}\n"
                    child = subprocess.Popen(
                        [sys.executable, "-c", script, fifo, events], stdout=subprocess.PIPE, stderr=subprocess.PIPE
                    )
                    with child, open(fifo, "wb", buffering=0) if has_writer else open(os.devnull, "wb") as writer:
                        # More than is looked at to see what it is, and no end.
                        writer.write(small())
                        self.interrupt(child)

    def test_ctrl_c_ends_what_another_library_takes_of_a_pipe(self):
        """It raises something of its own, and the next line KeyboardInterrupt. DuckDB has to take it in the main thread."""
        events = self.file("e", EVENTS)
        take = {
            "pyarrow": "library.table(stream)",
            "polars": "library.DataFrame(stream)",
            "duckdb": "library.sql('set threads = 1'); library.sql('select count(*) from stream').fetchall()",
        }
        for name, call in take.items():
            with self.subTest(library=name):
                try:
                    importlib.import_module(name)
                except ImportError:
                    print(f"SKIPPED: Ctrl-C in {name}: it is not installed", flush=True)
                    continue
                fifo = str(self.folder / name)
                os.mkfifo(fifo)
                script = (
                    f"import sys, simpletrace, {name} as library\n"
                    "stream = simpletrace.stream(*sys.argv[1:], event='open')\n"
                    "print('ready', flush=True)\n"
                    f"try: {call}\n"
                    "except Exception as error:\n"
                    "    print(error, file=sys.stderr)\n"
                    "    print('goes on')\n"
                )
                child = subprocess.Popen(
                    [sys.executable, "-c", script, fifo, events], stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
                with child, open(fifo, "wb", buffering=0) as writer:
                    writer.write(small())
                    self.interrupt(child)
                    self.assertNotIn(b"goes on", child.stdout.read())

    def test_other_threads_run_meanwhile(self):
        trace, events = self.file("many.trace", many(300_000)), self.file("e", EVENTS)
        lengths, count = [], [0]
        done = threading.Event()

        def work():
            for _ in range(3):
                lengths.append(len(simpletrace.read(trace, events, event="read")))
            done.set()

        threads = [threading.Thread(target=work), threading.Thread(target=work)]
        for thread in threads:
            thread.start()
        while not done.is_set():
            count[0] += 1
        for thread in threads:
            thread.join()
        self.assertEqual(lengths, [300_000] * 6)
        self.assertGreater(count[0], 1)

    def test_a_long_trace_comes_in_batches(self):
        trace, events = self.file("many.trace", many(400_000)), self.file("e", EVENTS)
        batches = [len(batch) for batch in simpletrace.stream(trace, events, event="read")]
        self.assertEqual(sum(batches), 400_000)
        self.assertGreater(len(batches), 2)
        # One that is dropped in the middle ends the reading.
        stream = simpletrace.stream(trace, events, event="read")
        self.assertEqual(len(next(stream)), batches[0])
        del stream


if __name__ == "__main__":
    unittest.main()
