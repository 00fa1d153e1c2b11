"""Compares the calls of the host: their number by function of HIP, CUDA or RCCL in a unit, and their duration.

Calls of HSA lie inside those of HIP, and are left out.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import NULL, Ints, by_key
from rocpd.facts.agent_time import HOST, AgentTime, History, cause_code
from rocpd.facts.columns import first_of, grouped, numbered, per_id
from rocpd.facts.places import key_of_place, places_at
from rocpd.facts.rank import By, RankReading
from rocpd.facts.regions import HostCall, host_call
from rocpd.schema.rules.categories import domain_of
from rocpd.schema.rules.steps import folded
from rocpd.table.human import readable

_DOMAINS = ("HIP", "CUDA", "RCCL")
_POLLS = re.compile(r"\w+(Query|GetAsyncError)(_spt)?")  # repeated until the GPU is ready: any number of times
_OTHER_NUMBER, _LEAST_CALLS = 0.05, 0.5  # share of the calls of the base; calls per unit
_OTHER_LENGTH = 1.5  # times as long
_WAITS = [*HostCall].index(HostCall.SYNCHRONISE)

LEAST_TIME = 0.01
"""Least share of a unit by which calls change for a sentence on them."""

Function: TypeAlias = tuple[str, str, str]
"""Name and category of a function, and the place of its calls if they wait for the GPU: elsewhere it is another one."""


def read_calls(reading: RankReading, history: History, edges: Ints) -> tuple[list[Function], Ints]:
    """Return the functions that a rank calls, and their calls that start between edges [ns].

    Returns:
        functions; `[unit, function, 0]`: number of calls, `[unit, function, 1]`: sum of their durations [ns].
    """
    regions, texts = history.regions, history.names.texts
    low, high = np.searchsorted(regions.start, edges[[0, -1]]).tolist()  # regions are in the order of their starts
    is_its = per_id(regions.category[low:high], lambda category: int(domain_of(texts[category]) in _DOMAINS))
    rows = low + np.flatnonzero(is_its)
    places, place = _places_of(reading, history, rows)
    keys = regions.name[rows], regions.category[rows], place
    function = numbered(*keys)
    first = first_of(function)
    names = zip(*(key[first].tolist() for key in keys), strict=True)
    shape = len(edges) - 1, len(first)
    cell = (np.searchsorted(edges, regions.start[rows], side="right") - 1) * shape[1] + function
    calls = np.bincount(cell, minlength=math.prod(shape))
    time = np.bincount(cell, regions.end[rows] - regions.start[rows], len(calls)).astype(np.int64)
    called = np.stack([calls.reshape(shape), time.reshape(shape)], axis=2)
    return [(texts[name] or "", texts[category] or "", places[at]) for name, category, at in names], called


def _places_of(reading: RankReading, history: History, rows: Ints) -> tuple[list[str], Ints]:
    """Return the places of calls that wait for the GPU, and for each of some calls the number of its place; 0: none."""
    regions, texts = history.regions.take(rows), history.names.texts
    order = np.argsort(regions.thread, kind="stable")
    follow = (regions.thread[order][1:] == regions.thread[order][:-1]).nonzero()[0]
    before, after = np.full((2, len(rows)), NULL)
    before[order[follow + 1]], after[order[follow]] = regions.name[order[follow]], regions.name[order[follow + 1]]
    waits = (history.calls[rows] == _WAITS).nonzero()[0]
    paths, path = places_at(reading, By.MARKER, regions.thread[waits], regions.start[waits])
    number = np.zeros(len(rows), np.int64)
    number[waits] = numbered(path, before[waits], after[waits]) + 1
    said = [""]
    for row in waits[first_of(number[waits] - 1)].tolist():
        marker, around = key_of_place(paths[path[np.searchsorted(waits, row)]])[0], (before[row], after[row])
        parts = [f"in {marker}" if marker else "outside of markers"]
        parts += [f"{how} {texts[name]}" for how, name in zip(("after", "before"), around, strict=True) if name != NULL]
        said.append(", ".join(parts))
    return said, number


def host_work(
    history: History, spent: Iterable[tuple[Ints, AgentTime]], count: int, agents: int
) -> tuple[list[Function], Ints]:
    """Return the markers in which the host works while agents wait for it, in the form of functions of `read_calls`.

    Args:
        history: history of the rank.
        spent: time of each agent, and the unit of each of its pieces, from 0.
        count: number of units.
        agents: number of agents; times are the mean of them.
    """
    times: dict[str, Ints] = {}
    for unit, pieces in spent:
        waits = ((pieces.cause == cause_code(HOST)) & (pieces.what != NULL)).nonzero()[0]
        for (what,), some in grouped([pieces.what[waits]]):
            name, rows = f"{HOST} in {folded(history.names.texts[what] or '?')}", waits[some]
            np.add.at(times.setdefault(name, np.zeros(count, np.int64)), unit[rows], pieces.length[rows])
    time = np.array([*times.values()], np.int64).reshape(-1, count).T // agents
    return [(name, HOST, "") for name in times], np.stack([np.ones_like(time), time], axis=2)


class CallUse(NamedTuple):
    """The calls of a function, per unit and rank.

    Args:
        name, category: of the function.
        calls: number of calls.
        time: sum of their durations [ns].
        place: place of calls that wait for the GPU; empty for others, and in baselines of older versions.
    """

    name: str
    category: str
    calls: float
    time: float
    place: str = ""


def mean_calls(ranks: Iterable[tuple[Sequence[Function], Ints]]) -> tuple[CallUse, ...]:
    """Return the calls of a unit on average of the ranks that recorded some, given as `read_calls` returns them."""
    recorded = [(functions, called.mean(0).tolist()) for functions, called in ranks if len(functions)]
    means = defaultdict[Function, list[float]](lambda: [0.0, 0.0])
    for function, (calls, time) in (each for of_rank in recorded for each in zip(*of_rank, strict=True)):
        means[function][0] += calls / len(recorded)
        means[function][1] += time / len(recorded)
    return tuple(CallUse(of[0], of[1], means[of][0], means[of][1], of[2]) for of in sorted(means))


def is_other_number(before: float, after: float) -> bool:
    """Whether numbers of calls in a unit differ enough for a sentence."""
    return abs(after - before) >= max(_LEAST_CALLS, _OTHER_NUMBER * before)


def numbers_said(before: float, after: float) -> str:
    """Return numbers of calls in a unit in words.

    >>> numbers_said(0.25, 12.0)
    '0.2 -> 12'
    """
    return f"{round(before, 1):g} -> {round(after, 1):g}"


class CallDifference(NamedTuple):
    """The calls of a function on both sides, per unit and rank.

    Args:
        name: name of the function.
        calls: numbers of calls.
        lengths: mean duration of a call [ns]; None: there are no calls.
        change: change of the time of all of them [ns].
        is_other_number, is_other_length: whether this differs enough for a sentence.
        is_host_work: whether it is no function, but work of the host in a marker while GPUs wait for it.
        place: place of calls that wait for the GPU and are made more or less often.
    """

    name: str
    calls: tuple[float, float]
    lengths: tuple[float | None, float | None]
    change: float
    is_other_number: bool
    is_other_length: bool
    is_host_work: bool
    place: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether a sentence on it is worthwhile."""
        return self.is_other_number or self.is_other_length

    def said(self, each: str) -> str:
        """Return the change in words; `each`: unit with its article."""
        lengths = " -> ".join(readable(length, "ns") for length in self.lengths)
        parts = [f"{numbers_said(*self.calls)} calls {each}"] * self.is_other_number + [
            f"{lengths} a call"
        ] * self.is_other_length
        if self.is_host_work:
            return f"{self.name}: GPUs wait {lengths} {each} for it"
        cost = f"{readable(abs(self.change), 'ns')} {'more' if self.change > 0 else 'less'}"
        place = f"; {self.place}" if self.place and self.is_other_number else ""
        return f"{self.name}: {', '.join(parts)}, {cost} of the host's time {each}{place}"


