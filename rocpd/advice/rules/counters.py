"""Rules on kernels by their hardware counters: what limits those that take most time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.base.frozen import frozen
from rocpd.summary.findings import Confidence, Finding

_LEAST_PERCENT = Threshold("least_percent", 5.0, "share of the compute time of the critical rank")
"""Kernels that take less are not looked at."""

_REFERENCE = "https://rocm.docs.amd.com/projects/rocprofiler-compute/en/latest/conceptual/performance-model.html"
"""Page that explains what counters count."""


@frozen
class _HotKernel:
    """A kernel that takes much of the compute time of the critical rank.

    Args:
        name: in full.
        rank: the rank.
        share: of the compute time of the rank [%].
        gain: its time, as a share of a step [%].
        metrics: of its counters, by name.
    """

    name: str
    rank: int
    share: float
    gain: float
    metrics: Mapping[str, float]

    def finding(self, rule: str, says: str, panel: str, evidence: Mapping[str, float], action: str) -> Finding:
        """Return what is found of it; it may gain less than its whole time."""
        return Finding(
            f"{short(self.name)}, {self.share:.0f} % of the compute time, {says}",
            rule,
            confidence=Confidence.HINT,
            rank=self.rank,
            evidence={"name": self.name, **evidence},
            shown_by=f"rocpd summary {panel} JOB --by rank",
            gain_percent=self.gain,
            action=action,
            reference=_REFERENCE,
        )


def _panels(*panels: str) -> tuple[Need, ...]:
    """Return what a rule on panels needs."""
    without = recording.KERNELS
    kernels = (Need("kernel-shapes", without), Need("budget", without))
    return (*kernels, *(Need(panel, recording.COUNTERS) for panel in panels))


def _hot_kernels(case: Case, panel: str, names: tuple[str, ...]) -> Iterator[_HotKernel]:
    """Yield the kernels with some metrics of a panel, those with most time first.

    Raises:
        CannotLookError: no kernel that takes much time has all of them.
    """
    values: dict[str | None, dict[str, float]] = {}
    for row in case.of_critical(panel):
        if row["metric"] in names and row["value"] is not None:
            values.setdefault(row["kernel"], {})[row["metric"]] = row["value"]
    kernels = case.computing("kernel-shapes")
    times = Counter[str]()
    for row in kernels:
        times[row["name"]] += int(row["total_ns"])
    is_known = False
    for row, share, of_step in case.hot([{"name": name, "total_ns": time} for name, time in times.most_common()]):
        if len(values.get(row["name"], {})) == len(names):
            is_known = True
            yield _HotKernel(row["name"], case.job.critical or 0, share, of_step, values[row["name"]])
    if not is_known:
        raise CannotLookError(recording.COUNTERS)


_READ, _WRITE = "L2-Fabric Read BW", "L2-Fabric Write BW"


def _kernel_bandwidth(case: Case) -> Iterator[Finding]:
    peaks = {row["kernel"]: row["peak"] for row in case.of_critical("speed-of-light") if row["metric"] == _READ}
    for kernel in _hot_kernels(case, "speed-of-light", (_READ, _WRITE)):
        peak, rate = peaks[kernel.name], kernel.metrics[_READ] + kernel.metrics[_WRITE]
        if peak and 100 * rate / peak >= case.limits["least_bandwidth"]:
            yield kernel.finding(
                KERNEL_BANDWIDTH.id,
                f"moves {rate:,.0f} GB/s, {100 * rate / peak:.0f} % of the peak of HBM: it is bound by memory",
                "speed-of-light",
                {"gb_per_s": rate, "peak_gb_per_s": peak},
                "Move fewer bytes: fuse it with kernels that read or write the same, use smaller types, keep in LDS "
                "or registers what is read again. More occupancy or fewer instructions will not help.",
            )


KERNEL_BANDWIDTH = Rule(
    id="kernel.bandwidth",
    asks="do hot kernels move as many bytes as the memory can?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more reads and writes "
    "{least_bandwidth} % of the peak rate of HBM or more. Gains less than the whole time of the kernel",
    look=_kernel_bandwidth,
    needs=_panels("speed-of-light"),
    thresholds=(
        _LEAST_PERCENT,
        Threshold("least_bandwidth", 60.0, "reads and writes by the peak rate of HBM, in percent"),
    ),
)


_COALESCING, _HITS = "Coalescing", "Hit rate"


def _kernel_strided(case: Case) -> Iterator[Finding]:
    for kernel in _hot_kernels(case, "l1", (_COALESCING, _HITS)):
        coalescing, hits = kernel.metrics[_COALESCING], kernel.metrics[_HITS]
        if coalescing <= case.limits["most_coalescing"] and hits <= case.limits["most_hits"]:
            yield kernel.finding(
                KERNEL_STRIDED.id,
                f"coalesces {coalescing:.0f} % of its accesses and hits L1 in {hits:.0f} %: its work-items read apart",
                "l1",
                {"coalescing_percent": coalescing, "hit_percent": hits},
                "Let neighbouring work-items read neighbouring elements: swap loops or indices, transpose through "
                "LDS, store arrays of structures as structures of arrays, use wider loads.",
            )


KERNEL_STRIDED = Rule(
    id="kernel.strided",
    asks="do work-items of hot kernels read what lies apart?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more coalesces "
    "{most_coalescing} % of its accesses or fewer, and hits L1 in {most_hits} % or fewer. Gains less than the whole "
    "time of the kernel",
    look=_kernel_strided,
    needs=_panels("l1"),
    thresholds=(
        _LEAST_PERCENT,
        Threshold("most_coalescing", 40.0, "accesses of a wave that are put together, in percent"),
        Threshold("most_hits", 20.0, "accesses that hit L1, in percent"),
    ),
)


_CONFLICTS, _USE = "Bank Conflicts/Access", "Utilization"


def _kernel_bank_conflicts(case: Case) -> Iterator[Finding]:
    for kernel in _hot_kernels(case, "lds", (_CONFLICTS, _USE)):
        conflicts, use = kernel.metrics[_CONFLICTS], kernel.metrics[_USE]
        if conflicts >= case.limits["least_conflicts"] and use >= case.limits["least_use"]:
            yield kernel.finding(
                KERNEL_BANK_CONFLICTS.id,
                f"has {conflicts:.1f} cycles of bank conflicts for each access to LDS, which is in use {use:.0f} % "
                "of the time",
                "lds",
                {"conflicts_per_access": conflicts, "use_percent": use},
                "Pad rows of arrays in LDS by one element, or permute (swizzle) their columns, so that the "
                "work-items of a wave reach different banks; read wider elements.",
            )


KERNEL_BANK_CONFLICTS = Rule(
    id="kernel.bank_conflicts",
    asks="do accesses of hot kernels to LDS hit the same banks?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more has {least_conflicts} "
    "cycles of bank conflicts for each cycle of access to LDS, or more. Gains less than the whole time of the "
    "kernel",
    look=_kernel_bank_conflicts,
    needs=_panels("lds"),
    thresholds=(
        _LEAST_PERCENT,
        Threshold("least_conflicts", 1.0, "cycles of conflicts for each cycle of access"),
        Threshold("least_use", 10.0, "time in which LDS is in use, in percent"),
    ),
)


_ATOMICS, _WAIT, _READS = "Atomic Traffic", "Write and Atomic Latency", "Read Latency"


def _kernel_atomics(case: Case) -> Iterator[Finding]:
    for kernel in _hot_kernels(case, "fabric", (_ATOMICS, _WAIT, _READS)):
        atomics, ratio = kernel.metrics[_ATOMICS], kernel.metrics[_WAIT] / max(kernel.metrics[_READS], 1.0)
        if atomics >= case.limits["least_atomics"] and ratio >= case.limits["least_ratio"]:
            yield kernel.finding(
                KERNEL_ATOMICS.id,
                f"has {atomics:.0f} % of atomics among its writes to memory, which take {ratio:.1f} times as long "
                "as reads",
                "fabric",
                {"atomic_percent": atomics, "latency_ratio": ratio},
                "Add up in registers, in a wave or in LDS first, and make one atomic of a work-group; spread "
                "counters over several cache lines.",
            )


KERNEL_ATOMICS = Rule(
    id="kernel.atomics",
    asks="do atomics of hot kernels wait for each other?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more has {least_atomics} % "
    "of atomics or more among its writes to memory, and these take {least_ratio} times as long as reads, or more. "
    "Gains less than the whole time of the kernel",
    look=_kernel_atomics,
    needs=_panels("fabric"),
    thresholds=(
        _LEAST_PERCENT,
        Threshold("least_atomics", 10.0, "atomics among writes to memory, in percent"),
        Threshold("least_ratio", 2.0, "latency of writes and atomics by that of reads"),
    ),
)


_BUSY = "MFMA Utilization"


def _kernel_matrix_idle(case: Case) -> Iterator[Finding]:
    for kernel in _hot_kernels(case, "compute", (_BUSY,)):
        is_gemm = "gemm" in case.categories.of(kernel.name).lower()
        if is_gemm and kernel.metrics[_BUSY] <= case.limits["most_busy"]:
            yield kernel.finding(
                KERNEL_MATRIX_IDLE.id,
                f"is a matrix product, and has the matrix units busy {kernel.metrics[_BUSY]:.1f} % of the time",
                "compute",
                {"busy_percent": kernel.metrics[_BUSY]},
                "Use types that matrix units have (BF16, F16, F8; F32 as xf32 where allowed), sizes that are "
                "multiples of 16, and a library that is tuned for them: hipBLASLt, Composable Kernel.",
            )


KERNEL_MATRIX_IDLE = Rule(
    id="kernel.matrix_idle",
    asks="do hot matrix products use the matrix units?",
    fires="a GEMM with {least_percent} % of the compute time of the critical rank or more has the matrix units busy "
    "for {most_busy} % of its cycles or fewer. Gains less than the whole time of the kernel",
    look=_kernel_matrix_idle,
    needs=_panels("compute"),
    thresholds=(
        _LEAST_PERCENT,
        Threshold("most_busy", 2.0, "cycles in which matrix units are busy, in percent"),
    ),
)


_LACKS = {
    "Insufficient SIMD Waveslots": (
        "wave slots",
        "as many waves as a SIMD unit holds run already: more of them would not help; fewer, longer ones (more work "
        "for each work-item) cost less to start.",
    ),
    "Insufficient SIMD VGPRs": (
        "vector registers",
        "let work-items take fewer: __launch_bounds__(threads, blocks per CU), smaller tiles, less unrolling.",
    ),
    "Insufficient CU LDS": ("LDS", "let work-groups take less LDS, or share it among more work-items."),
    "Reached CU Workgroup Limit": (
        "work-group slots",
        "make work-groups larger: a compute unit holds few of them, however small they are.",
    ),
}
"""Metric -> what work-groups wait for, and what to do."""
_MATRICES = ("gemm", "attention", "convolution")  # they take all registers and LDS on purpose
_ON_PURPOSE = ("Insufficient SIMD VGPRs", "Insufficient CU LDS")


def _kernel_resources(case: Case) -> Iterator[Finding]:
    for kernel in _hot_kernels(case, "occupancy", tuple(_LACKS)):
        is_matrix = any(word in case.categories.of(kernel.name).lower() for word in _MATRICES)
        waits = {name: kernel.metrics[name] for name in _LACKS if not (is_matrix and name in _ON_PURPOSE)}
        worst = max(waits, key=lambda name: waits[name])
        if waits[worst] >= case.limits["least_wait"]:
            what, action = _LACKS[worst]
            yield kernel.finding(
                KERNEL_RESOURCES.id,
                f"has work-groups wait for {what} in {waits[worst]:.0f} % of its cycles",
                "occupancy",
                {"wait_percent": waits[worst]},
                f"{action[0].upper()}{action[1:]}",
            )


KERNEL_RESOURCES = Rule(
    id="kernel.resources",
    asks="do work-groups of hot kernels wait for wave slots, registers or LDS?",
    fires="work-groups of a kernel with {least_percent} % of the compute time of the critical rank or more wait for "
    "wave slots, vector registers, LDS or work-group slots in {least_wait} % of its cycles or more; matrix kernels "
    "take all registers and LDS on purpose. Gains less than the whole time of the kernel",
    look=_kernel_resources,
    needs=_panels("occupancy"),
    thresholds=(
        _LEAST_PERCENT,
        Threshold("least_wait", 20.0, "cycles in which work-groups wait for one of them, in percent"),
    ),
)
