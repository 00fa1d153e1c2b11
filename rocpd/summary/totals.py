"""Totals by name: kernels, copies, allocations, scratch memory, API calls, markers, domains.

Every number is exact over all ranks, medians and percentiles too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.summary.labels import ALL_KINDS, EventsByGroup, totals_by_label
from rocpd.summary.reading import PERCENT, STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread, counts_of, spreads_by_group, total
from rocpd.summary.sums import Total, merge
from rocpd.trace.categories import OF_PROGRAMS
from rocpd.types import Row

_BYTES = Field("bytes", "bytes", "bytes of the events with valid timestamps")
_RATE = Field("gib_per_s", "GiB/s", "bytes by time, in 2^30 bytes per second")


def _table(name: str, doc: str, *first: Field, last: tuple[Field, ...] = ()) -> TableDefinition:
    percent = replace(PERCENT, minor=bool(last))  # bytes are wanted more
    return TableDefinition(name, doc, (*first, *STATISTICS, percent, *last))


_KERNELS = _table("kernels", "Kernel dispatches by kernel.", Field("name", "", "kernel", is_kernel=True))
_COPIES = _table(
    "copies", "Memory copies by direction.", Field("name", "", "direction", is_kernel=True), last=(_BYTES, _RATE)
)


TABLES = by_name(
    replace(_KERNELS, title="Time by kernel", chart="rocpd.summary.plots:kernels"),
    replace(_COPIES, title="Time of copies by direction"),
    _table(
        "allocations",
        "Allocations and frees without scratch memory.",
        Field("name", "", "operation: ALLOC, FREE …"),
        Field("level", "", "REAL or VIRTUAL memory"),
        last=(_BYTES,),
    ),
    _table("scratch", "Scratch memory by operation.", Field("name", "", "operation"), last=(_BYTES,)),
    _table(
        "api",
        "API calls of every domain by function; percent is of all API time.",
        Field("domain", "", "HIP, HSA, RCCL …", has_colour=True),
        Field("name", "", "function"),
    ),
    _table("markers", "Marker ranges and marks by message.", Field("name", "", "message")),
    _table(
        "domains",
        "Events by domain; CPU and GPU time side by side.",
        Field("domain", "", "domain", has_colour=True),
    ),
)


@frozen
class _Sum(Total):
    spread: Spread
    size: int


_Sums = dict[Key, dict[Key, _Sum]]  # division -> what is counted by -> sum


def kernels(reading: Reading) -> Iterator[Summary]:
    """Time by kernel."""
    yield _by(reading, "kernels", ("kernels",), ("name",), "kernels")


def copies(reading: Reading) -> Iterator[Summary]:
    """Time, bytes and bandwidth by direction."""
    yield _by(reading, "copies", ("memory_copies",), ("name",), "memory copies")


def allocations(reading: Reading) -> Iterator[Summary]:
    """Time and bytes by operation and level."""
    yield _by(reading, "allocations", ("memory_allocations",), ("name", "detail"), "allocations")


def scratch(reading: Reading) -> Iterator[Summary]:
    """Time and bytes of scratch memory by operation."""
    yield _by(reading, "scratch", ("scratch_memory",), ("name",), "scratch memory")


def api(reading: Reading) -> Iterator[Summary]:
    """Time by API domain and function; operators and functions of the program itself are left out."""
    yield _by(reading, "api", ("regions",), ("domain", "name"), "API calls", OF_PROGRAMS)


def markers(reading: Reading) -> Iterator[Summary]:
    """Time by message."""
    yield _by(reading, "markers", ("markers",), ("name",), "markers")


def domains(reading: Reading) -> Iterator[Summary]:
    """Time by domain: moments of all events are merged, never averages."""
    yield _by(reading, "domains", ALL_KINDS, ("domain",), "events")


def _by(
    reading: Reading, name: str, kinds: Sequence[str], head: Sequence[str], what: str, without: Collection[str] = ()
) -> Summary:
    """Add the events of all ranks up by division and `head`, but for those of some domains.

    Raises:
        RocpdError: there are none.
    """
    sums: _Sums = {}
    counts: dict[str, _Counts] = {}
    for _, (sums_of_rank, counts_of_rank) in reading.each(partial(_of_rank, kinds=kinds, head=head, without=without)):
        for division, heads in sums_of_rank.items():
            merge(sums.setdefault(division, {}), heads)
        merge(counts, counts_of_rank)
    if not sums:
        raise RocpdError(f"no {what} in the selection")
    for kind, count in counts.items():
        reading.note_invalid(kind, count.calls - count.timed, count.calls)
    extra = len(TABLES[name].fields) - len(STATISTICS) - len(head) - 1
    ordered = [(key, _most_first(sums[key])) for key in sorted(sums, key=order_of)]
    table = reading.summary(TABLES[name], (row for key, heads in ordered for row in _rows(key, heads, extra)))
    table.counts = counts_of(of_head.spread for _, heads in ordered for of_head in heads.values())
    return table


@frozen
class _Counts(Total):
    calls: int
    timed: int


def _of_rank(
    reading: RankReading, kinds: Sequence[str], head: Sequence[str], without: Collection[str]
) -> tuple[_Sums, dict[str, _Counts]]:
    """Add the events of one rank up; count them by kind."""
    parts: dict[Key, dict[Key, list[_Sum]]] = {}
    counts = {}
    for kind in kinds:
        labels = totals_by_label(reading, kind, _sums)
        totals = {label: of_label for label, of_label in labels.items() if label.domain not in without}
        spreads = [of_label.spread for of_label in totals.values()]
        counts[kind] = _Counts(sum(spread.calls for spread in spreads), sum(spread.timed for spread in spreads))
        for label, of_label in totals.items():
            key = tuple(getattr(label, column) for column in head)
            parts.setdefault(label.division, {}).setdefault(key, []).append(of_label)
    sums = {division: {key: _added(some) for key, some in heads.items()} for division, heads in parts.items()}
    return sums, counts


def _added(parts: Sequence[_Sum]) -> _Sum:
    """Add up what many labels have: a domain may hold a hundred thousand names."""
    if len(parts) == 1:
        return parts[0]
    return _Sum(Spread.sum(part.spread for part in parts), sum(part.size for part in parts))


def _sums(events: EventsByGroup) -> list[_Sum]:
    spreads = spreads_by_group(events.durations, events.first)
    if events.sizes is None:
        return [_Sum(spread, 0) for spread in spreads]
    counted = np.where((events.durations >= 0) & (events.sizes > 0), events.sizes, 0)
    if total(counted) >= 1 << 63:
        sizes = [total(part) for part in np.split(counted, events.first[1:])]
    else:
        sizes = np.add.reduceat(counted, events.first).tolist()
    return [_Sum(*pair) for pair in zip(spreads, sizes, strict=True)]


def _most_first(sums: dict[Key, _Sum]) -> dict[Key, _Sum]:
    totals = {head: of_head.spread.moments.total for head, of_head in sums.items()}
    return {head: sums[head] for head in sorted(sums, key=lambda head: (-totals[head], order_of(head)))}


def _rows(division: Key, sums: dict[Key, _Sum], extra: int) -> Iterator[Row]:
    """Yield the rows of a division, with `extra` columns at the end: bytes, then bandwidth."""
    totals = {head: of_head.spread.moments.total for head, of_head in sums.items()}
    all_time = sum(totals.values())
    for head, of_head in sums.items():
        time, size = totals[head], of_head.size
        rate = gib_per_s(size, time)
        percent = time * 100 / all_time if all_time else None
        yield (*division, *head, *statistics(of_head.spread), percent, *(size, rate)[:extra])


def gib_per_s(size: int, time: int) -> float | None:
    """Return the bandwidth of so many bytes in so many ns [GiB/s]; None where they take no time."""
    return size / time * 1e9 / 2**30 if time else None
