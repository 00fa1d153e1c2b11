"""What the first screen says of whole jobs of every layout, of which ranks differ by 2 % a step."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import plan
from rocpd.summary.findings import Confidence, Finding, Verdict
from tests.blame.jobs import slow_steps, step_of
from tests.soak import sized
from tests.summary.cells import cells

LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "data": {"ranks": 8},
    "tensor": {"ranks": 4, "tp": 4},
    "tensor and data": {"ranks": 8, "nodes": 2, "tp": 4},
    "tensor and data, eight nodes": {"ranks": 32, "nodes": 8, "tp": 4},
    "pipeline": {"ranks": 4, "pp": 4},
    "pipeline and data": {"ranks": 8, "nodes": 2, "pp": 4},
    "experts": {"ranks": 8, "ep": 4},
}
UNMATCHED = ("pipeline", "pipeline and data", "experts")
"""Layouts of which docs/analyses/ranks.md says that "not known" is the answer where RCCL is not recorded."""

JOBS = 20  # of a soak, in each of five blocks: an interrupted soak goes on with the next block
SEEDS = [500_000 + JOBS * block for block in range(5)]


@pytest.mark.soak(JOBS)
@pytest.mark.parametrize("first", sized(SEEDS[:1], SEEDS))
@pytest.mark.parametrize(
    ("layout", "rccl"),
    sized([("tensor and data", "sizes")], [(layout, rccl) for layout in LAYOUTS for rccl in ("sizes", "none")]),
)
def test_a_slow_rank_is_named_and_nobody_else(layout: str, rccl: str, first: int, tmp_path: Path) -> None:
    """10 % slower: the wrong rank never, the right one in 95 of 100 jobs of 40 steps unless that cannot be known."""
    jobs = sized(1, JOBS)
    said = Counter(_said(layout, rccl, "straggler=10", seed, tmp_path) for seed in range(first, first + jobs))
    assert not said["another"], said
    if rccl == "none" and layout in UNMATCHED:
        assert said["named"] + said["unknown"] == jobs
    else:
        assert jobs - said["named"] <= jobs // JOBS, said


@pytest.mark.soak(JOBS)
@pytest.mark.parametrize("layout", sized(["experts"], list(LAYOUTS)))
def test_nobody_is_named_where_nothing_is_planted(layout: str, tmp_path: Path) -> None:
    said = Counter(_said(layout, "sizes", "none", SEEDS[0] + seed, tmp_path) for seed in range(sized(1, 5 * JOBS)))
    assert said["another"] <= sized(0, 1), said


def test_no_link_is_named_where_partners_are_inferred(tmp_path: Path) -> None:
    """Stages of two pipelines that send at one time look like two ranks that communicate with each other."""
    for plant in sized(["straggler=10"], ["straggler=10", "none"]):
        assert _said("pipeline and data", "none", plant, 910_024, tmp_path, 40) != "another"


@pytest.mark.parametrize(("plant", "said"), [("late-node=1500", "gpu-node-01"), ("none", None)])
def test_launchers_are_no_ranks_to_compare_with(plant: str, said: str | None, tmp_path: Path) -> None:
    """They are neither late with their host, nor do they do work that no other rank does."""
    job = JobOptions(tmp_path, ranks=6, nodes=3, idle_ranks=2, steps=8, seed=90_101, plant=plant)
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert finding.verdict is (Verdict.PROBLEM if said else Verdict.NONE)
    assert finding.evidence.get("hostname") == said


@pytest.mark.parametrize("seed", sized([505], [303, 505, 606, 707, 808]))
def test_a_rank_computes_as_much_longer_as_it_does_though_stages_differ_in_kernels(seed: int, tmp_path: Path) -> None:
    """Where calls do not say who sends, ranks of two stages are taken for peers, some of which run a kernel oftener."""
    job = JobOptions(tmp_path, ranks=8, nodes=2, pp=2, steps=5, seed=seed, rccl="none", plant="straggler=20")
    with rocpd.connect(simulate(job)) as session:
        *_, (who, longer) = cells(session, "causes", "who compute_longer_percent")
    assert who == f"rank {plan(job).facts[0].rank}"
    assert longer == pytest.approx(20, abs=2)


def test_no_healthy_stage_computes_longer_where_calls_do_not_say_who_sends(tmp_path: Path) -> None:
    """Two ranks of a stage are inferred to communicate; they are no peers of a stage whose kernels are others."""
    job = JobOptions(tmp_path, ranks=8, pp=4, steps=10, seed=701_428, rccl="none", plant="slow-link=2.5")
    with rocpd.connect(simulate(job)) as session:
        texts = [each.text for each in session.summary("overview").findings if each.rule == "comm.straggler"]
    assert texts
    assert not [text for text in texts if "computes" in text]


def test_sends_of_the_ranks_of_a_stage_in_step_are_no_collectives_of_theirs(tmp_path: Path) -> None:
    """Where calls do not say so, each rank of the stage would seem to wait for its slow one with every transfer."""
    every: dict[str, Any] = {"ranks": 12, "nodes": 3, "pp": 3, "steps": 8, "seed": 9139, "rccl": "none"}
    job, without = (JobOptions(tmp_path, **every, plant=plant) for plant in ("imbalance=6", "none"))
    rank, (now, then) = plan(job).facts[0].rank, (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        first, *_ = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
        gain = session.whatif(without=[f"rank:{rank}"]).together.gain
    assert first.verdict is Verdict.UNKNOWN
    assert f"rank {rank} computes 6.2 % longer, in all 8 steps, at what cost is not known" in first.text
    assert gain == pytest.approx(1 - then / now, abs=0.003)


def test_what_was_not_recorded_before_an_exchange_does_not_hide_a_slow_rank(tmp_path: Path) -> None:
    """Sends come after kernels that the recorder lost: later by as much as these, wherever what is before them ends."""
    every: dict[str, Any] = {"ranks": 8, "pp": 2, "steps": 8, "seed": 20020, "rccl": "calls"}
    job, without = (
        JobOptions(tmp_path, **every, plant=plant)
        for plant in ("imbalance=10,lost-dispatches=40", "lost-dispatches=40")
    )
    rank, (now, then) = plan(job).facts[0].rank, (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert finding.rank == rank
    assert finding.evidence["cost_percent"] == pytest.approx(100 * (1 - then / now), rel=0.1)


@pytest.mark.parametrize(
    ("options", "plant"),
    [
        ({}, "late-launch=1500,no-hip-trace"),
        ({"nodes": 2, "pp": 2, "steps": 16, "seed": 20147, "noise": 0.5}, "late-launch=800,no-hip-trace"),
        ({}, "no-hip-trace"),
    ],
)
def test_no_host_is_acquitted_or_named_whose_calls_are_not_recorded(
    options: dict[str, Any], plant: str, tmp_path: Path
) -> None:
    every: dict[str, Any] = {"ranks": 8, "steps": 8, "seed": 20056, **options}
    with rocpd.connect(simulate(JobOptions(tmp_path, **every, plant=plant))) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert finding.verdict is Verdict.UNKNOWN
    assert "a host that comes late is not seen: no calls that launch work are recorded" in finding.text


def test_what_a_rank_costs_is_not_known_where_its_host_may_be_late_unseen(tmp_path: Path) -> None:
    """The late host costs 6.7 %, and a replay without its rank regains nothing."""
    every: dict[str, Any] = {"ranks": 8, "nodes": 2, "pp": 2, "steps": 16, "seed": 20147, "noise": 0.5}
    job = JobOptions(tmp_path, **every, plant="late-launch=800,no-hip-trace")
    asked = f"rank:{plan(job).facts[0].rank}", "host:gpu-node-00"
    with rocpd.connect(simulate(job)) as session:
        for each in asked:
            with pytest.raises(rocpd.RocpdError, match="not known: a host that comes late is not seen"):
                session.whatif(without=[each])


def test_a_slow_rank_is_no_late_host_where_no_replay_shows_its_cost(tmp_path: Path) -> None:
    """Hosts seem to work while they wait for GPUs: the rank that computes longer costs 6 % of a step."""
    job = JobOptions(tmp_path, ranks=8, nodes=2, pp=2, steps=10, seed=70040, plant="straggler=15,no-hip-trace")
    rank = plan(job).facts[0].rank
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
        found = re.search(
            rf"rank {rank} computes 15 % longer, .* cost is not known, up to ([.\d]+) % of a", finding.text
        )
        assert found
        assert 6 < float(found[1]) < 9
        assert "comes late" not in f"{finding.text} {session.whatif()}"
        with pytest.raises(
            rocpd.RocpdError,
            match=rf"not known, up to {found[1]} % of a step by what GPUs take longer: of some ranks no",
        ):
            session.whatif(without=[f"rank:{rank}"])


def test_a_slow_step_is_bounded_by_its_length_where_no_host_is_seen(tmp_path: Path) -> None:
    """What its host does in it is not recorded, nor is the wait of the host for its GPU a cause."""
    plants = "host-stall,no-hip-trace", "no-hip-trace"
    every: dict[str, Any] = {"ranks": 8, "nodes": 2, "pp": 2, "steps": 10, "seed": 70040}
    job, without = (JobOptions(tmp_path, **every, plant=plant) for plant in plants)
    now, then = (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        answer = session.whatif().together
    assert {change.kind for change in answer.changes} == {"step"}
    assert answer.gains[0] < 1 - then / now < answer.gains[1] < 0.15


def test_what_a_rank_may_cost_is_said_where_partners_are_not_known(tmp_path: Path) -> None:
    """Its host is seen to wait for the GPU; with whom it communicates is not known for a third of the time."""
    job = JobOptions(tmp_path, 4, steps=6, seed=78689, tp=2, rccl="calls", plant="straggler=12")
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
        answer = session.whatif(without=["rank:2"]).together
    assert "rank 2 computes 12 % longer, and may cost up to 5.2 % of a step: who communicates with" in finding.text
    assert answer.gains[0] < 0.05 < answer.gains[1]


def test_what_a_slow_rank_costs_is_known_whether_or_not_calls_of_its_host_are_recorded(tmp_path: Path) -> None:
    job = JobOptions(tmp_path, ranks=8, steps=16, seed=20070, plant="throttled=20,no-hip-trace")
    with rocpd.connect(simulate(job)) as session:
        assert session.whatif(without=[f"rank:{plan(job).facts[0].rank}"]).together.gain > 0.05


def test_no_partner_of_a_slow_rank_is_named_for_its_host_whose_calls_are_not_recorded(tmp_path: Path) -> None:
    """Its step ends late as well: it waits for the slow rank."""
    every: dict[str, Any] = {"ranks": 8, "pp": 2, "tp": 2, "steps": 10, "seed": 20078, "noise_memory": 0.5}
    job = JobOptions(tmp_path, **every, plant="straggler=10,no-hip-trace")
    with rocpd.connect(simulate(job)) as session:
        found = [each for each in session.summary("overview").findings if each.rule == "comm.straggler"]
    assert [each.rank for each in found] == [plan(job).facts[0].rank]


def test_the_host_of_a_slow_rank_is_no_second_reason_where_its_calls_are_not_recorded(tmp_path: Path) -> None:
    job = JobOptions(tmp_path, ranks=8, steps=16, seed=20070, plant="throttled=20,no-hip-trace")
    with rocpd.connect(simulate(job)) as session:
        findings = session.summary("overview").findings
    first, *_ = (each for each in findings if each.rule == "comm.straggler")
    assert first.rank == plan(job).facts[0].rank
    assert "computes" in first.text
    assert "host" not in first.text
    beside = [each.text for each in findings if each.rule == "comm.suspect"]  # another one may be late, and is not seen
    assert beside == ["a host that comes late is not seen: no calls that launch work are recorded"]


def test_no_late_host_is_acquitted_that_unmatched_communication_may_wait_for(tmp_path: Path) -> None:
    """All that crosses hosts is unmatched, a twentieth of the time of communication: none of its ranks stands out."""
    every: dict[str, Any] = {"ranks": 8, "nodes": 2, "tp": 4, "steps": 10, "seed": 9050, "rccl": "calls"}
    job, without = (JobOptions(tmp_path, **every, start_spread=1, plant=plant) for plant in ("late-node=250", "none"))
    host, (now, then) = plan(job).facts[0].node, (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert finding.verdict is Verdict.UNKNOWN
    said = re.search(rf"; gpu-node-0{host} \(ranks .*\): its host takes .* not known, up to (.*?) % of a", finding.text)
    assert said is not None
    assert 100 * (1 - then / now) < float(said[1]) < 8


def test_no_slow_rank_is_acquitted_that_unmatched_communication_may_wait_for(tmp_path: Path) -> None:
    """A tenth of the time of communication is enough to hide what it costs."""
    every: dict[str, Any] = {"ranks": 8, "pp": 2, "tp": 2, "seed": 20008, "noise": 2.0, "rccl": "calls"}
    job, without = (JobOptions(tmp_path, **every, plant=plant) for plant in ("imbalance=20,lost-dispatches=40", "none"))
    rank, (now, then) = plan(job).facts[0].rank, (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
        answer = session.whatif(without=[f"rank:{rank}"]).together
    said = re.search(rf"rank {rank} computes .* longer, and may cost up to (.*?) % of a step", finding.text)
    assert finding.verdict is Verdict.UNKNOWN
    assert said is not None
    assert float(said[1]) == pytest.approx(100 * (1 - then / now), rel=0.1)
    assert answer.gains[0] <= 1 - then / now <= answer.gains[1]


def test_the_most_is_said_that_a_rank_of_experts_may_cost_whose_exchanges_are_not_matched(tmp_path: Path) -> None:
    every: dict[str, Any] = {"ranks": 8, "ep": 4, "steps": 8, "seed": 20094, "noise": 0.5, "rccl": "none"}
    job, without = (JobOptions(tmp_path, **every, plant=plant) for plant in ("slowdown=20", "none"))
    now, then = (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        first, *_ = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    least, most = (float(str(first.evidence[name])) for name in ("cost_percent", "cost_at_most_percent"))
    assert first.rank == plan(job).facts[0].rank
    assert least < 100 * (1 - then / now) < most < 15
    assert f"it may cost up to {most:.0f} %: " in first.text


def _said(layout: str, rccl: str, plant: str, seed: int, folder: Path, steps: int = sized(20, 40)) -> str:
    """Return what the first screen says of a job: `named`, `another` rank, host or link, `unknown`, or `nobody`."""
    options: dict[str, Any] = {
        "steps": steps,
        "noise": 2.0,
        "noise_memory": 0.5 * (seed % 2),
        "rccl": rccl,
        "plant": plant,
        "seed": seed,
    }
    job = JobOptions(folder / "job", **LAYOUTS[layout], **options)
    right = {(fact.rank, "") for fact in plan(job).facts}
    with rocpd.connect(simulate(job)) as session:
        findings = [each for each in session.summary("overview").findings if each.rule == "comm.straggler"]
    shutil.rmtree(job.out)
    if findings[0].verdict is Verdict.UNKNOWN:
        return "unknown"
    named = set(_named(findings))
    return "nobody" if not named else "named" if named == right else "another"


def _named(findings: Sequence[Finding]) -> Iterator[tuple[int | None, str]]:
    for each in findings:
        if each.verdict is Verdict.PROBLEM and each.confidence is not Confidence.HINT:
            yield each.rank, str(each.evidence.get("hostname") or each.evidence.get("link") or "")


def test_a_stall_that_unmatched_communication_waits_for_is_why_a_step_is_slow(tmp_path: Path) -> None:
    """Where a tenth of the time of communication is unmatched, a step was said to have long transfers."""
    every: dict[str, Any] = {"ranks": 8, "pp": 2, "tp": 2, "steps": 10, "seed": 40039, "rccl": "calls"}
    job = JobOptions(tmp_path, **every, noise_memory=0.5, plant="host-stall=8000")
    rank = plan(job).facts[0].rank
    with rocpd.connect(simulate(job)) as session:
        slow = slow_steps(session.summary("overview").findings)
    assert len(slow) == 2
    assert all(finding.rank == rank and f"rank {rank}: host 5.8" in finding.text for _, finding in slow)


def test_a_rank_that_may_cost_more_than_those_named_is_no_secret(tmp_path: Path) -> None:
    """Its host is named, whose communication is known; with whom it communicates itself is not."""
    every: dict[str, Any] = {"ranks": 8, "nodes": 2, "tp": 2, "pp": 2, "steps": 19, "seed": 90141, "rccl": "calls"}
    plants = "slow-node=10,imbalance=25", "slow-node=10"
    now, then = (step_of(JobOptions(tmp_path, **every, noise=2, plant=plant)) for plant in plants)
    with rocpd.connect(simulate(JobOptions(tmp_path, **every, noise=2, plant=plants[0]))) as session:
        findings = session.summary("overview").findings
        of_host, of_rank = (session.whatif(without=[who]).together.gains for who in ("host:gpu-node-01", "rank:6"))
    (named,) = (each for each in findings if each.rule == "comm.straggler")
    (other,) = (each for each in findings if each.rule == "comm.suspect")
    assert named.evidence["hostname"] == "gpu-node-01"
    assert named.evidence["cost_at_most_percent"] == pytest.approx(100 * of_host[1], rel=0.01)
    said = re.search("rank 6 computes .* at what cost is not known, up to (.*?) % of a step: 81 %", other.text)
    assert said is not None
    assert float(said[1]) == pytest.approx(100 * of_rank[1], abs=0.5)
    assert of_rank[0] < 1 - then / now < of_rank[1]


def test_no_rank_is_acquitted_that_makes_steps_slow(tmp_path: Path) -> None:
    """Where a tenth of the time of communication is unmatched, it may be what waits for its stalls."""
    every: dict[str, Any] = {"ranks": 12, "nodes": 2, "pp": 3, "tp": 2, "steps": 11, "seed": 90303, "rccl": "none"}
    job = JobOptions(tmp_path, **every, start_spread=2, noise=2, noise_memory=0.6, plant="host-stall")
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert finding.verdict is Verdict.UNKNOWN
    assert "rank 6 makes steps 3, 6 slow; rank 6: its host takes 7.99 ms longer" in finding.text


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"seed": 20066, "plant": "host-stall=3000,no-hip-trace"}, ["step 3", "step 6"]),
        ({"seed": 90536, "plant": "host-stall,no-hip-trace", "nodes": 2, "tp": 2, "pp": 2}, ["step 3", "step 6"]),
    ],
)
def test_no_work_of_many_hosts_makes_a_step_slow_where_their_calls_are_not_recorded(
    options: dict[str, Any], steps: list[str], tmp_path: Path
) -> None:
    """One host stalls; what the others, or those of its stage, do until then looks like work of theirs."""
    with rocpd.connect(simulate(JobOptions(tmp_path, ranks=8, steps=10, **options))) as session:
        slow = slow_steps(session.summary("overview").findings)
    assert [step for step, _ in slow] == steps
    assert all("times the median of 10 steps; 1 more: step" in finding.text for _, finding in slow)


def test_no_neighbour_stalls_that_waits_unseen_for_a_rank_that_does(tmp_path: Path) -> None:
    """The host of rank 1 seems to work while it waits for rank 0: the two are no host that stalls."""
    every: dict[str, Any] = {"ranks": 4, "nodes": 2, "tp": 2, "steps": 12, "seed": 122206, "faults": True}
    with rocpd.connect(simulate(JobOptions(tmp_path, **every, plant="intermittent=90,no-hip-trace"))) as session:
        findings = session.summary("overview").findings
    assert [each.rank for each in findings if each.rule == "comm.straggler"] == [0]
    slow = slow_steps(findings)
    assert all("rank 0: compute" in finding.text for _, finding in slow)
    assert len(slow) == 3


def test_a_thread_waits_for_another_one_though_the_process_stalls_at_times(tmp_path: Path) -> None:
    """Two of six steps: in the others, what the host of rank 0 waits for rank 4 is no work of its own."""
    every: dict[str, Any] = {"ranks": 6, "nodes": 3, "steps": 6, "seed": 124087, "profile": "gemm", "noise": 2}
    job = JobOptions(tmp_path, **every, rccl="calls", plant="host-stall=3000,slowdown=20")
    without = JobOptions(tmp_path, **every, rccl="calls", plant="host-stall=3000")
    now, then = (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        gain = session.whatif(without=["rank:4"]).together
        stalls, slow = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert (stalls.rank, stalls.evidence["stalls"], slow.rank) == (0, [2, 4], 4)
    assert gain.gains[0] <= 1 - then / now <= gain.gains[1]


def test_a_rank_that_is_hardly_judged_by_its_host_is_judged_by_its_gpu(tmp_path: Path) -> None:
    """Its host seems to take longer than its kernels do, as it waits for these, and its calls are not recorded."""
    every: dict[str, Any] = {"ranks": 3, "steps": 9, "seed": 120009, "rccl": "calls", "noise": 2, "noise_memory": 0.3}
    job, without = (JobOptions(tmp_path, **every, plant=plant) for plant in ("straggler=10,no-hip-trace", "none"))
    now, then = (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        (found,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert found.rank == plan(job).facts[0].rank
    assert found.evidence["cost_percent"] == pytest.approx(100 * (1 - then / now), rel=0.2)


@pytest.mark.parametrize(("rccl", "seed"), [("calls", 9002), ("none", 9001)])
def test_no_host_is_late_whose_clock_was_set_where_clocks_do_not_compare(rccl: str, seed: int, tmp_path: Path) -> None:
    """The step lasts longer on one host alone, and later ones do not make up for it."""
    every: dict[str, Any] = {"ranks": 8, "nodes": 2, "ep": 4, "rccl": rccl, "seed": seed}
    with rocpd.connect(simulate(JobOptions(tmp_path, **every, plant="clock-step")), align="none") as session:
        findings = session.summary("overview").findings
    assert not [each for each in findings if each.rule == "comm.straggler" and each.verdict is Verdict.PROBLEM]
    assert not [each.text for each in findings if "slow" in each.text and each.rule == "comm.straggler"]
