"""Each fact that the simulator plants fires its rule and no other; a job without any fires none."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.advice.advice import Advice
from rocpd.simulator import JobOptions, Plant, simulate

EXPECTED = {
    Plant.STRAGGLER: "comm.straggler",
    Plant.INTERMITTENT: "step.outlier",
    Plant.SLOW_STEP: "step.outlier",
    Plant.IMBALANCE: "rank.imbalance",
    Plant.LATE_LAUNCH: "comm.straggler",
    Plant.EXPOSED_COMMUNICATION: "comm.exposed",
    Plant.LAUNCH_BOUND: "gpu.starved",
    Plant.SLOW_INPUT: "gpu.starved",
    Plant.LOST_DISPATCHES: "trace.incomplete",
    Plant.LOST_LAUNCHES: "trace.incomplete",
    Plant.LOST_GRAPH_KERNELS: "trace.incomplete",
    Plant.LOST_RANK: "trace.incomplete",
    Plant.LOST_EVENTS: "trace.incomplete",
    Plant.NO_HIP_TRACE: "trace.incomplete",
}


def advice_on(folder: Path, plant: str, seed: int = 11) -> Advice:
    simulate(JobOptions(folder, ranks=3, nodes=2, steps=8, seed=seed, plant=plant))
    with rocpd.connect(folder) as session:
        return session.advise()


@pytest.mark.parametrize("plant", EXPECTED)
def test_a_planted_fact_fires_its_rule_alone(plant: Plant, tmp_path: Path) -> None:
    advice = advice_on(tmp_path, plant)
    assert {finding.rule for finding in advice.findings} == {EXPECTED[plant]}


@pytest.mark.parametrize("seed", range(5))
def test_a_job_without_planted_facts_fires_none(seed: int, tmp_path: Path) -> None:
    advice = advice_on(tmp_path, "none", seed)
    assert [finding.text for finding in advice.findings] == []
    assert advice.silent
