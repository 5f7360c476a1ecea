"""A trace with the events that published scripts ask for, always the same."""

import random

from support import Trace

EVENTS = """virtio_blk_handle_read(void *vdev, void *req, uint64_t sector, size_t nsectors) "%p %p"
virtio_blk_handle_write(void *vdev, void *req, uint64_t sector, size_t nsectors) "%p %p"
virtio_blk_req_complete(void *vdev, void *req, int status) "%p %p %d"
net_flush_begin(void *queue) "%p"
net_flush_end(void *queue, int packets) "%p %d"
qemu_mutex_lock(void *mutex, const char *file, const int line) "%p (%s:%d)"
qemu_mutex_locked(void *mutex, const char *file, const int line) "%p (%s:%d)"
qemu_mutex_unlock(void *mutex, const char *file, const int line) "%p (%s:%d)"
tlb_flush_queue(int cpu, void *work, uint16_t asid) "%d %p %u"
tlb_flush_done(int cpu, void *work) "%d %p"
exec_tb(void *tb, uintptr_t pc, uint32_t flags) "%p %zx %x"
iommu_translate(const char *device, uint64_t iova, uint64_t pa, int ret) "%s %" PRIx64
other(void) ""
"""


def trace(records=20_000):
    names = [line.split("(")[0] for line in EVENTS.splitlines()]
    made = Trace()
    ids = {}
    for event_id, name in enumerate(names):
        ids[name] = 100 + event_id
        made.map(ids[name], name)
    chance = random.Random(9)
    now = 1_000_000_000
    parts = []
    pieces = Trace(header=False)

    def put(name, *args):
        nonlocal now
        now += chance.randrange(20, 4_000)
        pieces.event(ids[name], now, *args)
        if len(pieces.bytes) > 4096:
            parts.append(pieces.bytes)
            pieces.bytes = b""

    requests, works = [], []
    for number in range(records // 12):
        request = 0x7F00_0000_0000 + chance.randrange(64) * 0x100
        if request not in requests:
            requests.append(request)
            put("virtio_blk_handle_" + chance.choice(["read", "write"]), 0x5500, request, number * 8, 8)
        if len(requests) > 6:
            put("virtio_blk_req_complete", 0x5500, requests.pop(chance.randrange(6)), 0)
        put("net_flush_begin", 0x9000)
        put("net_flush_end", 0x9000, chance.randrange(1, 64))
        mutex = 0x4000 + chance.randrange(3) * 64
        for step in ("lock", "locked", "unlock"):
            put("qemu_mutex_" + step, mutex, b"../util/main-loop.c", chance.choice([310, 318]))
        work = chance.randrange(4), 0x8000 + number
        put("tlb_flush_queue", *work, number & 0xFFFF)
        works.append(work)
        if len(works) > 3:
            put("tlb_flush_done", *works.pop(chance.randrange(3)))
        put("exec_tb", 0x7F11_0000_0000, 0xFFFF_FFFF_8000_0000 + chance.randrange(300) * 16, 0xB0)
        put("iommu_translate", chance.choice([b"nvme0", b"vfio-pci\xe9", b""]), chance.randrange(2**32), 0, chance.choice([0, 0, 0, -22]))
        put("other")
        if number % 400 == 399:
            pieces.dropped(now, number)
    return made.bytes + b"".join(parts) + pieces.bytes
