"""What a statement runs as: rows per rank, partial aggregates per rank, or attached as written, and why."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

import rocpd
from rocpd.base import UsageError
from rocpd.federate.limits import Limits
from rocpd.federate.plan.planner import plan
from rocpd.federate.plan.steps import Strategy
from rocpd.schema.load import VIEWS, clauses, view
from rocpd.summary.relations import RELATIONS
from tests.build import TraceBuilder
from tests.conftest import Cli

ROOT = Path(__file__).parents[2]
KEY = "r.guid = k.guid AND r.stack_id = k.stack_id"

ROWS = (
    "SELECT name FROM kernels",
    "SELECT * FROM kernels WHERE duration > 5;",
    'SELECT "end" - start AS d FROM [rocpd_region] WHERE nid IN (1, 2) OR tid IS NOT NULL',
    "select k.name, r.name from kernels k join regions r on r.guid = k.guid and r.stack_id = k.stack_id",
    f"SELECT * FROM kernels k CROSS JOIN regions r WHERE {KEY}",
    f"SELECT * FROM kernels k LEFT OUTER JOIN regions r ON {KEY}",
    "SELECT * FROM kernels k JOIN regions r USING (guid, stack_id)",
    "SELECT * FROM kernels k JOIN regions r ON r.rank = k.rank AND r.tid = k.tid",
    "SELECT k.name FROM (SELECT guid AS g, name FROM kernels) k JOIN processes p ON p.guid = k.g",
    "SELECT rank, count(*), max(name) FROM kernels GROUP BY rank",
    "SELECT guid AS g, sum(duration) FROM kernels GROUP BY g HAVING sum(duration) > 5",
    "SELECT sum(duration), rank FROM kernels GROUP BY name, 2",
    "WITH k AS (SELECT * FROM kernels) SELECT name FROM k WHERE rank = 1",
    "SELECT * FROM (SELECT name FROM kernels UNION ALL SELECT name FROM regions)",
    "SELECT name FROM kernels UNION ALL SELECT name FROM regions",
    "SELECT lag(start) OVER (PARTITION BY rank ORDER BY start) FROM kernels",
    "SELECT name, ? FROM kernels",
    "SELECT CASE WHEN duration > 5 THEN 'long' ELSE 'short' END, CAST(tid AS TEXT) FROM regions",
    "SELECT json_extract(extdata, '$.message') FROM regions",
    "SELECT k.name FROM kernels k JOIN top_kernels t ON t.name = k.name",
    f"SELECT * FROM kernels k, regions r WHERE {KEY}",
)
AGGREGATES = (
    "SELECT count(*) FROM kernels",
    "SELECT name, avg(duration), total(duration), min(start) FROM kernels GROUP BY 1 ORDER BY 2 DESC LIMIT 5",
    "SELECT upper(name) AS n, count(*) c FROM kernels GROUP BY n HAVING c > 1 AND n <> ''",
    "SELECT count(DISTINCT name), sum(duration) FILTER (WHERE rank = 0) FROM kernels",
    "SELECT name, sum(duration) * 100.0 / sum(sum(duration)) OVER () FROM kernels GROUP BY name",
    "SELECT name, rank() OVER (ORDER BY sum(duration) DESC) FROM kernels GROUP BY name",
    "SELECT rank, sum(duration), sum(sum(duration)) OVER () FROM kernels GROUP BY rank",
    "SELECT DISTINCT name FROM kernels",
    "SELECT * FROM kernels ORDER BY duration DESC, name COLLATE NOCASE LIMIT 10 OFFSET 2",
    "SELECT * FROM top_kernels LIMIT 3",
    "SELECT t.name, b.Busy FROM top_kernels t CROSS JOIN busy b",
    "WITH t AS (SELECT name, count(*) n FROM kernels GROUP BY name) SELECT max(n) FROM t WHERE name LIKE 'g%'",
    "SELECT name, count(*) FROM kernels GROUP BY name UNION ALL SELECT name, count(*) FROM regions GROUP BY name",
    "SELECT n, x FROM (SELECT name n, sum(duration) x FROM kernels GROUP BY name ORDER BY x) ORDER BY (SELECT 1)",
    "SELECT row_number() OVER (ORDER BY n) FROM (SELECT name n FROM kernels GROUP BY name)",
    # The guid that a LEFT JOIN adds may be NULL: that group has rows of all ranks.
    f"SELECT r.guid, count(*) FROM kernels k LEFT JOIN regions r ON {KEY} GROUP BY r.guid",
)
ATTACHED = {
    "SELECT 1": "no FROM",
    "SELECT * FROM kernels a JOIN kernels b ON a.name = b.name": "across ranks",
    "SELECT * FROM kernels CROSS JOIN regions": "across ranks",
    f"SELECT * FROM kernels k LEFT JOIN regions r ON k.name = r.name WHERE {KEY}": "across ranks",
    "SELECT * FROM (SELECT name AS guid FROM kernels) a JOIN regions b ON a.guid = b.guid": "across ranks",
    "SELECT * FROM (SELECT guid FROM kernels LIMIT 9) t JOIN kernels k ON 1 JOIN regions USING (guid)": "across ranks",
    "SELECT * FROM top_kernels t LEFT JOIN kernels k ON t.name = k.name": "LEFT JOIN of ranks",
    "SELECT * FROM kernels k RIGHT JOIN regions r USING (guid)": "RIGHT",
    "SELECT * FROM kernels NATURAL JOIN regions": "join",
    "WITH RECURSIVE n(i) AS (SELECT 1) SELECT i FROM n": "recursive",
    "WITH n(i) AS (SELECT 1) SELECT i FROM n": "more than name AS",
    "SELECT row_number() OVER (ORDER BY start) FROM kernels": "a window over all ranks",
    "SELECT sum(duration) OVER w FROM kernels WINDOW w AS (PARTITION BY rank)": "WINDOW",
    "SELECT random() FROM kernels": "random",
    "SELECT date('now') FROM kernels": "date",
    "SELECT 1_000 FROM kernels": "number followed by letters",
    "SELECT ?1 FROM kernels": "",
    "SELECT median(duration) FROM kernels": "median",
    "SELECT group_concat(name) FROM kernels": "group_concat",
    "SELECT sum(DISTINCT duration) FROM kernels": "DISTINCT",
    "SELECT count(DISTINCT name), count(DISTINCT tid) FROM kernels": "several DISTINCT",
    "SELECT name, tid, max(start) FROM kernels GROUP BY name": "outside GROUP BY",
    "SELECT *, count(*) FROM kernels": "*",
    "SELECT max(n) FROM (SELECT count(*) n FROM kernels GROUP BY name) WHERE n > (SELECT avg(duration) FROM kernels)":
        "inside an expression",
    "SELECT name FROM kernels WHERE duration > (SELECT avg(duration) FROM kernels)": "subquery",
    "SELECT name FROM kernels WHERE name IN (SELECT name FROM regions)": "in an expression",
    "SELECT name FROM kernels WHERE name = 'a' COLLATE NOCASE": "collat",
    "SELECT name FROM kernels ORDER BY name NULLS LAST": "",
    "SELECT name FROM kernels UNION SELECT name FROM regions": "UNION ALL",
    "SELECT tid + 1 || 'x', count(*) FROM kernels GROUP BY tid + 1": "change its words",
    "SELECT tid = 1 < 2, count(*) FROM kernels GROUP BY tid": "without parentheses",
    'SELECT "no such column" FROM kernels': "no column",
    "SELECT nowhere_to_be_found FROM kernels": "no such column",
    "SELECT * FROM nowhere": "no such table",
    "SELECT * FROM main.kernels": "",
    "VALUES (1)": "not one SELECT",
    "SELECT 1; SELECT 2": "not one SELECT",
    "CREATE TEMP TABLE t AS SELECT * FROM kernels": "not one SELECT",
    "not SQL at all": "",
    "WITH gathered_0 AS (SELECT max(start) n FROM kernels) SELECT x, (SELECT count(*) FROM gathered_0)"
    " FROM (SELECT count(*) x FROM regions)": "a name that plans use",
    "SELECT 1 AS keyed__x": "a name that plans use",
    "SELECT count(*) AS keyed__kernels FROM kernels": "a name that plans use",
    "SELECT name AS lookup__kernels__x, 'lookup__kernels__y' FROM kernels": "a name that plans use",
}  # fmt: skip


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    ranks = [
        TraceBuilder(n).kernel("gemm", 10, 20 + n, stack=1).kernel(f"k{n}", 30, 35, tid=None).region("f", 1, 2, stack=1)
        .copy(3, 9 + n).alloc(1, 2).sample("s", 4).counter("c", 1.5).region("range", 1, 9, message=f"step {n}")
        for n in range(3)
    ]  # fmt: skip
    files = [rank.write(folder / f"{n}.db") for n, rank in enumerate(ranks)]
    with rocpd.connect(files, limits=Limits(small_bytes=0)) as opened:
        yield opened


def agrees(session: rocpd.Session, sql: str, parameters: tuple[object, ...] = ()) -> None:
    """Check columns, rows and, where there is one, order against the attached statement."""
    planned, attached = (session.execute(sql, parameters, strategy=s) for s in ("auto", "attached"))  # type: ignore[arg-type]
    assert planned.columns == attached.columns
    rows, expected = planned.fetchall(), attached.fetchall()
    if " order by " not in sql.lower():
        rows, expected = sorted(rows, key=repr), sorted(expected, key=repr)
    assert rows == expected


@pytest.mark.parametrize("sql", ROWS)
def test_every_rank_answers_with_its_own_rows(sql: str, session: rocpd.Session) -> None:
    parameters = (7,) * sql.count("?")
    chosen = plan(sql, session.attached_tables, len(parameters))
    assert (chosen.strategy, chosen.reason) == (Strategy.ROWS, "every rank returns its own rows")
    agrees(session, sql, parameters)


@pytest.mark.parametrize("sql", AGGREGATES)
def test_every_rank_answers_with_its_share(sql: str, session: rocpd.Session) -> None:
    chosen = plan(sql, session.attached_tables)
    assert chosen.strategy is Strategy.AGGREGATES, chosen.reason
    agrees(session, sql)


@pytest.mark.parametrize("sql", ATTACHED)
def test_what_runs_attached_and_why(sql: str, session: rocpd.Session) -> None:
    chosen = plan(sql, session.attached_tables)
    assert chosen.strategy is Strategy.ATTACHED
    assert ATTACHED[sql] in chosen.reason
    assert chosen.sql == sql


def test_users_may_use_the_names_of_plans(session: rocpd.Session) -> None:
    for sql in (sql for sql, reason in ATTACHED.items() if reason == "a name that plans use"):
        assert session.execute(sql).fetchall()
    assert session.execute("SELECT 1 AS keyed__kernels").fetchall() == [(1,)]


def strategy_of_view(name: str) -> Strategy:
    """Return how a view answers: a rank has its own rows, or groups of its own where they are not put in an order."""
    text = view(name)
    is_by_rank = bool(re.search(r"\bV\.(rank|guid)\b", text.group_by)) and "ORDER BY" not in clauses(text.select)
    is_plain = not re.search(r"\b(SUM|COUNT|MIN|MAX|AVG|GROUP BY|ORDER BY|DISTINCT|UNION)\b", text.select)
    return Strategy.ROWS if text.is_rows or is_by_rank or is_plain else Strategy.AGGREGATES


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_planned(name: str, session: rocpd.Session) -> None:
    chosen = plan(f"SELECT * FROM {name}", session.attached_tables)
    assert chosen.strategy is strategy_of_view(name), chosen.reason


CALCULATED = re.compile(rf"\b(?:from|join)\s+(?:{'|'.join(map(re.escape, RELATIONS))})\b", re.I)
"""Tables that are calculated from all ranks together: no rank can answer its part of a statement on them."""


OF_OTHERS = re.compile(r" from (?:slow|runs|changes)\b", re.I)
"""Tables of a script that runs before, and of histories."""


def documented() -> list[str]:
    """Every statement of the documents that reads the job's own tables and views."""
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    statements = re.findall(r'"((?:select|with)\b[^"]*)"', text, re.I)
    return [sql for sql in dict.fromkeys(statements) if not OF_OTHERS.search(sql) and not CALCULATED.search(sql)]


