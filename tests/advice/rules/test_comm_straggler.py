"""A straggler: what to look at goes by what two files say of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocpd.advice.rules.communication import COMM_STRAGGLER
from rocpd.summary.findings import Finding
from tests.advice.made import JOB, found, table


@pytest.mark.parametrize(
    ("evidence", "hint"),
    [
        ({}, "`amd-smi metric --clock --power`"),
        ({"clock_lower_percent": 0.2}, " at the same clock"),
        ({"clock_lower_percent": 13.0}, "power cap"),
        ({"clock_lower_percent": 0.2, "more_work_items_percent": 8.0}, "equal work"),
        ({"later_ns": 400_000}, "The host starts work late there"),
        ({"stalls": [7], "clock_lower_percent": 0.0}, "--against others"),
        ({"stalls": [7], "later_ns": 3_000_000}, "garbage collection"),
    ],
)
def test_it_suggests_nothing_that_is_known_to_be_otherwise(evidence: dict[str, object], hint: str) -> None:
    verdict = Finding("rank 0 costs a lot", "comm.straggler", rank=0, evidence={"cost_percent": 9.0, **evidence})
    ranks = table("ranks", [{"rank": 0}], [verdict])
    (finding,) = found(COMM_STRAGGLER, {"ranks": ranks, "communication": [{"class": "transfer"}]})
    assert finding.action
    assert hint in finding.action


@pytest.mark.parametrize("which", [{"hostname": "b"}, {"together": [2, 3]}, {"link": [2, 3]}])
def test_several_are_looked_at_on_one_of_them_that_waits_least(which: dict[str, object]) -> None:
    """The critical rank may be another one, which something else makes slow."""
    verdict = Finding("they cost a lot", "comm.straggler", evidence={"cost_percent": 9.0, **which})
    ranks = table("ranks", [{"rank": rank, "hostname": "aabb"[rank]} for rank in range(4)], [verdict])
    shares = {rank: {"exposed communication": share} for rank, share in enumerate([10.0, 20.0, 35.0, 30.0])}
    job = replace(JOB, ranks=(0, 1, 2, 3), shares=shares)
    (finding,) = found(COMM_STRAGGLER, {"ranks": ranks, "communication": [{"class": "transfer"}]}, job)
    assert finding.rank == 3


def test_each_straggler_has_its_own_cause() -> None:
    """Nothing is said to be so on other ranks, whose findings name other causes."""
    verdicts = [
        Finding(
            f"rank {rank} costs {cost} %", "comm.straggler", rank=rank, evidence={"cost_percent": cost, "cause": "it"}
        )
        for rank, cost in enumerate((9.0, 3.0))
    ]
    ranks = table("ranks", [{"rank": 0}, {"rank": 1}], verdicts)
    findings = found(COMM_STRAGGLER, {"ranks": ranks, "communication": [{"class": "transfer"}]})
    assert [finding.text for finding in findings] == ["rank 0 costs 9.0 %", "rank 1 costs 3.0 %"]


@pytest.mark.parametrize(
    ("evidence", "rule", "explains"),
    [
        ({"stalls": [7], "mainly": "compute"}, "kernel.unstable", True),
        ({"stalls": [7], "mainly": "host"}, "kernel.unstable", False),
        ({"mainly": "compute"}, "kernel.unstable", False),
        ({"link": [1, 5]}, "comm.slow", True),
        ({"link": [1, 6]}, "comm.slow", False),
        ({"link": [0, 5]}, "rank.imbalance", False),
    ],
)
def test_it_explains_what_it_brings_with_it(evidence: dict[str, object], rule: str, explains: bool) -> None:
    """Kernels that take longer in the steps in which a rank is slow, and slow collectives of a slow link."""
    cause = Finding("rank 0 costs a lot", "comm.straggler", rank=0, evidence=evidence)
    other = Finding("something else", rule, rank=0, evidence={"group": "1,5"})
    assert COMM_STRAGGLER.explains(cause, other) == explains
