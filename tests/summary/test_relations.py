"""Every table of every analysis is a table of SQL, with the same values to the bit, whatever part of a job counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import rocpd
from rocpd.base import QueryError, RocpdError, Row, UsageError, Value
from rocpd.facts.rank import By
from rocpd.federate.open.identify import Rank
from rocpd.federate.relation import RankRelation
from rocpd.federate.run.calculated import comparable
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.calculated import CalculatedColumn
from rocpd.schema.load import TABLES as BASE_TABLES
from rocpd.schema.load import VIEWS, view
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.reading import DIVISIONS, run
from rocpd.summary.registry import SUMMARIES, TABLES
from rocpd.summary.relations import BARE, FACTS, RELATIONS, find
from rocpd.summary.result import Summary
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.soak import sample, sized
from tests.summary.test_on_jobs import make_operators_and_stacks

pytestmark = pytest.mark.soak(1.5)  # on a job that is longer there

BY_NAME_OF_DIVISION = {"imbalance", "steps", "phases", "counters-wide"}
"""Tables with columns that are called by what divides, or by what was counted: those are not in SQL."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    options = JobOptions(tmp_path_factory.mktemp("job"), ranks=3, nodes=2, steps=sized(3, 5), seed=11, counters="many")
    paths = simulate(options)
    for path in paths:
        make_operators_and_stacks(path)
    return paths


@pytest.fixture(scope="module")
def session(job: tuple[Path, ...]) -> Iterator[rocpd.Session]:
    with rocpd.connect(job) as opened:
        yield opened


@pytest.fixture(scope="module")
def parts(session: rocpd.Session) -> list[rocpd.Session]:
    """All of a job, a window, two ranks and some kernels of it."""
    filtered = [session.where(rocpd.Filters(ranks="0-1")), session.where(rocpd.Filters(kernel="Cijk|nccl"))]
    return [session, session.within(rocpd.Window("20%", "70%")), *filtered]


def in_sql(table: str) -> str:
    return f"summary.{table.replace('-', '_')}"


def rows_of(table: Summary, columns: Sequence[str]) -> list[Row]:
    """Return the rows with NULL for columns that a table lacks."""
    return [tuple(dict(zip(table.columns, row, strict=True)).get(column) for column in columns) for row in table]


def exactly(rows: Sequence[Row]) -> list[tuple[tuple[type, object], ...]]:
    """Return rows that differ where a whole number became a real one."""
    return [tuple((type(value), value) for value in row) for row in rows]


@pytest.mark.soak(1.5)
@pytest.mark.parametrize("analysis", SUMMARIES)
def test_every_table_has_the_values_of_the_summary(analysis: str, parts: list[rocpd.Session]) -> None:
    for part in sample(parts, 4, list(SUMMARIES).index(analysis) % 4):
        try:
            expected = {table.name: table for table in run(part, analysis)}
        except RocpdError:
            expected = {}
        for name in SUMMARIES[analysis].tables:
            actual = part.sql(f"SELECT * FROM {in_sql(name)}")
            if name not in expected:
                assert actual.fetchall() == []
                assert any(note.startswith(f"{name.replace('-', '_')} is empty: ") for note in part.notes)
                continue
            if name not in BY_NAME_OF_DIVISION:
                assert set(expected[name].columns) <= set(actual.columns)
            assert exactly(actual.fetchall()) == exactly(rows_of(expected[name], actual.columns))


def test_the_job_of_these_tests_fills_most_tables(session: rocpd.Session) -> None:
    full = [name for name in TABLES if session.sql(f"SELECT * FROM {in_sql(name)} LIMIT 1").fetchall()]
    assert len(full) > 75


@pytest.mark.parametrize(
    ("table", "by"),
    [
        ("kernels", "rank"), ("kernels", "step"), ("budget", "agent"), ("budget", "marker"), ("copies", "host"),
        ("ranks", "host"), ("imbalance", "host"), ("steps", "host"), ("gaps", "stream"), ("launch", "api"),
        ("l2", "dispatch"), ("op-trace", "rank"), ("stragglers", "command"), ("idle-calls", "rank"),
    ],
)  # fmt: skip
def test_the_first_argument_divides(table: str, by: str, session: rocpd.Session) -> None:
    expected = session.summary(table, by)
    actual = session.sql(f"SELECT * FROM {in_sql(table)}('{by}')")
    assert exactly(actual.fetchall()) == exactly(rows_of(expected, actual.columns))
    assert expected.fetchall()
    assert {field.name for field in DIVISIONS[By(by)]} <= set(actual.columns)


