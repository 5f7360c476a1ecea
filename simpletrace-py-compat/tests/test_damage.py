"""Damaged traces: one warning and every intact record, or with `strict` an exception as the original's."""

import io
import os
import struct
import unittest
import warnings

import simpletrace
from support import EVENTS, QEMU_SCRIPTS, Case, Trace, run, shared, skip, small
from test_interface import SMALL, Seen

# Of each damaged file: events before the damage and behind it, then what strict=True raises. From the README beside them.
DAMAGED = {
    "a-base": (90, 0, None),
    "b-base": (60, 0, None),
    "cut-type-word": (32, 0, struct.error),
    "cut-event-id": (32, 0, simpletrace.SimpleException),
    "cut-length": (32, 0, simpletrace.SimpleException),
    "cut-pid": (32, 0, simpletrace.SimpleException),
    "cut-u64-arg": (32, 0, struct.error),
    "cut-string-length": (35, 0, struct.error),
    "cut-string-body": (35, 0, struct.error),
    "cut-mapping-type": (0, 0, struct.error),
    "cut-mapping-length": (0, 0, simpletrace.SimpleException),
    "zeros-64k": (90, 0, ValueError),
    "zeros-mid": (32, 58, ValueError),
    "concat-same": (90, 41, KeyError),
    "concat-big-endian": (90, 47, KeyError),
    "length-0": (35, 54, ValueError),
    "length-2g": (35, 54, ValueError),
    # The record that is too long is handed out before that can be seen.
    "length-plus8": (36, 54, ValueError),
    "b-length-0": (30, 29, ValueError),
    "b-length-minus8": (30, 29, struct.error),
    "garbage-insert": (32, 58, ValueError),
    "type-7": (32, 57, ValueError),
    "id-unmapped": (32, 57, KeyError),
    "string-too-long": (35, 54, struct.error),
    # Six are of the event whose name was damaged.
    "mapping-length-2g": (0, 84, ValueError),
    "extra-payload": (90, 0, None),
    "header-only": (0, 0, None),
    "mappings-only": (0, 0, None),
    "be-cut-string": (47, 0, struct.error),
    "v0-cut": (39, 0, simpletrace.SimpleException),
    "v2-cut-string": (67, 0, simpletrace.SimpleException),
    "v3-length-0": (78, 29, ValueError),
    "killed-img": (890, 0, simpletrace.SimpleException),
}
NO_TRACES = {
    "empty": simpletrace.SimpleException,
    "seven-bytes": simpletrace.SimpleException,
    "wrong-magic": ValueError,
    "version-1": ValueError,
    "version-5": ValueError,
}


def events_of(folder, name):
    return {
        "v0": folder / "old" / "v0-1.1-s390x.trace-events",
        "v2": folder / "old" / "v2-1.3-x86_64.trace-events",
        "v3": folder / "old" / "v3-2.5-s390x.trace-events",
        "b-": folder / "qemu-8.2" / "trace-events-all",
        "ki": folder / "qemu-8.2" / "trace-events-all",
    }.get(name[:2], folder / "damaged" / "harness.trace-events")


