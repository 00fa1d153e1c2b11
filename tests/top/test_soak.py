"""Whole jobs in real time: what is said of them while they run, with the writers on the same machine.

How long things took is kept in `.soak/live.txt`: time decides no test, steps and names do. The bars are rows within
3 s, a hang named within 10 s, 10 % of a core for 64 ranks.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import rocpd
from rocpd.simulator import JobOptions
from rocpd.simulator.job_plan import JobPlan, plan
from rocpd.simulator.live import parse_incident
from tests.costs import ROOT
from tests.soak import sized
from tests.top.live_soak import Seen, hang_of, steps_passed, watch

NEWS = 10
"""Steps within which a straggler is named."""

_CASES = [*((8, seed, "0.01") for seed in range(50)), *((64, seed, "0.01") for seed in range(3))]
CASES: list[tuple[int, int, str]] = sized([(4, 0, "0.02")], _CASES)
STEPS = 24


def _keep(name: str, seen: Seen) -> None:
    path = ROOT / ".soak" / "live.txt"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{name} {json.dumps(asdict(seen) | {'last': None})}\n")


def _watched(job: JobPlan) -> Seen:
    """Watch a job to its end; its last numbers are those of its finished files."""
    asked, folder = job.options, job.options.out
    words = {"--ranks": asked.ranks, "--seed": asked.seed, "--live": asked.live, "--steps": STEPS}
    seen = watch(folder, "--plant", asked.plant, *(str(part) for word in words.items() for part in word))
    seen.passed = steps_passed(job, seen.named_s) if seen.named_s else None
    _keep(f"{asked.plant} {asked.ranks} {asked.seed}", seen)
    assert seen.errors == ""
    with rocpd.connect(folder) as session:
        parts = {part: percent for part, _, _, percent in session.summary("budget")}
        costs = {row[-1]: row[1] for row in session.summary("causes") if row[-1]}
    assert seen.last["state"] == "ended"
    assert seen.last["parts_percent"] == pytest.approx(parts)
    said = {str(rank["rank"]): rank["cost_ns"] for rank in seen.last["ranks"] if rank["cost_ns"] is not None}
    assert said == pytest.approx(costs)
    return seen


@pytest.mark.soak(50)
@pytest.mark.parametrize("plant", sized(["straggler=35"], ["straggler=35", "none"]))
@pytest.mark.parametrize(("ranks", "seed", "live"), CASES)
def test_the_straggler_and_nobody_else_is_named(ranks: int, seed: int, live: str, plant: str, tmp_path: Path) -> None:
    options = JobOptions(tmp_path / "job", ranks=ranks, seed=seed, steps=STEPS, plant=plant, live=float(live))
    job = plan(options)
    seen = _watched(job)
    straggler = job.straggler_rank
    named = {step: ranks for step, ranks in seen.named.items() if ranks}
    assert seen.looked_at is not None
    assert set(map(tuple, named.values())) == ({(straggler,)} if straggler is not None else set())
    # From the first conclusions on: how soon these come is a matter of the machine.
    assert min(named, default=0) <= seen.looked_at + NEWS


@pytest.mark.soak(50)
@pytest.mark.parametrize("incident", sized(["kill"], ["stall", "kill"]))
@pytest.mark.parametrize(("ranks", "seed", "live"), CASES)
def test_the_missing_rank_of_a_hung_job_is_named(
    incident: str, ranks: int, seed: int, live: str, tmp_path: Path
) -> None:
    seen = hang_of(tmp_path / "job", ranks, seed, incident)
    _keep(f"{incident} {ranks} {seed}", seen)
    happening = parse_incident(incident, ranks, 8, seed)
    assert happening
    assert seen.missing == [happening.rank]


@pytest.mark.soak(20)
@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_a_writer_that_is_killed_is_no_crash(seed: int, tmp_path: Path) -> None:
    """All ranks at once, at a moment that the seed chooses."""
    words = ("--ranks", "4", "--seed", str(seed), "--live", "0.01", "--steps", str(STEPS))
    seen = watch(tmp_path / "job", *words, kill_s=2.0 + seed % 7)
    assert "Traceback" not in seen.errors
