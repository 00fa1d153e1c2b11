"""Each fact that the simulator plants fires its rule and no other; a job without any fires none, whatever the rule."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rocpd.advice.registry import RULES, known_rules
from rocpd.simulator.options import Plant
from rocpd.summary.reading import planned
from tests.advice.jobs import advice_on, reasons, rules_of
from tests.advice.test_counted import GOOD as COUNTED
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.soak import sized

EXPECTED = {
    Plant.STRAGGLER: "comm.straggler",
    Plant.INTERMITTENT: "step.outlier",
    Plant.SLOW_NODE: "comm.straggler",
    Plant.SLOW_STEP: "step.outlier",
    Plant.IMBALANCE: "rank.imbalance",
    Plant.LATE_LAUNCH: "comm.straggler",
    Plant.LATE_NODE: "comm.straggler",
    Plant.SLOW_LINK: "comm.straggler",
    Plant.HOST_STALL: "step.outlier",
    Plant.THROTTLED: "clock.throttle",
    Plant.SLOWDOWN: "comm.straggler",
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
    Plant.CLOCK_STEP: "trace.incomplete",
    Plant.LOST_DISPATCHES: "trace.incomplete",
    Plant.LOST_LAUNCHES: "trace.incomplete",
    Plant.LOST_GRAPH_KERNELS: "trace.incomplete",
    Plant.LOST_RANK: "trace.incomplete",
    Plant.LOST_EVENTS: "trace.incomplete",
    Plant.NO_HIP_TRACE: "trace.incomplete",
}
"""Plant -> the rule that it fires."""

BESIDE = {"slowdown": {"kernel.unstable"}}
"""Plants that one more rule is right about: kernels that took long in some steps."""

PLANTED = set(EXPECTED.values())

CHANGES = (Plant.SLOW_KERNEL, Plant.LARGER_GRIDS, Plant.MORE_CALLS, Plant.OTHER_TILE, Plant.NEW_KERNEL, Plant.SLOW_GPUS)
"""Facts that show against another run alone: nothing is to be found in one."""

TOGETHER = (
    "straggler,memory-peak,low-occupancy,leak,lost-events",
    "slow-step,steady-allocation,small-grids",
    "imbalance,module-loads",
    "late-launch,pageable-copies",
    "throttled,small-copies",
    "slow-collectives,profiler-cost",
    "exposed-communication",
    "lost-overlap",
    "same-stream,lost-dispatches",
    "launch-bound,lost-launches",
    "small-kernels",
    "synchronous-calls,lost-rank",
    "slow-input,lost-graph-kernels",
    "clock-step,no-hip-trace",
    "slowdown",
    "slow-node",
    "late-node",
    "slow-link",
    "host-stall",
    "intermittent",
    "slow-kernel,larger-grids,more-calls,other-tile,new-kernel,slow-gpus",
)
"""Every plant; those of a job do not hide each other."""


def test_every_plant_has_a_rule() -> None:
    assert {*EXPECTED, *CHANGES} == set(Plant)
    assert sorted(plant for job in TOGETHER for plant in job.split(",")) == sorted(Plant)
    assert {rule.id for rule in RULES} >= PLANTED


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_is_tested(rule: str) -> None:
    """On tables that are made by hand, on counters that are, or by what the simulator plants."""
    test = Path(__file__).parent / "rules" / f"test_{rule.replace('.', '_')}.py"
    assert rule in PLANTED or rule in COUNTED or test.exists(), (
        f"write {test}: what {rule} finds in tables made by hand"
    )


@pytest.mark.soak
@pytest.mark.parametrize("plants", sized(TOGETHER, (*EXPECTED, *CHANGES)))
def test_planted_facts_fire_their_rules_and_no_other(plants: str, tmp_path: Path) -> None:
    advice = advice_on(tmp_path / "job", plants)
    fired = {EXPECTED[Plant(plant)] for plant in plants.split(",") if plant not in CHANGES}
    assert rules_of(advice) == fired | BESIDE.get(plants, set())
    gains = [
        (finding.gain_percent or 0) * (1 if known_rules()[finding.rule].is_fault else 0.5)
        for finding in advice.findings
    ]
    limiting = sum(finding.rule == "trace.incomplete" for finding in advice.findings)
    assert gains[limiting:] == sorted(gains[limiting:], reverse=True)
    for finding in advice.findings:
        assert finding.action
        assert str(finding.reference).startswith("https://")
        program, command, *words = shlex.split(finding.shown_by or "")
        assert (program, command) == ("rocpd", "summary")
        assert planned(words[: words.index(str(tmp_path / "job"))])
        assert finding.gain_percent is None or 2 <= finding.gain_percent <= 100


def test_findings_say_where_and_how_much(tmp_path: Path) -> None:
    """What grew in the slow step, in which markers the host waits, what a pool would save, when memory is full."""
    found = {
        finding.rule: finding
        for plants in ("slow-step,steady-allocation", "synchronous-calls", "leak")
        for finding in advice_on(tmp_path / plants, plants).findings
    }
    slow = found["step.outlier"]
    assert slow.evidence["grew"] == "compute"
    assert "in it: compute " in slow.text
    assert re.search(r"most in hipDeviceSynchronize, \d+ % of it in step # / \w+", found["sync.calls"].text)
    assert list(found["sync.calls"].evidence) == ["hipDeviceSynchronize"]  # other calls hardly matter
    assert 12 <= (found["sync.calls"].gain_percent or 0) <= 18  # 15 % less without these calls
    assert 2 <= (found["alloc.steady"].gain_percent or 0) < 4
    leak = found["memory.leak"]
    assert leak.gain_percent is None
    assert isinstance(leak.evidence["steps_to_full"], float)
    assert re.search(r"memory is full after about \d\d[0,]* more steps", leak.text)  # two digits say enough


def test_what_is_planted_together_is_told_apart(tmp_path: Path) -> None:
    """A straggler that is late in all steps is not why one of them is slow."""
    advice = advice_on(tmp_path / "job", "straggler,slow-step")
    assert rules_of(advice) == {"comm.straggler", "step.outlier"}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(2, 50)))
def test_a_job_without_planted_facts_fires_none(seed: int, tmp_path: Path) -> None:
    advice = advice_on(tmp_path, "none", seed, "many")
    assert [finding.text for finding in advice.findings] == []
    assert set(advice.silent) >= PLANTED | COUNTED.keys()


def test_a_job_with_few_counters_says_which_rules_can_not_look(tmp_path: Path) -> None:
    advice = advice_on(tmp_path)
    assert list(advice.findings) == []
    assert reasons(advice).keys() >= COUNTED.keys()
    assert set(advice.silent) >= PLANTED


@pytest.mark.parametrize(("slow", "rules"), [(True, {"copy.blocking"}), (False, set())])
def test_copies_that_are_slower_than_others_of_their_size(slow: bool, rules: set[str], open_job: OpenJob) -> None:
    """25 copies of 4 MiB, nothing hides them: five take 100 us, the others as long or five times as long."""
    trace, now = TraceBuilder(), 1_000_000
    for number in range(25):
        length = 500_000 if slow and number >= 5 else 100_000
        trace.region("hipMemcpyAsync", now - 9_000, now - 5_000, stack=number + 1)
        trace.copy(now, now + length, size=4 << 20, stack=number + 1).kernel("k", now + length, now + length + 50_000)
        now += length + 60_000
    advice = open_job(trace).advise()
    assert {finding.rule for finding in advice.findings} & {"copy.blocking"} == rules
    for finding in advice.findings:
        if finding.rule == "copy.blocking":
            assert finding.evidence["lost_ns"] == pytest.approx((5 * 100 + 20 * 500) * 1000 * 0.8, rel=0.01)
            assert finding.text.startswith("half of the copies of rank 0 for MEMORY_COPY_HOST_TO_DEVICE")
