"""Reads where clocks meet: the collectives of a job in which ranks with different clocks took part, and exchanges.

Two ranks that send to and receive from each other in one kernel each wait for each other as in a collective. Where
ranks of two clocks meet in no other way, a sender is taken to wait for its receiver, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import NULL, Flags, Ints
from rocpd.base.stages import Stage
from rocpd.facts.communication.collectives import Channel, CommunicationKernels, match
from rocpd.facts.communication.communicators import Communication, communication, communication_of
from rocpd.facts.communication.program_order import sends
from rocpd.facts.communication.rccl import SENDRECV, Transfer, Waits
from rocpd.facts.communication.transfers import match_transfers
from rocpd.federate.job import Job
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.clocks import (
    ClockJump,
    ClockLine,
    ContradictionError,
    Meetings,
    align_clocks,
    align_set_clock,
    line_between,
)
from rocpd.schema.rules.events import SPANS

_NOTHING = Transfer(SENDRECV)
_NOBODY = np.empty(0, np.int64)
_LATEST = np.iinfo(np.int64).max


MEETING_RANKS = "members"
"""The key under which a job keeps the results of `times_of_meetings`, for code that reads them with other facts."""

_CLOCK_BYTES = 1 << 20  # of a file: its collectives are read in 2 ms


def clock_lines(job: Job, clocks: Mapping[int, int]) -> Sequence[ClockLine | ClockJump | None]:
    """Return the line of each clock of a job against one of them, by all collectives; None where these don't suffice.

    Args:
        job: the ranks.
        clocks: rank -> number of its clock, from 0.

    Raises:
        ContradictionError: no clocks that run evenly agree with the collectives.
    """
    count = len(set(clocks.values()))
    members = [each for of_rank in job.used_up(MEETING_RANKS, partial(_read, job)) for each in of_rank]
    kinds = [kind for kind in meetings_by_kind(members, clocks, count) if len(kind.ended)]
    lines = _agreeing(kinds) if kinds else (None,) * count
    if None in lines:
        with contextlib.suppress(ContradictionError):  # where a sender does not wait for the receiver, nothing is known
            if sent := [kind for kind in _transfers_by_kind(members, clocks, count) if len(kind.ended)]:
                lines = _agreeing([*kinds, *sent])
    if any(lines):
        return [_placed(line, number, job, clocks) for number, line in enumerate(lines)]
    groups, lost = match((each.channel for each in members), clocks)
    are_whole = not lost and all(group[0].size == len(group) for group in groups)
    if not are_whole and len({clocks.get(each.channel.rank) for each in members} - {None}) > 1:
        raise ContradictionError
    return (None,) * count


def _placed(
    line: ClockLine | ClockJump | None, clock: int, job: Job, clocks: Mapping[int, int]
) -> ClockLine | ClockJump | None:
    """Return a line with its jump, if any, moved to where the events of its ranks show it."""
    if not isinstance(line, ClockLine) or not line.jump:
        return line
    ranks = tuple(rank for rank in job.ranks if clocks.get(rank.number) == clock)
    read = partial(_times_within, within=line.jump.within)
    times = [of_rank for _, of_rank in job.of_ranks(ranks, keep_alignment=False).map_ranks(read)]
    jump = line.jump.at_gap(np.concatenate(times))
    certain = None if line.certain_ns is None else line.certain_ns + line.jump.jump_ns - jump.jump_ns
    return replace(line, jump=jump, certain_ns=certain)


def _times_within(reader: RankReader, within: tuple[int, int]) -> Ints:
    """Return starts and ends of the events of a rank between two times [ns]."""
    sql = " UNION ALL ".join(
        f'SELECT "{side}" FROM {base} WHERE "{side}" BETWEEN ?1 AND ?2' for base in SPANS for side in ("start", "end")
    )
    return np.array([time for (time,) in reader.whole().rows(sql, within)], np.int64)


def _agreeing(kinds: Sequence[Meetings]) -> Sequence[ClockLine | ClockJump | None]:
    """Return lines that agree with all kinds of collectives, else with most: some ranks may be no group.

    Where too few kinds agree, one of the clocks may have been set.

    Raises:
        ContradictionError: the collectives that agree cover less than half of the time.
    """
    try:
        return align_clocks(_joined(kinds))
    except ContradictionError as error:
        contradiction = error
    lines: Sequence[ClockLine | None] = ()
    taken: list[Meetings] = []
    for kind in sorted(kinds, key=_spread):
        try:
            lines = align_clocks(_joined([*taken, kind]))
        except ContradictionError:
            continue
        taken.append(kind)
    if not taken or (_length(_joined(taken)) < _length(_joined(kinds)) / 2).any():
        return align_set_clock(_joined(kinds), contradiction.clocks)
    return lines


def _joined(kinds: Sequence[Meetings]) -> Meetings:
    return Meetings(*(np.concatenate([getattr(kind, side) for kind in kinds]) for side in ("entered", "left", "ended")))


def _length(meetings: Meetings) -> Ints:
    """Return the time from the first to the last meeting of each clock [ns]."""
    first = np.where(meetings.ended == NULL, _LATEST, meetings.ended).min(0)
    lengths: Ints = np.maximum(meetings.ended.max(0) - first, 0)
    return lengths


def _spread(meetings: Meetings) -> float:
    """Return the median distance of ends of collectives on two clocks from a line [ns]."""
    seen = meetings.ended != NULL
    first = int(seen.sum(0).argmax())
    second = int((seen & seen[:, first, None]).sum(0)[np.arange(seen.shape[1]) != first].argmax())
    times = meetings.ended[seen[:, first] & seen[:, second + (second >= first)]]
    by_first, by_second = (times[:, clock] - times[0, clock] for clock in (first, second + (second >= first)))
    return line_between(by_first.astype(np.float64), by_second.astype(np.float64)).spread


def _read(job: Job) -> list[list[Communication]]:
    of_ranks = job.map_ranks(times_of_meetings, brief_bytes=_CLOCK_BYTES)
    return [of_rank for _, of_rank in job.counted(Stage.FIRST, of_ranks)]


def times_of_meetings(reader: RankReader) -> list[Communication]:
    """Return the channels of a rank, as far as alignment needs them, with those that a merged window keeps outside."""
    none = CommunicationKernels(*(_NOBODY,) * 6)
    return [
        each._replace(channel=replace(each.channel, stream=_NOBODY, numbers=_NOBODY, counted=none), queues=_NOBODY)
        for each in communication(reader.whole())
    ]


def tell_meetings(job: Job, channels: Iterable[Sequence[Channel]]) -> None:
    """Give a job the meetings of its clocks; `channels`: channels of each rank, with all its communication kernels."""
    if job.aligns_by_collectives:
        of_ranks = ([communication_of(channel, _NOBODY) for channel in of_rank] for of_rank in channels)
        job.once(MEETING_RANKS, lambda: list(of_ranks))


def meetings_by_kind(members: Iterable[Communication], clocks: Mapping[int, int], count: int) -> list[Meetings]:
    """Return the collectives in which ranks of two or more clocks took part, by kernel and size of the group.

    Args:
        members: communication kernels of all ranks; those of ranks without a clock are left out.
        clocks: rank -> number of its clock.
        count: number of clocks.
    """
    of_channel = {id(each.channel): each for each in members if each.channel.rank in clocks}
    groups, _ = match((each.channel for each in of_channel.values()), clocks)
    kinds: dict[object, list[Meetings]] = {}
    for group in (group for group in groups if not sends(group)):
        meetings = _of_group([of_channel[id(channel)] for channel in group], clocks, count)
        if len(meetings.ended):
            first = group[0]
            kinds.setdefault((first.name, len(first), first.size, first.communicator is None), []).append(meetings)
    for sender, receiver, _ in match_transfers((each.channel for each in of_channel.values()), clocks)[0]:
        if sender.role and sender.role.direction == "both" and sender.role.source is None:
            meetings = _of_group([of_channel[id(sender)], of_channel[id(receiver)]], clocks, count, are_exchanges=True)
            kinds.setdefault((sender.name, len(sender), "exchange"), []).append(meetings)
    return [_joined(kind) for kind in kinds.values()]


def _transfers_by_kind(members: Iterable[Communication], clocks: Mapping[int, int], count: int) -> Iterator[Meetings]:
    """Yield transfers between ranks of two clocks as meetings in which both wait; arguments as `meetings_by_kind`."""
    of_channel = {id(each.channel): each for each in members if each.channel.role and each.channel.rank in clocks}
    pairs, _ = match_transfers((each.channel for each in of_channel.values()), clocks)
    for sender, receiver, _ in (pair for pair in pairs if pair.is_directed):
        yield _of_group([of_channel[id(sender)], of_channel[id(receiver)]], clocks, count, are_exchanges=True)


def _of_group(
    members: Sequence[Communication], clocks: Mapping[int, int], count: int, *, are_exchanges: bool = False
) -> Meetings:
    """Return the collectives of a group; in an exchange all members wait for all."""
    on = np.array([clocks[member.channel.rank] for member in members])
    start, end = (np.array([getattr(member.channel, side) for member in members]) for side in ("start", "end"))
    waited_for, waits = _parts(members)
    if are_exchanges:
        waited_for, waits = np.ones_like(waited_for), np.ones_like(waits)
    shape = (start.shape[1], count)
    entered, left, ended = (np.full(shape, NULL) for _ in range(3))
    for clock in sorted(set(on.tolist())):
        rows = on == clock
        entered[:, clock] = np.where(waited_for[rows], start[rows], NULL).max(0)
        first = np.where(waits[rows], end[rows], _LATEST).min(0)
        left[:, clock] = np.where(first == _LATEST, NULL, first)
        known = waits[rows].sum(0)
        base = end[rows][0]
        mean = base + np.where(waits[rows], end[rows] - base, 0).sum(0) // np.maximum(known, 1)
        ended[:, clock] = np.where(known, mean, NULL)
    together = (ended != NULL).sum(1) > 1
    return Meetings(entered[together], left[together], ended[together])


def _parts(members: Sequence[Communication]) -> tuple[Flags, Flags]:
    """Return for each member (row) and collective whether others wait for it, and whether it waits for others."""
    transfers = [[each or _NOTHING for each in member.transfers] for member in members]
    kind, root = (
        np.array([np.array(each)[member.codes] for each, member in zip(of_members, members, strict=True)]).max(0)
        for of_members in (
            [[each.waits for each in of_member] for of_member in transfers],
            [[-1 if each.root is None else each.root for each in of_member] for of_member in transfers],
        )
    )
    is_root = np.arange(len(members))[:, None] == root
    all_do = kind == Waits.ALL
    waited_for = all_do | ((kind == Waits.FOR_ROOT) & is_root) | ((kind == Waits.FOR_OTHERS) & (root >= 0) & ~is_root)
    waits = all_do | ((kind == Waits.FOR_ROOT) & (root >= 0) & ~is_root) | ((kind == Waits.FOR_OTHERS) & is_root)
    return waited_for, waits
