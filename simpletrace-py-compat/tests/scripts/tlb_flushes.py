"""From the asking for a TLB flush to its being done, by kind of work, as a histogram; stops early with an exception."""

import sys

import simpletrace


class Enough(Exception):
    pass


class Flushes(simpletrace.Analyzer2):
    def __init__(self, most):
        self.most, self.queued, self.slots = most, {}, [0] * 24

    def tlb_flush_queue(self, cpu, work, asid, **keywords):
        self.queued[cpu, work] = keywords["timestamp_ns"]

    def tlb_flush_done(self, cpu, work, **keywords):
        began = self.queued.pop((cpu, work), None)
        if began is not None:
            self.slots[(keywords["timestamp_ns"] - began).bit_length()] += 1
        if sum(self.slots) >= self.most:
            raise Enough(self.most)


flushes = Flushes(1500)
try:
    simpletrace.process(sys.argv[1], open(sys.argv[2], "rb"), flushes)
except Enough as enough:
    print("stopped after", enough)
for bits, count in enumerate(flushes.slots):
    if count:
        print(f"{2 ** bits // 2:>9} ns {count:>6} {'#' * (count // 50)}")
