"""Where bytes come from: files that are not to be waited for, files that are opened as text, and what a forked child may read."""

import codecs
import io
import os
import signal
import tempfile
import unittest

import simpletrace
from support import EVENTS, Case, many, small


class Counted(simpletrace.Analyzer2):
    def __init__(self):
        self.count = 0

    def catchall(self, *args, **others):
        self.count += 1


class NotToBeWaitedFor(Case):
    def test_nothing_for_now_is_no_end(self):
        events, base = self.file("e", EVENTS), small()
        # Inside a record, and between two: before the last one.
        for end in (len(base) - 5, len(base) - 50, len(base)):
            for buffering in (-1, 0):
                with self.subTest(end=end, buffering=buffering):
                    read_end, write_end = os.pipe()
                    os.set_blocking(read_end, False)
                    os.write(write_end, base[:end])
                    analyzer = Counted()
                    with os.fdopen(read_end, "rb", buffering) as log, os.fdopen(write_end, "wb"):
                        with self.assertRaisesRegex(BlockingIOError, "no bytes for now.*os.set_blocking"):
                            simpletrace.process(events, log, analyzer)
                    self.assertEqual(analyzer.count, 6 if end == len(base) else 5)

    def test_the_end_is_the_end(self):
        events = self.file("e", EVENTS)
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        with os.fdopen(write_end, "wb") as writer:
            writer.write(small())
        analyzer = Counted()
        with os.fdopen(read_end, "rb") as log:
            simpletrace.process(events, log, analyzer)
        self.assertEqual(analyzer.count, 6)

    def test_what_comes_between_two_looks_is_read(self):
        """`read1` finds nothing, and then `read` does."""
        base = small()

        class Late(io.BytesIO):
            found_nothing = False

            def read1(self, size=-1):
                if self.tell() == 100 and not self.found_nothing:
                    self.found_nothing = True
                    return b""
                return super().read1(min(size, 100))

            # Its own, as `read1` is that of a file only beside its `read`.
            def read(self, size=-1):
                return super().read(size)

        log, analyzer = Late(base), Counted()
        simpletrace.process(self.file("e", EVENTS), log, analyzer)
        self.assertEqual((analyzer.count, log.found_nothing), (6, True))


class AsText(Case):
    def test_a_file_that_is_opened_as_text_is_told_how(self):
        trace, events = self.file("t", small()), self.file("e", EVENTS)
        opened = {
            "utf-8": lambda: open(trace, encoding="utf-8"),
            "latin-1": lambda: open(trace, encoding="latin-1"),
            "text": lambda: io.StringIO("x"),
            # Neither is a TextIOBase.
            "codecs": lambda: codecs.open(trace, encoding="utf-8"),
            "temporary": lambda: tempfile.NamedTemporaryFile("w+", encoding="utf-8", dir=self.folder),
        }
        for name, call in opened.items():
            with self.subTest(name), call() as log:
                if name == "temporary":
                    log.file.buffer.write(small())
                    log.seek(0)
                with self.assertRaisesRegex(TypeError, "open it with mode 'rb'"):
                    simpletrace.process(events, log, simpletrace.Analyzer2())


class Forked(Case):
    def child(self, call):
        """What a child says that was forked now."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            # It would wait for ever.
            signal.alarm(30)
            try:
                said = call()
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            os.write(write_end, str(said).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as said:
            text = said.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return text

    def test_a_stream_is_of_the_process_that_began_it(self):
        trace, events = self.file("t", many(400_000)), self.file("e", EVENTS)
        begin = lambda: simpletrace.stream(trace, events, event="read")
        error = f"RuntimeError: the stream was begun in process {os.getpid()} and cannot be read in its forked child; call stream() anew in the child"
        stream = begin()
        first = len(next(stream))

        def twice():
            try:
                next(stream)
            except RuntimeError as error:
                # It is no end the second time.
                return [len(batch) for batch in stream] if "begun" in str(error) else ""

        def drop():
            nonlocal stream
            del stream
            return "dropped"

        self.assertEqual(self.child(twice), error)
        self.assertEqual(self.child(stream.whole), error)
        self.assertEqual(self.child(lambda: stream.__arrow_c_stream__()), error)
        self.assertEqual(self.child(drop), "dropped")
        self.assertEqual(self.child(lambda: sum(len(batch) for batch in begin())), "400000")
        self.assertEqual(self.child(lambda: len(simpletrace.read(trace, events, event="read"))), "400000")
        # The child has taken nothing from it.
        self.assertEqual(first + sum(len(batch) for batch in stream), 400_000)
        self.assertEqual(self.child(lambda: list(stream)), "[]")

    def test_so_is_one_that_another_library_has_taken(self):
        try:
            import pyarrow
        except ImportError:
            print("SKIPPED: a forked child with pyarrow: it is not installed", flush=True)
            return
        trace, events = self.file("t", many(400_000)), self.file("e", EVENTS)
        reader = pyarrow.RecordBatchReader.from_stream(simpletrace.stream(trace, events, event="read"))
        first = len(reader.read_next_batch())
        self.assertIn(f"begun in process {os.getpid()}", self.child(reader.read_next_batch))
        self.assertEqual(first + len(reader.read_all()), 400_000)


if __name__ == "__main__":
    unittest.main()
