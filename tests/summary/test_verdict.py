"""Who holds a job up: the planted rank, by name, or nobody. `plan()` knows the truth."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import rocpd
from rocpd.facts.communication.matching import Clocks
from rocpd.replay.causes import Blame, Cause, CauseKind
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import plan
from rocpd.summary.communication.verdict import Periods, comes_again, judge
from rocpd.summary.findings import Finding, Verdict
from tests.conftest import OpenJob
from tests.members import Member
from tests.soak import sized
from tests.summary.cells import cells

LAYOUTS: dict[str, dict[str, Any]] = {
    "data, a rank on each node": {"ranks": 4, "nodes": 4},
    "data, two nodes": {"ranks": 8, "nodes": 2},
    "tensor and data, one node": {"ranks": 8, "nodes": 1, "tp": 4},
    "tensor and data, two nodes": {"ranks": 8, "nodes": 2, "tp": 4},
    "tensor and data, four nodes": {"ranks": 16, "nodes": 4, "tp": 2},
    "pipeline, one node": {"ranks": 8, "nodes": 1, "pp": 2},
    "pipeline, four nodes": {"ranks": 8, "nodes": 4, "pp": 4},
    "tensor, data and pipeline": {"ranks": 8, "nodes": 2, "tp": 2, "pp": 2},
}
PIPELINES = {layout: options for layout, options in LAYOUTS.items() if "pp" in options}
JOBS = [(layout, rccl) for layout in LAYOUTS for rccl in ("none", "sizes")]
STEPS = sized(8, 12)
QUICK = [("tensor and data, two nodes", "none"), ("tensor, data and pipeline", "sizes")]


def verdict(folder: Path, seed: int, plant: str, **options: Any) -> tuple[Finding, list[Any], int | None]:
    """Return the verdict on a simulated job, the ranks of the table of stragglers, and who is slow in truth."""
    job = JobOptions(folder, seed=seed, plant=plant, **{"steps": 12, **options})
    files = simulate(job)
    with rocpd.connect(files) as session:
        table = session.summary("stragglers")
        ranks = [row[0] for row in table]
    for file in files:
        file.unlink()
    return table.findings[0], ranks, plan(job).straggler_rank if "straggler" in plant else None


@pytest.mark.parametrize(("most", "said"), [(80_000, ", up to 8 % of a step"), (600, "")])
def test_a_bound_is_said_only_where_records_link_a_rank_to_waits(most: int, said: str) -> None:
    """With damaged files, a rank that cost 3.5 % of a step was said to cost up to 0.063 %."""
    steps, takes = range(8), {"compute": 100_000, "host": 0, "copies": 0, "links": 0}
    suspect = Cause(CauseKind.RANK, (0,), "", 0, takes, ("", 0), 0.0, chance=0.0, longest=8, longer=0.14, most=most)
    blame = Blame(tuple(steps), 1e6, 0.0, matched=0.65, suspect=suspect)
    start = np.arange(8).repeat(2).reshape(8, 2)
    pieces = Periods((0, 1), start, start + 1, markers=tuple((f"step {step}", 1) for step in steps), unit="steps")
    (finding,) = judge(blame, pieces, {}, (), Clocks({})).findings
    assert finding.text.endswith(f"; rank 0 computes 14 % longer, in all 8 steps, at what cost is not known{said}")


@pytest.mark.soak(100)
@pytest.mark.parametrize(("layout", "rccl"), sized(QUICK, JOBS))
def test_the_planted_rank_is_named(layout: str, rccl: str, tmp_path: Path) -> None:
    """Ten percent slower with a noise of one: in 100 of 100 jobs."""
    for seed in range(sized(1, 100)):
        finding, ranks, true = verdict(tmp_path, seed, "straggler=10", rccl=rccl, steps=STEPS, **LAYOUTS[layout])
        assert (finding.verdict, finding.rank, ranks[0]) == ("problem", true, true), (seed, finding.text)
        assert finding.text.startswith(f"rank {true} costs ")
        assert ": a straggler; the same kernels " in finding.text


@pytest.mark.soak(100)
@pytest.mark.parametrize(("layout", "rccl"), sized(QUICK, JOBS))
def test_nobody_is_named_without_cause(layout: str, rccl: str, tmp_path: Path) -> None:
    """In at least 95 of 100 jobs."""
    seeds = range(sized(1, 100))
    found = [verdict(tmp_path, seed, "none", rccl=rccl, steps=STEPS, **LAYOUTS[layout])[0] for seed in seeds]
    assert sum(finding.verdict != "none" for finding in found) <= len(seeds) * 0.05, found


WINDOWS = {
    "markers": rocpd.Window(start_marker="step 3", end_marker="step 13"),
    "launched": rocpd.Window(start_marker="step 2", end_marker="step 10", launched=True),
    "clip": rocpd.Window(start_marker="step 5", end_marker="step 15", clip=True),
    "times": rocpd.Window("21.5%", "72%"),
}


WINDOWED = [(*job, plant, list(WINDOWS)) for job in JOBS for plant in ("straggler=10", "none")]
SOME_WINDOWED = [(*QUICK[0], "straggler=10", ["markers", "times"]), (*QUICK[1], "none", ["launched", "clip"])]


@pytest.mark.soak(20)
@pytest.mark.parametrize(("layout", "rccl", "plant", "windows"), sized(SOME_WINDOWED, WINDOWED))
def test_a_window_of_steps_names_whom_the_whole_job_names(
    layout: str, rccl: str, plant: str, windows: list[str], tmp_path: Path
) -> None:
    """It cuts ranks at different kernels, which do the same work all the same; never is another rank blamed."""
    for seed in range(3000, sized(3001, 3010)):
        job = JobOptions(tmp_path, seed=seed, plant=plant, rccl=rccl, **{"steps": 16, **LAYOUTS[layout]})
        expected = ("none", None) if plant == "none" else ("problem", plan(job).straggler_rank)
        with rocpd.connect(simulate(job)) as session:
            for name in windows:
                finding, *_ = session.within(WINDOWS[name]).summary("stragglers").findings
                assert (finding.verdict, finding.rank) == expected, (seed, name, finding.text)


@pytest.mark.soak(40)
@pytest.mark.parametrize("layout", sized(["pipeline, four nodes"], list(PIPELINES)))
def test_a_late_launch_in_a_pipeline_is_told_from_those_that_it_holds_up(layout: str, tmp_path: Path) -> None:
    """All ranks behind the late one come late to their collectives, too; but they wait, and do not idle."""
    named = 0
    for seed in range(sized(2, 40)):
        options = {"plant": "late-launch=400", "rccl": ("sizes", "none")[seed % 2], **PIPELINES[layout]}
        (fact,) = plan(JobOptions(tmp_path, seed=seed, steps=12, **options)).facts
        finding, *_ = verdict(tmp_path, seed, **options)
        if finding.verdict == "unknown":  # without calls of RCCL, groups of several clocks look alike
            assert options["rccl"] == "none"
            assert "of the time of communication is matched" in finding.text
        elif fact.rank < options["ranks"] // options["pp"]:  # later stages wait anyway
            assert (finding.verdict, finding.rank) == ("problem", fact.rank), (seed, finding.text)
            assert re.search(r"its host takes (3[89]|4[01])\d us longer", finding.text), finding.text
            assert "(time between steps)" in finding.text
            named += 1
    assert named


def test_where_call_stacks_are_sampled_a_late_host_has_its_function(tmp_path: Path) -> None:
    """Each rank samples its calls; the late one another function, too, half as often."""
    job = JobOptions(tmp_path, seed=5, steps=12, plant="late-launch=400", ranks=4)
    (fact,) = plan(job).facts
    for number, file in enumerate(files := simulate(job)):
        database = apsw.Connection(str(file))
        ((suffix,),) = database.execute("SELECT substr(name, 13) FROM sqlite_master WHERE name LIKE 'rocpd_event_%'")
        ((event, first, last),) = database.execute(
            f"SELECT (SELECT MAX(id) FROM rocpd_event_{suffix}), MIN(start), MAX(end) FROM rocpd_region_{suffix}"
        )
        stacks = [["step", "main"]] * 20 + [["load at data.cpp:3", "main"]] * (10 if number == fact.rank else 0)
        for i, stack in enumerate(stacks, start=1):
            values = event + i, json.dumps(stack), '{"cpu_ns": 10000000}'
            sql = f"INSERT INTO rocpd_event_{suffix} (id, call_stack, extdata) VALUES (?, ?, ?)"
            database.execute(sql, values)
            times = 1_000_000 + i, first + (last - first) * i // 40, event + i
            sql = f"INSERT INTO rocpd_sample_{suffix} (id, timestamp, event_id, track_id) VALUES (?, ?, ?, 1)"
            database.execute(sql, times)
        database.close()
    with rocpd.connect(files) as session:
        finding, *_ = session.summary("stragglers").findings
    assert finding.rank == fact.rank
    assert finding.text.endswith("; its host is longer in load")
    assert float(str(finding.evidence["function_longer_percent"])) > 40


def test_stages_of_a_pipeline_compare_in_the_layers_that_all_have(tmp_path: Path) -> None:
    """Each stage has one rank; the last one does more than the others."""
    options: dict[str, Any] = {"ranks": 4, "nodes": 2, "pp": 4}
    assert verdict(tmp_path, 5, "none", **options)[0].verdict == "none"
    for plant in ("straggler=20", "late-launch=400"):
        (fact,) = plan(JobOptions(tmp_path, seed=5, steps=12, plant=plant, **options)).facts
        finding, *_ = verdict(tmp_path, 5, plant, **options)
        assert (finding.verdict, finding.rank) == ("problem", fact.rank), finding.text


def test_a_rank_that_takes_more_than_twice_as_long_is_said_in_whole_percent(tmp_path: Path) -> None:
    finding, *_ = verdict(tmp_path, 1, "straggler=150", ranks=4, steps=4)
    assert re.search(r": computes 1[45]\d % longer, ", finding.text), finding.text


def test_collectives_that_nothing_matches_leave_stragglers_unknown(open_job: OpenJob) -> None:
    """Rank 1 ran one collective more."""
    ranks = [Member(0).collective(1000, 2000), Member(1).collective(1000, 2000).collective(3000, 4000)]
    (finding,) = open_job(*ranks).summary("ranks").findings
    assert (finding.verdict, finding.text) == (
        "unknown",
        "stragglers: not known: none of 3 communication kernels is matched",
    )


def test_a_job_without_markers_is_judged_in_pieces(tmp_path: Path) -> None:
    """No marker is a step by this pattern: pieces between collectives take their place, and nothing is sure."""
    job = JobOptions(tmp_path, ranks=4, steps=24, seed=7, plant="straggler=20")
    with rocpd.connect(simulate(job)) as session:
        (finding, *_) = session.summary("stragglers", step_marker="^nothing$").findings
    assert (finding.verdict, finding.rank, finding.confidence) == ("problem", plan(job).straggler_rank, "hint")
    assert " of 11 pieces of the trace" in finding.text
    assert ": perhaps a straggler; " in finding.text


def test_what_a_rank_costs_is_one_sentence_and_whether_it_lasts_another(tmp_path: Path) -> None:
    options: dict[str, Any] = {"ranks": 4, "steps": 12}
    files = simulate(JobOptions(tmp_path, seed=3, plant="late-launch=400", **options))
    with rocpd.connect(files) as session:
        costs, lasts = session.summary("stragglers").findings[:2]
    assert (costs.rule, lasts.rule, lasts.verdict) == ("comm.straggler", "comm.lasting", "note")
    assert lasts.text.startswith("it lasts: chance explains it in less than 1 in ")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("plant", "idle"),
    sized(
        [("straggler=35", 0), ("straggler=35", 3), ("late-launch=3000", 0)],
        [*(("straggler=35", rank) for rank in (0, 2, 3)), *(("late-launch=3000", rank) for rank in (0, 3))],
    ),
)
def test_the_straggler_is_named_beside_a_rank_that_computes_nothing(plant: str, idle: int, tmp_path: Path) -> None:
    """As one does that was killed before these steps: there is nothing of it to compare with."""
    job = JobOptions(tmp_path, ranks=4, steps=8, seed=3, plant=plant, profile="gemm")
    files = simulate(job)
    connection = apsw.Connection(str(files[idle]))
    suffix = next(n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_event_*'"))[
        11:
    ]
    symbols = f"SELECT id FROM rocpd_info_kernel_symbol{suffix} WHERE kernel_name NOT LIKE '%nccl%'"
    connection.execute(f"DELETE FROM rocpd_kernel_dispatch{suffix} WHERE kernel_id IN ({symbols})")
    assert connection.changes()
    connection.close()
    with rocpd.connect(files) as session:
        finding = session.summary("stragglers").findings[0]
    assert (finding.rank, finding.verdict) == (plan(job).facts[0].rank, "problem"), finding.text


def test_few_steps_are_no_proof(tmp_path: Path) -> None:
    finding, *_ = verdict(tmp_path, 1, "straggler=35", ranks=4, steps=2)
    assert finding.verdict == "unknown"
    assert finding.text == "stragglers: not known: 2 of the 4 steps that it takes to tell one from chance"


def test_one_rank_alone_is_no_news(open_job: OpenJob) -> None:
    """Nothing compares with it: who asks is told so, and the first answer does without."""
    session = open_job(Member(0).kernel("gemm", 10, 20).collective(30, 40))
    (finding,) = session.summary("ranks").findings
    assert finding.text == "stragglers: not known: one rank alone compares with no other"
    assert not [each for each in session.summary("overview").findings if "straggler" in each.text]


def test_without_collectives_nothing_is_known(open_job: OpenJob) -> None:
    session = open_job(Member(0).kernel("gemm", 10, 20), Member(1).kernel("gemm", 10, 90))
    assert [finding.text for finding in session.summary("ranks").findings] == [
        "stragglers: not recorded: no collectives"
    ]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_a_slow_host_is_named_and_none_of_its_ranks(seed: int, tmp_path: Path) -> None:
    finding, *_ = verdict(tmp_path, seed, "slow-node=10", ranks=8, nodes=2)
    assert (finding.verdict, finding.rank) == ("problem", None)
    assert ": a slow host" in finding.text


@pytest.mark.parametrize(
    ("plant", "cause"),
    [
        ("imbalance=20", "{} % of the waiting: a straggler; it has more work: 2"),
        ("throttled=40", "the same kernels and grids, its clock is {} % lower"),
        ("late-launch=400", "its host takes {} us longer (time between steps), in all 12 steps"),
    ],
)
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_why_a_rank_is_late(plant: str, cause: str, seed: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"ranks": 4, "nodes": 2, "steps": 12}
    finding, *_ = verdict(tmp_path, seed, plant, **options)
    fact = plan(JobOptions(tmp_path, seed=seed, plant=plant, **options)).facts[0]
    pattern = re.escape(cause).replace(re.escape("{}"), "[0-9.-]+")
    assert (finding.rank, bool(re.search(pattern, finding.text))) == (fact.rank, True), finding.text


@pytest.mark.parametrize(
    ("plant", "cause"),
    [
        ("straggler=20", "; the same kernels and grids"),
        ("imbalance=20", "; it has more work: (1[6-9]|2[0-4]) % more work-items"),
    ],
)
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_a_window_that_cuts_operations_says_the_same(plant: str, cause: str, seed: int, tmp_path: Path) -> None:
    """One rank then has some dispatches more between the same steps."""
    files = simulate(JobOptions(tmp_path, ranks=4, steps=12, seed=seed, plant=plant))
    with rocpd.connect(files) as session:
        for start, end in (("20%", "70%"), ("33%", "81%"), ("11.3%", "57.7%")):
            (finding, *_) = session.within(rocpd.Window(start, end)).summary("stragglers").findings
            assert re.search(cause, finding.text), (start, end, finding.text)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_the_slow_rank_of_a_step_is_named_and_nobody_in_others(seed: int, tmp_path: Path) -> None:
    """All ranks end a step together: the length of a step names nobody. One rank is slow in every fifth step."""
    options = JobOptions(tmp_path, ranks=6, nodes=2, steps=20, seed=seed, plant="intermittent")
    (fact,) = plan(options).facts
    with rocpd.connect(simulate(options)) as session:
        slowest = dict(cells(session, "steps", "step slowest_rank"))
        (finding, *_) = session.summary("steps").findings or session.summary("stragglers").findings
    assert {slowest[f"step {step}"] for step in fact.steps} == {fact.rank}
    others = [rank for step, rank in slowest.items() if step not in {f"step {n}" for n in fact.steps}]
    assert sum(rank is not None for rank in others) <= 2
    assert finding.rank == fact.rank
    assert " longer in 4 of 20 steps" in finding.text


def test_a_rank_that_is_slow_at_times_takes_as_much_longer_as_its_steps(tmp_path: Path) -> None:
    """Kernels run at once in them: their sum would be more than the steps take longer."""
    options: dict[str, Any] = {"ranks": 8, "nodes": 2, "steps": 24, "tp": 4}
    with rocpd.connect(simulate(JobOptions(tmp_path, seed=11, plant="intermittent=60", **options))) as session:
        ((longer, chance),) = [row[1:] for row in cells(session, "causes", "mainly longer_ns chance") if row[0]]
        steps = [row for row in cells(session, "steps", "grew grew_by_ns over_median") if row[0] == "compute"]
        again = next(each.text for each in session.summary("overview").findings if each.rule == "comm.lasting")
    assert (longer, chance) == (pytest.approx(sum(row[1] for row in steps) / len(steps), rel=0.15), None)
    assert re.fullmatch(r"it comes every 5th step: \d+(, \d+){3,4}", again)


@pytest.mark.parametrize(
    ("stalls", "last", "said"),
    [
        ((7,), 30, "whether it comes again is not known: seen in step 7"),
        ((1, 6, 11), 14, "whether it comes again is not known: seen in steps 1, 6, 11"),
        ((1, 6, 11, 17), 20, "whether it comes again is not known: seen in steps 1, 6, 11, 17"),
        ((1, 6, 11, 16), 40, "whether it comes again is not known: seen in steps 1, 6, 11, 16"),
        ((1, 2, 3, 4), 4, "whether it comes again is not known: seen in steps 1, 2, 3, 4"),
        ((2, 4, 6, 8), 9, "it comes every 2nd step: 2, 4, 6, 8"),
        ((2, 6, 7, 10, 14, 18), 20, "it comes every 4th step: 2, 6, 10, 14, 18; besides in step 7"),
        ((2, 6, 7, 10, 14), 17, "whether it comes again is not known: seen in steps 2, 6, 7, 10, 14"),
        (
            (1, 3, 4, 8, 9, 13, 18, 23, 28, 33),
            35,
            "it comes every 5th step: 3, 8, 13, 18, 23, 28, 33; besides in steps 1, 4, 9",
        ),
        (tuple(range(0, 99, 11)), 98, "it comes every 11th step: 0, 11, 22, 33, 44, 55, 66, 77 …"),
        (tuple(range(0, 99, 23)), 98, "it comes every 23rd step: 0, 23, 46, 69, 92"),
    ],
)
def test_stalls_that_are_equally_far_apart_come_again(stalls: tuple[int, ...], last: int, said: str) -> None:
    assert comes_again(stalls, last) == said


def test_start_up_is_left_out_of_judgement_and_of_windows(tmp_path: Path) -> None:
    """The first collective waits for the last rank to start; in a window nothing is start-up."""
    options = JobOptions(tmp_path, ranks=4, nodes=2, steps=6, plant="none", start_spread=0.1)
    with rocpd.connect(simulate(options)) as session:
        table, every = session.summary("stragglers"), cells(session, "collectives", "wait_ns")
        inside = session.within(rocpd.Window("60%", "90%")).summary("stragglers")
    (startup,) = (finding for finding in table.findings if finding.rule == "comm.startup")
    last = max(plan(options).ranks, key=lambda rank: rank.start_ns).number
    assert (startup.rank, startup.evidence["collectives"]) == (last, 1)
    assert startup.evidence["wait_ns"] == max(every)
    assert sum(row[table.columns.index("caused_wait_ns")] for row in table) <= sum(every) - max(every)
    assert [finding.rule for finding in inside.findings] == ["comm.straggler"]


def test_those_that_came_last_together_share_the_blame(open_job: OpenJob) -> None:
    """Ranks 1 and 2 come 100 us after rank 0: each caused half, and none of both is the straggler."""
    session = open_job(*(Member(n).collective(1000 + 100_000 * (n > 0), 201_000) for n in range(3)))
    assert cells(session, "collectives", "straggler wait_ns") == [(None, 100_000)]
    assert sorted(cells(session, "stragglers", "rank times_last caused_wait_ns own_wait_ns")) == [
        (0, 0.0, 0, 100_000),
        (1, 0.5, 50_000, 0),
        (2, 0.5, 50_000, 0),
    ]


def test_on_one_clock_the_start_counts_not_the_duration(open_job: OpenJob) -> None:
    """Rank 0 leaves early, as the root of a broadcast does: it came first all the same."""
    session = open_job(Member(0).collective(1000, 71_000), Member(1).collective(21_000, 99_000))
    assert cells(session, "collectives", "straggler wait_ns class") == [(1, 20_000, "inconclusive")]


def test_time_of_communication_is_classed(open_job: OpenJob) -> None:
    """One waits all the time, one not at all, one half, and a kernel of one rank alone."""
    late = [0, 95_000, 0, 60_000]
    first = Member(0).collective(1_000_000, 1_100_000).collective(2_000_000, 2_100_000)
    second = Member(1).collective(1_095_000, 1_100_000).collective(2_000_000, 2_100_000)
    first.collective(3_000_000, 3_100_000).collective(5_000_000, 5_010_000, stream=9)
    second.collective(3_000_000 + late[3], 3_100_000)
    rows = cells(open_job(first, second), "communication", "class collectives kernels time_ns wait_ns")
    assert rows == [
        ("transfer", 1, 2, 200_000, 0),
        ("arrival skew", 1, 2, 105_000, 95_000),
        ("mixed", 1, 2, 140_000, 60_000),
        ("inconclusive", 0, 0, 0, 0),
        ("point-to-point", 0, 0, 0, 0),
        ("unmatched", None, 1, 10_000, None),
    ]


def test_bandwidths_are_those_of_rccl_tests(open_job: OpenJob) -> None:
    """Of an all-reduce of 8 MB in 100 us, and an all-gather to which each of two ranks gives 1 MB."""
    ranks = []
    for number in range(2):
        member = Member(number).init("0xa", 2)
        reduced = {"count": "2000000", "datatype": "ncclFloat32"}
        member.collective(1_000_000, 1_100_000 + number, "0xa", arguments=reduced)
        gathered = {"sendcount": "1000000", "datatype": "ncclUint8"}
        member.collective(2_000_000, 2_100_000, "0xa", call="ncclAllGather", arguments=gathered)
        ranks.append(member.collective(3_000_000, 3_100_000, "0xa", arguments={}))
    rows = cells(open_job(*ranks), "collectives", "number operation bytes algorithm_gb_per_s bus_gb_per_s")
    first, second = (1, "all-reduce", 8_000_000, 80.0, 80.0), (2, "all-gather", 2_000_000, 20.0, 10.0)
    assert sorted(rows) == [first, second, (3, "all-reduce", None, None, None)]


def test_a_late_rank_and_one_that_computes_longer_are_both_named(tmp_path: Path) -> None:
    """The late one hides the other: without it, that one would be next."""
    files = simulate(JobOptions(tmp_path, ranks=7, steps=10, seed=832007, plant="straggler=9,late-launch"))
    with rocpd.connect(files) as session:
        named = [each for each in session.summary("stragglers").findings if each.rule == "comm.straggler"]
    assert ("its host takes 4" in named[0].text, "computes 9" in named[-1].text) == (True, True), named
    waiting = [float(str(each.evidence["wait_percent"])) for each in named]
    assert 60 < sum(waiting) <= 100, waiting  # of all the waiting, however many causes it has


@pytest.mark.parametrize(
    ("layout", "who", "limit"),
    [
        ({"ranks": 4}, "rank or host", ""),
        ({"ranks": 8, "tp": 4, "rccl": "sizes"}, "rank, host or link", ""),
        ({"ranks": 8, "tp": 4, "rccl": "none"}, "rank or host", "; links are not compared: it takes calls of RCCL"),
    ],
)
def test_links_are_judged_only_where_some_compare(layout: dict[str, Any], who: str, limit: str, tmp_path: Path) -> None:
    """All ranks of the first job are one group: nobody knows how fast its link ought to be."""
    with rocpd.connect(simulate(JobOptions(tmp_path, seed=1, plant="none", steps=6, **layout))) as session:
        finding, (replayed, *more) = session.summary("stragglers").findings[0], str(session.whatif()).splitlines()
    assert finding.text.startswith(f"no straggler: no {who} costs the others 1 % of a step")
    assert f": no {who.replace(' or', ',')}, step, gap or work of a call was found" in replayed
    assert "other changes, one by one:" in more
    assert all(limit in text and ("links" in text) == bool(limit) for text in (finding.text, replayed))


def test_a_link_is_not_explained_by_kernels_of_a_rank(tmp_path: Path) -> None:
    """The straggler that costs less than a link comes after it: its kernels say why it is slow."""
    layout = LAYOUTS["tensor and data, two nodes"]
    files = simulate(JobOptions(tmp_path, steps=12, seed=5, plant="slow-link=6,straggler=8", **layout))
    with rocpd.connect(files) as session:
        link, straggler = (each for each in session.summary("stragglers").findings if each.rule == "comm.straggler")
    assert link.text.endswith("a slow link")
    assert straggler.text.endswith("a straggler; the same kernels and grids")


def test_who_is_slow_of_two_and_two_ranks_is_not_known(tmp_path: Path) -> None:
    """Two stages of four compute longer: ranks lie too far apart to call any of them usual, and none is acquitted."""
    options = JobOptions(tmp_path, ranks=4, pp=4, steps=8, seed=31013, plant="straggler=8,imbalance=12")
    with rocpd.connect(simulate(options)) as session:
        finding = session.summary("stragglers").findings[0]
        gain = session.whatif(without=["rank:1"]).together.gain
    assert finding.verdict is Verdict.UNKNOWN
    assert f"; without it a step takes {gain * 100:.2g} % less" in finding.text


def test_ranks_that_take_as_much_longer_may_have_other_reasons(tmp_path: Path) -> None:
    """The graph shows how long kernels take, their grids are in the files."""
    options = JobOptions(tmp_path, ranks=6, steps=8, seed=7, plant="straggler=12,imbalance=12")
    with rocpd.connect(simulate(options)) as session:
        (finding,) = (each for each in session.summary("stragglers").findings if each.rule == "comm.straggler")
        (advised,) = (each for each in session.advise().findings if each.rule == "comm.straggler")
    slow, larger = (fact.rank for fact in plan(options).facts)
    reasons = {slow: "the same kernels and grids", larger: "it has more work: 12 % more work-items"}
    ranks = sorted(reasons, key=str)
    assert finding.evidence["together"] == ranks
    assert finding.text.endswith("; " + "; ".join(f"rank {rank}: {reasons[rank]}" for rank in ranks))
    assert "more_work_items_percent" not in finding.evidence
    assert advised.text == finding.text
    assert str(advised.action).startswith("Each of them has its own reason")


def test_a_straggler_behind_a_slow_host_is_explained_too(tmp_path: Path) -> None:
    files = simulate(
        JobOptions(tmp_path, ranks=12, nodes=3, tp=2, steps=12, seed=7, plant="imbalance=15,late-node=500")
    )
    with rocpd.connect(files) as session:
        named = [each for each in session.summary("stragglers").findings if each.rule == "comm.straggler"]
        advice = session.advise()
    (of_rank,) = (each for each in named if each.rank is not None)
    assert "it has more work: 15 % more work-items" in of_rank.text, named
    (advised,) = (each for each in advice.findings if each.rule == "comm.straggler" and "has more work" in each.text)
    assert (advised.action or "").startswith("It has more to do than the others")
    cost = float(str(of_rank.evidence["cost_percent"]))
    assert advised.gain_percent == pytest.approx(cost, abs=1)  # beyond what the host gains, which hides it


def test_where_ranks_are_left_out_transfer_and_waiting_are_not_told_apart(tmp_path: Path) -> None:
    """Whom they wait for is not seen: neither links nor other ranks are slow for that."""
    files = simulate(JobOptions(tmp_path, ranks=12, nodes=3, steps=10, seed=7, plant="late-node=900", rccl="calls"))
    with rocpd.connect(files) as session:
        some = session.where(rocpd.Filters(ranks="0-7"))
        assert [each.text for each in some.summary("stragglers").findings if each.rule == "comm.slow"] == []
        assert {*cells(some, "collectives", "class")} == {"inconclusive"}
        assert {*cells(some, "collectives", "bus_gb_per_s")} == {None}


def test_pairs_that_overlap_on_one_clock_are_told_apart_by_their_ends(open_job: OpenJob) -> None:
    """Pairs 0, 2 and 1, 3: rank 3 is late, for which rank 1 waits, and nobody else."""
    ranks = [Member(number) for number in range(4)]
    for step in range(12):
        at = 500_000 * (step + 1)
        for number, member in enumerate(ranks):
            member.collective(at + 40_000 * (number == 3), at + 100_000 + 40_000 * (number % 2))
    session = open_job(*ranks)
    assert set(cells(session, "collectives", "group straggler")) == {("0,2", None), ("1,3", 3)}
    assert cells(session, "waits", "waiter late wait_ns") == [(1, 3, 480_000)]
    assert cells(session, "stragglers", "rank times_last")[0] == (3, 12.0)
