"""Causes that hide each other, that change over the steps, or that lie between steps: each costs what it truly does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.communication.collectives import listed
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import plan
from rocpd.summary.findings import Finding, Verdict
from tests.blame.cases import Case, made
from tests.blame.generator import Plant, Shape, played
from tests.blame.jobs import step_of
from tests.soak import paired, sample, sized
from tests.summary.cells import cells

ERROR = 0.2  # of what a cause costs


def _opened(shape: Shape, plants: Sequence[Plant], folder: Path) -> rocpd.Session:
    made(Case(shape, tuple(plants), {}), folder)
    return rocpd.connect(folder)


def _causes(session: rocpd.Session) -> list[Finding]:
    return [each for each in session.summary("overview").findings if each.rule in ("comm.straggler", "step.outlier")]


def _said(shape: Shape, plants: Sequence[Plant], folder: Path) -> list[Finding]:
    with _opened(shape, plants, folder) as session:
        return _causes(session)


def _gain(shape: Shape, plants: Sequence[Plant], gone: Sequence[Plant]) -> float:
    """Return what a mean step takes less without some of the plants [ns]."""
    with_all, without = (played(shape, tuple(some)) for some in (plants, [each for each in plants if each not in gone]))
    return (with_all.ends[-1] - without.ends[-1]) / shape.steps


@pytest.mark.soak
@pytest.mark.parametrize(
    ("shape", "plants"),
    [
        (Shape(nodes=2), [Plant("compute", 10, (1, 3, 5))]),
        (Shape(nodes=2), [Plant("compute", 10, (1, 3))]),
        (Shape(nodes=2), [Plant("late", 500, (1, 3, 5))]),
        (Shape(nodes=2), [Plant("compute", size, (rank,)) for rank, size in ((1, 10), (4, 11.5), (6, 13))]),
        (Shape(tp=4, nodes=2), [Plant("compute", 10, (1, 5))]),
        sized(
            (Shape(ranks=16, nodes=4, layers=2), [Plant("compute", 10, (1, 4, 9, 12))]),
            (Shape(ranks=32, nodes=4, layers=2), [Plant("compute", 10, (1, 4, 9, 12, 17, 20, 25, 30))]),
        ),
    ],
)
def test_ranks_that_are_slow_alike_are_one_cause(shape: Shape, plants: list[Plant], tmp_path: Path) -> None:
    """Without one of them alone a step takes as long: together they cost what it does once all are gone."""
    ranks = sorted(rank for plant in plants for rank in plant.ranks)
    with _opened(shape, plants, tmp_path) as session:
        (finding,) = (each for each in _causes(session) if each.rule == "comm.straggler")
        costs = cells(session, "stragglers", "cost_ns")
        (advised,) = (each for each in session.advise().findings if each.rule == "comm.straggler")
    assert finding.evidence["together"] == ranks
    assert finding.text.startswith(f"ranks {listed(ranks)} cost ")
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(shape, plants, plants), rel=ERROR)
    assert "hidden_by" not in finding.evidence
    assert costs == [finding.evidence["cost_ns"], *[None] * (len(costs) - 1)]
    assert advised.gain_percent == pytest.approx(finding.evidence["cost_percent"], rel=0.01)
    assert advised.regained_by == f"rocpd whatif {tmp_path} --without rank:{listed(ranks)}"
    assert advised.rank in ranks


_OF_GPUS = (
    Shape(nodes=2, gpus=4, rccl="sizes"),
    Shape(tp=2, gpus=2, rccl="sizes"),
    Shape(nodes=2, tp=4, gpus=4, rccl="sizes"),
    Shape(ranks=16, nodes=2, tp=4, gpus=8, rccl="sizes"),
)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("shape", "plant"),
    paired(_OF_GPUS, [Plant("compute", 20, (5,)), Plant("late", 500, (5,)), Plant("stall", 3000, (5,), (4, 9))]),
)
@pytest.mark.parametrize("marks", [True, False])
def test_a_process_is_blamed_for_one_of_its_gpus(*, shape: Shape, plant: Plant, marks: bool, tmp_path: Path) -> None:
    """A thread drives each GPU and marks its steps, or does not, in which it is ahead of other threads at times."""
    shape = replace(shape, marks=marks)
    process = plant.ranks[0] // shape.gpus
    with _opened(shape, [plant], tmp_path) as session:
        (finding,) = (each for each in _causes(session) if each.rule == "comm.straggler")
        answer = session.whatif(without=[f"rank:{process}"]).together
    cost = _gain(shape, [plant], [plant])
    assert finding.rank == process
    assert finding.evidence["steps"] == shape.steps
    assert finding.evidence["cost_ns"] == pytest.approx(cost, rel=ERROR)
    assert finding.evidence["mainly"] == ("compute" if plant.kind == "compute" else "host")
    assert answer.gains[0] <= cost / answer.step_ns <= answer.gains[1]


def test_ranks_that_are_slow_for_different_reasons_hide_each_other(tmp_path: Path) -> None:
    shape, plants = Shape(ranks=16, nodes=2), [Plant("compute", 12, (1, 9)), Plant("late", 250, (3, 11))]
    said = [each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler"]
    assert [each.evidence["together"] for each in said] == [[3, 11], [1, 9]]
    for other, finding in zip(plants, said, strict=True):
        cost = _gain(shape, plants, plants) - _gain(shape, plants, [other])
        assert finding.evidence["cost_ns"] == pytest.approx(cost, rel=ERROR)
        assert finding.evidence["hidden_by"] == [f"rank:{listed(other.ranks)}"]


@pytest.mark.soak
@pytest.mark.parametrize(("tp", "micros"), paired([1, 4], [(12, 200), (17, 150), (8, 200)]))
def test_a_straggler_beside_a_late_host_hides_it_or_is_hidden(tp: int, micros: tuple[int, int], tmp_path: Path) -> None:
    """Half of the ranks are late: as the others, the straggler must not become as late as these."""
    longer, late = micros
    shape, plants = Shape(nodes=2, tp=tp), [Plant("compute", longer, (2,)), Plant("late", late, (4, 5, 6, 7))]
    evidence = (each.evidence for each in _said(shape, plants, tmp_path))
    said = {each["cause"]: each for each in evidence if "cause" in each}
    assert set(said) == {"rank:2", "host:node1"}
    for plant, other, cause in zip(plants, plants[::-1], ("rank:2", "host:node1"), strict=True):
        is_hidden = "hidden_by" in said[cause]
        once_the_other_is_gone = _gain(shape, plants, plants) - _gain(shape, plants, [other])
        cost = once_the_other_is_gone if is_hidden else _gain(shape, plants, [plant])
        assert said[cause]["cost_ns"] == pytest.approx(cost, rel=ERROR)


def test_a_slow_host_of_two_ranks_is_named_behind_a_straggler(tmp_path: Path) -> None:
    """How far the ranks of the host lie from the others is no measure of chance for the straggler."""
    shape, plants = Shape(ranks=6, nodes=3), [Plant("compute", 35, (5,)), Plant("compute", 15, (2, 3))]
    said = {
        each.evidence["cause"]: each.evidence for each in _said(shape, plants, tmp_path) if "cause" in each.evidence
    }
    assert {cause: each.get("hidden_by") for cause, each in said.items()} == {"rank:5": None, "host:node1": ["rank:5"]}
    alone = _gain(shape, plants, plants[:1])
    assert said["rank:5"]["cost_ns"] == pytest.approx(alone, rel=ERROR)
    assert said["host:node1"]["cost_ns"] == pytest.approx(_gain(shape, plants, plants) - alone, rel=ERROR)


def test_a_rank_that_stalls_is_named_though_it_takes_longer_for_nothing_besides(tmp_path: Path) -> None:
    """Its host is late while it waits for another stage: that costs nothing, and is half of what it takes longer."""
    options: dict[str, Any] = {"ranks": 12, "nodes": 3, "tp": 2, "pp": 2, "seed": 75104}
    jobs = (JobOptions(tmp_path, steps=10, plant=plant, **options) for plant in (_LATE_AND_AT_TIMES, "none"))
    now, then = (step_of(each) for each in jobs)
    with rocpd.connect(simulate(JobOptions(tmp_path, steps=10, plant=_LATE_AND_AT_TIMES, **options))) as session:
        (said,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert (said.rank, said.evidence["stalls"]) == (10, [1, 6])
    assert said.evidence["cost_percent"] == pytest.approx(100 * (1 - then / now), rel=ERROR)


def test_a_rank_that_stalls_costs_what_a_replay_without_it_regains(tmp_path: Path) -> None:
    """Its stalls are sure; the rest of what it takes longer costs as much, whether or not that is chance."""
    options: dict[str, Any] = {"ranks": 8, "tp": 2, "steps": 6, "seed": 9124, "noise": 2, "noise_memory": 0.8}
    job, without = (JobOptions(tmp_path, plant=plant, **options) for plant in ("throttled=37", "none"))
    now, then = (step_of(each) for each in (job, without))
    with rocpd.connect(simulate(job)) as session:
        (said,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
        gain = session.whatif(without=[f"rank:{said.rank}"]).together.gain
    assert (said.rank, said.evidence["stalls"]) == (7, [2, 3, 4])
    assert (
        said.evidence["cost_percent"] == pytest.approx(100 * gain) == pytest.approx(100 * (1 - then / now), rel=ERROR)
    )


def test_ranks_of_a_slower_half_cost_what_each_of_them_takes(tmp_path: Path) -> None:
    """They are no host: what the slowest takes beyond the other costs, too."""
    shape, plants = Shape(ranks=4), [Plant("compute", 8, (1,)), Plant("compute", 12, (2,))]
    (said,) = (each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler")
    assert said.evidence["together"] == [1, 2]
    assert said.evidence["cost_ns"] == pytest.approx(_gain(shape, plants, plants), rel=ERROR)


_LATE_AND_AT_TIMES = "late-node=600,intermittent=50"


def test_ranks_of_two_hosts_that_stall_together_make_the_steps_slow(tmp_path: Path) -> None:
    shape, plants = Shape(nodes=2), [Plant("stall", 3000, (rank,), (4, 9)) for rank in (1, 6)]
    said = _said(shape, plants, tmp_path / "job")
    assert [each.evidence["together"] for each in said if each.rule == "comm.straggler"] == [[1, 6]]
    (slow,) = (each.text for each in said if each.step)
    assert ", ranks 1,6: host 2." in slow
    assert slow.endswith("; 1 more alike: step 4")
    with rocpd.connect(tmp_path / "job") as session:
        answer = session.whatif().together
    assert {str(change) for change in answer.changes} >= {"--without rank:1,6", "--without step:4"}
    assert answer.gain * answer.step_ns == pytest.approx(_gain(shape, plants, plants), rel=ERROR)


def test_a_pause_before_some_steps_is_of_the_rank_that_makes_it(tmp_path: Path) -> None:
    """A step that begins soon after the host was told that work is done does not wait for that work."""
    shape, plant = Shape(), Plant("late", 5000, (3,), (5, 6, 11))
    (finding,) = (each for each in _said(shape, [plant], tmp_path) if each.rule == "comm.straggler")
    assert (finding.rank, finding.evidence["stalls"]) == (3, [5, 6, 11])
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(shape, [plant], [plant]), rel=ERROR)


@pytest.mark.parametrize(
    ("plant", "late"),
    [
        (Plant("stall", 1000, (3,), (2, 3, 5, 7, 8, 10)), {2, 3, 5, 7, 8, 10}),
        (Plant("compute", 12, (3,), tuple(range(6, 12))), set(range(6, 12))),
    ],
)
def test_a_cause_of_some_steps_is_shown_in_one_of_these(plant: Plant, late: set[int], tmp_path: Path) -> None:
    """By which share it computes longer than others in all steps is not known of it: it does so in some."""
    with rocpd.connect(made(Case(Shape(steps=12), (plant,), {}), tmp_path / "job").files) as session:
        (row,) = session.sql("select compute_longer_percent, longer_ns from causes where ranks = '3'").fetchall()
        steps = session.sql("select step, at_ns, at_ns + max_ns from summary.steps").fetchall()
    finding = next(each for each in rocpd.advise(tmp_path / "job").findings if each.rule == "comm.straggler")
    assert finding.rank == 3
    shown = finding.step, *(finding.window or ())
    assert shown in {row for row in steps if int(row[0].split()[-1]) in late}
    assert row[0] is None
    assert row[1] > 0
    since = plant.kind == "compute"  # beside the others it takes longer in half of the steps: in no usual one
    assert ("--step 6-11 --against 0-5` says which kernels take longer since then" in str(finding.action)) == since


def test_a_rank_that_takes_longer_and_longer_is_said_to(tmp_path: Path) -> None:
    """It costs what each step takes longer, not what the median one does."""
    shape = Shape(nodes=2, steps=24, layers=2)
    plants = [Plant("compute", 12 * step / 23, (6,), (step,)) for step in range(1, 24)]
    (finding,) = (each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler")
    assert finding.rank == 6
    assert "longer, more and more: " in finding.text
    assert finding.evidence["grows_percent"] == pytest.approx([1.3, 10.7], abs=1.5)
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(shape, plants, plants), rel=0.1)


def test_a_straggler_stands_out_where_steps_differ_in_length(tmp_path: Path) -> None:
    """As with sequences of other lengths in each step: what all ranks take longer says nothing of one of them."""
    shape = Shape(steps=20)
    lengths = [Plant("compute", 26 * step % 150, tuple(range(8)), (step,)) for step in range(20)]
    slow = Plant("compute", 10, (4,))
    assert [each.rank for each in _said(shape, [*lengths, slow], tmp_path) if each.rule == "comm.straggler"] == [4]


def test_pieces_of_a_trace_without_markers_hold_the_same_work(tmp_path: Path) -> None:
    """Where a collective ends, a fast rank is further than a slow one in what it computes."""
    shape, plant = Shape(nodes=2), Plant("compute", 10, (1,))
    with rocpd.connect(made(Case(shape, (plant,), {}), tmp_path).files) as session:
        found = session.summary("overview", step_marker="none").findings
    (finding,) = (each for each in found if each.rule == "comm.straggler")
    assert finding.rank == 1
    percent = 100 * _gain(shape, [plant], [plant]) * shape.steps / played(shape, (plant,)).ends[-1]
    assert finding.evidence["cost_percent"] == pytest.approx(percent, rel=ERROR)
    assert float(str(finding.evidence["wait_percent"])) > 50


@pytest.mark.parametrize("rccl", ["sizes", "none"])
def test_a_pipeline_across_nodes_takes_as_long_as_it_does(rccl: str, tmp_path: Path) -> None:
    """Nothing but sends crosses nodes; where these are not known, clocks that are hours apart make no step longer."""
    shape, plant = Shape(pp=2, nodes=2, layers=1, rccl=rccl), Plant("compute", 12, (5,))
    job = made(Case(shape, (plant,), {}), tmp_path)
    with rocpd.connect(job.files) as session:
        clocks = [row[1] for row in session.info()["clocks"].fetchall()]
        answer = session.whatif(without=["rank:5"])
    assert answer.together.step_ns == pytest.approx((job.job.ends[-1] - job.job.ends[0]) / 15, rel=0.05)
    if rccl == "sizes":
        assert clocks == ["reference", "collectives"]
        assert answer.together.gain * answer.together.step_ns == pytest.approx(job.truths[0].cost / 16, rel=ERROR)


def test_what_layers_need_at_once_is_not_hidden(tmp_path: Path) -> None:
    """All-reduces of activations come with the first layers, those of gradients once all were passed."""
    layers = Shape(ranks=4, tp=4, layers=10, kernels=2, steps=8, rccl="sizes")
    with rocpd.connect(made(Case(layers, (), {}), tmp_path / "tp").files) as session:
        with pytest.raises(RocpdError, match="nothing of that is recorded"):
            session.whatif(overlap=["comm"])
        assert session.whatif(overlap=["comm:0-3"]).together.gain > 0.1
    both = replace(layers, ranks=8, nodes=2)
    with rocpd.connect(made(Case(both, (), {}), tmp_path / "both").files) as session:
        gradients, every = (
            session.whatif(overlap=words).together.gain for words in (["comm"], ["comm:0-3", "comm:4-7"])
        )
    assert gradients < every / 2


@pytest.mark.parametrize("seed", [2, 5])
def test_a_straggler_does_not_make_its_host_late(seed: int, tmp_path: Path) -> None:
    """Ranks of its host take a little longer by chance; what the straggler does is its own."""
    shape = Shape(nodes=2, noise=0.04, rho=0.5, layers=2, steps=12, seed=seed)
    plants = [Plant("compute", 3, shape.on_node(0)), Plant("compute", 30, (1,))]
    said = [each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler"]
    assert [each.rank for each in said] == [1]


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "first"), sample([("late", 4), ("compute", 4), ("late", 3), ("compute", 2)], 3))
def test_half_of_the_ranks_of_a_host_or_more_are_named_together(kind: str, first: int, tmp_path: Path) -> None:
    """As those of one socket: none of them stands out, and to be late is as usual as not to be, or more so."""
    plant = Plant(kind, {"late": 700, "compute": 12}[kind], tuple(range(first, 8)))
    with _opened(Shape(), [plant], tmp_path) as session:
        (finding,) = (each for each in _causes(session) if each.rule == "comm.straggler")
        answer = session.whatif(without=[f"host:{first}-7"]).together
        (advice,) = (each for each in session.advise().findings if each.rule == "comm.straggler")
    assert finding.text.startswith(f"ranks {first}-7 cost ")
    assert finding.evidence["together"] == [*plant.ranks]
    cost = _gain(Shape(), [plant], [plant])
    assert finding.evidence["cost_ns"] == pytest.approx(cost, rel=ERROR)
    assert answer.gain * answer.step_ns == pytest.approx(cost, rel=ERROR)
    assert f"--without host:{first}-7" in (advice.regained_by or "")


@pytest.mark.parametrize(("ranks", "first"), [((4,), 14), ((4,), 20), ((4, 5, 6, 7), 14)])
def test_the_step_is_named_from_which_on_ranks_are_slow(ranks: tuple[int, ...], first: int, tmp_path: Path) -> None:
    """Where that is in the later half, the usual step is not slow; a stall of the host just before is another thing."""
    shape = Shape(nodes=2, steps=24, layers=2)
    plants = [Plant("compute", 20, ranks, tuple(range(first, 24))), Plant("stall", 700, (4,), (first - 1,))]
    (finding,) = (each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler")
    assert f" longer, from step {first} on; " in finding.text
    assert finding.evidence["since_step"] == first
    assert "stalls" not in finding.evidence


@pytest.mark.parametrize(("layout", "seed", "percent"), [({"tp": 8}, 702, 25), ({"pp": 2}, 704, 10)])
def test_what_is_slow_in_most_steps_computes_as_much_longer_in_these(
    layout: dict[str, Any], seed: int, percent: int, tmp_path: Path
) -> None:
    """The usual time in all steps, of which a third are not slow, is less; and the rank seems to drift."""
    plant, rccl = f"slowdown={percent}", "none" if "tp" in layout else "sizes"
    job = JobOptions(tmp_path, ranks=8, steps=9, seed=seed, plant=plant, rccl=rccl, **layout)
    with rocpd.connect(simulate(job)) as session:
        (finding,) = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
    assert finding.evidence["since_step"] == 3
    assert finding.evidence["compute_longer_percent"] == pytest.approx(percent, rel=0.1)


def test_a_rank_that_becomes_slow_after_three_steps_costs_what_it_does(tmp_path: Path) -> None:
    """The first step is longer on all ranks: that is nobody's."""
    shape, slow = Shape(ranks=4, steps=10, layers=2), Plant("compute", 15, (2,), tuple(range(3, 10)))
    plants = [slow, Plant("compute", 8, tuple(range(4)), (0,))]
    (finding,) = (each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler")
    assert (finding.rank, finding.evidence["since_step"], finding.evidence["times_longest"]) == (2, 3, 7)
    assert " longer, in all 7 steps from step 3 on; " in finding.text
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(shape, plants, [slow]), rel=ERROR)


