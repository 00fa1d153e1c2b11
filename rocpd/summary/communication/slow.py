"""Collectives that are slow beside others of the same kernel, group and size: other traffic uses their links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from rocpd.base import amount, by_key, frozen
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.table.human import readable

RULE = "comm.slow"

LEAST_BYTES, FEWEST, OF_BEST = 1 << 20, 5, 0.4
"""The least size of compared collectives, as latency decides below it; their least number; the share of the best bus
bandwidth below which one is slow.
"""


class SizedCollective(NamedTuple):
    """A collective: kernel, ranks of its group, size [bytes], its own duration [ns], bus bandwidth [GB/s].

    Then its number among those of its kernel in the group; 0 where it is not used.
    """

    name: str | None
    group: str
    size: int
    time: int
    rate: float
    number: int = 0


@frozen
class SlowCollectives:
    """The slow collectives of a group.

    Args:
        slow: the slow ones.
        every: all that were compared.
        lost: the time that the slow ones take above the fastest ones of their size [ns].
    """

    slow: tuple[SizedCollective, ...]
    every: tuple[SizedCollective, ...]
    lost: int

    @property
    def worst(self) -> SizedCollective:
        """The slowest one."""
        return min(self.slow, key=lambda each: each.rate)

    def periods(self, count: int) -> list[int]:
        """Return the places of the steps with slow ones, of `count` steps, from 0; empty if steps have unequal ones."""
        slow: set[int] = set()
        for kind, alike in by_key((each[:3], each.number) for each in self.every).items():
            each_has, rest = divmod(len(alike), count) if count else (0, 0)
            if rest or not each_has:
                return []
            place = {number: at // each_has for at, number in enumerate(sorted(alike))}
            slow.update(place[each.number] for each in self.slow if each[:3] == kind)
        return sorted(slow)

    @property
    def text(self) -> str:
        """The sentence on the group."""
        worst = self.worst
        return (
            f"{len(self.slow)} of {len(self.every)} large collectives of ranks {worst.group} are slow: "
            f"{worst.rate:.0f} GB/s on the bus where the best of the same size ({readable(worst.size, 'bytes')}) have "
            "more than twice that"
        )

    @property
    def evidence(self) -> dict[str, object]:
        """The numbers behind the sentence."""
        lost = {"bus_gb_per_s": self.worst.rate, "lost_ns": self.lost}
        return {"slow": len(self.slow), "of": len(self.every), "group": self.worst.group, **lost}


def comparable(
    collectives: Iterable[SizedCollective], least: float = LEAST_BYTES, fewest: float = FEWEST
) -> list[list[SizedCollective]]:
    """Return groups of large collectives that are alike, if they have enough members."""
    large = ((each[:3], each) for each in collectives if each.size >= least)
    return [alike for alike in by_key(large).values() if len(alike) >= fewest]


def slow_groups(compared: Iterable[Sequence[SizedCollective]], share: float = OF_BEST) -> Iterator[SlowCollectives]:
    """Yield the groups with slow collectives, in the order of their names."""
    for _, of_group in sorted(by_key((alike[0].group, alike) for alike in compared).items()):
        slow, lost = [], 0
        for alike in of_group:
            best, fastest = max(each.rate for each in alike), min(each.time for each in alike)
            slower = [each for each in alike if each.rate < share * best]
            slow += slower
            lost += sum(each.time - fastest for each in slower)
        if slow:
            yield SlowCollectives(tuple(slow), tuple(chain.from_iterable(of_group)), lost)


def alike(groups: Iterable[SlowCollectives]) -> list[list[SlowCollectives]]:
    """Return groups together whose slow collectives have the same kernel and sizes, the largest loss first."""
    ordered = sorted(groups, key=lambda group: -group.lost)
    return list(
        by_key(((group.worst.name, frozenset(e.size for e in group.slow)), group) for group in ordered).values()
    )


def said_of(groups: Sequence[SlowCollectives]) -> tuple[str, dict[str, object]]:
    """Return the sentence on several groups, the largest loss first, and the numbers behind it."""
    worst, *others = groups
    more = f"; so are those of {amount(len(others), 'more group')}" if others else ""
    return f"{worst.text}{more}", {**worst.evidence, "groups": len(groups)}


def slow_collectives(collectives: Iterable[SizedCollective]) -> Iterator[Finding]:
    """Yield one sentence on slow collectives: on those of the group that loses most."""
    if groups := sorted(slow_groups(comparable(collectives)), key=lambda group: -group.lost):
        text, evidence = said_of(groups)
        yield Finding(text, RULE, Verdict.PROBLEM, Confidence.LIKELY, evidence=evidence)
