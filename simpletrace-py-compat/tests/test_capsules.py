"""Tables as whoever takes their capsules finds them in memory, without any other package: on every Python."""

import json
import unittest
import warnings

import simpletrace
from capsule import rows_of, schema_of
from support import EVENTS, Case, shared, small

TIME_AND_PID = [("ts_ns", b"L"), ("pid", b"I")]


class Capsules(Case):
    def setUp(self):
        super().setUp()
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore", simpletrace.DamageWarning)

    def test_of_a_small_trace(self):
        trace, events = self.file("t.trace", small()), self.file("e", EVENTS)
        tables = simpletrace.read(trace, events)
        read = TIME_AND_PID + [("file", b"L"), ("bytes", b"L"), ("ret", b"l")]
        self.assertEqual(schema_of(tables["read"]), read)
        self.assertEqual(rows_of(tables["read"]), (read, [(2_500, 7, 0xFFFF_8000_0000_1000, 512, -5)]))
        self.assertEqual(rows_of(tables["ready"]), (TIME_AND_PID + [("yes", b"b")], [(3_000, 7, True)]))
        self.assertEqual(rows_of(tables["open"])[1], [(1_000, 7, "/dev/null", 2), (4_000, 7, "it's\n\\xff", 0)])
        # As often as one likes, and no row twice.
        self.assertEqual(rows_of(tables["nothing"]), rows_of(tables["nothing"]))
        wall = simpletrace.read(trace, events, event="nothing", wall=True, columns=["wall_ns"])
        self.assertEqual([row[wall.column_names.index("wall_ns")] for row in rows_of(wall)[1]], [None])

    def test_of_real_traces_every_value(self):
        folder = shared("test_of_real_traces_every_value") / "old"
        for name in ("v4-8.2-x86_64", "v4-8.2-s390x"):
            expected = {}
            for record in json.loads((folder / f"{name}.expected.json").read_text())["records"]:
                if "event" in record:
                    row = record["ts"], record["pid"], *map(self.as_text, record["args"])
                    expected.setdefault(record["event"], []).append(row)
                elif "dropped" in record:
                    expected.setdefault("dropped", []).append((record["ts"], record["pid"], record["dropped"]))
            self.assertEqual(len(expected), 15)
            files = folder / f"{name}.trace", folder / f"{name}.trace-events"
            for event, table in simpletrace.read(*files).items():
                columns, rows = rows_of(table)
                self.assertEqual(rows, expected[event], event)
                self.assertEqual(schema_of(table), columns)
                self.assertEqual((len(table), table.column_names), (len(rows), [column for column, _ in columns]))
                if event != "dropped":
                    self.assertEqual(rows_of(simpletrace.stream(*files, event=event)), (columns, rows))
                expected.pop(event)
            self.assertEqual(expected, {})

    def as_text(self, value):
        if not isinstance(value, dict):
            return value
        return "".join(chr(byte) if byte < 0x80 and byte != 0x5C else f"\\x{byte:02x}" for byte in bytes.fromhex(value["hex"]))

    def test_of_a_real_trace_how_long_operations_took(self):
        folder = shared("test_of_a_real_trace_how_long_operations_took") / "qemu-8.2"
        files = folder / "img-convert.trace", folder / "trace-events-all"
        columns, rows = rows_of(simpletrace.pairs(*files, preset="thread-pool"))
        self.assertEqual(columns, [*((name, b"L") for name in ("begin_ns", "end_ns", "latency_ns")), ("suspect", b"b"), ("req", b"L")])
        self.assertEqual(len(rows), 34)
        self.assertEqual(rows[0], (1_669_964_513_297, 1_669_966_403_599, 1_890_302, False, 93_932_690_974_160))
        self.assertEqual(sum(row[2] for row in rows), 14_072_219)
        columns, [row] = rows_of(simpletrace.latency(*files, preset="thread-pool"))
        row = dict(zip((name for name, _ in columns), row))
        wanted = {"pairs": 34, "min_ns": 12_398, "p50_ns": 26_770, "max_ns": 8_470_917, "total_ns": 14_072_219, "of_all": 1.0}
        self.assertEqual({name: row[name] for name in wanted}, wanted)

    def test_what_goes_wrong_in_a_stream_is_its_last_error(self):
        torn, events = self.file("torn.trace", small()[:-1]), self.file("e", EVENTS)
        with self.assertRaisesRegex(OSError, "ends inside a record"):
            rows_of(simpletrace.stream(torn, events, event="open", strict=True))


if __name__ == "__main__":
    unittest.main()
