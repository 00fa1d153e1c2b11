"""Owns which communicator a communication kernel worked for, as the API calls of its rank say.

The kernel's launch lies inside an RCCL call of the same thread; that call's argument `comm` is the communicator.
Calls inside ncclGroupStart and ncclGroupEnd launch at the end of the group: it is known when all name the same one.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rocpd.federate.run.rank_reader import RankReader
from rocpd.types import Ints

_ARGS = """
SELECT event_id, name, value FROM rocpd_arg
WHERE name IN ('comm', 'newcomm', 'nranks') AND EXISTS (SELECT 1 FROM rocpd_string WHERE string GLOB 'nccl*')"""
_CALLS = """
SELECT R.event_id, R.tid, R.start, R."end", S.string FROM rocpd_region R
LEFT JOIN rocpd_string S ON S.id = R.name_id
WHERE R.event_id IN (SELECT value FROM json_each(?)) OR S.string IN ('ncclGroupStart', 'ncclGroupEnd')
ORDER BY R.start, R.id"""
_STACKS = """
SELECT K.id, E.stack_id FROM rocpd_kernel_dispatch K JOIN rocpd_event E ON E.id = K.event_id
WHERE E.stack_id > 0 AND K.id IN (SELECT value FROM json_each(?))"""
_LAUNCHES = """
SELECT E.stack_id, R.tid, R.start FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
WHERE E.stack_id IN (SELECT value FROM json_each(?)) ORDER BY R.start DESC"""


@dataclass
class _Thread:
    """The RCCL calls of one thread in order: when they begin and end, and the communicator."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    communicators: list[str | None] = field(default_factory=list)
    depth: int = 0  # groups around the next call
    grouped: set[str] = field(default_factory=set)

    def add(self, start: int, end: int, name: str | None, communicator: str | None) -> None:
        """Add a call, in order; the end of a group has the communicator of all calls of the group."""
        if name == "ncclGroupStart":
            self.grouped = self.grouped if self.depth else set()
            self.depth += 1
        elif name == "ncclGroupEnd":
            self.depth = max(0, self.depth - 1)
            communicator = next(iter(self.grouped)) if len(self.grouped) == 1 else None
        elif communicator:
            self.grouped.add(communicator)
        self.starts.append(start)
        self.ends.append(end)
        self.communicators.append(communicator)

    def at(self, time: int) -> str | None:
        """Give the communicator of the call that is running."""
        place = bisect_right(self.starts, time) - 1
        return self.communicators[place] if place >= 0 and time <= self.ends[place] else None


def communicators(reader: RankReader, kernels: Ints) -> tuple[dict[int, str], dict[str, int]]:
    """Give dispatch -> its communicator, where known, and communicator -> how many ranks it has, where known."""
    arguments: dict[int, dict[str, str]] = {}
    for event, name, value in reader.rows(_ARGS):
        arguments.setdefault(event, {})[name] = value
    named = {event: own["comm"] for event, own in arguments.items() if own.get("comm")}
    if not named or not len(kernels):
        return {}, {}
    threads = _threads(reader, named)
    stacks: dict[int, int] = dict(reader.rows(_STACKS, (json.dumps(kernels.tolist()),)))
    launches = reader.rows(_LAUNCHES, (json.dumps(sorted(set(stacks.values()))),))
    launched = {stack: threads[tid].at(start) for stack, tid, start in launches if tid in threads}
    found = {kernel: launched.get(stack) for kernel, stack in stacks.items()}
    return {kernel: name for kernel, name in found.items() if name}, _sizes(arguments.values())


def _threads(reader: RankReader, named: Mapping[int, str]) -> dict[int | None, _Thread]:
    threads: dict[int | None, _Thread] = {}
    for event, tid, start, end, name in reader.rows(_CALLS, (json.dumps(list(named)),)):
        threads.setdefault(tid, _Thread()).add(start, end, name, named.get(event))
    return threads


def _sizes(calls: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Give how many ranks communicators have, as the calls say that made them."""
    found = {}
    for own in calls:
        made = own.get("newcomm") or own.get("comm")
        if made and str(own.get("nranks", "")).isdigit():
            found[made] = int(own["nranks"])
    return found
