"""What the tests share: where traces are, how they are made, and both implementations."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEMO = ROOT / "fixtures" / "demo" / "disk.trace"
SHARED = pathlib.Path(os.environ.get("SIMPLETRACE_SHARED", ROOT.parent / "shared")) / "traces"
QEMU_SCRIPTS = os.environ.get("QEMU_SCRIPTS")

HEADER_ID, MAGIC, DROPPED = 2**64 - 1, 0xF2B177CB0AA429B4, 2**64 - 2


def skip(name, why):
    """Says loudly that something is not tested."""
    print(f"SKIPPED: {name}: {why}", flush=True)
    raise unittest.SkipTest(why)


def shared(name):
    """Returns the folder of real traces, or skips."""
    if not SHARED.is_dir():
        skip(name, f"no real traces at {SHARED}")
    return SHARED


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="simpletrace-py-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)


class Trace:
    """Writes a trace: version 4 unless said otherwise."""

    def __init__(self, order="<", version=4, header=True):
        self.order, self.version = order, version
        self.bytes = struct.pack(order + "QQQ", HEADER_ID, MAGIC, version) if header else b""

    def map(self, event_id, name):
        name = name.encode()
        self.bytes += struct.pack(self.order + "QQL", 0, event_id, len(name)) + name
        return self

    def event(self, event_id, timestamp_ns, *args, pid=7):
        payload = b""
        for arg in args:
            if isinstance(arg, bytes):
                payload += struct.pack(self.order + "L", len(arg)) + arg
            else:
                payload += struct.pack(self.order + "Q", arg & (2**64 - 1))
        kind = struct.pack(self.order + "Q", 1) if self.version == 4 else b""
        head = struct.pack(self.order + "QQLL", event_id, timestamp_ns, 24 + len(payload), pid)
        self.bytes += kind + head + payload
        return self

    def dropped(self, timestamp_ns, count):
        return self.event(DROPPED, timestamp_ns, count)


EVENTS = """# A comment
open(const char *path, int flags) "%s 0x%x"
read(void *file, uint64_t bytes, int ret) "%p %" PRIu64 " %d"
ready(bool yes) "%d"
nothing(void) ""
"""


def small(order="<"):
    """A trace of EVENTS."""
    trace = Trace(order)
    for event_id, name in enumerate(["open", "read", "ready", "nothing"]):
        trace.map(event_id, name)
    trace.event(0, 1_000, b"/dev/null", 2)
    trace.event(1, 2_500, 0xFFFF_8000_0000_1000, 512, -5)
    trace.event(2, 3_000, 1)
    trace.dropped(3_100, 17)
    trace.event(3, 2_900)
    trace.event(0, 4_000, b"it's\n\xff", 0)
    return trace.bytes


def many(records, every=1):
    """A trace of so many `read`s and, for each, further on `every` - 1 `ready`s."""
    trace = Trace().map(1, "read").map(2, "ready")
    block = Trace(header=False)
    block.event(1, 1_000, 1, 2, 3)
    for _ in range(every - 1):
        block.event(2, 1_001, 1)
    return trace.bytes + block.bytes * records


def run(words, *, original=False, given=None, env=None, check=True, python=sys.executable):
    """Runs a Python program, on the original if that is asked for: its output, what it says, its exit code."""
    environment = dict(os.environ, PYTHONIOENCODING="utf-8", **(env or {}))
    if original:
        environment["PYTHONPATH"] = QEMU_SCRIPTS
    child = subprocess.run([python, *map(str, words)], input=given, capture_output=True, env=environment)
    if check and child.returncode != 0:
        raise AssertionError(f"{words}: exit code {child.returncode}: {child.stderr.decode()}")
    return child.stdout, child.stderr, child.returncode
