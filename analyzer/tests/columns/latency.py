"""Asks DuckDB for latencies in a data set, and prints them as `latency -F json` has them.

usage: latency.py PROGRAM FOLDER TRACE EVENTS
"""

import subprocess
import sys

import duckdb

program, folder, trace, events = sys.argv[1:]
fleet = f"{folder}/fleet"
subprocess.run([program, "export", trace, events, "-o", fleet], check=True, capture_output=True)
# A request's pointer is used again only when it is done, so its nth completion is that of its nth submission.
pairs = duckdb.sql(
    f"""
    with
        begins as (
            select req, ts_ns, row_number() over (partition by source, req order by ts_ns) as nth
            from read_parquet('{fleet}/event=thread_pool_submit/*/*.parquet')
        ),
        ends as (
            select req, ts_ns, row_number() over (partition by source, req order by ts_ns) as nth
            from read_parquet('{fleet}/event=thread_pool_complete/*/*.parquet')
        )
    select ends.ts_ns - begins.ts_ns as latency_ns from begins join ends using (req, nth)
    """
)
quantiles = duckdb.sql(
    "select count(*), quantile_disc(latency_ns, 0.5), quantile_disc(latency_ns, 0.99), quantile_disc(latency_ns, 0.999), "
    "max(latency_ns) from pairs"
)
print(*quantiles.fetchall()[0])
