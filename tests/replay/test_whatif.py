"""What changes would gain: as much as the same job is faster that was simulated with them, within the bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from rocpd import Filters, Window
from rocpd.base import RocpdError, UsageError
from rocpd.base.stages import Stages
from rocpd.facts.communication.collectives import listed
from rocpd.facts.timeline import COMPUTE
from rocpd.replay.answer import Binding, Prediction, WhatIf
from rocpd.replay.causes import Blame, Cause, CauseKind
from rocpd.replay.changes import Change, Changing, Verb, changes, of_cause
from rocpd.replay.job import JobGraph, read_job
from rocpd.replay.points import NO_EDGES, Edge, left_unexplained
from rocpd.replay.whatif import Replays
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.conditions import PlantedFact
from rocpd.simulator.job_plan import plan
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.members import Member
from tests.replay.test_replay import LAYOUTS, graph_of, steps_of, usual_step
from tests.soak import sized


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Replays:
    """A job whose rank 1 is slower than the other three."""
    job = graph_of(tmp_path_factory.mktemp("job"), seed=3, steps=4, plant="straggler=30", profile="gemm")
    return Replays(job, steps_of(job))


def asked(without: Sequence[str] = (), scale: Sequence[str] = (), overlap: Sequence[str] = ()) -> tuple[Change, ...]:
    return changes(without, scale, overlap)


def test_nothing_that_changes_is_the_recording(slowed: Replays) -> None:
    for same in (), asked(scale=["compute=1", "host=1", "launch=1"]):
        found = slowed.predict(same)
        assert (found.low_ns, found.predicted_step_ns, found.high_ns) == (found.step_ns,) * 3
    assert sum(each.time for each in slowed.bound(found).binds) == pytest.approx(found.step_ns)


def test_a_rank_with_steps_and_nothing_in_them_is_blamed_for_nothing(slowed: Replays) -> None:
    """As of one whose marker ranges alone have been written while the job runs."""
    job = slowed.job
    with_empty = Replays(replace(job, steps={**job.steps, 9: job.steps[0]}), steps_of(job))
    (straggler,) = slowed.blame.causes
    assert [cause.ranks for cause in with_empty.blame.causes] == [straggler.ranks]


def test_without_partners_no_rank_is_blamed(slowed: Replays) -> None:
    alone = Replays(replace(slowed.job, matched=0.2), steps_of(slowed.job))
    assert [[each.kind for each in replays.causes() if each.kind == "rank"] for replays in (slowed, alone)] == [
        ["rank"],
        [],
    ]


def test_a_rank_that_others_wait_for_is_not_acquitted_where_no_record_says_why(slowed: Replays) -> None:
    """Without the calls by which hosts wait for GPUs each host seems to take all that time for itself."""
    job, points = slowed.job, slowed.job.points
    edges = job.edges.also(NO_EDGES, (job.edges.kind == Edge.SYNCHRONISED).nonzero()[0])
    lag = left_unexplained(points, edges.every(), slice(0, len(points)))
    alone = Replays(replace(job, points=replace(points, lag=lag), edges=edges), steps_of(job))
    (straggler,) = slowed.blame.causes
    assert slowed.blame.denied is None
    assert not alone.blame.causes
    assert alone.blame.denied is not None
    assert (alone.blame.denied.rank,) == straggler.ranks
    with pytest.raises(RocpdError, match="not known: rank 1 computes"):
        alone.predict(asked(["rank:1"]))


def test_less_time_never_makes_a_step_longer(slowed: Replays) -> None:
    for kind in ("compute", "host", "launch", "copies", "collective", "kernel:Cijk", "rank:1"):
        steps = [slowed.predict(asked(scale=[f"{kind}={factor}"])).predicted_step_ns for factor in (0, 0.5, 1, 1.5)]
        assert steps == sorted(steps), kind


def test_the_order_of_changes_does_not_matter(slowed: Replays) -> None:
    some = asked(["rank:1"], ["host=0.5", "kernel:.=0.9"], ["copies"])
    assert slowed.predict(some).predicted_step_ns == slowed.predict(some[::-1]).predicted_step_ns


def test_bounds_hold_the_prediction(slowed: Replays) -> None:
    for some in asked(["straggler", "gap:1"], ["launch=0", "kernel:Cijk=0.5"], ["copies"]):
        found = slowed.predict([some])
        assert found.low_ns <= found.predicted_step_ns <= found.high_ns


def test_the_straggler_is_the_rank_that_is_to_blame(slowed: Replays) -> None:
    (cause,) = slowed.causes()
    assert slowed.predict(asked(["straggler"])) == slowed.predict([cause])
    assert str(cause).startswith("--without rank:")


def test_a_host_that_is_late_as_a_whole_is_the_straggler(tmp_path: Path) -> None:
    job = graph_of(tmp_path, ranks=6, nodes=2, seed=3, steps=4, plant="late-node=800", profile="gemm")
    found = Replays(job, steps_of(job)).predict(asked(["straggler"]))
    assert [change.kind for change in found.changes] == ["host"]


@pytest.mark.parametrize("seed", [3, 4301])  # a straggler hides the late host, or does not
def test_a_cause_costs_what_a_replay_without_it_regains(seed: int, tmp_path: Path) -> None:
    job = graph_of(tmp_path, ranks=6, nodes=2, seed=seed, steps=6, plant="straggler=20,late-node")
    replays = Replays(job, steps_of(job))
    causes = replays.blame.causes
    assert {cause.kind for cause in causes} == {CauseKind.RANK, CauseKind.HOST}

    def takes(gone: Sequence[Cause]) -> float:
        return replays.predict(list(map(of_cause, gone))).predicted_step_ns

    hiding = [[causes[number] for number in cause.behind if cause.is_hidden] for cause in causes]
    regained = [takes(first) - takes([*first, cause]) for first, cause in zip(hiding, causes, strict=True)]
    assert [cause.costs for cause in causes] == pytest.approx(regained, rel=0.02)
    assert any(cause.costs != cause.cost for cause in causes) or any(hiding)


@pytest.mark.parametrize(
    ("plant", "change"),
    [
        ("pageable-copies", "--overlap copies"),
        ("launch-bound", "--scale launch=0"),
        ("lost-overlap", "--overlap comm"),
        ("exposed-communication", "--scale collective=0"),  # there is nothing to hide it behind
        ("none", None),
    ],
)
def test_what_a_step_waits_for_is_tried_without(plant: str, change: str | None, tmp_path: Path) -> None:
    job = graph_of(tmp_path, seed=3, steps=4, plant=plant)
    *each, together = Replays(job, steps_of(job)).tried(Stages(None))
    parts = [part for part in each if part.changes[0].kind != "call"]  # in which the host waits
    assert [str(part) for part in parts] == ([change] if change else [])
    assert together.changes == ()
    assert not parts or parts[0].gain > 0.05


def test_calls_whose_waits_cost_are_named_with_the_gain_that_they_have_alone(tmp_path: Path) -> None:
    """They work for next to nothing themselves; what waits for them is the rest of the step."""
    job = graph_of(tmp_path, seed=3, steps=4, plant="synchronous-calls")
    replays = Replays(job, steps_of(job))
    *each, together = replays.tried(Stages(None))
    alone = replays.predict(asked(["call:^hipDeviceSynchronize$"]))
    assert alone.gain > 0.15
    assert each[0] == alone
    assert together.changes == ()


def test_what_is_left_where_a_part_takes_no_time_is_named() -> None:
    """A step that waits for its host alone gains but a quarter: another chain is nearly as long."""
    binds = Binding("unexplained", 1, 50.0), Binding("compute", 0, 25.0)
    free = Prediction(asked(scale=["host=0"]), 100.0, 75.0, 70.0, 80.0, ("",), binds)
    usual = Prediction((), 100.0, 100.0, 100.0, 100.0, (), (Binding("host", 1, 99.9),))
    said = str(WhatIf(4, 1.0, usual, Blame((), 0.0, 0.0), (free,)))
    assert "it waits for host 99.9 % (rank 1)" in said
    assert said.splitlines()[3].endswith("--scale host=0 (at most), then unexplained 66.7 % (rank 1)")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ({"scale": ["kernl:x=2"]}, "--scale kernl:x: kernl is not known", "did you mean kernel?"),
        ({"scale": ["launch"]}, "--scale launch: no factor", "launch=0.5"),
        ({"scale": ["launch=-1"]}, "--scale launch=-1: no factor", "from 0 on"),
        ({"without": ["rank"]}, "--without rank: names none", "as rank:RANKS"),
        ({"without": ["rank:x"]}, "--without rank: x: neither numbers nor ranges of numbers", "such as 0-3,8"),
        ({"without": ["straggler:1"]}, "straggler has no name", "give straggler alone"),
        ({"scale": ["kernel:(=0.5"]}, "not a regular expression", ""),
        ({"overlap": ["compute"]}, "--overlap compute: compute is not known", "comm"),
        ({"without": ["rank:1"], "scale": ["rank:1=0.5"]}, "contradict each other", "one of them"),
        ({"scale": ["launch=0.5", "launch=0.7"]}, "contradict each other", "one of them"),
        ({"without": ["rank:1", "rank:1"]}, "given twice", "one of them"),
    ],
)
def test_words_that_are_no_change(words: dict[str, list[str]], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        asked(**words)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ({"without": ["rank:9"]}, "there are 0, 1, 2, 3"),
        ({"without": ["step:99"]}, "there are 0, 1, 2, 3"),
        ({"without": ["host:gpu-node-00"]}, "no other host"),
        ({"without": ["host:gpu-node-01"]}, "did you mean gpu-node-00?"),
        ({"without": ["link:0-1"]}, "links are between 0-3"),
        ({"without": ["link:0-3"]}, "rocpd whatif JOB --scale link:0-3=0.5 says"),
        ({"without": ["call:hipNothing"]}, "there are "),
        ({"without": ["gap:100000"]}, "gaps are numbered from 1"),
        ({"scale": ["kernel:nothing=0.5"]}, "there are "),
        ({"scale": ["collective:gather=0.5"]}, "there are allreduce"),
    ],
)
def test_names_that_nothing_has(words: dict[str, list[str]], hint: str, slowed: Replays) -> None:
    with pytest.raises(RocpdError) as error:
        slowed.predict(asked(**words))
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(("length", "said"), [(90_000, False), (300_000, True)])
def test_gpu_work_that_ends_after_its_steps_is_said_to(length: int, said: bool, open_job: OpenJob) -> None:
    """The host takes 100 us a step, by its markers; the GPU is as fast, or falls behind."""
    trace = TraceBuilder()
    for step in range(5):
        start = 1_000_000 + 100_000 * step
        trace.region("roctxRangePushA", start, start + 99_000, message=f"step {step}", stack=0)
        trace.region("hipLaunchKernel", start + 1_000, start + 5_000, stack=step + 1, category="HIP_RUNTIME_API")
        begin = max(start, 1_000_000 + length * step) + 8_000
        trace.kernel("gemm", begin, begin + length - 1_000, stack=step + 1)
    answer = str(open_job(trace).whatif(scale=["compute=0.5"]))
    assert ("from start to end of its marker a step takes 99.0 us: the rest lies" in answer) == said


def test_a_job_without_steps_counts_as_a_whole(open_job: OpenJob) -> None:
    ranks = [Member(number) for number in range(2)]
    for number, member in enumerate(ranks):
        member.kernel("gemm", 1_000, 401_000 + 200_000 * number).collective(701_000, 801_000, "world")
    answer = open_job(*ranks).whatif(scale=["host=0.5"])
    assert answer.steps == 0
    assert "no two steps are marked: the whole job counts" in str(answer)
    assert answer.together.predicted_step_ns < answer.together.step_ns


@pytest.mark.parametrize(("without", "scale"), [(["link:0-1"], []), ([], ["collective:gather=0.5"])])
def test_where_nothing_can_be_named_the_hint_says_how_to_see_that(
    without: list[str], scale: list[str], open_job: OpenJob
) -> None:
    with pytest.raises(RocpdError) as error:
        open_job(Member(0).kernel("gemm", 1_000, 401_000)).whatif(without=without, scale=scale)
    assert error.value.hint == "rocpd info JOB says what is recorded"


def test_a_job_without_gpu_work(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no GPU work"):
        open_job(Member(0).region("main", 0, 100)).whatif()


@pytest.mark.parametrize("part", [Window("10%", "90%"), Filters(kernel="gemm"), Filters(agents="1")])
def test_no_part_of_a_job_is_replayed(part: Window | Filters, open_job: OpenJob) -> None:
    """It would be the whole job that is replayed, whatever was chosen."""
    job = open_job(Member(0).kernel("gemm", 1_000, 401_000).kernel("other", 402_000, 403_000))
    chosen = job.within(part) if isinstance(part, Window) else job.where(part)
    with pytest.raises(UsageError, match="whatif replays whole jobs"):
        chosen.whatif()


def test_the_command_says_it_in_a_few_lines_and_as_json(cli: Cli, tmp_path: Path) -> None:
    simulate(JobOptions(tmp_path / "job", 3, steps=8, profile="gemm", plant="straggler=30,slow-step", seed=5))
    said = cli("whatif", tmp_path / "job")
    assert said.code == 0
    lines = said.out.splitlines()
    assert len(lines) <= 10
    assert "less" in lines[0]
    assert [line.count("--without") for line in lines if "--without" in line] == [2, 1, 1, 1]  # together, each, a wait
    document = json.loads(cli("whatif", tmp_path / "job", "--format", "json").out)
    assert {"step_ns", "predicted_step_ns", "low_ns", "high_ns", "changes", "binds", "causes"} <= set(document)
    *causes, wait = [change for cause in document["causes"] for change in cause["changes"]]
    assert (document["changes"], wait) == (causes, "--without call:^hipStreamSynchronize$")
    costs = [cause["predicted_step_ns"] for cause in document["causes"][:-1]]
    assert costs == sorted(costs)
    assert document["low_ns"] <= document["predicted_step_ns"] <= document["high_ns"] < document["step_ns"]
    assert cli("whatif", tmp_path / "job", "--step", "2").code == 2


@dataclass(frozen=True)
class Pair:
    """A job with a plant and the same one without: as predicted, and as it is."""

    found: Prediction
    step_ns: float

    @property
    def difference(self) -> float:
        return self.found.step_ns - self.step_ns

    @property
    def is_within(self) -> bool:
        return self.found.low_ns <= self.step_ns <= self.found.high_ns

    @property
    def width(self) -> float:
        return (self.found.high_ns - self.found.low_ns) / self.difference

    @property
    def error(self) -> float:
        return abs(self.found.predicted_step_ns - self.step_ns) / self.difference


COUNTERFACTUALS: dict[str, tuple[str, Sequence[str], float]] = {
    "rank": ("straggler=20", ("data", "tensor and data", "pipeline", "tensor, data and pipeline"), 0.3),
    "late rank": ("late-launch=400", ("data", "tensor and data"), 0.3),
    "host": ("slow-node=10", ("data, two nodes", "tensor and data"), 0.3),
    "late host": ("late-node=400", ("data, two nodes", "tensor and data"), 0.3),
    "link": ("slow-link=4", ("tensor and data", "tensor, data and pipeline"), 0.3),
    "step": ("slow-step", tuple(LAYOUTS), 0.3),
    "stall": ("host-stall=8000", ("data", "tensor and data"), 0.3),
    "launch": ("launch-bound=80", ("data", "tensor and data"), 0.3),
    "copies": ("pageable-copies", ("data", "data, two nodes"), 0.3),
    "overlap": ("lost-overlap", ("data", "data, two nodes"), 0.3),
    "stream": ("same-stream", ("data", "data, two nodes"), 0.3),
    "kernel": ("slow-kernel=20", tuple(LAYOUTS), 0.3),
}
"""Kind -> the plant, the layouts, and how wide the bounds are at most at the median, as a share of the difference."""


@pytest.mark.soak(200)
@pytest.mark.parametrize("kind", sized(["rank", "overlap"], list(COUNTERFACTUALS)))
def test_the_truth_lies_within_the_bounds(kind: str, tmp_path: Path) -> None:
    """In 95 of 100 jobs; the same seed with and without the plant."""
    plant, layouts, width = COUNTERFACTUALS[kind]
    pairs = list(_pairs(plant, layouts, tmp_path, sized(1, 200)))
    assert sum(pair.is_within for pair in pairs) >= 0.95 * len(pairs)
    assert median(pair.width for pair in pairs) <= width
    assert median(pair.error for pair in pairs) <= 0.1


@pytest.mark.parametrize("layout", sized(["tensor and data"], list(LAYOUTS)))
def test_the_truth_of_calls_that_wait_lies_within_the_bounds(layout: str, tmp_path: Path) -> None:
    """Other streams may need what the host waits for: with neither wait, work runs at once that never does."""
    plants, without = ("synchronous-calls", "none"), ["call:^hipDeviceSynchronize$"]
    pair = _pair(layout, 500, plants, without, tmp_path)
    assert pair.is_within
    assert pair.error <= 0.2  # communication still needs what was computed before


def test_only_gradients_overlap_in_a_pipeline(tmp_path: Path) -> None:
    """Neither what stages send, nor the layers of late ones, nor the norm of all gradients, which a step needs."""
    layout = LAYOUTS["tensor, data and pipeline"]
    good = Replays(job := graph_of(tmp_path / "good", seed=70060, **layout), steps_of(job))
    assert good.predict(asked(overlap=["comm"])).gain < 0.005
    lost = graph_of(tmp_path / "lost", seed=70060, plant="lost-overlap", **layout)
    pair = Pair(Replays(lost, steps_of(lost)).predict(asked(overlap=["comm"])), good.blaming.step_ns)
    assert pair.is_within
    assert pair.error < 0.1


@pytest.mark.parametrize(("plant", "more"), [("straggler=15", {}), ("slow-node=10", {"ep": 4, "tp": 1})])
def test_what_is_not_seen_to_wait_may_do_so(plant: str, more: dict[str, int], tmp_path: Path) -> None:
    """Without calls of HIP hosts seem to work while they wait; no path gets shorter by more than its points lose."""
    options = {"seed": 70040, "steps": 10, **LAYOUTS["tensor and data"], **more}
    slow = Replays(job := graph_of(tmp_path, plant=f"{plant},no-hip-trace", **options), steps_of(job))
    (cause,) = slow.blame.causes
    pair = Pair(slow.predict([of_cause(cause)]), usual_step(**options))
    assert pair.is_within
    assert pair.found.gains[1] * pair.found.step_ns < 2 * pair.difference
    assert pair.difference <= max(cause.most, 1.1 * cause.costs)


@pytest.fixture(scope="module")
def unseen(tmp_path_factory: pytest.TempPathFactory) -> Replays:
    """A job without calls of HIP."""
    job = graph_of(tmp_path_factory.mktemp("job"), seed=3, ranks=2, steps=4, plant="no-hip-trace")
    return Replays(job, steps_of(job))


@pytest.mark.parametrize(
    "words", [{"scale": ["compute=0.5"]}, {"scale": ["host=0"]}, {"overlap": ["comm"]}, {"scale": ["rank:1=0.5"]}]
)
def test_what_other_times_gain_is_not_known_where_no_host_is_seen(words: dict[str, list[str]], unseen: Replays) -> None:
    """As recorded the next step begins when its host goes on, which is no wait for the GPU then."""
    with pytest.raises(RocpdError, match=r"not known(, up to \d+ % of a step| at all): of some ranks no launching"):
        unseen.predict(asked(**words))


@pytest.mark.soak(60)
@pytest.mark.parametrize("seed", sized([500], [500, 501, 702, 705]))
def test_the_truth_of_a_straggler_on_a_late_host_lies_within_the_bounds(seed: int, tmp_path: Path) -> None:
    """The host hides most of what the rank takes longer; it is one of that host."""
    size, late = (13, 423) if seed < 700 else (7, 700)
    both = f"straggler={size},late-node={late}"
    rank, node = _struck("tensor and data", seed, both)
    assert rank // 4 == node
    pair = _pair("tensor and data", seed, (both, "none"), [f"host:gpu-node-{node:02d}", f"rank:{rank}"], tmp_path)
    assert pair.is_within
    assert pair.width <= 0.3


@pytest.mark.soak(60)
@pytest.mark.parametrize("seed", sized([514], [502, 505, 511, 514, 523]))
@pytest.mark.parametrize(("size", "late"), sized([(13, 423)], [(13, 423), (7, 700), (20, 400)]))
@pytest.mark.parametrize("layout", sized(["tensor and data"], ["tensor and data", "tensor, data and pipeline"]))
def test_the_truth_of_a_straggler_beside_a_late_host_lies_within_the_bounds(
    layout: str, size: int, late: int, seed: int, tmp_path: Path
) -> None:
    """The host stays: what is usual for a rank of another host is not what most ranks do, those that are late."""
    both = f"straggler={size},late-node={late}"
    rank, node = _struck(layout, seed, both)
    assert rank // 4 != node
    pair = _pair(layout, seed, (both, f"late-node={late}"), [f"rank:{rank}"], tmp_path)
    assert pair.is_within
    assert pair.found.high_ns - pair.found.low_ns <= 0.015 * pair.step_ns


def _struck(layout: str, seed: int, plant: str) -> tuple[int, int]:
    """Return the rank that is a straggler, and the node that is late."""
    facts = plan(JobOptions(Path(), seed=seed, steps=10, plant=plant, **LAYOUTS[layout])).facts
    rank = next(fact.rank for fact in facts if fact.plant == "straggler")
    node = next(fact.node for fact in facts if fact.plant == "late-node")
    assert rank is not None
    assert node is not None
    return rank, node


def _pair(layout: str, seed: int, plants: Sequence[str], without: Sequence[str], folder: Path) -> Pair:
    """Return a job with a plant, as predicted without something, and the one with the other plant as it is."""
    options = {"seed": seed, "steps": 10, **LAYOUTS[layout]}
    slow = graph_of(folder, plant=plants[0], **options)
    return Pair(Replays(slow, steps_of(slow)).predict(asked(without)), usual_step(plant=plants[1], **options))


def _pairs(plant: str, layouts: Sequence[str], folder: Path, count: int) -> Iterator[Pair]:
    for number in range(count):
        options = {"seed": 9000 + number, "steps": 10, **LAYOUTS[layouts[number % len(layouts)]]}
        slow = graph_of(folder / f"{number} slow", plant=plant, **options)
        usual = graph_of(folder / f"{number} usual", **options)
        (fact,) = plan(JobOptions(folder, plant=plant, **options)).facts
        steps = steps_of(slow)
        found = Replays(slow, steps).predict(_changes(fact, slow, usual))
        without = Replays(usual, steps).blaming.step_ns
        if found.step_ns - without >= 0.005 * without:
            yield Pair(found, without)


def _changes(fact: PlantedFact, slow: JobGraph, usual: JobGraph) -> Sequence[Change]:
    """Return the changes that take a planted fact away."""
    kinds: dict[str, Sequence[Change]] = {
        "slow-link": [Change(Verb.WITHOUT, "link", listed(fact.group.members))] if fact.group else (),
        "lost-overlap": asked(overlap=["comm"]),
        "same-stream": asked(overlap=["comm"]),
        "pageable-copies": asked(scale=["copies:HOST_TO_DEVICE=0.24"], overlap=["copies"]),
    }
    if fact.plant in kinds:
        return kinds[fact.plant]
    if fact.plant == "slow-kernel":
        longer = {name: time / _kernels(usual)[name] for name, time in _kernels(slow).items()}
        (name,) = [name for name, factor in longer.items() if factor > 1.1]
        return [Change(Verb.SCALE, "kernel", f"^{re.escape(name)}$", 1 / fact.factor)]
    if fact.plant == "launch-bound":
        return asked(scale=[f"launch={_launching(usual) / _launching(slow)}"])
    if fact.node is not None:
        return asked([f"host:gpu-node-{fact.node:02d}"])
    return asked([f"rank:{fact.rank}"] if fact.steps == () else [f"step:{step}" for step in fact.steps])


def _kernels(job: JobGraph) -> dict[str, float]:
    """Return how long each kernel takes [ns]."""
    rows = np.flatnonzero((job.points.part == COMPUTE) & (job.points.step >= 0))
    times = np.bincount(job.points.name[rows], job.points.work[rows])
    return {job.names[number]: float(times[number]) for number in np.flatnonzero(times).tolist()}


def _launching(job: JobGraph) -> float:
    """Return how long the host works for launches [ns]."""
    changing = Changing(job, Replays(job, steps_of(job)).blaming, ())
    scaled = changing.applied(asked(scale=["launch=0"])).points.work
    return float((job.points.work - scaled).sum())


def test_a_call_that_takes_no_time_waits_all_the_same_and_says_so(open_job: OpenJob) -> None:
    """Scaled, not taken away: the step still ends when the kernel does that the call waits for."""
    member, now = Member(0), 1_000_000
    for step in range(4):
        member.kernel("gemm", now, now + 500_000)
        member.region("hipDeviceSynchronize", now + 20_000, now + 510_000)
        member.region("roctxRangePushA", now, now + 600_000, message=f"step {step}")
        now += 700_000
    with open_job(member) as session:
        scaled = session.whatif(scale=["call:hipDevice=0"]).together
        without = session.whatif(without=["call:hipDevice"]).together
        longer = session.whatif(scale=["kernel:gemm=1.1"])
    assert scaled.about == ("what it waits for, it still waits for: --without call:hipDevice takes that away",)
    assert without.about == ("",)
    assert without.predicted_step_ns < scaled.predicted_step_ns
    assert re.search(r": (\d+\.\d) % more \(\d+\.\d to \d+\.\d %\)", str(longer))


@pytest.mark.parametrize(
    ("predicted", "low", "high", "said"),
    [
        (101.7, 101.6, 101.8, "1.7 % more (1.6 to 1.8 %)"),
        (100.1, 99.8, 100.4, "0.1 % more (-0.2 to 0.4 %)"),
        (98.0, 97.0, 100.5, "2.0 % less (-0.5 to 3.0 %)"),
        (100.0, 99.99, 100.01, "0.0 % less (0.0 to 0.0 %)"),
        (100.01, 99.8, 100.2, "0.0 % less (-0.2 to 0.2 %)"),
    ],
)
def test_bounds_of_what_a_change_costs_are_costs(predicted: float, low: float, high: float, said: str) -> None:
    changed = Prediction(asked(scale=["compute=1.1"]), 100.0, predicted, low, high)
    assert said in str(WhatIf(4, 1.0, changed, Blame((), 0.0, 0.0)))


def test_a_kernel_that_waits_for_a_copy_says_nothing_of_how_long_launches_take(open_job: OpenJob) -> None:
    """In each step a kernel waits 90 us for its input; without that a step takes so much less."""
    rank = TraceBuilder()
    for step in range(8):
        now = 1_000_000 + step * 600_000
        rank.region("hipMemcpyAsync", now, now + 5_000, stack=now)
        rank.copy(now + 8_000, now + 100_000, size=4 << 20, stack=now, stream=2)
        for number in range(2):
            stack, start = now + 1 + number, now + 101_000 + 100_000 * number
            rank.region("hipLaunchKernel", now + 5_200 * (number + 1), now + 5_200 * (number + 2) - 200, stack=stack)
            rank.kernel("gemm", start, start + 99_000, stack=stack, stream=1)
        rank.region("hipStreamSynchronize", now + 16_000, now + 302_000)
        rank.region("roctxRangePushA", now - 1_000, now + 303_000, message=f"step {step}")
    answer = open_job(rank).whatif(overlap=["copies"]).together
    assert answer.step_ns - answer.predicted_step_ns == pytest.approx(87_000, rel=0.05)


def test_calls_and_gaps_that_cost_are_causes(open_job: OpenJob) -> None:
    """One call and one pause before the last kernel; neither rank computes longer."""
    rank = TraceBuilder().kernel("gemm", 1_000, 1_001_000, stack=1)
    rank.region("hipMalloc", 1_100_000, 3_100_000)
    rank.region("hipLaunchKernel", 7_100_000, 7_110_000, stack=2)
    rank.kernel("gemm", 7_120_000, 8_120_000, stack=2)
    answer = open_job(rank).whatif()
    assert [str(one) for one in answer.each] == [
        "--without gap:1 (4.00 ms of rank 0, host work before hipLaunchKernel)",
        "--without call:^hipMalloc$",
    ]
    assert answer.each[0].gain == pytest.approx(4 / 7.119, rel=0.01)  # from the end of the first operation on
    assert answer.together.gain > 0.7


def test_damaged_times_are_answered(open_job: OpenJob) -> None:
    """Copies of one rank that end when 63 bits do: what adds up to more is held within them."""
    ranks = [TraceBuilder(number, environment={"OMPI_COMM_WORLD_RANK": str(number)}) for number in range(2)]
    for number, rank in enumerate(ranks):
        for at in range(0, 8000, 1000):
            rank.region("roctxRangePushA", at + 100, at + 990, message=f"step {at // 1000}")
            rank.region("hipLaunchKernel", at + 110, at + 150, stack=at + 1).kernel(
                "gemm", at + 200, at + 300, stack=at + 1
            )
            rank.copy(at + 400, (1 << 63) - 1 if number and at > 3000 else at + 450)
    answer = open_job(*ranks).whatif().together
    assert answer.low_ns <= answer.predicted_step_ns <= answer.high_ns


def test_a_kernel_waits_for_the_one_ahead_though_its_clock_says_a_few_ns_less(open_job: OpenJob) -> None:
    """All are launched at once; what is left of a queue is no delay of its launch, and shrinks with its kernels."""
    trace = TraceBuilder()
    for number in range(8):
        begin = 100_000 + 1_000_000 * number
        trace.region("hipLaunchKernel", 2_000 * number, 2_000 * number + 1_000, stack=number + 1)
        trace.kernel("gemm", begin - 9 * (number in (3, 6)), begin + 1_000_000, stack=number + 1)
    job = open_job(trace)
    job_graph = read_job(job)
    assert (job_graph.replay() == job_graph.points.time).all()
    answer = job.whatif(scale=["kernel:gemm=0.5"]).together
    assert answer.predicted_step_ns == pytest.approx(4_100_000, rel=0.01)
    parts = {each.part: each.time for each in answer.binds}
    assert parts["compute"] == pytest.approx(4_000_000, rel=0.01)
    assert parts.get("launch", 0) < 10_000
