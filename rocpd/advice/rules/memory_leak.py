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
        steps = _steps_to_full(case, finding)
        full = f"; memory is full after about {steps:,.0f} more steps" if steps is not None else ""
        yield replace(
            finding,
            text=finding.text + full,
            evidence={**finding.evidence, "steps_to_full": steps},
            shown_by="rocpd summary allocation-sites memory-steps JOB",
            action="Look whether what this call makes is freed or reused later. In PyTorch keep no tensors with their "
            "graph (loss.item(), .detach()), and compare torch.cuda.memory_snapshot() of two steps.",
            reference="https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
        )


def _steps_to_full(case: Case, finding: Finding) -> float | None:
    """Return how many more steps there is memory for on the fullest GPU; None: what it has is not known."""
    held, ranks, steps = (finding.evidence[name] for name in ("held_bytes", "ranks", "steps"))
    rooms = [
        int(row["capacity_bytes"]) - int(row["peak_bytes"])
        for row in case.rows("memory")
        if row["level"] == "REAL" and row["capacity_bytes"]
    ]
    is_known = rooms and isinstance(held, int) and isinstance(ranks, int) and isinstance(steps, int) and held > 0
    return max(0, min(rooms)) / (held / ranks / steps) if is_known else None  # type: ignore[operator]


RULE = Rule(
    id="memory.leak",
    asks="does memory grow step by step?",
    fires="a call leaves memory that nothing frees in nearly every step. Gains no time: it ends the run when memory is "
    "full, after as many steps as are said",
    look=_look,
    needs=(Need("allocation-sites", recording.ALLOCATIONS),),
)
