"""A job as a graph: an unchanged replay is the recording, and what is taken away makes it as fast as it is without."""

from __future__ import annotations

import pickle
import re
import sqlite3
import sys
import tracemalloc
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.rank import RankReading
from rocpd.facts.timeline import COMPUTE
from rocpd.federate.run.rank_reader import RankReader
from rocpd.replay import job as job_module
from rocpd.replay import points as points_module
from rocpd.replay.blame import Blaming
from rocpd.replay.causes import Blame, CauseKind
from rocpd.replay.excess import Excess, StepPlaces, _of_rank, excess
from rocpd.replay.graph import read_graph
from rocpd.replay.job import JobGraph, read_job
from rocpd.replay.points import Edge, Edges, FewPoints, PackedGraph, Point, PossibleWaits, RankGraph, narrowed
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import STEP_MARKER, is_step
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import plan
from tests.blame.jobs import step_of
from tests.build import GPU, TraceBuilder
from tests.conftest import OpenJob
from tests.members import Member
from tests.soak import sized

LAYOUTS: dict[str, dict[str, Any]] = {
    "data": {"ranks": 4},
    "data, two nodes": {"ranks": 4, "nodes": 2},
    "tensor and data": {"ranks": 8, "nodes": 2, "tp": 4},
    "pipeline": {"ranks": 4, "pp": 4},
    "tensor, data and pipeline": {"ranks": 8, "nodes": 2, "tp": 2, "pp": 2},
}


def graph_of(folder: Path, **options: Any) -> JobGraph:
    files = simulate(JobOptions(folder, **{"steps": 8, "plant": "none", **options}))
    with rocpd.connect(files) as session:
        return read_job(session)


def usual_step(**options: Any) -> float:
    """Return how long a step of the job truly takes where nothing is planted, or only what is named [ns]."""
    return step_of(JobOptions(Path(), **{"steps": 8, "plant": "none", **options}))


def steps_of(job: JobGraph) -> list[int]:
    return sorted(set.intersection(*(set(steps) for steps in job.steps.values())))


def _blame(job: JobGraph) -> Blame:
    steps = steps_of(job)
    return Blaming(job, steps, excess(job, steps)).blame()


def blamed(folder: Path, **options: Any) -> Blame:
    job = graph_of(folder, **options)
    return _blame(job)


@pytest.mark.soak(30)
@pytest.mark.parametrize("layout", sized(["tensor and data"], list(LAYOUTS)))
@pytest.mark.parametrize("damage", [{}, {"faults": True, "rccl": "none"}])
def test_an_unchanged_replay_is_the_recording(layout: str, damage: dict[str, Any], tmp_path: Path) -> None:
    job = graph_of(tmp_path, seed=3, **LAYOUTS[layout], **damage)
    assert (job.replay() == job.points.time).all()


def test_waits_that_never_bind_change_nothing_where_no_calls_are_recorded(tmp_path: Path) -> None:
    """Operations that nothing else explains then start where the hidden wait ends, not so long after it."""
    job = graph_of(tmp_path, seed=3, ranks=4, plant="no-hip-trace")
    cautious = job.cautious()
    assert len(cautious.edges) > len(job.edges)
    assert (cautious.replay() == job.points.time).all()
    waits = job.hidden.take(np.diff(job.edges.first)[job.hidden.target] > 0)
    for time in (1 << 33, (1 << 33) - 100):  # as long before: more than fits into the column of what is not explained
        hidden = replace(waits, lag=waits.lag.astype(np.int64) - time)
        assert (replace(job, hidden=hidden).cautious().replay() == job.points.time).all()


@pytest.mark.soak(30)
@pytest.mark.parametrize("layout", sized(["tensor and data"], list(LAYOUTS)))
def test_edges_explain_what_was_waited_for(layout: str, tmp_path: Path) -> None:
    """What no edge explains is at most a twentieth of the time; all communication is matched."""
    job = graph_of(tmp_path, seed=4, **LAYOUTS[layout])
    waits = np.diff(job.edges.first) > 0
    inside = waits & (job.points.step >= 0)
    spans = [job.points.time[end] - job.points.time[begin] for of in job.steps.values() for begin, end in of.values()]
    assert job.points.lag[inside].sum() <= 0.05 * sum(spans)
    assert (job.matched, job.contradicted) == (1.0, 0)


