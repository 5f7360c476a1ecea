import os
from typing import AbstractSet, Dict, Iterable, Iterator, List, Literal, NamedTuple, Optional, Sequence, Tuple, Union, overload

from ._native import Stream as Stream
from ._native import Table as Table

_Path = Union[str, os.PathLike[str]]
_Paths = Union[_Path, Sequence[_Path]]
_Texts = Union[str, Iterable[str]]
_Pids = Union[int, Iterable[int]]
# What is certainly not one name: a str is an Iterable[str], too.
_Names = Union[List[str], Tuple[str, ...], AbstractSet[str], Iterator[str]]

class Preset(NamedTuple):
    name: str
    about: str
    operation: str
    on: Optional[str]
    by: List[str]
    exact: bool
    note: str

@overload
def read(
    trace: _Paths,
    events: Optional[_Paths] = None,
    *,
    event: str,
    long: bool = False,
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    limit: Optional[int] = None,
    wall: bool = False,
    read_header: bool = True,
    strict: bool = False,
) -> Table: ...
@overload
def read(
    trace: _Paths,
    events: Optional[_Paths] = None,
    *,
    event: Optional[_Texts] = None,
    long: Literal[True],
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    limit: Optional[int] = None,
    wall: bool = False,
    read_header: bool = True,
    strict: bool = False,
) -> Table: ...
@overload
def read(
    trace: _Paths,
    events: Optional[_Paths] = None,
    *,
    event: Optional[_Names] = None,
    long: Literal[False] = False,
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    limit: Optional[int] = None,
    wall: bool = False,
    read_header: bool = True,
    strict: bool = False,
) -> Dict[str, Table]: ...
@overload
def read(
    trace: _Paths,
    events: Optional[_Paths] = None,
    *,
    event: Optional[_Texts] = None,
    long: bool = False,
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    limit: Optional[int] = None,
    wall: bool = False,
    read_header: bool = True,
    strict: bool = False,
) -> Union[Table, Dict[str, Table]]: ...
def stream(
    trace: _Paths,
    events: Optional[_Paths] = None,
    *,
    event: Optional[_Texts] = None,
    long: bool = False,
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    limit: Optional[int] = None,
    wall: bool = False,
    read_header: bool = True,
    strict: bool = False,
) -> Stream: ...
def pairs(
    trace: _Paths,
    events: Optional[_Paths] = None,
    operation: Optional[str] = None,
    *,
    preset: Optional[str] = None,
    presets: _Paths = (),
    on: Optional[_Texts] = None,
    by: Optional[_Texts] = None,
    discipline: Optional[str] = None,
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    read_header: bool = True,
    strict: bool = False,
) -> Table: ...
def latency(
    trace: _Paths,
    events: Optional[_Paths] = None,
    operation: Optional[str] = None,
    *,
    preset: Optional[str] = None,
    presets: _Paths = (),
    on: Optional[_Texts] = None,
    by: Optional[_Texts] = None,
    discipline: Optional[str] = None,
    without_suspects: bool = False,
    percentiles: Optional[Union[float, str, Iterable[Union[float, str]]]] = None,
    columns: Optional[_Texts] = None,
    time: Optional[str] = None,
    where: Optional[_Texts] = None,
    pid: Optional[_Pids] = None,
    read_header: bool = True,
    strict: bool = False,
) -> Table: ...
def presets(files: _Paths = ()) -> List[Preset]: ...