class Damage(Case):
    def see(self, events, log, **options):
        """The calls, what was raised, and the warnings."""
        seen, raised = Seen(), None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                simpletrace.process(events, log, seen, **options)
            except Exception as error:
                raised = error
        self.assertEqual(seen.seen[-1:] == ["end"], raised is None)
        return [call for call in seen.seen if len(call) == 4], raised, caught

    def test_every_damaged_file(self):
        folder = shared("test_every_damaged_file")
        names = {path.stem for path in (folder / "damaged").glob("*.trace")}
        self.assertEqual(names, {*DAMAGED, *NO_TRACES, "name-unknown"})
        for name, (before, behind, kind) in DAMAGED.items():
            with self.subTest(name=name):
                events, log = events_of(folder, name), folder / "damaged" / f"{name}.trace"
                calls, raised, caught = self.see(events, log)
                self.assertIsNone(raised)
                self.assertEqual(len(calls), before + behind)
                self.assertEqual([warning.category for warning in caught], [simpletrace.DamageWarning] * (kind is not None))
                strict, raised, caught = self.see(events, log, strict=True)
                self.assertEqual((strict, type(raised), caught), (calls[:before], kind or type(None), []))
        for name, kind in NO_TRACES.items():
            for strict in (False, True):
                calls, raised, caught = self.see(events_of(folder, name), folder / "damaged" / f"{name}.trace", strict=strict)
                self.assertEqual((calls, type(raised), caught), ([], kind, []), name)
                self.assertIn(f"{name}.trace", str(raised))

    def test_the_warning_says_what_and_where(self):
        log = self.file("log", small()[:-3])
        calls, raised, caught = self.see(io.StringIO(EVENTS), log)
        self.assertEqual((calls, raised), (SMALL[:-1], None))
        self.assertEqual(len(caught), 1)
        self.assertEqual(
            str(caught[0].message),
            f"{log} is damaged, what is intact was read: offset 345: the file ends inside a record, 47 bytes into it "
            "(strict=True makes it an error)",
        )
        self.assertEqual(caught[0].filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(simpletrace.DamageWarning):
                simpletrace.process(io.StringIO(EVENTS), log, Seen())

    def test_declarations_tell_records_from_what_only_looks_so(self):
        record = Trace(header=False).event(1, 2_000, 1).bytes
        trace = Trace().map(1, "ready").bytes + 3 * Trace(header=False).event(1, 1_000, 1).bytes
        # Behind rubbish, what would be a record of another length, with the next real one in it.
        looks_so = struct.pack("<QQQLLQ", 1, 1, 1_500, 24 + 8 + len(record), 7, 1)
        calls, raised, caught = self.see(io.StringIO(EVENTS), io.BytesIO(trace + b"rubbish!" + looks_so + 2 * record + b"rubbish!"))
        self.assertEqual((len(caught), raised), (1, None))
        self.assertEqual([call[2] for call in calls], 3 * [1_000] + 2 * [2_000])

    def test_many_faults_are_one_warning(self):
        trace = Trace().map(1, "ready")
        for index in range(1_000):
            trace.event(1, index, 1).event(77, index)
        calls, raised, caught = self.see(io.StringIO(EVENTS), io.BytesIO(trace.bytes))
        self.assertEqual((len(calls), raised, len(caught)), (1_000, None, 1))
        self.assertRegex(str(caught[0].message), r"event 77 has no name; .*; and 997 more \(strict")

    def test_a_cut_anywhere(self):
        events, whole = self.file("events", EVENTS), small()
        ends = [len(Trace().bytes)]
        for size in range(len(whole) + 1):
            calls, raised, caught = self.see(events, io.BytesIO(whole[:size]))
            self.assertEqual(calls, SMALL[: len(calls)])
            if size < 24:
                self.assertIsInstance(raised, simpletrace.SimpleException)
                continue
            self.assertIsNone(raised)
            if not caught:
                ends.append(size)
            self.assertEqual(len(calls), max(0, len(ends) - 6))
            strict, raised, _ = self.see(events, io.BytesIO(whole[:size]), strict=True)
            self.assertEqual((strict, raised is None), (calls, not caught), size)
            if raised is not None and len(ends) > 5:
                is_header = 8 <= size - ends[-1] < 32
                self.assertIs(type(raised), simpletrace.SimpleException if is_header else struct.error)
        # The header, four names and six records.
        self.assertEqual(len(set(ends)), 11)

    def test_a_cut_anywhere_raises_as_the_original(self):
        if not QEMU_SCRIPTS:
            skip("test_a_cut_anywhere_raises_as_the_original", "QEMU_SCRIPTS is not set, so there is no simpletrace.py")
        words = ["cuts.py", self.file("events", EVENTS), self.file("log", small())]
        ours, theirs = (run(words, original=original)[0].decode().splitlines() for original in (False, True))
        # Inside mappings, which are never cut in practice, the kind may be another.
        mapped = len(Trace().map(0, "open").map(1, "read").map(2, "ready").map(3, "nothing").bytes)
        self.assertEqual(ours[mapped:], theirs[mapped:])
        self.assertEqual(ours[:25], theirs[:25])
        self.assertEqual([line.split()[:2] for line in ours], [line.split()[:2] for line in theirs])

    def test_an_event_that_is_not_declared(self):
        events = "".join(line for line in EVENTS.splitlines(True) if not line.startswith("ready"))
        for strict in (False, True):
            calls, raised, _ = self.see(io.StringIO(events), io.BytesIO(small()), strict=strict)
            self.assertEqual((calls, type(raised)), (SMALL[:2], simpletrace.SimpleException))
            self.assertEqual(
                str(raised),
                "the trace: offset 233: 'ready' event is in the trace but not declared in the events: take the trace-events-all of the "
                "same build",
            )
        calls, raised, caught = self.see(io.StringIO(events), io.BytesIO(small()), only=["nothing"])
        self.assertEqual((calls, raised, caught), ([SMALL[4]], None, []))

    def test_an_event_that_is_badly_declared(self):
        events = EVENTS.replace("ready(bool yes)", "ready(bool")
        calls, raised, _ = self.see(io.StringIO(events), io.BytesIO(small()))
        self.assertEqual((calls, type(raised)), (SMALL[:2], ValueError))
        self.assertRegex(str(raised), r"the events:4:\d+: ")

    def test_a_record_that_is_too_short(self):
        trace = Trace().map(0, "open").map(1, "read")
        trace.event(1, 1, 2).event(1, 2, 3, 4, 5)
        calls, raised, caught = self.see(io.StringIO(EVENTS), io.BytesIO(trace.bytes))
        self.assertEqual((calls, raised, len(caught)), ([("read", (3, 4, 5), 2, 7)], None, 1))
        self.assertRegex(str(caught[0].message), "record of read is too short for its declaration .*; take the trace-events-all of the build")
        calls, raised, _ = self.see(io.StringIO(EVENTS), io.BytesIO(trace.bytes), strict=True)
        self.assertEqual((calls, type(raised)), ([], struct.error))
        self.assertRegex(str(raised), "too short for its declaration; take the trace-events-all of the build that wrote the trace")

    def test_an_event_that_is_not_declared_behind_damage(self):
        """Its name may be damaged, too."""
        trace = Trace().map(0, "nothing").event(9, 1).map(1, "nothinh").event(1, 2)
        for events, name in ((self.file("events", EVENTS), None), (simpletrace.read_events(io.StringIO(EVENTS), "x"), "the list of events")):
            calls, raised, caught = self.see(events, io.BytesIO(trace.bytes))
            self.assertEqual((calls, type(raised), caught), ([], simpletrace.SimpleException, []))
            self.assertEqual(
                str(raised),
                f"the trace: offset 110: 'nothinh' event is in the trace but not declared in {name or events}: take the "
                "trace-events-all of the same build; it is damaged before: offset 51: event 9 has no name",
            )

    def test_where_another_file_begins(self):
        whole = small()
        for order in "<>":
            calls, raised, [caught] = self.see(io.StringIO(EVENTS), io.BytesIO(whole + small(order)))
            self.assertEqual((calls, raised), (2 * SMALL, None))
            self.assertIn(f": offset {len(whole)}: another file begins in it (", str(caught.message))
            calls, raised, _ = self.see(io.StringIO(EVENTS), io.BytesIO(whole + small(order)), strict=True)
            self.assertEqual((calls, type(raised)), (SMALL, KeyError))
            self.assertEqual(raised.args, (f"the trace: offset {len(whole)}: another file begins in it",))

    def test_strict_does_not_say_that_reading_goes_on(self):
        trace = Trace().map(1, "ready").event(1, 1, 1)
        at = len(trace.bytes)
        rest = Trace(header=False).event(1, 2, 1).event(1, 3, 1).bytes
        for rubbish in (b"\x07" * 60, struct.pack("<QQQLL", 1, 1, 2, 0xFFFF_0000, 7)):
            calls, raised, caught = self.see(io.StringIO(EVENTS), io.BytesIO(trace.bytes + rubbish + rest), strict=True)
            self.assertEqual((len(calls), caught), (1, []))
            self.assertRegex(str(raised), f"^the trace: offset {at}: [^;]*$")
            calls, raised, caught = self.see(io.StringIO(EVENTS), io.BytesIO(trace.bytes + rubbish + rest))
            self.assertEqual((len(calls), len(caught)), (3, 1))
            self.assertIn("reading goes on at offset", str(caught[0].message))

    def test_text_that_reaches_beyond_its_record(self):
        """As the original, with what there is of it, and a warning; `strict` takes none."""
        events = "f(int n, const char *s)\ng(const char *s, int n)\n"
        trace = Trace().map(0, "f").map(1, "g").event(0, 1, 7, b"abc")
        at = len(trace.bytes)
        payload = struct.pack("<QL", 7, 100) + b"hello"
        trace.bytes += struct.pack("<QQQLL", 1, 0, 2, 24 + len(payload), 7) + payload
        trace.event(0, 3, 7, b"abc")
        whole = [("f", (7, b"abc"), 1, 7), ("f", (7, b"hello"), 2, 7), ("f", (7, b"abc"), 3, 7)]
        words = f"the trace: offset {at}: record of f has text of a length that reaches beyond it"
        calls, raised, caught = self.see(io.StringIO(events), io.BytesIO(trace.bytes))
        self.assertEqual((calls, raised, len(caught)), (whole, None, 1))
        self.assertIn(words.split(": ", 1)[1], str(caught[0].message))
        calls, raised, caught = self.see(io.StringIO(events), io.BytesIO(trace.bytes), strict=True)
        self.assertEqual((calls, type(raised), str(raised), caught), (whole[:1], ValueError, words, []))

        def records(**options):
            log = io.BytesIO(trace.bytes)
            simpletrace.read_trace_header(log)
            yield from simpletrace.read_trace_records(io.StringIO(events), log, True, **options)

        with self.assertWarnsRegex(simpletrace.DamageWarning, "reaches beyond it"):
            self.assertEqual([tuple(args) for _, _, _, _, *args in records()], [args for _, args, _, _ in whole])
        taken = []
        with self.assertRaisesRegex(ValueError, words):
            for record in records(strict=True):
                taken.append(record[2])
        self.assertEqual(taken, [1])
        # Printed, too.
        out, err, code = run(["-m", "simpletrace", self.file("events", events), self.file("log", trace.bytes)])
        self.assertEqual((out.splitlines()[1], code), (b"f 0.001 pid=7 n=0x7 s=b'hello'", 0))
        self.assertIn(b"reaches beyond it", err)

    def test_records_as_tuples(self):
        for strict in (False, True):
            log = io.BytesIO(small()[:-3])
            simpletrace.read_trace_header(log)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                records = simpletrace.read_trace_records(io.StringIO(EVENTS), log, True, strict=strict)
                self.assertEqual(len([next(records) for _ in range(5)]), 5)
                with self.assertRaises(struct.error if strict else StopIteration):
                    next(records)
            self.assertEqual(len(caught), not strict)

    def test_offsets_count_from_the_beginning_of_the_file(self):
        torn, behind = small()[:-3], "; offsets count from where reading began"
        unnamed = Trace().map(0, "open").event(9, 1, 2).bytes
        before = b"what stands before it"

        def of_pipe(data):
            """A pipe, and all of it is in there."""
            reading, writing = os.pipe()
            with open(writing, "wb") as file:
                file.write(data)
            return open(reading, "rb", buffering=0)

        class OnlyTells:
            def __init__(self, data):
                self.file = io.BytesIO(data)
                self.read, self.tell = self.file.read, self.file.tell

        for kind, moved, ends in (
            (lambda data: open(self.file("log", data), "rb"), len(before), ""),
            (lambda data: io.BytesIO(data), len(before), ""),
            (OnlyTells, len(before), ""),
            (of_pipe, -24, behind),
        ):
            for data, offset, text, raises in (
                (torn, 345, "the file ends inside a record, 47 bytes into it", struct.error),
                (unnamed, 48, "event 9 has no name", KeyError),
            ):
                for strict in (False, True):
                    log = kind(before + data)
                    log.read(len(before))
                    simpletrace.read_trace_header(log)
                    records = simpletrace.read_trace_records(io.StringIO(EVENTS), log, True, strict=strict)
                    where = f"offset {offset + moved}: {text}"
                    if strict:
                        with self.assertRaises(raises) as caught:
                            list(records)
                        name = log.name if isinstance(getattr(log, "name", None), str) else "the trace"
                        self.assertEqual(caught.exception.args, (f"{name}: {where}{ends}",))
                    else:
                        with self.assertWarns(simpletrace.DamageWarning) as caught:
                            list(records)
                        self.assertIn(f"{where} (strict=True makes it an error{ends})", str(caught.warning))
                    getattr(log, "close", int)()
        # A position that cannot be is none.
        for wrong in (-1, 2**64 - 1, "x", None):
            log = OnlyTells(torn)
            log.tell = lambda: wrong
            simpletrace.read_trace_header(log)
            with self.assertWarnsRegex(simpletrace.DamageWarning, f"offset 321: .*{behind}"):
                list(simpletrace.read_trace_records(io.StringIO(EVENTS), log, True))
        # With a header, they count from there for everybody.
        with of_pipe(torn) as log:
            calls, raised, [caught] = self.see(io.StringIO(EVENTS), log)
        self.assertIn(": offset 345: the file ends inside a record, 47 bytes into it (strict=True makes it an error)", str(caught.message))

    def test_printed(self):
        words = ["-m", "simpletrace", self.file("events", EVENTS), self.file("log", small()[:-3])]
        out, err, code = run(words)
        self.assertEqual((out.count(b"\n"), code), (5, 0))
        self.assertIn(b"DamageWarning: ", err)

    def test_headers(self):
        for data, kind in (
            (b"", simpletrace.SimpleException),
            (small()[:23], simpletrace.SimpleException),
            (b"x" * 24, ValueError),
            (Trace(version=1).bytes, ValueError),
            (Trace(">", version=9).bytes, ValueError),
        ):
            with self.assertRaises(kind):
                simpletrace.process(io.StringIO(EVENTS), io.BytesIO(data), Seen())
            with self.assertRaises(kind):
                simpletrace.read_trace_header(io.BytesIO(data))


if __name__ == "__main__":
    unittest.main()
