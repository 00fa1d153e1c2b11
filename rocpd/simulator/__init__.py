"""A deterministic training job, written as rocprofv3 writes it: for the demo, tests and benchmarks.

`options` has the options and the facts that can be planted. `job_plan` decides everything before a row is written, and
is the answer key: `layout` groups ranks, `conditions` has the targets of planted facts, speeds and clocks, `timing`
the times of everything. `workload` has the calls of a rank, which `script` writes from `kernels` as a template, and
decides which of them are recorded. `job` writes files: `stamp` makes rows of templates, `identity` and `samples` the
rows that they refer to; `faults` damage them.

The modules that make jobs are imported at first use, since the command line needs only the options.
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
