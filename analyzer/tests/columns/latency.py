"""Asks DuckDB what docs/SCALE.md asks of a data set, and prints what it finds.

usage: latency.py PROGRAM FOLDER TRACE EVENTS DEMO
"""

import pathlib
import subprocess
import sys

import duckdb

program, folder, trace, events, demo = sys.argv[1:]
fleet = f"{folder}/fleet"
for source, files in (("host1", [trace, events]), ("host2", [demo])):
    subprocess.run([program, "export", *files, "--source", source, "-o", fleet], check=True, capture_output=True)
page = (pathlib.Path(__file__).parents[3] / "docs" / "SCALE.md").read_text()
query = page.split("```sql\n")[1].split("```")[0]
for event in ("thread_pool_submit", "thread_pool_complete"):
    files = f"{fleet}/event={event}/*/*.parquet"
    duckdb.sql(f"create view {event} as select * from read_parquet('{files}', hive_partitioning = true, union_by_name = true)")
found = str(duckdb.sql(query))
print(found)
assert all(line.strip() in page for line in found.splitlines()), "the page shows something else"
