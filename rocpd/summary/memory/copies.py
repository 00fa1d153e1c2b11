"""How fast copies are, and the calls that make them: how long these take, and whether asynchronous ones wait.

A call whose name ends in Async should return before its copy is done. Where it does not, it waited, as it does for
memory of the host that is not pinned (hipHostMalloc, hipHostRegister).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Flags, Ints, Row
from rocpd.facts.columns import Names, as_text, columns, grouped, statement
from rocpd.facts.operations import string_texts
from rocpd.facts.rank import Key, RankReading
from rocpd.facts.regions import read_regions
from rocpd.facts.spread import Spread, total
from rocpd.facts.units import Times, of_steps
from rocpd.schema.rules.events import valid_times
from rocpd.schema.rules.launch import launching_regions
from rocpd.summary.grouping import Total, add, in_order, merge, merge_groups, most_first, ratio, rows_of
from rocpd.summary.kernels.totals import gib_per_s
from rocpd.summary.reading import RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, TableDefinition, by_name

EDGES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
"""Upper edges of the classes of sizes [bytes]; a size on an edge counts below it."""

_FASTEST = float(1 << 62)  # bytes per second: damaged sizes make rates that no 64 bits hold
_AGENTS = "SELECT id, type, type_index FROM rocpd_info_agent"
_COLUMNS = ("start", "end", "size", "name", "source", "destination")

_RATES = (
    Field("copies", "", "copies"),
    Field("bytes", "bytes", "their sum"),
    Field("total_ns", "ns", "time of all, one after the other", True),
    Field("gib_per_s", "GiB/s", "bytes by time, in 2^30 bytes per second"),
    Field("median_gib_per_s", "GiB/s", "of the copies, each for itself", True),
    Field("max_gib_per_s", "GiB/s", "the fastest copy", True),
    Field("p5_gib_per_s", "GiB/s", "1 in 20 is slower"),
)

_SIZE = Field("size", "", "class of sizes, from (not including) to (including)")
_COLUMNS_OF_CALLS = ("name", "start", "end", "size", "stack")
_ASYNCHRONOUS = re.compile(r"Async(_spt)?$")

TABLES = by_name(
    TableDefinition(
        "copy-sizes",
        "How fast copies are by direction and size.",
        (Field("name", "", "direction", is_kernel=True), _SIZE, *_RATES),
    ),
    TableDefinition(
        "copy-pairs",
        "How fast copies are from agent to agent, those above 1 MiB: smaller ones are slow by nature.",
        (Field("source", "", "agent that is read"), Field("destination", "", "agent that is written"), *_RATES),
    ),
    TableDefinition(
        "slowest-copies",
        "The copies that take longest.",
        (
            RANK,
            Field("name", "", "direction", is_kernel=True),
            Field("at_ns", "ns", "start, from the start of the time line"),
            Field("duration_ns", "ns", "its time"),
            Field("bytes", "bytes", "its size"),
            Field("gib_per_s", "GiB/s", "its rate", True),
            Field("source", "", "agent that is read"),
            Field("destination", "", "agent that is written"),
        ),
    ),
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
    ),
)


@frozen
class _Rates(Total):
    """Bytes, time [ns], and how often each rate occurs, in bytes per second."""

    size: int
    time: int
    rates: Spread


class _Copy(NamedTuple):
    """One copy: duration, rank, start as recorded [ns], direction, bytes, agents."""

    duration: int
    rank: int
    start: int
    name: str | None
    size: int
    source: str
    destination: str


class _Rank(NamedTuple):
    sizes: dict[Key, dict[Key, _Rates]]
    pairs: dict[Key, dict[Key, _Rates]]
    slowest: list[_Copy]


def copy_rates(reading: Reading) -> Tables:
    """Return rates by size and by pair of agents, and the slowest copies.

    Raises:
        RocpdError: no copies with valid timestamps.
    """
    sizes: dict[Key, dict[Key, _Rates]] = {}
    pairs: dict[Key, dict[Key, _Rates]] = {}
    slowest: list[_Copy] = []
    yield (answers := reading.each(_of_rank))
    for _, of_rank in answers:
        merge_groups(sizes, of_rank.sizes)
        merge_groups(pairs, of_rank.pairs)
        slowest = heapq.nlargest(reading.options.top, [*slowest, *of_rank.slowest], key=_order)
    if not sizes:
        raise RocpdError("no memory copies in the selection")
    yield reading.summary(TABLES["copy-sizes"], rows_of(sizes, _size_rows))
    yield reading.summary(TABLES["copy-pairs"], rows_of(pairs, _pair_rows))
    listed = ((c.rank, c.name, reading.shift(c.rank).to_line(c.start), *_slow(c)) for c in slowest)
    yield Summary.whole(TABLES["slowest-copies"], list(listed))


def _order(copy: _Copy) -> tuple[int, int, int]:
    return copy.duration, -copy.rank, -copy.start


def _slow(copy: _Copy) -> Row:
    return copy.duration, copy.size, gib_per_s(copy.size, copy.duration), copy.source, copy.destination


def _of_rank(reading: RankReading) -> _Rank:
    read = columns(reading.reader, "rocpd_memory_copy", statement("memory_copies"), _COLUMNS)
    valid = np.flatnonzero(valid_times(read[0], read[1]))
    reading.left_out["memory copies"] += len(read[0]) - len(valid)
    start, end, size, name, source, destination = (column[valid] for column in read)
    size, duration = np.maximum(size, 0), end - start
    names = Names()
    codes = names.codes(name, string_texts(reading.reader, name).get)
    agents = _agents(reading)
    answer = _Rank({}, {}, [])
    for (code, size_class), rows in grouped([codes, np.searchsorted(EDGES, size)]):
        add(answer.sizes, reading.key(), (names.texts[code], size_class), _rates(size[rows], duration[rows]))
    large = np.flatnonzero(size > EDGES[2])
    for (left, right), rows in grouped([source[large], destination[large]]):
        pair = _agent(agents, left), _agent(agents, right)
        add(answer.pairs, reading.key(), pair, _rates(size[large[rows]], duration[large[rows]]))
    for at in np.lexsort((start, -duration))[: reading.options.top].tolist():
        ends = _agent(agents, int(source[at])), _agent(agents, int(destination[at]))
        times = int(duration[at]), reading.rank.number, int(start[at])
        answer.slowest.append(_Copy(*times, names.texts[codes[at]], int(size[at]), *ends))
    return answer


def _agents(reading: RankReading) -> dict[int, str]:
    rows = reading.reader.rows(_AGENTS)
    return {number: f"{as_text(kind) or 'agent'} {index}" for number, kind, index in rows if index is not None}


def _agent(agents: Mapping[int, str], number: int) -> str:
    return agents.get(number, "?" if number == NULL else f"agent {number}")


def _rates(size: Ints, duration: Ints) -> _Rates:
    timed = np.flatnonzero(duration)
    per_second = np.minimum(size[timed] * 1e9 / duration[timed], _FASTEST).astype(np.int64)
    return _Rates(total(size), total(duration), Spread.of(per_second, len(size)))


def _size_rows(key: Key, sums: Mapping[Key, _Rates]) -> Iterator[Row]:
    for (name, size_class), rates in in_order(sums):
        yield (*key, name, size_label(int(str(size_class))), *_cells(rates))


def _pair_rows(key: Key, sums: Mapping[Key, _Rates]) -> Iterator[Row]:
    for pair, rates in most_first(sums, lambda rates: rates.time):
        yield (*key, *pair, *_cells(rates))


def _cells(r: _Rates) -> Row:
    of_each = (r.rates.quantile(0.5), r.rates.moments.longest, r.rates.quantile(0.05))
    return r.rates.moments.calls, r.size, r.time, gib_per_s(r.size, r.time), *map(_gib, of_each)


def _gib(per_second: float | None) -> float | None:
    return None if per_second is None else per_second / (1 << 30)


def size_label(size_class: int) -> str:
    """Return what a class of sizes is called: its number in `EDGES`."""
    texts = [f"{edge >> 20} MiB" if edge >= 1 << 20 else f"{edge >> 10} KiB" for edge in EDGES]
    if size_class == 0:
        return f"up to {texts[0]}"
    return f"over {texts[-1]}" if size_class == len(texts) else f"{texts[size_class - 1]} to {texts[size_class]}"


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


def copy_calls(reading: Reading) -> Tables:
    """Return the calls that copy.

    Raises:
        RocpdError: no copies with valid timestamps.
    """
    sums: dict[Key, dict[_Kind, _Sum]] = {}
    steps: dict[Key, int] = {}
    yield (answers := reading.each(partial(_calls_of_rank, times=of_steps(reading.times()))))
    for _, (kinds, steps_of_rank) in answers:
        merge(steps, steps_of_rank)
        merge_groups(sums, kinds)
    if not sums:
        raise RocpdError("no memory copies in the selection")
    rows = (row for key, kinds in in_order(sums) for row in _call_rows(key, kinds, steps.get(key, 0)))
    yield reading.summary(TABLES["copy-calls"], rows)


def _calls_of_rank(reading: RankReading, times: Times) -> tuple[dict[Key, dict[_Kind, _Sum]], dict[Key, int]]:
    read = columns(reading.reader, "rocpd_memory_copy", statement("memory_copies"), _COLUMNS_OF_CALLS)
    counts = valid_times(read[1], read[2])
    reading.left_out["memory copies"] += int((~counts).sum())
    steady = times.get(reading.rank.number)
    if steady:
        counts &= (read[1] >= steady.start) & (read[1] < steady.end)
    name, start, end, size, stack = (column[counts] for column in read)
    key = reading.key()
    steps = {key: steady.steps if steady else 0}
    if not len(start):
        return {}, steps
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
        sums = (total(column[rows]) for column in (end - start, in_calls, waiting))
        merge(kinds, {kind: _Sum(len(rows), in_steps, int(waited[rows].sum()), *sums)})
    return {key: kinds}, steps


def _is_asynchronous(function: str | None) -> bool:
    return bool(_ASYNCHRONOUS.search(function or ""))


def _first_of_call(call: Ints, among: Flags) -> Flags:
    """Return which of some copies are the first one of their call: those have its time, however many it makes."""
    rows = np.flatnonzero(among)
    is_first = np.zeros(len(call), bool)
    is_first[rows[np.unique(call[rows], return_index=True)[1]]] = True
    return is_first


def _call_rows(key: Key, kinds: Mapping[_Kind, _Sum], steps: int) -> Iterator[Row]:
    for kind, s in most_first(kinds, lambda kind: kind.call):
        front = (*key, kind.name, size_label(kind.size_class), kind.call)
        yield (*front, s.copies, ratio(s.in_steps, steps), s.copy, s.call, s.waited, s.waiting)
