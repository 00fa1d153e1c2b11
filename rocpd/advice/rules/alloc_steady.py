"""Memory that is allocated and freed in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice import recording
from rocpd.advice.case import Case
from rocpd.advice.rule import Need, Rule
from rocpd.summary.findings import Finding
from rocpd.summary.idle_causes import DRAINED, START

POOLED = ("hipMallocAsync", "hipMallocFromPoolAsync")
"""Calls that take memory from a pool: what would be advised is done."""


def _look(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    for finding in case.problems("allocation-sites", "alloc.steady"):
        if not finding.text.startswith(POOLED):
            example = case.example()
            yield replace(
                finding,
                rank=case.job.critical,
                gain_percent=_gain(case, finding),
                step=example.step,
                window=example.window,
                shown_by="rocpd summary allocation-sites memory-steps JOB",
                action="Allocate once before the loop, or from a pool: hipMallocAsync with "
                "hipMemPoolAttrReleaseThreshold set, in PyTorch its caching allocator "
                "(PYTORCH_NO_HIP_MEMORY_CACHING unset; PYTORCH_HIP_ALLOC_CONF=expandable_segments:True against "
                "fragments). hipMalloc and hipFree make all streams wait.",
                reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/"
                "stream_ordered_allocator.html",
            )


def _gain(case: Case, finding: Finding) -> float | None:
    """Return the share of the time that calls take which would not be made [%]; None where it is not known.

    No more than the GPU idles: what the host saves while the GPU works gains nothing.
    """
    where = finding.evidence["call"], finding.evidence["marker"]
    rows = [row for row in case.of_critical("allocation-sites") if (row["call"], row["marker"]) == where]
    calls = sum(int(row["churn_call_ns"]) for row in rows)
    idle = sum(int(row["idle_ns"]) for row in case.of_critical("idle") if row["cause"] not in (START, DRAINED))
    return case.job.share(min(calls, idle)) if calls else None


RULE = Rule(
    id="alloc.steady",
    asks="do steps allocate what they free again?",
    fires="a call frees in the same step what it allocates, in more than half of the steps, and takes it from no pool. "
    "Gains the time of these calls, as far as the GPU idles so long",
    look=_look,
    needs=(Need("allocation-sites", recording.ALLOCATIONS), Need("idle", recording.KERNELS)),
)
