"""Owns totals by name: kernels, copies, allocations, scratch memory, API calls, markers, domains.

Every number is exact over all ranks, medians and percentiles too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from rocpd.errors import RocpdError
from rocpd.federate.categories import domain_of
from rocpd.summary.reading import PERCENT, STATISTICS, Key, Reading, order_of, statistics
from rocpd.summary.result import Field, Row, Summary, Table
from rocpd.summary.spread import Spread
from rocpd.summary.survey import KINDS, Events, survey

_BYTES = Field("bytes", "bytes", "bytes of the events with sound times")
_RATE = Field("gib_per_s", "GiB/s", "bytes by time, in 2^30 bytes per second")


def _table(name: str, doc: str, *first: Field, last: tuple[Field, ...] = ()) -> Table:
    return Table(name, doc, (*first, *STATISTICS, PERCENT, *last))


TABLES = {
    table.name: table
    for table in (
        _table("kernels", "Kernel dispatches by kernel.", Field("name", "", "kernel")),
        _table("copies", "Memory copies by direction.", Field("name", "", "direction"), last=(_BYTES, _RATE)),
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
            Field("domain", "", "HIP, HSA, RCCL …"),
            Field("name", "", "function"),
        ),
        _table("markers", "Marker ranges and marks by message.", Field("name", "", "message")),
        _table("domains", "All events by domain; CPU and GPU time side by side.", Field("domain", "", "domain")),
    )
}


@dataclass
class _Sum:
    spread: Spread = field(default_factory=Spread)
    size: int = 0

    def add(self, events: Events) -> None:
        self.spread.add(events.durations, events.calls)
        self.size += events.size


_Head = Callable[[Events], Key]


def kernels(reading: Reading) -> Iterator[Summary]:
    """Time by kernel."""
    yield _by(reading, "kernels", ("kernels",), lambda e: (e.name,), "kernels")


def copies(reading: Reading) -> Iterator[Summary]:
    """Time, bytes and bandwidth by direction."""
    yield _by(reading, "copies", ("memory_copies",), lambda e: (e.name,), "memory copies")


def allocations(reading: Reading) -> Iterator[Summary]:
    """Time and bytes by operation and level."""
    yield _by(reading, "allocations", ("memory_allocations",), lambda e: (e.name, e.detail), "allocations")


def scratch(reading: Reading) -> Iterator[Summary]:
    """Time and bytes of scratch memory by operation."""
    yield _by(reading, "scratch", ("scratch_memory",), lambda e: (e.name,), "scratch memory")


def api(reading: Reading) -> Iterator[Summary]:
    """Time by API domain and function."""
    yield _by(reading, "api", ("regions",), lambda e: (domain_of(e.category), e.name), "API calls")


def markers(reading: Reading) -> Iterator[Summary]:
    """Time by message."""
    yield _by(reading, "markers", ("markers",), lambda e: (e.name,), "markers")


def domains(reading: Reading) -> Iterator[Summary]:
    """Time by domain: moments of all events are merged, never averages."""
    yield _by(reading, "domains", KINDS, lambda e: (domain_of(e.category),), "events")


def _by(reading: Reading, name: str, kinds: Iterable[str], head: _Head, what: str) -> Summary:
    """Add the events of all ranks up by division and `head`.

    Raises:
        RocpdError: there are none.
    """
    sums: dict[Key, dict[Key, _Sum]] = {}
    counts = dict.fromkeys(kinds, (0, 0))
    for rank in reading.ranks():
        for kind in counts:
            for events in survey(reading, rank, kind):
                division = reading.key(rank, events.lane, events.lane)
                sums.setdefault(division, {}).setdefault(head(events), _Sum()).add(events)
                calls, timed = counts[kind]
                counts[kind] = calls + events.calls, timed + len(events.durations)
    if not sums:
        raise RocpdError(f"no {what} in the selection")
    for kind, (calls, timed) in counts.items():
        reading.note_unsound(kind, calls - timed, calls)
    extra = len(TABLES[name].fields) - len(STATISTICS) - len(next(iter(next(iter(sums.values()))))) - 1
    rows = (row for key in sorted(sums, key=order_of) for row in _rows(key, sums[key], extra))
    return reading.summary(TABLES[name], rows)


def _rows(division: Key, sums: dict[Key, _Sum], extra: int) -> Iterator[Row]:
    """Rows of one division, most time first; `extra` columns behind: bytes, then bandwidth."""
    totals = {head: found.spread.moments.total for head, found in sums.items()}
    whole = sum(totals.values())
    for head in sorted(sums, key=lambda head: (-totals[head], order_of(head))):
        total, size = totals[head], sums[head].size
        rate = size / total * 1e9 / 2**30 if total else None
        percent = total * 100 / whole if whole else None
        yield (*division, *head, *statistics(sums[head].spread), percent, *(size, rate)[:extra])
