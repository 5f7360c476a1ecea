"""Prints what `read_events` gives, on either implementation: declared.py EVENTS."""

import sys

from tracetool import Event, read_events
from tracetool.backend.simple import is_string

with open(sys.argv[1]) as file:
    for event in read_events(file, "NAME"):
        assert isinstance(event, Event)
        print(repr(event), event.name, event.properties, event.fmt, event.lineno, event.filename)
        print(len(event.args), event.args.names(), event.args.types(), event.args.casted(), repr(event.args), event.args[:1])
        print([is_string(c_type) for c_type, _ in event.args], event.formats() if event.fmt else "")
