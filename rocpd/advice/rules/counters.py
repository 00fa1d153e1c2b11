"""Rules on kernels by their hardware counters: what limits those that take most time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from rocpd.advice.case import COUNTERS, KERNELS, CannotLookError, Case, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding

_LEAST_PERCENT = Threshold("least_percent", 5.0, "share of the compute time of the critical rank")
"""Kernels that take less are not looked at."""

_HOT = "with {least_percent} % of the compute time of the critical rank or more"
_MATRICES = ("gemm", "attention", "convolution")  # they take all registers and LDS on purpose


class _HotKernel(NamedTuple):
    """A kernel that takes much of the compute time of the critical rank.

    Args:
        name: in full.
        category: what it does, in small letters.
        metrics: of its counters, by name.
        peaks: of the same.
        limits: thresholds of the rule.
    """

    name: str
    category: str
    metrics: Mapping[str, float]
    peaks: Mapping[str, float | None]
    limits: Mapping[str, float]


class _Metrics(NamedTuple):
    """Metrics of a panel, by name."""

    panel: str
    names: tuple[str, ...]


class _Limited(NamedTuple):
    """The limit of a kernel: words that go on a sentence, numbers by name, and what to do, where it depends on that."""

    says: str
    evidence: Mapping[str, float]
    action: str | None = None


def _rule(
    id: str,
    asks: str,
    fires: str,
    read: _Metrics,
    judge: Callable[[_HotKernel], _Limited | None],
    *thresholds: Threshold,
    action: str | None = None,
) -> Rule:
    """Return a rule that judges kernels which take much time.

    Args:
        id, asks, action: as in `Rule`.
        fires: which kernels it finds; no full stop.
        read: metrics that a kernel has to have.
        judge: says what is wrong with a kernel; None: nothing.
        thresholds: beside `least_percent`.
    """

    def look(case: Case) -> Iterator[Finding]:
        for kernel, share, of_step in _hot_kernels(case, *read):
            if limited := judge(kernel):
                text = f"{short(kernel.name)}, {share:.0f} % of the compute time, {limited.says}"
                evidence = {"name": kernel.name, **limited.evidence}
                found = case.finding(text, of_step, evidence, Confidence.HINT, {"rank": case.job.critical})
                yield replace(found, action=limited.action)

    kernels = (Need(table, KERNELS) for table in ("kernel-shapes", "budget"))
    return Rule(
        id=id,
        asks=asks,
        fires=f"{fires}. Gains less than the whole time of the kernel",
        look=look,
        needs=(*kernels, Need(read.panel, COUNTERS)),
        thresholds=(_LEAST_PERCENT, *thresholds),
        shown_by=f"rocpd summary {read.panel} JOB --by rank",
        action=action,
        reference="https://rocm.docs.amd.com/projects/rocprofiler-compute/en/latest/conceptual/performance-model.html",
    )


def _hot_kernels(case: Case, panel: str, names: tuple[str, ...]) -> Iterator[tuple[_HotKernel, float, float]]:
    """Yield the kernels with some metrics of a panel, those with most time first, with shares as `Case.hot`.

    Raises:
        CannotLookError: no kernel that takes much time has all of them.
    """
    values: dict[str | None, dict[str, float]] = {}
    peaks: dict[str | None, dict[str, float | None]] = {}
    for row in case.of_critical(panel):
        if row["metric"] in names and row["value"] is not None:
            values.setdefault(row["kernel"], {})[row["metric"]] = row["value"]
            peaks.setdefault(row["kernel"], {})[row["metric"]] = row["peak"]
    times = Counter[str]()
    for row in case.computing("kernel-shapes"):
        times[row["name"]] += int(row["total_ns"])
    is_known = False
    for row, share, of_step in case.hot([{"name": name, "total_ns": time} for name, time in times.most_common()]):
        name = row["name"]
        if len(values.get(name, {})) == len(names):
            is_known = True
            category = case.categories.of(name).lower()
            yield _HotKernel(name, category, values[name], peaks[name], case.limits), share, of_step
    if not is_known:
        raise CannotLookError(COUNTERS)


_READ, _WRITE = "L2-Fabric Read BW", "L2-Fabric Write BW"


def _bound_by_memory(kernel: _HotKernel) -> _Limited | None:
    peak, rate = kernel.peaks[_READ], kernel.metrics[_READ] + kernel.metrics[_WRITE]
    if not peak or 100 * rate / peak < kernel.limits["least_bandwidth"]:
        return None
    says = f"moves {rate:,.0f} GB/s, {100 * rate / peak:.0f} % of the peak of HBM: it is bound by memory"
    return _Limited(says, {"gb_per_s": rate, "peak_gb_per_s": peak})


KERNEL_BANDWIDTH = _rule(
    "kernel.bandwidth",
    "do hot kernels move as many bytes as the memory can?",
    f"a kernel {_HOT} reads and writes {{least_bandwidth}} % of the peak rate of HBM or more",
    _Metrics("speed-of-light", (_READ, _WRITE)),
    _bound_by_memory,
    Threshold("least_bandwidth", 60.0, "reads and writes by the peak rate of HBM, in percent"),
    action="Move fewer bytes: fuse it with kernels that read or write the same, use smaller types, keep in LDS or "
    "registers what is read again. More occupancy or fewer instructions will not help.",
)


_COALESCING, _HITS = "Coalescing", "Hit rate"


def _reads_apart(kernel: _HotKernel) -> _Limited | None:
    coalescing, hits = kernel.metrics[_COALESCING], kernel.metrics[_HITS]
    if coalescing > kernel.limits["most_coalescing"] or hits > kernel.limits["most_hits"]:
        return None
    says = f"coalesces {coalescing:.0f} % of its accesses and hits L1 in {hits:.0f} %: its work-items read apart"
    return _Limited(says, {"coalescing_percent": coalescing, "hit_percent": hits})


KERNEL_STRIDED = _rule(
    "kernel.strided",
    "do work-items of hot kernels read what lies apart?",
    f"a kernel {_HOT} coalesces {{most_coalescing}} % of its accesses or fewer, and hits L1 in {{most_hits}} % or "
    "fewer",
    _Metrics("l1", (_COALESCING, _HITS)),
    _reads_apart,
    Threshold("most_coalescing", 40.0, "accesses of a wave that are put together, in percent"),
    Threshold("most_hits", 20.0, "accesses that hit L1, in percent"),
    action="Let neighbouring work-items read neighbouring elements: swap loops or indices, transpose through LDS, "
    "store arrays of structures as structures of arrays, use wider loads.",
)


_CONFLICTS, _USE = "Bank Conflicts/Access", "Utilization"


def _hits_same_banks(kernel: _HotKernel) -> _Limited | None:
    conflicts, use = kernel.metrics[_CONFLICTS], kernel.metrics[_USE]
    if conflicts < kernel.limits["least_conflicts"] or use < kernel.limits["least_use"]:
        return None
    says = (
        f"has {conflicts:.1f} cycles of bank conflicts for each access to LDS, which is in use {use:.0f} % of the time"
    )
    return _Limited(says, {"conflicts_per_access": conflicts, "use_percent": use})


KERNEL_BANK_CONFLICTS = _rule(
    "kernel.bank_conflicts",
    "do accesses of hot kernels to LDS hit the same banks?",
    f"a kernel {_HOT} has {{least_conflicts}} cycles of bank conflicts for each cycle of access to LDS, or more",
    _Metrics("lds", (_CONFLICTS, _USE)),
    _hits_same_banks,
    Threshold("least_conflicts", 1.0, "cycles of conflicts for each cycle of access"),
    Threshold("least_use", 10.0, "time in which LDS is in use, in percent"),
    action="Pad rows of arrays in LDS by one element, or permute (swizzle) their columns, so that the work-items of a "
    "wave reach different banks; read wider elements.",
)


_ATOMICS, _WAIT, _READS = "Atomic Traffic", "Write and Atomic Latency", "Read Latency"


def _waits_for_atomics(kernel: _HotKernel) -> _Limited | None:
    atomics, ratio = kernel.metrics[_ATOMICS], kernel.metrics[_WAIT] / max(kernel.metrics[_READS], 1.0)
    if atomics < kernel.limits["least_atomics"] or ratio < kernel.limits["least_ratio"]:
        return None
    says = f"has {atomics:.0f} % of atomics among its writes to memory, which take {ratio:.1f} times as long as reads"
    return _Limited(says, {"atomic_percent": atomics, "latency_ratio": ratio})


KERNEL_ATOMICS = _rule(
    "kernel.atomics",
    "do atomics of hot kernels wait for each other?",
    f"a kernel {_HOT} has {{least_atomics}} % of atomics or more among its writes to memory, and these take "
    "{least_ratio} times as long as reads, or more",
    _Metrics("fabric", (_ATOMICS, _WAIT, _READS)),
    _waits_for_atomics,
    Threshold("least_atomics", 10.0, "atomics among writes to memory, in percent"),
    Threshold("least_ratio", 2.0, "latency of writes and atomics by that of reads"),
    action="Add up in registers, in a wave or in LDS first, and make one atomic of a work-group; spread counters over "
    "several cache lines.",
)


_BUSY = "MFMA Utilization"


def _leaves_matrix_units(kernel: _HotKernel) -> _Limited | None:
    busy = kernel.metrics[_BUSY]
    if "gemm" not in kernel.category or busy > kernel.limits["most_busy"]:
        return None
    says = f"is a matrix product, and has the matrix units busy {busy:.1f} % of the time"
    return _Limited(says, {"busy_percent": busy})


KERNEL_MATRIX_IDLE = _rule(
    "kernel.matrix_idle",
    "do hot matrix products use the matrix units?",
    f"a GEMM {_HOT} has the matrix units busy for {{most_busy}} % of its cycles or fewer",
    _Metrics("compute", (_BUSY,)),
    _leaves_matrix_units,
    Threshold("most_busy", 2.0, "cycles in which matrix units are busy, in percent"),
    action="Use types that matrix units have (BF16, F16, F8; F32 as xf32 where allowed), sizes that are multiples of "
    "16, and a library that is tuned for them: hipBLASLt, Composable Kernel.",
)


_LACKS = {
    "Insufficient SIMD Waveslots": (
        "wave slots",
        "As many waves as a SIMD unit holds run already: more of them would not help; fewer, longer ones (more work "
        "for each work-item) cost less to start.",
    ),
    "Insufficient SIMD VGPRs": (
        "vector registers",
        "Let work-items take fewer: __launch_bounds__(threads, blocks per CU), smaller tiles, less unrolling.",
    ),
    "Insufficient CU LDS": ("LDS", "Let work-groups take less LDS, or share it among more work-items."),
    "Reached CU Workgroup Limit": (
        "work-group slots",
        "Make work-groups larger: a compute unit holds few of them, however small they are.",
    ),
}
"""Metric -> what work-groups wait for, and what to do."""
_ON_PURPOSE = ("Insufficient SIMD VGPRs", "Insufficient CU LDS")


def _waits_for_resources(kernel: _HotKernel) -> _Limited | None:
    is_matrix = any(word in kernel.category for word in _MATRICES)
    waits = {name: kernel.metrics[name] for name in _LACKS if not (is_matrix and name in _ON_PURPOSE)}
    worst = max(waits, key=lambda name: waits[name])
    if waits[worst] < kernel.limits["least_wait"]:
        return None
    what, action = _LACKS[worst]
    says = f"has work-groups wait for {what} in {waits[worst]:.0f} % of its cycles"
    return _Limited(says, {"wait_percent": waits[worst]}, action)


KERNEL_RESOURCES = _rule(
    "kernel.resources",
    "do work-groups of hot kernels wait for wave slots, registers or LDS?",
    f"work-groups of a kernel {_HOT} wait for wave slots, vector registers, LDS or work-group slots in {{least_wait}} "
    "% of its cycles or more; matrix kernels take all registers and LDS on purpose",
    _Metrics("occupancy", tuple(_LACKS)),
    _waits_for_resources,
    Threshold("least_wait", 20.0, "cycles in which work-groups wait for one of them, in percent"),
)
