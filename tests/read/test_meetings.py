"""Clocks of simulated jobs, aligned by their collectives, against the truth that the simulator knows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import rocpd
from rocpd.base import NULL, Ints
from rocpd.facts.communication.collectives import Channel, CommunicationKernels
from rocpd.facts.communication.communicators import Communication
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.meetings import meetings_by_kind
from rocpd.facts.communication.members import arrivals
from rocpd.facts.communication.rccl import Transfer
from rocpd.federate.select.align import Align, Alignment, Domain, Shift, Span, align
from rocpd.federate.select.clocks import ContradictionError, Meetings, align_clocks
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.simulator.job_plan import JobPlan, TrueCollective
from tests.build import TraceBuilder
from tests.soak import sized

SEEDS = range(sized(8, 200))
SIDES = ("entered", "left", "ended")
LAYOUTS = [{"ranks": 4}, {"ranks": 8, "tp": 4}, {"ranks": 8, "tp": 2, "pp": 2, "steps": 4}]


def job_of(seed: int, **layout: int | str) -> JobPlan:
    """A job on as many nodes as seed and ranks allow, whose members leave collectives 5 to 30 us apart."""
    options = {"nodes": 2 + seed % 2 * 2, "steps": 8, "plant": "straggler=10", **layout}
    return plan(JobOptions(Path("job"), seed=seed, **options))  # type: ignore[arg-type]


def local(job: JobPlan, rank: int, true: Iterable[int]) -> Ints:
    return job.nodes[job.ranks[rank].node].local(np.array(list(true), np.int64))


def members_of(job: JobPlan, collectives: Iterable[TrueCollective]) -> Iterator[Communication]:
    """What is read of a job of which these collectives were recorded, communicators known."""
    channels: dict[tuple[object, int], list[tuple[int, int]]] = {}
    for each in collectives:
        for rank, *times in zip(each.group.members, each.starts, each.ends, strict=True):
            channels.setdefault(((each.kind, each.group), rank), []).append((times[0], times[1]))
    for (what, rank), rows in channels.items():
        start, end = (local(job, rank, side) for side in zip(*rows, strict=True))
        numbers = np.arange(len(start))
        counted = CommunicationKernels(numbers, *(np.zeros_like(numbers),) * 3, start, end)
        channel = Channel(str(what), rank, 0, str(what), None, start, end, counted.stream, numbers, counted)
        yield Communication(channel, counted.stream, counted.name, (Transfer("ALLREDUCE"),))


def meetings(members: Iterable[Communication], clocks: Mapping[int, int], count: int) -> Meetings:
    """All collectives that clocks meet in."""
    kinds = meetings_by_kind(members, clocks, count)
    none = np.empty((0, count), np.int64)
    return Meetings(*(np.concatenate([none, *(getattr(kind, side) for kind in kinds)]) for side in SIDES))


def aligned(job: JobPlan, collectives: Iterable[TrueCollective]) -> Alignment:
    """The alignment of a job of which these collectives were recorded."""
    members = list(members_of(job, collectives))
    spans = {
        rank.number: Span(*local(job, rank.number, (rank.start_ns, int(job.timing.end[rank.number]))).tolist())
        for rank in job.ranks
    }
    nodes = [[rank.number for rank in job.ranks if rank.node == number] for number in range(len(job.nodes))]
    domains = [
        Domain(
            str(number), tuple(ranks), min(spans[rank].start for rank in ranks), max(spans[rank].end for rank in ranks)
        )
        for number, ranks in enumerate(nodes)
    ]
    return align(
        Align.AUTO, domains, spans, lambda clocks: align_clocks(meetings(members, clocks, len(set(clocks.values()))))
    )


def errors(job: JobPlan, alignment: Alignment, collectives: list[TrueCollective]) -> Iterator[tuple[float, int | None]]:
    """Yield by how much each clock is wrong at most while collectives ran [ns], and what is certain."""
    reference = next(clock for clock in alignment.clocks if clock.method == "reference")
    true = np.array(sorted(end for each in collectives for end in each.ends))
    expected = local(job, reference.ranks[0], true)
    for clock in alignment.clocks:
        if clock is not reference:
            shown = clock.shift.to_line(local(job, clock.ranks[0], true))
            yield float(np.abs(shown - expected).max()), clock.certain_ns


@pytest.mark.soak(25)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_truth_lies_within_what_is_certain_and_likely_is_near(layout: dict[str, int]) -> None:
    wrong = []
    for seed in SEEDS:
        job = job_of(seed, **layout)
        collectives = list(job.collectives())
        for error, certain in errors(job, aligned(job, collectives), collectives):
            assert certain is not None
            assert error <= certain + 2, seed  # 2 ns: clocks show whole ones
            wrong.append(error)
    assert np.median(wrong) <= 10_000


@pytest.mark.soak(25)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_collectives_that_were_held_out_keep_their_order(layout: dict[str, int]) -> None:
    """No rank leaves one before another has entered it, though half of them were not looked at."""
    for seed in SEEDS[::2]:
        job = job_of(seed, **layout)
        collectives = list(job.collectives())
        shifts = aligned(job, collectives[::2]).shifts
        for each in collectives[1::2]:
            times = [
                shifts[rank].to_line(local(job, rank, pair))
                for rank, *pair in zip(each.group.members, each.starts, each.ends, strict=True)
            ]
            starts, ends = np.array(times).T
            assert starts.max() <= ends.min(), (seed, each)


def test_drift_is_taken_out_where_it_matters_and_durations_stay() -> None:
    job = job_of(4, ranks=4, nodes=2, steps=300, drift=50)
    alignment = aligned(job, job.collectives())
    moved = next(clock for clock in alignment.clocks if clock.method == "collectives")
    reference = next(clock for clock in alignment.clocks if clock.method == "reference")
    true = [job.nodes[job.ranks[clock.ranks[0]].node].drift_ppm for clock in (reference, moved)]
    assert moved.drift * 1e6 == pytest.approx(true[0] - true[1], abs=1)
    assert moved.shift.drift == moved.drift
    assert "ms per hour, taken out" in (alignment.note or "")


def test_a_clock_that_was_set_is_named_and_starts_are_aligned() -> None:
    job = job_of(3, ranks=4, nodes=2, steps=30, plant="clock-step")
    with pytest.raises(ContradictionError):
        align_clocks(meetings(members_of(job, job.collectives()), {rank.number: rank.node for rank in job.ranks}, 2))
    alignment = aligned(job, job.collectives())
    assert {clock.method for clock in alignment.clocks} == {"start"}
    assert "2 clock domains aligned at their first event: collectives of rank" in (alignment.note or "")
    assert "do not fit together, as if a clock had been set" in (alignment.note or "")


THREE = [(100, 190), (110, 180), (5130, 5170)]  # two ranks on one clock, one on another


@pytest.mark.parametrize(
    ("operation", "root", "entered", "left"),
    [
        ("ALLREDUCE", None, [110, 5130], [180, 5170]),
        ("BCAST", 0, [100, NULL], [180, 5170]),  # its root may leave before others come
        ("BCAST", None, [], []),
        ("REDUCE", 0, [], []),  # only its root waits: who leaves when says nothing
        ("SENDRECV", None, [], []),
    ],
)
def test_who_waits_for_whom(operation: str, root: int | None, entered: list[int], left: list[int]) -> None:
    members = []
    for rank, (start, end) in enumerate(THREE):
        zero = np.zeros(1, np.int64)
        counted = CommunicationKernels(zero, zero, zero, zero, zero + start, zero + end)
        channel = Channel(operation, rank, 0, "c", None, counted.start, counted.end, zero, zero, counted)
        members.append(Communication(channel, zero, zero, (Transfer(operation, 0, root),)))
    found = meetings(members, {0: 0, 1: 0, 2: 1}, 2)
    assert (found.entered.ravel().tolist(), found.left.ravel().tolist()) == (entered, left)


def test_kernels_on_a_clock_that_drifts_take_as_long_as_their_rank_recorded() -> None:
    """Their ends are compared on one line; times add up to those of all kernels, whose clock nobody corrects."""
    start = np.arange(1, 5) * 10_000_000
    end, zero, clocks = start + 1_000_000, np.zeros(4, np.int64), {0: Shift(), 1: Shift(500, 0, 1e-3)}
    counted = CommunicationKernels(zero, zero, zero, zero, start, end)
    group = [Channel("all_reduce", rank, 0, None, None, start, end, zero, np.arange(4), counted) for rank in clocks]
    assert (arrivals(tuple(group), Clocks({0: 0, 1: 1}, clocks), np.arange(4)).times == 1_000_000).all()


def test_many_ranks_are_aligned_in_less_than_a_second() -> None:
    """64 ranks on 8 nodes, 1,000 collectives each, beyond reading them."""
    random = np.random.default_rng(8)
    true = np.cumsum(random.integers(100_000, 3_000_000, 1000))
    members, zero = [], np.zeros(1000, np.int64)
    for rank in range(64):
        start = true + random.integers(0, 60_000, 1000) + rank // 8 * 10**12
        end = true + 70_000 + random.integers(0, 20_000, 1000) + rank // 8 * 10**12
        counted = CommunicationKernels(zero, zero, zero, zero, start, end)
        channel = Channel("all_reduce", rank, 0, None, None, start, end, zero, np.arange(1000), counted)
        members.append(Communication(channel, zero, zero, (Transfer("ALLREDUCE"),)))
    before = time.process_time()
    lines = align_clocks(meetings(members, {rank: rank // 8 for rank in range(64)}, 8))
    assert time.process_time() - before < 1
    assert [line and round(line.offset_ns, -6) for line in lines] == [-node * 10**12 for node in range(8)]


@pytest.mark.parametrize(("rccl", "tp"), [("none", 4), ("none", 2), ("sizes", 4)])
def test_files_of_two_hosts_are_aligned(rccl: str, tp: int, tmp_path: Path) -> None:
    """Without calls of RCCL groups of tensor parallelism may be taken for one: what disagrees is left out."""
    options = JobOptions(tmp_path, ranks=8, nodes=2, tp=tp, steps=4, seed=7, rccl=rccl, start_spread=0.8)
    job = plan(options)
    notes: list[str] = []
    with rocpd.connect(simulate(options), align="collectives", on_note=notes.append) as session:
        alignment = session.alignment
        lengths = session.sql('SELECT id, rank, "end" - start FROM kernels ORDER BY rank, id').fetchall()
        with rocpd.connect([rank.opening.path for rank in session.ranks], align="none") as raw:
            assert raw.sql('SELECT id, rank, "end" - start FROM kernels ORDER BY rank, id').fetchall() == lengths
        (first, second) = session.info()["clocks"].fetchall()
    assert first == ("gpu-node-00", "reference", 0, 0, 0, 0.0, 0)
    ((error, certain),) = errors(job, alignment, list(job.collectives()))
    assert error <= min(certain or 0, 10_000)
    assert second[:2] == ("gpu-node-01", "collectives")
    assert second[3] == certain
    assert second[-1] > 5
    assert [note.partition(" by ")[0] for note in notes] == ["time: 2 clock domains aligned"]


def test_a_clock_that_was_set_is_told_of_files(tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=4, nodes=2, steps=12, seed=3, rccl="none", plant="clock-step")
    with rocpd.connect(simulate(options)) as session:
        assert session.time_range
        (note,) = session.notes
    assert note.startswith("time: 2 clock domains aligned at their first event: ")
    assert "collectives" in note
    assert " do not fit together, as if a clock had been set; " in note


def test_clocks_do_not_depend_on_how_ranks_lie_in_files(tmp_path: Path) -> None:
    """Split, merged, in another order, beside a rank without events: the same rows."""
    files = list(simulate(JobOptions(tmp_path / "job", ranks=4, nodes=2, steps=3, seed=9)))
    with rocpd.connect(files) as session:
        rows = session.info()["clocks"].fetchall()
        session.merge(tmp_path / "all.db")
    with rocpd.connect(files[1:3]) as some:
        some.merge(tmp_path / "some.db")
    empty = TraceBuilder(7, host="gpu-node-00", machine="elsewhere").write(tmp_path / "empty.db")
    for inputs in (files[::-1], [tmp_path / "all.db"], [files[0], tmp_path / "some.db", files[3]], [*files, empty]):
        with rocpd.connect(inputs) as session:
            assert session.info()["clocks"].fetchall() == rows
    assert [row[1] for row in rows] == ["reference", "collectives"]
