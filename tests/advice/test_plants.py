"""Each fact that the simulator plants fires its rule and no other; a job without any fires none."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.advice.advice import Advice
from rocpd.advice.registry import RULES
from rocpd.simulator import JobOptions, Plant, simulate

EXPECTED = {
    Plant.STRAGGLER: "comm.straggler",
    Plant.INTERMITTENT: "step.outlier",
    Plant.SLOW_NODE: "comm.straggler",
    Plant.SLOW_STEP: "step.outlier",
    Plant.IMBALANCE: "rank.imbalance",
    Plant.LATE_LAUNCH: "comm.straggler",
    Plant.THROTTLED: "clock.throttle",
    Plant.SLOW_COLLECTIVES: "comm.slow",
    Plant.EXPOSED_COMMUNICATION: "comm.exposed",
    Plant.LOST_OVERLAP: "comm.exposed",
    Plant.SAME_STREAM: "comm.same_stream",
    Plant.LAUNCH_BOUND: "gpu.starved",
    Plant.SMALL_KERNELS: "launch.small",
    Plant.SYNCHRONOUS_CALLS: "sync.calls",
    Plant.PROFILER_COST: "profiler.cost",
    Plant.SLOW_INPUT: "gpu.starved",
    Plant.PAGEABLE_COPIES: "copy.blocking",
    Plant.SMALL_COPIES: "copy.small",
    Plant.STEADY_ALLOCATION: "alloc.steady",
    Plant.LEAK: "memory.leak",
    Plant.MEMORY_PEAK: "memory.peak",
    Plant.MODULE_LOADS: "module.load",
    Plant.SMALL_GRIDS: "kernel.grid",
    Plant.LOW_OCCUPANCY: "kernel.occupancy",
    Plant.UNSTABLE_KERNEL: "kernel.unstable",
    Plant.CLOCK_STEP: "trace.incomplete",
    Plant.LOST_DISPATCHES: "trace.incomplete",
    Plant.LOST_LAUNCHES: "trace.incomplete",
    Plant.LOST_GRAPH_KERNELS: "trace.incomplete",
    Plant.LOST_RANK: "trace.incomplete",
    Plant.LOST_EVENTS: "trace.incomplete",
    Plant.NO_HIP_TRACE: "trace.incomplete",
}


def advice_on(folder: Path, plant: str, seed: int = 11) -> Advice:
    simulate(JobOptions(folder, ranks=4, nodes=2, steps=9, seed=seed, plant=plant))
    with rocpd.connect(folder) as session:
        return session.advise()


def test_every_plant_has_a_rule_and_every_rule_a_plant() -> None:
    assert set(EXPECTED) == set(Plant)
    assert {rule.id for rule in RULES} == set(EXPECTED.values())


@pytest.mark.parametrize("plant", Plant)
def test_a_planted_fact_fires_its_rule_alone(plant: Plant, tmp_path: Path) -> None:
    advice = advice_on(tmp_path, plant)
    assert {finding.rule for finding in advice.findings} == {EXPECTED[plant]}


@pytest.mark.parametrize("seed", range(5))
def test_a_job_without_planted_facts_fires_none(seed: int, tmp_path: Path) -> None:
    advice = advice_on(tmp_path, "none", seed)
    assert [finding.text for finding in advice.findings] == []
    assert advice.silent
