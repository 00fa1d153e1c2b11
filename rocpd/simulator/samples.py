"""Counters and sampled values: their rows and tracks, and their values for the work of kernels.

A table of facts. Values of a kernel's counters follow from the kernel's work, and cycles from its duration.
"""

from __future__ import annotations

from collections.abc import Callable

from rocpd.base import frozen
from rocpd.schema.trace.infos import CounterInfo
from rocpd.simulator.hardware import CLOCK_GHZ, DIES
from rocpd.simulator.kernels import Kernel


@frozen
class Counter:
    """One counter.

    Args:
        name, description: of the counter.
        block: part of the GPU that counts, or SMI.
        of_kernel: returns the value for a run of a kernel; None: it does not depend on the kernel.
        spread: largest relative distance of a value from the typical one.
        units: unit of its values.
        expression: other counters that it is calculated from; empty: it is measured.
        typical: the value if it does not depend on the kernel, in its unit.
        per_ns: increase of the value for each ns of the kernel's run.
        follows_clock: whether values fall with the clock of the GPU.
        whole: whether values are whole numbers.
    """

    name: str
    description: str
    block: str
    of_kernel: Callable[[Kernel], float] | None = None
    spread: float = 0.0
    units: str = "count"
    expression: str = ""
    typical: float = 0.0
    per_ns: float = 0.0
    follows_clock: bool = False
    whole: bool = True

    @property
    def info(self) -> CounterInfo:
        """Its row, without the agent and the number."""
        is_smi = self.block == "SMI"
        return CounterInfo(
            target_arch="GPU",
            instance_id=0,
            name=self.name,
            description=self.description,
            component="rocm_smi" if is_smi else "rocprofiler-sdk",
            units=self.units,
            value_type="ABS" if is_smi else "ACCUM",
            block=self.block,
            is_constant=0,
            is_derived=int(bool(self.expression)),
            expression=self.expression,
        )


_DIES_GHZ, _MHZ = 0.98 * CLOCK_GHZ * DIES, 1000 * CLOCK_GHZ  # cycles of all dies in a ns, and of one in a us
_MOPS = "SQ_INSTS_VALU_MFMA_MOPS_"
_LINE = 128  # bytes of a line of the L2 cache
_LANES = 64  # of a wave: each does the operations of an instruction
_MATRIX_OPS = 512  # operations per count of the counter of matrix operations
_MATRIX_RATES = {"BF16": 512, "F32": 64, "F64": 64}  # operations of a matrix unit in a cycle
_REQUEST = 64  # bytes of a read or write of memory
_WAVE_BYTES = 256  # bytes of an instruction that reads or writes 4 bytes per work-item


def _flops(math: str) -> Callable[[Kernel], float]:
    return lambda kernel: kernel.flops if kernel.math == math else 0.0


def _hits(kernel: Kernel) -> float:
    return (0.6 * kernel.reads + 0.3 * kernel.writes) / _LINE


def _vector(kind: str, name: str) -> Counter:
    count, description = _flops(kind), f"Fused multiply-add instructions, {name}"
    counted, each = f"SQ_INSTS_VALU_FMA_{kind}", 2 * _LANES
    return Counter(counted, description, "SQ", lambda kernel: count(kernel) / each, units="instr")


def _matrix_operations(kernel: Kernel) -> float:
    return _flops("MFMA_BF16")(kernel) / _MATRIX_OPS


_READ, _WRITTEN = "TCC_EA0_RDREQ_sum*64/1024", "TCC_EA0_WRREQ_sum*64/1024"

HARDWARE: tuple[Counter, ...] = (
    Counter("SQ_WAVES", "Number of waves sent to SQs", "SQ", lambda kernel: kernel.waves, units="waves"),
    Counter("GRBM_GUI_ACTIVE", "The GUI is active", "GRBM", None, 0.01, "cycles", per_ns=_DIES_GHZ, follows_clock=True),
    Counter("TCC_HIT_sum", "L2 cache hits, all instances", "TCC", _hits, 0.2, "requests", "reduce(TCC_HIT,sum)"),
    Counter("FETCH_SIZE", "Read from video memory", "TCC", lambda k: k.reads / 1024, 0.04, "KB", _READ, whole=False),
    Counter(
        "WRITE_SIZE", "Written to video memory", "TCC", lambda k: k.writes / 1024, 0.02, "KB", _WRITTEN, whole=False
    ),
    Counter(f"{_MOPS}BF16", "Matrix operations, bfloat16, in units of 512", "SQ", _matrix_operations, units="ops"),
    _vector("F32", "single precision"),
    _vector("F64", "double precision"),
)
"""Counters of some dispatches, in the order of their ids, from 1."""

SAMPLED: tuple[Counter, ...] = (
    Counter("device_power", "Socket power", "SMI", spread=0.2, units="W", typical=561.0),
    Counter("device_temp_hotspot", "Hot spot temperature", "SMI", spread=0.1, units="C", typical=71.0),
    Counter("device_memory_usage", "Used video memory", "SMI", spread=0.15, units="MB", typical=9216.25, whole=False),
    Counter(
        "device_gfx_clock", "Clock of the compute units", "SMI", None, 0.01, "MHz", typical=_MHZ, follows_clock=True
    ),
)
"""Values sampled over time; their ids follow those of `HARDWARE`."""

_UNITS = 304


def _cycles(kernel: Kernel) -> float:
    """Return the cycles of all compute units while a kernel runs."""
    return kernel.micros * _MHZ * _UNITS


