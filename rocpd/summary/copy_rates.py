"""How fast copies are: by size, by pair of agents, and the slowest ones.

A rate is bytes by time while copying. Small copies are slow by nature: rates compare within a class of sizes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.groups import grouped
from rocpd.read.names import Names, as_text
from rocpd.summary.ops import string_texts
from rocpd.summary.reading import RANK, Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread, total
from rocpd.summary.statements import statement
from rocpd.summary.sums import Total, merge
from rocpd.summary.totals import gib_per_s
from rocpd.trace.times import valid_times
from rocpd.types import NULL, Ints, Row

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


def copy_rates(reading: Reading) -> Iterator[Summary]:
    """Return rates by size and by pair of agents, and the slowest copies.

    Raises:
        RocpdError: no copies with valid timestamps.
    """
    sizes: dict[Key, dict[Key, _Rates]] = {}
    pairs: dict[Key, dict[Key, _Rates]] = {}
    slowest: list[_Copy] = []
    for _, added in reading.each(_of_rank):
        for sums, of_rank in ((sizes, added.sizes), (pairs, added.pairs)):
            for key, rates in of_rank.items():
                merge(sums.setdefault(key, {}), rates)
        slowest = heapq.nlargest(reading.options.top, [*slowest, *added.slowest], key=_order)
    if not sizes:
        raise RocpdError("no memory copies in the selection")
    yield reading.summary(TABLES["copy-sizes"], _size_rows(sizes))
    yield reading.summary(TABLES["copy-pairs"], _pair_rows(pairs))
    listed = ((c.rank, c.name, reading.shift(c.rank).to_line(c.start), *_slow(c)) for c in slowest)
    yield Summary(TABLES["slowest-copies"], TABLES["slowest-copies"].fields, list(listed))


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
        of_size: dict[Key, _Rates] = {(names.texts[code], size_class): _rates(size[rows], duration[rows])}
        merge(answer.sizes.setdefault(reading.key(), {}), of_size)
    large = np.flatnonzero(size > EDGES[2])
    for (left, right), rows in grouped([source[large], destination[large]]):
        pair = _agent(agents, left), _agent(agents, right)
        of_pair: dict[Key, _Rates] = {pair: _rates(size[large[rows]], duration[large[rows]])}
        merge(answer.pairs.setdefault(reading.key(), {}), of_pair)
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


def _size_rows(sums: Mapping[Key, Mapping[Key, _Rates]]) -> Iterator[Row]:
    for key in sorted(sums, key=order_of):
        for name, size_class in sorted(sums[key], key=order_of):
            yield (*key, name, size_label(int(str(size_class))), *_cells(sums[key][name, size_class]))


def _pair_rows(sums: Mapping[Key, Mapping[Key, _Rates]]) -> Iterator[Row]:
    for key in sorted(sums, key=order_of):
        for pair, rates in sorted(sums[key].items(), key=lambda item: (-item[1].time, order_of(item[0]))):
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
