"""Laws of true time: who meets whom, who comes last, what clocks show of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rocpd.simulator import JobOptions, plan
from rocpd.simulator.conditions import make_clock
from rocpd.simulator.layout import GroupKind

SHAPES = [(1, 1), (4, 1), (1, 2), (2, 2), (2, 4)]
"""Of (tp, pp)."""
OUT = Path("job")


@pytest.mark.parametrize(("tp", "pp"), SHAPES)
@pytest.mark.parametrize("plant", ["none", "straggler", "straggler=10,late-launch,slow-collectives"])
def test_members_end_within_the_jitter_after_all_have_begun(tp: int, pp: int, plant: str) -> None:
    for collective in plan(JobOptions(OUT, ranks=8, nodes=2, steps=4, plant=plant, tp=tp, pp=pp)).collectives():
        assert min(collective.ends) >= max(collective.starts)
        assert 4_999 <= max(collective.ends) - min(collective.ends) <= 30_001


@pytest.mark.parametrize("jitter", [0.0, 2.0, 12.0])
def test_jitter_is_what_was_asked_for(jitter: float) -> None:
    apart = [max(c.ends) - min(c.ends) for c in plan(JobOptions(OUT, steps=6, jitter=jitter)).collectives()]
    assert max(apart) <= jitter * 1000 + 1
    assert min(apart) >= min(5.0, jitter) * 1000 - 1


@pytest.mark.parametrize(("tp", "pp"), SHAPES)
def test_last_is_who_starts_last(tp: int, pp: int) -> None:
    for collective in plan(JobOptions(OUT, ranks=8, steps=4, tp=tp, pp=pp)).collectives():
        by_start = dict(zip(collective.group.members, collective.starts, strict=True))
        latest = max(by_start.values())
        assert set(collective.last) == {rank for rank, start in by_start.items() if latest - start <= 30_000}


@pytest.mark.parametrize(("tp", "pp"), SHAPES)
def test_transfers_are_causal(tp: int, pp: int) -> None:
    """Nothing arrives before it is sent; between the stages activations go forwards and gradients backwards."""
    job = plan(JobOptions(OUT, ranks=8, steps=3, tp=tp, pp=pp))
    found = job.transfers()
    assert bool(found) == (job.layout.pp > 1)
    for transfer in found:
        assert min(transfer.sent[1], transfer.received[1]) >= max(transfer.sent[0], transfer.received[0])
        assert abs(job.layout.stage(transfer.sender) - job.layout.stage(transfer.receiver)) == 1
    for step in range(3):
        for line in job.layout.members(GroupKind.PIPELINE).tolist():
            here = [t for t in found if t.step == step and t.sender in line]
            forwards = [t for t in here if t.receiver > t.sender]
            backwards = [t for t in here if t.receiver < t.sender]
            assert len(forwards) == len(backwards) == 2 * (job.layout.pp - 1)
            if backwards:
                assert forwards[0].sent[0] < backwards[0].sent[0]
                # A stage sends a micro-batch on only after it has got it.
                by_sender = {t.sender: t for t in reversed(forwards)}
                firsts = [by_sender[rank] for rank in line[:-1]]
                assert all(a.received[1] < b.sent[0] for a, b in pairwise(firsts))


@pytest.mark.parametrize(("tp", "pp"), [(2, 2), (2, 4)])
def test_a_stage_computes_with_what_it_got(tp: int, pp: int) -> None:
    job = plan(JobOptions(OUT, ranks=8, steps=3, tp=tp, pp=pp))
    first_in_layers: dict[tuple[int | None, int], int] = {}
    for collective in job.collectives():
        if collective.group.kind is GroupKind.TENSOR:
            for rank, start in zip(collective.group.members, collective.starts, strict=True):
                first_in_layers.setdefault((collective.step, rank), start)
    received: dict[tuple[int, int], int] = {}
    for transfer in job.transfers():
        received.setdefault((transfer.step, transfer.receiver), transfer.received[1])
    later = [(step, rank) for step in range(3) for rank in range(8) if job.layout.stage(rank)]
    assert all(first_in_layers[at] > received[at] for at in later)


@pytest.mark.parametrize(("tp", "pp"), SHAPES)
def test_gradients_are_there_before_their_norm(tp: int, pp: int) -> None:
    added: dict[tuple[int | None, int], int] = {}
    norms = 0
    for collective in plan(JobOptions(OUT, ranks=8, steps=3, tp=tp, pp=pp)).collectives():
        members = zip(collective.group.members, collective.starts, collective.ends, strict=True)
        for rank, start, end in members:
            if collective.group.kind in (GroupKind.DATA, GroupKind.WORLD) and collective.size > 2**20:
                added[collective.step, rank] = end
            elif collective.size == 8:
                assert start >= added.get((collective.step, rank), 0)
                norms += 1
    assert norms == 3 * 8


@pytest.mark.parametrize(("tp", "pp"), SHAPES)
def test_without_noise_and_plants_members_arrive_together(tp: int, pp: int) -> None:
    job = plan(JobOptions(OUT, ranks=8, steps=4, plant="none", noise=0.0, jitter=0.0, tp=tp, pp=pp))
    checked = 0
    for collective in job.collectives():
        # Ranks start at different times, and the stages of a pipeline are done at different times.
        if collective.step is not None and (job.layout.pp == 1 or collective.group.kind is not GroupKind.WORLD):
            assert max(collective.starts) - min(collective.starts) == 0
            assert collective.last == collective.group.members
            checked += 1
    assert checked >= 4


def test_straggler_comes_last_and_others_wait_for_it() -> None:
    job = plan(JobOptions(OUT, ranks=8, steps=10, tp=4, plant="straggler=60"))
    straggler = job.straggler_rank
    assert straggler is not None
    mates = job.layout.group_of(straggler, GroupKind.TENSOR)
    for collective in job.collectives():
        if collective.group == mates:
            assert straggler in collective.last
    alone = [c.last == (straggler,) for c in job.collectives() if c.group == mates]
    assert np.mean(alone) > 0.6


def test_who_is_a_little_slow_is_late_on_average_alone() -> None:
    """Between two exchanges of a layer 10 % are less than the jitter: each of them is a tie."""
    job = plan(JobOptions(OUT, ranks=8, steps=20, tp=4, plant="straggler=10"))
    straggler = job.straggler_rank
    assert straggler is not None
    mates = job.layout.group_of(straggler, GroupKind.TENSOR)
    late = np.array([c.starts for c in job.collectives() if c.group == mates], dtype=np.int64)
    mean = (late - late.min(1, keepdims=True)).mean(0)
    assert mates.members[int(mean.argmax())] == straggler
    assert any(c.last != (straggler,) for c in job.collectives() if c.group == mates)


@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0])
def test_noise_is_the_deviation_of_what_a_rank_computes(noise: float) -> None:
    job = plan(JobOptions(OUT, ranks=16, steps=60, plant="none", noise=noise))
    assert np.std(job.conditions.stretch[1:-1]) * 100 == pytest.approx(noise, rel=0.1)
    assert np.all(job.conditions.stretch[[0, -1]] == 1.0)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_noise_remembers_the_step_before(rho: float) -> None:
    """Correlated from one step to the next, as large as without memory, and of each rank alone."""
    job = plan(JobOptions(OUT, ranks=64, steps=400, plant="none", noise=2.0, noise_memory=rho, profile="hpc"))
    chance = job.conditions.stretch[1:-1] - 1
    memory = [np.corrcoef(of_rank[1:], of_rank[:-1])[0, 1] for of_rank in chance.T]
    assert np.mean(memory) == pytest.approx(rho, abs=0.03)
    assert np.std(chance) == pytest.approx(0.02, rel=0.1)
    assert np.std(chance[0]) == pytest.approx(0.02, rel=0.3)
    assert abs(np.corrcoef(chance[:, 0], chance[:, 1])[0, 1]) < 0.5


def test_same_noise_whatever_is_planted() -> None:
    none, some = (plan(JobOptions(OUT, steps=8, plant=plant)) for plant in ("none", "straggler=20"))
    ratio = some.conditions.stretch / none.conditions.stretch
    expected = np.ones_like(ratio)
    expected[1:-1, some.straggler_rank] = 1.2
    assert np.allclose(ratio, expected)


def test_first_collective_waits_for_those_who_start_last() -> None:
    job = plan(JobOptions(OUT, ranks=6, start_spread=4.0, plant="none"))
    first, second = job.collectives()[:2]
    began = [rank.start_ns for rank in job.ranks]
    assert max(began) - min(began) > 1_000_000_000
    assert first.step is None
    assert first.last == (int(np.argmax(began)),)
    assert min(first.ends) - min(first.starts) >= max(began) - min(began)
    assert max(second.starts) - min(second.starts) < 1_000_000


def test_clocks_are_hours_apart_and_drift() -> None:
    clocks = [make_clock(np.random.default_rng(seed), 0, 50.0) for seed in range(200)]
    drifts = np.array([clock.drift_ppm for clock in clocks])
    assert np.all((np.abs(drifts) >= 1) & (np.abs(drifts) <= 50))
    assert 60 < (drifts > 0).sum() < 140
    hours = np.array([clock.offset_ns for clock in clocks]) / 3.6e12
    assert np.ptp(hours) > 60
    assert make_clock(np.random.default_rng(1), 0, 0.0).drift_ppm == 0


def test_clock_shows_offset_and_drift() -> None:
    clock = make_clock(np.random.default_rng(4), 0, 50.0)
    true = np.array([0, 10**9, 3_600 * 10**9], dtype=np.int64)
    expected = true * (1 + clock.drift_ppm / 1e6) + clock.offset_ns
    assert np.abs(clock.local(true) - expected).max() <= 1


def test_clock_steps_once() -> None:
    usual, stepping = (plan(JobOptions(OUT, nodes=2, plant=plant)) for plant in ("none", "clock-step=700"))
    (fact,) = stepping.facts
    assert fact.node is not None
    assert stepping.nodes[1 - fact.node] == usual.nodes[1 - fact.node]
    clock = stepping.nodes[fact.node]
    true = clock.step_at + np.array([-1_000_000, -1, 0, 1_000_000])
    assert (clock.local(true) - usual.nodes[fact.node].local(true)).tolist() == [0, 0, 700_000, 700_000]
    assert clock.step_at == stepping.timing.anchors[fact.steps[0] + 1, :, 0].min()
    assert stepping.collectives() == usual.collectives()
