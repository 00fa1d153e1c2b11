"""Profiles of runs, written down: a step of one kernel and some idle time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocpd.compare.measure import CodeFacts, KernelLaunch
from rocpd.compare.run_profile import COMPUTE, LaunchUse, RankUse, RunFacts, RunProfile
from rocpd.history import store

DAY = 86_400 * 10**9
FIRST = 1_790_000_000 * 10**9  # 2026-09-21, of the first run [ns since 1970]
STEPS = 4


def run_of(number: int, step: float = 1e6, kernel: str = "gemm", grid: int = 64, host: str = "node1") -> RunProfile:
    """Return a run of four equal steps, of which a kernel takes nine tenths and waiting for the host one.

    Args:
        number: says which run it is.
        step: time of a step [ns].
        kernel, grid: what is launched.
        host: where.
    """
    launch = KernelLaunch("compute", kernel, kernel, "GEMM", "step #", (grid, 1, 1, 64, 1, 1), CodeFacts())
    busy, idle = round(step * STEPS * 0.9), round(step * STEPS * 0.1)
    use = LaunchUse(launch, STEPS, busy, {COMPUTE: busy}, step * 0.9)
    facts = RunFacts(1, 1, ("MI300X",), ("3",), ("kernels",), commands=("train",), rocm=("7.1.0",))
    return RunProfile(
        f"run{number}",
        "step",
        tuple(range(STEPS)),
        0,
        {"step": (step,) * STEPS},
        1,
        (use,),
        {"idle: host work": idle},
        (RankUse(0, host, step),),
        facts,
        guids=(f"guid{number}",),
    )


def with_facts(run: RunProfile, **facts: Any) -> RunProfile:
    """Return a run that was something else."""
    return replace(run, facts=replace(run.facts, **facts))


def stored(folder: Path, runs: Iterable[RunProfile], first: int = 0) -> Path:
    """Add runs to a store, one a day; return the store."""
    for number, run in enumerate(runs, first):
        store.add(folder, [run], {"commit": f"c{number:03}"}, FIRST + number * DAY, FIRST + 500 * DAY + number)
    return folder
