"""A script as a user with a type checker writes it."""

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


main()
