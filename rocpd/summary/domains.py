"""Owns statistics by rank, category and name, sorted into domains: what AMD's summary tables are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from rocpd.federate.categories import domain_of
from rocpd.federate.moments import Moments
from rocpd.summary.reading import Progress, Reading
from rocpd.summary.spread import moments_of
from rocpd.summary.survey import KINDS, survey

__all__ = ["Group", "domain_groups", "domain_of", "groups_by_domain"]


@dataclass(frozen=True)
class Group:
    """Statistics of the events of one rank with one category and name."""

    rank: int
    category: str | None
    name: str | None
    moments: Moments


def groups_by_domain(reading: Reading, progress: Progress | None = None) -> dict[str, list[Group]]:
    """Read all groups of a session and sort them into domains, most time first.

    `progress` is called with (steps done, steps in all); a step is one kind of events of one rank.
    """
    found: dict[str, list[Group]] = {}
    done = 0
    ranks = reading.session.ranks
    for kind in KINDS:
        groups: dict[tuple[int, str | None, str | None], Moments] = {}
        for rank in ranks:
            for events in survey(reading, rank, kind):
                key = (rank.number, events.category, events.name)
                groups[key] = groups.get(key, Moments()) + moments_of(events.durations, events.calls)
            done += 1
            if progress:
                progress(done, len(KINDS) * len(ranks))
        _note_unsound(reading, kind, groups.values())
        for (number, category, name), moments in groups.items():
            found.setdefault(domain_of(category), []).append(Group(number, category, name, moments))
    return dict(sorted(found.items(), key=lambda item: (-sum(g.moments.total for g in item[1]), item[0])))


def _note_unsound(reading: Reading, kind: str, groups: Iterable[Moments]) -> None:
    whole = sum(groups, Moments())
    reading.note_unsound(kind, whole.calls - whole.timed, whole.calls)


def domain_groups(found: dict[str, list[Group]]) -> list[Group]:
    """Give one group per rank and domain, named by the domain: moments are merged, never averages."""
    return [dataclasses.replace(group, name=domain) for domain, groups in found.items() for group in groups]
