"""Rules on kernels: grids, registers, times from run to run, and the limits of hot kernels by hardware counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rocpd.advice.case import COUNTERS, KERNELS, CannotLookError, Case, Row, short, some
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.base import amount, percent_text
from rocpd.summary.findings import Confidence, Finding
from rocpd.table.human import readable


def _kernel_grid(case: Case) -> Iterator[Finding]:
    kernels = case.computing("kernel-shapes")
    if not any(row["groups"] and row["compute_units"] for row in kernels):
        raise CannotLookError("grids of kernels, or the compute units of the GPU, are not recorded")
    for row, share, of_step in case.hot(kernels):
        if empty := _empty(row, case):
            text = (
                f"{short(row['name'])} has {row['groups']} work-groups for {row['compute_units']} compute units: "
                f"{empty * 100:.0f} % of the GPU has nothing to do while it runs, {share:.0f} % of the compute time"
            )
            shown = ("name", "grid", "workgroup", "groups", "compute_units", "total_ns")
            yield case.finding(text, of_step * empty, {name: row[name] for name in shown}, row=row)


def _empty(row: Row, case: Case) -> float:
    """Return the mean share of the compute units without work; 0 where it is not worth reporting."""
    groups, units = int(row["groups"] or 0), int(row["compute_units"] or 0)
    if not units or not groups:
        return 0.0
    if groups < units:
        return 1.0 - groups / units
    if not row["waves_per_simd"]:
        return 0.0
    rounds = groups / units
    last = rounds - math.floor(rounds)
    if rounds < case.limits["few_rounds"] and 0 < last < case.limits["last_round_percent"] / 100:
        return (math.ceil(rounds) - rounds) / math.ceil(rounds) if _fits_once(row) else 0.0
    return 0.0


def _fits_once(row: Row) -> bool:
    """Whether a compute unit holds one work-group at a time: then the last round runs alone."""
    items = math.prod(int(size) for size in str(row["workgroup"]).split("x"))
    return int(row["waves_per_simd"]) * 4 < 2 * math.ceil(items / 64)


KERNEL_GRID = Rule(
    id="kernel.grid",
    asks="do the hot kernels fill the GPU?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more has fewer work-groups than "
    "the GPU compute units; or, where a unit holds one group at a time, fewer than {few_rounds} rounds of groups of "
    "which the last is less than {last_round_percent} % full. Gains the share of the units that is empty",
    look=_kernel_grid,
    needs=(Need("kernel-shapes", KERNELS), Need("budget", KERNELS)),
    thresholds=(
        Threshold("least_percent", 5.0, "share of the compute time of the critical rank"),
        Threshold("few_rounds", 4.0, "work-groups by compute units"),
        Threshold("last_round_percent", 50.0, "how full the last round is"),
    ),
    shown_by="rocpd summary kernel-shapes JOB --by rank",
    action="Give it more work-groups: smaller tiles, split-K or stream-K for GEMM (hipBLASLt tuning with "
    "hipblaslt-bench or PyTorch TunableOp, PYTORCH_TUNABLEOP_ENABLED=1), larger batches; or run independent kernels "
    "beside it in another stream.",
    reference="https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html",
)


_BY_DESIGN = ("gemm", "attention", "convolution")  # matrix kernels fill all registers and LDS on purpose


def _kernel_occupancy(case: Case) -> Iterator[Finding]:
    kernels = case.computing("kernel-shapes")
    if kernels and all(row["waves_per_simd"] is None for row in kernels):
        raise CannotLookError("registers of kernels are not recorded, or the GPU is not a gfx90a, gfx94x or gfx950")
    for row, share, of_step in case.hot(kernels):
        if row["waves_per_simd"] and _is_low(case, row):
            yield _few_waves(case, row, share, of_step)


def _is_low(case: Case, row: Row) -> bool:
    if row["scratch_bytes"]:
        return True
    is_matrix = any(word in case.categories.of(row["name"]).lower() for word in _BY_DESIGN)
    return not is_matrix and int(row["waves_per_simd"]) <= case.limits["most_waves"]


def _few_waves(case: Case, row: Row, share: float, of_step: float) -> Finding:
    waves = "1 wave fits" if row["waves_per_simd"] == 1 else f"{row['waves_per_simd']} waves fit"
    spills = f" and takes {row['scratch_bytes']} bytes of scratch per work-item" if row["scratch_bytes"] else ""
    text = (
        f"{short(row['name'])}, {share:.0f} % of the compute time, has {row['vector_registers']} vector "
        f"registers{spills}: {waves} on a SIMD unit, limited by {row['limited_by']}"
    )
    kept = ("name", "vector_registers", "lds_bytes", "scratch_bytes", "waves_per_simd", "limited_by", "total_ns")
    return case.finding(text, of_step, {column: row[column] for column in kept}, Confidence.HINT, row)


KERNEL_OCCUPANCY = Rule(
    id="kernel.occupancy",
    asks="do registers, LDS or spills keep hot kernels from hiding latency?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more takes scratch memory, or, "
    "matrix kernels aside, fits {most_waves} waves on a SIMD unit or fewer. Gains less than the whole time of the "
    "kernel",
    look=_kernel_occupancy,
    needs=(Need("kernel-shapes", KERNELS), Need("budget", KERNELS)),
    thresholds=(
        Threshold("least_percent", 5.0, "share of the compute time of the critical rank"),
        Threshold("most_waves", 2.0, "waves that fit on a SIMD unit"),
    ),
    shown_by="rocpd summary kernel-shapes JOB --by rank",
    action="Let the kernel take less: __launch_bounds__(threads, blocks per CU), smaller tiles or less unrolling, no "
    "arrays with indices that change (they lie in scratch). -Rpass-analysis=kernel-resource-usage shows registers and "
    "spills when compiling; `rocprof-compute profile -n NAME -- APP` whether memory or arithmetic limits it.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/performance_guidelines.html",
)


def _in_all(kernels: Sequence[Row], column: str, rows: Sequence[Row]) -> tuple[int, int, float]:
    """Return the sum of a column over `kernels`, the compute time of all rows [ns], and the share of it [%]."""
    time, every = sum(int(row[column]) for row in kernels), sum(int(row["total_ns"]) for row in rows)
    return time, every, time * 100 / every if every else 0.0


def _kernel_unstable(case: Case) -> Iterator[Finding]:
    rows = case.computing("kernel-shapes")
    least = case.limits["least_calls"]
    kernels = [row for row in rows if row["groups"] and row["calls"] >= least and row["unstable_ns"] is not None]
    some(kernels, f"no kernel runs {least:.0f} times with one grid that is recorded")
    *_, share = _in_all(kernels, "unstable_ns", rows)
    if share < case.limits["least_percent"]:
        return
    worst = max(kernels, key=lambda row: int(row["unstable_ns"]))
    text = (
        f"kernels of rank {case.job.critical} usually take longer than their fast runs with the same grid: together "
        f"{share:.0f} % of the compute time, most in {short(worst['name'])}"
    )
    evidence = {name: worst[name] for name in ("name", "unstable_ns", "total_ns")}
    yield case.finding(text, case.of_compute(share), evidence, Confidence.HINT)


KERNEL_UNSTABLE = Rule(
    id="kernel.unstable",
    asks="do runs of a kernel with one grid take equally long?",
    fires="on the critical rank the time from the 5th percentile of each kernel and grid ({least_calls} runs or "
    "more) to its median, over all runs, is {least_percent} % of the compute time or more. Gains that time",
    look=_kernel_unstable,
    needs=(Need("kernel-shapes", KERNELS), Need("budget", KERNELS)),
    thresholds=(
        Threshold("least_percent", 10.0, "share of the compute time of the critical rank"),
        Threshold("least_calls", 20.0, "runs of a kernel with one grid"),
    ),
    shown_by="rocpd summary kernel-shapes variability JOB --by rank",
    action="If the runs do the same work, find what differs between them: what runs beside it on other streams "
    "(`rocpd summary variability JOB --sequence 1`), the input, or the clock (`amd-smi monitor`; `amd-smi set "
    "--perf-determinism` holds it still).",
    reference="https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",
)


def _kernel_beside(case: Case) -> Iterator[Finding]:
    rows = case.computing("kernel-shapes")
    known = [row for row in rows if row["beside_ns"] is not None]
    some(known, "no kernel runs beside communication and often enough alone")
    longer, every, share = _in_all(known, "beside_ns", rows)
    if share < case.limits["least_percent"]:
        return
    worst = max(known, key=lambda row: int(row["beside_ns"]))
    text = (
        f"kernels of rank {case.job.critical} take {readable(longer, 'ns')} longer beside communication than alone, "
        f"{percent_text(share)} of the compute time, most in {short(worst['name'])}"
    )
    evidence = {"name": worst["name"], "beside_ns": longer, "total_ns": every}
    yield case.finding(text, case.of_compute(share), evidence, Confidence.HINT)


KERNEL_BESIDE = Rule(
    id="kernel.beside",
    asks="does communication slow the kernels that run beside it?",
    fires="on the critical rank the median run beside communication is longer than that of runs alone, over all runs "
    "beside it by {least_percent} % of the compute time or more. Gains at most that time: communication takes "
    "its part of the GPU wherever it runs",
    look=_kernel_beside,
    needs=(Need("kernel-shapes", KERNELS), Need("budget", KERNELS)),
    thresholds=(Threshold("least_percent", 2.0, "share of the compute time of the critical rank"),),
    shown_by="rocpd summary kernel-shapes JOB --by rank",
    action="Let communication take less of the GPU while they run: fewer channels (NCCL_MAX_NCHANNELS), as long as "
    "transfers stay hidden, or start it beside kernels that are bound by arithmetic, not by memory.",
    reference="https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/rccl-usage-tips.html",
)


def _kernel_first_touch(case: Case) -> Iterator[Finding]:
    least = case.limits["least_calls"]
    often = [row for row in case.computing("kernel-shapes") if row["calls"] >= least]
    rows = some(often, f"no kernel runs {least:.0f} times with one grid")
    timed = (row for row in rows if row["median_ns"])  # damaged files have kernels without length
    slow = [row for row in timed if int(row["first_ns"]) >= case.limits["least_times"] * float(row["median_ns"])]
    every = sum(int(row["total_ns"]) for row in case.computing("kernel-shapes"))
    lost = sum(map(_lost_at_first, slow))
    if not slow or 100 * lost < case.limits["least_percent"] * every:
        return
    worst = max(slow, key=_lost_at_first)
    times = float(worst["first_ns"]) / float(worst["median_ns"])
    text = (
        f"the first runs of {amount(len(slow), 'kernel')} of rank {case.job.critical} take {lost / 1e6:.1f} ms "
        f"longer than later ones, {100 * lost / every:.0f} % of the compute time of the trace; that of "
        f"{short(worst['name'])} {times:.0f} times as long"
    )
    evidence = {name: worst[name] for name in ("name", "first_ns", "median_ns", "calls")}
    yield case.finding(text, None, evidence, Confidence.HINT, worst)


def _lost_at_first(row: Row) -> float:
    return float(row["first_ns"]) - float(row["median_ns"])


KERNEL_FIRST_TOUCH = Rule(
    id="kernel.first_touch",
    asks="do first runs of kernels take far longer than later ones?",
    fires="first runs of kernels of the critical rank ({least_calls} runs or more with one grid) that take "
    "{least_times} times the median or longer take {least_percent} % of the compute time of the trace or more. Gains "
    "nothing in a step",
    look=_kernel_first_touch,
    needs=(Need("kernel-shapes", KERNELS), Need("budget", KERNELS)),
    thresholds=(
        Threshold("least_calls", 5.0, "runs of a kernel with one grid"),
        Threshold("least_times", 10.0, "first run by the median"),
        Threshold("least_percent", 2.0, "share of the compute time of the trace"),
    ),
    shown_by="rocpd summary kernel-shapes JOB --by rank",
    action="It costs once: leave it out of measurements. Where runs are short, touch memory before the kernel does "
    "(hipMemPrefetchAsync, hipMemset; managed memory and HSA_XNACK=1 move pages at the first access), load code early "
    "(HIP_ENABLE_DEFERRED_LOADING=0), and run each kernel once as warm-up.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/"
    "unified_memory.html",
)


_LEAST_PERCENT = Threshold("least_percent", 5.0, "share of the compute time of the critical rank")
"""Kernels that take less are skipped."""

_HOT = "with {least_percent} % of the compute time of the critical rank or more"


class _HotKernel(NamedTuple):
    """A kernel that takes much of the compute time of the critical rank.

    Args:
        name: in full.
        category: its category, in lower case.
        metrics: values of its counter metrics, by name.
        peaks: peaks of these metrics.
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
    """The limit of a kernel: the rest of a sentence, numbers by name, and the action, where it depends on the limit."""

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
    """Return a rule that judges hot kernels.

    Args:
        id, asks, action: as in `Rule`.
        fires: description of the kernels that it finds; no full stop.
        read: metrics that a kernel needs to be judged.
        judge: returns the limit of a kernel; None: no problem.
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
        shown_by=f"rocpd summary {read.panel} JOB",
        action=action,
        reference="https://rocm.docs.amd.com/projects/rocprofiler-compute/en/latest/conceptual/performance-model.html",
    )


def _hot_kernels(case: Case, panel: str, names: tuple[str, ...]) -> Iterator[tuple[_HotKernel, float, float]]:
    """Yield the kernels that have these metrics of a panel, hottest first, with shares as `Case.hot`.

    Raises:
        CannotLookError: no hot kernel has all of them.
    """
    values: dict[str | None, dict[str, float]] = {}
    peaks: dict[str | None, dict[str, float | None]] = {}
    for row in case.rows(panel):
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
"""Metric -> the resource that work-groups wait for, and what to do."""
_ON_PURPOSE = ("Insufficient SIMD VGPRs", "Insufficient CU LDS")


def _waits_for_resources(kernel: _HotKernel) -> _Limited | None:
    is_matrix = any(word in kernel.category for word in _BY_DESIGN)
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
