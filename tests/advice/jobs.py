"""Jobs that tests of advice share."""

from __future__ import annotations

from pathlib import Path

import rocpd
from rocpd.advice.advice import Advice
from rocpd.simulator import JobOptions, simulate


def simulated(folder: Path, plant: str = "none", seed: int = 11, counters: str = "few") -> list[Path]:
    """Write the files of a small job; nodes and links show only beside others that have as many ranks."""
    ranks, steps = (4, 10) if plant in ("slow-node", "late-node", "slow-link") else (3, 8)
    stages = 2 if plant == "slow-link" else 1
    job = JobOptions(folder, ranks, 2, steps, seed, "llm", pp=stages, plant=plant, counters=counters)
    return list(simulate(job))


def advice_on(folder: Path, plant: str = "none", seed: int = 11, counters: str = "few") -> Advice:
    simulated(folder, plant, seed, counters)
    return rocpd.advise(folder)


def rules_of(advice: Advice) -> set[str]:
    """Return the rules whose findings are told."""
    return {finding.rule for finding in advice.findings}


def reasons(advice: Advice) -> dict[str, str]:
    """Return rule -> why it could not look."""
    return {finding.rule: finding.text for finding in advice.unable}
