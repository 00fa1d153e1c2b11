"""A deterministic data-parallel job, written as rocprofv3 writes one: for the demo, tests and benchmarks."""

from rocpd.simulate.job import simulate
from rocpd.simulate.options import PROFILES, JobOptions
from rocpd.simulate.plan import JobPlan, NodeClock, RankPlan, plan

__all__ = ["PROFILES", "JobOptions", "JobPlan", "NodeClock", "RankPlan", "plan", "simulate"]
