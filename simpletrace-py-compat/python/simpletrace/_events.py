"""The events that a trace-events file declares, and their arguments."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, List, Sequence, Tuple, Union, overload

from . import _native


class Arguments:
    """The arguments of an event: pairs of type and name, in order."""

    def __init__(self, args: Iterable[Union[Tuple[str, str], Arguments]]) -> None:
        """Takes pairs, and other `Arguments` in whole."""
        self._args: List[Tuple[str, str]] = []
        for arg in args:
            if isinstance(arg, Arguments):
                self._args += arg._args
            else:
                self._args.append(arg)

    @staticmethod
    def build(arg_str: str) -> Arguments:
        """Takes what stands between the parentheses of a declaration. Raises `ValueError` if that cannot be understood."""
        return Event.build(f"event({arg_str})\n", 1, "arguments").args

    def copy(self) -> Arguments:
        """Returns a copy that can be changed on its own."""
        return Arguments(self._args)

    @overload
    def __getitem__(self, index: int) -> Tuple[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> Arguments: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Tuple[str, str], Arguments]:
        return Arguments(self._args[index]) if isinstance(index, slice) else self._args[index]

    def __iter__(self) -> Iterator[Tuple[str, str]]:
        return iter(self._args)

    def __len__(self) -> int:
        return len(self._args)

    def __str__(self) -> str:
        return ", ".join(f"{c_type} {name}" for c_type, name in self._args) or "void"

    def __repr__(self) -> str:
        return f'Arguments("{self}")'

    def names(self) -> List[str]:
        """Returns the names."""
        return [name for _, name in self._args]

    def types(self) -> List[str]:
        """Returns the types, spelled as in the declaration."""
        return [c_type for c_type, _ in self._args]

    def casted(self) -> List[str]:
        """Returns for each argument a C expression that casts it to its type."""
        return [f"({c_type}){name}" for c_type, name in self._args]


class Event:
    """A declared event.

    name        its name
    properties  the words before the name, such as "disable"
    fmt         the format as it stands in the file, with quotes and macros; "" if there is none
    args        its Arguments
    lineno      its line in the file, from 1
    filename    the name of the file
    """

    def __init__(
        self,
        name: str,
        props: Sequence[str],
        fmt: Union[str, List[str]],
        args: Arguments,
        lineno: int,
        filename: str,
        orig: Any = None,
        event_trans: Any = None,
        event_exec: Any = None,
    ) -> None:
        self.name = name
        self.properties = list(props)
        self.fmt = fmt
        self.args = args
        self.lineno = int(lineno)
        self.filename = str(filename)
        self.event_trans = event_trans
        self.event_exec = event_exec
        self._original = orig

    @property
    def original(self) -> Event:
        """The event that this one was copied from, or itself."""
        return self if self._original is None else self._original

    @classmethod
    def _of(cls, fields: Tuple[str, List[str], str, List[Tuple[str, str]], int], filename: str) -> Event:
        name, properties, fmt, args, lineno = fields
        return cls(name, properties, fmt, Arguments(args), lineno, filename)

    @staticmethod
    def build(line_str: str, lineno: int, filename: str) -> Event:
        """Takes a declaration apart. Raises `ValueError` if it cannot be understood."""
        fields = _native.parse_events(line_str, filename)
        if len(fields) != 1:
            raise ValueError(f"one event is expected, and {len(fields)} are declared: {line_str!r}")
        event = Event._of(fields[0], filename)
        event.lineno = int(lineno)
        return event

    def copy(self) -> Event:
        """Returns a copy that can be changed on its own."""
        return Event(
            self.name,
            self.properties,
            self.fmt,
            self.args.copy(),
            self.lineno,
            self.filename,
            self,
            self.event_trans,
            self.event_exec,
        )

    def __repr__(self) -> str:
        fmt = self.fmt if isinstance(self.fmt, str) else ", ".join(self.fmt)
        return f"Event('{' '.join(self.properties)} {self.name}({self.args}) {fmt}')"

    def formats(self) -> List[str]:
        """Returns the conversions of the format, such as "%d" or '%"PRIu64'."""
        import re

        return re.findall(r"%[\d.]*\w+|%.*?PRI\S+", self.fmt if isinstance(self.fmt, str) else "".join(self.fmt))


def read_events(fobj: Iterable[str], fname: str) -> List[Event]:
    """Returns the events that a trace-events file, opened as text, declares; `fname` is for messages.

    Declarations of all releases since 0.14 are taken: any C type, and `tcg` lines, which declare two events each.
    Raises `ValueError` at the first line that is no declaration.
    """
    return [Event._of(fields, fname) for fields in _native.parse_events("".join(fobj), fname)]


def is_string(arg: str) -> bool:
    """Tells whether an argument of this C type is recorded as text, which depends on how the type is spelled."""
    spelling = arg.lstrip()
    return spelling.count("*") == 1 and spelling.startswith(("char*", "char *", "const char*", "const char *"))
