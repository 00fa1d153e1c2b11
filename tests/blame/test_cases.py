"""The cases are what they say, by true times alone: which steps are slow and whose, what lasts, what a link costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rocpd
from tests.blame.cases import CASES, LAYOUTS, made, straggler_in
from tests.blame.generator import played, truths
from tests.soak import sample

WARM = ("warm-up", "step-0")


@pytest.mark.soak
@pytest.mark.parametrize("name", sample([*CASES], 3))
def test_case_is_what_it_says(name: str) -> None:
    case = CASES[name]
    job = played(case.shape, case.plants)
    every = dict(zip(case.plants, truths(job), strict=True))
    lengths, usual = job.lengths, np.median(job.lengths)
    slow = {step for step, length in enumerate(lengths) if length > 1.3 * usual}
    assert slow - {0} == set(case.slow_steps) - {0}
    assert (0 in slow) == name.startswith(WARM)
    for step, rank in case.slow_steps.items():
        cause = max(every.values(), key=lambda truth: truth.costs[step])
        assert cause.plant.ranks == ((rank,) if rank is not None else tuple(range(case.shape.ranks)))
        assert cause.costs[step] > 0.8 * (lengths[step] - usual)
    for plant in (plant for plant in case.plants if not plant.steps):
        assert case.link == plant.ranks if plant.kind == "link" else case.lasting >= set(plant.ranks)
        others = [cost for step, cost in enumerate(every[plant].costs) if step not in case.slow_steps]
        assert np.mean(np.array(others) > 0) >= 0.5  # chance hides what is small
        assert every[plant].cost > 0
    assert case.lasting == {
        rank for plant in case.plants if not plant.steps and plant.kind != "link" for rank in plant.ranks
    }
    assert bool(case.lasting or case.link) == any(not plant.steps for plant in case.plants)


@pytest.mark.parametrize("layout", ["tp-dp", "tp2-dp"])
def test_a_straggler_causes_the_waiting_of_hybrid_layouts(layout: str) -> None:
    """Its peers are late at the groups across nodes only because they waited for it."""
    for percent, least in ((10, 0.75), (30, 0.9)):
        case = straggler_in(layout, percent)
        (truth,) = truths(played(case.shape, case.plants))
        assert truth.waiting > least


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_every_layout_open(layout: str, tmp_path: Path) -> None:
    case = straggler_in(layout, 10, "sizes")
    job = made(replace(case, shape=replace(case.shape, steps=3)), tmp_path)
    assert job.truths[0].plant == case.plants[0]
    with rocpd.connect(job.files, align="none") as session:
        ((kernels,),) = session.execute("SELECT COUNT(*) FROM kernels").fetchall()
        ((problems,),) = session.execute("SELECT COUNT(*) FROM kernels WHERE duration <= 0").fetchall()
    assert (kernels, problems) == (sum(len(rank.operations) for rank in job.job.ranks), 0)
