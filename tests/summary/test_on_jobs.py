"""Analyses of simulated jobs, damaged ones too: recomputed with pandas, equal for any split, planted facts found."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pandas as pd
import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.rank import WHERE_IT_RAN, By, Options
from rocpd.federate.merge import merge
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader, RankTask, run_task
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.simulator.job_plan import JobPlan
from rocpd.simulator.options import Plant
from rocpd.summary.reading import Reading, planned, run_planned
from rocpd.summary.registry import SUMMARIES, TABLES
from rocpd.summary.summarize import SummaryOptions, summarize
from tests.soak import paired, sample, sized
from tests.summary.cells import cells

pytestmark = pytest.mark.soak(1.5)  # on jobs that are longer there

SOUND = 'start > 0 AND "end" >= start'


JOBS = ["sound", "damaged"]


class Job:
    """A job as files and opened, and all its tables."""

    def __init__(self, files: tuple[Path, ...], session: rocpd.Session) -> None:
        self.files, self.session = files, session

    @cached_property
    def whole(self) -> dict[str, Any]:
        return everything(self.session)


def on_a_job(name: str, values: Iterable[object]) -> pytest.MarkDecorator:
    """Run a test with each value, on the jobs in turn; in a soak on both."""
    return pytest.mark.parametrize((name, "job"), paired(values, JOBS), indirect=["job"])


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Job]]:
    with ExitStack() as opened:

        @cache
        def job_of(name: str) -> Job:
            options = JobOptions(
                tmp_path_factory.mktemp("job"), ranks=3, nodes=2, steps=sized(3, 5), seed=11, faults=name == "damaged"
            )
            paths = simulate(options)
            for path in paths:
                make_operators_and_stacks(path)
            return Job(paths, opened.enter_context(rocpd.connect(paths)))

        yield job_of


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest, jobs: Callable[[str], Job]) -> Job:
    return jobs(request.param)


@pytest.fixture
def files(job: Job) -> tuple[Path, ...]:
    return job.files


@pytest.fixture
def session(job: Job) -> rocpd.Session:
    return job.session


@pytest.fixture
def whole(job: Job) -> dict[str, Any]:
    return job.whole


def make_operators_and_stacks(path: Path) -> None:
    """Let the marker ranges of one layer be operators of PyTorch; every third call has a call stack."""
    connection = apsw.Connection(str(path))
    suffix = connection.execute("SELECT value FROM rocpd_metadata WHERE tag = 'uuid'").fetchone()[0]  # type: ignore[index]
    connection.execute(f"INSERT INTO rocpd_string{suffix} (string) VALUES ('TORCH_OPERATOR')")
    connection.execute(
        f"""UPDATE rocpd_event{suffix} SET category_id = last_insert_rowid()
        WHERE CASE WHEN json_valid(extdata) THEN json_extract(extdata, '$.message') END LIKE 'layer 1%'"""
    )
    connection.execute(f"""UPDATE rocpd_event{suffix} SET call_stack = '["run", "app.py(3): main"]' WHERE id % 3 = 0""")
    connection.close()


def frame(session: rocpd.Session, sql: str) -> pd.DataFrame:
    return session.sql(sql).df()


def by_name(events: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Calls, sum, mean, shortest, middle ones, longest, deviation by name; `duration` is NULL for invalid times."""
    rows = []
    for name, group in events.groupby("name", dropna=False):
        d = group["duration"].dropna().astype("int64")
        q = d.quantile([0.5, 0.95, 0.99]).tolist()
        rows.append(
            (None if pd.isna(name) else name, len(group), int(d.sum()), d.mean(), d.min(), *q, d.max(), d.std())
        )
    return sorted(rows, key=lambda row: (-row[2], row[0] or ""))


@pytest.mark.parametrize(
    ("name", "view", "condition"),
    [
        ("kernels", "kernels", "1"),
        ("copies", "memory_copies", "1"),
        ("scratch", "(SELECT operation AS name, * FROM scratch_memory)", "1"),
        ("markers", "markers", "1"),
    ],
)
def test_totals_against_pandas(name: str, view: str, condition: str, session: rocpd.Session) -> None:
    sql = f'SELECT name, CASE WHEN {SOUND} THEN "end" - start END AS duration FROM {view} WHERE {condition}'
    columns = "name calls total_ns mean_ns min_ns median_ns p95_ns p99_ns max_ns std_ns"
    ours, theirs = cells(session, name, columns), by_name(frame(session, sql))
    assert [row[:3] for row in ours] == [row[:3] for row in theirs]
    for actual, other in zip(ours, theirs, strict=True):
        assert [float("nan") if x is None else x for x in actual[3:]] == pytest.approx(other[3:], rel=1e-9, nan_ok=True)


