"""Prints what DuckDB finds in the events `a` of a data set by days: the day, x, and whether the time of day is null."""

import sys

import duckdb

_, _, folder = sys.argv
query = f"""select day, x, wall_ns is null from read_parquet('{folder}/event=a/*/*.parquet', hive_partitioning = true, union_by_name = true)
            order by x"""
for day, x, is_null in duckdb.sql(query).fetchall():
    print(day, x, is_null)
