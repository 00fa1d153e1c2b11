"""Jobs of the second generator keep the laws of what they model, and their files say what happened."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import rocpd
from tests.blame.files import clock, write
from tests.blame.generator import APART, LATENCY, Job, Plant, Shape, factors, truths

SMALL = Shape(steps=4, layers=2, kernels=3)
SHAPES = [
    SMALL,
    replace(SMALL, tp=4, nodes=2),
    replace(SMALL, pp=4, layers=1),
    replace(SMALL, pp=2, layers=1),
    replace(SMALL, ep=4),
    replace(SMALL, tp=2, ep=2, nodes=2),
]
EVERY = tuple(range(8))


def test_it_shares_no_code_with_what_it_tests() -> None:
    for name in ("generator.py", "files.py"):
        lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()
        imported = [line.split()[1] for line in lines if line.startswith(("import ", "from "))]
        assert not [module for module in imported if module.split(".")[0] == "rocpd"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"tp{shape.tp}-pp{shape.pp}-ep{shape.ep}")
def test_groups_of_each_kind_divide_the_ranks(shape: Shape) -> None:
    for kind, size in (("dp", shape.dp), ("tp", shape.tp), ("pp", shape.pp), ("ep", shape.ep)):
        groups = {shape.group(kind, rank) for rank in range(shape.ranks)}
        assert {len(group) for group in groups} == {size}
        assert sorted(rank for group in groups for rank in group) == list(range(shape.ranks))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"tp{shape.tp}-pp{shape.pp}-ep{shape.ep}")
def test_operations_wait_for_what_they_follow(shape: Shape) -> None:
    """Of a stream one after the other, none before its launch; of an exchange all until the last has come."""
    job = Job(shape)
    for rank in job.ranks:
        launched = {call.stack: call.end for call in rank.calls}
        assert all(operation.start >= launched[operation.stack] + LATENCY for operation in rank.operations)
        for stream in {operation.stream for operation in rank.operations}:
            runs = [operation for operation in rank.operations if operation.stream == stream]
            assert all(a.end < b.start for a, b in pairwise(runs))
        for operation in rank.operations:
            if operation.meeting is not None:
                over = max(operation.meeting.arrived.values()) + operation.meeting.ns
                assert operation.meeting.arrived[rank.number] == operation.start
                assert over <= operation.end <= over + APART
    assert all(set(meeting.arrived) == set(meeting.members) for meeting in job.meetings.values())


@pytest.mark.parametrize(("rccl", "events"), [("none", False), ("calls", True), ("sizes", True)])
def test_files_say_what_happened(rccl: str, events: bool, tmp_path: Path) -> None:
    job = Job(replace(SMALL, tp=2, nodes=2, rccl=rccl, events=events), (Plant("stall", 500, (3,), (2,)),))
    with rocpd.connect(write(job, tmp_path), align="none") as session:
        runs = session.execute(
            'SELECT rank, start, "end", name FROM kernels ORDER BY rank, start, stream_id'
        ).fetchall()
        expected = [
            (rank.number, *(clock(job, job.shape.node(rank.number), time) for time in (run.start, run.end)), run.name)
            for rank in job.ranks
            for run in sorted(rank.operations, key=lambda run: (run.start, run.stream))
        ]
        assert [tuple(row) for row in runs] == expected
        calls: dict[str, int] = dict(session.execute("SELECT name, COUNT(*) FROM regions GROUP BY name").fetchall())
        assert calls["hipLaunchKernel"] == sum(run.meeting is None for rank in job.ranks for run in rank.operations)
        assert ("hipStreamWaitEvent" in calls) == events
        assert ("ncclAllReduce" in calls) == (rccl != "none")
        assert ("ncclCommInitRank" in calls) == (rccl == "sizes")
        linked = session.execute("SELECT COUNT(*) FROM kernels K JOIN regions R USING (guid, stack_id)").fetchall()
        assert linked == [(len(runs),)]
        steps = session.execute("SELECT rank, COUNT(*) FROM markers GROUP BY rank").fetchall()
        assert [tuple(row) for row in steps] == [(rank, SMALL.steps) for rank in range(8)]


def test_same_seed_is_the_same_job_but_for_the_plant() -> None:
    usual, again = Job(SMALL), Job(SMALL)
    assert usual.ends == again.ends != Job(replace(SMALL, seed=1)).ends
    stalled = Job(SMALL, (Plant("stall", 3000, (5,), (2,)),))
    assert stalled.ends[:2] == usual.ends[:2]
    assert stalled.ends[2] - usual.ends[2] == stalled.ends[3] - usual.ends[3] > 2_000_000


@pytest.mark.parametrize(
    ("plant", "least", "most"),
    [
        (Plant("stall", 3000, (5,), (2,)), 2.3, 3.0),  # less what was launched ahead
        (Plant("late", 400, (4, 5, 6, 7)), 4 * 0.35, 4 * 0.4),
        (Plant("compute", 50, (3,)), 4 * 7 * 0.07 * 0.45, 4 * 7 * 0.07 * 0.5),
        (Plant("compute", 300, EVERY, (2,)), 7 * 0.07 * 2.9, 7 * 0.07 * 3.1),
        (Plant("link", 3, EVERY), 4 * 2 * 0.33, 4 * 2 * 0.35),  # 64 MiB at 200 bytes a ns
    ],
    ids=["stall", "late", "compute", "slow step", "link"],
)
def test_what_a_plant_costs(plant: Plant, least: float, most: float) -> None:
    """In ms: a stall once, what lasts in each of four steps, of which each has seven kernels and an all-reduce."""
    (truth,) = truths(Job(replace(SMALL, noise=0.001), (plant,)))
    assert least <= truth.cost / 1e6 <= most
    assert sum(truth.costs) == truth.cost
    struck = plant.steps or range(SMALL.steps)
    assert sum(truth.costs[step] for step in struck) == pytest.approx(truth.cost, abs=20_000)


def test_a_slow_link_is_that_of_its_group_alone() -> None:
    shape = replace(SMALL, tp=4, nodes=2)
    slow, usual = Job(shape, (Plant("link", 4, (4, 5, 6, 7)),)), Job(shape)
    longer = {key[:2] for key, meeting in slow.meetings.items() if meeting.ns > 2 * usual.meetings[key].ns}
    assert longer == {("tp", (4, 5, 6, 7))}


@pytest.mark.parametrize(("rho", "heavy"), [(0.0, False), (0.8, False), (0.0, True)])
def test_noise_is_as_large_and_as_long_as_it_says(rho: float, heavy: bool) -> None:
    shape = Shape(ranks=32, steps=300, layers=1, kernels=1, noise=0.02, rho=rho, heavy=heavy)
    noise = factors(shape)
    assert np.std(noise) == pytest.approx(0.02, rel=0.15)
    memory = [np.corrcoef(of_rank[1:], of_rank[:-1])[0, 1] for of_rank in noise]
    assert np.mean(memory) == pytest.approx(rho, abs=0.05)
    assert (np.abs(noise - 1).max() > 0.15) == heavy
