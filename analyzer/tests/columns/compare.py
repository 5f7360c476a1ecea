"""Compares what DuckDB and pyarrow read in files of columns with what `decode -F ndjson` prints.

usage: compare.py PROGRAM FOLDER TRACE EVENTS
"""

import collections
import glob
import json
import os
import subprocess
import sys

import duckdb
import pyarrow.ipc
import pyarrow.parquet

program, folder, trace, events = sys.argv[1:]
U64 = 1 << 64


def run(*words):
    """Runs the program; damage (1) is no failure here."""
    done = subprocess.run([program, *words], capture_output=True)
    assert done.returncode in (0, 1), (words, done.stderr.decode())
    return done.stdout


def rows_of_duckdb(query):
    found = duckdb.sql(query)
    return [dict(zip(found.columns, row)) for row in found.fetchall()]


def text(value):
    """A JSON string, as a column of text has it."""
    if isinstance(value, dict):
        octets = bytes.fromhex(value["hex"])
        return "".join(chr(o) if o < 0x80 and o != 0x5C else f"\\x{o:02x}" for o in octets)
    return value


def cell(value, column_type):
    """A JSON value, as a column of a type has it."""
    if value is None:
        return None
    if column_type == "VARCHAR":
        # Version 0 has addresses where strings are declared.
        return f"{value:#x}" if isinstance(value, int) else text(value)
    if column_type == "BOOLEAN":
        return bool(value)
    if column_type == "BIGINT":
        # A word that is no number of its type keeps its bits.
        return value - U64 if value >= U64 >> 1 else value
    return int(value)


records = [json.loads(line) for line in run("decode", trace, events, "-F", "ndjson").splitlines()]
by_event = collections.defaultdict(list)
for record in records:
    by_event[record["event"]].append(record)

# The long form: in both formats, through both readers, and as a stream.
long_parquet, long_arrow = os.path.join(folder, "long.parquet"), os.path.join(folder, "long.arrow")
run("decode", trace, events, "-F", "parquet", "-o", long_parquet)
run("decode", trace, events, "-F", "arrow", "-o", long_arrow)
stream = run("decode", trace, events, "-F", "arrow")
long_forms = {
    "DuckDB": rows_of_duckdb(f"select * from read_parquet('{long_parquet}')"),
    "pyarrow, Parquet": pyarrow.parquet.read_table(long_parquet).to_pylist(),
    "pyarrow, Arrow": pyarrow.ipc.open_file(long_arrow).read_all().to_pylist(),
    "pyarrow, stream": pyarrow.ipc.open_stream(stream).read_all().to_pylist(),
}
for reader, rows in long_forms.items():
    assert len(rows) == len(records), (reader, len(rows), len(records))
    for row, record in zip(rows, records):
        row["args"] = json.loads(row["args"])
        left_over = row.pop("left_over")
        if left_over is not None:
            row["left_over"] = {"hex": left_over.hex()}
        assert row == record, (reader, row, record)

# The wide form, of each event that is declared; and the data set.
fleet = os.path.join(folder, "fleet")
run("export", trace, events, "--source", "a", "-o", fleet)
run("export", trace, events, "--source", "b", "-o", fleet)
manifest = json.load(open(os.path.join(fleet, "_manifest", "a.json")))
assert manifest["records"] == sum(len(of) for event, of in by_event.items() if event != "dropped"), manifest["records"]
assert {file["event"]: file["rows"] for file in manifest["files"]} == {event: len(of) for event, of in by_event.items()}
for file in manifest["files"]:
    event, expected = file["event"], by_event[file["event"]]
    path = os.path.join(fleet, file["path"])
    assert os.path.getsize(path) == file["bytes"]
    from_set = duckdb.sql(f"select * from read_parquet('{path}', hive_partitioning=false)")
    assert from_set.columns[:3] == ["ts_ns", "wall_ns", "pid"], from_set.columns
    types = dict(zip(from_set.columns, map(str, from_set.types)))
    rows = [dict(zip(from_set.columns, row)) for row in from_set.fetchall()]
    assert (file["first_ns"], file["last_ns"]) == (min(r["ts_ns"] for r in expected), max(r["ts_ns"] for r in expected))
    assert [(r["ts_ns"], r["pid"]) for r in rows] == [(r["ts_ns"], r["pid"]) for r in expected], event
    args = from_set.columns[3:]
    if args == ["payload"]:
        continue
    sums = collections.Counter()
    names = list(max((r["args"] for r in expected), key=len))
    for row, record in zip(rows, expected):
        # Columns stand in the order of the arguments, and may have names of their own.
        for name, column in zip(names, args):
            want = cell(record["args"].get(name), types[column])
            assert row[column] == want, (event, column, row, record)
            sums[column] += int(want) if isinstance(want, (int, bool)) else len(want or "")
    for column in args:
        of = f'cast("{column}" as hugeint)' if types[column] != "VARCHAR" else f'length("{column}")'
        found = duckdb.sql(f"select count(*), coalesce(sum({of}), 0) from read_parquet('{fleet}/event={event}/*/*.parquet')")
        assert found.fetchall()[0] == (2 * len(expected), 2 * sums[column]), (event, column)
    if event == "dropped":
        continue
    wide_parquet, wide_arrow = os.path.join(folder, "wide.parquet"), os.path.join(folder, "wide.arrow")
    run("decode", trace, events, "-e", event, "-F", "parquet", "-o", wide_parquet)
    run("decode", trace, events, "-e", event, "-F", "arrow", "-o", wide_arrow)
    # There, columns may be called as those of a data set.
    of_set = [list(row.values()) for row in rows]
    for row in of_set:
        assert row.pop(1) is None
    for rows in (rows_of_duckdb(f"select * from read_parquet('{wide_parquet}')"), pyarrow.ipc.open_file(wide_arrow).read_all().to_pylist()):
        assert [list(row.values()) for row in rows] == of_set, event

assert not [path for path in glob.glob(f"{fleet}/**", recursive=True, include_hidden=True) if path.endswith(".part")]
print(len(records))
