"""Traces of all versions and both byte orders, written by QEMU's own writers: calls as their authors noted them down."""

import io
import json
import sys
import unittest
import warnings

import simpletrace
import tracetool
from support import EVENTS, HEADER_ID, MAGIC, Case, Trace, shared, small
from test_interface import SMALL, Seen


def of_version_0(order, *records):
    """A file of version 0: seven words and the time."""
    import struct

    rows = [(HEADER_ID, MAGIC, 0), *records]
    return b"".join(struct.pack(order + "8Q", *(row + (0,) * (8 - len(row)))) for row in rows)


class Versions(Case):
    def test_every_old_file(self):
        folder = shared("test_every_old_file") / "old"
        files = sorted(folder.glob("*.trace"))
        self.assertEqual(len(files), 8)
        for trace in files:
            with self.subTest(trace=trace.stem):
                noted = json.loads(trace.with_suffix(".expected.json").read_text())
                expected = [self.noted(record) for record in noted["records"] if "map" not in record]
                events = trace.with_suffix(".trace-events")
                with open(events) as file:
                    declared = tracetool.read_events(file, str(events))
                is_v0 = trace.stem.startswith("v0")
                for given in (events, declared):
                    for log in (trace, io.BytesIO(trace.read_bytes())):
                        self.assertEqual(self.seen(given, log, is_v0), expected)
                with open(trace, "rb") as log:
                    simpletrace.read_trace_header(log)
                    records = simpletrace.read_trace_records(declared, log, True, typed=True)
                    self.assertEqual([(event.name, time) for event, _, time, *_ in records], [call[:2] for call in expected])

    def seen(self, events, log, is_v0):
        seen = Seen()
        simpletrace.process(events, log, seen, typed=True, strict=True)
        calls = []
        for name, args, time, pid in seen.seen[1:-1]:
            # Of text, version 0 has the address.
            calls.append((name, time, pid, args))
        return calls

    def noted(self, record):
        if "dropped" in record:
            return "Dropped_Event", record["ts"], record.get("pid", 0), (record["dropped"],)
        args = tuple(self.text(arg) for arg in record["args"])
        return record["event"], record["ts"], record.get("pid", 0), args

    def text(self, arg):
        return bytes.fromhex(arg["hex"]).decode("utf-8", "backslashreplace") if isinstance(arg, dict) else arg

    def test_both_byte_orders(self):
        from support import small

        for order in "<>":
            seen = Seen()
            simpletrace.process(io.StringIO(EVENTS), io.BytesIO(small(order)), seen)
            self.assertEqual(seen.seen[1:-1], SMALL)

    def test_the_version_of_an_object_that_cannot_be_referred_to_weakly(self):
        class Slots:
            __slots__ = ("file",)

            def read(self, size):
                return self.file.read(size)

        class Unhashable(Slots):
            __slots__ = ("__weakref__",)
            __hash__ = None

        class Equal(Slots):
            __slots__ = ("__weakref__",)
            __eq__ = lambda self, other: True
            __hash__ = lambda self: 1

        def opened(kind, data):
            log = kind()
            log.file = io.BytesIO(data)
            return log

        def read(log):
            records = simpletrace.read_trace_records(io.StringIO(EVENTS), log, True)
            return [(event.name, tuple(args), time, pid) for event, _, time, pid, *args in records]

        own, other = (small(order) for order in ("<>" if sys.byteorder == "little" else "><"))
        log = opened(Slots, own)
        simpletrace.read_trace_header(log)
        self.assertEqual(read(log), SMALL)
        for data, text in (
            (other, "version 4, (big|little)-endian"),
            (Trace(version=3).bytes, "version 3, little-endian"),
            (of_version_0("<"), "version 0, little-endian"),
        ):
            with self.assertRaisesRegex(ValueError, f"{text}, .* Slots; add '__weakref__' to its __slots__, or take process"):
                simpletrace.read_trace_header(opened(Slots, data))
        for kind in (Unhashable, Equal):
            logs = [opened(kind, data) for data in (other, own)]
            for log in logs:
                simpletrace.read_trace_header(log)
            for log in logs:
                self.assertEqual(read(log), SMALL)
        known = len(simpletrace._headers)
        del log
        logs.clear()
        self.assertEqual(len(simpletrace._headers), known - 2)

    def test_version_0(self):
        events = 'a(int x) "%d"\ndisable b(void) ""\nc(const char *s, int y) "%s %d"\n'
        for order in "<>":
            # By its arguments, the third declaration: the disabled one has a number.
            made = of_version_0(order, (2, 10, 0x1000, 2**32 - 5), (0, 20, 2**64 - 1))
            for log in (self.file("v0" + str(ord(order)), made), io.BytesIO(made)):
                seen = Seen()
                simpletrace.process(io.StringIO(events), log, seen, typed=True)
                self.assertEqual(seen.seen[1:-1], [("c", (0x1000, -5), 10, 0), ("a", (-1,), 20, 0)])
                if not isinstance(log, str):
                    log.seek(0)
                seen = Seen()
                simpletrace.process(io.StringIO(events), log, seen)
                self.assertEqual(seen.seen[1:-1], [("c", (0x1000, 2**32 - 5), 10, 0), ("a", (2**64 - 1,), 20, 0)])

    def test_the_numbers_of_version_0_show_behind_damage(self):
        events = 'a(int x) "%d"\ndisable b(void) ""\nc(const char *s, int y) "%s %d"\n'
        made = of_version_0("<", (0, 10, 1), (708_287_135, 11, 2), (0, 12, 3), (2, 13, 0x1000, 4))
        for log in (self.file("v0", made), io.BytesIO(made)):
            seen = Seen()
            with self.assertWarnsRegex(simpletrace.DamageWarning, "offset 128: event 708287135") as caught:
                simpletrace.process(io.StringIO(events), log, seen)
            self.assertNotIn("names may be wrong", str(caught.warning))
            self.assertEqual(seen.seen[1:-1], [("a", (1,), 10, 0), ("a", (3,), 12, 0), ("c", (0x1000, 4), 13, 0)])

    def test_a_damaged_record_of_version_0_changes_no_others(self):
        import struct

        folder = shared("test_a_damaged_record_of_version_0_changes_no_others") / "old"
        data = (folder / "v0-0.14-x86_64.trace").read_bytes()[:12_480]
        events = folder / "v0-0.14-x86_64.trace-events"
        whole = Seen()
        simpletrace.process(events, str(folder / "v0-0.14-x86_64.trace"), whole)
        for offset in (384, 64, 12_416):
            seen, damaged = Seen(), bytearray(data)
            struct.pack_into("<Q", damaged, offset, 708_287_135)
            with self.assertWarns(simpletrace.DamageWarning):
                simpletrace.process(events, io.BytesIO(damaged), seen)
            expected = whole.seen[1 : 1 + 12_480 // 64 - 1]
            del expected[offset // 64 - 1]
            self.assertEqual(seen.seen[1:-1], expected)

    def test_files_of_version_0_one_behind_another(self):
        folder = shared("test_files_of_version_0_one_behind_another") / "old"
        old = (folder / "v0-0.14-x86_64.trace").read_bytes()
        events = folder / "v0-0.14-x86_64.trace-events"
        once, twice = Seen(), Seen()
        simpletrace.process(events, io.BytesIO(old), once)
        with self.assertWarnsRegex(simpletrace.DamageWarning, "another file begins in it \\("):
            simpletrace.process(events, io.BytesIO(old + old), twice)
        self.assertEqual(twice.seen[1:-1], 2 * once.seen[1:-1])
        # Each by its own rule; where both would do, that of the one before.
        events = 'a(int x)\ndisable b(int y)\nc(const char *s, int y)\nd(int x)\n'
        all_of_them, enabled = of_version_0("<", (3, 10, 1), (1, 11, 7)), of_version_0("<", (1, 20, 0x1000, 2))
        either = of_version_0("<", (1, 30, 3))
        calls = {
            all_of_them: [("d", (1,), 10, 0), ("b", (7,), 11, 0)],
            enabled: [("c", (0x1000, 2), 20, 0)],
        }
        for files in ([all_of_them, enabled], [enabled, all_of_them], [all_of_them, either], [either, all_of_them]):
            seen = Seen()
            with self.assertWarns(simpletrace.DamageWarning):
                simpletrace.process(io.StringIO(events), io.BytesIO(b"".join(files)), seen)
            of_either = [("b", (3,), 30, 0)] if files[0] == all_of_them else [("c", (3, 0), 30, 0)]
            self.assertEqual(seen.seen[1:-1], [call for file in files for call in calls.get(file, of_either)])

    def test_a_table_of_version_0_from_a_pipe(self):
        import os
        import threading

        fifo = str(self.folder / "fifo")
        os.mkfifo(fifo)
        events = self.file("e", 'a(int x)\ndisable b(int y)\nc(int z)\n')
        data = of_version_0("<", (0, 10, 1))
        writer = threading.Thread(target=lambda: open(fifo, "wb").write(data))
        writer.start()
        guess = "since a pipe cannot be read twice to find out, so names may be wrong; write it into a file$"
        with self.assertWarnsRegex(simpletrace.DamageWarning, guess):
            self.assertEqual(len(simpletrace.read(fifo, events, event="a")), 1)
        writer.join()

    def test_version_0_from_a_pipe(self):
        """Its numbers show only at the end. They are warned of if they turn out to be others than those that were guessed."""
        from types import SimpleNamespace

        events = 'a(int x)\ndisable b(int y)\nc(const char *s, int y)\nd(int x)\n'
        for data, warns in (
            (of_version_0("<", (0, 10, 1), (3, 10, 1)), True),
            (of_version_0("<", (3, 10, 1)) + of_version_0("<", (0, 10, 1)), True),
            (of_version_0("<", (0, 10, 1), (1, 20, 0x1000, 2)), False),
            (of_version_0("<", (0, 10, 1)), False),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                log = SimpleNamespace(read=io.BytesIO(data).read)
                simpletrace.process(io.StringIO(events), log, Seen())
            told = [str(warning.message) for warning in caught if "names may be wrong" in str(warning.message)]
            self.assertEqual(len(told), warns)
            if warns:
                self.assertRegex(told[0], "seem to count all declarations, .* write it to a file of its own")
        # Nor is a file read twice that begins with another version.
        mixed = Trace().map(0, "a").event(0, 1, 5).bytes + of_version_0("<", (3, 10, 1))
        seen = Seen()
        with self.assertWarnsRegex(simpletrace.DamageWarning, r"event 3 has no name \(.*; the events of a file of version 0 .*names may be wrong"):
            simpletrace.process(io.StringIO(events), io.BytesIO(mixed), seen)
        self.assertEqual(seen.seen[1:-1], [("a", (5,), 1, 7)])

    def test_a_file_of_version_0_that_cannot_be_read_to_its_end(self):
        class Fails(io.BytesIO):
            def read(self, size=-1):
                if self.tell() >= 64 * 3:
                    raise OSError("gone")
                return super().read(64)

        seen = Seen()
        with self.assertRaisesRegex(OSError, "gone"):
            simpletrace.process(io.StringIO("a(int x)"), Fails(of_version_0("<", (0, 1, 1), (0, 2, 2), (0, 3, 3))), seen)
        self.assertEqual(seen.seen[1:], [("a", (1,), 1, 0), ("a", (2,), 2, 0)])

    def test_versions_2_and_3_number_their_events(self):
        events = 'a(int x) "%d"\ndisable b(void) ""\nc(const char *s, int y) "%s %d"\n'
        for version, number in ((2, 1), (3, 2)):
            for order in "<>":
                made = Trace(order, version).event(number, 5, b"text", 1).event(0, 6, 2).bytes
                seen = Seen()
                simpletrace.process(io.StringIO(events), io.BytesIO(made), seen)
                # Version 2 has zeros where the process id is in version 3.
                pid = 0 if version == 2 else 7
                self.assertEqual(seen.seen[1:-1], [("c", (b"text", 1), 5, pid), ("a", (2,), 6, pid)])

    def test_a_second_file_behind_the_first(self):
        first = Trace().map(0, "ready").event(0, 1, 1).bytes
        second = Trace(">").map(0, "nothing").map(1, "ready").event(0, 2).event(1, 3, 1).bytes
        seen = Seen()
        with self.assertWarnsRegex(simpletrace.DamageWarning, "another file"):
            simpletrace.process(io.StringIO(EVENTS), io.BytesIO(first + second), seen)
        self.assertEqual([call[0] for call in seen.seen[1:-1]], ["ready", "nothing", "ready"])

    def test_what_is_passed_over_stays_so_in_a_second_file(self):
        """Also when methods appear: `ready` comes first and is never asked for, `nothing` gets its method from `open`."""
        first = Trace().map(0, "open").map(2, "ready").map(3, "nothing")
        first.event(2, 1, 1).event(3, 2).event(0, 3, b"a", 1).event(3, 4).event(2, 5, 1)
        second = Trace().map(5, "ready").map(6, "nothing").map(7, "open")
        second.event(5, 6, 1).event(6, 7).event(7, 8, b"b", 2).event(5, 9, 0)
        seen = []

        class Grows(simpletrace.Analyzer2):
            def open(self, path, flags, *, timestamp_ns, **others):
                seen.append(timestamp_ns)
                self.nothing = lambda timestamp_ns, **others: seen.append(timestamp_ns)

            def ready(self, *args, **others):
                seen.append("ready")

        # More than are gathered before methods are looked for again, in the first file.
        many = Trace(header=False).event(0, 3, b"a", 1).bytes * 4_096
        log = first.bytes + many + Trace(header=False).event(3, 4).bytes + second.bytes
        with self.assertWarnsRegex(simpletrace.DamageWarning, "another file begins"):
            simpletrace.process(io.StringIO(EVENTS), io.BytesIO(log), Grows(), only=["open", "nothing"])
        self.assertEqual([time for time in seen if time != 3][-3:], [4, 7, 8])
        self.assertNotIn("ready", seen)
        self.assertEqual(seen.count(3), 4_097)

    def test_names_that_come_late_or_again(self):
        trace = Trace().map(5, "ready").event(5, 1, 1).map(5, "nothing").event(5, 2).map(6, "ready").event(6, 3, 0)
        seen = Seen()
        simpletrace.process(io.StringIO(EVENTS), io.BytesIO(trace.bytes), seen)
        self.assertEqual([call[:2] for call in seen.seen[1:-1]], [("ready", (1,)), ("nothing", ()), ("ready", (0,))])

    def test_the_last_of_two_declarations_counts(self):
        seen = Seen()
        trace = Trace().map(0, "a").event(0, 1, 5, 6)
        simpletrace.process(io.StringIO("a(int x)\na(int x, int y)\n"), io.BytesIO(trace.bytes), seen)
        self.assertEqual(seen.seen[1:-1], [("a", (5, 6), 1, 7)])


if __name__ == "__main__":
    unittest.main()
