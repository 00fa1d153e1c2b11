"""What the first screen concludes of the cases: whoever is to blame is named, at what it costs, and nobody else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import rocpd
from rocpd.summary.findings import Confidence, Finding, Verdict
from tests.blame.cases import CASES, Case, Made, made
from tests.blame.files import clock
from tests.blame.generator import Plant, Shape
from tests.blame.jobs import slow_steps
from tests.soak import paired, sized

SAMPLE = (
    *("checkpoints", "pauses", "late-node", "late-node-and-straggler", "slow-node-and-straggler"),
    *("tp-dp-30", "warm-up-x250", "slow-link-both-fit", "equal-with-memory"),
)
COSTS = 0.02  # of a step, from which on a cause is to be named
ERROR = 0.3  # of the cost


@dataclass(frozen=True)
class Answer:
    """What findings say: whom they name, at which cost of a step [ns]; slow steps and whose they are."""

    verdict: Verdict
    named: dict[tuple[int, ...], float]
    steps: dict[int, int | None]


def answer(job: Made) -> Answer:
    """Ask for the first screen of a job."""
    with rocpd.connect(job.files) as session:
        findings = session.summary("overview").findings
    first, *_ = (finding for finding in findings if finding.rule == "comm.straggler")
    steps = {int(step.split()[1]): finding.rank for step, finding in slow_steps(findings)}
    return Answer(first.verdict, dict(_named(job, findings)), steps)


def _named(job: Made, findings: tuple[Finding, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    for finding in findings:
        if (finding.rule, finding.verdict) != ("comm.straggler", Verdict.PROBLEM):
            continue
        if finding.confidence is Confidence.HINT:
            continue
        said, cost = finding.evidence, finding.evidence["cost_ns"]
        assert isinstance(cost, int)
        if isinstance(link := said.get("link"), list):
            yield tuple(link), cost
        elif finding.rank is not None:
            yield (finding.rank,), cost
        else:
            yield job.job.shape.on_node(int(str(said["hostname"]).removeprefix("node"))), cost


@pytest.mark.soak(100)
@pytest.mark.parametrize("name", sized(SAMPLE, tuple(CASES)))
def test_whoever_is_to_blame_is_named(name: str, tmp_path: Path) -> None:
    for seed in range(sized(1, 20)):
        case = replace(CASES[name], shape=replace(CASES[name].shape, seed=seed))
        job = made(case, tmp_path / f"{seed}")
        said = answer(job)
        assert said.steps == {step: rank for step, rank in case.slow_steps.items() if step}
        if case.may_be_unknown and said.verdict is Verdict.UNKNOWN:
            continue
        every = range(case.shape.ranks)
        costs = {truth.plant.ranks: truth.cost / case.shape.steps for truth in job.truths}
        costs = {ranks: cost for ranks, cost in costs.items() if ranks != tuple(every)}
        step = (job.job.ends[-1] - job.job.ends[0]) / (case.shape.steps - 1)
        assert said.named.keys() <= costs.keys()
        assert said.named.keys() >= {ranks for ranks, cost in costs.items() if cost > COSTS * step}
        assert said.named == pytest.approx({ranks: costs[ranks] for ranks in said.named}, rel=ERROR)
        for file in job.files:
            file.unlink()


def test_ranks_of_a_host_that_stall_together_are_one_cause(tmp_path: Path) -> None:
    """As where one node waits for its input now and then; without all of them none regains anything."""
    shape = Shape(nodes=2)
    plant = Plant("stall", 3000, shape.on_node(1), (3, 8, 13))
    job = made(Case(shape, (plant,), {}), tmp_path)
    said = answer(job)
    assert said.named == pytest.approx({plant.ranks: job.truths[0].cost / shape.steps}, rel=ERROR)
    assert said.steps == dict.fromkeys(plant.steps)
    with rocpd.connect(job.files) as session:
        (slow,) = (finding.text for finding in session.summary("overview").findings if finding.step)
        gain = session.whatif(without=["host:node1"]).together.gain
        kept = session.whatif(without=["rank:5"]).together.gain
    assert "all of node1: host 2." in slow
    assert slow.endswith("; 2 more alike, every 5th step: step 3, step 13")
    assert gain == pytest.approx(said.named[plant.ranks] / (job.job.ends[-1] - job.job.ends[0]) * 15, rel=ERROR)
    assert kept < 0.01


def test_a_rank_whose_recording_ends_early_hides_no_straggler(tmp_path: Path) -> None:
    """Its collectives have no partners: it would end as recorded, whatever the straggler took less."""
    job = made(Case(Shape(), (Plant("compute", 10, (1,)),), {}), tmp_path)
    _end_early(job, 3, clock(job.job, 0, job.job.ends[8]))
    assert answer(job).named == pytest.approx({(1,): job.truths[0].cost / job.case.shape.steps}, rel=ERROR)


def test_a_link_that_is_slow_in_some_steps_is_named(tmp_path: Path) -> None:
    """From step 10 of 16 on, so that most steps show nothing of it."""
    plant = Plant("link", 6, (1, 5), tuple(range(10, 16)))
    job = made(Case(Shape(tp=4, nodes=2, rccl="sizes"), (plant,), {}), tmp_path)
    assert answer(job).named == pytest.approx({plant.ranks: job.truths[0].cost / 16}, rel=ERROR)
    with rocpd.connect(job.files) as session:
        (finding,) = (each for each in session.advise().findings if each.rule == "comm.straggler")
    assert "in 6 of 16 steps" in finding.text
    assert "Compare the links" in (finding.action or "")


@pytest.mark.parametrize("count", [2, 3])
def test_stalls_of_several_ranks_are_said_together(count: int, tmp_path: Path) -> None:
    """As garbage collection comes to one rank after another: the sum is what the job loses."""
    plants = tuple(Plant("stall", 3000, (2 * n,), (3 + 4 * n,)) for n in range(count))
    job = made(Case(Shape(), plants, {}), tmp_path)
    with rocpd.connect(job.files) as session:
        said = [finding for finding in session.summary("overview").findings if finding.rule == "comm.stalls"]
    assert len(said) == (count > 2)
    for finding in said:
        assert finding.evidence["ranks"] == [0, 2, 4]
        assert finding.evidence["steps"] == [3, 7, 11]
        cost = sum(truth.cost for truth in job.truths) / job.case.shape.steps
        assert finding.evidence["cost_ns"] == pytest.approx(cost, rel=ERROR)
        assert "stalls of ranks 0,2,4 cost " in finding.text


def test_a_rank_that_is_slow_and_whose_recording_ends_early_is_not_acquitted(tmp_path: Path) -> None:
    job = made(Case(Shape(), (Plant("compute", 10, (3,)),), {}), tmp_path)
    _end_early(job, 3, clock(job.job, 0, job.job.ends[8]))
    said = _first(job)
    assert said.verdict is Verdict.UNKNOWN
    assert "whom rank 3 communicates with is not known; rank 3 computes 11 % longer" in said.text


def test_who_waits_for_a_rank_without_a_file_is_not_known(tmp_path: Path) -> None:
    job = made(Case(Shape(rccl="sizes"), (Plant("compute", 10, (3,)),), {}), tmp_path)
    job.files[3].unlink()
    said = _first(replace(job, files=tuple(file for file in job.files if file.exists())))
    assert said.verdict is Verdict.UNKNOWN
    assert "ranks that are not among the files may be waited for" in said.text


@pytest.mark.soak
@pytest.mark.parametrize(
    ("setting", "rccl"), paired([(3_000_000_000, 1), (3_000_000_000, 8), (2_000_000, 4)], ["calls", "sizes"])
)
def test_a_clock_that_was_set_accuses_nobody_else(setting: tuple[int, int], rccl: str, tmp_path: Path) -> None:
    """Of a communicator of unknown size the ranks of each clock look like one, and waiting like a slow link."""
    jump, after = setting
    shape, plant = Shape(nodes=2, rccl=rccl), Plant("compute", 10, (1,))
    job = made(Case(shape, (plant,), {}), tmp_path)
    for rank in shape.on_node(1):
        _set_clock(job.files[rank], clock(job.job, 1, job.job.ends[after]), jump)
    if (said := answer(job)).verdict is Verdict.UNKNOWN:
        assert rccl == "calls"
    else:
        assert said.named == pytest.approx({(1,): job.truths[0].cost / shape.steps}, rel=ERROR)


def _first(job: Made) -> Finding:
    with rocpd.connect(job.files) as session:
        return next(each for each in session.summary("overview").findings if each.rule == "comm.straggler")


def _end_early(job: Made, rank: int, end: int) -> None:
    """Delete what a rank did after a time of its clock [ns]."""
    _change(job.files[rank], 'DELETE FROM "{}" WHERE "end" > ' + str(end))


def _set_clock(file: Path, at: int, by: int) -> None:
    """Let the clock of a file be set at a time [ns]."""
    for side in ("end", "start"):
        _change(file, f'UPDATE "{{}}" SET "{side}" = "{side}" + {by} WHERE "{side}" >= {at}')


def _change(file: Path, statement: str) -> None:
    """Change the regions and dispatches of a file."""
    with closing(sqlite3.connect(file)) as database, database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if table.startswith(("rocpd_region_", "rocpd_kernel_dispatch_")):
                database.execute(statement.format(table))
