"""What happens while a trace is read: exceptions, Ctrl-C, threads, and nothing that is left behind."""

import gc
import io
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import threading
import traceback
import tracemalloc
import unittest
import warnings
import weakref

import simpletrace
from simpletrace import Analyzer, Analyzer2, process
from support import EVENTS, HERE, QEMU_SCRIPTS, Case, Trace, many, run, skip, small
from test_interface import SMALL, Seen
from test_versions import of_version_0


class Stop(Exception):
    pass


class Running(Case):
    def setUp(self):
        super().setUp()
        self.events, self.log = self.file("events", EVENTS), self.file("log", small())

    def test_exceptions_arrive_unchanged(self):
        raised = Stop("here", 17)

        class Raises(Analyzer2):
            ended = False

            def read(self, *args, **keywords):
                raise raised

            def ready(self, *args, **keywords):
                raise AssertionError("called after an exception")

            def end(self):
                raise AssertionError("the end after an exception")

        for log in (self.log, io.BytesIO(small())):
            try:
                process(self.events, log, Raises())
            except Stop as error:
                self.assertIs(error, raised)
            self.assertEqual((raised.args, raised.__cause__, raised.__context__), (("here", 17), None, None))
            frames = [frame.name for frame in traceback.extract_tb(raised.__traceback__)]
            self.assertEqual(frames, ["test_exceptions_arrive_unchanged", "process", "read"])
            raised.__traceback__ = None

    def test_exceptions_of_all_kinds(self):
        for kind in (KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit, MemoryError, simpletrace.SimpleException):

            class Raises(Analyzer2):
                def catchall(self, *args, **keywords):
                    raise kind

            with self.assertRaises(kind):
                process(self.events, self.log, Raises())

            class OldRaises(Analyzer):
                def ready(self, timestamp, yes):
                    raise kind

            with warnings.catch_warnings(), self.assertRaises(kind):
                warnings.simplefilter("ignore")
                process(self.events, self.log, OldRaises())

    def test_a_method_with_other_parameters(self):
        class Wrong(Analyzer2):
            def open(self, path):
                pass

        with self.assertRaisesRegex(TypeError, r"open\(\)"):
            process(self.events, self.log, Wrong())

    def test_begin_and_end_may_raise(self):
        for name in ("begin", "end"):
            analyzer = Seen()

            def raises():
                raise Stop

            setattr(analyzer, name, raises)
            with self.assertRaises(Stop):
                process(self.events, self.log, analyzer)
            self.assertEqual(len(analyzer.seen), 0 if name == "begin" else 1 + len(SMALL))

    def test_a_log_fails_half_way(self):
        class Fails(io.RawIOBase):
            rest = small()

            def read(self, size=-1):
                if not self.rest:
                    raise Stop("gone")
                head, self.rest = self.rest[:-1], b""
                return head

        seen = Seen()
        with self.assertRaisesRegex(Stop, "gone"):
            process(self.events, Fails(), seen)
        self.assertEqual(seen.seen[1:], SMALL[:-1])

    def test_ctrl_c_while_it_waits(self):
        """For a FIFO's writer, for its next record, and behind a record that was handed over."""
        for kind in ("open", "first", "second"):
            fifo = str(self.folder / kind)
            os.mkfifo(fifo)
            program = "\n".join(
                [
                    "import signal, sys, simpletrace",
                    "signal.signal(signal.SIGINT, signal.default_int_handler)",
                    "class A(simpletrace.Analyzer2):",
                    "    def ready(self, yes, **k): print('ready', flush=True)",
                    "print('starts', flush=True)",
                    "try: simpletrace.process(sys.argv[1], sys.argv[2], A())",
                    "except KeyboardInterrupt: print('stopped')",
                ]
            )
            child = subprocess.Popen([sys.executable, "-c", program, self.events, fifo], stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "starts\n")
            writer = None
            if kind != "open":
                writer = open(fifo, "wb", buffering=0)
                writer.write(Trace().map(0, "ready").bytes)
            if kind == "second":
                writer.write(Trace(header=False).event(0, 1, 1).bytes)
                self.assertEqual(child.stdout.readline(), "ready\n")
            self.wait_until_it_sleeps(child.pid)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.communicate(timeout=60)[0], "stopped\n")
            if writer:
                writer.close()

    def wait_until_it_sleeps(self, pid):
        """Until the process is in a system call that waits: `S` in /proc, and stays there for some looks."""
        status = pathlib.Path(f"/proc/{pid}/stat")
        if not status.exists():
            skip("test_ctrl_c_while_it_waits", "no /proc")
        asleep = 0
        for _ in range(600_000):
            asleep = asleep + 1 if status.read_text().rpartition(")")[2].split()[0] == "S" else 0
            if asleep > 2_000:
                return
        self.fail("the process does not wait")

    def test_ctrl_c_while_it_works(self):
        """With a method for each record, for none, and printing: the trace has no end."""
        for kind in ("Busy()", "simpletrace.Analyzer2()", "simpletrace.Formatter2()"):
            program = "\n".join(
                [
                    "import os, signal, sys, threading, simpletrace",
                    "signal.signal(signal.SIGINT, signal.default_int_handler)",
                    "sys.path.insert(0, sys.argv[2])",
                    "from support import many",
                    "class Busy(simpletrace.Analyzer2):",
                    "    def read(self, *args, **keywords): pass",
                    "class Endless:",
                    "    head, count = many(0), 0",
                    "    block = many(10_000)[len(head):]",
                    "    def read(self, size):",
                    "        self.count += 1",
                    "        if self.count == 50: os.kill(os.getpid(), signal.SIGINT)",
                    "        if not self.head: self.head = self.block",
                    "        head, self.head = self.head[:size], self.head[size:]",
                    "        return head",
                    f"try: simpletrace.process(sys.argv[1], Endless(), {kind})",
                    "except KeyboardInterrupt: print('stopped', file=sys.stderr)",
                ]
            )
            out, err, code = run(["-c", program, self.events, HERE])
            self.assertEqual((err, code), (b"stopped\n", 0), kind)

    def test_ctrl_c_while_a_file_is_read(self):
        """Nobody is called there: the file is a hole of 16 GiB behind a header. One of version 0 is read twice."""
        size = 1 << 34
        logs = [self.file("hole", small()[:24]), self.file("hole-0", of_version_0("<"))]
        for log in logs:
            os.truncate(log, size)

        class Alarm(Exception):
            pass

        def rings(*args):
            raise Alarm

        def bytes_read():
            with open("/proc/self/io") as file:
                return int(file.readline().split()[1])

        before = signal.signal(signal.SIGALRM, rings)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for log in logs:
            begin = bytes_read()
            with self.assertRaises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                process(self.events, log, Analyzer2())
            # And not when the file was read.
            self.assertLess(bytes_read() - begin, size)

    def test_ctrl_c_while_an_object_is_read_that_is_written_in_c(self):
        """As above, of files that Python has opened: none of its own code is run to read them."""
        log = self.file("hole", small()[:24])
        os.truncate(log, 1 << 34)

        class Alarm(Exception):
            pass

        def rings(*args):
            raise Alarm

        def records(log):
            simpletrace.read_trace_header(log)
            list(simpletrace.read_trace_records(self.events, log, True))

        before = signal.signal(signal.SIGALRM, rings)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for read in (lambda log: process(self.events, log, Analyzer2()), records):
            with open(log, "rb") as file, self.assertRaises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                read(file)
            # And not when the file was read.
            with open(log, "rb", buffering=0) as file:
                with self.assertRaises(Alarm):
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    read(file)
                self.assertLess(file.tell(), 1 << 34)

    def test_a_log_that_refers_to_its_reading_is_collected(self):
        class Reads:
            def __init__(self, content):
                self.read = io.BytesIO(content).read

        class Own:
            def __init__(self, content):
                self.file = io.BytesIO(content)

            def read(self, size):
                return self.file.read(size)

        with open(self.events) as file:
            declared = simpletrace.read_events(file, self.events)
        for kind in (Reads, Own):
            log = kind(small()[24:])
            records = simpletrace.read_trace_records(declared, log, True)
            next(records)
            log.records = records
            gone = weakref.ref(log)
            del log, records
            gc.collect()
            self.assertIsNone(gone(), kind)
        # Of the native half alone, by what reads and by an event.
        for through_event in (False, True):
            log, events = Own(small()), simpletrace.read_events(io.StringIO(EVENTS), "x")
            opened = simpletrace._native.Log(
                events, "x", log, read_header=True, header=None, only=None, limit=None, typed=False, strict=False
            )
            next(opened)
            (events[0] if through_event else log).opened = opened
            gone = weakref.ref(events[0] if through_event else log)
            del log, events, opened
            gc.collect()
            self.assertIsNone(gone())

    def test_stdout_may_be_closed(self):
        command = 'exec "$0" -m simpletrace "$1" "$2" >&-'
        child = subprocess.run(["sh", "-c", command, sys.executable, self.events, self.log], stderr=subprocess.PIPE)
        self.assertEqual((child.returncode, child.stderr), (0, b""))

    def test_threads(self):
        """Several at once, each its own records in its own order; one of them raises."""
        log = self.file("many", many(30_000, 2))
        results = {}

        class Count(Analyzer2):
            def __init__(self, number):
                self.number, self.reads, self.readys = number, 0, 0

            def read(self, *args, **keywords):
                self.reads += 1
                if self.number == 3 and self.reads == 1_000:
                    raise Stop

            def ready(self, *args, **keywords):
                self.readys += 1

        def work(number):
            count = Count(number)
            try:
                process(self.events, log, count)
                results[number] = count.reads, count.readys
            except Stop:
                results[number] = "stopped", count.readys

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {number: ("stopped", 999) if number == 3 else (30_000, 30_000) for number in range(6)})

    def test_others_run_while_a_pipe_is_waited_for(self):
        reading, writing = os.pipe()
        done = threading.Event()

        class Tells(Analyzer2):
            def ready(self, *args, **keywords):
                done.set()

        def waits():
            with open(reading, "rb") as log:
                process(self.events, log, Tells())

        thread = threading.Thread(target=waits)
        thread.start()
        # With the GIL held there, this thread would not go on.
        os.write(writing, Trace().map(0, "ready").event(0, 1, 1).bytes)
        self.assertTrue(done.wait(60))
        self.assertTrue(thread.is_alive())
        os.close(writing)
        thread.join()

    def test_a_call_may_process_another_trace(self):
        class Outer(Seen):
            def ready(self, *args, **keywords):
                inner = Seen()
                process(test.events, test.log, inner)
                self.seen.append(len(inner.seen))

        test, outer = self, Outer()
        process(self.events, self.log, outer)
        self.assertEqual(outer.seen[3], 8)

    def test_nothing_leaks(self):
        class Keeps(Analyzer2):
            def open(self, *args, **keywords):
                self.last = args, keywords

            def catchall(self, *args, **keywords):
                pass

        class Raises(Analyzer2):
            def ready(self, *args, **keywords):
                raise Stop

        class Old(Analyzer):
            def read(self, timestamp, file, count, ret):
                self.last = timestamp

        with open(self.events) as file:
            declared = simpletrace.read_events(file, self.events)

        def once():
            process(self.events, self.log, Keeps())
            process(declared, self.log, Keeps(), typed=True)
            process(self.events, self.log, Old())
            process(self.events, self.log, simpletrace.Formatter2())
            for log in (self.log, io.BytesIO(small())):
                try:
                    process(self.events, log, Raises())
                except Stop:
                    pass
            with open(self.log, "rb") as log:
                simpletrace.read_trace_header(log)
                assert len(list(simpletrace.read_trace_records(declared, log, True))) == 6
            with open(self.log, "rb") as log:
                simpletrace.read_trace_header(log)
                next(simpletrace.read_trace_records(declared, log, True))
            try:
                process(self.events, self.events, Keeps())
            except ValueError:
                pass

        before = sys.stdout
        with warnings.catch_warnings(), open(os.devnull, "w") as sys.stdout:
            try:
                # With what `open` forgot to close, too.
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.simplefilter("error", ResourceWarning)
                for _ in range(20):
                    once()
                gc.collect()
                objects, files = len(gc.get_objects()), len(os.listdir("/proc/self/fd"))
                counts = [sys.getrefcount(item) for item in (declared[0], simpletrace._DROPPED_EVENT, Keeps, Old)]
                rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                tracemalloc.start()
                # A leak is in every round; a table of Python's that grows for once is in one.
                grown = []
                for _ in range(5):
                    gc.collect()
                    grown.append(-tracemalloc.get_traced_memory()[0])
                    for _ in range(1_000):
                        once()
                    gc.collect()
                    grown[-1] += tracemalloc.get_traced_memory()[0]
                tracemalloc.stop()
                files_after = len(os.listdir("/proc/self/fd"))
            finally:
                sys.stdout = before
        self.assertEqual(files_after, files)
        self.assertEqual([sys.getrefcount(item) for item in (declared[0], simpletrace._DROPPED_EVENT, Keeps, Old)], counts)
        self.assertLess(abs(len(gc.get_objects()) - objects), 100)
        # A fraction of what it would be if each call left the smallest object.
        self.assertLess(min(grown), 20_000, grown)
        # 50,000 traces that each left a page would be 200 MB.
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss, 16_000)

    def test_memory_does_not_grow_with_the_trace(self):
        program = "\n".join(
            [
                "import sys, simpletrace",
                "class A(simpletrace.Analyzer2):",
                "    def read(self, *args, **keywords): pass",
                "simpletrace.process(sys.argv[1], sys.argv[2], eval(sys.argv[3]))",
                "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM:'))",
                "print(peak.split()[1], file=sys.stderr)",
            ]
        )
        log = self.file("many", many(2_000_000))
        for kind in ("A()", "simpletrace.Formatter2()", "simpletrace.Analyzer2()"):
            err = run(["-c", program, self.events, log, kind])[1]
            self.assertLess(int(err), 64 * 1024, kind)

    def test_a_closed_log(self):
        opened = simpletrace._native.Log(
            EVENTS, "x", io.BytesIO(small()), read_header=True, header=None, only=None, limit=None, typed=False, strict=False
        )
        opened.close()
        opened.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            next(opened)

    def test_qemus_own_lock_analyser_works_again(self):
        name = "test_qemus_own_lock_analyser_works_again"
        if not QEMU_SCRIPTS:
            skip(name, "QEMU_SCRIPTS is not set")
        if subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True).returncode != 0:
            skip(name, "it wants numpy, which is not installed")
        events = "".join(f'qemu_mutex_{word}(void *mutex, const char *file, const int line) ""\n' for word in ("lock", "locked", "unlock"))
        trace = Trace()
        for number, word in enumerate(("lock", "locked", "unlock")):
            trace.map(number, f"qemu_mutex_{word}")
        for number, (asked, got, left) in enumerate(((100, 150, 400), (1_000, 1_010, 1_030), (2_000, 2_300, None))):
            place = b"../cpus.c", 10 + number
            trace.event(0, asked, 0x1000, *place).event(1, got, 0x1000, *place)
            if left:
                trace.event(2, left, 0x1000, *place)
        # The folder of the script is not the first to be looked in: its own simpletrace.py is there.
        shutil.copy(pathlib.Path(QEMU_SCRIPTS) / "analyse-locks-simpletrace.py", self.folder)
        script = self.folder / "analyse-locks-simpletrace.py"
        out = run([script, self.file("lock-events", events), self.file("locks", trace.bytes)])[0].decode()
        expected = [
            "Total locks: 3, locked: 3, unlocked: 2",
            "Lock: 0x1000 locks: 3, locked: 3, unlocked: 2",
            "  Acquire Time: min:10 median:50 avg:120.00 max:300",
            "  Held Time: min:20 median:135 avg:135.00 max:250",
        ]
        self.assertEqual(out.splitlines()[:4], expected)


if __name__ == "__main__":
    unittest.main()
