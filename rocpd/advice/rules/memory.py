"""Rules on memory: allocations of steps, leaks, and copies that are slow, small, or make hosts wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice.case import ALLOCATIONS, COPIES, HIP, KERNELS, CannotLookError, Case, Row, short, some, window_of
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.facts.agent_time import FINISHED, NOT_STARTED
from rocpd.facts.timeline import EXPOSED_COPIES
from rocpd.replay.changes import OVERLAPPED
from rocpd.summary.findings import Confidence, Finding
from rocpd.summary.memory.copies import size_label
from rocpd.summary.memory.memory import LEAK
from rocpd.table.human import readable

POOLED = ("hipMallocAsync", "hipMallocFromPoolAsync")
"""Calls that allocate from a pool: they already follow the advice."""

_SITES = "rocpd summary allocation-sites memory-steps JOB"


def _alloc_steady(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    for finding in case.problems("allocation-sites", "alloc.steady"):
        if not finding.text.startswith(POOLED):
            where = finding.evidence["call"], finding.evidence["marker"]
            rows = [row for row in case.of_critical("allocation-sites") if (row["call"], row["marker"]) == where]
            calls = sum(int(row["churn_call_ns"]) for row in rows)
            waits = [row for row in case.of_critical("idle") if row["cause"] not in (NOT_STARTED, FINISHED)]
            # Time that the host saves while the GPU works gains nothing.
            gain = case.job.share(min(calls, sum(int(row["idle_ns"]) for row in waits))) if calls else None
            yield case.finding(finding.text, gain, finding.evidence, finding.confidence)


ALLOC_STEADY = Rule(
    id="alloc.steady",
    asks="do steps allocate what they free again?",
    fires="a call frees in the same step what it allocates, in more than half of the steps, and takes it from no pool. "
    "Gains the time of these calls, as far as the GPU idles so long",
    look=_alloc_steady,
    needs=(Need("allocation-sites", ALLOCATIONS), Need("idle", KERNELS)),
    shown_by=_SITES,
    action="Allocate once before the loop, or from a pool: hipMallocAsync with hipMemPoolAttrReleaseThreshold set, in "
    "PyTorch its caching allocator (PYTORCH_NO_HIP_MEMORY_CACHING unset; PYTORCH_HIP_ALLOC_CONF="
    "expandable_segments:True against fragments). hipMalloc and hipFree make all streams wait.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/"
    "stream_ordered_allocator.html",
)


def _memory_leak(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    for finding in case.problems("allocation-sites", LEAK):
        held, ranks, counted = (finding.evidence[name] for name in ("held_bytes", "ranks", "steps"))
        rooms = [int(row["capacity_bytes"]) - int(row["peak_bytes"]) for row in _gpus(case)]
        full, steps = "", None  # until the fullest GPU is full
        if rooms and isinstance(held, int) and isinstance(ranks, int) and isinstance(counted, int) and held > 0:
            steps = max(0, min(rooms)) / (held / ranks / counted)
            seconds = steps * case.job.step_ns / 1e9
            units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
            unit, length = next((each for each in units if seconds >= 2 * each[1]), units[-1])
            count, time = (f"{float(f'{each:.2g}'):,.12g}" for each in (round(steps), seconds / length))
            full = f"; memory is full after about {count} more steps, in {time} {unit}"
        yield replace(finding, text=finding.text + full, evidence={**finding.evidence, "steps_to_full": steps})


def _gpus(case: Case) -> list[Row]:
    """Return the rows with peak and capacity of the memory of GPUs, where both are known."""
    return [row for row in case.rows("memory") if row["level"] == "REAL" and row["capacity_bytes"]]


MEMORY_LEAK = Rule(
    id=LEAK,
    asks="does memory grow step by step?",
    fires="a call leaves memory that nothing frees in nearly every step. Gains no time: it ends the run when memory is "
    "full, after as many steps as are said",
    look=_memory_leak,
    needs=(Need("allocation-sites", ALLOCATIONS),),
    shown_by=_SITES,
    action="Look whether what this call makes is freed or reused later. In PyTorch keep no tensors with their graph "
    "(loss.item(), .detach()), and compare torch.cuda.memory_snapshot() of two steps.",
    reference="https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
)


def _memory_peak(case: Case) -> Iterator[Finding]:
    rows = some(_gpus(case), ALLOCATIONS)
    full = [row for row in rows if row["peak_bytes"] * 100 > row["capacity_bytes"] * case.limits["most_percent"]]
    if not full:
        return
    worst = max(full, key=lambda row: row["peak_bytes"] / row["capacity_bytes"])
    share = worst["peak_bytes"] * 100 / worst["capacity_bytes"]
    on = "" if len(full) == 1 else f", and {len(full) - 1} more GPUs"
    held = readable(worst["peak_bytes"], "bytes")
    text = f"the GPU of rank {worst['rank']} holds {held}, {share:.0f} % of its memory{on}"
    evidence = {"peak_bytes": worst["peak_bytes"], "capacity_bytes": worst["capacity_bytes"], "gpus": len(full)}
    found = case.finding(text, None, evidence, Confidence.CERTAIN, worst)
    yield replace(found, window=(int(worst["peak_at_ns"]), int(worst["peak_at_ns"])))


MEMORY_PEAK = Rule(
    id="memory.peak",
    asks="is the memory of a GPU nearly full?",
    fires="more than {most_percent} % of the memory of a GPU is held at its peak. Costs no time until it is full",
    look=_memory_peak,
    needs=(Need("memory", ALLOCATIONS),),
    thresholds=(Threshold("most_percent", 90.0, "peak by the memory of the GPU"),),
    shown_by="rocpd summary memory memory-curve JOB",
    action="Leave room before the next larger batch or longer sequence fails: recompute activations (PyTorch: "
    "torch.utils.checkpoint), shard states (FSDP, ZeRO), smaller micro-batches. PYTORCH_HIP_ALLOC_CONF="
    "expandable_segments:True helps against fragments.",
    reference="https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html",
)


_PIN = (
    "Copy from and to pinned memory: hipHostMalloc or hipHostRegister; in PyTorch pin_memory=True in the DataLoader "
    "and .to(device, non_blocking=True)."
)
_WITH_HOST = ("MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST")
_LARGE = tuple(size_label(number) for number in (3, 4, 5))  # above 1 MiB: smaller copies are slow by nature


def _copy_blocking(case: Case) -> Iterator[Finding]:
    rows = case.of_critical("copy-calls")
    if rows and all(row["call"] is None for row in rows):
        raise CannotLookError(HIP)
    waited = [row for row in rows if row["waiting_copies"]]
    waited_ns = sum(int(row["waited_ns"]) for row in waited)
    share = case.job.share(waited_ns)
    if share < case.limits["least_percent"]:
        yield from _slow(case)
        return
    worst = max(waited, key=lambda row: int(row["waited_ns"]))
    text = (
        f"rank {case.job.critical} waits {share:.0f} % of the time in {worst['call']} until its copy is done, most for "
        f"{worst['name']} of {worst['size']}: the memory of the host is not pinned"
    )
    evidence = {"waited": sum(int(row["waiting_copies"]) for row in waited), "waited_ns": waited_ns}
    yield case.finding(text, share, evidence, case.sure(Confidence.LIKELY))


def _slow(case: Case) -> Iterator[Finding]:
    """Yield large copies between host and GPU that are slower than the fastest of their size and direction."""
    best = defaultdict[tuple[str, str], float](float)
    for row in case.rows("copy-sizes"):
        best[row["name"], row["size"]] = max(float(row["max_gib_per_s"] or 0.0), best[row["name"], row["size"]])
    large = [row for row in case.of_critical("copy-sizes") if row["name"] in _WITH_HOST and row["size"] in _LARGE]
    often = [(row, best[row["name"], row["size"]]) for row in large if row["copies"] >= case.limits["least_copies"]]
    slow = [(row, most) for row, most in often if row["median_gib_per_s"] * 100 < case.limits["of_best_percent"] * most]
    lost = sum(int(row["total_ns"]) * (1 - float(row["median_gib_per_s"]) / most) for row, most in slow)
    share = min(case.job.share(lost), case.job.part(EXPOSED_COPIES))
    if not slow or share < case.limits["least_percent"]:
        return
    worst, most = max(slow, key=lambda pair: int(pair[0]["total_ns"]))
    text = (
        f"half of the copies of rank {case.job.critical} for {worst['name']} of {worst['size']} are slower than "
        f"{worst['median_gib_per_s']:.1f} GiB/s, the fastest make {most:.1f}: as if the memory of the host were not "
        "pinned, or far from the GPU"
    )
    evidence = {"median_gib_per_s": worst["median_gib_per_s"], "max_gib_per_s": most, "lost_ns": round(lost)}
    found = case.finding(text, share, evidence, Confidence.HINT)
    action = f"{_PIN} Allocate it on the node of the GPU: `numactl --membind`, `amd-smi topology` shows which."
    yield replace(found, action=action, shown_by="rocpd summary copy-sizes slowest-copies JOB --by rank")


COPY_BLOCKING = Rule(
    id="copy.blocking",
    asks="do asynchronous copies make the host wait?",
    fires="calls whose name ends in Async and that return only when their copy is done take {least_percent} % of "
    "the time of the critical rank or more; or what its copies between host and GPU above 1 MiB, {least_copies} of a "
    "size or more, would take less does so, where half are slower than {of_best_percent} % of the fastest of the same "
    "size. Gains that time, of slow copies no more than what is exposed",
    look=_copy_blocking,
    without=lambda _: [OVERLAPPED["copies"]],
    needs=(Need("copy-calls", COPIES), Need("copy-sizes", COPIES)),
    thresholds=(
        Threshold("least_percent", 2.0, "share of the time of the critical rank"),
        Threshold("of_best_percent", 50.0, "median rate by that of the fastest copy of the same direction and size"),
        Threshold("least_copies", 20.0, "copies of a direction and size"),
    ),
    explains=lambda _cause, other: other.rule == "copy.exposed",
    shown_by="rocpd summary copy-calls copy-sizes JOB --by rank",
    action=_PIN,
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/"
    "host_memory.html",
)


def _copy_exposed(case: Case) -> Iterator[Finding]:
    share = case.job.part(EXPOSED_COPIES)
    if share < case.limits["least_percent"]:
        return
    rows = case.of_critical("copy-sizes")
    times = Counter[str]()
    for row in rows:
        times[row["name"]] += int(row["total_ns"])
    name = max(times, key=times.__getitem__)
    largest = max((row for row in rows if row["name"] == name), key=lambda row: int(row["total_ns"]))
    rate = largest["median_gib_per_s"]
    at = f", {rate:.1f} GiB/s in the median for those of {largest['size']}" if rate else ""
    text = (
        f"the GPU of rank {case.job.critical} copies {share:.0f} % of the time while nothing else runs, most {name}{at}"
    )
    found = case.finding(text, share, {"exposed_percent": share, "gib_per_s": rate}, Confidence.CERTAIN)
    grown = [row for row in case.rows("steps") if row["grew"] == "copy"]
    worst = max(grown, key=lambda row: int(row["grew_by_ns"]), default=None)
    yield replace(found, step=str(worst["step"]), window=window_of(worst, "max_ns")) if worst else found


COPY_EXPOSED = Rule(
    id="copy.exposed",
    asks="do copies take time in which the GPU could compute?",
    fires="copies take {least_percent} % of the time of the critical rank or more while it neither computes nor "
    "communicates. Gains that time",
    look=_copy_exposed,
    without=lambda _: [OVERLAPPED["copies"]],
    needs=(Need("copy-sizes", COPIES),),
    thresholds=(Threshold("least_percent", 10.0, "share of the time of the critical rank"),),
    shown_by="rocpd summary budget copy-sizes copy-pairs JOB --by rank",
    action="Copy on a stream of its own while kernels run (hipMemcpyAsync; PyTorch: prefetch the next batch with "
    "non_blocking=True on a side stream), keep on the GPU what each step copies anew, and copy less: smaller types, "
    "fewer rounds between host and GPU.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/asynchronous.html",
)


_SMALL = tuple(size_label(number) for number in (0, 1))  # up to 64 KiB


def _copy_small(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    small = [row for row in case.of_critical("copy-calls") if row["size"] in _SMALL]
    if small and all(row["call"] is None for row in small):
        raise CannotLookError(HIP)
    per_step = sum(float(row["copies_per_step"] or 0.0) for row in small)
    calls_ns = sum(int(row["api_ns"]) for row in small)
    share = case.job.share(calls_ns)
    if per_step <= case.limits["copies_per_step"] or share < case.limits["least_percent"]:
        return
    most = max(small, key=lambda row: int(row["copies"]))
    text = (
        f"rank {case.job.critical} makes {per_step:.0f} copies of up to 64 KiB in each step, most "
        f"{short(most['name'])}: their calls take {share:.0f} % of the time"
    )
    yield case.finding(text, share, {"copies_per_step": per_step, "api_ns": calls_ns})


COPY_SMALL = Rule(
    id="copy.small",
    asks="are there many small copies?",
    fires="the critical rank makes more than {copies_per_step} copies of up to 64 KiB in a step, whose calls take "
    "{least_percent} % of its time or more. Gains that time",
    look=_copy_small,
    needs=(Need("copy-calls", COPIES),),
    thresholds=(
        Threshold("copies_per_step", 100.0, "copies of up to 64 KiB in a step of a rank"),
        Threshold("least_percent", 2.0, "share of the time of the critical rank in their calls"),
    ),
    shown_by="rocpd summary copy-calls JOB --by rank",
    action="Put small pieces together and copy once, keep on the GPU what does not change, or let kernels read few "
    "bytes from pinned host memory.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/performance_guidelines.html",
)
