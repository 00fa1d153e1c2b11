"""Owns counters and sampled values: their names, units, tracks and typical sizes. A table of facts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counter:
    """One counter.

    Args:
        name: counter name.
        typical: middle of its values, in `units`.
        spread: largest relative distance from `typical`.
        whole: whether values are whole numbers.
        value_type: ABS, ACCUM or RELATIVE.
        expression: formula when derived from others.
    """

    name: str
    description: str
    units: str
    block: str
    typical: float
    spread: float
    whole: bool = True
    value_type: str = "ACCUM"
    expression: str = ""


HARDWARE: tuple[Counter, ...] = (
    Counter("SQ_WAVES", "Number of waves sent to SQs", "waves", "SQ", 4864, 0.02),
    Counter("GRBM_GUI_ACTIVE", "The GUI is active", "cycles", "GRBM", 164000, 0.25),
    Counter(
        "TCC_HIT_sum",
        "L2 cache hits, all instances",
        "requests",
        "TCC",
        2710000,
        0.2,
        True,
        "ACCUM",
        "reduce(TCC_HIT,sum)",
    ),
    Counter(
        "FETCH_SIZE", "Read from video memory", "KB", "TCC", 38160.5, 0.3, False, "ACCUM", "TCC_EA0_RDREQ_sum*64/1024"
    ),
)
"""Counted on some dispatches, in the order of their ids, from 1."""

SAMPLED: tuple[Counter, ...] = (
    Counter("device_power", "Socket power", "W", "SMI", 561.0, 0.2, True, "ABS"),
    Counter("device_temp_hotspot", "Hot spot temperature", "C", "SMI", 71.0, 0.1, True, "ABS"),
    Counter("device_memory_usage", "Used video memory", "MB", "SMI", 9216.25, 0.15, False, "ABS"),
)
"""Sampled over time, ids following those of `HARDWARE`."""

TRACKS: tuple[str, ...] = ("GPU Power", "GPU Temperature", "GPU Memory Usage", "roctxMarkA")
"""Track names; all but the last belong to `SAMPLED`, in order. Ids from 1."""

SMI_TRACKS: tuple[int, ...] = (0, 1, 2)
MARK = 3
SMI_CATEGORY = "rocm_smi"
