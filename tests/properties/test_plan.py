"""The law of planning: a statement taken apart gives what SQLite gives for the whole, whatever is asked."""

from __future__ import annotations

import contextlib
import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, seed, settings

import rocpd
from rocpd.base import QueryError, UsageError
from rocpd.federate.limits import Limits
from rocpd.federate.merge import merge
from rocpd.federate.plan.steps import Plan, Strategy
from rocpd.federate.result import Rows
from rocpd.index.build import build
from rocpd.simulator import JobOptions, simulate
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.properties.statements import BASES, EVENTS, FOREIGN, OTHERS, SUMMARIES, Statement, statements
from tests.properties.tree import Tree
from tests.soak import SOAK, sized

Row: TypeAlias = tuple[Any, ...]
Answer: TypeAlias = tuple[tuple[str, ...], list[Row]] | str

EXAMPLES = sized(40, 25_000)  # of each of the jobs
FLOOR = 0.6  # of the statements that SQLite takes are planned


def simulated(folder: Path) -> list[Path]:
    """Four or five ranks with all faults that the simulator knows, and different schema versions."""
    return list(simulate(JobOptions(out=folder, ranks=sized(3, 4), nodes=2, events_per_rank=60, faults=True)))


def damaged(folder: Path) -> list[Path]:
    """Ranks with NULLs, dangling references, text in number columns, columns of their own, and an empty one."""
    files = []
    for number, version in enumerate(("3.0.0", "3.0.2", "3.0.3")):
        trace = _rank(number)
        trace.sql("UPDATE rocpd_kernel_dispatch{uuid} SET grid_size_x = 'many', workgroup_size_x = 1.5 WHERE id = 1")
        trace.sql("UPDATE rocpd_region{uuid} SET tid = '16', nid = x'00ff' WHERE id = 2")
        trace.sql("UPDATE rocpd_info_thread{uuid} SET name = 16 WHERE id = 16")
        if number:
            trace.sql(f"ALTER TABLE rocpd_region{{uuid}} ADD COLUMN extra {'INTEGER' if number == 1 else 'TEXT'}")
            trace.sql("UPDATE rocpd_region{uuid} SET extra = id")
        files.append(trace.write(folder / f"{number}.db", version))
    return [*files, TraceBuilder(9).write(folder / "empty.db", "3.0.1")]


def foreign_text(folder: Path) -> list[Path]:
    """Names that are no UTF-8, in one of three ranks."""
    files = []
    for number in range(3):
        trace = _rank(number)
        if number == 1:
            trace.sql("UPDATE rocpd_string{uuid} SET string = CAST(x'67ff65' AS TEXT) WHERE string = 'gemm'")
            trace.sql("UPDATE rocpd_info_kernel_symbol{uuid} SET display_name = CAST(x'fe6765' AS TEXT) WHERE id = 1")
        files.append(trace.write(folder / f"{number}.db"))
    return files


def merged(folder: Path) -> list[Path]:
    """Three ranks in one file beside two files."""
    files = [_rank(number, host=f"node{number % 2}").write(folder / f"{number}.db") for number in range(5)]
    with rocpd.connect(files[:3]) as session:
        merge(session, folder / "merged.db")
    return [folder / "merged.db", *files[3:]]


JOBS = {job.__name__: job for job in (simulated, damaged, foreign_text, merged)}


