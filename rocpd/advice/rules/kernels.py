"""Rules on kernels, by what every trace says of them: grids, registers, and times from run to run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocpd.advice.case import KERNELS, CannotLookError, Case, Row, short, some
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.base.amount import amount
from rocpd.summary.findings import Confidence, Finding


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
    """Return which part of the compute units has nothing to do, on average; 0 where that is not worth saying."""
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


_BY_DESIGN = ("gemm", "attention", "convolution")  # matrix kernels fill all registers on purpose


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


def _kernel_unstable(case: Case) -> Iterator[Finding]:
    rows = case.computing("kernel-shapes")
    least = case.limits["least_calls"]
    kernels = [row for row in rows if row["groups"] and row["calls"] >= least and row["unstable_ns"] is not None]
    some(kernels, f"no kernel runs {least:.0f} times with one grid that is recorded")
    every = sum(int(row["total_ns"]) for row in rows)
    share = sum(int(row["unstable_ns"]) for row in kernels) * 100 / every if every else 0.0
    if share < case.limits["least_percent"]:
        return
    worst = max(kernels, key=lambda row: int(row["unstable_ns"]))
    text = (
        f"half of the runs of kernels of rank {case.job.critical} take so much longer than their fast ones that it "
        f"makes {share:.0f} % of the compute time, most in {short(worst['name'])}"
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
