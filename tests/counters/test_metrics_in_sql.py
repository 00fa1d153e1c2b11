"""`metrics` in SQL says what panels and derived counters say, however the job is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError, UsageError
from rocpd.counters.panels import PANELS
from rocpd.federate.run import attach
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.counters.test_panels import job

COLUMNS = "kernel, metric, value, unit, peak, percent"


@pytest.fixture
def session(open_job: OpenJob) -> rocpd.Session:
    return open_job(*job())


def answers(session: rocpd.Session, sql: str) -> list[tuple[object, ...]]:
    return session.sql(sql).fetchall()


@pytest.mark.parametrize(
    ("by", "per"), [(None, "kernel"), ("rank", "wave"), ("dispatch", "second"), ("agent", "cycle")]
)
def test_it_has_what_panels_show(session: rocpd.Session, by: str | None, per: str) -> None:
    division = {None: "", "rank": "rank, ", "dispatch": "rank, dispatch, ", "agent": "rank, agent, "}[by]
    columns = f"{division}{COLUMNS}, of_sums, min, max, dispatches, missing, note"
    metrics = f"metrics('{by or 'all'}', '{per}')"
    whole = answers(session, f"SELECT panel, {columns} FROM {metrics}")
    for panel in PANELS:
        table = session.summary(panel, by, per=per)
        places = [table.columns.index(name) for name in columns.split(", ")]
        expected = [tuple(row[place] for place in places) for row in table]
        assert [row[1:] for row in whole if row[0] == panel] == expected
    some = answers(session, f"SELECT panel, {columns} FROM {metrics} WHERE panel = 'l2'")
    assert some == [row for row in whole if row[0] == "l2"]


def test_derived_counters_are_in_it(session: rocpd.Session) -> None:
    rows = answers(session, "SELECT kernel, metric, value, missing FROM metrics WHERE panel = 'derived'")
    assert [row[:3] for row in rows if row[0]] == [row[:3] for row in session.summary("derived")]
    assert {row[1]: row[3] for row in rows if not row[0]} == {
        row[0]: row[3] for row in session.summary("derived-missing")
    }


def test_it_joins_with_views_and_goes_into_temp_tables(session: rocpd.Session) -> None:
    script = """CREATE TEMP TABLE hits AS SELECT * FROM metrics WHERE metric = 'L2 Cache Hit Rate';
        SELECT K.rank, K.name, H.value FROM kernels K LEFT JOIN hits H ON H.kernel = K.name ORDER BY K.rank, K.start"""
    assert session.execute(script).fetchall() == [(0, "gemm", 70.0), (0, "relu", None), (1, "gemm", 70.0)]
    each = """SELECT R.rank, M.value FROM (SELECT DISTINCT rank FROM kernels) R
        JOIN metrics('rank') M ON M.rank = R.rank WHERE M.metric = 'L2 Cache Hit Rate' AND M.kernel = 'gemm'"""
    assert sorted(answers(session, each)) == [(0, 50.0), (1, 90.0)]


def test_it_follows_the_selection(session: rocpd.Session) -> None:
    hits = "SELECT kernel, value FROM metrics WHERE metric = 'L2 Cache Hit Rate'"
    assert answers(session.where(rocpd.Filters(ranks="1")), hits) == [("gemm", 90.0)]
    assert answers(session.where(rocpd.Filters(kernel="relu")), hits) == [("relu", None)]


def test_every_way_to_open_a_job_answers_alike(
    session: rocpd.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = "SELECT * FROM metrics('rank') ORDER BY 1, 2, 7, 8, rank"
    expected = answers(session, everything)
    assert session.execute(everything, strategy="attached").fetchall() == expected
    with pytest.raises(UsageError, match="metrics is calculated from all ranks together"):
        session.execute(everything, strategy="rows")
    with rocpd.connect(session.merge(tmp_path / "merged.db")) as merged:
        assert answers(merged, everything) == expected
    monkeypatch.setattr("rocpd.federate.engine.ATTACH_LIMIT", 1)
    assert attach.ATTACH_LIMIT > 1
    with rocpd.connect([rank.opening.path for rank in session.ranks]) as copied:
        assert answers(copied, everything) == expected


def test_without_counters_it_is_empty_and_says_why(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("gemm", 1000, 2000))
    assert answers(session, "SELECT * FROM metrics") == []
    assert session.notes[-1].startswith("metrics is empty: no counter values")


@pytest.mark.parametrize("condition", ["= 'L2' COLLATE NOCASE", "= 'l2  ' COLLATE RTRIM", "IN ('l2')"])
def test_the_panel_is_compared_as_anywhere_in_sql(session: rocpd.Session, condition: str) -> None:
    rows = answers(session, "SELECT * FROM metrics WHERE panel = 'l2'")
    assert rows
    assert answers(session, f"SELECT * FROM metrics WHERE panel {condition}") == rows


def test_an_unknown_gpu_says_so(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).counter("SQ_WAVES", 4)
    session = open_job(trace.sql("UPDATE rocpd_info_agent{uuid} SET name = 'gfx1100'"))
    assert answers(session, "SELECT * FROM metrics WHERE panel = 'l2'") == []
    assert "counters are known" in session.notes[-1]


@pytest.mark.parametrize("call", ["metrics('moon')", "metrics('rank', 'hour')"])
def test_an_argument_that_means_nothing_is_refused(session: rocpd.Session, call: str) -> None:
    with pytest.raises(UsageError, match=r"there is no such .+"):
        answers(session, f"SELECT * FROM {call}")


def test_nothing_writes_to_it(session: rocpd.Session) -> None:
    for statement in ("INSERT INTO metrics(metric) VALUES ('x')", "DROP TABLE metrics", "DELETE FROM metrics"):
        with pytest.raises(RocpdError):
            session.execute(statement).fetchall()


def test_the_command_line_knows_it(session: rocpd.Session, cli: Cli) -> None:
    paths = [rank.opening.path for rank in session.ranks]
    sql = "select kernel, value, unit from metrics where metric = 'L2 Cache Hit Rate' and value > 1"
    assert cli("query", sql, *paths, "--format", "csv").out == "kernel,value,unit\ngemm,70.0,%\n"
    assert "kernel; NULL: every one" in cli("schema", "metrics").out
    assert "did you mean metrics?" in cli("query", "select * from metric", *paths).err
