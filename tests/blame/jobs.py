"""The truth on jobs of the simulator."""

from __future__ import annotations

from rocpd.simulator import JobOptions
from rocpd.simulator.job_plan import plan


def step_of(job: JobOptions) -> float:
    """Return the mean length of a step, from the first begin to the last end [ns]."""
    begins = plan(job).timing.anchors[1:, :, 0]
    return float(begins[-1].max() - begins[0].min()) / job.steps
