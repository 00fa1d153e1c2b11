"""Owns statistics by rank, category and name, sorted into domains: what AMD's summary tables are made of."""

from __future__ import annotations

from typing import NamedTuple

from rocpd.summary.reading import RankReading, Reading
from rocpd.summary.spread import moments_by_group
from rocpd.summary.survey import KINDS, Grouped, survey
from rocpd.trace.categories import domain_of
from rocpd.trace.moments import Moments

__all__ = ["Group", "domain_groups", "domain_of", "groups_by_domain"]


class Group(NamedTuple):
    """Statistics of the events of one rank with one category and name."""

    rank: int
    category: str | None
    name: str | None
    moments: Moments


def groups_by_domain(reading: Reading) -> dict[str, list[Group]]:
    """Read all groups of a session and sort them into domains, most time first."""
    found: dict[str, list[list[Group]]] = {kind: [] for kind in KINDS}
    for _, kinds in reading.each(_one):
        for kind, groups in kinds.items():
            found[kind].append(groups)
    domains: dict[str, list[Group]] = {}
    for kind, ranks in found.items():
        groups = [group for own in ranks for group in own]
        calls = sum(group.moments.calls for group in groups)
        reading.note_invalid(kind, calls - sum(group.moments.timed for group in groups), calls)
        for group in groups:
            domains.setdefault(domain_of(group.category), []).append(group)
    return dict(sorted(domains.items(), key=lambda item: (-sum(g.moments.total for g in item[1]), item[0])))


def _one(mine: RankReading) -> dict[str, list[Group]]:
    """Read the groups of one rank, by kind of events."""
    found = {}
    for kind in KINDS:
        sums = survey(mine, kind, _moments)
        found[kind] = [Group(mine.rank.number, label.category, label.name, own) for label, own in sums.items()]
    return found


def _moments(events: Grouped) -> list[Moments]:
    return moments_by_group(events.durations, events.first)


def domain_groups(found: dict[str, list[Group]]) -> list[Group]:
    """Give one group per rank and domain, named by the domain: moments are merged, never averages."""
    return [
        Group(group.rank, group.category, domain, group.moments) for domain, groups in found.items() for group in groups
    ]
