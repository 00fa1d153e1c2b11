"""A deterministic training job, written as rocprofv3 writes one: for the demo, tests and benchmarks.

`options` is what is asked for. `job_plan` decides everything before a row is written: `layout` which ranks belong
together, `plants` and `facts` what is planted and whom it strikes, `conditions` how fast everything is, `clocks` what
nodes show, `timing` when everything happens; `truth` reads the answer key from it. `workload` has the calls of a rank,
written with `script` from `profiles`, `kernels` and `rccl` as a `template`; `program` and `lanes` give templates their
times. `rank` writes a file: `recording` says what is recorded, `columns` and `stamp` make rows of it, `identity`,
`symbols` and `samples` what they refer to; `faults` and `disk` damage it.

What makes jobs is imported when first used: the command line needs the options alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.simulator.options import PROFILES, JobOptions, Rccl

if TYPE_CHECKING:
    from rocpd.simulator.clocks import NodeClock
    from rocpd.simulator.facts import PlantedFact
    from rocpd.simulator.job import simulate
    from rocpd.simulator.job_plan import JobPlan, RankPlan, plan
    from rocpd.simulator.layout import GroupKind, RankGroup
    from rocpd.simulator.plants import Plant
    from rocpd.simulator.truth import TrueCollective, TrueTransfer

__all__ = [
    "PROFILES",
    "GroupKind",
    "JobOptions",
    "JobPlan",
    "NodeClock",
    "Plant",
    "PlantedFact",
    "RankGroup",
    "RankPlan",
    "Rccl",
    "TrueCollective",
    "TrueTransfer",
    "plan",
    "simulate",
]

_HOMES = {
    "GroupKind": "layout",
    "JobPlan": "job_plan",
    "NodeClock": "clocks",
    "Plant": "plants",
    "PlantedFact": "facts",
    "RankGroup": "layout",
    "RankPlan": "job_plan",
    "TrueCollective": "truth",
    "TrueTransfer": "truth",
    "plan": "job_plan",
    "simulate": "job",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rocpd.simulator' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"rocpd.simulator.{_HOMES[name]}"), name)
