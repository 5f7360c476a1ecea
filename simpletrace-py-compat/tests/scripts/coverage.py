"""Which places of a guest's program were executed, and how often: `with`, and records as tuples."""

import collections
import sys

from simpletrace import read_trace_header, read_trace_records
from tracetool import read_events

places = collections.Counter()
first = {}
with open(sys.argv[1]) as events, open(sys.argv[2], "rb") as log:
    read_trace_header(log)
    for event, name, timestamp, pid, *args in read_trace_records(read_events(events, sys.argv[1]), log, True):
        if name == "exec_tb":
            tb, pc, flags = args
            places[pc] += 1
            first.setdefault(pc, timestamp)
        elif event.name == "Dropped_Event":
            print("incomplete:", args[0], "records are missing")
for pc, count in places.most_common(20):
    print(f"{pc:#018x} {count:>6}, first at {first[pc]}")
print(len(places), "places,", sum(places.values()), "blocks")
