"""Clock domains: which ranks share a clock, and how different clocks are aligned on one time line.

Timestamps in SQL stay as recorded; only windows, summaries over time and exports shift them. Never estimates drift.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.trace.tables import POINTS, SPANS
from rocpd.trace.times import VALID_POINT, VALID_TIMES

if TYPE_CHECKING:
    from rocpd.federate.open.identify import Rank  # imports apsw, and help needs `Align`


class Align(enum.StrEnum):
    """How ranks are aligned on one time line."""

    AUTO = "auto"
    NONE = "none"
    START = "start"


@frozen
class Span:
    """First start and last end of the events of a rank with valid times [ns of its own clock]."""

    start: int
    end: int


@frozen
class Domain:
    """Ranks of one machine whose spans overlap: their timestamps compare. `start` and `end` in ns."""

    machine_id: str | None
    ranks: tuple[int, ...]
    start: int
    end: int


@frozen
class TimeLine:
    """All ranks on one time line: first start and last end [ns], and what is added to each rank's times [ns]."""

    start: int
    end: int
    offsets: Mapping[int, int]

    @classmethod
    def of(cls, spans: Mapping[int, Span], offsets: Mapping[int, int]) -> TimeLine | None:
        """Return the time line of ranks with these spans; None without events."""
        if not spans:
            return None
        starts = [span.start + offsets[rank] for rank, span in spans.items()]
        return cls(min(starts), max(span.end + offsets[rank] for rank, span in spans.items()), offsets)


@frozen
class Alignment:
    """What to add to the timestamps of each rank [ns], and a note for the user; None where nothing was aligned."""

    offsets: Mapping[int, int]
    note: str | None = None


SPAN = (
    "SELECT MIN(first), MAX(last) FROM ("
    + " UNION ALL ".join(
        [f'SELECT MIN(start) AS first, MAX("end") AS last FROM {base} WHERE {VALID_TIMES}' for base in SPANS]
        + [f'SELECT MIN("timestamp"), MAX("timestamp") FROM {base} WHERE {VALID_POINT}' for base in POINTS]
    )
    + ")"
)
"""SELECT of the span of a rank: first start, last end of its events with valid times; NULLs without events."""


def clock_domains(ranks: Sequence[Rank], spans: Mapping[int, Span]) -> tuple[Domain, ...]:
    """Group ranks into clock domains: one machine, spans that overlap (touching counts), ordered by start.

    A rank whose machine is unknown is a domain of its own; a rank without events belongs to none.
    """
    domains: list[Domain] = []
    for rank in sorted((r for r in ranks if r.number in spans), key=lambda r: (spans[r.number].start, r.number)):
        span = spans[rank.number]
        last = next((d for d in reversed(domains) if d.machine_id == rank.machine_id), None)
        if last and rank.machine_id is not None and span.start <= last.end:
            grown = Domain(last.machine_id, (*last.ranks, rank.number), last.start, max(last.end, span.end))
            domains[domains.index(last)] = grown
        else:
            domains.append(Domain(rank.machine_id, (rank.number,), span.start, span.end))
    return tuple(domains)


def align(how: Align, domains: Sequence[Domain], spans: Mapping[int, Span]) -> Alignment:
    """Return the offset of each rank [ns].

    `auto` moves each domain so that its first event coincides with the earliest of all; offsets within a domain stay.
    `start` does the same with every rank. `none` keeps times as recorded.
    """
    if how is Align.NONE or len(spans) < 2 or (how is Align.AUTO and len(domains) < 2):
        return Alignment(dict.fromkeys(spans, 0))
    base = min(span.start for span in spans.values())
    if how is Align.START:
        offsets = {number: base - span.start for number, span in spans.items()}
        return Alignment(offsets, f"time: {len(spans)} ranks aligned at their first event (--align start)")
    offsets = {number: base - domain.start for domain in domains for number in domain.ranks}
    return Alignment(
        offsets,
        f"time: {len(domains)} clock domains aligned at their first event; --align none keeps times as recorded",
    )


def fixed_offsets(shifts: Mapping[str, int], ranks: Sequence[Rank]) -> Alignment:
    """Return the offsets that the user gives: host -> what is added to its times [ns]; other hosts keep theirs.

    Raises:
        UsageError: a host that no rank ran on.
    """
    hosts = {rank.hostname for rank in ranks}
    for host in shifts:
        if host not in hosts:
            known = ", ".join(sorted(str(name) for name in hosts))
            raise UsageError(f"clock offset for {host}: no rank ran there", f"hosts: {known}")
    listed = ", ".join(f"{host} {shift:+d} ns" for host, shift in shifts.items())
    return Alignment(
        {rank.number: shifts.get(rank.hostname or "", 0) for rank in ranks}, f"time: clocks shifted by {listed}"
    )
