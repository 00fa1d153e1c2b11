"""A deterministic training job, written as rocprofv3 writes one: for the demo, tests and benchmarks.

`options` is what is asked for, and what can be planted. `job_plan` decides everything before a row is written, and is
the answer key: `layout` which ranks belong together, `conditions` whom planted facts strike, how fast everything is and
what clocks show, `timing` when everything happens. `workload` has the calls of a rank, written with `script` from
`kernels` as a template, and says what of it is recorded. `job` writes files: `stamp` makes rows of templates,
`identity` and `samples` what they refer to; `faults` damage them.

What makes jobs is imported when first used: the command line needs the options alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.simulator.options import PROFILES as PROFILES
from rocpd.simulator.options import JobOptions as JobOptions
from rocpd.simulator.options import Rccl as Rccl

if TYPE_CHECKING:
    from rocpd.simulator.job import simulate as simulate
    from rocpd.simulator.job_plan import plan as plan

_HOMES = {"simulate": "job", "plan": "job_plan"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rocpd.simulator' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"rocpd.simulator.{_HOMES[name]}"), name)
