"""The rates of copies, and the calls that make them: how long these take, and whether asynchronous ones wait.

A call whose name ends in Async should return before its copy is done. If it does not, it waited, as happens with memory
of the host that is not pinned (hipHostMalloc, hipHostRegister).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from rocpd.base import NULL, Flags, Ints, Row
from rocpd.facts.columns import Names, as_text, grouped
from rocpd.facts.operations import string_texts, timed_columns
from rocpd.facts.rank import Key, RankReading
from rocpd.facts.regions import calls_of
from rocpd.facts.spread import Spread, total
from rocpd.facts.units import RankTime, of_steps, read_first
from rocpd.federate.run.rank_reader import Fact
from rocpd.summary.grouping import Sums, add, in_order, most_first, ratio, rows_of
from rocpd.summary.kernels.totals import gib_per_s
from rocpd.summary.reading import RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, by_name, table_of

EDGES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
"""Upper edges of the classes of sizes [bytes]; a size on an edge counts below it."""

_FASTEST = float(1 << 62)  # bytes per second: damaged sizes make rates beyond 64 bits
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

_DIRECTION = Field("name", "", "direction", is_kernel=True)
_SIZE = Field("size", "", "class of sizes, from (not including) to (including)")
_COLUMNS_OF_CALLS = ("start", "end", "size", "name", "stack")
_ASYNCHRONOUS = re.compile(r"Async(_spt)?$")

TABLES = by_name(
    table_of(
        "copy-sizes",
        "How fast copies are by direction and size: in steps without warm-up, where steps are marked.",
        _DIRECTION,
        _SIZE,
        *_RATES,
    ),
    table_of(
        "copy-pairs",
        "How fast copies are from agent to agent, those above 1 MiB: smaller ones are slow by nature.",
        Field("source", "", "agent that is read"),
        Field("destination", "", "agent that is written"),
        *_RATES,
    ),
    table_of(
        "slowest-copies",
        "The copies that take longest.",
        RANK,
        _DIRECTION,
        Field("at_ns", "ns", "start, from the start of the time line"),
        Field("duration_ns", "ns", "its time"),
        Field("bytes", "bytes", "its size"),
        Field("gib_per_s", "GiB/s", "its rate", True),
        Field("source", "", "agent that is read"),
        Field("destination", "", "agent that is written"),
    ),
    table_of(
        "copy-calls",
        "The calls that copy, by direction and size: in steps without warm-up, where steps are marked.",
        _DIRECTION,
        _SIZE,
        Field("call", "", "function; NULL where the call is not known"),
        Field("copies", "", "copies"),
        Field("copies_per_step", "", "copies of a rank in a step; NULL without steps", True),
        Field("copy_ns", "ns", "time of the copies, one after the other", True),
        Field("api_ns", "ns", "time in the calls; one that makes several copies counts for its first"),
        Field("waiting_copies", "", "copies whose call is asynchronous and returned only when they were done", True),
        Field("waited_ns", "ns", "time in these calls"),
    ),
)


_Rates = dict[Key, dict[Key, Sums]]  # division -> counted columns -> bytes, time [ns], rates [bytes/s] as a Spread


def copy_rates(reading: Reading) -> Tables:
    """Return rates by size and by pair of agents, and the slowest copies.

    Raises:
        RocpdError: there are no copies with valid timestamps.
    """
    read_first(reading.session, reading.options.step_marker)  # the slowest ones are on the time line
    steady = of_steps(reading.times())
    sizes, pairs, slowest = yield from reading.summed(_read_rates, _RATED, given=steady, what="memory copies")
    yield reading.summary(TABLES["copy-sizes"], rows_of(sizes, _size_rows))
    yield reading.summary(TABLES["copy-pairs"], rows_of(pairs, _pair_rows))
    listed = (
        (rank, name, reading.shift(rank).to_line(start), time, size, gib_per_s(size, time), *ends)
        for time, rank, start, name, size, *ends in heapq.nsmallest(
            reading.options.top, slowest.get("copies", ()), lambda copy: (-copy[0], *copy[1:3])
        )
    )
    yield Summary.whole(TABLES["slowest-copies"], listed)


_RATED = Fact("rates", 1, (Sums, Spread))


def _read_rates(reading: RankReading, steady: RankTime | None) -> tuple[_Rates, _Rates, dict[str, list[Row]]]:
    """Return the rates of one rank by direction and size, and by agents, and its slowest copies.

    A slow copy has duration, rank, recorded start [ns], direction, bytes, and both agents.
    """
    start, end, size, name, source, destination = _read_copies(reading, _COLUMNS, steady)
    size, duration = np.maximum(size, 0), end - start
    names, known = Names(), string_texts(reading.reader, name)
    codes, agents = names.codes(name, known.get), _agents(reading)
    sizes: _Rates = {}
    pairs: _Rates = {}
    for (code, size_class), rows in grouped([codes, np.searchsorted(EDGES, size)]):
        add(sizes, reading.key(), (names.texts[code], size_class), rates(size[rows], duration[rows]))
    large = (size > EDGES[2]).nonzero()[0]
    for ends, rows in grouped([source[large], destination[large]]):
        of_pair = rates(size[large[rows]], duration[large[rows]])
        add(pairs, reading.key(), tuple(_agent(agents, number) for number in ends), of_pair)
    slowest: list[Row] = []
    for at in np.lexsort((start, -duration))[: reading.options.top].tolist():
        both = (_agent(agents, int(side[at])) for side in (source, destination))
        times = int(duration[at]), reading.rank.number, int(start[at])
        slowest.append((*times, names.texts[codes[at]], int(size[at]), *both))
    return sizes, pairs, {"copies": slowest}


def _read_copies(reading: RankReading, names: tuple[str, ...], steady: RankTime | None) -> list[Ints]:
    read = timed_columns(reading, "rocpd_memory_copy", "memory_copies", names, "memory copies")
    inside = begun_in(steady, read[0])
    return [column[inside] for column in read]


def begun_in(steady: RankTime | None, start: Ints) -> Flags:
    """Return which copies begin in the steps of a rank; all of them if it has no steps."""
    all_copies = np.ones(len(start), bool)
    return (start >= steady.start) & (start < steady.end) if steady and steady.steps else all_copies


def _agents(reading: RankReading) -> dict[int, str]:
    rows = reading.reader.rows(_AGENTS)
    return {number: f"{as_text(kind) or 'agent'} {index}" for number, kind, index in rows if index is not None}


def _agent(agents: Mapping[int, str], number: int) -> str:
    return agents.get(number, "?" if number == NULL else f"agent {number}")


def rates(size: Ints, duration: Ints) -> Sums:
    """Return the bytes, the time [ns] and the rates [bytes/s] of copies of some sizes and durations [ns]."""
    timed = duration.nonzero()[0]
    per_second = np.minimum(size[timed] * 1e9 / duration[timed], _FASTEST).astype(np.int64)
    return Sums((total(size), total(duration), Spread.of(per_second, len(size))))


def _size_rows(key: Key, sums: Mapping[Key, Sums]) -> Iterator[Row]:
    for (name, size_class), of_class in in_order(sums):
        yield (*key, name, size_label(int(str(size_class))), *_cells(*of_class))


def _pair_rows(key: Key, sums: Mapping[Key, Sums]) -> Iterator[Row]:
    for pair, of_pair in most_first(sums, lambda of_pair: of_pair[1]):
        yield (*key, *pair, *_cells(*of_pair))


def _cells(size: int, time: int, each: Spread) -> Row:
    of_each = (each.quantile(0.5), each.moments.longest, each.quantile(0.05))
    shown = (None if rate is None else rate / (1 << 30) for rate in of_each)
    return (each.calls, size, time, gib_per_s(size, time), *shown)


def size_label(size_class: int) -> str:
    """Return the name of a class of sizes, given its number in `EDGES`."""
    return class_labels([f"{edge >> 20} MiB" if edge >= 1 << 20 else f"{edge >> 10} KiB" for edge in EDGES])[size_class]


def class_labels(edges: Sequence[str]) -> list[str]:
    """Return the names of classes of values between edges.

    >>> class_labels(["4 KiB", "1 MiB"])
    ['up to 4 KiB', '4 KiB to 1 MiB', 'over 1 MiB']
    """
    return [f"up to {edges[0]}", *(f"{low} to {high}" for low, high in pairwise(edges)), f"over {edges[-1]}"]


_Calls = dict[Key, dict[tuple[str | None, int, str | None], Sums]]
"""Division -> direction, class of sizes and function -> copies, those of ranks with steps, those whose calls waited;
time of copies, of calls, and of calls that waited [ns]."""


def copy_calls(reading: Reading) -> Tables:
    """Return the calls that copy.

    Raises:
        RocpdError: there are no copies with valid timestamps.
    """
    steady = of_steps(reading.times())
    sums, steps = yield from reading.summed(_read_calls, _COPYING, given=steady, what="memory copies")
    rows = (row for key, kinds in in_order(sums) for row in _call_rows(key, kinds, steps.get(key, 0)))
    yield reading.summary(TABLES["copy-calls"], rows)


_COPYING = Fact("copying calls", 1, (Sums,))


def _read_calls(reading: RankReading, steady: RankTime | None) -> tuple[_Calls, dict[Key, int]]:
    start, end, size, name, stack = _read_copies(reading, _COLUMNS_OF_CALLS, steady)
    key = reading.key()
    steps = {key: steady.steps if steady else 0}
    if not len(start):
        return {}, steps
    regions, call, names = calls_of(reading, stack)
    known = call >= 0
    function = np.where(known, regions.name[call] if len(regions.name) else -1, -1)
    ends, starts = (column[call] if len(column) else start for column in (regions.end, regions.start))
    is_async = np.array([bool(_ASYNCHRONOUS.search(text or "")) for text in (*names.texts, None)], bool)
    waited = known & is_async[function] & (ends >= end)
    in_calls, waiting = (np.where(_first_of_call(call, among), ends - starts, 0) for among in (known, waited))
    texts = string_texts(reading.reader, name)
    kinds: _Calls = {}
    for (number, size_class, code), rows in grouped([name, np.searchsorted(EDGES, np.maximum(size, 0)), function]):
        kind = texts.get(number), size_class, names.texts[code] if code >= 0 else None
        counts_of_kind = len(rows), len(rows) if steady else 0, int(waited[rows].sum())
        times_of_kind = (total(column[rows]) for column in (end - start, in_calls, waiting))
        add(kinds, key, kind, Sums((*counts_of_kind, *times_of_kind)))
    return kinds, steps


def _first_of_call(call: Ints, among: Flags) -> Flags:
    """Return which of some copies are the first of their call: they take its time, however many copies it makes."""
    rows = among.nonzero()[0]
    is_first = np.zeros(len(call), bool)
    is_first[rows[np.unique(call[rows], return_index=True)[1]]] = True
    return is_first


def _call_rows(key: Key, kinds: Mapping[tuple[str | None, int, str | None], Sums], steps: int) -> Iterator[Row]:
    for (name, size_class, call), sums in most_first(kinds, lambda sums: sums[4]):
        copies, in_steps, waited, copy_time, call_time, waiting = sums
        counts = (copies, ratio(in_steps, steps), copy_time, call_time, waited, waiting)
        yield (*key, name, size_label(size_class), call, *counts)
