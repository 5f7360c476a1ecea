"""Nothing is left behind by a thousand tables, however they are left: neither memory nor threads nor descriptors."""

import json
import os
import unittest

from support import EVENTS, HERE, Case, Trace, run, skip, small


class Leaks(Case):
    def test_tables_leave_nothing_behind(self):
        name = "test_tables_leave_nothing_behind"
        if not os.path.isdir("/proc/self/task"):
            skip(name, "no /proc")
        # Of 6 MB, which are two batches.
        wide = Trace().map(0, "open").bytes + Trace(header=False).event(0, 1, b"x" * 16_000, 2).bytes * 400
        files = self.file("events", EVENTS), self.file("small", small()), self.file("long", wide)
        # With one arena for all threads, what is resident is what is held, and some.
        out, _, _ = run([HERE / "repeated.py", *files], env={"MALLOC_ARENA_MAX": "1"})
        found = json.loads(out)
        self.assertEqual(len(found), 12)
        for way, after in found.items():
            resident, allocated, objects, threads, descriptors = zip(*after)
            with self.subTest(way=way):
                self.assertEqual(set(threads), {1}, "threads")
                self.assertEqual(len(set(descriptors)), 1, descriptors)
                # In each round there are 200 calls, or 40 that would leave more: a page, what the smallest table or
                # capsule needs, and an object would be above that; malloc's cut-offs that are too small to be used are not.
                self.assertLess(least_grown(resident), 200 * 4_096, f"bytes resident: {resident}")
                if allocated[0] is not None:
                    self.assertLess(least_grown(allocated), 200 * 64, f"bytes allocated: {allocated}")
                self.assertLess(least_grown(objects), 40, f"Python's objects: {objects}")
        if any(after[0][1] is None for after in found.values()):
            print(f"SKIPPED: {name}: this libc does not tell what is allocated, only what is resident", flush=True)


def least_grown(amounts):
    """A leak is in every round; what grows for once, such as a table of Python's, is not."""
    return min(behind - before for before, behind in zip(amounts, amounts[1:]))


if __name__ == "__main__":
    unittest.main()
