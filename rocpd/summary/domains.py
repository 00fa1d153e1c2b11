"""Owns statistics by rank, category and name, sorted into domains: what AMD's summary tables are made of."""

from __future__ import annotations

from typing import NamedTuple

from rocpd.summary.labels import KINDS, EventsByGroup, totals_by_label
from rocpd.summary.reading import RankReading, Reading
from rocpd.summary.spread import moments_by_group
from rocpd.trace.categories import domain_of
from rocpd.trace.moments import Moments


class Group(NamedTuple):
    """Statistics of the events of one rank with one category and name."""

    rank: int
    category: str | None
    name: str | None
    moments: Moments


def groups_by_domain(reading: Reading) -> dict[str, list[Group]]:
    """Read all groups of a session and sort them into domains, most time first."""
    by_kind: dict[str, list[Group]] = {kind: [] for kind in KINDS}
    for _, of_rank in reading.each(_of_rank):
        for kind, groups in of_rank.items():
            by_kind[kind] += groups
    domains: dict[str, list[Group]] = {}
    for kind, groups in by_kind.items():
        calls = sum(group.moments.calls for group in groups)
        reading.note_invalid(kind, calls - sum(group.moments.timed for group in groups), calls)
        for group in groups:
            domains.setdefault(domain_of(group.category), []).append(group)
    return dict(sorted(domains.items(), key=lambda item: (-sum(g.moments.total for g in item[1]), item[0])))


def _of_rank(mine: RankReading) -> dict[str, list[Group]]:
    """Read the groups of one rank, by kind of events."""
    return {
        kind: [
            Group(mine.rank.number, label.category, label.name, moments)
            for label, moments in totals_by_label(mine, kind, _moments).items()
        ]
        for kind in KINDS
    }


def _moments(events: EventsByGroup) -> list[Moments]:
    return moments_by_group(events.durations, events.first)


def domain_groups(domains: dict[str, list[Group]]) -> list[Group]:
    """Return one group per rank and domain, named by the domain: moments are merged, never averages."""
    return [
        Group(group.rank, group.category, domain, group.moments)
        for domain, groups in domains.items()
        for group in groups
    ]