def test_what_all_ranks_do_in_a_marker_is_the_fault_of_no_host(tmp_path: Path) -> None:
    """All stages of a pipeline load input; only on the first one, which is one host, a launch comes next."""
    job = graph_of(tmp_path, ranks=8, nodes=4, pp=4, seed=1, plant="slow-input")
    assert not _blame(job).causes
    named = {job.rank[at] for at in (job.points.name == job.names.index("host work in load batch")).nonzero()[0]}
    assert named == set(range(8))


@pytest.mark.parametrize("seed", range(sized(3, 100)))
def test_what_takes_longer_never_makes_a_job_shorter(seed: int, dataset: JobGraph) -> None:
    random = np.random.default_rng(seed)
    more = random.integers(0, 50_000, len(dataset.points)) * (random.random(len(dataset.points)) < 0.1)
    assert (dataset.replay(dataset.points.work + more) >= dataset.points.time).all()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> JobGraph:
    return graph_of(tmp_path_factory.mktemp("job"), seed=9, ranks=2, steps=4)


def test_a_compiled_replay_is_the_plain_one(dataset: JobGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocpd.replay.times._WORTH", 1 << 62)
    plain = dataset.replay(dataset.points.work * 2)
    monkeypatch.setattr("rocpd.replay.times._WORTH", 0)
    assert (dataset.replay(dataset.points.work * 2) == plain).all()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the compiler stays in memory")
def test_the_compiler_takes_no_memory_beside_the_job(dataset: JobGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code alone takes as much as five columns of a million points."""
    monkeypatch.setattr("rocpd.replay.times._WORTH", 0)
    dataset.replay()
    dataset.replay_without(np.zeros(1, np.int32))
    maps = re.findall(r"libllvmlite\.so\n(?:\w+:.*\n)*?Rss: +(\d+) kB", Path("/proc/self/smaps").read_text())
    assert len(maps) >= 3
    assert sum(map(int, maps)) < 8192


def test_times_take_four_bytes_until_they_do_not_fit(dataset: JobGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocpd.replay.times._WORTH", 0)
    assert dataset.points.time.min() == 0
    assert dataset.points.time.dtype == dataset.replay_without().dtype == np.int32
    more = 1 << 29
    longer = dataset.replay_without(np.full(len(dataset.points), -more, np.int32))
    assert longer.max() > 1 << 32
    assert (longer == dataset.replay(dataset.points.work.astype(np.int64) + more)).all()


def test_units_take_as_few_bytes_as_hold_them(dataset: JobGraph) -> None:
    units, _ = _of_rank(dataset, 0, np.array(steps_of(dataset)), None)
    assert max(column.itemsize for column in units) <= 4


def test_points_come_after_all_that_they_wait_for(dataset: JobGraph) -> None:
    place = np.empty(len(dataset.points), np.int64)
    place[dataset.order] = np.arange(len(place))
    assert np.sort(dataset.order).tolist() == list(range(len(place)))
    assert (place[dataset.edges.source] < place[dataset.edges.every().target]).all()
    for rank, (first, last) in dataset.own.items():
        assert set(dataset.rank[first:last].tolist()) == {rank}


def test_a_graph_takes_few_bytes(dataset: JobGraph) -> None:
    """A thousand ranks have ten million points, and half as many edges more."""
    edges = dataset.edges.first, dataset.edges.source, dataset.edges.lag, dataset.edges.kind
    few = (column for each in (dataset.link, dataset.move) for column in (each.rows, each.values))
    columns = (*dataset.points.columns(), *edges, *few, dataset.order)
    assert sum(column.nbytes for column in columns) <= 36 * len(dataset.points)


def test_a_column_of_few_points_is_the_whole_column() -> None:
    column = np.array([-1, 3, -1, -1, 0, 70_000, -1])
    few = FewPoints.of(column)
    assert few[:].tolist() == column.tolist()
    assert few[2:6].tolist() == column[2:6].tolist()
    assert few[np.array([6, 5, 0, 4])].tolist() == [-1, 70_000, -1, 0]
    assert not len(FewPoints.of(column[:0])[:])


@pytest.mark.parametrize("is_slow", [False, True])
def test_more_work_in_a_step_takes_a_byte_a_point(is_slow: bool, tmp_path: Path) -> None:
    """Which step it is, not how much more; nothing where all steps have as much."""
    job = graph_of(tmp_path, seed=2, ranks=2, plant="slow-step" if is_slow else "none")
    found = excess(job, steps_of(job))
    assert found.common.nbytes == (len(job.points) if is_slow else 0)


def test_points_are_put_in_order_part_by_part(dataset: JobGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts end between times: those of one time stay together, the lower tie first, then the lower number."""
    random = np.random.default_rng(5)
    time, tie = random.integers(-40, 40, 1000), random.integers(0, 3, 1000).astype(np.int8)
    monkeypatch.setattr(points_module, "_BLOCK", 64)
    monkeypatch.setattr(points_module, "_EACH", 2)
    assert points_module.numbers_in_time(time, tie, np.int16).tolist() == np.lexsort((tie, time)).tolist()
    assert not len(points_module.numbers_in_time(time[:0], tie[:0], np.int16))


def test_times_that_are_mostly_nothing_take_no_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tracemalloc.start()
    times = points_module.no_times(1 << 20, np.int32)
    times[7] = 3
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert (times.sum(), len(times), held < 1 << 16) == (3, 1 << 20, True)


def test_a_graph_waits_for_others_in_hardly_more_bytes_than_its_columns(tmp_path: Path) -> None:
    """Each of its columns would take a hundred bytes more; names are those of other ranks, too."""
    (file,) = simulate(JobOptions(tmp_path, ranks=1, steps=2, seed=4))
    with rocpd.connect(file) as session:
        [(_, packed)] = session.map_ranks(partial(_graph_of, step=is_step(STEP_MARKER)))
    graph = packed.whole()
    columns = [*graph.points.columns(), *graph.edges.columns()]
    size = sum(column.nbytes for column in columns)
    assert len(packed.content) + len(packed.waits) <= 1.5 * size + 4096
    assert (packed.points, packed.names) == (len(graph.points), graph.names)
    assert packed.edges == len(graph.edges) + (len(graph.possible.edges) if graph.possible else 0)
    again = pickle.loads(pickle.dumps(packed))
    assert again == packed
    assert again.names is pickle.loads(pickle.dumps(packed)).names


def _graph_of(reader: RankReader, step: re.Pattern[str]) -> PackedGraph:
    return read_graph(RankReading.of(reader, {}), load(None), step)


def test_long_waits_that_other_ranks_show_count_for_the_type_of_lags(tmp_path: Path) -> None:
    """The edges that may be are among those of a job: its column of lags holds theirs, too."""
    nothing = np.zeros(0, np.int64)
    edges = Edges.of(Edge.STREAM, np.zeros(1, np.int64), np.ones(1, np.int64)).narrowed()
    long = replace(edges, lag=np.full(1, 1 << 20, np.int32))
    graph = RankGraph(
        points_module.NO_POINTS,
        edges,
        (nothing, nothing),
        nothing,
        (),
        {},
        0,
        possible=PossibleWaits(long, nothing, ()),
    )
    assert PackedGraph.of(graph).kinds[-1] == np.dtype(np.int32).char


def test_the_graphs_of_ranks_are_let_go_as_they_are_joined(
    dataset: JobGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever memory is given back in between, it is the same job."""
    graphs: list[dict[int, PackedGraph]] = []
    joining = job_module.join

    def noted(of_ranks: dict[int, PackedGraph], *rest: Any) -> JobGraph:
        graphs.append(of_ranks)
        return joining(of_ranks, *rest)

    monkeypatch.setattr(job_module, "join", noted)
    monkeypatch.setattr(job_module, "_FEW", 1)
    monkeypatch.setattr(job_module, "_MANY", 0)
    again = graph_of(tmp_path, seed=9, ranks=2, steps=4)
    assert graphs == [{}]
    assert again.replay().tolist() == dataset.points.time.tolist()


def test_the_order_of_ranks_and_a_window_change_nothing(tmp_path: Path) -> None:
    """Files in any order, and a window of whole steps: the same points at the same times, the same causes."""
    files = simulate(JobOptions(tmp_path, ranks=4, steps=6, seed=12, plant="straggler=20", profile="gemm"))
    with rocpd.connect(files) as session, rocpd.connect(files[::-1]) as turned:
        window = rocpd.Window(start_marker="step 2", end_marker="step 4")
        whole, *others = (read_job(each) for each in (session, turned, session.within(window)))
    for job in others:
        assert (job.replay() == job.points.time).all()
        assert job.points.time.tolist() == whole.points.time.tolist()
        assert _blame(job).causes == _blame(whole).causes


def test_what_follows_from_removed_times_is_derived_anew_when_more_are_removed(tmp_path: Path) -> None:
    job = graph_of(tmp_path, ranks=4, seed=3, plant="straggler=40")
    blaming = Blaming(job, steps_of(job), excess(job, steps_of(job)))
    (cause,) = blaming.blame().causes
    before = blaming.by_step_for(0)
    assert blaming.by_step_for(0) is before
    blaming._remove(cause)
    assert abs(blaming.by_step_for(0)[:, cause.ranks[0]].sum()) < before[:, cause.ranks[0]].sum() / 10


@pytest.mark.parametrize("seed", range(sized(5, 200)))
def test_what_goes_beyond_others_is_what_plain_medians_say(seed: int) -> None:
    random = np.random.default_rng(seed)
    whose, place = random.integers(0, 4, 60), random.integers(-1, 5, 60)
    usual, count = random.integers(0, 1_000, 60), random.integers(1, 4, 60)
    count[place == 4] = 3
    nothing = np.zeros(60, np.int64)
    units = StepPlaces(usual, place >= 0, nothing, usual, place >= 0, place, whose, count, nothing, nothing - 1)
    own, common = Excess(usual, np.arange(60), units, nothing).beyond_others(whose)
    points = np.repeat(np.arange(60), count)
    for at in range(60):
        same = points[place[points] == place[at]]
        others = sorted(usual[same[whose[same] != whose[at]]].tolist())
        together = sorted(usual[same[whose[same] == whose[at]]].tolist())
        if others and place[at] >= 0:
            middle = others[(len(others) - 1) // 2]
            assert own[at] == usual[at] - middle
            assert common[at] == together[(len(together) - 1) // 2] - middle
        else:
            assert own[at] == common[at] == 0


def test_kernels_that_compare_with_none_are_slower_like_the_rest_in_long_jobs() -> None:
    """Times take four bytes and counts two; all runs of a kernel take longer than four bytes hold."""
    usual, lasting, count, nothing, number = map(
        narrowed, np.array([[1_100_000] * 3, [100_000, 100_000, 0], [3_000] * 3, [0] * 3, range(3)])
    )
    is_known = lasting > 0
    units = StepPlaces(usual, is_known, usual, lasting, is_known, nothing, nothing, count, nothing, number)
    assert units.like_the_rest(lasting, is_known, nothing).tolist() == [100_000] * 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("are_pieces", [False, True])
def test_steps_with_far_more_work_and_with_none_have_room_for_their_times(are_pieces: bool, open_job: OpenJob) -> None:
    """No kernel takes longer than 200 ms; in step 4 most take 120 times as long as usual, in step 6 no time."""
    ranks = []
    for number in range(3):
        member, now = Member(number), 1_000_000
        for step in range(9):
            begin = now
            for name, takes in (("long", 200_000_000), *[("short", 120_000_000 if step == 4 else 1_000_000)] * 40):
                now += 1_000
                member.kernel(name, now, now := now + takes * (step != 6))
            member.region("roctxRangePushA", begin, now + 100, message=f"step {step}")
            now += 1_000_000
        ranks.append(member)
    job = read_job(open_job(*ranks))
    beyond = excess(job, steps_of(job), are_pieces=are_pieces)
    usual = beyond.of_units(beyond.units.usual)
    shares = beyond.shares[beyond.common]
    assert shares.max() > 10
    assert (beyond.in_step(usual, slice(None)) == np.rint(usual * shares)).all()
    assert (beyond.as_usual(usual, np.arange(len(usual))) == np.rint(usual / shares)).all()


COUNTERFACTUALS: Sequence[tuple[str, str]] = [
    ("data", "straggler=20"),
    ("tensor and data", "straggler=10"),
    ("tensor, data and pipeline", "straggler=20"),
    ("data, two nodes", "late-launch=400"),
]


@pytest.mark.soak(60)
@pytest.mark.parametrize(("layout", "plant"), sized(COUNTERFACTUALS[1:2], COUNTERFACTUALS))
def test_a_cause_costs_what_the_job_is_faster_without_it(layout: str, plant: str, tmp_path: Path) -> None:
    """The same seed with and without the plant: within a tenth of the difference."""
    for seed in range(sized(1, 20)):
        options = {"seed": 100 + seed, **LAYOUTS[layout]}
        with_plant = blamed(tmp_path / f"{seed}", plant=plant, **options)
        (fact,) = plan(JobOptions(tmp_path, steps=8, plant=plant, **options)).facts
        cause = with_plant.causes[0]
        assert (cause.kind, cause.ranks) == (CauseKind.RANK, (fact.rank,))
        assert cause.cost == pytest.approx(with_plant.step_ns - usual_step(**options), rel=0.1), seed


@pytest.mark.parametrize(
    ("plant", "seed", "who"), [("late-node=900", 7715, (0, 1, 2, 3)), ("host-stall=9000", 7754, (3,))]
)
def test_a_first_stage_that_is_late_is_waited_for(plant: str, seed: int, who: tuple[int, ...], tmp_path: Path) -> None:
    """No other stage runs the same kernels; and what a later one waits for then, it waits for in no other step."""
    options: dict[str, Any] = {"ranks": 8, "nodes": 2, "pp": 2, "steps": 12, "seed": seed}
    late = blamed(tmp_path, plant=plant, **options)
    (cause,) = late.causes
    assert (cause.ranks, cause.mainly) == (who, "host")
    assert cause.cost == pytest.approx(late.step_ns - usual_step(**options), rel=0.05)


@pytest.mark.soak
@pytest.mark.parametrize("seed", sized([7754], [7715, 7754]))
def test_of_stages_none_of_which_is_late_none_is_blamed(seed: int, tmp_path: Path) -> None:
    assert not blamed(tmp_path, ranks=8, nodes=2, pp=2, steps=12, seed=seed).causes


def test_what_a_slow_stage_alone_computes_takes_as_much_longer(tmp_path: Path) -> None:
    """The last stage computes the loss: no other host has kernels like these."""
    layout = {"ranks": 8, "nodes": 2, "pp": 2, "seed": 1}
    found = blamed(tmp_path / "slow", plant="slow-node", **layout)
    (cause,) = found.causes
    assert (cause.kind, cause.ranks, cause.largest[0]) == (CauseKind.HOST, (4, 5, 6, 7), "")
    assert cause.longer == pytest.approx(0.1, abs=0.01)
    assert cause.cost == pytest.approx(found.step_ns - usual_step(**layout), rel=0.1)


def test_a_late_host_hides_a_straggler_of_another(tmp_path: Path) -> None:
    """One node comes late; a rank of the other one, which computes longer, costs nothing alone."""
    options = {"seed": 9, "rccl": "none", **LAYOUTS["tensor and data"]}
    found = blamed(tmp_path / "both", plant="straggler=13,late-node=423", **options)
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [
        (CauseKind.HOST, (4, 5, 6, 7)),
        (CauseKind.RANK, (0,)),
    ]
    assert [cause.is_hidden for cause in found.causes] == [False, True]
    with pytest.raises(RocpdError, match="no rank is numbered 99"), rocpd.connect(tmp_path / "both") as session:
        session.whatif(without=["rank:99", "host:gpu-node-01"])
    left = found.step_ns - sum(cause.cost for cause in found.causes)
    assert left == pytest.approx(usual_step(**options), rel=0.02)


@pytest.mark.parametrize(
    ("grow", "named"),
    [
        ({}, None),
        ({"small": 3.0}, None),
        ({"gemm1": 1.0}, None),
        ({"gemm0": 3.0}, "gemm0"),
        ({"gemm0": 0.6, "gemm1": 0.0, "gemm2": 0.0, "small": 0.0}, "gemm0"),
        ({"gemm2": 0.0}, "gemm0"),
        ({"small": 60.0}, "small"),
    ],
)
def test_a_kernel_is_named_in_a_slow_step_that_grew_more_than_others(
    grow: dict[str, float], named: str | None, open_job: OpenJob
) -> None:
    """Of a step in which kernels take 60 % longer unless said; small kernels that differ do not decide."""
    takes = {"gemm0": 400_000, "gemm1": 300_000, "gemm2": 200_000, "small": 10_000}
    member, now = Member(0), 1_000_000
    for step in range(12):
        begin = now
        for name, usual in takes.items():
            end = now + round(usual * (1 + grow.get(name, 0.6) * (step == 5)))
            member.kernel(name, now, end)
            now = end
        member.region("roctxRangePushA", begin, now, message=f"step {step}")
        now += 20_000
    steps = open_job(member).summary("steps")
    (slow,) = [row for row in steps.fetchall() if row[steps.columns.index("grew")]]
    assert slow[steps.columns.index("grew_in")] == named


def test_a_stall_is_blamed_on_its_rank_though_another_is_slower_throughout(open_job: OpenJob) -> None:
    """Rank 1 computes 6 % longer in all steps, rank 0 stalls in two."""
    ranks = []
    for number in range(4):
        member = Member(number)
        now = 1_000_000
        for step in range(12):
            begin = now
            for layer in range(10):
                at = begin + layer * 100_000
                member.kernel(f"gemm{layer}", at, at + 90_000 + 5_400 * (number == 1))
            stall = 3_000_000 if number == 0 and step in (5, 9) else 0
            arrive = begin + 1_000_000 + stall
            end = begin + 1_100_000 + (3_000_000 if step in (5, 9) else 0)
            member.collective(arrive, end)
            member.region("roctxRangePushA", begin, end + 10_000, message=f"step {step}")
            now = end + 20_000
        ranks.append(member)
    rows = open_job(*ranks).summary("steps").fetchall()
    columns = open_job(*ranks).summary("steps").columns
    slowest = {row[columns.index("step")]: row[columns.index("grew_rank")] for row in rows}
    assert {slowest["step 5"], slowest["step 9"]} == {0}


def test_calls_that_copy_without_a_pause_are_no_host_work(open_job: OpenJob) -> None:
    """Each call begins in the very ns in which the one before ends, and waits for its copy."""
    member, now = TraceBuilder(), 1_000_000
    for step in range(8):
        begin = now
        for _ in range(3):
            member.region("hipMemcpy", now, now + 900_000, stack=now)
            member.copy(now + 9_000, now + 897_000, name="MEMORY_COPY_DEVICE_TO_HOST", stack=now)
            now += 900_000
        member.region("roctxRangePushA", begin - 1_000, now + 1_000, message=f"step {step}")
        now += 20_000
    points = read_job(open_job(member)).points
    inside = (points.kind == Point.HOST) & (points.step >= 0) & (points.time > 2_000_000)
    assert points.work[inside].max() < 30_000


@pytest.mark.parametrize(("slow", "named"), [({"attention": 1.4}, "attention"), ({"attention": 1.1, "gemm": 1.1}, "")])
def test_a_kernel_is_named_that_takes_longer_on_a_rank(slow: dict[str, float], named: str, open_job: OpenJob) -> None:
    """Where all of them do alike none is."""
    ranks = []
    for number in range(4):
        member = Member(number)
        for step in range(12):
            begin = now = 1_000_000 + step * 1_000_000
            for kernel in ("gemm", "attention", "gemm"):
                end = now + round(200_000 * (slow.get(kernel, 1.0) if number == 2 else 1.0))
                member.kernel(kernel, now, end)
                now = end + 1_000
            member.collective(now, begin + 800_000)
            member.region("roctxRangePushA", begin - 100, begin + 900_000, message=f"step {step}")
        ranks.append(member)
    suspect = _blame(read_job(open_job(*ranks))).suspect
    assert suspect
    assert (suspect.ranks, suspect.largest[0]) == ((2,), named)


def test_agents_of_a_rank_are_compared_each_for_itself(open_job: OpenJob) -> None:
    """The second GPU of rank 1 takes 30 % longer, so that its kernels end among other ones of the first."""
    ranks = []
    for number in range(4):
        member = Member(number)
        for step in range(12):
            begin = 1_000_000 + step * 1_400_000
            for agent, slow in ((GPU, 1.0), (GPU + 1, 1.3 if number == 1 else 1.0)):
                now = begin + 500 * ((step + agent) % 2)
                for takes in (60_000, 120_000) * 5:
                    end = now + round(takes * slow)
                    member.kernel("gemm", now, end, agent=agent, stream=agent, queue=agent)
                    now = end + 200
            member.collective(begin + (1_173_000 if number == 1 else 903_000), begin + 1_273_000, stream=9)
            member.region("roctxRangePushA", begin - 100, begin + 1_290_000, message=f"step {step}")
        ranks.append(member)
    job = read_job(open_job(*ranks))
    longer = excess(job, steps_of(job)).lasting_of(slice(None))
    computes = (job.points.part == COMPUTE) & (job.points.kind == Point.OPERATION)
    is_slow = computes & (job.rank == 1) & (job.points.lane == GPU + 1)
    assert set(longer[is_slow].tolist()) == {18_000, 36_000}
    assert not longer[computes & ~is_slow].any()


def test_in_pieces_of_a_trace_a_slow_rank_takes_longer_by_its_share_of_each_kernel(open_job: OpenJob) -> None:
    """As of inference, where a piece may hold a token and a prompt, which takes five times as long."""
    ranks = []
    for number in range(4):
        member = Member(number)
        for step in range(12):
            begin = now = 1_000_000 + step * 1_000_000
            for takes in (100_000, 500_000 if step % 5 == 2 else 100_000):
                end = now + round(takes * (1.1 if number == 2 else 1.0))
                member.kernel("gemm", now, end)
                now = end + 1_000
            member.collective(now, begin + 800_000)
            member.region("roctxRangePushA", begin - 100, begin + 900_000, message=f"step {step}")
        ranks.append(member)
    job = read_job(open_job(*ranks))
    longer = excess(job, steps_of(job), are_pieces=True).lasting_of(slice(None))
    is_slow = (job.points.part == COMPUTE) & (job.points.kind == Point.OPERATION) & (job.rank == 2)
    assert longer[is_slow].tolist() == (job.points.work[is_slow] // 11).tolist()


def test_a_host_that_pauses_by_chance_compares_with_others_that_launch_as_much(open_job: OpenJob) -> None:
    """The host of rank 0 takes 3 us longer before each of 20 launches, and one launch of most steps takes long."""
    ranks = []
    for number in range(4):
        member = Member(number)
        for step in range(12):
            begin = now = 1_000_000 + step * 1_000_000
            for nth in range(20):
                now += 9_000 if number == 0 else 6_000
                end = now + (50_000 if number == 0 and step % 3 and nth == 7 else 5_000)
                member.region("hipLaunchKernel", now, end, stack=begin + nth)
                member.kernel("gemm", end + 1_000, end + 3_000, stack=begin + nth)
                now = end
            member.collective(now + 10_000, begin + 800_000)
            member.region("roctxRangePushA", begin - 100, begin + 900_000, message=f"step {step}")
        ranks.append(member)
    job = read_job(open_job(*ranks))
    longer = excess(job, steps_of(job)).lasting_of(slice(None))
    launches = (job.points.name == job.names.index("host work before hipLaunchKernel")) & (job.rank == 0)
    assert 0.5 <= longer[launches].sum() / (12 * 20 * 3_000) <= 1


def test_points_of_a_rank_without_gpu_work(open_job: OpenJob) -> None:
    job = read_job(open_job(Member(0).region("main", 0, 100), Member(1).kernel("gemm", 10, 20)))
    assert (job.replay() == job.points.time).all()
    assert np.count_nonzero(job.points.kind == Point.OPERATION) == 1


@pytest.mark.parametrize(
    ("layout", "call"), [("pipeline", "ncclGroupEnd"), ("tensor, data and pipeline", "ncclGroupStart")]
)
def test_a_lost_call_costs_its_own_group_alone(layout: str, call: str, tmp_path: Path) -> None:
    """Of one rank of a pipeline the 20th call is not recorded."""
    files = simulate(JobOptions(tmp_path, steps=8, seed=2, plant="none", **LAYOUTS[layout]))
    with closing(sqlite3.connect(files[1])) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        region, string = (
            next(name for name in tables if name.startswith(base)) for base in ("rocpd_region_", "rocpd_string_")
        )
        calls = f"SELECT R.id FROM {region} R JOIN {string} S ON S.id = R.name_id WHERE S.string = ?"
        row = connection.execute(f"{calls} ORDER BY R.id LIMIT 1 OFFSET 20", (call,)).fetchone()
        connection.execute(f"DELETE FROM {region} WHERE id = ?", row)
    with rocpd.connect(files) as session:
        assert read_job(session).matched > 0.9


def test_replays_of_real_files_are_the_recordings(real_files: tuple[Path, ...]) -> None:
    for file in real_files:
        with rocpd.connect(file) as session:
            job = read_job(session)
        assert (job.replay() == job.points.time).all(), file.name


TABLES = ("kernel_dispatch", "region", "memory_copy", "event", "arg")


@pytest.mark.soak(100)
@pytest.mark.parametrize("layout", sized(["tensor and data"], list(LAYOUTS)))
def test_a_row_that_is_lost_changes_the_answer_little(layout: str, tmp_path: Path) -> None:
    """Any row of one of the files: the same causes, one collective less at most, and what that step would regain."""
    files = simulate(JobOptions(tmp_path, steps=8, seed=5, plant="straggler=20", **LAYOUTS[layout]))
    whole = _found(files)
    random = np.random.default_rng(6)
    for table in TABLES * sized(1, 20):
        path = files[random.integers(len(files))]
        before = path.read_bytes()
        _lose_a_row(path, table, random)
        found = _found(files)
        assert found.matched > 0.965, (table, path.name)  # of some 32 collectives, the longest one
        assert [(cause.kind, cause.ranks) for cause in found.causes] == [(CauseKind.RANK, whole.causes[0].ranks)]
        assert 1 - 1 / 8 - 0.05 < found.causes[0].cost / whole.causes[0].cost < 1.05
        path.write_bytes(before)


def _found(files: Sequence[Path]) -> Blame:
    with rocpd.connect(files) as session:
        job = read_job(session)
    return _blame(job)


def _lose_a_row(path: Path, table: str, random: np.random.Generator) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ((name,),) = [row for row in tables if row[0].startswith(f"rocpd_{table}_0")]
        ids = connection.execute(f'SELECT id FROM "{name}"').fetchall()
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(f'DELETE FROM "{name}" WHERE id = ?', ids[random.integers(len(ids))])


def test_a_lost_kernel_costs_its_own_transfer_alone(tmp_path: Path) -> None:
    """Of one of four pairs of stages that run alike a rank lacks one of its 32 sends and receives."""
    files = simulate(JobOptions(tmp_path, steps=8, seed=5, plant="none", **LAYOUTS["tensor, data and pipeline"]))
    with closing(sqlite3.connect(files[4])) as connection, connection:
        named = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_kernel_dispatch_0%'")
        ((table,),) = named.fetchall()
        stream = f'SELECT stream_id FROM "{table}" GROUP BY stream_id HAVING count(*) = 32'
        row = f'SELECT id FROM "{table}" WHERE stream_id = ({stream}) ORDER BY id LIMIT 1 OFFSET 20'
        assert connection.execute(f'DELETE FROM "{table}" WHERE id = ({row})').rowcount == 1
    with rocpd.connect(files) as session:
        assert read_job(session).matched > 0.97


def test_kernels_that_were_lost_part_no_group(tmp_path: Path) -> None:
    """A member of a pair lacks its third kernel, one of four its last but one."""
    files = simulate(JobOptions(tmp_path, ranks=8, nodes=2, tp=4, steps=8, seed=4, plant="none"))
    with closing(sqlite3.connect(files[1])) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        dispatches, symbols = (
            next(name for name in tables if name.startswith(base))
            for base in ("rocpd_kernel_dispatch_", "rocpd_info_kernel_symbol_")
        )
        talking = f"kernel_id IN (SELECT id FROM {symbols} WHERE kernel_name LIKE '%ncclDevKernel%')"
        rows = connection.execute(f"SELECT id FROM {dispatches} WHERE {talking} ORDER BY start").fetchall()
        connection.executemany(f"DELETE FROM {dispatches} WHERE id = ?", [rows[30], rows[-2]])
    with rocpd.connect(files) as session:
        assert read_job(session).matched > 0.97