def _instructions(kernel: Kernel) -> float:
    return (kernel.reads + kernel.writes) / _WAVE_BYTES


def _accesses(kernel: Kernel) -> float:
    """Return accesses of L1: 16 per instruction, as neighbours read neighbours, by quarter lines."""
    return _instructions(kernel) * 16


def _conflicts(kernel: Kernel) -> float:
    return 0.01 * _cycles(kernel) if kernel.lds else 0.0


def _lds_cycles(kernel: Kernel) -> float:
    return 0.2 * _cycles(kernel) * bool(kernel.lds) + _conflicts(kernel)


def _full_slots(kernel: Kernel) -> float:
    return _cycles(kernel) * 0.03


def _written(kernel: Kernel) -> float:
    return kernel.writes / _REQUEST


def _matrix_cycles(kernel: Kernel) -> float:
    return sum(_flops(f"MFMA_{kind}")(kernel) / rate for kind, rate in _MATRIX_RATES.items())


FURTHER: tuple[Counter, ...] = (
    Counter("TCC_EA0_RDREQ_sum", "Reads of L2 from memory", "TCC", lambda kernel: kernel.reads / _REQUEST),
    Counter("TCC_EA0_RDREQ_32B_sum", "Reads of 32 bytes", "TCC"),
    Counter("TCC_BUBBLE_sum", "Reads of 128 bytes", "TCC"),
    Counter("TCC_EA0_WRREQ_sum", "Writes of L2 to memory", "TCC", _written),
    Counter("TCC_EA0_WRREQ_64B_sum", "Writes of 64 bytes", "TCC", _written),
    Counter("TCC_EA0_ATOMIC_sum", "Atomics on memory", "TCC"),
    Counter(
        "TCC_EA0_RDREQ_LEVEL_sum", "Reads on their way, every cycle", "TCC", lambda k: 600 * k.reads / _REQUEST, 0.05
    ),
    Counter("TCC_EA0_WRREQ_LEVEL_sum", "Writes on their way, every cycle", "TCC", lambda k: _written(k) * 500, 0.05),
    Counter("TA_TOTAL_WAVEFRONTS_sum", "Instructions of memory", "TA", _instructions),
    Counter("TCP_TOTAL_ACCESSES_sum", "Accesses of L1", "TCP", _accesses),
    Counter("TCP_TOTAL_CACHE_ACCESSES_sum", "Accesses of L1 that look into it", "TCP", _accesses),
    Counter("TCP_TCC_READ_REQ_sum", "Reads of L1 from L2", "TCP", lambda k: _accesses(k) * 0.4, 0.02),
    Counter("TCP_TCC_WRITE_REQ_sum", "Writes of L1 to L2", "TCP"),
    Counter("TCP_TCC_ATOMIC_WITH_RET_REQ_sum", "Atomics that return", "TCP"),
    Counter("TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum", "Atomics that return nothing", "TCP"),
    Counter("SQ_LDS_BANK_CONFLICT", "Cycles of bank conflicts", "SQ", _conflicts),
    Counter("SQ_LDS_IDX_ACTIVE", "Cycles in which LDS is accessed", "SQ", _lds_cycles),
    Counter("SQ_VALU_MFMA_BUSY_CYCLES", "Cycles in which matrix units are busy", "SQ", _matrix_cycles),
    Counter("SPI_RA_WAVE_SIMD_FULL_CSN", "Cycles in which no SIMD unit has a free wave slot", "SPI", _full_slots, 0.02),
    Counter("SPI_RA_VGPR_SIMD_FULL_CSN", "The same of vector registers", "SPI", lambda k: 0.02 * _cycles(k), 0.02),
    Counter("SPI_RA_LDS_CU_FULL_CSN", "The same of LDS", "SPI", lambda k: 0.01 * _cycles(k) * bool(k.lds), 0.02),
    Counter("SPI_RA_TGLIM_CU_FULL_CSN", "The same of slots of work-groups", "SPI"),
    *(
        Counter(f"{_MOPS}{kind}", f"Matrix operations, {kind}, in units of 512", "SQ")
        for kind in ("F8", "F16", "F32", "F64", "I8")
    ),
    *(
        Counter(f"SQ_INSTS_VALU_{operation}_{kind}", f"Vector instructions, {operation} {kind}", "SQ")
        for kind in ("F16", "F32", "F64")
        for operation in ("ADD", "MUL", "TRANS", "FMA")
        if (operation, kind) not in (("FMA", "F32"), ("FMA", "F64"))
    ),
)
"""Further counters for jobs that ask for many; their ids follow those of `SAMPLED`."""

COUNTERS = (*HARDWARE, *SAMPLED, *FURTHER)

FEW = len(HARDWARE) + len(SAMPLED)
"""Number of counters of a job that does not ask for many."""


def of_kernels(counts_much: bool) -> tuple[int, ...]:
    """Return the numbers of the counters of a counted dispatch."""
    further = range(FEW, len(COUNTERS)) if counts_much else ()
    return (*range(len(HARDWARE)), *further)


TRACKS: tuple[str, ...] = ("GPU Power", "GPU Temperature", "GPU Memory Usage", "GPU Clock", "roctxMarkA")
"""Track names; all but the last belong to `SAMPLED`, in order. Ids from 1."""

SMI_TRACKS: tuple[int, ...] = (0, 1, 2, 3)
MARK = 4
SMI_CATEGORY = "rocm_smi"
