"""Memory that steps leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice import recording
from rocpd.advice.case import Case
from rocpd.advice.rule import Need, Rule
from rocpd.summary.findings import Finding


def _look(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    for finding in case.problems("allocation-sites", "memory.leak"):
        yield replace(
            finding,
            shown_by="rocpd summary allocation-sites memory-steps JOB",
            action="Look whether what this call makes is freed or reused later. In PyTorch keep no tensors with their "
            "graph (loss.item(), .detach()), and compare torch.cuda.memory_snapshot() of two steps.",
            reference="https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
        )


RULE = Rule(
    id="memory.leak",
    asks="does memory grow step by step?",
    fires="a call leaves memory that nothing frees in nearly every step. Costs no time until memory is full",
    look=_look,
    needs=(Need("allocation-sites", recording.ALLOCATIONS),),
)
