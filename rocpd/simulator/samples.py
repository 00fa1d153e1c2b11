"""Owns counters and sampled values: their rows, tracks, and how values follow from what a kernel does.

A table of facts. What a counter of a kernel says follows from the kernel's work, and cycles from how long it ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rocpd.frozen import frozen
from rocpd.schema.trace.infos import CounterInfo
from rocpd.simulator.hardware import CLOCK_GHZ, DIES
from rocpd.simulator.kernels import Kernel


@frozen
class Counter:
    """One counter.

    Args:
        info: its row, but for the agent and the number.
        spread: largest relative distance of a value from what is typical.
        of_kernel: returns the value for a run of a kernel; None: it does not depend on the kernel.
        typical: otherwise the value, in its unit.
        per_ns: what is added for each ns that the kernel runs.
        follows_clock: whether values go down with the clock of the GPU.
        whole: whether values are whole numbers.
    """

    info: CounterInfo
    spread: float = 0.0
    of_kernel: Callable[[Kernel], float] | None = None
    typical: float = 0.0
    per_ns: float = 0.0
    follows_clock: bool = False
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


_LINE = 128  # bytes of a line of the L2 cache
_LANES = 64  # of a wave: each makes the operations of an instruction
_MATRIX_OPS = 512  # that the counter of matrix operations counts as one


def _flops(math: str) -> Callable[[Kernel], float]:
    return lambda kernel: kernel.flops if kernel.math == math else 0.0


def _vector(kind: str, name: str) -> Counter:
    count = _flops(kind)
    info = _hardware(f"SQ_INSTS_VALU_FMA_{kind}", f"Fused multiply-add instructions, {name}", "instr", "SQ")
    return Counter(info, of_kernel=lambda kernel: count(kernel) / (2 * _LANES))


HARDWARE: tuple[Counter, ...] = (
    Counter(_hardware("SQ_WAVES", "Number of waves sent to SQs", "waves", "SQ"), of_kernel=lambda kernel: kernel.waves),
    Counter(
        _hardware("GRBM_GUI_ACTIVE", "The GUI is active", "cycles", "GRBM"),
        0.01,
        per_ns=0.98 * CLOCK_GHZ * DIES,
        follows_clock=True,
    ),
    Counter(
        _hardware("TCC_HIT_sum", "L2 cache hits, all instances", "requests", "TCC", "reduce(TCC_HIT,sum)"),
        0.2,
        lambda kernel: (0.6 * kernel.reads + 0.3 * kernel.writes) / _LINE,
    ),
    Counter(
        _hardware("FETCH_SIZE", "Read from video memory", "KB", "TCC", "TCC_EA0_RDREQ_sum*64/1024"),
        0.04,
        lambda kernel: kernel.reads / 1024,
        whole=False,
    ),
    Counter(
        _hardware("WRITE_SIZE", "Written to video memory", "KB", "TCC", "TCC_EA0_WRREQ_sum*64/1024"),
        0.02,
        lambda kernel: kernel.writes / 1024,
        whole=False,
    ),
    Counter(
        _hardware("SQ_INSTS_VALU_MFMA_MOPS_BF16", "Matrix operations, bfloat16, in units of 512", "ops", "SQ"),
        of_kernel=lambda kernel: _flops("MFMA_BF16")(kernel) / _MATRIX_OPS,
    ),
    _vector("F32", "single precision"),
    _vector("F64", "double precision"),
)
"""Counted on some dispatches, in the order of their ids, from 1."""

SAMPLED: tuple[Counter, ...] = (
    Counter(_sampled("device_power", "Socket power", "W"), 0.2, typical=561.0),
    Counter(_sampled("device_temp_hotspot", "Hot spot temperature", "C"), 0.1, typical=71.0),
    Counter(_sampled("device_memory_usage", "Used video memory", "MB"), 0.15, typical=9216.25, whole=False),
    Counter(
        _sampled("device_gfx_clock", "Clock of the compute units", "MHz"),
        0.01,
        typical=CLOCK_GHZ * 1000,
        follows_clock=True,
    ),
)
"""Sampled over time, ids following those of `HARDWARE`."""

COUNTERS = (*HARDWARE, *SAMPLED)

TRACKS: tuple[str, ...] = ("GPU Power", "GPU Temperature", "GPU Memory Usage", "GPU Clock", "roctxMarkA")
"""Track names; all but the last belong to `SAMPLED`, in order. Ids from 1."""

SMI_TRACKS: tuple[int, ...] = (0, 1, 2, 3)
MARK = 4
SMI_CATEGORY = "rocm_smi"