@pytest.mark.parametrize("sql", documented())
def test_every_documented_statement_is_planned(sql: str, session: rocpd.Session) -> None:
    assert plan(sql, session.attached_tables).strategy is not Strategy.ATTACHED, plan(
        sql, session.attached_tables
    ).reason
    if "limit" not in sql.lower():
        agrees(session, sql)


def test_a_group_is_compared_as_its_column_was(session: rocpd.Session) -> None:
    """`'16'` is 16 for an INTEGER column, in a subquery too; a column that was computed compares as it is."""
    for sql, expected in (
        ("SELECT tid FROM kernels GROUP BY tid HAVING tid = '16'", [(16,)]),
        ("SELECT t FROM (SELECT tid AS t, count(*) FROM kernels GROUP BY tid) WHERE t = '16'", [(16,)]),
        ("SELECT t FROM (SELECT tid + 0 AS t, count(*) FROM kernels GROUP BY 1) WHERE t = '16'", []),
        ("WITH t AS (SELECT DISTINCT tid FROM kernels) SELECT count(*) FROM t WHERE tid IN ('16')", [(1,)]),
    ):
        assert plan(sql, session.attached_tables).strategy is Strategy.AGGREGATES
        assert session.execute(sql).fetchall() == expected, sql


def test_columns_are_called_as_sqlite_calls_them(session: rocpd.Session) -> None:
    rows = session.execute(
        'SELECT k.name, count( * ), ? + 1, start "a b", sum(Duration) FROM kernels k GROUP BY k.start', (1,)
    )
    assert rows.columns == ("name", "count( * )", "? + 1", "a b", "sum(Duration)")


