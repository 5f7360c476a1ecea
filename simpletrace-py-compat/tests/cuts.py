"""Prints, for a trace cut off anywhere, how many calls come before what exception, on either implementation: cuts.py EVENTS TRACE."""

import io
import sys
import warnings

import simpletrace

warnings.simplefilter("error")
strict = {"strict": True} if hasattr(simpletrace, "DamageWarning") else {}


class Count(simpletrace.Analyzer2):
    calls = 0

    def catchall(self, *args, **keywords):
        self.calls += 1


with open(sys.argv[1]) as file:
    events = simpletrace.read_events(file, sys.argv[1])
with open(sys.argv[2], "rb") as file:
    whole = file.read()
for size in range(len(whole) + 1):
    count = Count()
    try:
        simpletrace.process(events, io.BytesIO(whole[:size]), count, **strict)
        kind = "whole"
    except Exception as error:
        kind = type(error).__name__
    print(size, count.calls, kind)
