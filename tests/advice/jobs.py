"""Jobs that tests of advice share."""

from __future__ import annotations

from pathlib import Path

import rocpd
from rocpd.advice.advice import Advice
from rocpd.simulator import JobOptions, simulate


def simulated(folder: Path, plant: str = "none", seed: int = 11) -> list[Path]:
    return list(simulate(JobOptions(folder, ranks=4, nodes=2, steps=9, seed=seed, plant=plant)))


def advice_on(folder: Path, plant: str = "none", seed: int = 11) -> Advice:
    simulated(folder, plant, seed)
    return rocpd.advise(folder)


def rules_of(advice: Advice) -> set[str]:
    """Return the rules whose findings are told."""
    return {finding.rule for finding in advice.findings}


def reasons(advice: Advice) -> dict[str, str]:
    """Return rule -> why it could not look."""
    return {finding.rule: finding.text for finding in advice.unable}
