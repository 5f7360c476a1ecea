"""What scripts may call, and how they are called."""

import array
import bz2
import codecs
import collections
import contextlib
import functools
import gzip
import inspect
import io
import lzma
import os
import pathlib
import re
import struct
import subprocess
import sys
import threading
import types
import unittest
import warnings

import simpletrace
import tracetool
from simpletrace import Analyzer, Analyzer2, process
from support import EVENTS, Case, Trace, many, run, small

ADDRESS = 0xFFFF_8000_0000_1000
SMALL = [
    ("open", (b"/dev/null", 2), 1_000, 7),
    ("read", (ADDRESS, 512, 2**64 - 5), 2_500, 7),
    ("ready", (1,), 3_000, 7),
    ("Dropped_Event", (17,), 3_100, 7),
    ("nothing", (), 2_900, 7),
    ("open", (b"it's\n\xff", 0), 4_000, 7),
]


class Seen(Analyzer2):
    def __init__(self):
        self.seen = []

    def begin(self):
        self.seen.append("begin")

    def end(self):
        self.seen.append("end")

    def catchall(self, *args, event, timestamp_ns, pid, event_id):
        assert event_id == ("dropped" if event.name == "Dropped_Event" else event.name)
        self.seen.append((event.name, args, timestamp_ns, pid))


