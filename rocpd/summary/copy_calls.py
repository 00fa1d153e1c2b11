"""The calls that copy: how long they take, and whether asynchronous ones wait for their copy.

A call whose name ends in Async should return before its copy is done. Where it does not, it waited, as it does for
memory of the host that is not pinned (hipHostMalloc, hipHostRegister).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.groups import grouped
from rocpd.summary.copy_rates import EDGES, size_label
from rocpd.summary.ops import string_texts
from rocpd.summary.reading import Key, RankReading, Reading, order_of
from rocpd.summary.regions import read_regions
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import total
from rocpd.summary.statements import statement
from rocpd.summary.steady import steady_default
from rocpd.summary.sums import Total, merge
from rocpd.trace.launch import launching_regions
from rocpd.trace.steps import is_step
from rocpd.trace.times import valid_times
from rocpd.types import Flags, Ints, Row

_COLUMNS = ("name", "start", "end", "size", "stack")
_ASYNCHRONOUS = re.compile(r"Async(_spt)?$")

TABLES = by_name(
    TableDefinition(
        "copy-calls",
        "The calls that copy, by direction and size: in steps without warm-up, where steps are marked.",
        (
            Field("name", "", "direction", is_kernel=True),
            Field("size", "", "class of sizes, from (not including) to (including)"),
            Field("call", "", "function; NULL where the call is not known"),
            Field("copies", "", "copies"),
            Field("copies_per_step", "", "copies of a rank in a step; NULL without steps", True),
            Field("copy_ns", "ns", "time of the copies, one after the other", True),
            Field("api_ns", "ns", "time in the calls; one that makes several copies counts for its first"),
            Field(
                "waiting_copies", "", "copies whose call is asynchronous and returned only when they were done", True
            ),
            Field("waited_ns", "ns", "time in these calls"),
        ),
    )
)


class _Kind(NamedTuple):
    """Direction, class of sizes, function."""

    name: str | None
    size_class: int
    call: str | None


@frozen
class _Sum(Total):
    """Copies, and times [ns].

    Args:
        copies: all of them.
        in_steps: those of ranks with steps.
        waited: those whose calls waited for them.
        copy: time of copies.
        call: time of calls.
        waiting: time of calls that waited.
    """

    copies: int
    in_steps: int
    waited: int
    copy: int
    call: int
    waiting: int


class _Rank(NamedTuple):
    kinds: dict[Key, dict[_Kind, _Sum]]
    steps: dict[Key, int]


def copy_calls(reading: Reading) -> Iterator[Summary]:
    """Return the calls that copy.

    Raises:
        RocpdError: no copies with valid timestamps.
    """
    sums: dict[Key, dict[_Kind, _Sum]] = {}
    steps: dict[Key, int] = {}
    for _, added in reading.each(partial(_of_rank, step=is_step(reading.options.step_marker))):
        merge(steps, added.steps)
        for key, kinds in added.kinds.items():
            merge(sums.setdefault(key, {}), kinds)
    if not sums:
        raise RocpdError("no memory copies in the selection")
    rows = (row for key in sorted(sums, key=order_of) for row in _rows(key, sums[key], steps.get(key, 0)))
    yield reading.summary(TABLES["copy-calls"], rows)


def _of_rank(reading: RankReading, step: re.Pattern[str]) -> _Rank:
    read = columns(reading.reader, "rocpd_memory_copy", statement("memory_copies"), _COLUMNS)
    counts = valid_times(read[1], read[2])
    reading.left_out["memory copies"] += int((~counts).sum())
    steady = steady_default(reading, step)
    if steady:
        counts &= (read[1] >= steady.start) & (read[1] < steady.end)
    name, start, end, size, stack = (column[counts] for column in read)
    key = reading.key()
    steps = {key: steady.steps if steady else 0}
    if not len(start):
        return _Rank({}, steps)
    regions, names = read_regions(reading.whole())
    call = launching_regions(regions.stack, regions.start, regions.end, stack)
    known = call >= 0
    function = np.where(known, regions.name[call] if len(regions.name) else -1, -1)
    ends, starts = (column[call] if len(column) else start for column in (regions.end, regions.start))
    time = ends - starts
    asynchronous = [code for code in np.unique(function[known]).tolist() if _is_asynchronous(names.texts[code])]
    waited = known & np.isin(function, asynchronous) & (ends >= end)
    in_calls, waiting = (np.where(_first_of_call(call, among), time, 0) for among in (known, waited))
    texts = string_texts(reading.reader, name)
    kinds: dict[_Kind, _Sum] = {}
    for (number, size_class, code), rows in grouped([name, np.searchsorted(EDGES, np.maximum(size, 0)), function]):
        kind = _Kind(texts.get(number), size_class, names.texts[code] if code >= 0 else None)
        in_steps = len(rows) if steady else 0
        times = (total(column[rows]) for column in (end - start, in_calls, waiting))
        merge(kinds, {kind: _Sum(len(rows), in_steps, int(waited[rows].sum()), *times)})
    return _Rank({key: kinds}, steps)


def _is_asynchronous(function: str | None) -> bool:
    return bool(_ASYNCHRONOUS.search(function or ""))


def _first_of_call(call: Ints, among: Flags) -> Flags:
    """Return which of some copies are the first one of their call: those have its time, however many it makes."""
    rows = np.flatnonzero(among)
    is_first = np.zeros(len(call), bool)
    is_first[rows[np.unique(call[rows], return_index=True)[1]]] = True
    return is_first


def _rows(key: Key, kinds: Mapping[_Kind, _Sum], steps: int) -> Iterator[Row]:
    for kind in sorted(kinds, key=lambda kind: (-kinds[kind].call, order_of(kind))):
        s = kinds[kind]
        per_step = s.in_steps / steps if steps else None
        label = size_label(kind.size_class)
        yield (*key, kind.name, label, kind.call, s.copies, per_step, s.copy, s.call, s.waited, s.waiting)
