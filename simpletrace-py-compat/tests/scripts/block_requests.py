"""Block requests, keyed by their address: how many, how long, how many at once."""

import sys

from simpletrace import Analyzer2, SimpleException, run


class Requests(Analyzer2):
    def begin(self):
        self.under_way, self.times, self.most = {}, [], 0

    def virtio_blk_handle_read(self, vdev, req, *others, timestamp_ns, **keywords):
        self.under_way[req] = timestamp_ns
        self.most = max(self.most, len(self.under_way))

    virtio_blk_handle_write = virtio_blk_handle_read

    def virtio_blk_req_complete(self, vdev, req, status, timestamp_ns, **keywords):
        began = self.under_way.pop(req, None)
        if began is None:
            print(f"{req:#x} was never begun")
        else:
            self.times.append(timestamp_ns - began)

    def end(self):
        times = self.times
        print(f"{len(times)} requests, {len(self.under_way)} open, at most {self.most} at once")
        print(f"min {min(times)} mean {sum(times) / len(times):.3f} max {max(times)} ns")


try:
    run(Requests())
except SimpleException as error:
    sys.exit(str(error))