def test_explain_shows_what_each_rank_runs(session: rocpd.Session) -> None:
    result = session.explain("SELECT category, count(*) AS n FROM kernels GROUP BY category ORDER BY n DESC")
    assert result.columns == ("step", "where", "sql")
    assert result.fetchall() == [
        ("strategy", "aggregates", "every rank returns partial results, which are combined"),
        ("make gathered_0", "each of 3 ranks", "SELECT category AS g0, COUNT(*) AS p0 FROM kernels GROUP BY 1"),
        (
            "result",
            "gathered",
            'SELECT g0 AS "category", COALESCE(SUM(p0), 0) AS "n" FROM gathered_0 GROUP BY g0 ORDER BY 2 DESC',
        ),
    ]
    assert session.explain("SELECT median(start) FROM kernels").fetchall() == [
        ("strategy", "attached", "the function median"),
        ("result", "one connection", "SELECT median(start) FROM kernels"),
    ]


def test_names_are_looked_up_last(session: rocpd.Session) -> None:
    """A rank groups by the id, which is local to it, and returns the name; two ranks use one id for different names."""
    sql = "SELECT name, region, rank > 0, count(*), min(name) FROM kernels k WHERE k.name <> '' GROUP BY k.name, 2, 3"
    text = session.explain(sql).fetchall()[1][2]
    assert "FROM lookup__kernels__name WHERE id = g0) AS g0" in text
    assert "name__key AS g0, region__key AS g1" in text
    agrees(session, sql)
    assert "lookup__" not in session.explain("SELECT stack_id, count(*) FROM kernels GROUP BY 1").fetchall()[1][2]