def _rank(number: int, host: str = "node0") -> TraceBuilder:
    trace = TraceBuilder(number, pid=16 + number // 2, host=host)
    names = ["gemm", "relu", "copy<int>", "it's", "5"]
    for i in range(4 + number):
        name = names[(i + number) % 5]
        start = 1000 + 37 * i + number
        trace.region(name, start, start + 10 * i, stack=i, tid=None if i == 3 else -1)
        trace.arg("stream", str(i) if i % 2 else None)
        trace.kernel(name, start + 5, start + 50 - i, agent=[GPU, GPU2, None, 99][i % 4], stack=i, region=name)
        trace.counter("SQ_WAVES", i / 7)
        trace.copy(start, start + i * 3 - 2, name=name, dst=[GPU, CPU, None, 77][i % 4], size=i * 100, stack=50 + i)
        trace.alloc(start, start + 1, agent=GPU if i % 2 else None, size=1 << i, level=["REAL", "SCRATCH"][i % 2])
        trace.sample(name, start + 3, message=name if i % 2 else None)
        trace.region(
            "roctxRangePushA", start, start + 100, message=name, stack=i + 90, event_id=None if i == 2 else i + 1
        )
    return trace


class Counted:
    """A session that counts how statements were planned."""

    def __init__(
        self,
        name: str,
        session: rocpd.Session,
        elsewhere: rocpd.Session,
        indexed: rocpd.Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.name = name
        self.session = session
        self.elsewhere = elsewhere
        self.indexed = indexed
        self.columnar: Counter[str] = Counter()
        self.strategies: Counter[Strategy] = Counter()
        self.reasons: Counter[str] = Counter()
        self.refused = 0
        names = {*EVENTS, *OTHERS, *BASES, *SUMMARIES, *(name for one, _, two in FOREIGN for name in (one, two))}
        self.columns = {n: session.execute(f"SELECT * FROM {n} LIMIT 0", strategy="attached").columns for n in names}
        self.values = self._values(names)
        make: Callable[..., Plan] = session._engine.plan

        plans: dict[tuple[str, str], Plan] = {}

        def noted(sql: str, parameters: object) -> Plan:
            plan = plans[sql, repr(parameters)] = make(sql, parameters)
            self.strategies[plan.strategy] += 1
            if plan.strategy is Strategy.ATTACHED:
                self.reasons[plan.reason.split(":")[0]] += 1
            return plan

        monkeypatch.setattr(session._engine, "plan", noted)
        # Planning reads the statement and the names of tables, which are the same elsewhere: half of the test's time.
        monkeypatch.setattr(elsewhere._engine, "plan", lambda sql, parameters: plans[sql, repr(parameters)])
        monkeypatch.setattr(indexed._engine, "plan", lambda sql, parameters: plans.pop((sql, repr(parameters))))

    def _values(self, names: Iterable[str]) -> dict[str, list[object]]:
        """Some values of each column, by its name."""
        found: dict[str, set[object]] = {}
        for name in sorted(names):
            rows = self.session.execute(f"SELECT * FROM {name} LIMIT 40", strategy="attached")
            for row in rows:
                for column, value in zip(rows.columns, row, strict=True):
                    if isinstance(value, (int, float, str)) and len(str(value)) < 40:
                        found.setdefault(column.lower(), set()).add(value)
        return {column: sorted(values, key=repr)[:6] for column, values in found.items()}

    @property
    def share(self) -> float:
        """Which part of the statements was planned."""
        return 1 - self.strategies[Strategy.ATTACHED] / max(1, self.strategies.total())

    def answer(self, statement: Statement, strategy: str) -> Answer:
        """Columns and rows, or that SQLite refused."""
        try:
            return _answer(self.session.execute(statement.sql, statement.parameters, strategy=strategy))
        except QueryError as error:
            return f"refused: {error}"

    def on_a_cluster(self, statement: Statement) -> Answer:
        """The answer to the last digit when other processes read ranks and add up: rows in the same order."""
        try:
            return _answer(self.elsewhere.execute(statement.sql, statement.parameters))
        except QueryError as error:
            return f"refused: {error}"

    def on_the_index(self, statement: Statement) -> Answer | None:
        """The answer of the index alone; None where it leaves the statement to SQLite."""
        try:
            answer = _answer(self.indexed.execute(statement.sql, statement.parameters, strategy="columnar"))
        except UsageError as error:
            self.columnar[error.message.split(": ")[1][:50]] += 1
            return None
        self.columnar[""] += 1
        return answer


def _answer(rows: Rows) -> Answer:
    return rows.columns, rows.fetchall()


@pytest.fixture(scope="module", params=JOBS)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    folder = tmp_path_factory.mktemp(request.param)
    files = JOBS[request.param](folder)
    planned = Limits(small_bytes=0)
    with rocpd.connect(files) as session:
        build(session, folder / "index")
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        rocpd.connect(files, limits=planned) as session,
        contextlib.closing(Tree()) as tree,
        rocpd.connect(files, limits=planned, client=tree) as elsewhere,
        rocpd.connect(files, limits=planned, index_folder=folder / "index") as indexed,
    ):
        yield Counted(request.param, session, elsewhere, indexed, monkeypatch)


@pytest.mark.soak(1000)
def test_planned_statements_give_what_the_whole_gives(job: Counted) -> None:
    @seed(time.time_ns() if SOAK else zlib.crc32(job.name.encode()))
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(statements(job.columns, job.values, shrinks=SOAK))
    def law(statement: Statement) -> None:
        expected = job.answer(statement, "attached")
        if isinstance(expected, str):
            job.refused += 1
        found = job.answer(statement, "auto")
        difference = different(statement, expected, found)
        assert difference is None, f"{difference}\n{statement.sql}\n{statement.parameters}"
        assert repr(job.on_a_cluster(statement)) == repr(found), f"{statement.sql}\n{statement.parameters}"
        columnar = job.on_the_index(statement)
        if columnar is not None:
            assert different(statement, expected, columnar) is None, f"{statement.sql}\n{statement.parameters}"
            assert _exactly(columnar, statement) == _exactly(expected, statement), statement.sql

    law()
    print(f"\n{job.strategies}, {job.refused} refused, {job.share:.0%} planned\n{job.reasons.most_common(12)}")
    print(f"of the index: {job.columnar.most_common(30)}")
    assert job.refused < 0.15 * EXAMPLES
    assert job.share > FLOOR


def _exactly(answer: Answer, statement: Statement) -> object:
    """An answer to the last bit, in any order; without what a LIMIT may choose."""
    return answer if isinstance(answer, str) or statement.limited else Counter(map(repr, answer[1]))


def different(statement: Statement, expected: Answer, found: Answer) -> str | None:
    """Return how two answers differ, None when they do not."""
    if isinstance(expected, str) or isinstance(found, str):
        return None if isinstance(expected, str) and isinstance(found, str) else f"{expected!s:.500}\n{found!s:.500}"
    (columns, rows), (other_columns, other_rows) = expected, found
    if columns != other_columns:
        return f"columns {columns} and {other_columns}"
    if len(rows) != len(other_rows):
        return f"{len(rows)} and {len(other_rows)} rows"
    if statement.order is not None:
        for one, two in zip(rows, other_rows, strict=True):
            if not all(equal(one[place], two[place]) for place in statement.order):
                return f"order: {one} and {two}"
    return None if statement.limited else bags_differ(rows, other_rows)


def bags_differ(rows: Sequence[Row], others: Sequence[Row]) -> str | None:
    """Compare rows as bags; equal floats may differ in their last digits."""
    left, right = (Counter(tuple((type(v), v) for v in row) for row in side) for side in (rows, others))
    mine, theirs = list((left - right).elements()), list((right - left).elements())
    for row in mine:
        match = next((r for r in theirs if all(equal(a, b) for (_, a), (_, b) in zip(row, r, strict=True))), None)
        if match is None:
            return f"only in the whole: {row}\nonly in the shares: {theirs[:3]}"
        theirs.remove(match)
    return None


def equal(one: object, two: object) -> bool:
    """Whether two values are the same, with their type; floats to nine digits."""
    if type(one) is not type(two):
        return False
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-12)
    return one == two
