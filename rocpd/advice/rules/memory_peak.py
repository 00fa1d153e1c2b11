"""Memory of a GPU that is nearly full."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.table.human import readable


def _look(case: Case) -> Iterator[Finding]:
    rows = [row for row in case.rows("memory") if row["level"] == "REAL" and row["capacity_bytes"]]
    if not rows:
        raise CannotLookError(recording.ALLOCATIONS)
    full = [row for row in rows if row["peak_bytes"] * 100 > row["capacity_bytes"] * case.limits["most_percent"]]
    if not full:
        return
    worst = max(full, key=lambda row: row["peak_bytes"] / row["capacity_bytes"])
    share = worst["peak_bytes"] * 100 / worst["capacity_bytes"]
    on = "" if len(full) == 1 else f", and {len(full) - 1} more GPUs"
    yield Finding(
        f"the GPU of rank {worst['rank']} holds {readable(worst['peak_bytes'], 'bytes')}, {share:.0f} % of its "
        f"memory{on}",
        RULE.id,
        confidence=Confidence.CERTAIN,
        rank=worst["rank"],
        agent=worst["agent"],
        window=(int(worst["peak_at_ns"]), int(worst["peak_at_ns"])),
        evidence={"peak_bytes": worst["peak_bytes"], "capacity_bytes": worst["capacity_bytes"], "gpus": len(full)},
        shown_by="rocpd summary memory memory-curve JOB",
        action="Leave room before the next larger batch or longer sequence fails: recompute activations (PyTorch: "
        "torch.utils.checkpoint), shard states (FSDP, ZeRO), smaller micro-batches. PYTORCH_HIP_ALLOC_CONF="
        "expandable_segments:True helps against fragments.",
        reference="https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html",
    )


RULE = Rule(
    id="memory.peak",
    asks="is the memory of a GPU nearly full?",
    fires="more than {most_percent} % of the memory of a GPU is held at its peak. Costs no time until it is full",
    look=_look,
    needs=(Need("memory", recording.ALLOCATIONS),),
    thresholds=(Threshold("most_percent", 90.0, "peak by the memory of the GPU"),),
)
