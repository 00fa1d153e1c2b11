"""Asynchronous copies that make the host wait: of memory that is not pinned."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    rows = case.of_critical("copy-calls")
    if rows and all(row["call"] is None for row in rows):
        raise CannotLookError(recording.HIP)
    waited = [row for row in rows if row["waited"]]
    share = case.job.share(sum(int(row["waited_ns"]) for row in waited))
    if share < case.limits["least_percent"]:
        return
    worst = max(waited, key=lambda row: int(row["waited_ns"]))
    example = case.example()
    yield Finding(
        f"rank {case.job.critical} waits {share:.0f} % of the time in {worst['call']} until its copy is done, most for "
        f"{worst['name']} of {worst['size']}: the memory of the host is not pinned",
        RULE.id,
        confidence=case.sure(Confidence.LIKELY),
        rank=case.job.critical,
        step=example.step,
        window=example.window,
        evidence={
            "waited": sum(int(row["waited"]) for row in waited),
            "waited_ns": sum(row["waited_ns"] for row in waited),
        },
        shown_by="rocpd summary copy-calls copy-sizes JOB --by rank",
        gain_percent=share,
        action="Copy from and to pinned memory: hipHostMalloc or hipHostRegister; in PyTorch pin_memory=True in the "
        "DataLoader and .to(device, non_blocking=True).",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/host_memory.html",
    )


RULE = Rule(
    id="copy.blocking",
    asks="do asynchronous copies make the host wait?",
    fires="calls whose name ends in Async and that return only when their copy is done take {least_percent} % of "
    "the time of the critical rank or more. Gains that time",
    look=_look,
    needs=(Need("copy-calls", recording.COPIES),),
    thresholds=(Threshold("least_percent", 2.0, "share of the time of the critical rank"),),
)