KERNELS = """
SELECT P.rank, K.agent_id AS agent, K.id AS row, 0 AS kind, K.start, K."end", S.display_name AS name
FROM rocpd_kernel_dispatch K JOIN processes P ON P.guid = K.guid
LEFT JOIN rocpd_info_kernel_symbol S ON S.guid = K.guid AND S.id = K.kernel_id"""
COPIES = """
SELECT P.rank, M.id AS row, 1 AS kind, M.start, M."end", N.string AS name,
    CASE WHEN D.type IS 'GPU' OR S.type IS NOT 'GPU' THEN M.dst_agent_id ELSE M.src_agent_id END AS agent
FROM rocpd_memory_copy M JOIN processes P ON P.guid = M.guid
LEFT JOIN rocpd_string N ON N.guid = M.guid AND N.id = M.name_id
LEFT JOIN rocpd_info_agent D ON D.guid = M.guid AND D.id = M.dst_agent_id
LEFT JOIN rocpd_info_agent S ON S.guid = M.guid AND S.id = M.src_agent_id"""


def operations(session: rocpd.Session) -> pd.DataFrame:
    """Kernels and copies with valid times, in the order of each agent."""
    rows = pd.concat([frame(session, KERNELS), frame(session, COPIES)], ignore_index=True)
    rows = rows[(rows["start"] > 0) & (rows["end"] >= rows["start"])]
    rows["agent"] = rows["agent"].astype("Int64").fillna(-1)
    return rows.sort_values(["rank", "agent", "start", "end", "kind", "row"], ignore_index=True)


def active_part(session: rocpd.Session, every: pd.DataFrame, rank: int) -> tuple[int, int]:
    """From the first to the last dispatch of the ranks whose clocks are known to compare, by the clock of one."""
    alignment = session.alignment
    clocks = {number: alignment.clock(number) for number in alignment.shifts}
    comparing = {number: clock and (clock.method != "start" or clock.ranks) for number, clock in clocks.items()}
    ranks = [number for number, group in comparing.items() if group == comparing[rank]]
    dispatched = every[(every["kind"] == 0) & every["rank"].isin(ranks)]
    offset = dispatched["rank"].map(lambda number: alignment.shifts[number].offset)
    own = alignment.shifts[rank].offset
    return int((dispatched["start"] + offset).min()) - own, int((dispatched["end"] + offset).max()) - own


def test_gpu_time_and_gaps_against_pandas(session: rocpd.Session) -> None:
    """In the active part of the job, of GPUs whether they work all the time or not."""
    every = operations(session)
    gpus = set(session.sql("SELECT rank, id FROM agents WHERE type = 'GPU'").fetchall())
    rows: dict[Any, Any] = {}
    gaps: list[int] = []
    for _, ops in every.groupby(["rank", "agent"]):
        rank, agent = int(ops["rank"].iloc[0]), int(ops["agent"].iloc[0])
        low, high = active_part(session, every, rank)
        inside = ops[(ops["start"] < high) & (ops["end"].clip(lower=ops["start"] + 1) > low)]
        if (rank, agent) not in gpus:
            low, high = max(low, int(ops["start"].min())), min(high, int(ops["end"].max()))
        if low < high:
            ends = pd.DataFrame({"start": [low, high], "end": [low, high]})
            lasting = inside[inside["end"] > inside["start"]]  # the others part no gap
            cut = pd.concat([lasting[["start", "end"]].clip(low, high), ends]).sort_values("start", kind="stable")
            gap = (cut["start"] - cut["end"].cummax().shift()).iloc[1:]
            gaps += gap[gap > 0].tolist()
            rows[rank, agent] = (len(inside), high - low, int(high - low - gap[gap > 0].sum()))
    ours = cells(session, "gpu-time", "rank agent operations span_ns busy_ns", everything=True)
    assert {(rank, -1 if agent is None else agent): tuple(rest) for rank, agent, *rest in ours} == rows
    edges = [0, 10e3, 20e3, 50e3, 100e3, 1e6, 10e6, 100e6, float("inf")]
    counts = pd.cut(pd.Series(gaps), edges).value_counts(sort=False)
    assert cells(session, "gaps", "gaps", everything=True) == counts.tolist()


