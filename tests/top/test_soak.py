"""Whole jobs in real time: what is said of them while they run, with the writers on the same machine.

The same without a clock, step by step, says how many steps it takes to be sure, however loaded a machine is.
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
from rocpd.top.glance import Glance
from rocpd.top.pace import LookPace
from rocpd.top.watch import Watch, WatchOptions
from tests.costs import ROOT
from tests.soak import sized
from tests.top.live_soak import Seen, hang_of, steps_passed, watch
from tests.top.played import PlayedJob, played

NEWS = 10
"""Steps within which a straggler is named."""

FEWEST, NOISE = 5, 2.0
"""Steps before which there are no conclusions: the newest does not count; and how much those of a rank differ [%]."""

_CASES = [*((8, seed, "0.01") for seed in range(50)), *((64, seed, "0.01") for seed in range(3))]
CASES: list[tuple[int, int, str]] = sized([(4, 0, "0.04")], _CASES)
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
        costs = {row[-2]: row[1] for row in session.summary("causes") if row[-2]}
    assert seen.last["state"] == "ended"
    assert seen.last["parts_percent"] == pytest.approx(parts)
    said = {str(rank["rank"]): rank["cost_ns"] for rank in seen.last["ranks"] if rank["cost_ns"] is not None}
    assert said == pytest.approx(costs)
    return seen


@pytest.mark.soak(50)
@pytest.mark.parametrize("ranks", sized([8], [8, 16]))
@pytest.mark.parametrize("seed", range(sized(1, 50)))
def test_ten_steps_are_enough_to_name_a_rank_that_takes_a_tenth_longer(seed: int, ranks: int, tmp_path: Path) -> None:
    asked = {"ranks": ranks, "seed": seed, "steps": NEWS + 1, "noise": NOISE, "plant": "straggler=10"}
    with played(tmp_path, **asked) as job, _watching(job) as watch:
        named: list[int | None] = []
        for steps in range(FEWEST, NEWS + 1):
            named = named or _named(_after(job, watch, steps))
        assert named == [job.job.straggler_rank]


@pytest.mark.soak(50)
@pytest.mark.parametrize("ranks", sized([8], [8, 16]))
@pytest.mark.parametrize("seed", range(sized(1, 50)))
def test_nobody_is_named_in_a_clean_job(seed: int, ranks: int, tmp_path: Path) -> None:
    asked = {"ranks": ranks, "seed": seed, "steps": STEPS, "noise": NOISE, "plant": "none"}
    with played(tmp_path, **asked) as job, _watching(job) as watch:
        glances = [_after(job, watch, steps) for steps in sized((FEWEST, STEPS), (FEWEST, 8, NEWS, 14, STEPS))]
        assert [_named(glance) for glance in glances] == [[]] * len(glances)
        assert all(glance.looked_at for glance in glances)


def _watching(job: PlayedJob) -> Watch:
    return Watch([str(job.job.options.out)], WatchOptions(rows_first=True), LookPace(1e9))


def _after(job: PlayedJob, watch: Watch, steps: int) -> Glance:
    """Return what is said when so many steps are over; the first look at a job shows its ranks alone."""
    job.play(steps)
    glance = watch.look()
    return glance if glance.looked_at else watch.look()


def _named(glance: Glance) -> list[int | None]:
    return [rank.rank for rank in glance.ranks if rank.is_straggler]


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
