"""Owns the clocks of the machines: how far they are apart, how they drift, and when one steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rocpd.frozen import frozen
from rocpd.types import Ints

_LEAST_DRIFT = 1.0  # of a quartz that nobody disciplines [parts per million]
_LONGEST_UPTIME = 2.6e14  # three days [ns]: how far unrelated clocks are apart at most


@frozen
class NodeClock:
    """One machine and its clock.

    Args:
        offset_ns: what the clock shows at true time 0 [ns].
        drift_ppm: how much too fast it runs [parts per million].
        step_ns: by how much it jumps ahead, 0: never.
        step_at: true time of the jump [ns].
    """

    hostname: str
    machine_id: str
    hash: int
    offset_ns: int
    drift_ppm: float
    step_ns: int = 0
    step_at: int = 0

    def local(self, true: Ints) -> Ints:
        """Return what this node's clock shows at true times [ns]."""
        drifted: Ints = np.floor(true * (self.drift_ppm * 1e-6)).astype(np.int64)
        shown: Ints = true + drifted + self.offset_ns
        return shown + self.step_ns * (true >= self.step_at) if self.step_ns else shown

    def stepping(self, step_ns: int, step_at: int) -> NodeClock:
        """Return this clock with a jump."""
        return replace(self, step_ns=step_ns, step_at=step_at)


def make_clock(random: np.random.Generator, node: int, most_ppm: float) -> NodeClock:
    """Return a clock that has nothing to do with others: hours apart, and 1 to `most_ppm` too fast or too slow."""
    words = [int(w * 2**32) for w in random.random(4)]
    offset = 1_000_000_000_000_000 + int(random.random() * _LONGEST_UPTIME)
    share = 2.0 * random.random() - 1.0
    least = min(_LEAST_DRIFT, most_ppm)
    drift = round(float(np.copysign(least + (most_ppm - least) * abs(share), share)), 3)
    machine = "".join(f"{w:08x}" for w in words)
    return NodeClock(f"gpu-node-{node:02d}", machine, words[0] << 31 ^ words[1], offset, drift)
