"""Rules on memory: what steps allocate, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice.case import ALLOCATIONS, KERNELS, Case, Row, some
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.facts.agent_time import FINISHED, NOT_STARTED
from rocpd.summary.findings import Confidence, Finding
from rocpd.table.human import readable

POOLED = ("hipMallocAsync", "hipMallocFromPoolAsync")
"""Calls that take memory from a pool: what would be advised is done."""

_SITES = "rocpd summary allocation-sites memory-steps JOB"


def _alloc_steady(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    for finding in case.problems("allocation-sites", "alloc.steady"):
        if not finding.text.startswith(POOLED):
            gain = _gain_without_calls(case, finding)
            yield case.finding(finding.text, gain, finding.evidence, finding.confidence)


def _gain_without_calls(case: Case, finding: Finding) -> float | None:
    """Return the share of the time that calls take which would not be made [%]; None where it is not known.

    No more than the GPU idles: what the host saves while the GPU works gains nothing.
    """
    where = finding.evidence["call"], finding.evidence["marker"]
    rows = [row for row in case.of_critical("allocation-sites") if (row["call"], row["marker"]) == where]
    calls = sum(int(row["churn_call_ns"]) for row in rows)
    idle = sum(int(row["idle_ns"]) for row in case.of_critical("idle") if row["cause"] not in (NOT_STARTED, FINISHED))
    return case.job.share(min(calls, idle)) if calls else None


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
    for finding in case.problems("allocation-sites", "memory.leak"):
        steps = _steps_to_full(case, finding)
        full = f"; memory is full after about {steps:,.0f} more steps" if steps is not None else ""
        yield replace(finding, text=finding.text + full, evidence={**finding.evidence, "steps_to_full": steps})


def _steps_to_full(case: Case, finding: Finding) -> float | None:
    """Return how many more steps there is memory for on the fullest GPU; None: what it has is not known."""
    held, ranks, steps = (finding.evidence[name] for name in ("held_bytes", "ranks", "steps"))
    rooms = [int(row["capacity_bytes"]) - int(row["peak_bytes"]) for row in _gpus(case)]
    is_known = rooms and isinstance(held, int) and isinstance(ranks, int) and isinstance(steps, int) and held > 0
    return max(0, min(rooms)) / (held / ranks / steps) if is_known else None  # type: ignore[operator]


def _gpus(case: Case) -> list[Row]:
    """Return what GPUs hold at most, and can hold, as far as both are known."""
    return [row for row in case.rows("memory") if row["level"] == "REAL" and row["capacity_bytes"]]


MEMORY_LEAK = Rule(
    id="memory.leak",
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
