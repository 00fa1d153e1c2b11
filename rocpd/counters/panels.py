"""The table of contents of panels, and the units that amounts are counted per; imports no numpy, to keep help fast."""

from __future__ import annotations

import enum
from collections.abc import Mapping

PANELS: Mapping[str, str] = {
    "speed-of-light": "rates and use of each part of the GPU, and how far that is from the highest",
    "launch-stats": "what kernels are launched with, and the waves that come of it",
    "occupancy": "waves that run, and what keeps further ones from being scheduled",
    "instruction-mix": "instructions by kind",
    "compute": "operations, and use of the pipelines",
    "lds": "local data share: bandwidth, conflicts, latency",
    "l1": "vector L1 cache, its address and data paths",
    "l2": "L2 cache: hits, requests by kind",
    "fabric": "between L2 and memory: bandwidth, traffic, latency, stalls",
    "scalar": "instruction and scalar data caches",
    "command-processor": "command processor: fetcher and packet processor",
}
"""Panel -> its content."""


class Per(enum.StrEnum):
    """The base of amounts: a dispatch of the kernel, a wave of it, a cycle or a second of its time."""

    KERNEL = "kernel"
    WAVE = "wave"
    CYCLE = "cycle"
    SECOND = "second"
