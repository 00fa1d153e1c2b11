"""A deterministic training job, written as rocprofv3 writes one: for the demo, tests and benchmarks.

`options` is what is asked for. `job_plan` decides everything before a row is written, and is the answer key: `layout`
which ranks belong together, `plants` what can be planted, `conditions` whom it strikes, how fast everything is and what
clocks show, `timing` when everything happens. `workload` has the calls of a rank, written with `script` from `profiles`
and `kernels` as a `template`, and says what of it is recorded. `rank` writes a file: `stamp` makes rows of templates,
`identity` and `samples` what they refer to; `faults` damage it.

What makes jobs is imported when first used: the command line needs the options alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.simulator.options import PROFILES as PROFILES
from rocpd.simulator.options import JobOptions as JobOptions
from rocpd.simulator.options import Rccl as Rccl

if TYPE_CHECKING:
    from rocpd.simulator.conditions import NodeClock as NodeClock
    from rocpd.simulator.conditions import PlantedFact as PlantedFact
    from rocpd.simulator.job import simulate as simulate
    from rocpd.simulator.job_plan import JobPlan as JobPlan
    from rocpd.simulator.job_plan import RankPlan as RankPlan
    from rocpd.simulator.job_plan import TrueCollective as TrueCollective
    from rocpd.simulator.job_plan import TrueTransfer as TrueTransfer
    from rocpd.simulator.job_plan import plan as plan
    from rocpd.simulator.layout import GroupKind as GroupKind
    from rocpd.simulator.layout import RankGroup as RankGroup
    from rocpd.simulator.plants import Plant as Plant

_NAMES = {
    "conditions": ("NodeClock", "PlantedFact"),
    "job": ("simulate",),
    "job_plan": ("JobPlan", "RankPlan", "TrueCollective", "TrueTransfer", "plan"),
    "layout": ("GroupKind", "RankGroup"),
    "plants": ("Plant",),
}
"""Module -> what this package offers of it."""


def __getattr__(name: str) -> object:
    home = next((module for module, names in _NAMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'rocpd.simulator' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"rocpd.simulator.{home}"), name)
