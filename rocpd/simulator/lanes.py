"""Owns when the work of a lane runs: it starts when it has been launched and the work before it is done.

Works on all steps, or on all ranks, at a time: a row of `anchors` and an element of `stretch` for each. `before` is how
long the work before a piece takes; a piece that the GPU never had to wait for starts so long after the first one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.simulator.conditions import LEAST_STRETCH
from rocpd.simulator.script import LANE_GAP
from rocpd.simulator.template import Lane, Time
from rocpd.types import Floats, Ints


def time_columns(times: Sequence[Time]) -> tuple[Ints, Ints]:
    """Return the anchors and the distances from them [ns]."""
    anchor, fixed = np.array(times, dtype=np.int64).reshape(-1, 2).T
    return anchor, fixed


class LaneTimes:
    """A lane as arrays, one element for each piece of work."""

    def __init__(self, lane: Lane) -> None:
        self.start = lane.start
        self.scales = lane.scales
        self.anchor, self.fixed = time_columns(lane.ready)
        self.lengths = np.array(lane.lengths, dtype=np.int64)
        self.before = np.concatenate(([0], np.cumsum(self.lengths + LANE_GAP)[:-1]))

    def runs(self, anchors: Ints, stretch: Floats) -> tuple[Ints, Ints]:
        """Return when each piece starts and ends [ns]: a row for each row of `anchors`."""
        factor = (stretch if self.scales else np.ones(1))[:, None]
        before, lengths = scaled(factor, self.before), scaled(factor, self.lengths)
        ready = anchors[:, self.anchor] + self.fixed
        begin = anchors[:, self.start.anchor] + self.start.fixed
        # When the first piece would start if the GPU had no pause until this one; the latest so far says how it was.
        start: Ints = np.maximum.accumulate(np.maximum(ready - before, begin[:, None]), axis=1) + before
        return start, start + lengths


class LaneEndTimes:
    """When the pieces of a lane up to a position are done."""

    def __init__(self, lane: LaneTimes, position: int) -> None:
        # Plain numbers: this runs for every step, where those of numpy would cost more than the arithmetic.
        self._start, self._scales = lane.start, lane.scales
        waited = [n for n in range(position + 1) if _may_be_waited_for(lane, n)]
        columns = (lane.anchor[waited], lane.fixed[waited], lane.before[waited])
        self._waited = tuple(zip(*(column.tolist() for column in columns), strict=True))
        self._last, self._length = int(lane.before[position]), int(lane.lengths[position])

    def end(self, anchors: Ints, stretch: Floats) -> Ints:
        """Return the end [ns]: an element for each row of `anchors`; to the ns what `LaneTimes.runs` says."""
        latest: Ints = anchors[:, self._start.anchor] + self._start.fixed
        for anchor, fixed, before in self._waited:
            ready = anchors[:, anchor] + fixed
            if before:
                ready -= scaled(stretch, before) if self._scales else before
            np.maximum(latest, ready, out=latest)
        if not self._scales:
            return latest + (self._last + self._length)
        if self._last:
            latest += scaled(stretch, self._last)
        return latest + scaled(stretch, self._length)


def _may_be_waited_for(lane: LaneTimes, n: int) -> bool:
    """Whether the GPU can come to a piece before it is launched: not if the pieces before always take longer.

    Then the one that they were measured from decides when this one starts, on the fastest GPU too.
    """
    same = lane.anchor[:n] == lane.anchor[n]
    launched = lane.fixed[n] - lane.fixed[:n]
    least = (LEAST_STRETCH if lane.scales else 1.0) * (lane.before[n] - lane.before[:n]) - 1
    return not bool((same & (launched <= least)).any())


def scaled(factor: Floats, ns: Ints | int) -> Ints:
    """Return times that take longer by a factor, in whole ns."""
    longer: Ints = (factor * ns).astype(np.int64)
    return longer