def test_what_may_be_chance_is_not_said_to_lack_a_record(tmp_path: Path) -> None:
    """Six of ten steps are slow, one after the other: what that costs is known, not whether it lasts."""
    shape, plants = Shape(ranks=4, steps=10, layers=2), [Plant("compute", 15, (2,), (1, 2, 3, 4, 5, 6))]
    (finding,) = (each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler")
    regains = re.search(r"rank 2 computes .* longer, .*; without it a step takes (.*) % less, but steps", finding.text)
    with rocpd.connect(tmp_path) as session:
        answer = session.whatif(without=["rank:2"]).together
    assert finding.verdict is Verdict.UNKNOWN
    assert regains is not None
    assert float(regains[1]) == pytest.approx(answer.gain * 100, rel=0.05)
    assert answer.gain * answer.step_ns == pytest.approx(_gain(shape, plants, plants), rel=ERROR)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (Plant("late", 1000, (3,), (7,)), "its host takes 1.00 ms longer (time between steps) in 1 of 20 steps; "),
        (Plant("late", 150, (3,)), "its host takes 150 us longer (time between steps), in all 20 steps; "),
        (Plant("compute", 10, (3,)), "computes 9.8 % longer, in all 20 steps; "),
    ],
)
def test_what_nobody_waits_for_is_no_reason(plant: Plant, why: str, tmp_path: Path) -> None:
    """A pause of each step in the midst of launches, while the GPU has work, is longer than what costs time."""
    shape, harmless = Shape(steps=20, seed=1), Plant("stall", 500, (3,))
    assert _gain(shape, [harmless], [harmless]) == pytest.approx(0, abs=1000)
    (finding,) = (each for each in _said(shape, [plant, harmless], tmp_path) if each.rule == "comm.straggler")
    assert why in finding.text
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(shape, [plant, harmless], [plant]), rel=ERROR)