_Side: TypeAlias = Sequence[Sequence[CallUse]]


def compare_calls(base: _Side, new: _Side, unit_ns: float, *, is_counted: bool) -> list[CallDifference]:
    """Return the differences of calls, the largest change of time first; empty if one side recorded none.

    A function that one side lacks counts as never called there if others of its category are.

    Args:
        base, new: the calls of each run.
        unit_ns: time of a unit of the base, which decides what matters [ns].
        is_counted: whether numbers of calls compare, as those of equal units do.
    """
    recorded = [[run for run in runs if run] for runs in (base, new)]
    uses = [by_key((use.name, use) for run in runs for use in run) for runs in recorded]
    counts = [len(runs) for runs in recorded]
    sides = [{name: _mean(some, runs) for name, some in each.items()} for each, runs in zip(uses, counts, strict=True)]
    shared = set.intersection(*({use.category for use in side.values()} for side in sides))
    rows = []
    for name in sorted({**sides[0], **sides[1]}):
        known = [side[name] for side in sides if name in side]
        if len(known) == len(sides) or known[0].category in shared:
            absent = CallUse(*known[0][:2], 0.0 if known[0].category != HOST else 1.0, 0.0)
            row = _difference(sides[0].get(name, absent), sides[1].get(name, absent), unit_ns, is_counted)
            rows.append(row._replace(place=_where([each.get(name, []) for each in uses], counts)))
    return sorted(rows, key=lambda row: -abs(row.change))


def _mean(uses: Sequence[CallUse], runs: int) -> CallUse:
    """Return the mean of the calls of a function in so many runs."""
    return uses[0]._replace(calls=sum(use.calls for use in uses) / runs, time=sum(use.time for use in uses) / runs)


def _where(uses: Sequence[Sequence[CallUse]], runs: Sequence[int]) -> str:
    """Return the place with the largest change of the number of calls in its direction; empty if it has none.

    Args:
        uses: calls of the function on each side.
        runs: number of runs of each side.
    """
    changes = defaultdict[str, float](float)
    for sign, of_side, count in zip((-1, 1), uses, runs, strict=True):
        for use in of_side:
            changes[use.place] += sign * use.calls / count
    is_more = sum(changes.values()) > 0
    place = max(sorted(changes), key=lambda place: changes[place] if is_more else -changes[place], default="")
    return "" if "" in changes else place if abs(sum(changes.values())) <= abs(changes[place]) else f"most {place}"


def _difference(base: CallUse, new: CallUse, unit_ns: float, is_counted: bool) -> CallDifference:
    """Return the difference of calls; for calls that wait for the GPU, only the number counts, not the duration."""
    change = new.time - base.time
    lengths = tuple(use.time / use.calls if use.calls else None for use in (base, new))
    waits = host_call(base.name, base.category) is HostCall.SYNCHRONISE
    of_host = base.category == HOST  # no calls: numbers are those of ranks with such work
    is_number_said = is_counted and is_other_number(base.calls, new.calls) and not of_host
    is_number_said = is_number_said and not _POLLS.fullmatch(base.name)
    known = sorted(length for length in lengths if length is not None)
    differs = len(known) == len(lengths) and known[1] >= _OTHER_LENGTH * known[0]
    is_other_length = differs and not waits and abs(change) >= LEAST_TIME * unit_ns
    counts = base.calls, new.calls
    return CallDifference(base.name, counts, (lengths[0], lengths[1]), change, is_number_said, is_other_length, of_host)
