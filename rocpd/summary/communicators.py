"""Finds the communicator that a communication kernel worked for, as the API calls of its rank name it.

The call that launched the kernel lies inside an RCCL call of the same thread, whose argument `comm` is the
communicator. Calls between ncclGroupStart and ncclGroupEnd launch at the end of the group: the communicator is known
when all of them name the same one.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rocpd.federate.run.rank_reader import RankReader
from rocpd.read.columns import number
from rocpd.trace.launch import launching_regions
from rocpd.types import Ints

_ARGS = """
SELECT event_id, name, value FROM rocpd_arg
WHERE name IN ('comm', 'newcomm', 'nranks') AND EXISTS (SELECT 1 FROM rocpd_string WHERE string GLOB 'nccl*')"""
_RCCL_CALLS = """
SELECT R.event_id, R.tid, R.start, R."end", S.string FROM rocpd_region R
LEFT JOIN rocpd_string S ON S.id = R.name_id
WHERE R.event_id IN (SELECT value FROM json_each(?)) OR S.string IN ('ncclGroupStart', 'ncclGroupEnd')
ORDER BY R.start, R.id"""
_STACKS = """
SELECT K.id, E.stack_id FROM rocpd_kernel_dispatch K JOIN rocpd_event E ON E.id = K.event_id
WHERE E.stack_id > 0 AND K.id IN (SELECT value FROM json_each(?))"""
_CALLS = """
SELECT E.stack_id, R.start, R."end", R.tid FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
WHERE E.stack_id IN (SELECT value FROM json_each(?)) ORDER BY R.id"""


@dataclass
class _Thread:
    """The RCCL calls of one thread in order: start, end [ns] and communicator."""

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
        """Return the communicator of the call that is running at a time [ns]."""
        call = bisect_right(self.starts, time) - 1
        return self.communicators[call] if call >= 0 and time <= self.ends[call] else None


def communicators(reader: RankReader, kernels: Ints) -> tuple[dict[int, str], dict[str, int]]:
    """Return dispatch -> communicator and communicator -> number of its ranks, each as far as it is known."""
    arguments: dict[int, dict[str, str]] = {}
    for event, name, value in reader.rows(_ARGS):
        arguments.setdefault(event, {})[name] = value
    named = {event: of_call["comm"] for event, of_call in arguments.items() if of_call.get("comm")}
    if not named or not len(kernels):
        return {}, {}
    threads = _threads(reader, named)
    stacks: dict[int, int] = dict(reader.rows(_STACKS, (json.dumps(kernels.tolist()),)))
    calls = reader.rows(_CALLS, (json.dumps(sorted(set(stacks.values()))),))
    stack, start, end = (np.array([number(row[column]) for row in calls], np.int64) for column in range(3))
    launcher = launching_regions(stack, start, end, np.array(list(stacks.values()), np.int64))
    launched = {kernel: calls[call] for kernel, call in zip(stacks, launcher.tolist(), strict=True) if call >= 0}
    names = {kernel: threads[tid].at(time) for kernel, (_, time, _, tid) in launched.items() if tid in threads}
    return {kernel: name for kernel, name in names.items() if name}, _sizes(arguments.values())


def _threads(reader: RankReader, named: Mapping[int, str]) -> dict[int | None, _Thread]:
    threads: dict[int | None, _Thread] = {}
    for event, tid, start, end, name in reader.rows(_RCCL_CALLS, (json.dumps(list(named)),)):
        threads.setdefault(tid, _Thread()).add(start, end, name, named.get(event))
    return threads


def _sizes(calls: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Return communicator -> number of its ranks, from the arguments of the calls that made it."""
    sizes = {}
    for arguments in calls:
        communicator = arguments.get("newcomm") or arguments.get("comm")
        if communicator and str(arguments.get("nranks", "")).isdigit():
            sizes[communicator] = int(arguments["nranks"])
    return sizes
