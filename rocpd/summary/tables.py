"""Owns the shape of the summary tables that AMD's users know: columns, order, percentages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.summary.domains import Group
from rocpd.trace.moments import Moments
from rocpd.types import Row

COLUMNS = (
    "Name",
    "Calls",
    "DURATION (nsec)",
    "AVERAGE (nsec)",
    "PERCENT (INC)",
    "MIN (nsec)",
    "MAX (nsec)",
    "STD_DEV",
)
"""Columns of every summary; `STD_DEV` is the sample deviation in ns, NULL for one call."""

BY_RANK = ("ProcessID", "Hostname")
"""Columns in front of a summary by rank."""


@dataclass(frozen=True)
class SummaryTable:
    """One summary: `name` as in file names (`kernels_summary`), rows sorted by time, longest first."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def table(name: str, groups: Iterable[Group]) -> SummaryTable:
    """Add groups of all ranks up by name; percentages are of the table's total time."""
    return SummaryTable(name, COLUMNS, tuple(_rows(groups)))


def table_by_rank(name: str, groups: Iterable[Group], session: Federation) -> SummaryTable:
    """One block per rank; percentages are of that rank's total time.

    A `Rank` column is added behind only where process and host do not tell the ranks apart.
    """
    pool: dict[int, list[Group]] = {}
    for group in groups:
        pool.setdefault(group.rank, []).append(group)
    ranks = session.ranks
    ambiguous = len({(rank.pid, rank.hostname) for rank in ranks}) < len(ranks)
    rows: list[Row] = []
    for rank in ranks:
        tail = (rank.number,) if ambiguous else ()
        rows += [(*_identity(rank), *row, *tail) for row in _rows(pool.get(rank.number, ()))]
    return SummaryTable(f"{name}_by_rank", (*BY_RANK, *COLUMNS, *(("Rank",) if ambiguous else ())), tuple(rows))


def _identity(rank: Rank) -> Row:
    return rank.pid, rank.hostname


def _rows(groups: Iterable[Group]) -> list[Row]:
    pool: dict[str | None, list[Moments]] = {}
    for group in groups:
        pool.setdefault(group.name, []).append(group.moments)
    sums = {name: _added(own) for name, own in pool.items()}
    whole = sum(moments.total for moments in sums.values())
    ordered = sorted(sums.items(), key=lambda item: (-item[1].total, item[0] or ""))
    return [
        (name, m.calls, m.total, m.mean, m.total * 100 / whole if whole else None, m.shortest, m.longest, m.deviation)
        for name, m in ordered
    ]


def _added(own: Sequence[Moments]) -> Moments:
    """Add up field by field: 16 ranks one by one take 6 times as long."""
    if len(own) == 1:
        return own[0]
    timed = [m for m in own if m.timed]
    return Moments(
        sum(m.calls for m in own),
        sum(m.timed for m in timed),
        sum(m.total for m in timed),
        min((m.shortest for m in timed if m.shortest is not None), default=None),
        max((m.longest for m in timed if m.longest is not None), default=None),
        sum(m.squares for m in timed),
    )
