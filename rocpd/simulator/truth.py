"""Owns the answer key for communication: which ranks met when, and who came last. Read from the plan alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.simulator.layout import GroupKind, RankGroup
from rocpd.simulator.program import Meeting, RoundProgram
from rocpd.simulator.template import ExchangeKind
from rocpd.types import Ints


@frozen
class TrueCollective:
    """A collective of a group of two ranks or more.

    Args:
        kind: what was done.
        group: who took part.
        size: bytes.
        step: in which step; None: before the first or after the last.
        starts: true time at which the kernel of each member starts [ns].
        ends: true time at which it ends [ns].
        last: members that came last: several when they came within the jitter of each other.
    """

    kind: ExchangeKind
    group: RankGroup
    size: int
    step: int | None
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def end(self) -> int:
        """True time at which the last member ends [ns]."""
        return max(self.ends)


@frozen
class TrueTransfer:
    """What one stage of a pipeline sent to another; starts and ends are true times of the two kernels [ns]."""

    sender: int
    receiver: int
    size: int
    step: int
    sent: tuple[int, int]
    received: tuple[int, int]


def collectives(programs: Sequence[RoundProgram], anchors: Ints, jitter_ns: float) -> Iterator[TrueCollective]:
    """Yield the collectives round by round, in the order in which they are made."""
    for step, meeting, members, starts, ends in _rows(programs, anchors):
        if meeting.exchange.peer or len(members) < 2:
            continue
        # Two may end that far apart and go on at once: who is within it of the last came as late.
        is_last = starts >= starts.max() - jitter_ns
        group = RankGroup(GroupKind(meeting.exchange.group), tuple(members.tolist()))
        last = tuple(members[is_last].tolist())
        times = tuple(starts.tolist()), tuple(ends.tolist())
        yield TrueCollective(meeting.exchange.kind, group, meeting.exchange.size, step, *times, last)


def transfers(programs: Sequence[RoundProgram], anchors: Ints) -> Iterator[TrueTransfer]:
    """Yield what the stages sent to each other, step by step."""
    for step, meeting, members, starts, ends in _rows(programs, anchors):
        if meeting.exchange.peer and step is not None:
            sent, received = zip(starts.tolist(), ends.tolist(), strict=True)
            sender, receiver = members.tolist()
            yield TrueTransfer(sender, receiver, meeting.exchange.size, step, sent, received)


def _rows(programs: Sequence[RoundProgram], anchors: Ints) -> Iterator[tuple[int | None, Meeting, Ints, Ints, Ints]]:
    """Yield step, meeting, members, starts and ends of every exchange of every group."""
    for n, program in enumerate(programs):
        step = n - 1 if 0 < n < len(programs) - 1 else None
        for meeting in program.meetings:
            starts, ends = (anchors[n][meeting.members, column] for column in (meeting.start, meeting.end))
            for row in zip(meeting.members, starts, ends, strict=True):
                yield step, meeting, *row


def ends_of(found: Sequence[TrueCollective]) -> Ints:
    """Return the latest end of each collective [ns]."""
    return np.array([collective.end for collective in found], dtype=np.int64)
