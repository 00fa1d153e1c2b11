"""Matches the kernels that send and receive into transfers between two ranks.

The n-th send of one rank to another is the n-th receive there. Calls of RCCL show which kernels send and which receive,
and the number of the partner in a communicator, whose other ranks they don't name; the name of a kernel shows at most
that it sends or receives. Partners run at the same time and end together, by clocks that run evenly. A kernel that does
both for a group of calls is paired with another that does both: each waits for the other. A kernel that sends to one
rank and receives from another, as in a ring, is in two pairs. Kernels that fit several partners equally well are in no
pair; they are counted by reason.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import Floats, by_key
from rocpd.facts.communication.clusters import is_clear
from rocpd.facts.communication.collectives import Channel, end_apart, run_together

NO_PARTNER = "no rank receives what is sent, or sends what is received, equally often at the same time"
SEVERAL = "several partners fit equally well"
MIXED_UP = "one kernel sends and receives"

_RING = "ring"
_MOST_TRIED = 4096  # pairs of channels


class Partners(NamedTuple):
    """Two channels that do transfers with each other; if `is_directed`, the sender is known."""

    sender: Channel
    receiver: Channel
    is_directed: bool


def match_transfers(channels: Iterable[Channel], clocks: Mapping[int, int]) -> tuple[list[Partners], Counter[str]]:
    """Return pairs of channels that send and receive, and reason -> number of counted kernels that are in no pair.

    Args:
        channels: channels of all ranks; collectives are left out.
        clocks: rank -> number of its clock.
    """
    alike: dict[tuple[object, ...], dict[str, list[Channel]]] = {}
    lost: Counter[str] = Counter()
    for channel in sorted((c for c in channels if c.role), key=lambda c: (c.rank, c.agent, int(c.start[0]))):
        direction = channel.role.direction if channel.role else ""
        if channel.role and channel.role.source is not None:
            direction = _RING
        side = direction if direction in ("send", "receive") else ""
        kind = (channel.name, len(channel), channel.communicator, None if side else direction)
        alike.setdefault(kind, {}).setdefault(side, []).append(channel)
    pairs: list[Partners] = []
    for of_kind, by_direction in alike.items():
        if of_kind[-1] == _RING:
            pairs += _in_rings(by_direction[""], clocks, lost)
        else:
            pairs += _paired(by_direction, clocks, lost)
    return pairs, +lost


def _paired(
    by_direction: Mapping[str, Sequence[Channel]], clocks: Mapping[int, int], lost: Counter[str]
) -> Iterator[Partners]:
    """Yield pairs among channels with equally many kernels; count the kernels in no pair."""
    unknown = by_direction.get("", ())  # kernels that send, receive, or do both
    senders, receivers = by_direction.get("send", unknown), by_direction.get("receive", unknown)
    if not unknown and (pairs := _in_rank_order(senders, receivers, clocks)):
        yield from pairs
        return
    distance = _distances(senders, receivers, clocks)
    paired: set[int] = set()
    for a, sender in enumerate(senders):
        b = int(distance[a].argmin()) if len(receivers) else -1
        if b < 0 or not np.isfinite(distance[a, b]):
            continue
        others = np.concatenate([np.delete(distance[a], b), np.delete(distance[:, b], a)])
        is_mutual = distance[:, b].argmin() == a
        if is_mutual and is_clear(distance[a, b], others.min(initial=np.inf), len(sender)):
            paired |= {id(sender), id(receivers[b])}
            if not unknown or sender.rank < receivers[b].rank:
                yield Partners(sender, receivers[b], not unknown)
    ends = [*zip(senders, distance, strict=True), *([] if unknown else zip(receivers, distance.T, strict=True))]
    for channel, row in ends:
        if id(channel) not in paired:
            alone = MIXED_UP if channel.role and channel.role.direction == "both" else NO_PARTNER
            lost[SEVERAL if np.isfinite(row).any() else alone] += len(channel.numbers)


def _in_rings(channels: Sequence[Channel], clocks: Mapping[int, int], lost: Counter[str]) -> list[Partners]:
    """Return the pairs of channels that send to the next rank and receive from the previous one, or count them.

    Pairs are formed in rank order, as by `_in_rank_order`.
    """
    sending = by_key(((each.own, each.role.peer if each.role else None), each) for each in channels)
    receiving = by_key(((each.role.source if each.role else None, each.own), each) for each in channels)
    if {way: len(each) for way, each in sending.items()} == {way: len(each) for way, each in receiving.items()}:
        pairs = [Partners(*pair, True) for way in sending for pair in zip(sending[way], receiving[way], strict=True)]
        if all(may_meet(*pair[:2]) and run_together(pair[:2], clocks) for pair in pairs):
            return pairs
    lost[MIXED_UP] += sum(len(each.numbers) for each in channels)
    return []


def ways(channels: Iterable[Channel]) -> dict[tuple[int, int], tuple[list[Channel], list[Channel]]]:
    """Return (sender, receiver) by their numbers in the communicator -> channels that send, and that receive, so.

    Channels keep their order; those whose calls do not number rank and partner are left out.
    """
    of_way: dict[tuple[int, int], tuple[list[Channel], list[Channel]]] = {}
    for channel in channels:
        number, role = channel.own, channel.role
        if number is not None and role and role.peer is not None and role.direction in ("send", "receive"):
            is_sending = role.direction == "send"
            way = (number, role.peer) if is_sending else (role.peer, number)
            of_way.setdefault(way, ([], []))[0 if is_sending else 1].append(channel)
    return of_way


def _in_rank_order(
    senders: Sequence[Channel], receivers: Sequence[Channel], clocks: Mapping[int, int]
) -> list[Partners]:
    """Return the pairs of a mesh of ranks, in rank order, where calls number each rank and name its partner.

    The i-th rank with a number that sends to another number is the partner of the i-th rank that receives there.
    Nothing where senders and receivers differ in number, or two on one clock do not overlap and end together.
    """
    channels = (*senders, *receivers)
    sides = list(ways(channels).values())
    if sum(len(side) for both in sides for side in both) < len(channels) or any(len(a) != len(b) for a, b in sides):
        return []
    pairs = [Partners(*pair, True) for both in sides for pair in zip(*both, strict=True)]
    for sender, receiver, _ in pairs:
        is_one_clock = clocks.get(sender.rank, -1) == clocks.get(receiver.rank, -2)
        if not may_meet(sender, receiver) or not np.isfinite(end_apart(sender, receiver, is_one_clock=is_one_clock)):
            return []
    return pairs


def _distances(senders: Sequence[Channel], receivers: Sequence[Channel], clocks: Mapping[int, int]) -> Floats:
    """Return the distance between the ends of each sender and each receiver [ns], infinity if they are no partners."""
    distance = np.full((len(senders), len(receivers)), np.inf)
    fitting = [
        (a, b)
        for (a, sender), (b, receiver) in itertools.product(enumerate(senders), enumerate(receivers))
        if may_meet(sender, receiver)
    ]
    for a, b in fitting if len(fitting) <= _MOST_TRIED else ():
        is_one_clock = clocks.get(senders[a].rank, -1) == clocks.get(receivers[b].rank, -2)
        distance[a, b] = end_apart(senders[a], receivers[b], is_one_clock=is_one_clock)
    return distance


def may_meet(sender: Channel, receiver: Channel) -> bool:
    """Whether each of two channels may be the partner that the other names."""
    if sender.rank == receiver.rank or not sender.role or not receiver.role or sender.size != receiver.size:
        return False
    comes_from = receiver.role.peer if receiver.role.source is None else receiver.role.source
    named = ((sender.role.peer, receiver.own), (comes_from, sender.own))
    return all(peer is None or number is None or peer == number for peer, number in named)
