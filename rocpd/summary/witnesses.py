"""What speaks for and against a rank, step by step: how long it computed, how late it came. Pure: it reads nothing.

Ranks that run the same kernels equally often are peers. By chance each of `n` peers is first in one of `n` steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.matching import Clocks
from rocpd.summary.arrivals import arrivals
from rocpd.summary.periods import Periods, RankWork
from rocpd.trace.collectives import Group
from rocpd.types import Flags, Floats, Ints

_MANY = 32  # ranks, whose median hardly depends on one of them
_CUT = 1.25  # steps by whose kernels ranks that a window cuts may differ
_BLOCK = 1 << 21  # collectives times members in memory at once


@frozen
class Lateness:
    """How late ranks came to collectives with their peers, by period (row) and rank (column).

    Args:
        late: the sum of how much later than the mean of the members it came [ns].
        caused: how long others waited for it [ns].
        is_known: which ranks took part in any.
    """

    late: Floats
    caused: Floats
    is_known: Flags


@frozen
class Witness:
    """In how many periods each rank was the first of its peers in something; ties are shared.

    Args:
        first: in how many periods.
        expected: in how many by chance.
        chance: how likely that many are by chance alone, had one rank been looked at.
        excess: by how much it exceeds the median of its peers, the mean of all periods [ns].
    """

    first: Floats
    expected: Floats
    chance: Floats
    excess: Floats


def peers_of(works: Mapping[int, RankWork], periods: Periods) -> list[Ints]:
    """Return the columns of ranks that run the same kernels equally often in a step; one alone has no peer.

    A window cuts ranks at different kernels: there, what differs by no more than the kernels of a step is alike.
    """
    alike: list[tuple[RankWork, list[int]]] = []
    for column, rank in enumerate(periods.ranks):
        work = works[rank]
        columns = next((columns for first, columns in alike if _is_alike(first, work, len(periods))), None)
        if columns is None:
            alike.append((work, columns := []))
        columns.append(column)
    return [np.array(columns, np.int64) for _, columns in alike]


def _is_alike(work: RankWork, other: RankWork, steps: int) -> bool:
    counts = [(work.kernels.get(name, 0), other.kernels.get(name, 0)) for name in {*work.kernels, *other.kernels}]
    if work.is_cut or other.is_cut:
        return all(abs(a - b) * steps <= _CUT * max(a, b) for a, b in counts)
    return all(round(a / steps) == round(b / steps) for a, b in counts)


def lateness(
    groups: Sequence[Group], periods: Periods, peers: Sequence[Ints], clocks: Clocks, *, has_stages: bool
) -> Lateness:
    """Return how late ranks came to the collectives of groups of peers.

    Args:
        groups: channels of one communicator each.
        periods: the steps.
        peers: columns of ranks that do the same.
        clocks: which times of the ranks compare.
        has_stages: ranks pass work on to each other: in a group of all ranks the first stage comes last by nature.
    """
    shape = len(periods), len(periods.ranks)
    late, caused, is_known = np.zeros(shape), np.zeros(shape), np.zeros(shape[1], bool)
    kind = {periods.ranks[column]: number for number, columns in enumerate(peers) for column in columns.tolist()}
    for group in groups:
        ranks = [member.rank for member in group]
        if len({kind.get(rank, -1 - rank) for rank in ranks}) > 1 or (has_stages and set(ranks) == set(kind)):
            continue
        columns = np.array([periods.ranks.index(rank) for rank in ranks])
        is_known[columns] = True
        for numbers, at in _inside(group, periods):
            when = arrivals(group, clocks, numbers)
            later, waited = when.came - when.came.mean(0), when.shares * when.waits.sum(0)
            for row, column in enumerate(columns.tolist()):
                late[:, column] += np.bincount(at, later[row], shape[0])
                caused[:, column] += np.bincount(at, waited[row], shape[0])
    return Lateness(late, caused, is_known)


def _inside(group: Group, periods: Periods) -> Iterator[tuple[Ints, Ints]]:
    """Yield numbers of the collectives of a group that are in a period, and in which."""
    step = max(1, _BLOCK // len(group))
    at = periods.find(group[0].rank, group[0].start)
    numbers = np.flatnonzero(at >= 0)
    for low in range(0, len(numbers), step):
        yield numbers[low : low + step], at[numbers[low : low + step]]


def witness(values: Floats, peers: Sequence[Ints], is_known: Flags) -> Witness:
    """Return who was the first of its peers how often.

    Args:
        values: by period and rank: the larger, the worse.
        peers: columns of ranks that are compared.
        is_known: columns that are.
    """
    count, width = values.shape
    first, expected, chance = np.zeros(width), np.zeros(width), np.ones(width)
    excess = np.zeros(width)
    for every in peers:
        columns = every[is_known[every]]
        if len(columns) < 2:
            continue
        among = values[:, columns]
        is_first = among == among.max(1, keepdims=True)
        first[columns] = (is_first / is_first.sum(1, keepdims=True)).sum(0)
        expected[columns] = count / len(columns)
        usual = np.median(among, axis=1)
        for place, column in enumerate(columns.tolist()):
            chance[column] = at_least(math.floor(first[column] + 1e-9), count, 1 / len(columns))
            others = np.median(np.delete(among, place, axis=1), axis=1) if len(columns) <= _MANY else usual
            excess[column] = (among[:, place] - others).mean()
    return Witness(first, expected, chance, excess)


def at_least(times: int, trials: int, chance: float) -> float:
    """Return how likely something is to happen so many times or more.

    >>> at_least(0, 4, 0.5), at_least(4, 4, 0.5), at_least(3, 4, 0.5)
    (1.0, 0.0625, 0.3125)
    """
    if times <= 0:
        return 1.0
    total = 0.0
    for k in range(times, trials + 1):
        ways = math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        term = math.exp(ways + k * math.log(chance) + (trials - k) * math.log1p(-chance))
        total += term
        if k > trials * chance and term <= total * 1e-15:
            break
    return min(1.0, round(total, 15))
