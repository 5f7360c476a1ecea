"""A script as a user with a type checker writes it."""

from __future__ import annotations

import sys
from typing import Any

import simpletrace
from tracetool import Event, read_events


class Requests(simpletrace.Analyzer2):
    def __init__(self) -> None:
        self.times: list[int] = []

    def virtio_blk_req_complete(self, vdev: int, req: int, status: int, *, timestamp_ns: int, **others: Any) -> None:
        self.times.append(timestamp_ns)


class All(simpletrace.Analyzer2):
    def catchall(self, *args: Any, event: Event, timestamp_ns: int, pid: int, event_id: str, **others: Any) -> None:
        print(event.name, timestamp_ns, pid, event_id, len(args))


def main() -> None:
    with open(sys.argv[1]) as file:
        events: list[Event] = read_events(file, sys.argv[1])
    requests = Requests()
    simpletrace.process(events, sys.stdin.buffer, requests, limit=5, typed=True, only=["virtio_blk_req_complete"])
    with open(sys.argv[2], "rb") as log:
        simpletrace.process(sys.argv[1], log, All(), True)
    print(len(requests.times), events[0].args.names())
    of_one: simpletrace.Table = simpletrace.read(sys.argv[2], event="virtio_notify", columns=["ts_ns"], where="pid == 7")
    of_each: dict[str, simpletrace.Table] = simpletrace.read(sys.argv[2], sys.argv[1], event=["virtio_*"])
    of_all: simpletrace.Table = simpletrace.read(sys.argv[2], long=True)
    names, is_long = {"virtio_notify"}, len(sys.argv) > 3
    of_set: dict[str, simpletrace.Table] = simpletrace.read(sys.argv[2], event=names)
    of_generator: dict[str, simpletrace.Table] = simpletrace.read(sys.argv[2], event=(name for name in names))
    of_long: simpletrace.Table = simpletrace.read(sys.argv[2], event=names, long=True)
    of_either: simpletrace.Table | dict[str, simpletrace.Table] = simpletrace.read(sys.argv[2], event=names, long=is_long)
    print(of_set, of_generator, of_long, of_either)
    batches = [len(batch) for batch in simpletrace.stream(sys.argv[2], event="virtio_notify")]
    slow = simpletrace.latency(sys.argv[2], preset=simpletrace.presets()[0].name, by=["pid"], percentiles=[50, 99.9])
    print(len(of_one), of_each["virtio_notify"].column_names, len(of_all), batches, slow.facts)


main()
