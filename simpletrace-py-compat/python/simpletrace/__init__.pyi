import os
from types import TracebackType
from typing import Any, BinaryIO, Iterable, Iterator, Literal, Optional, Protocol, TextIO, Tuple, Type, TypeVar, Union

from ._events import Event as Event
from ._events import is_string as is_string
from ._events import read_events as read_events
from ._tables import Preset as Preset
from ._tables import Stream as Stream
from ._tables import Table as Table
from ._tables import latency as latency
from ._tables import pairs as pairs
from ._tables import presets as presets
from ._tables import read as read
from ._tables import stream as stream

__all__ = ["Analyzer", "Analyzer2", "process", "run"]

class _Reads(Protocol):
    def read(self, size: int, /) -> Union[bytes, bytearray, memoryview, None]: ...

_Events = Union[str, os.PathLike[str], Iterable[Event], TextIO, BinaryIO]
_Log = Union[str, os.PathLike[str], _Reads]
_Self = TypeVar("_Self", bound="Analyzer")

header_event_id: int
header_magic: int
dropped_event_id: int
record_type_mapping: int
record_type_event: int
log_header_fmt: str
rec_header_fmt: str
rec_header_fmt_len: int

class SimpleException(Exception): ...
class DamageWarning(UserWarning): ...

class Analyzer:
    def begin(self) -> None: ...
    # Subclasses of Analyzer2 take other arguments.
    catchall: Any
    def end(self) -> None: ...
    def __enter__(self: _Self) -> _Self: ...
    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_val: Optional[BaseException],
        exc_tb: Optional[TracebackType],
    ) -> Literal[False]: ...

class Analyzer2(Analyzer): ...
class Formatter2(Analyzer2): ...

def process(
    events: _Events,
    log: _Log,
    analyzer: Analyzer,
    read_header: bool = True,
    *,
    only: Optional[Iterable[str]] = None,
    limit: Optional[int] = None,
    typed: bool = False,
    strict: bool = False,
) -> None: ...
def run(
    analyzer: Analyzer,
    *,
    only: Optional[Iterable[str]] = None,
    limit: Optional[int] = None,
    typed: bool = False,
    strict: bool = False,
) -> None: ...
def read_header(fobj: _Reads, hfmt: str) -> Tuple[Any, ...]: ...
def read_trace_header(fobj: _Reads) -> None: ...
def get_mapping(fobj: _Reads) -> Tuple[int, str]: ...
def read_record(fobj: _Reads) -> Tuple[int, int, int, bytes]: ...
def read_trace_records(
    events: _Events,
    fobj: _Reads,
    read_header: bool,
    *,
    only: Optional[Iterable[str]] = None,
    limit: Optional[int] = None,
    typed: bool = False,
    strict: bool = False,
) -> Iterator[Tuple[Any, ...]]: ...