def test_op_trace_against_pandas(session: rocpd.Session) -> None:
    theirs = operations(session)
    ours = pd.DataFrame(cells(session, "op-trace", "rank agent gap_ns duration_ns name"))
    assert len(ours) == len(theirs)
    theirs["gap"] = theirs["start"] - theirs.groupby(["rank", "agent"])["end"].transform(
        lambda end: end.cummax().shift()
    )
    gap = theirs["gap"].clip(lower=0)
    order = theirs.assign(gap=gap, duration=theirs["end"] - theirs["start"])
    assert ours[3].tolist() == order["duration"].tolist()
    assert ours[2].fillna(-1).astype("int64").tolist() == order["gap"].fillna(-1).astype("int64").tolist()
    assert ours[4].fillna("").tolist() == order["name"].fillna("").tolist()


def test_variability_against_pandas(session: rocpd.Session) -> None:
    theirs = operations(session)
    theirs["before"] = theirs.groupby(["rank", "agent"])["name"].shift().fillna("")
    theirs["duration"] = theirs["end"] - theirs["start"]
    sums = theirs.groupby(["kind", "name", "before"])["duration"].agg(["count", "sum", "min"])
    excess = sorted((sums["sum"] - sums["count"] * sums["min"]).tolist(), reverse=True)
    rows = cells(session, "variability", "calls excess_ns name after", sequence=1)
    named = [row for row in rows if row[2] is not None and "None" not in row[3]]
    if len(named) == len(rows):
        assert [row[1] for row in rows] == excess
    assert sum(row[0] for row in rows) == len(theirs)


def test_launch_delays_against_sql(session: rocpd.Session) -> None:
    """The join of views says the same where ids are sound."""
    sql = """
    SELECT SUM(MAX(W.start - R."end", 0)), COUNT(*) FROM (
        SELECT guid, stack_id, start, "end" FROM kernels UNION ALL
        SELECT guid, stack_id, start, "end" FROM memory_copies) W
    JOIN regions R ON R.guid = W.guid AND R.stack_id = W.stack_id
    WHERE W.start > 0 AND W."end" >= W.start AND R.start > 0 AND R."end" >= R.start AND W.stack_id > 0"""
    rows = cells(session, "launch", "delay_ns launched", everything=True)
    assert [(sum(row[0] for row in rows), sum(row[1] for row in rows))] == session.sql(sql).fetchall()


def test_calls_against_sql(session: rocpd.Session) -> None:
    """Times at all depths add up to those of all regions; every region is in the tree once."""
    sql = f'SELECT COUNT(*), SUM("end" - start) FROM regions WHERE {SOUND}'
    rows = session.summary("calls").df()
    assert [(int(rows["calls"].sum()), int(rows["cpu_ns"].sum()))] == session.sql(sql).fetchall()
    assert (rows["cpu_self_ns"] >= 0).all()
    assert (rows["gpu_ns"] >= rows["gpu_self_ns"]).all()
    top = rows[rows["depth"] == 0]
    assert top["gpu_ns"].sum() == rows["gpu_self_ns"].sum()
    assert top["percent"].sum() == pytest.approx(100)


def test_counters_against_the_view(session: rocpd.Session) -> None:
    values = frame(session, "SELECT kernel_name, counter_name, value FROM counters_collection")
    theirs = values.groupby(["kernel_name", "counter_name"], dropna=False)["value"].agg(["count", "min", "max", "sum"])
    ours = cells(session, "counters", "dispatches min max sum")
    assert sorted(tuple(0 if x is None else x for x in row) for row in ours) == [
        pytest.approx(row, rel=1e-12) for row in sorted(theirs.fillna(0).itertuples(index=False, name=None))
    ]


def test_parts_of_the_whole(session: rocpd.Session) -> None:
    """What is divided adds up; compute, exposed communication and exposed copies are the busy time."""
    for name in ("kernels", "copies", "api", "markers", "domains"):
        in_all = sum(cells(session, name, "total_ns"))
        for by in ("rank", "host", "agent", "stream"):
            assert sum(cells(session, name, "total_ns", by)) == in_all, (name, by)
    columns = "busy_ns compute_ns exposed_communication_ns exposed_copy_ns"
    for busy, *parts in cells(session, "overlap", columns):
        assert sum(parts) == busy
    columns = "rank busy_ns compute_ns communication_ns copy_ns"
    for everything in (False, True):
        ranks = sorted(cells(session, "ranks", columns, everything=everything))
        assert ranks == cells(session, "overlap", columns, "rank", everything=everything)
    assert sum(cells(session, "categories", "total_ns")) == sum(cells(session, "kernels", "total_ns"))


