"""A deterministic data-parallel job, written as rocprofv3 writes one: for the demo, tests and benchmarks.

What makes jobs is imported when first used: the command line needs the options alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.simulator.options import PROFILES, JobOptions

if TYPE_CHECKING:
    from rocpd.simulator.job import simulate
    from rocpd.simulator.job_plan import JobPlan, NodeClock, RankPlan, plan

__all__ = ["PROFILES", "JobOptions", "JobPlan", "NodeClock", "RankPlan", "plan", "simulate"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'rocpd.simulator' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"rocpd.simulator.{'job' if name == 'simulate' else 'job_plan'}"), name)
