"""Statements of the documents, of views and of summaries, over damaged jobs: planned and attached."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import cycle, product
from pathlib import Path

import pytest

import rocpd
from rocpd.base import QueryError, UsageError
from rocpd.facts.columns import statement
from rocpd.federate.limits import Limits
from rocpd.federate.plan.planner import plan
from rocpd.federate.plan.steps import Strategy
from rocpd.schema.load import TABLES, VIEWS
from rocpd.schema.render import views_over
from rocpd.schema.versions import LATEST
from rocpd.schema.write import tables_of
from tests.federate.test_plan import CALCULATED, OF_OTHERS, strategy_of_view
from tests.properties.test_plan import Answer, bags_differ, damaged, simulated
from tests.soak import paired, sample, sized

pytestmark = pytest.mark.soak  # on each job there

ROOT = Path(__file__).parents[2]
READERS = (ROOT / "rocpd" / "facts", ROOT / "rocpd" / "summary")

JOBS = {"simulated": simulated, "damaged": damaged}


def each_on_a_job(values: Iterable[str]) -> pytest.MarkDecorator:
    """Run a test with each name, on the jobs in turn; in a soak on both."""
    return pytest.mark.parametrize(("name", "session"), paired(values, JOBS), indirect=["session"])


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], rocpd.Session]]:
    with ExitStack() as opened:

        @functools.cache
        def session_of(name: str) -> rocpd.Session:
            files = JOBS[name](tmp_path_factory.mktemp("job"))
            restricted = name == "simulated"
            filters = rocpd.Filters(ranks="0,2-7", exclude_kernel="elementwise", agents="GPU-0,GPU-1")
            window = rocpd.Window("1%", "99%", clip=True) if restricted else None
            chosen = filters if restricted else None
            session = rocpd.connect(files, filters=chosen, window=window, limits=Limits(small_bytes=0))
            return opened.enter_context(session)

        yield session_of


@pytest.fixture(params=JOBS)
def session(request: pytest.FixtureRequest, sessions: Callable[[str], rocpd.Session]) -> rocpd.Session:
    """Damaged jobs, one of them with filters and a window that cuts; no job is too small to be planned."""
    return sessions(request.param)


def answer(session: rocpd.Session, sql: str, strategy: str) -> Answer:
    """Return columns and rows, or why SQLite refused."""
    try:
        rows = session.execute(sql, strategy=strategy)
        return rows.columns, rows.fetchall()
    except QueryError as error:
        return f"refused: {error}"


def agrees(session: rocpd.Session, sql: str, strategy: str = "auto") -> int:
    """Check columns, rows and types of a planned statement against the attached one; return the number of rows."""
    expected, actual = answer(session, sql, "attached"), answer(session, sql, strategy)
    assert not isinstance(expected, str), expected
    assert not isinstance(actual, str), actual
    assert actual[0] == expected[0]
    assert bags_differ(expected[1], actual[1]) is None, sql
    assert len(actual[1]) == len(expected[1])
    return len(expected[1])


# --- documents


def documented() -> dict[str, str]:
    """Return every statement between double quotes in a page -> the page."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    statements: dict[str, str] = {}
    for page in pages:
        for sql in re.findall(r'"((?:select|with)\b[^"]*)"', page.read_text(encoding="utf-8"), re.I):
            statements.setdefault(sql, page.name)
    return {sql: page for sql, page in statements.items() if not OF_OTHERS.search(sql)}


@pytest.mark.soak(2)
def test_statements_of_the_documents(session: rocpd.Session) -> None:
    statements = documented()
    assert {"README.md", "recipes.md", "simulate.md", "tour.md", "convert.md"} <= set(statements.values())
    rows = 0
    chosen_here = sample(list(statements), 4, 2 * (session.window is None))  # of the other job others
    for sql in chosen_here:
        chosen = plan(sql, session.attached_tables)
        if re.search(r"\bfrom\b", sql, re.I) and not CALCULATED.search(sql):
            assert chosen.strategy is not Strategy.ATTACHED, (sql, chosen.reason)
        unlimited = re.sub(r"\s+limit\s+\d+\s*$", "", sql, flags=re.I)  # the order may not decide which rows are cut
        rows += agrees(session, unlimited)
        if unlimited != sql:
            expected, actual = answer(session, sql, "attached"), answer(session, sql, "auto")
            assert (len(actual[1]), actual[0]) == (len(expected[1]), expected[0])
    assert rows > len(chosen_here)


# --- views


AGGREGATES = ("count", "min", "max", "total", "avg")