def test_a_strategy_that_cannot_be_is_refused(session: rocpd.Session) -> None:
    assert session.execute("SELECT count(*) FROM kernels", strategy="aggregates").fetchall() == [(6,)]
    with pytest.raises(UsageError, match="can't run by strategy rows: every rank returns partial results"):
        session.execute("SELECT count(*) FROM kernels", strategy="rows")
    with pytest.raises(UsageError, match="can't run by strategy aggregates: the function median"):
        session.execute("SELECT median(start) FROM kernels", strategy="aggregates")


def test_the_command_explains_and_takes_a_strategy(cli: Cli, tmp_path: Path) -> None:
    for n in range(2):
        TraceBuilder(n).kernel("gemm", 1, 5 + n).write(tmp_path / f"{n}.db")
    sql = "SELECT name, sum(duration) AS ns FROM kernels GROUP BY name"
    said = cli("query", sql, tmp_path, "--explain", "--format", "csv")
    assert said.out.splitlines()[:2] == [
        "step,where,sql",
        'strategy,aggregates,"every rank returns partial results, which are combined"',
    ]
    for words in ([], ["--strategy", "aggregates"], ["--strategy", "attached"], ["--threads", "1"]):
        assert cli("query", sql, tmp_path, "--format", "csv", *words).out == "name,ns\ngemm,9\n"
    said = cli("query", sql, tmp_path, "--strategy", "rows")
    assert (said.code, "can't run by strategy rows" in said.err) == (2, True)


