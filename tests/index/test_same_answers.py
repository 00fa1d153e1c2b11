"""The law of the index: what it answers is what SQLite answers for the whole, to the last bit and in the same order."""

from __future__ import annotations

import functools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, seed, settings
from sqlglot import exp

import rocpd
from rocpd.base import QueryError, RocpdError, Row, UsageError
from rocpd.federate.limits import Limits
from rocpd.federate.plan.steps import Unfaithful
from rocpd.index.build import build
from rocpd.index.entries import VIEWS, ValueKind
from rocpd.index.expressions import Expressions, Typed
from rocpd.schema.load import VIEWS as ALL_VIEWS
from rocpd.simulator import JobOptions, simulate
from tests.build import GPU, TraceBuilder
from tests.docs.console import ROOT
from tests.index.typed import typed_statements
from tests.soak import SOAK, paired, sized

pytestmark = pytest.mark.soak  # on each job there

EXAMPLES = sized(25, 34_000)  # of each of the jobs


def clean(folder: Path) -> list[Path]:
    """Four ranks of two nodes."""
    return list(simulate(JobOptions(out=folder, ranks=4, nodes=2, events_per_rank=80, seed=20)))


def faulty(folder: Path) -> list[Path]:
    """Damaged as real files are: dangling references, times that make no sense, columns of older versions."""
    return list(simulate(JobOptions(out=folder, ranks=3, events_per_rank=80, seed=19, faults=True)))


def odd(folder: Path) -> list[Path]:
    """Values of several kinds in a column, NULLs, dangling references, an empty rank, a column of its own, no UTF-8."""
    files = []
    for number in range(3):
        trace = TraceBuilder(number)
        for row, name in enumerate(("gemm", "Gemm", "é", "it's 100%", "a_b", "\u212a")):
            trace.region(name, 100 + row, 90 + 5 * row, stack=row, tid=None if row == 3 else -1)
            trace.kernel(name, 1000 * row, 1000 * row + row * 7 - 3, agent=[GPU, None, 99][row % 3], stack=row)
            trace.copy(row, row * 3 - 2, name=name, size=row * 100, stack=50 + row)
            trace.alloc(row, row + 1, agent=GPU, size=1 << row)
            trace.counter("SQ_WAVES", row / 7)
        if number == 1:
            trace.sql("UPDATE rocpd_kernel_dispatch{uuid} SET grid_size_x = 'many', queue_id = 1.5 WHERE id = 1")
            trace.sql("UPDATE rocpd_region{uuid} SET start = 9223372036854775807 WHERE id = 2")
            trace.sql("UPDATE rocpd_memory_copy{uuid} SET size = x'00ff' WHERE id = 2")
            trace.sql("UPDATE rocpd_string{uuid} SET string = CAST(x'67ff65' AS TEXT) WHERE string = 'a_b'")
            trace.sql("ALTER TABLE rocpd_region{uuid} ADD COLUMN extra INTEGER")
        files.append(trace.write(folder / f"{number}.db"))
    return [*files, TraceBuilder(9).write(folder / "empty.db", "3.0.1")]


class Job(NamedTuple):
    """A job with and without its index."""

    name: str
    indexed: rocpd.Session
    plain: rocpd.Session


JOBS = (clean, faulty, odd)
Make: TypeAlias = Callable[[Path], list[Path]]


def each_on_a_job(name: str, values: Iterable[object]) -> pytest.MarkDecorator:
    """Run a test with each value, on the jobs in turn; in a soak on each job."""
    pairs = [(make, value) for value, make in paired(values, JOBS)]
    return pytest.mark.parametrize(("job", name), pairs, indirect=["job"])


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Make], Job]]:
    with ExitStack() as opened:

        @functools.cache
        def job_of(make: Make) -> Job:
            folder = tmp_path_factory.mktemp("job")
            files = make(folder)
            planned = Limits(small_bytes=0)
            with rocpd.connect(files, index="off") as session:
                built = build(session, folder / "index")
            has_entry = {rank.opening.path for rank, each in zip(session.ranks, built, strict=True) if not each.why_not}
            files = [file for file in files if file in has_entry]  # faults leave some with a journal
            assert len(files) > 1
            indexed = rocpd.connect(files, limits=planned, index="require", index_folder=folder / "index")
            plain = rocpd.connect(files, limits=planned, index="off")
            return Job(make.__name__, opened.enter_context(indexed), opened.enter_context(plain))

        yield job_of


