"""Owns counters and sampled values: their rows, tracks and typical sizes. A table of facts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rocpd.schema.trace.infos import CounterInfo


@dataclass(frozen=True)
class Counter:
    """One counter.

    Args:
        typical: middle of its values, in its unit.
        spread: largest relative distance from `typical`.
        info: its row, but for the agent and the number.
        whole: whether values are whole numbers.
    """

    typical: float
    spread: float
    info: CounterInfo
    whole: bool = True


def _hardware(name: str, description: str, units: str, block: str, expression: str = "") -> CounterInfo:
    return CounterInfo(
        target_arch="GPU",
        instance_id=0,
        name=name,
        description=description,
        component="rocprofiler-sdk",
        units=units,
        value_type="ACCUM",
        block=block,
        expression=expression,
        is_constant=0,
        is_derived=int(bool(expression)),
    )


def _sampled(name: str, description: str, units: str) -> CounterInfo:
    return replace(_hardware(name, description, units, "SMI"), component="rocm_smi", value_type="ABS")


HARDWARE: tuple[Counter, ...] = (
    Counter(4864, 0.02, _hardware("SQ_WAVES", "Number of waves sent to SQs", "waves", "SQ")),
    Counter(164000, 0.25, _hardware("GRBM_GUI_ACTIVE", "The GUI is active", "cycles", "GRBM")),
    Counter(
        2710000,
        0.2,
        _hardware("TCC_HIT_sum", "L2 cache hits, all instances", "requests", "TCC", "reduce(TCC_HIT,sum)"),
    ),
    Counter(
        38160.5,
        0.3,
        _hardware("FETCH_SIZE", "Read from video memory", "KB", "TCC", "TCC_EA0_RDREQ_sum*64/1024"),
        whole=False,
    ),
)
"""Counted on some dispatches, in the order of their ids, from 1."""

SAMPLED: tuple[Counter, ...] = (
    Counter(561.0, 0.2, _sampled("device_power", "Socket power", "W")),
    Counter(71.0, 0.1, _sampled("device_temp_hotspot", "Hot spot temperature", "C")),
    Counter(9216.25, 0.15, _sampled("device_memory_usage", "Used video memory", "MB"), whole=False),
)
"""Sampled over time, ids following those of `HARDWARE`."""

COUNTERS = (*HARDWARE, *SAMPLED)

TRACKS: tuple[str, ...] = ("GPU Power", "GPU Temperature", "GPU Memory Usage", "roctxMarkA")
"""Track names; all but the last belong to `SAMPLED`, in order. Ids from 1."""

SMI_TRACKS: tuple[int, ...] = (0, 1, 2)
MARK = 3
SMI_CATEGORY = "rocm_smi"