def grouped(session: rocpd.Session, name: str) -> str:
    """Return a SELECT of aggregates of every column of a view, by its name or first column: in turn, in a soak all."""
    columns = [
        f'"{column}"' for column in session.execute(f"SELECT * FROM {name} LIMIT 0", strategy="attached").columns
    ]
    lowered = [column.lower() for column in columns]
    key = columns[lowered.index('"name"') if '"name"' in lowered else 0]
    pairs = sized(zip(cycle(AGGREGATES), columns, strict=False), product(AGGREGATES, columns))
    calls = ", ".join(f"{aggregate}({column})" for aggregate, column in pairs)
    return f"SELECT {key}, count(*), {calls} FROM {name} GROUP BY {key}"


@each_on_a_job(VIEWS)
def test_views_and_aggregates_of_them(name: str, session: rocpd.Session) -> None:
    rows = agrees(session, f"SELECT * FROM {name}", strategy_of_view(name))
    is_optional = name not in views_over(tables_of(LATEST))
    is_in_no_file = is_optional or (name in ("graph_launches", "stream_args") and session.window is None)
    assert rows > 0 or is_in_no_file, "nothing to compare"
    agrees(session, grouped(session, name))
    agrees(session, f"SELECT count(*) FROM {name}", "aggregates")
    with pytest.raises(UsageError, match="can't run by strategy"):
        session.execute(f"SELECT count(*) FROM {name}", strategy="rows")


def test_tables_and_aggregates_of_them(session: rocpd.Session) -> None:
    for name in TABLES:
        rows = agrees(session, f"SELECT * FROM {name}", "rows")
        count = agrees(session, grouped(session, name))
        assert (count > 0) == (rows > 0)


# --- what summaries read


@functools.cache
def read_by_summaries() -> dict[str, str]:
    """Return the `.sql` files of summaries, and the statements in their modules that need no values.

    Those on metadata, which has no column that tells ranks apart, cannot be asked of the entire job.
    """
    always = {"?1": "0", "?2": str(1 << 62), "{stacks}": "0"}  # two times, and a list
    statements = {
        path.name: re.sub(r"\?[12]|\{stacks\}", lambda value: always[value[0]], statement(path.stem))
        for path in sorted(READERS[0].glob("sql/*.sql"))
    }
    for path in sorted(path for folder in READERS for path in folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if re.search(r'"\s*SELECT\s', source) else ():
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.match(r"\s*SELECT\s", text) and "FROM" in text and not re.search(r"[?{}]|\brocpd_metadata\b", text):
                statements[f"{path.name}: {text.strip()[:60]}"] = text
    return statements


def test_what_summaries_read_is_found() -> None:
    names = read_by_summaries()
    assert len([name for name in names if name.endswith(".sql")]) > 20
    assert len(names) > 25


def of_one_rank(sql: str, guid: str) -> str:
    """Return the same statement over the entire job, every table and view in it restricted to one rank."""
    return re.sub(r"\b(FROM|JOIN)(\s+)(\w+)", rf"\1\2(SELECT * FROM \3 WHERE guid = '{guid}')", sql)


NOT_SIMULATED = {"operators.sql", "operator_facts.sql", "stack_calls.sql", "stack_functions.sql", "stack_samples.sql"}
NOT_SIMULATED |= {"capture_calls.sql", "pc_samples.sql", "memory_accesses.sql", "basic_blocks.sql"}
NOT_SIMULATED |= {"memory_pages.sql", "memory_messages.sql", "sampled_stacks.sql", "sampled_frames.sql", "samplers.sql"}
NOT_SIMULATED |= {"graph_launches.sql"}
NOT_DAMAGED = {"graph_calls.sql", "graph_of_dispatch.sql", "sampled_values.sql"}


@each_on_a_job(read_by_summaries())
def test_what_summaries_read_of_a_rank(name: str, session: rocpd.Session) -> None:
    sql = read_by_summaries()[name]
    rows = 0
    for rank in session.ranks:
        expected = session.execute(of_one_rank(sql, rank.guid), strategy="attached").fetchall()
        actual = session.reader(rank.number).rows(sql)
        assert session.reader(rank.number).rows(sql) == actual
        assert [row for few in session.reader(rank.number).stream(sql, size=7) for row in few] == actual
        assert bags_differ(expected, actual) is None
        assert len(actual) == len(expected)
        rows += len(actual)
    is_in_no_file = name in NOT_SIMULATED or (name in NOT_DAMAGED and session.window is None)
    assert rows > 0 or not name.endswith(".sql") or is_in_no_file, "nothing to compare"
