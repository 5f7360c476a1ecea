"""What scripts for QEMU's simpletrace.py import from its `tracetool`: the events that a trace-events file declares.

Nothing else of tracetool is here: no code is generated.
"""

from simpletrace._events import Arguments, Event, read_events

__all__ = ["Arguments", "Event", "read_events"]
