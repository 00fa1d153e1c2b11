"""Cuts a job into steps, or pieces like them, in which ranks are compared: each on its own clock.

A step is the unit of chance. What slows a rank in a step makes it late in each collective of the step, so collectives
of one step say the same thing once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from rocpd.federate.select.part import Part
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.intervals import covered
from rocpd.summary.ops import OperationNames, Ops
from rocpd.summary.steps import RankSteps
from rocpd.trace.collectives import Channel, Group
from rocpd.trace.steps import folded
from rocpd.types import Floats, Ints

_FEWEST = 4  # collectives to cut by


@frozen
class RankWork:
    """What a rank computed.

    Args:
        kernels: name of a kernel -> how often it ran; communication is left out.
        steps: text and number of a step marker, where all of the step counts -> how long its GPUs run kernels that
            start in it [ns].
        before: for each channel of the rank, how long kernels before each of its kernels run [ns].
        busy: text and number of a step marker -> how long its GPUs do anything before its start, and before its end.
        is_cut: whether a window leaves out a part of the trace.
    """

    kernels: Mapping[str | None, int]
    steps: Mapping[tuple[str, int], int]
    before: Sequence[Ints]
    busy: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    is_cut: bool = False


def work_of(
    ops: Ops, compute: Ints, names: OperationNames, steps: RankSteps, channels: Iterable[Channel], part: Part
) -> RankWork:
    """Return what a rank computed.

    Args:
        ops: its operations.
        compute: the numbers of its kernels among these.
        names: names of operations.
        steps: its markers.
        channels: its communication.
        part: the part of its time that counts.
    """
    low = -math.inf if part.start is None else part.start
    high = math.inf if part.end is None else part.end
    complete = {key: span for key, span in steps.steps.items() if low <= span[0] and sum(span) <= high}
    added = np.zeros(len(ops), np.int64)
    for (_,), rows in grouped([ops.agent[compute]]):
        added[compute[rows]] = ops.take(compute[rows]).added()
    order = compute[np.argsort(ops.start[compute], kind="stable")]
    starts = ops.start[order]
    summed = np.concatenate([[0], np.cumsum(added[order])])
    edges = np.array([(start, start + length) for start, length in complete.values()], np.int64).reshape(-1, 2)
    inside = np.diff(summed[np.searchsorted(starts, edges)], axis=1)[:, 0]
    counts = np.bincount(names.first_alike()[ops.name[compute]], minlength=len(names.full))
    return RankWork(
        {names.full[name]: int(counts[name]) for name in np.flatnonzero(counts).tolist()},
        dict(zip(complete, inside.tolist(), strict=True)),
        tuple(summed[np.searchsorted(starts, channel.start)] for channel in channels),
        dict(zip(complete, zip(*covered(ops.union(), edges.T).tolist(), strict=True), strict=True)),
        part != Part(None, None),
    )


@frozen
class Periods:
    """Steps, or pieces like them, that all ranks went through; rows are periods, columns ranks.

    Args:
        ranks: their numbers.
        start, end: of each [ns of the clock of the rank]; they do not overlap.
        compute: how long kernels of it run, without communication [ns].
        idle: how long a rank does nothing from the end of the one before to its end [ns]; None where that is unknown.
        unit: what one is called.
        markers: text and number of the marker of each, where there are markers.
    """

    ranks: tuple[int, ...]
    start: Ints
    end: Ints
    compute: Ints
    idle: Ints | None = None
    unit: str = "steps"
    markers: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> Floats:
        """How long each one takes, the mean of the ranks [ns]."""
        length: Floats = (self.end - self.start).mean(1)
        return length

    def find(self, rank: int, times: Ints) -> Ints:
        """Return in which period of a rank times of its clock are, -1 for none."""
        column = self.ranks.index(rank)
        at = np.searchsorted(self.start[:, column], times, side="right") - 1
        inside: Ints = np.where(times < self.end[:, column][np.maximum(at, 0)], at, -1)
        return inside


def periods(
    steps: Mapping[int, RankSteps],
    works: Mapping[int, RankWork],
    groups: Sequence[Group],
    before: Mapping[int, Ints],
) -> Periods | None:
    """Return the periods of the ranks that compute: steps by their markers, else pieces between collectives.

    Args:
        steps: rank -> its markers.
        works: rank -> what it computed.
        groups: channels of one communicator each.
        before: `id` of a channel -> `RankWork.before` of it.
    """
    computing = [rank for rank in sorted(works) if works[rank].kernels]
    if not computing:
        return None
    return _by_markers(computing, steps, works) or _by_collectives(computing, groups, before)


def _by_markers(ranks: Sequence[int], steps: Mapping[int, RankSteps], works: Mapping[int, RankWork]) -> Periods | None:
    """Return the steps that all ranks have: those with most markers of the kinds that cover much of the time."""
    first = steps[ranks[0]].steps
    common = set(first).intersection(*(works[rank].steps for rank in ranks))
    kinds: dict[str, list[tuple[str, int]]] = {}
    for key in sorted(common, key=lambda key: first[key]):
        kinds.setdefault(folded(key[0]), []).append(key)
    if not kinds:
        return None
    covered = {kind: sum(first[key][1] for key in keys) for kind, keys in kinds.items()}
    most = max(covered.values())
    keys = max((keys for kind, keys in kinds.items() if covered[kind] * 2 >= most), key=len)
    spans = np.array([[steps[rank].steps[key] for rank in ranks] for key in keys])
    start, end = spans[..., 0], spans.sum(-1)
    if (start[1:] < end[:-1]).any():
        return None
    compute = np.array([[works[rank].steps[key] for rank in ranks] for key in keys])
    busy = np.array([[works[rank].busy[key] for rank in ranks] for key in keys])
    idle = (_since(start, end) - _since(busy[..., 0], busy[..., 1])).clip(0)
    return Periods(tuple(ranks), start, end, compute, idle, markers=tuple(keys))


def _since(start: Ints, end: Ints) -> Ints:
    """Return how far each end is from the one before, the first from its start."""
    since: Ints = np.diff(np.concatenate([start[:1], end]), axis=0)
    return since


def _by_collectives(ranks: Sequence[int], groups: Sequence[Group], before: Mapping[int, Ints]) -> Periods | None:
    """Return pieces between collectives of all ranks, the rarest ones; as many as collectives in a piece."""
    whole = [group for group in groups if {member.rank for member in group}.issuperset(ranks)]
    enough = [group for group in whole if len(group[0]) >= _FEWEST]
    if not enough:
        return None
    group = min(enough, key=lambda group: len(group[0]))
    count = len(group[0])
    edges = np.append(np.arange(0, count - 1, math.ceil(math.sqrt(count))), count - 1)
    member = {member.rank: member for member in reversed(group)}
    times = np.array([member[rank].end[edges] for rank in ranks]).T
    compute = np.diff(np.array([before[id(member[rank])][edges] for rank in ranks]).T, axis=0)
    return Periods(tuple(ranks), times[:-1], times[1:], compute, unit="pieces of the trace")