@pytest.mark.parametrize(
    ("plants", "why"),
    [
        ([("late", 300), ("compute", 10)], "its host takes 301 us longer (time between steps), in all 16 steps, and "),
        ([("late", 300), ("compute", 20)], "computes 21 % longer, in all 16 steps, and its host takes 301 us longer; "),
        ([("late", 60), ("compute", 20)], "computes 21 % longer, in all 16 steps; "),
        ([("late", 300)], "its host takes 301 us longer (time between steps), most in 15 of 16 steps; "),
    ],
)
def test_a_late_host_and_slow_kernels_of_one_rank_are_both_named(
    plants: list[tuple[str, float]], why: str, tmp_path: Path
) -> None:
    """A part that is small beside the other is not."""
    every = [Plant(kind, size, (3,)) for kind, size in plants]
    with _opened(Shape(), every, tmp_path) as session:
        (finding,) = (each for each in _causes(session) if each.rule == "comm.straggler")
        (advised,) = (each for each in session.advise().findings if each.rule == "comm.straggler")
    assert why in finding.text
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(Shape(), every, every), rel=ERROR)
    assert ("too: " in str(advised.action)) == ("also" in finding.evidence) == (", and " in why)
    assert ("the GPU is as fast as others" in str(advised.action)) == (len(plants) == 1)