def test_options_are_arguments(session: rocpd.Session) -> None:
    assert len(session.sql("SELECT * FROM largest_gaps WHERE top = 3").fetchall()) == 3
    sql = "SELECT rank, part, time_ns, per_step_ns, percent FROM budget WHERE divided_by = 'rank'"
    answers = [session.sql(sql).fetchall()]
    for condition, options in (("everything = 1", {"everything": True}), ("step_marker = '^s'", {"step_marker": "^s"})):
        answers.append(session.sql(f"{sql} AND {condition}").fetchall())
        assert answers[-1] == session.summary("budget", "rank", **options).fetchall()
    assert len(set(map(tuple, answers))) > 1


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM budget('moon')", "one of all, rank, host, agent, step, marker"),
        ("SELECT * FROM launch WHERE bins = 0", "bins 0: not a whole number of at least 1"),
        ("SELECT * FROM l2 WHERE per = 'hour'", "one of kernel, wave, cycle, second"),
        ("SELECT * FROM steps WHERE step_marker = '['", "not a regular expression"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(sql: str, message: str, session: rocpd.Session) -> None:
    with pytest.raises(UsageError) as caught:
        session.sql(sql).fetchall()
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_they_join_each_other_and_views(session: rocpd.Session) -> None:
    caused = {row[0]: row[4] for row in session.summary("stragglers")}
    idle = {row[0]: row[4] for row in session.summary("gpu-time", "rank")}
    sql = "SELECT S.rank, caused_wait_ns, idle_ns FROM stragglers S JOIN gpu_time('rank') G ON G.rank = S.rank"
    assert sorted(session.sql(sql).fetchall()) == [(rank, caused[rank], idle[rank]) for rank in sorted(caused)]
    assert len(caused) == 3
    sql = """SELECT S.name, S.calls, count(*) FROM summary.kernels S JOIN kernels K ON K.name = S.name
        GROUP BY S.name ORDER BY S.total_ns DESC, S.name"""
    assert session.sql(sql).fetchall() == [(row[0], row[1], row[1]) for row in session.summary("kernels")]
    sql = "SELECT count(*) FROM kernels K LEFT JOIN basic_blocks B ON B.kernel = K.name"
    assert session.sql(sql).fetchall() == session.sql("SELECT count(*) FROM kernels").fetchall()


@pytest.mark.parametrize("table", ["budget", "op_trace"])
def test_a_table_joins_itself(table: str, session: rocpd.Session) -> None:
    """Rows that are read as they come are kept where they are wanted again."""
    column, argument = {"budget": ("part", "('rank')"), "op_trace": ("number", "")}[table]
    rows = session.sql(f"SELECT rank, {column} FROM {table}{argument}").fetchall()
    joined = f"{table}{argument} A JOIN {table}{argument} B ON B.rank = A.rank AND A.{column} = B.{column}"
    assert session.sql(f"SELECT count(*) FROM {joined}").fetchall() == [(sum(rows.count(row) for row in rows),)]


def test_names_of_views_keep_their_meaning(session: rocpd.Session) -> None:
    for name in VIEWS:
        columns = tuple(column.name for column in view(name).columns)
        assert session.sql(f"SELECT * FROM {name} LIMIT 0").columns[: len(columns)] == columns
    assert find("kernels") is None
    assert find("summary.kernels") == "summary.kernels"
    assert set(BARE).isdisjoint((*VIEWS, *BASE_TABLES))
    assert len({name.rpartition(".")[2] for name in RELATIONS}) == len(RELATIONS) == len(TABLES) + len(FACTS) + 1


@pytest.mark.parametrize(
    "sql", ["INSERT INTO budget(part) VALUES ('x')", "DROP TABLE budget", "DELETE FROM summary.idle"]
)
def test_nothing_writes_to_them(sql: str, session: rocpd.Session) -> None:
    with pytest.raises(QueryError):
        session.execute(sql).fetchall()


def test_every_way_to_open_a_job_answers_alike(
    job: tuple[Path, ...], session: rocpd.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT * FROM summary.kernels('rank')"
    expected = session.sql(sql).fetchall()
    with rocpd.connect(session.merge(tmp_path / "merged.db")) as merged:
        assert merged.sql(sql).fetchall() == expected
    with pytest.raises(UsageError, match="kernels is calculated from all ranks together"):
        session.execute(sql, strategy="aggregates")
    monkeypatch.setattr("rocpd.federate.engine.ATTACH_LIMIT", 1)
    with rocpd.connect(job) as copied:
        assert copied.sql(sql).fetchall() == expected
        assert not any("copying" in note for note in copied.notes)


def test_the_command_line_knows_them(job: tuple[Path, ...], cli: Cli) -> None:
    listed = cli("schema", "--format", "csv").out
    assert "summary.largest_gaps,calculated," in listed
    assert cli("schema", "budget").out == cli("schema", "summary.budget").out
    assert "compute; communication, and copies" in cli("schema", "budget").out
    assert "step_marker  argument" in cli("schema", "budget").out
    assert "did you mean summary.budget" in cli("schema", "summary.budgt").err
    assert "did you mean budget?" in cli("query", "select * from summary.budgt", *job).err
    assert "budget is calculated from all ranks" in cli("query", "--explain", "select * from budget", *job).out


# --- tables of ranks


def starts_and_names(reader: RankReader) -> tuple[Sequence[Value], ...]:
    """Return starts as numpy has them and names, of dispatches in order of their ids."""
    rows = reader.rows("SELECT start, name FROM kernels ORDER BY id")
    return np.array([row[0] for row in rows], np.int64), [row[1] for row in rows]  # type: ignore[return-value]


DISPATCHES = RankRelation(
    "dispatches_of_ranks",
    "Starts of dispatches.",
    (CalculatedColumn("at", "ns", "start"), CalculatedColumn("name", "", "kernel")),
    starts_and_names,
)


@pytest.fixture
def with_dispatches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocpd.summary.relations.RELATIONS", {**RELATIONS, DISPATCHES.name: lambda: DISPATCHES})


@pytest.mark.usefixtures("with_dispatches")
def test_a_table_of_ranks_has_the_rows_of_all_ranks(job: tuple[Path, ...]) -> None:
    with rocpd.connect(job) as session:
        expected = session.sql("SELECT start, name, guid, rank, hostname FROM kernels ORDER BY rank, id").fetchall()
        assert exactly(session.sql("SELECT * FROM dispatches_of_ranks").fetchall()) == exactly(expected)
        part = session.within(rocpd.Window("20%", "50%"))
        some = part.sql("SELECT start, name, guid, rank, hostname FROM kernels ORDER BY rank, id").fetchall()
        assert part.sql("SELECT * FROM dispatches_of_ranks").fetchall() == some != expected
        joined = "SELECT count(*) FROM kernels K JOIN dispatches_of_ranks D ON D.rank = K.rank AND D.at = K.start"
        (count,) = session.sql(f"{joined} AND D.name = K.name").fetchall()[0]
        assert count >= len(expected)


@pytest.mark.usefixtures("with_dispatches")
@pytest.mark.parametrize("condition", ["rank = 1", "rank = 1.0", "rank = ?", "rank IN (1)", "guid = ?", "rank + 0 = 1"])
def test_one_rank_of_it_is_read_alone(condition: str, job: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with rocpd.connect(job) as session:
        expected = session.sql("SELECT start FROM kernels WHERE rank = 1 ORDER BY id").fetchall()
        read: list[int] = []
        of_ranks = rocpd.Session.of_ranks

        def counted(self: rocpd.Session, ranks: tuple[Rank, ...]) -> rocpd.Session:
            read.append(len(ranks))
            return of_ranks(self, ranks)

        monkeypatch.setattr(rocpd.Session, "of_ranks", counted)
        values = [session.ranks[1].guid if "guid" in condition else 1] if "?" in condition else None
        assert session.sql(f"SELECT at FROM dispatches_of_ranks WHERE {condition}", values).fetchall() == expected
        assert read == [3 if "+" in condition else 1]


@pytest.mark.usefixtures("with_dispatches")
def test_a_rank_that_is_not_there_has_no_rows(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("gemm", 1, 2))
    for condition in ("rank = 7", "guid = 'x'", "rank = NULL", "rank = 'x'", "at = 7"):
        assert session.sql(f"SELECT * FROM dispatches_of_ranks WHERE {condition}").fetchall() == []


@pytest.mark.parametrize(
    ("one", "other"), [("3", 3), ("3.0", 3), (" 3 ", 3.0), ("9007199254740993", 2**53 + 1), ("1e3", 1000), (1, 1.0)]
)
def test_what_sqlite_may_take_for_equal_compares_equal(one: Value, other: Value) -> None:
    assert comparable(one) == comparable(other)
    assert comparable("nan") == comparable("nan") != comparable("gemm")


def test_whole_numbers_beyond_64_bits_become_reals(open_job: OpenJob, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = RankRelation("huge", "", (CalculatedColumn("x"),), too_large)
    monkeypatch.setattr("rocpd.summary.relations.RELATIONS", {"huge": lambda: huge})
    session = open_job(TraceBuilder().kernel("gemm", 1, 2))
    assert session.sql("SELECT x FROM huge").fetchall() == [(float(1 << 70),), (-(1 << 63),)]


def too_large(_reader: RankReader) -> tuple[Sequence[Value], ...]:
    return ([1 << 70, -(1 << 63)],)
