"""Checks that the rows of a long trace come in their order, whatever row groups they were written in.

usage: row_groups.py PROGRAM FOLDER TRACE EVENTS

The nth event of the trace is at n ns, `even` or `odd`, with n and a text.
"""

import subprocess
import sys

import pyarrow.ipc
import pyarrow.parquet

program, folder, trace, events = sys.argv[1:]


def write(name, *words):
    subprocess.run([program, *words, "-o", f"{folder}/{name}"], check=True, capture_output=True)
    return f"{folder}/{name}"


files = [
    (write("wide.parquet", "decode", trace, events, "-e", "even", "-F", "parquet"), 2),
    (write("long.parquet", "decode", trace, events, "-F", "parquet"), 1),
    (write("wide.arrow", "decode", trace, events, "-e", "even", "-F", "arrow"), 2),
    (write("fleet", "export", trace, events, "--source", "s") + "/event=even/source=s/data.parquet", 2),
]
for path, step in files:
    if path.endswith(".arrow"):
        file = pyarrow.ipc.open_file(path)
        table, groups = file.read_all(), file.num_record_batches
    else:
        file = pyarrow.parquet.ParquetFile(path)
        table, groups = file.read(), file.num_row_groups
        # Readers that look for a time can pass over groups.
        column = file.schema_arrow.names.index("ts_ns")
        spans = [file.metadata.row_group(group).column(column).statistics for group in range(groups)]
        assert all(before.max < behind.min for before, behind in zip(spans, spans[1:])), path
    times = table["ts_ns"].to_pylist()
    assert times == list(range(0, step * len(times), step)), path
    if "n" in table.column_names:
        assert table["n"].to_pylist() == times, path
    print(groups, len(times))
