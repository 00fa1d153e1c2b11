"""The truth on jobs of the simulator, and which steps the first screen calls slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from rocpd.simulator import JobOptions
from rocpd.simulator.job_plan import plan
from rocpd.summary.findings import Finding


def step_of(job: JobOptions) -> float:
    """Return the mean length of a step, from the first begin to the last end [ns]."""
    begins = plan(job).timing.anchors[1:, :, 0]
    return float(begins[-1].max() - begins[0].min()) / job.steps


def slow_steps(findings: Iterable[Finding]) -> list[tuple[str, Finding]]:
    """Return each slow step, with the finding on it and on those that are slow for the same cause."""
    slow = (finding for finding in findings if finding.rule == "step.outlier" and finding.step)
    return [(step, finding) for finding in slow for step in cast("list[str]", finding.evidence["alike"])]