SUMS = {
    "memory": "allocations frees held_bytes unmatched_frees",
    "ranks": "kernels copies busy_ns compute_ns communication_ns copy_ns kernel_sum_ns",
    "calls": "gpu_self_ns",
    "waits": "wait_ns",
    "stacks": "self_ns idle_self_ns",
    "gpu-time": "operations sum_ns",
    "op-trace": "duration_ns",
    "launch": "launched delay_ns gpu_ns",
    "categories": "calls total_ns",
    "variability": "calls total_ns",
    "counters": "dispatches",
    "kernels": "calls total_ns",
    "copies": "calls total_ns bytes",
}
"""What of a table adds up over any division to the whole."""

_SUMMED = ("kernels", "copies", "kernel_sum_ns")


@on_a_job("name", SUMS)
def test_divisions_add_up_to_the_whole(name: str, session: rocpd.Session) -> None:
    in_all = sums(session, name)
    for by in SUMMARIES[TABLES[name]].by if name != "ranks" else WHERE_IT_RAN:
        for column, summed in sums(session, name, by).items():
            if name != "ranks" or by is not By.STREAM or column in _SUMMED:  # streams of an agent overlap
                assert summed == in_all[column], (column, by)


def sums(session: rocpd.Session, name: str, by: By | None = None) -> dict[str, Any]:
    """Return the columns of a table that add up, each with its sum."""
    table = session.summary(name, by)
    columns = dict(zip(table.columns, zip(*table, strict=True), strict=True))
    return {column: sum(columns[column]) for column in SUMS[name].split()}


@on_a_job("by", SUMMARIES["calls"].by)
def test_own_times_of_calls_stay_whole(by: By, session: rocpd.Session) -> None:
    for column in ("calls", "cpu_self_ns"):
        divided = (value for value in cells(session, "calls", column, by) if value is not None)
        assert sum(divided) == sum(cells(session, "calls", column))


def everything(session: rocpd.Session, by: By | None = None) -> dict[str, Any]:
    """Return name -> columns and rows of all tables, or what they lack; each rank is read once for all analyses."""
    names = [name for name, of in SUMMARIES.items() if by is None or by in of.by]
    reading = Reading(session, Options(by, sequence=1))
    rows: dict[str, Any] = {}
    for name, tables in run_planned(reading, planned(names)):
        try:
            rows |= {table.name: (table.columns, table.fetchall()) for table in tables}
        except RocpdError as error:
            if "in the selection" not in error.message:
                raise
            rows[name] = error.message
    if by is None:
        amd = summarize(session, SummaryOptions(by_rank=True, domains=True))
        rows["amd"] = [(table.name, table.columns, table.fetchall()) for table in amd]
    return rows


def test_any_split_gives_the_same(
    session: rocpd.Session, whole: dict[str, Any], files: tuple[Path, ...], tmp_path: Path
) -> None:
    with rocpd.connect(files[:2]) as some:
        merge(some, tmp_path / "merged.db")
    with rocpd.connect([files[2], tmp_path / "merged.db"]) as other:
        assert everything(other) == whole
        for name in ("kernels", "overlap"):
            for by in ("step", "marker"):
                assert other.summary(name, by).fetchall() == session.summary(name, by).fetchall()