@pytest.fixture(params=JOBS, ids=lambda make: make.__name__)
def job(request: pytest.FixtureRequest, jobs: Callable[[Make], Job]) -> Job:
    return jobs(request.param)


@pytest.mark.soak(340)
def test_random_statements(job: Job) -> None:
    answered: Counter[str] = Counter()

    @seed(time.time_ns() if SOAK else crc32(job.name.encode()))
    @settings(max_examples=EXAMPLES, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(typed_statements())
    def law(sql: str) -> None:
        try:
            columnar = job.indexed.execute(sql, strategy="columnar").fetchall()
        except (UsageError, QueryError) as error:
            answered[str(error)[:70]] += 1
            return
        answered[""] += 1
        attached = job.plain.execute(sql, strategy="attached").fetchall()
        ordered = " ORDER BY " in sql or "GROUP BY" not in sql
        assert _exact(columnar, ordered) == _exact(attached, ordered), sql

    law()
    share = answered[""] / answered.total()
    print(f"\n{job.name}: {share:.0%} of {answered.total()}, {answered.most_common(12)}")
    assert share > {"clean": 0.85, "faulty": 0.8, "odd": 0.45}[job.name]


NEGATED = ("LIKE '%e%'", "GLOB '*e*'", "IN ('gemm', 'x')", "BETWEEN 'a' AND 'h'")


@each_on_a_job("condition", [*NEGATED, *(f"NOT {each}" for each in NEGATED), "IS NULL", "IS NOT NULL"])
def test_conditions_keep_their_not(job: Job, condition: str) -> None:
    sql = f"SELECT count(*) FROM kernels WHERE name {condition}"
    columnar = _from_index(job.indexed, sql)
    if columnar is None:
        assert job.name != "clean"
    else:
        assert columnar == job.plain.execute(sql, strategy="attached").fetchall()


JOINED = "kernels k LEFT JOIN regions r ON r.guid = k.guid AND r.id = k.id AND r.id > 2"
ANSWERED = (
    "SELECT count(*) FROM kernels WHERE id IS TRUE",
    "SELECT count(*) FROM kernels WHERE id IS NOT TRUE OR (id - 1) IS FALSE",
    f"SELECT count(*) FROM {JOINED} WHERE (r.id > 5) IS NOT TRUE",
    "SELECT rank, count(*) / 1000 FROM kernels GROUP BY rank ORDER BY 2 DESC LIMIT 2",
    "SELECT name, id, count(*) FROM kernels GROUP BY guid, name, id ORDER BY 3 DESC, 3, 3 DESC LIMIT 5",
    f"SELECT r.rank, r.guid, count(*) FROM {JOINED} GROUP BY r.rank, r.guid ORDER BY 3, 1",
    "SELECT n, count(*), sum(x) FROM (SELECT id AS n, id AS x FROM kernels UNION ALL SELECT id, NULL FROM regions)"
    " GROUP BY n ORDER BY 2 DESC LIMIT 5",
    f"SELECT count(*), sum(id), max(guid), count(id) FROM (SELECT r.id, r.guid FROM {JOINED})",
    "SELECT -counter_value, -0.0, -(-0.0) FROM pmc_events",
)


@each_on_a_job("sql", ANSWERED)
def test_written_statements(job: Job, sql: str) -> None:
    columnar = job.indexed.execute(sql, strategy="columnar").fetchall()
    assert _exact(columnar, True) == _exact(job.plain.execute(sql, strategy="attached").fetchall(), True)


def test_no_row_fails_after_others_were_read(job: Job) -> None:
    """Only sums and products exceed 64 bits, which are refused in rows: minus the least number would too."""
    sql = "SELECT ? / (-id) FROM kernels"
    with pytest.raises(UsageError, match="only SQLite has"):
        job.indexed.execute(sql, (-(1 << 63),), strategy="columnar")
    columnar = job.indexed.execute(sql, (1 - (1 << 63),), strategy="columnar").fetchall()
    assert columnar == job.plain.execute(sql, (1 - (1 << 63),), strategy="attached").fetchall()


@each_on_a_job("items", ["*", "r.*", "r.*, k.start AS begun", "k.*"])
def test_stars_of_joins_name_the_columns_that_they_are(job: Job, items: str) -> None:
    sql = f"SELECT count(*), max(name) FROM (SELECT {items} FROM {JOINED})"
    assert job.indexed.execute(sql).fetchall() == job.plain.execute(sql, strategy="attached").fetchall()


@pytest.mark.parametrize("condition", ["rank = 1", "rank IN (0, 2)", "hostname = 'nowhere'"])
def test_the_first_of_an_order_in_some_ranks(job: Job, condition: str) -> None:
    sql = f"SELECT id, start FROM kernels WHERE {condition} ORDER BY start LIMIT 3"
    columnar = job.indexed.execute(sql, strategy="columnar").fetchall()
    assert columnar == job.plain.execute(sql, strategy="attached").fetchall()


@pytest.mark.parametrize("total", ["sum", "total", "avg"])
def test_a_sum_that_exceeds_64_bits_on_its_way(job: Job, total: str) -> None:
    """SQLite takes the sum no more, or as a real, even if later rows would bring it back."""
    sql = f"SELECT {total}(CASE WHEN id = 1 THEN 9223372036854775807 ELSE -id END) FROM memory_copies WHERE id <> 3"
    with pytest.raises(UsageError, match="a sum beyond 64 bits"):
        job.indexed.execute(sql, strategy="columnar").fetchall()


KEYS = (
    "id = 2 OR id <= 1",
    "(id > 3 AND start > 0) OR id BETWEEN 1 AND 2",
    "start > 0 AND (id IN (4, 5) OR id < 2)",
    "name IN ('MEMORY_COPY_HOST_TO_DEVICE', 'MEMORY_COPY_DEVICE_TO_HOST', 'gemm', 'Gemm')",
    "name = 'MEMORY_COPY_HOST_TO_DEVICE' OR name = 'MEMORY_COPY_DEVICE_TO_DEVICE' OR name = 'Gemm'",
)


@each_on_a_job("condition", KEYS)
def test_rows_that_are_found_by_several_keys(job: Job, condition: str) -> None:
    """SQLite reads the rows of one key after those of the other."""
    for select in ("name, id", "DISTINCT name", "count(*), sum(id)"):
        for source in ("memory_copies", "(SELECT name, start, id FROM memory_copies)"):
            sql = f"SELECT {select} FROM {source} WHERE {condition}"
            assert job.indexed.execute(sql).fetchall() == job.plain.execute(sql, strategy="attached").fetchall(), sql
    count = f"SELECT count(*) FROM memory_copies WHERE {condition}"
    if job.name != "odd" or "name" not in condition:  # whose names are no UTF-8
        assert job.indexed.execute(count, strategy="columnar").fetchall() == job.plain.execute(count).fetchall()


CONDITIONS: Mapping[str, Callable[[list[str]], str]] = {
    "{} IN ({})": ", ".join,
    "{} = {}": lambda values: values[0],
    "{} >= {}": lambda values: values[0],
    "{} BETWEEN {}": lambda values: f"{min(values)} AND {max(values)}",
    "{} NOT IN ({})": lambda values: ", ".join(values[:2]),
    "{} IS {}": lambda values: values[-1],
    "{} <> {}": lambda values: values[-1],
}
"""What is asked of a column, and how values of it are written there."""


WINDOWS = (rocpd.Window("5%", "70%"), rocpd.Window("20%", "90%", inclusive=False))


@pytest.mark.soak(220)
def test_rows_by_values_that_exist(job: Job) -> None:
    """SQLite may find rows by any of their values, and then gives them in the order in which it found them."""
    random, answered = Random(job.name), 0
    both = (job.indexed, job.plain)
    pairs = [both, both, *(tuple(session.within(window) for session in both) for window in WINDOWS)]
    for view in VIEWS:
        known = _values_of(job.plain, view)
        for _ in range(sized(4, 1000)):
            columns = random.sample(list(known), min(len(known), random.choice((1, 1, 2, 3))))
            if not columns:
                continue
            chosen = {column: random.sample(known[column], min(len(known[column]), 4)) for column in columns}
            forms = random.choices(list(CONDITIONS), k=len(columns))
            asked = [
                form.format(column, CONDITIONS[form](chosen[column]))
                for column, form in zip(columns, forms, strict=True)
            ]
            asked += [f"({' OR '.join(f'{column} = {value}' for value in chosen[column])})" for column in columns[:1]]
            where = random.choice((" AND ", " OR ")).join(random.sample(asked, random.randint(1, len(asked))))
            last = random.choice(list(known))
            end = random.choice(("", " LIMIT 3", f" ORDER BY {last}", f" ORDER BY {last} DESC LIMIT 5"))
            sql = f"SELECT id, {last} FROM {view} WHERE {where}{end}"
            indexed, plain = random.choice(pairs)
            columnar = _from_index(indexed, sql)
            if columnar is None:
                continue
            answered += 1
            assert _exact(columnar, True) == _exact(plain.execute(sql, strategy="attached").fetchall(), True), sql
    assert answered > (9 if job.name == "odd" else 24)


def _values_of(session: rocpd.Session, view: str) -> dict[str, list[str]]:
    """Return column -> some of its values, as SQL has them."""
    names = [name for (name,) in session.execute(f"SELECT name FROM pragma_table_info('{view}')")]
    names = sorted({*names} - {"guid", "rank", "hostname"})
    quoted = ", ".join(f'quote("{name}")' for name in names)
    rows = session.execute(f"SELECT {quoted} FROM {view}", strategy="attached").fetchall()
    values = {}
    for name, column in zip(names, zip(*rows, strict=True), strict=False):  # no column where there is no row
        some = [*dict.fromkeys(map(str, column))][:9]
        values[f'"{name}"'] = sorted(text for text in some if text != "NULL")
    return {name: texts for name, texts in values.items() if texts}


def test_parameters_that_are_equal_and_differ_in_type(job: Job) -> None:
    """A statement that was asked before has its translation; not with 7.0 in the place of 7."""
    sql = "SELECT sum(id / ?) FROM rocpd_kernel_dispatch"
    for value in (7, 7.0, True, 1.0, 0.0, -0.0):
        answers = [session.execute(sql, (value,)).fetchall() for session in (job.indexed, job.plain)]
        assert repr(answers[0]) == repr(answers[1])


def test_what_the_parser_says_of_a_node_is_not_lost() -> None:
    """Another version of it may put a NOT, a sign or an option elsewhere."""

    def find_column(column: exp.Column) -> Typed:
        return Typed(column.name, ValueKind.TEXT)

    node = exp.Glob(this=exp.column("a"), expression=exp.Literal.string("b*"))
    expressions = Expressions(find_column, {})
    assert expressions.typed(node).sql == "(a LIKE 'b%' ESCAPE '\\')"
    node.args["negate"] = True
    with pytest.raises(Unfaithful, match="glob with negate"):
        expressions.typed(node)


def _from_index(session: rocpd.Session, sql: str) -> list[Row] | None:
    """Return the rows of a statement from the index; None: it is left to SQLite."""
    try:
        return session.execute(sql, strategy="columnar").fetchall()
    except UsageError:
        return None


def _exact(rows: list[tuple[object, ...]], ordered: bool) -> list[str]:
    """Rows with the types and every digit of their values; of unordered groups in any order."""
    return list(map(repr, rows)) if ordered else sorted(map(repr, rows))


@each_on_a_job("view", VIEWS)
def test_every_stored_column_is_that_of_the_view(job: Job, view: str) -> None:
    stored = 0
    for column in job.plain.execute(f"SELECT * FROM {view} LIMIT 0").columns:
        sql = f'SELECT "{column}" FROM {view}'
        columnar = _from_index(job.indexed, sql)
        if columnar is None:
            continue
        stored += 1
        assert list(map(repr, columnar)) == list(map(repr, job.plain.execute(sql, strategy="attached"))), column
    assert stored > (2 if job.name == "odd" else 5)


@each_on_a_job("base", ["rocpd_kernel_dispatch", "rocpd_region", "rocpd_memory_copy", "rocpd_memory_allocate"])
def test_base_tables_of_events_are_answered(job: Job, base: str) -> None:
    stored = 0
    for column in job.plain.execute(f"SELECT * FROM {base} LIMIT 0").columns:
        for sql in (f'SELECT "{column}" FROM {base}', f'SELECT "{column}", count(*) FROM {base} GROUP BY 1'):
            columnar = _from_index(job.indexed, sql)
            if columnar is None:
                continue
            stored += 1
            attached = job.plain.execute(sql, strategy="attached").fetchall()
            assert _exact(columnar, "GROUP" not in sql) == _exact(attached, "GROUP" not in sql), sql
    assert stored > 4


_STATEMENTS = re.compile(r'rocpd query (?:-i \S+ )?(?:--\w+ )?"([^"]+)"')


def documented() -> list[str]:
    """The statements of all pages."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "schema").glob("*.md"), ROOT / "README.md"]
    found = {sql for page in pages for sql in _STATEMENTS.findall(page.read_text(encoding="utf-8"))}
    return sorted(sql for sql in found if re.match(r"(?i)(select|with)\b", sql) and "…" not in sql)


@each_on_a_job("sql", documented())
def test_documented_statements(job: Job, sql: str) -> None:
    answers = []
    for session in (job.indexed, job.plain):
        try:
            rows = session.execute(sql)
            answers.append([rows.columns, *map(repr, rows)])
        except RocpdError as error:
            answers.append([str(error)])
    assert answers[0] == answers[1]


def test_statements_are_found() -> None:
    assert len(documented()) > 40
    assert any("rocpd_region" in sql for sql in documented())


@each_on_a_job("view", ALL_VIEWS)
def test_views_are_the_same_with_and_without(job: Job, view: str) -> None:
    both = (session.execute(f"SELECT * FROM {view}") for session in (job.indexed, job.plain))
    one, other = ([rows.columns, *map(repr, rows)] for rows in both)
    assert one == other


SELECTIONS: dict[str, rocpd.Window | rocpd.Filters] = {
    "window": rocpd.Window("10%", "60%"),
    "inside": rocpd.Window("10%", "60%", inclusive=False),
    "clipped": rocpd.Window("20%", "70%", clip=True),
    "ranks": rocpd.Filters(ranks="1-2"),
    "streams": rocpd.Filters(streams="0"),
    "kernels": rocpd.Filters(kernel="gemm|GEMM"),
}


_SELECTED = ("kernels", "regions", "memory_copies", "samples", "pmc_events")


@each_on_a_job("selected", [(name, view) for name in SELECTIONS for view in _SELECTED])
def test_windows_and_filters(job: Job, selected: tuple[str, str]) -> None:
    name, view = selected
    selection = SELECTIONS[name]
    try:
        sessions = [
            session.within(selection) if isinstance(selection, rocpd.Window) else session.where(selection)
            for session in (job.indexed, job.plain)
        ]
    except RocpdError as error:
        pytest.skip(f"nothing to select: {error}")
    sql = f"SELECT rank, guid, hostname, count(*), sum(id), min(id) FROM {view} GROUP BY rank"
    one, other = (session.execute(sql).fetchall() for session in sessions)
    assert one == other == sessions[1].execute(sql, strategy="attached").fetchall()


def test_windows_are_answered(job: Job) -> None:
    part = job.indexed.within(rocpd.Window("10%", "60%"))
    rows = part.execute("SELECT count(*) FROM memory_copies WHERE rank = 0", strategy="columnar").fetchall()
    assert rows[0][0] >= 0
