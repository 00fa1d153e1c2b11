"""Memory that is allocated and freed in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice import recording
from rocpd.advice.case import Case
from rocpd.advice.rule import Need, Rule
from rocpd.summary.findings import Finding

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


RULE = Rule(
    id="alloc.steady",
    asks="do steps allocate what they free again?",
    fires="a call frees in the same step what it allocates, in more than half of the steps, and takes it from no pool. "
    "Says no gain: hipMalloc and hipFree cost what they make others wait for",
    look=_look,
    needs=(Need("allocation-sites", recording.ALLOCATIONS),),
)