class Interface(Case):
    def setUp(self):
        super().setUp()
        self.events, self.log = self.file("events", EVENTS), self.file("log", small())

    def see(self, events=None, log=None, *args, **options):
        seen = Seen()
        process(events or self.events, log or self.log, seen, *args, **options)
        self.assertEqual((seen.seen[0], seen.seen[-1]), ("begin", "end"))
        return seen.seen[1:-1]

    def test_names_are_there(self):
        self.assertEqual(simpletrace.__all__, ["Analyzer", "Analyzer2", "process", "run"])
        self.assertEqual(simpletrace.header_event_id, 2**64 - 1)
        self.assertEqual(simpletrace.header_magic, 0xF2B177CB0AA429B4)
        self.assertEqual(simpletrace.dropped_event_id, 2**64 - 2)
        self.assertEqual((simpletrace.record_type_mapping, simpletrace.record_type_event), (0, 1))
        self.assertEqual((simpletrace.log_header_fmt, simpletrace.rec_header_fmt), ("=QQQ", "=QQII"))
        self.assertEqual(simpletrace.rec_header_fmt_len, 24)
        self.assertTrue(issubclass(simpletrace.SimpleException, Exception) and issubclass(Analyzer2, Analyzer))
        self.assertIs(simpletrace.read_events, tracetool.read_events)
        self.assertEqual(list(inspect.signature(process).parameters)[:4], ["events", "log", "analyzer", "read_header"])

    def test_events_as_path_list_or_file(self):
        with open(self.events) as file:
            events = tracetool.read_events(file, self.events)
        self.assertEqual(self.see(), SMALL)
        self.assertEqual(self.see(pathlib.Path(self.events)), SMALL)
        self.assertEqual(self.see(events), SMALL)
        for mode in ("r", "rb"):
            with open(self.events, mode) as file:
                self.assertEqual(self.see(file), SMALL)
        self.assertEqual(self.see(io.StringIO(EVENTS)), SMALL)

    def test_events_of_a_list_are_handed_on(self):
        events = tracetool.read_events(io.StringIO(EVENTS), "name")
        events[0].mine = "kept"
        found = []

        class Own(Analyzer2):
            def open(self, *args, event, **keywords):
                found.append(event)

        process(events, self.log, Own())
        self.assertEqual([event.mine for event in found], ["kept", "kept"])
        self.assertIs(found[0], events[0])

    def test_events_may_be_objects_of_another_class(self):
        plain = types.SimpleNamespace(name="ready", properties=[], args=[("bool", "yes")], fmt="")
        self.assertEqual(self.see([plain], only=["ready"]), SMALL[2:3])

    def test_log_as_path_or_any_file(self):
        packed = self.file("log.gz", gzip.compress(small()))
        self.assertEqual(self.see(log=pathlib.Path(self.log)), SMALL)
        for file in (open(self.log, "rb"), open(self.log, "rb", buffering=0), io.BytesIO(small()), gzip.open(packed)):
            with file:
                self.assertEqual(self.see(log=file), SMALL)
                self.assertEqual(file.read(1), b"")

    def test_an_object_that_can_only_read(self):
        class Reads:
            def __init__(self):
                self.rest = small()

            def read(self, size):
                head, self.rest = self.rest[:7], self.rest[7:]
                return head

        self.assertEqual(self.see(log=Reads()), SMALL)

    def test_what_cannot_be_read_says_why(self):
        with open(self.log, encoding="latin-1") as text, self.assertRaisesRegex(TypeError, "mode 'rb'"):
            self.see(log=text)
        with self.assertRaises(FileNotFoundError) as caught:
            self.see(log=str(self.folder / "none"))
        self.assertEqual(caught.exception.filename, str(self.folder / "none"))
        with self.assertRaises(FileNotFoundError):
            self.see(events=str(self.folder / "none"))
        with self.assertRaises(FileNotFoundError) as caught:
            native = dict(read_header=True, header=None, only=None, limit=None, typed=False, strict=False)
            simpletrace._native.Log(EVENTS, "x", "none/at/all", **native)
        self.assertEqual(str(caught.exception.filename), "none/at/all")
        with self.assertRaises(IsADirectoryError):
            self.see(log=str(self.folder))
        for wrong in (17, None, b"log", [self.log]):
            with self.assertRaisesRegex(TypeError, f"^the trace is a path, .* or a file object that reads bytes, and not {re.escape(repr(wrong))}$"):
                process(self.events, wrong, Seen())

        class Fails:
            def read(self, size):
                raise ConnectionResetError("gone")

        with self.assertRaisesRegex(ConnectionResetError, "gone"):
            self.see(log=Fails())
        with self.assertRaisesRegex(ValueError, "declares no events"):
            self.see(events=self.log)

    def test_bytes_of_any_kind(self):
        for kind in (bytearray, memoryview, lambda read: memoryview(bytearray(read)), lambda read: array.array("B", read)):

            class Reads:
                def __init__(self, data):
                    self.file = io.BytesIO(data)

                def read(self, *size):
                    return kind(self.file.read(*size))

            self.assertEqual(self.see(Reads(EVENTS.encode()), Reads(small())), SMALL)
            log = Reads(small())
            simpletrace.read_trace_header(log)
            self.assertEqual(len(list(simpletrace.read_trace_records(io.StringIO(EVENTS), log, True))), len(SMALL))
            log = Reads(Trace(header=False).map(3, "x").event(5, 6, 7).bytes)
            self.assertEqual(simpletrace.read_header(log, "=Q"), (0,))
            self.assertEqual(simpletrace.get_mapping(log), (3, "x"))
            self.assertEqual(simpletrace.read_header(log, "=Q"), (1,))
            self.assertEqual(simpletrace.read_record(log), (5, 6, 7, struct.pack("=Q", 7)))
        for wrong in ("text", 5):
            with self.assertRaisesRegex(TypeError, "a trace is bytes, and reading it gave .*: open it with mode 'rb'"):
                process(self.events, types.SimpleNamespace(read=lambda size: wrong), Seen())

    def test_stdin(self):
        program = "import sys, simpletrace; simpletrace.process(sys.argv[1], sys.stdin.buffer, simpletrace.Formatter2())"
        out = run(["-c", program, self.events], given=small())[0]
        self.assertEqual(out, run(["-m", "simpletrace", self.events, self.log])[0])

    def test_a_fifo_hands_over_records_as_they_come(self):
        for kind in ("path", "file"):
            fifo = str(self.folder / kind)
            os.mkfifo(fifo)
            ways = iter(range(100))
            arrived = threading.Semaphore(0)

            class Live(Analyzer2):
                seen = []

                def open(self, path, flags, **keywords):
                    self.seen.append(flags)
                    arrived.release()

            def reading():
                if kind == "path":
                    process(self.events, fifo, live)
                else:
                    with open(fifo, "rb") as log:
                        process(self.events, log, live)

            live = Live()
            reader = threading.Thread(target=reading)
            reader.start()
            with open(fifo, "wb", buffering=0) as writer:
                writer.write(Trace().map(0, "open").bytes)
                for flags in ways:
                    writer.write(Trace(header=False).event(0, flags, b"", flags).bytes)
                    # The writer goes on only when the reader has called for all there is.
                    self.assertTrue(arrived.acquire(timeout=60), f"record {flags} of a {kind} did not arrive")
            reader.join()
            self.assertEqual(live.seen, list(range(100)))

    def test_without_a_header(self):
        for order in "<>":
            trace = Trace(order, header=False)
            trace.event(2, 10, 1).event(3, 20).dropped(30, 4)
            expected = [("ready", (1,), 10, 7), ("nothing", (), 20, 7), ("Dropped_Event", (4,), 30, 7)]
            self.assertEqual(self.see(None, io.BytesIO(trace.bytes), False), expected)
            self.assertEqual(self.see(None, io.BytesIO(trace.bytes), read_header=False), expected)
            self.assertEqual(list(simpletrace.read_trace_records(io.StringIO(EVENTS), io.BytesIO(trace.bytes), False))[1][1:], ("nothing", 20, 7))

    def test_without_a_header_and_with_a_mapping_first(self):
        """Its type and its id say nothing of the byte order, only the length of its name does."""
        for order in "<>":
            trace = Trace(order, header=False)
            trace.map(0, "nothing").event(0, 10).event(2, 20, 1).map(50, "ready").event(50, 30, 0)
            expected = [("nothing", (), 10, 7), ("ready", (1,), 20, 7), ("ready", (0,), 30, 7)]
            self.assertEqual(self.see(None, io.BytesIO(trace.bytes), False), expected)
            self.assertEqual(self.see(None, self.file("headless", trace.bytes), False), expected)

    def test_options_may_be_anything_that_is_true_or_false(self):
        for true in (1, "x", [0]):
            self.assertEqual(self.see(None, None, true), SMALL)
        self.assertEqual(self.see(typed=1)[1][1], (ADDRESS, 512, -5))
        self.assertEqual(self.see(typed=0, strict="x"), SMALL)
        self.assertEqual(self.see(strict=None), SMALL)
        headless = Trace(header=False).event(3, 20).bytes
        for false in (0, None, ""):
            self.assertEqual(self.see(None, io.BytesIO(headless), false), [("nothing", (), 20, 7)])

    def test_events_may_be_any_iterable(self):
        with open(self.events) as file:
            declared = tracetool.read_events(file, self.events)
        for events in (
            lambda: tuple(declared),
            lambda: {event.name: event for event in declared}.values(),
            lambda: collections.deque(declared),
            lambda: (event for event in declared),
        ):
            self.assertEqual(self.see(events()), SMALL)
            with open(self.log, "rb") as log:
                simpletrace.read_trace_header(log)
                self.assertEqual(len(list(simpletrace.read_trace_records(events(), log, True))), len(SMALL))
        self.assertEqual(self.see(EVENTS.splitlines(True)), SMALL)
        for wrong in (None, 3, [3], [None], b"events", [b"x"]):
            with self.assertRaisesRegex(TypeError, "events are the path of a trace-events file"):
                process(wrong, self.log, Seen())

    def test_options_that_make_no_sense(self):
        for kind, text, options in (
            (ValueError, "limit=-1 is not between 0 and", {"limit": -1}),
            (TypeError, "limit= takes a whole number, not 'x'", {"limit": "x"}),
            (TypeError, "only= takes text, or a list of texts, not 5", {"only": 5}),
        ):
            with self.assertRaisesRegex(kind, text):
                process(self.events, self.log, Seen(), **options)
            with self.assertRaisesRegex(kind, text), open(self.log, "rb") as log:
                list(simpletrace.read_trace_records(self.events, log, True, **options))
        with open(self.log, "rb") as log:
            simpletrace.read_trace_header(log)
            self.assertEqual(len(list(simpletrace.read_trace_records(self.events, log, True, only="open"))), 2)

    def test_a_read_of_ones_own_is_what_reads(self):
        """Whatever else there is in its class, or in the object it is made around."""

        def mirrored(data):
            return bytes(byte ^ 1 for byte in data)

        class Around:
            def __init__(self, file):
                self.file = file

            def __getattr__(self, name):
                return getattr(self.file, name)

            def read(self, size=-1):
                return mirrored(self.file.read(size))

        class Bytes(io.BytesIO):
            def read(self, size=-1):
                return mirrored(super().read(size))

        class Buffered(io.BufferedReader):
            def read(self, size=-1):
                return mirrored(super().read(size))

        class Whole(io.BytesIO):
            pass

        path, data = self.file("mirrored", mirrored(small())), mirrored(small())
        own = Whole(data)
        own.read = lambda size=-1: mirrored(io.BytesIO.read(own, size))
        expected, whole = Seen(), Seen()
        process(self.events, self.log, expected)
        with open(path, "rb") as opened, Buffered(io.FileIO(path)) as buffered:
            for log in (Around(opened), Around(io.BytesIO(data)), Bytes(data), buffered, own, Whole(small())):
                with self.subTest(log=type(log)):
                    seen = Seen()
                    process(self.events, log, seen)
                    self.assertEqual(seen.seen, expected.seen)
        with codecs.open(self.log, "r", "latin-1") as log, self.assertRaisesRegex(TypeError, "mode 'rb'"):
            process(self.events, log, whole)
        self.assertEqual(whole.seen, [])

    def test_a_compressed_file_says_how(self):
        with self.assertRaisesRegex(ValueError, r"it is compressed: pass gzip.open\(path\)"):
            process(self.events, self.file("log.gz", gzip.compress(small())), Seen())
        with self.assertRaisesRegex(ValueError, r"it is compressed: pass bz2.open\(path\)"):
            process(self.events, self.file("log.bz2", bz2.compress(small())), Seen())
        with self.assertRaisesRegex(ValueError, r"it is compressed: pass lzma.open\(path\)"):
            process(self.events, self.file("log.xz", lzma.compress(small())), Seen())
        with self.assertRaisesRegex(ValueError, "zstd -dc"):
            process(self.events, self.file("log.zst", b"\x28\xb5\x2f\xfd" + bytes(40)), Seen())

    def test_a_file_stands_behind_the_last_record_that_was_handed_over(self):
        trace = Trace().map(2, "ready")
        ends = [len(trace.bytes)]
        for number in range(20_000):
            trace.event(2, number, 1)
            ends.append(len(trace.bytes))
        log = self.file("many", trace.bytes)
        for opened in (open(log, "rb"), open(log, "rb", buffering=0), io.BytesIO(trace.bytes), gzip.open(self.file("z", gzip.compress(trace.bytes)))):
            with opened as file:
                self.see(None, file, limit=3)
                self.assertEqual(file.tell(), ends[3])
                file.seek(0)
                simpletrace.read_trace_header(file)
                records = simpletrace.read_trace_records(self.events, file, True)
                for _ in range(5):
                    next(records)
                records.close()
                self.assertEqual(file.tell(), ends[5])
                # From there on.
                kind, = struct.unpack("<Q", file.read(8))
                self.assertEqual((kind, simpletrace.read_record(file)[1]), (1, 5))
                self.assertEqual(len(list(simpletrace.read_trace_records(self.events, file, False))), 20_000 - 6)
                self.assertEqual(file.tell(), ends[-1])
        # Closed in between, and one that can only be read.
        file = open(log, "rb")
        records = simpletrace.read_trace_records(self.events, file, False)
        file.close()
        records.close()
        self.assertEqual(len(self.see(None, types.SimpleNamespace(read=io.BytesIO(trace.bytes).read), limit=3)), 3)

    def test_analyzer2_gets_the_rest_by_keyword(self):
        seen = []

        class Some(Analyzer2):
            def open(self, path, flags, *, timestamp_ns, **others):
                seen.append((path, flags, timestamp_ns, list(others)))

            def ready(self, yes, event, event_id, timestamp_ns, pid):
                seen.append((yes, event.name, event_id, timestamp_ns, pid))

            @staticmethod
            def nothing(**keywords):
                seen.append(list(keywords))

            def Dropped_Event(self, num_events_dropped, *, event, event_id, **others):
                seen.append((num_events_dropped, event.name, event_id, event.args.names()))

        process(self.events, self.log, Some())
        expected = [
            (b"/dev/null", 2, 1_000, ["event", "event_id", "pid"]),
            (1, "ready", "ready", 3_000, 7),
            (17, "Dropped_Event", "dropped", ["num_events_dropped"]),
            ["event", "event_id", "timestamp_ns", "pid"],
            (b"it's\n\xff", 0, 4_000, ["event", "event_id", "pid"]),
        ]
        self.assertEqual(seen, expected)

    def test_a_callable_that_keeps_its_keywords(self):
        kept = []

        class Keeps:
            def __call__(self, *args, **keywords):
                kept.append(keywords)

        # Written in C, it keeps the very dictionary, for when another thread makes a value of its own.
        class Local(threading.local):
            def __init__(self, *args, timestamp_ns, **keywords):
                self.time = timestamp_ns
                if threading.current_thread() is threading.main_thread():
                    kept.append(self)

        for method in (Keeps(), functools.partial(lambda *args, **keywords: kept.append(keywords), 1)):
            analyzer = Analyzer2()
            analyzer.open = method
            process(self.events, self.log, analyzer)
        self.assertEqual([keywords["timestamp_ns"] for keywords in kept], [1_000, 4_000] * 2)
        kept.clear()
        analyzer.open = Local
        process(self.events, self.log, analyzer)
        times = []
        thread = threading.Thread(target=lambda: times.extend(local.time for local in kept))
        thread.start()
        thread.join()
        self.assertEqual(times, [1_000, 4_000])

    def test_a_method_that_appears_is_called(self):
        class Changes(Analyzer2):
            seen = 0

            def read(self, *args, **keywords):
                if self.seen == 9_999:
                    self.ready = self.later
                self.seen += 1

            def later(self, yes, **keywords):
                self.seen += 1_000_000

        changes = Changes()
        process(self.events, self.file("many", many(20_000, 2)), changes)
        calls, reads = divmod(changes.seen, 1_000_000)
        self.assertEqual(reads, 20_000)
        # All but those of a block.
        self.assertTrue(10_001 - 4_096 <= calls <= 10_001, calls)

    def test_a_method_that_appears_is_found_where_few_records_are_called_for(self):
        """What was called for last is rare, and the records between do not fill a block."""

        class Arms(Analyzer2):
            def __init__(self):
                self.seen, self.first = 0, None

            def open(self, *args, **keywords):
                setattr(self, self.late, self.hit)

            def hit(self, *args, event, timestamp_ns, **keywords):
                if event.name == "ready":
                    self.seen += 1
                    self.first = self.first or timestamp_ns

        trace = Trace().map(0, "open").map(1, "ready").map(2, "read")
        for time in range(1, 12_001):
            trace.event(1, time, 1)
            if time == 10:
                trace.event(0, 10, b"", 1)
        for late in ("ready", "catchall"):
            for log in (self.file("arms", trace.bytes), io.BytesIO(trace.bytes)):
                arms = Arms()
                arms.late = late
                process(self.events, log, arms)
                self.assertEqual(arms.seen, 12_001 - arms.first)
                self.assertLessEqual(arms.first, 10 + 4_096, (late, log))

    def test_a_method_that_is_removed(self):
        class Once(Analyzer2):
            def __init__(self):
                self.ready, self.seen = self.first, []

            def first(self, yes, *, timestamp_ns, **keywords):
                self.seen.append(timestamp_ns)
                del self.ready

        class OnceOrAll(Once):
            def catchall(self, *args, timestamp_ns, **keywords):
                self.seen.append(-timestamp_ns)
                if timestamp_ns == 9_000:
                    self.ready = self.first

        trace = Trace().map(0, "ready")
        for time in range(1, 20_001):
            trace.event(0, time, 1)
        log = self.file("once", trace.bytes)
        once = Once()
        process(self.events, log, once)
        self.assertEqual(once.seen, [1])
        both = OnceOrAll()
        process(self.events, log, both)
        [again] = [time for time in both.seen[1:] if time > 0]
        self.assertEqual(both.seen, [1, *(time if time == again else -time for time in range(2, 20_001))])
        self.assertTrue(9_000 < again <= 9_000 + 4_096, again)

    def test_a_catchall_that_is_removed(self):
        class Few(Analyzer2):
            def __init__(self):
                self.seen, self.catchall = 0, self.all

            def all(self, *args, **keywords):
                self.seen += 1
                if self.seen == 5_000:
                    del self.catchall

            def open(self, *args, **keywords):
                self.catchall = self.all

        trace = Trace().map(0, "ready").map(1, "open")
        few = Few()
        one, arm = Trace(header=False).event(0, 1, 1).bytes, Trace(header=False).event(1, 1, b"", 1).bytes
        process(self.events, self.file("few", trace.bytes + one * 20_000 + arm + one * 10_000), few)
        self.assertTrue(5_000 + 10_000 - 4_096 <= few.seen <= 5_000 + 10_000, few.seen)

    def test_many_kinds_of_events_cost_no_more_than_few(self):
        """Attributes are looked for in proportion to the records."""
        looks = 0

        class Counts(Analyzer2):
            calls = 0

            def catchall(self, *args, **keywords):
                self.calls += 1

        those_of = simpletrace._those_of

        def counted(analyzer, names):
            nonlocal looks
            looks += len(names)
            return those_of(analyzer, names)

        simpletrace._those_of = counted
        self.addCleanup(setattr, simpletrace, "_those_of", those_of)
        kinds = 3_000
        trace = Trace()
        trace.bytes += b"".join(Trace(header=False).map(kind, f"k{kind}").bytes for kind in range(kinds))
        block = b"".join(Trace(header=False).event(kind, 1).bytes for kind in range(kinds))
        trace.bytes += 4 * block
        events = self.file("kinds", "".join(f"k{kind}(void)\n" for kind in range(kinds)))
        for log in (self.file("kinds.trace", trace.bytes), io.BytesIO(trace.bytes)):
            looks, counts = 0, Counts()
            process(events, log, counts)
            self.assertEqual(counts.calls, 4 * kinds)
            self.assertTrue(0 < looks <= 2 * 4 * kinds, looks)

    def test_a_method_that_appears_for_an_event_that_was_not_asked_for(self):
        class Changes(Analyzer2):
            seen = []

            def open(self, *args, **keywords):
                self.read = self.ready = lambda *args, **keywords: self.seen.append(args)

        changes = Changes()
        log = Trace().map(0, "open").map(1, "ready").map(2, "read").map(3, "nothing")
        for _ in range(5_000):
            log.event(3, 1).event(2, 1, 1, 1, 1).event(1, 1, 1)
        # Behind more than a block.
        for _ in range(5_000):
            log.event(0, 1, b"", 1).event(1, 1, 1)
        log.event(2, 1, 1, 2, 3)
        process(self.events, io.BytesIO(log.bytes), changes, only=["open", "read", "nothing"])
        self.assertEqual(changes.seen, [(1, 2, 3)])

    def test_attributes_made_up_as_they_are_asked_for(self):
        seen = []

        class Dynamic(Analyzer2):
            def __getattr__(self, name):
                if name.startswith("re"):
                    return lambda *args, **keywords: seen.append((name, args))
                raise AttributeError(name)

        process(self.events, self.log, Dynamic())
        self.assertEqual(seen, [("read", (ADDRESS, 512, 2**64 - 5)), ("ready", (1,))])

        class Changing(Analyzer2):
            calls = reads = 0

            def read(self, *args, **keywords):
                self.reads += 1

            def called(self, *args, **keywords):
                self.calls += 1

            def __getattr__(self, name):
                if name == "ready" and self.reads % 2 == 1:
                    return self.called
                raise AttributeError(name)

        changing = Changing()
        process(self.events, self.file("many", many(1_000, 2)), changing)
        self.assertEqual((changing.reads, changing.calls), (1_000, 500))

    def test_a_process_event_of_its_own(self):
        seen = []

        class Own(Analyzer2):
            def _process_event(self, rec_args, *, event, event_id, timestamp_ns, pid):
                seen.append((type(rec_args), event_id))
                super()._process_event(rec_args, event=event, event_id=event_id, timestamp_ns=timestamp_ns, pid=pid)

            def ready(self, yes, **keywords):
                seen.append(yes)

        process(self.events, self.log, Own())
        self.assertEqual(seen[:4], [(list, "open"), (list, "read"), (list, "ready"), 1])

        class OldOwn(Analyzer):
            def _process_event(self, rec_args, **keywords):
                super()._process_event(rec_args, **keywords)

            def ready(self, timestamp, pid, yes):
                seen.append((timestamp[0], pid, yes))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process(self.events, self.log, OldOwn())
        self.assertEqual(seen[-1], (3_000, 7, 1))

    def test_analyzer_is_called_by_its_number_of_parameters(self):
        seen = []

        class Old(Analyzer):
            def open(self, path, flags):
                seen.append(("args", path, flags))

            def read(self, timestamp, file, count, ret):
                seen.append(("time", timestamp, timestamp[0], type(timestamp - 1), file))

            def ready(self, timestamp, pid, yes):
                seen.append(("pid", timestamp[0], pid, yes))

            def catchall(self, event, rec):
                seen.append((event.name, rec, type(rec[1])))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            process(self.events, self.log, Old())
        expected = [
            ("args", b"/dev/null", 2),
            ("time", 2_500, 2_500, int, ADDRESS),
            ("pid", 3_000, 7, 1),
            ("Dropped_Event", ("dropped", 3_100, 7, 17), int),
            ("nothing", ("nothing", 2_900, 7), int),
            ("args", b"it's\n\xff", 0),
        ]
        self.assertEqual(seen, expected)
        self.assertEqual([warning.category for warning in caught], [DeprecationWarning] * 5)

    def test_the_time_is_an_int(self):
        class Old(Analyzer):
            def read(self, timestamp, *others):
                raise AssertionError("has no such number of parameters")

            def ready(self, timestamp, yes):
                self.time = timestamp

        old = Old()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process(self.events, self.log, old, only=["ready"])
        self.assertEqual((f"{old.time}", "%d" % old.time, repr(old.time), {3_000: 1}[old.time]), ("3000", "3000", "3000", 1))
        self.assertEqual((old.time[0], list(old.time), old.time * 2), (3_000, [3_000], 6_000))
        with self.assertRaises(IndexError):
            old.time[1]

    def test_with_calls_begin_and_end(self):
        with Seen() as seen:
            seen.seen.append("in")
        self.assertEqual(seen.seen, ["begin", "in", "end"])
        with contextlib.suppress(KeyError), Seen() as seen:
            raise KeyError
        self.assertEqual(seen.seen, ["begin"])

    def test_only(self):
        self.assertEqual(self.see(only=["ready", "Dropped_Event"]), [SMALL[2], SMALL[3]])
        self.assertEqual(self.see(only="nothing"), [SMALL[4]])
        self.assertEqual(self.see(only=[]), [])
        with self.assertRaisesRegex(ValueError, r"declares no 're\*': only= takes names of events, not patterns"):
            self.see(only=["re*"])
        with self.assertRaisesRegex(ValueError, "declares no 'redy': did you mean 'ready'"):
            self.see(only=["redy"])

    def test_limit(self):
        for limit in range(8):
            self.assertEqual(self.see(limit=limit), SMALL[:limit])
        self.assertEqual(self.see(limit=1, only=["open"]), SMALL[:1])

        class Two(Analyzer2):
            count = 0

            def read(self, *args, **keywords):
                self.count += 1

        two = Two()
        process(self.events, self.log, two, limit=1)
        self.assertEqual(two.count, 0, "records without a method count, too")
        process(self.events, self.log, two, limit=2)
        self.assertEqual(two.count, 1)

    def test_limit_does_not_wait_for_more(self):
        reading, writing = os.pipe()
        os.write(writing, small())
        with open(reading, "rb") as log:
            self.assertEqual(self.see(log=log, limit=6), SMALL)
        os.close(writing)

    def test_typed(self):
        expected = ["/dev/null", 2, ADDRESS, 512, -5, True, 17, "it's\n\\xff", 0]
        seen = [value for _, args, _, _ in self.see(typed=True) for value in args]
        self.assertEqual(seen, expected)
        self.assertEqual(list(map(type, seen)), list(map(type, expected)))

    def test_a_bool_that_is_neither_0_nor_1_is_true_and_told_once(self):
        log = Trace().map(2, "ready")
        for value in (0, 2, 1, 2**63):
            log.event(2, 1, value)
        warning = "the trace: values of bool arguments that are neither 0 nor 1: 2; given as True"
        for strict in (False, True):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                seen = [args[0] for _, args, _, _ in self.see(log=io.BytesIO(log.bytes), typed=True, strict=strict)]
            self.assertEqual(list(map(repr, seen)), ["False", "True", "True", "True"])
            self.assertEqual([str(of.message) for of in caught], [warning])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                file = io.BytesIO(log.bytes)
                simpletrace.read_trace_header(file)
                records = list(simpletrace.read_trace_records(io.StringIO(EVENTS), file, True, typed=True, strict=strict))
            self.assertEqual([repr(record[4]) for record in records], ["False", "True", "True", "True"])
            self.assertEqual([str(of.message) for of in caught], [warning])
        with self.assertWarnsRegex(simpletrace.DamageWarning, r"is damaged.* makes it an error\); values of bool .*: 2; given as True$"):
            self.see(log=io.BytesIO(log.bytes + b"x"), typed=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual([args[0] for _, args, _, _ in self.see(log=io.BytesIO(log.bytes))], [0, 2, 1, 2**63])

    def test_read_trace_records(self):
        for log in (open(self.log, "rb"), io.BytesIO(small(">"))):
            with log, open(self.events) as file:
                self.assertIsNone(simpletrace.read_trace_header(log))
                records = list(simpletrace.read_trace_records(tracetool.read_events(file, "x"), log, True))
            told = [(event.name, tuple(args), time, pid) for event, _, time, pid, *args in records]
            self.assertEqual(told, SMALL)
            self.assertEqual([record[1] for record in records][2:5], ["ready", "dropped", "nothing"])

    def test_read_trace_records_does_not_read_ahead_of_a_pipe(self):
        reading, writing = os.pipe()
        with open(reading, "rb") as log, open(writing, "wb", buffering=0) as pipe:
            pipe.write(small())
            simpletrace.read_trace_header(log)
            records = simpletrace.read_trace_records(io.StringIO(EVENTS), log, True)
            self.assertEqual([next(records)[1] for _ in range(6)][-1], "open")
            pipe.write(Trace(header=False).event(3, 5_000).bytes)
            self.assertEqual(next(records)[1:], ("nothing", 5_000, 7))

    def test_pieces(self):
        log = io.BytesIO(small())
        self.assertEqual(simpletrace.read_header(log, simpletrace.log_header_fmt), (2**64 - 1, simpletrace.header_magic, 4))
        log.read(8)
        self.assertEqual(simpletrace.get_mapping(log), (0, "open"))
        with self.assertRaises(simpletrace.SimpleException):
            simpletrace.read_header(io.BytesIO(b"short"), "=Q")
        record = io.BytesIO(Trace(header=False).event(9, 8, 1, pid=3).bytes)
        record.read(8)
        self.assertEqual(simpletrace.read_record(record), (9, 8, 3, (1).to_bytes(8, sys.byteorder)))

    def test_warnings_point_at_the_script(self):
        log = self.file("torn", small()[:-3])
        program = self.file(
            "script.py",
            "import os, sys, warnings, simpletrace\n"
            "warnings.simplefilter('always', simpletrace.DamageWarning)\n"
            "events, log = sys.argv[1:]\n"
            "simpletrace.run(simpletrace.Analyzer2())\n"
            "simpletrace.process(events, log, simpletrace.Analyzer2())\n"
            "class Old(simpletrace.Analyzer): pass\n"
            "simpletrace.run(Old())\n"
            "simpletrace.latency(log, events, 'open -> read')\n"
            "simpletrace.pairs(log, events, 'open -> read')\n"
            "list(simpletrace.stream(log, events, event='read'))\n"
            "simpletrace.read(log, events)\n"
            "file = open(log, 'rb')\n"
            "simpletrace.read_trace_header(file)\n"
            "list(simpletrace.read_trace_records(open(events), file, True))\n",
        )
        for option, old in ((), []), (("-W", "always::DeprecationWarning"), [7] * 5):
            said = run([*option, program, self.events, log])[1].decode()
            lines = lambda kind: [int(line) for line in re.findall(rf"^{re.escape(program)}:(\d+): {kind}: ", said, re.MULTILINE)]
            self.assertEqual(lines("DamageWarning"), [4, 5, 7, 8, 9, 10, 11, 14])
            # Python shows none, as of the original, unless it is asked to.
            self.assertEqual(lines("DeprecationWarning"), old)
            self.assertEqual(said.count("DeprecationWarning: "), len(old))

    def test_run_takes_the_command_line(self):
        program = self.file("prog.py", "import simpletrace\nclass A(simpletrace.Analyzer2):\n    def ready(self, yes, **k): print('ready', yes)\nsimpletrace.run(A())\n")
        self.assertEqual(run([program, self.events, self.log])[0], b"ready 1\n")
        usage = f"usage: {program} [--no-header] <trace-events> <trace-file>"
        for words in ([], [self.events], ["--other", self.events, self.log], ["--no-header", "x", self.events, self.log]):
            out, err, code = run([program, *words], check=False)
            self.assertEqual((out, code), (b"", 1))
            self.assertEqual(err.decode().rstrip().splitlines()[-1], f"simpletrace.SimpleException: {usage}")
        bare = Trace(header=False).event(2, 1, 0).bytes
        self.assertEqual(run([program, "--no-header", self.events, self.file("bare", bare)])[0], b"ready 0\n")

    def test_main(self):
        lines = b"""open 0.000 pid=7 path=b'/dev/null' flags=0x2
read 1.500 pid=7 file=0xffff800000001000 bytes=0x200 ret=0xfffffffffffffffb
ready 0.500 pid=7 yes=0x1
Dropped_Event 0.100 pid=7 num_events_dropped=0x11
nothing -0.200 pid=7\x20
open 1.100 pid=7 path=b"it's\\n\\xff" flags=0x0
"""
        self.assertEqual(run(["-m", "simpletrace", self.events, self.log]), (lines, b"", 0))
        self.assertEqual(run(["-m", "simpletrace", self.events, self.file("be", small(">"))]), (lines, b"", 0))
        out, err, code = run(["-m", "simpletrace", self.events], check=False)
        self.assertEqual((out, code), (b"", 1))
        self.assertRegex(err.decode(), r"\Ausage: .*__main__.py \[--no-header\] <trace-events> <trace-file>\n\n\Z")
        out, err, code = run(["-m", "simpletrace", self.file("few", 'open(const char *path, int flags) ""\n'), self.log], check=False)
        self.assertEqual((out, code), (lines.splitlines(True)[0], 1))
        self.assertRegex(err.decode(), r"\A.*: offset 177: 'read' event is in the trace but not declared.*\n\Z")

    def test_printing_goes_where_stdout_goes(self):
        expected = run(["-m", "simpletrace", self.events, self.log])[0].decode()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            process(self.events, self.log, simpletrace.Formatter2())
        self.assertEqual(out.getvalue(), expected)

        class Mine(simpletrace.Formatter2):
            pass

        with contextlib.redirect_stdout(io.StringIO()) as out:
            process(self.events, self.log, Mine())
        self.assertEqual(out.getvalue(), expected)
        # What is printed before and behind stays before and behind.
        program = "import sys, simpletrace; print('before'); simpletrace.process(*sys.argv[1:], simpletrace.Formatter2()); print('behind')"
        self.assertEqual(run(["-c", program, self.events, self.log])[0].decode(), f"before\n{expected}behind\n")

    def test_nobody_reads_what_is_printed(self):
        log = self.file("many", many(50_000))
        child = subprocess.Popen([sys.executable, "-m", "simpletrace", self.events, log], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual((child.stderr.read(), child.wait()), (b"", 1))
        child.stderr.close()

    def test_tracetool(self):
        from tracetool.backend.simple import is_string

        event = tracetool.Event.build('disable open(const char *path, int flags) "%s 0x%x"\n', 3, "file")
        self.assertEqual((event.name, event.properties, event.fmt, event.lineno, event.filename), ("open", ["disable"], '"%s 0x%x"', 3, "file"))
        self.assertEqual(list(event.args), [("const char *", "path"), ("int", "flags")])
        self.assertEqual((len(event.args), event.args[1], str(event.args)), (2, ("int", "flags"), "const char * path, int flags"))
        self.assertEqual(str(tracetool.Arguments([])), "void")
        copy = event.copy()
        self.assertIs(copy.original, event)
        self.assertIs(event.original, event)
        self.assertEqual(list(tracetool.Arguments.build("void *p, char *s")), [("void *", "p"), ("char *", "s")])
        self.assertEqual(list(tracetool.Arguments([("int", "x"), event.args]))[0], ("int", "x"))
        self.assertEqual([is_string(c_type) for c_type in ("const char *", "char*", "char **", "void *", " char *")], [True, True, False, False, True])
        with self.assertRaisesRegex(ValueError, "(?s)Error at name:2:5: missing '\\)'"):
            tracetool.read_events(io.StringIO('a(int x) ""\nodd(\n'), "name")
        old = tracetool.read_events(io.StringIO("a(hwaddr x)\ntcg b(TCGv t) \"\", \"\"\nvcpu c(void)\n"), "name")
        self.assertEqual([event.name for event in old], ["a", "b_trans", "b_exec", "c"])
        self.assertEqual(old[3].args.names(), ["__cpu"])

    def test_import_in_any_order(self):
        for names in ("tracetool", "tracetool.backend.simple", "simpletrace", "simpletrace._events"):
            run(["-c", f"import {names}; from tracetool import read_events, Event; from simpletrace import process"])

    def test_everything_is_described(self):
        for name, value in vars(simpletrace).items():
            if not name.startswith("_") and callable(value):
                self.assertTrue(value.__doc__, name)
        version = re.search(r'^version = "(.*)"', (pathlib.Path(__file__).parents[2] / "Cargo.toml").read_text(), re.M)
        self.assertTrue(version)


if __name__ == "__main__":
    unittest.main()
