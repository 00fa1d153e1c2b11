"""A straggler, or a leak, that one side has and the other lacks is said, in the words of the run that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.compare.problems import Answered, new_and_gone, problems_of
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.summary.reading import Reading

SLOW, LEAK = "comm.straggler", "memory.leak"
RANK_3, RANK_5 = ({f"{rank} compute": f"rank {rank} costs 1 ms of a step"} for rank in (3, 5))


def said(base: Answered, *new: Answered) -> list[str]:
    return list(new_and_gone([base], new))


@pytest.mark.parametrize(
    ("plant", "about"),
    [
        ("straggler=30", "{rank} None None compute None None"),
        ("straggler=30,imbalance=30", "None None {ranks} compute None None"),
        ("late-node=900", "None gpu-node-01 None host None None"),
    ],
)
def test_what_baselines_hold_of_a_straggler_stays_as_it_is(plant: str, about: str, tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=4, nodes=2, steps=8, seed=3, plant=plant)
    with rocpd.connect(simulate(options)) as session:
        answered = problems_of(Reading(session), lambda _: ())
    ranks = sorted((fact.rank for fact in plan(options).facts), key=str)
    assert list(answered[SLOW]) == [about.format(rank=ranks[0], ranks=ranks)]


def test_what_one_side_has_alone_is_new_or_gone() -> None:
    assert said({SLOW: RANK_3}, {SLOW: RANK_5}) == [
        "new: rank 5 costs 1 ms of a step",
        "no longer: rank 3 costs 1 ms of a step",
    ]
    leaks: Answered = {SLOW: RANK_3, LEAK: {"hipMalloc": "it leaks"}}
    assert said({SLOW: RANK_3, LEAK: {}}, leaks) == ["new: it leaks"]


def test_a_side_that_cannot_tell_has_no_news() -> None:
    assert said({}, {SLOW: RANK_5}) == said({SLOW: RANK_5}, {}) == []


def test_most_runs_of_a_side_have_it() -> None:
    slow: Answered = {SLOW: RANK_3}
    good: Answered = {SLOW: {}}
    assert said(good, slow, good, good) == []
    assert said(good, slow, slow, good) == ["new in 2 of 3 runs: rank 3 costs 1 ms of a step"]
