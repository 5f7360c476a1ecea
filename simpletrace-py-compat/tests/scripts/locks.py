"""Locks: how long they were waited for and held. With `process`, a list of events, and two values before the arguments."""

import sys

import simpletrace
from tracetool import read_events


class Locks(simpletrace.Analyzer):
    def __init__(self):
        self.locks = {}

    def _of(self, mutex):
        return self.locks.setdefault(mutex, {"asked": 0, "got": 0, "waits": [], "holds": []})

    def qemu_mutex_lock(self, timestamp, pid, mutex, filename, line):
        self._of(mutex)["asked"] = timestamp

    def qemu_mutex_locked(self, timestamp, pid, mutex, filename, line):
        lock = self._of(mutex)
        lock["got"] = timestamp
        lock["waits"].append(timestamp - lock["asked"])
        lock["where"] = filename, line

    def qemu_mutex_unlock(self, timestamp, pid, mutex, filename, line):
        lock = self._of(mutex)
        lock["holds"].append(timestamp - lock["got"])


locks = Locks()
with open(sys.argv[1]) as events:
    declared = read_events(events, sys.argv[1])
with open(sys.argv[2], "rb") as log:
    simpletrace.process(declared, log, locks)
for mutex, lock in sorted(locks.locks.items()):
    waits, holds = sorted(lock["waits"]), sorted(lock["holds"])
    print("%#x %s:%d" % (mutex, lock["where"][0].decode(), lock["where"][1]))
    print("  waited %d times, %d to %d ns, median %d" % (len(waits), waits[0], waits[-1], waits[len(waits) // 2]))
    print("  held %d times, %d to %d ns" % (len(holds), holds[0], holds[-1]))