def test_a_text_beside_a_count_is_compared_as_in_one_database(tmp_path: Path) -> None:
    """A number from an aggregate has no affinity: compared with a text, it is taken for one."""
    files = [TraceBuilder(n).kernel("5", 1, 5).kernel("5", 6, 9).write(tmp_path / f"{n}.db") for n in range(5)]
    with rocpd.connect(files) as opened:
        sql = "SELECT name, total_calls FROM top_kernels WHERE name > total_calls"
        assert opened.execute(sql, strategy="attached").fetchall() == [("5", 10)]
        assert opened.execute(sql, strategy="aggregates").fetchall() == [("5", 10)]


TIES = (
    "SELECT rank, count(*) FROM kernels GROUP BY rank ORDER BY 2 DESC",
    "SELECT guid, count(*) FROM kernels GROUP BY guid ORDER BY 2 DESC LIMIT 2",
    "SELECT name, rank, count(*) FROM kernels GROUP BY name, rank ORDER BY 3 DESC, 3 LIMIT 4",
    "SELECT rank, name, count(*) FROM kernels GROUP BY rank, name ORDER BY 3, 3 DESC",
    "SELECT rank, name, count(*) FROM kernels GROUP BY rank, name ORDER BY 3 DESC",
    "SELECT name, rank, count(*) FROM kernels GROUP BY name, rank ORDER BY name COLLATE NOCASE DESC",
    "SELECT name, rank, count(*) FROM kernels GROUP BY name, rank ORDER BY name COLLATE NOCASE, rank DESC",
)


def test_groups_that_tie_have_the_order_of_one_database(tmp_path: Path) -> None:
    files = [
        TraceBuilder(2 - n).kernel("b", 1, 2).kernel("a", 3, 4).kernel("A", 5, 6).write(tmp_path / f"{n}.db")
        for n in range(3)
    ]
    with rocpd.connect(files, limits=Limits(small_bytes=0)) as opened:
        for sql in TIES:
            assert plan(sql, opened.attached_tables).strategy is Strategy.AGGREGATES, sql
            agrees(opened, sql)


def _named_fields(tree: ast.AST) -> Iterator[object]:
    """Yield x of each `node.args.get("x")`, `node.args["x"]` and `node.set("x", value)`."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Call(ast.Attribute(ast.Attribute(attr="args"), "get" | "pop"), [ast.Constant(name), *_])
                | ast.Subscript(ast.Attribute(attr="args"), ast.Constant(name))
                | ast.Call(ast.Attribute(attr="set"), [ast.Constant(name), _])
            ):
                yield name


def test_sqlglot_has_the_fields_that_are_read() -> None:
    """Each major version renames some: 28 `from`, 30 made `negate`. A name that is not there reads as None."""
    files = [path for part in ("federate/plan", "index") for path in (ROOT / "rocpd" / part).glob("*.py")]
    read = {name for path in files for name in _named_fields(ast.parse(path.read_text()))}
    kinds = [kind for kind in vars(exp).values() if isinstance(kind, type) and issubclass(kind, exp.Expression)]
    assert {"from_", "joins", "with_", "negate"} <= read
    assert read - {name for kind in kinds for name in kind.arg_types} == set()
