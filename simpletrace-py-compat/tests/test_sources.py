"""Where bytes come from: files that are not to be waited for, and files that are opened as text."""

import codecs
import io
import os
import tempfile
import unittest

import simpletrace
from support import EVENTS, Case, small


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


if __name__ == "__main__":
    unittest.main()
