"""Collectives of jobs with several groups: tensor parallelism within nodes whose clocks differ, data in parallel."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import rocpd
from rocpd.facts.communication.collectives import listed
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import plan
from tests.soak import paired, sample, sized
from tests.summary.cells import cells


@pytest.mark.soak
@pytest.mark.parametrize("seed", sized([11], [11, 12]))
@pytest.mark.parametrize(("nodes", "rccl"), paired([1, 2], ["sizes", "none"]))
def test_groups_of_tensor_parallelism_are_not_mixed(nodes: int, rccl: str, seed: int, tmp_path: Path) -> None:
    """Both groups do equally much: only their ends, or the size of their communicator, tell them apart."""
    options = JobOptions(tmp_path, ranks=8, nodes=nodes, tp=4, rccl=rccl, seed=seed, steps=12, plant="straggler=10")
    with rocpd.connect(simulate(options)) as session:
        found = Counter(cells(session, "collectives", "group"))
        last = dict(cells(session, "stragglers", "rank times_last"))
    true = Counter(each.group.members for each in plan(options).collectives())
    assert found["0-3"] == true[0, 1, 2, 3] > 100
    assert found["4-7"] == true[4, 5, 6, 7] > 100
    assert max(last, key=last.__getitem__) == plan(options).straggler_rank


def test_groups_of_two_hosts_are_told_apart_by_one_clock(tmp_path: Path) -> None:
    """Nobody is slow, so that groups on both hosts end alike but for microseconds: only aligned clocks show these."""
    options = JobOptions(tmp_path, ranks=8, nodes=2, tp=4, rccl="none", seed=12, steps=6, plant="none")
    with rocpd.connect(simulate(options)) as session:
        found = Counter(cells(session, "collectives", "group"))
    true = Counter(each.group.members for each in plan(options).collectives())
    assert found["0-3"] == true[0, 1, 2, 3]
    assert found["4-7"] == true[4, 5, 6, 7]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("seed", "rccl", "noise"), sample([(1012, "none", 1.0), (2000, "sizes", 1.0), (6, "none", 0.1)], 3)
)
def test_groups_that_hardly_differ_are_found_where_their_ends_or_arrivals_do(
    seed: int, rccl: str, noise: float, tmp_path: Path
) -> None:
    """Nobody is slow: groups end no further apart than members of one do; none is mixed or lost."""
    options = JobOptions(tmp_path, ranks=16, nodes=4, tp=2, rccl=rccl, seed=seed, steps=12, plant="none", noise=noise)
    with rocpd.connect(simulate(options)) as session:
        found = Counter(cells(session, "collectives", "group"))
    true = Counter(each.group.members for each in plan(options).collectives())
    assert found == {listed(group): true[group] for group in true}
