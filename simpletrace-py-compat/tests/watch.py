"""Prints every call that an analyzer gets, on either implementation: watch.py KIND EVENTS TRACE.

What is printed of an exception is its kind: words differ.
"""

import sys
import warnings

import simpletrace

warnings.simplefilter("ignore")


def told(event):
    line = 0 if event.name == "Dropped_Event" else event.lineno
    return event.name, list(event.args), event.properties, event.fmt, line, str(event.args), event.args.types()


class Everything(simpletrace.Analyzer2):
    seen = set()

    def begin(self):
        print("begin")

    def end(self):
        print("end")

    def catchall(self, *args, event, **keywords):
        if event.name not in self.seen:
            self.seen.add(event.name)
            print(told(event), list(keywords))
        print(event.name, args, keywords)


class Old(simpletrace.Analyzer):
    def begin(self):
        print("begin")

    def end(self):
        print("end")

    def catchall(self, event, rec):
        print(event.name, rec)


class Handlers(simpletrace.Analyzer2):
    """A method for every event in the file whose line is even."""

    def __init__(self, events):
        for event in events:
            if event.lineno % 2 == 0:
                setattr(self, event.name, self.method(event.name))

    def method(self, name):
        return lambda *args, **keywords: print(name, args, sorted((key, str(value)) for key, value in keywords.items()))

    def Dropped_Event(self, *args, **keywords):
        print("Dropped_Event", args, keywords["timestamp_ns"])


class OldHandlers(simpletrace.Analyzer):
    """Methods with as many parameters as make each way of calling."""

    def __init__(self, events):
        for event in events:
            count = len(event.args) + event.lineno % 4
            # As many parameters as that, and one for `self` that a bound method would have.
            parameters = ", ".join(f"p{index}" for index in range(count + 1))
            names = {"name": event.name}
            exec(f"def method({parameters}, _take=None): print(name, ({parameters.replace('p0', '0', 1)},))", names)
            setattr(type(self), event.name, names["method"])


def main():
    kind, events, trace = sys.argv[1:]
    with open(events) as file:
        declared = simpletrace.read_events(file, events)
    analyzer = {
        "everything": Everything,
        "old": Old,
        "handlers": lambda: Handlers(declared),
        "old-handlers": lambda: OldHandlers(declared),
        "list": Everything,
    }[kind]()
    try:
        simpletrace.process(declared if kind == "list" else events, trace, analyzer)
    except Exception as error:
        print("raised", type(error).__name__)


main()
