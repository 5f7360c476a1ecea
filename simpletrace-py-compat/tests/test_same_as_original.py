"""The same analyzers see the same calls and print the same bytes on the original, where QEMU_SCRIPTS names its folder.

Elsewhere, what the original gave is taken from recorded.json. `QEMU_SCRIPTS=... python test_same_as_original.py --record` writes it.
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

import guest
from support import DEMO, EVENTS, HERE, QEMU_SCRIPTS, Case, Trace, run, shared, skip, small

RECORDED = HERE / "recorded.json"
KINDS = ["everything", "old", "handlers", "old-handlers", "list"]
SCRIPTS = sorted((HERE / "scripts").glob("*.py"))


def nasty():
    """Text and times that are hard to print."""
    trace = Trace().map(1, "name")
    times = [step for bit in range(64) for step in (1 << bit, (1 << bit) - 1, 2**64 - 1 - (1 << bit), 999)]
    texts = [b"x" + bytes([byte]) + b"y" for byte in range(256)] + [b"", b"'", b"\"'", b'"', b"\\" * 512]
    for index, time in enumerate(times):
        trace.event(1, time, time, texts[index % len(texts)], pid=time & 0xFFFF_FFFF)
        trace.dropped(time, time)
    return trace.bytes, 'name(uint64_t number, const char *text) ""\n'


def cut_string():
    """A string, the last argument, that reaches beyond its record: given as far as it goes."""
    made = Trace().map(1, "name").event(1, 1_000, 5, b"abcdef").bytes
    longer = made[:-10] + (100).to_bytes(4, "little") + made[-6:]
    return longer + Trace(header=False).event(1, 2_000, 6, b"").bytes, 'name(uint64_t number, const char *text) ""\n'


class Original(Case):
    def compare(self, name, words):
        """Compares with the original, or with what is recorded of it."""
        ours = run(words)[0]
        self.assertEqual(self.of_original(name, words, ours), digest(ours), name)

    def of_original(self, name, words, ours):
        if not QEMU_SCRIPTS:
            return RECORDS[name]
        theirs = run(words, original=True)[0]
        # Not only the digests: so that it can be seen what differs.
        if theirs != ours:
            self.assertEqual(theirs.splitlines()[:5000], ours.splitlines()[:5000], name)
        NEW[name] = digest(theirs)
        return NEW[name]

    def compare_all(self, name, events, trace):
        for kind in KINDS:
            with self.subTest(trace=name, kind=kind):
                self.compare(f"{name} {kind}", [HERE / "watch.py", kind, events, trace])
        with self.subTest(trace=name, kind="printed"):
            ours = run(["-m", "simpletrace", events, trace])[0]
            words = [pathlib.Path(QEMU_SCRIPTS or "") / "simpletrace.py", events, trace]
            self.assertEqual(self.of_original_printed(name, words, ours), digest(ours))

    def of_original_printed(self, name, words, ours):
        if not QEMU_SCRIPTS:
            return RECORDS[f"{name} printed"]
        theirs = run(words)[0]
        if theirs != ours:
            self.assertEqual(theirs.splitlines()[:5000], ours.splitlines()[:5000], name)
        NEW[f"{name} printed"] = digest(theirs)
        return digest(theirs)

    def test_traces_made_here(self):
        made, events = nasty()
        self.compare_all("nasty", self.file("nasty-events", events), self.file("nasty", made))
        made, events = cut_string()
        self.compare_all("cut string", self.file("cut-events", events), self.file("cut", made))
        self.compare_all("small", self.file("small-events", EVENTS), self.file("small", small()))
        self.compare_all("guest", self.file("guest-events", guest.EVENTS), self.file("guest", guest.trace(2_000)))
        self.compare_all("demo", f"{DEMO}-events", DEMO)

    def test_without_a_header(self):
        trace = Trace(header=False).event(2, 10, 1).dropped(20, 4).event(0, 15, b"x", 3).event(3, 40)
        events, log = self.file("events", EVENTS), self.file("log", trace.bytes)
        ours = run(["-m", "simpletrace", "--no-header", events, log])[0]
        words = [pathlib.Path(QEMU_SCRIPTS or "") / "simpletrace.py", "--no-header", events, log]
        self.assertEqual(self.of_original_printed("no header", words, ours), digest(ours))

    def test_real_traces(self):
        folder = shared("test_real_traces")
        for version in ("qemu-8.2", "qemu-10.2"):
            for trace in sorted((folder / version).glob("*.trace")):
                self.compare_all(f"{version}/{trace.stem}", folder / version / "trace-events-all", trace)
        # Of the versions and byte orders that the original reads; the others are in test_versions.py.
        trace = folder / "old" / "v4-8.2-x86_64.trace"
        self.compare_all("v4-8.2-x86_64", f"{trace}-events", trace)
        for name in ("extra-payload", "header-only", "mappings-only", "a-base"):
            self.compare_all(name, folder / "damaged" / "harness.trace-events", folder / "damaged" / f"{name}.trace")

    def test_a_trace_of_a_whole_guest(self):
        folder = shared("test_a_trace_of_a_whole_guest")
        if not shutil.which("zstd"):
            skip("test_a_trace_of_a_whole_guest", "no zstd to decompress it")
        packed = folder / "qemu-8.2" / "vm-virtio-blk.trace.zst"
        trace = self.file("trace", subprocess.run(["zstd", "-dc", packed], check=True, capture_output=True).stdout)
        events = folder / "qemu-8.2" / "trace-events-all"
        self.compare_all("vm-virtio-blk", events, trace)
        self.compare("vm-virtio-blk block_requests", [HERE / "scripts" / "block_requests.py", events, trace])

    def test_published_kinds_of_script(self):
        events, trace = self.file("guest-events", guest.EVENTS), self.file("guest", guest.trace())
        self.assertEqual(len(SCRIPTS), 6)
        for script in SCRIPTS:
            with self.subTest(script=script.stem):
                self.compare(f"script {script.stem}", [script, events, trace])

    def test_the_events_of_a_file(self):
        """`read_events`, as its users see it."""
        words = [HERE / "declared.py", self.file("events", guest.EVENTS + "disable off(int x) \"%d\"\nbare(char *s)\n")]
        self.compare("declared guest", words)
        folder = shared("test_the_events_of_a_file")
        for version in ("qemu-8.2", "qemu-10.2"):
            self.compare(f"declared {version}", [HERE / "declared.py", folder / version / "trace-events-all"])


def digest(output):
    return hashlib.sha256(output).hexdigest()


NEW = {}
RECORDS = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}

if not QEMU_SCRIPTS:
    print("SKIPPED: comparison with simpletrace.py: QEMU_SCRIPTS is not set, so what it once gave is compared with", flush=True)

if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        sys.argv.pop()
        outcome = unittest.main(exit=False).result
        if outcome.wasSuccessful():
            RECORDED.write_text(json.dumps(NEW, indent=1, sort_keys=True) + "\n")
    else:
        unittest.main()
