"""How long each flush of a virtio-net queue took, if longer than a threshold: the old kind of analyzer, with times."""

import simpletrace


class Flushes(simpletrace.Analyzer):
    threshold_ns = 5000

    def __init__(self):
        self.begun = None
        self.flushes = 0

    def net_flush_begin(self, timestamp, queue):
        self.begun = timestamp

    def net_flush_end(self, timestamp, queue, packets):
        self.flushes += 1
        took = timestamp - self.begun
        if took > self.threshold_ns:
            print("%d: queue %#x took %d.%03d us for %d packets" % (timestamp, queue, took // 1000, took % 1000, packets))

    def catchall(self, event, rec):
        if event.name == "Dropped_Event":
            print("%d records are missing at %d" % (rec[3], rec[1]))

    def end(self):
        print(self.flushes, "flushes")


simpletrace.run(Flushes())