@pytest.mark.soak
@pytest.mark.parametrize("by", sample([None, *By], 3))
def test_work_can_be_sent_and_answers_come_back(
    by: By | None, session: rocpd.Session, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs in another process is all that a task holds, and nothing of it is lost on the way."""
    here = everything(session, by) if by else whole

    def sent(self: rocpd.Session, work: Callable[[RankReader], object]) -> Iterator[tuple[Rank, object]]:
        for rank in self.ranks:
            task = pickle.loads(pickle.dumps(RankTask(rank, self.rank_tables(rank.number), work)))
            yield rank, pickle.loads(pickle.dumps(run_task(task)))

    monkeypatch.setattr(rocpd.Session, "map_ranks", sent)
    assert everything(session, by) == here


@on_a_job("name", ["kernels", "api", "gpu-time", "stacks"])
def test_clipped_windows_add_up(name: str, files: tuple[Path, ...]) -> None:
    """Adjoining windows, each clipped, hold exactly the time of the whole."""
    columns = {"gpu-time": "busy_ns", "stacks": "self_ns"}.get(name, "total_ns")

    def total(window: rocpd.Window | None) -> int:
        with rocpd.connect(files, window=window) as cut:
            return sum(cells(cut, name, columns))

    def total_of(edges: list[str]) -> int:
        return sum(total(rocpd.Window(a, b, clip=True)) for a, b in pairwise(edges))

    # What agents do outside of the active part of a job counts in windows alone.
    in_all = total_of(["0%", "52%", "100%"]) if name == "gpu-time" else total(None)
    assert total_of(["0%", "45%", "60%", "63.5%", "100%"]) == in_all


PROFILES: list[Callable[[Path], JobOptions]] = [
    lambda out: JobOptions(out, ranks=4, nodes=2, steps=6, seed=3, profile="llm"),
    lambda out: JobOptions(out, ranks=4, nodes=1, steps=6, seed=5, profile="gemm"),
    lambda out: JobOptions(out, ranks=4, nodes=4, steps=6, seed=1, profile="hpc"),
]


@pytest.fixture(params=PROFILES, ids=["llm", "gemm", "hpc"])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[JobPlan, rocpd.Session]]:
    options = request.param(tmp_path / "job")
    with rocpd.connect(simulate(options)) as opened:
        yield plan(options), opened


def test_planted_facts_are_found(planted: tuple[JobPlan, rocpd.Session]) -> None:
    facts, session = planted
    assert cells(session, "stragglers", "rank")[0] == facts.straggler_rank
    assert set(cells(session, "waits", "late")[:3]) == {facts.straggler_rank}
    assert all(waiter != late for waiter, late in cells(session, "waits", "waiter late"))
    computing = {row[0]: row[1] for row in cells(session, "imbalance", "measure max_rank")}
    assert computing["compute_ns"] == facts.straggler_rank
    step, over = cells(session, "steps", "step over_median")[0]
    assert step == f"step {facts.slow_step}"
    assert over == pytest.approx(facts.factor(Plant.SLOW_STEP), rel=0.25)
    assert len(cells(session, "collectives", "number")) == len(facts.collectives())
    exposed = cells(session, "overlap", "rank exposed_communication_ns")
    assert min(exposed, key=lambda row: row[1])[0] == facts.straggler_rank


def test_collectives_of_adjoining_windows_are_those_of_the_job(tmp_path: Path) -> None:
    """Each is in exactly one of them, and is judged there as in the whole: edges hit ranks at different points."""
    files = simulate(JobOptions(tmp_path / "job", ranks=4, nodes=2, steps=4, seed=14, start_spread=0.004))
    columns = "name number group straggler wait_ns min_ns max_ns"
    with rocpd.connect(files) as opened:
        whole = cells(opened, "collectives", columns)
        for clip in (False, True):
            for edges in (["0%", "41.3%", "41.9%", "66%", "71%", "100%"], ["0%", "55%", "100%"]):
                windows = [opened.within(rocpd.Window(a, b, clip=clip)) for a, b in pairwise(edges)]
                parts = [row for window in windows for row in some(window, columns)]
                assert sorted(parts) == sorted(whole)


def some(session: rocpd.Session, columns: str) -> list[Any]:
    """Return the collectives of a session; none where it has none."""
    try:
        return cells(session, "collectives", columns)
    except RocpdError:
        return []


@on_a_job("form", ["full", "mangled", "truncated"])
def test_what_kernels_do_does_not_depend_on_how_they_are_shown(form: str, session: rocpd.Session) -> None:
    """Forward and backward attention have one launcher, whose name alone says nothing."""
    for name in ("categories", "overlap", "ranks", "imbalance", "stragglers", "waits", "communication"):
        usual, shown = (session.summary(name, kernel_names=names).fetchall() for names in ("display", form))
        assert shown == usual, name
    usual, shown = (
        cells(session, "variability-total", "what total_ns", kernel_names=names) for names in ("display", form)
    )
    assert shown == usual
    usual, shown = (session.summary("collectives", kernel_names=names).fetchall() for names in ("display", form))
    assert [row[1:] for row in shown] == [row[1:] for row in usual]
    if form == "truncated":
        assert {row[0] for row in session.summary("kernels", kernel_names=form)} >= {"kentry"}


def test_people_see_short_names_and_programs_full_ones(session: rocpd.Session, tmp_path: Path) -> None:
    for name in ("kernels", "largest-gaps", "launch", "op-trace", "collectives", "variability", "counters-wide"):
        table = session.summary(name)
        columns = [index for index, field in enumerate(table.fields) if field.is_kernel]
        people, rows = list(table.for_people()), table.fetchall()
        assert columns
        assert len(people) == len(rows)
        for row, shown in zip(rows, people, strict=True):
            assert [cell for i, cell in enumerate(row) if i not in columns] == [
                cell for i, cell in enumerate(shown) if i not in columns
            ]
        for index in columns:
            assert len({row[index] for row in people}) == len({row[index] for row in rows})
            assert not {row[index] for row in people} & {row[index] for row in rows if "(" in (row[index] or "")}
        full = session.summary(name, kernel_names="full")
        assert list(full.for_people()) == full.fetchall() == rows
