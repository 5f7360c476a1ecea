"""Does the same with tables over and over, and prints as JSON what is held after each round: repeated.py EVENTS TRACE LONG-TRACE."""

import ctypes
import gc
import json
import os
import sys
import time
import warnings

import simpletrace
from capsule import rows_of, schema_of

ROUNDS, TIMES = 5, 200
# Of those that read megabytes.
TIMES_LONG = 40


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def ways(events, trace, long_trace):
    """All ways to get a table, and to leave one half-way."""

    def of(call, *args, **options):
        return lambda: call(trace, events, *args, **options)

    def raises():
        try:
            simpletrace.read(trace, events, event="opne")
        except ValueError:
            pass

    def capsules():
        table = simpletrace.read(trace, events, event="open")
        rows_of(table), schema_of(table)
        table.__arrow_c_stream__(), table.__arrow_c_schema__()

    stream = of(simpletrace.stream, event="open")
    half = lambda: simpletrace.stream(long_trace, events, event="open")
    return {
        "read": of(simpletrace.read),
        "read, as JSON": of(simpletrace.read, long=True),
        "read, raises": raises,
        "read, capsules taken and dropped": capsules,
        "stream": lambda: list(stream()),
        "stream, never begun": stream,
        "stream, half of it": lambda: next(half()),
        "stream, the capsule taken": lambda: rows_of(stream()),
        "stream, the capsule dropped": lambda: stream().__arrow_c_stream__(),
        "stream, the capsule begun": lambda: rows_of(half(), batches=0),
        "pairs": of(simpletrace.pairs, "open -> read"),
        "latency": of(simpletrace.latency, "open -> read"),
    }


def held():
    """What is resident, allocated in C and Rust (None: this libc does not tell) and in Python, threads, descriptors."""
    # The thread of a stream that was dropped sees so when it has the next batch.
    deadline = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    gc.collect()
    info = mallinfo and mallinfo()
    with open("/proc/self/statm") as file:
        resident_bytes = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    threads, descriptors = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    return resident_bytes, info and info.uordblks + info.hblkhd, sys.getallocatedblocks(), threads, descriptors


mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
if mallinfo:
    mallinfo.restype = Mallinfo
warnings.simplefilter("ignore", simpletrace.DamageWarning)

found = {}
for name, call in ways(*sys.argv[1:]).items():
    times = TIMES_LONG if name in ("stream, half of it", "stream, the capsule begun") else TIMES
    for _ in range(times):
        call()
    found[name] = [held()]
    for _ in range(ROUNDS):
        for _ in range(times):
            call()
        found[name].append(held())
json.dump(found, sys.stdout)