_LAYOUTS: list[dict[str, Any]] = [{}, {"tp": 4, "nodes": 2, "rccl": "sizes"}, {"ep": 4, "rccl": "sizes"}]


@pytest.mark.soak
@pytest.mark.parametrize(("layout", "kernels"), paired(_LAYOUTS, [((3,), 2), ((3,), 4), ((3, 4), 3)]))
def test_a_rank_with_more_kernels_has_more_work(
    layout: dict[str, Any], kernels: tuple[tuple[int, ...], int], tmp_path: Path
) -> None:
    """They lie in some layers, and what comes after these is the same again."""
    ranks, more = kernels
    shape = Shape(seed=4, **layout)
    plants = [Plant("kernels", more, (rank,)) for rank in ranks]
    said = [each for each in _said(shape, plants, tmp_path) if each.rule == "comm.straggler"]
    (finding,) = said
    assert finding.evidence["cause"] == f"rank:{listed(ranks)}"
    assert finding.evidence["cost_ns"] == pytest.approx(_gain(shape, plants, plants), rel=ERROR)
    assert f"it has more work: {100 * more / 25:.2g} % more work-items" in finding.text


def test_a_stage_with_more_kernels_is_no_straggler(tmp_path: Path) -> None:
    """Stages differ by what they are: nobody else does as much."""
    shape = Shape(pp=2, layers=2, rccl="sizes")
    (finding,) = (
        each for each in _said(shape, [Plant("kernels", 1, (4, 5, 6, 7))], tmp_path) if each.rule == "comm.straggler"
    )
    assert finding.verdict is not Verdict.PROBLEM


def test_a_rank_that_costs_little_by_waits_that_are_known_is_no_unknown_one(tmp_path: Path) -> None:
    """Others wait for it most of all, and all that it costs is recorded: less than what makes a straggler."""
    job = JobOptions(tmp_path, ranks=16, nodes=4, steps=8, seed=5039, rccl="calls", noise=2.0, plant="straggler=3")
    without = JobOptions(tmp_path, ranks=16, nodes=4, steps=8, seed=5039, rccl="calls", noise=2.0, plant="none")
    now, then = (step_of(each) for each in (job, without))
    rank = plan(job).straggler_rank
    with rocpd.connect(simulate(job)) as session:
        first, *_ = (each for each in session.summary("overview").findings if each.rule == "comm.straggler")
        gain = session.whatif(without=[f"rank:{rank}"]).together.gain
    assert first.verdict is Verdict.NONE
    assert gain == pytest.approx(1 - then / now, abs=0.001)
