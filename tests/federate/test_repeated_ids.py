"""Files without primary keys in which ids occur twice: a view has as many rows as its table, and `info` says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.federate.open.identify import identify
from rocpd.federate.open.opening import opening_of
from rocpd.schema.load import TABLES, VIEWS, view
from tests.build import TraceBuilder
from tests.conftest import Cli
from tests.soak import sample

REFERRED = ("rocpd_string", "rocpd_info_agent", "rocpd_info_kernel_symbol", "rocpd_info_process", "rocpd_info_thread",
            "rocpd_info_node", "rocpd_event", "rocpd_info_stream", "rocpd_info_queue", "rocpd_track")  # fmt: skip


def trace(number: int = 0) -> TraceBuilder:
    built = TraceBuilder(number, pid=16 + number).region("hipLaunchKernel", 10, 20, stack=1).arg("stream", "0x0")
    built.kernel("gemm", 30, 40, stack=1).counter("SQ_WAVES", 8).copy(50, 60).alloc(1, 2).sample("mark", 6)
    return built.region("roctxRangePushA", 5, 90, message="step")


def keyless(built: TraceBuilder, base: str, times: int = 2) -> TraceBuilder:
    """Rebuild a table without keys, with every row `times` times; later rows of an id differ in their texts."""
    built.sql(f'CREATE TABLE copy AS SELECT * FROM "{base}{{uuid}}"').sql(f'DROP TABLE "{base}{{uuid}}"')
    built.sql(f'ALTER TABLE copy RENAME TO "{base}{{uuid}}"')
    built.sql(f'CREATE TEMP TABLE once AS SELECT * FROM "{base}{{uuid}}"')
    if base == "rocpd_string":
        built.sql("UPDATE once SET string = string || ' again'")
    for _ in range(times - 1):
        built.sql(f'INSERT INTO "{base}{{uuid}}" SELECT * FROM once')
    return built.sql("DROP TABLE once")


def counted(session: rocpd.Session, strategy: str) -> dict[str, tuple[int, int]]:
    """Return view -> number of its rows and of those of its table, for views that drop none."""
    counts = {}
    for name in VIEWS:
        chosen = view(name)
        if chosen.per_rank and not chosen.where and not chosen.group_by and {t.join for t in chosen.tables[1:]} <= {
            "LEFT JOIN"
        }:  # fmt: skip
            both = (
                session.execute(f"SELECT COUNT(*) FROM (SELECT * FROM {name})", strategy="attached").fetchall(),
                session.execute(f"SELECT * FROM {name}", strategy=strategy).fetchall(),
                session.execute(f"SELECT COUNT(*) FROM {chosen.tables[0].table}").fetchall(),
            )
            assert both[0] == [(len(both[1]),)]
            counts[name] = (len(both[1]), both[2][0][0])
    return counts


@pytest.mark.soak
@pytest.mark.parametrize("base", sample([*REFERRED], 3))
def test_a_view_has_as_many_rows_as_its_table(base: str, tmp_path: Path) -> None:
    paths = [keyless(trace(0), base, 3).write(tmp_path / "0.db"), trace(1).write(tmp_path / "1.db")]
    with rocpd.connect(paths) as session:
        counts = counted(session, "rows")
        assert len(counts) > 10
        assert {name: rows for name, (rows, _) in counts.items()} == {
            n: of_table for n, (_, of_table) in counts.items()
        }
        grouped = "SELECT name, COUNT(*) FROM kernels GROUP BY name"
        assert session.execute(grouped, strategy="aggregates").fetchall() == [("gemm", 2)]
        assert session.execute(grouped, strategy="attached").fetchall() == [("gemm", 2)]
        session.merge(tmp_path / "all.sqlite")
    with rocpd.connect(tmp_path / "all.sqlite") as session:
        assert counted(session, "rows") == counts


def test_the_first_row_of_an_id_counts(tmp_path: Path) -> None:
    path = keyless(trace(), "rocpd_string").write(tmp_path / "a.db")
    with rocpd.connect(path) as session:
        assert session.execute("SELECT name FROM regions ORDER BY 1").fetchall() == [
            ("hipLaunchKernel",),
            ("roctxRangePushA",),
        ]


def test_info_reports_them(tmp_path: Path, cli: Cli) -> None:
    built = keyless(keyless(trace(), "rocpd_string"), "rocpd_info_agent", 1)
    built.sql('INSERT INTO "rocpd_info_agent{uuid}" SELECT * FROM "rocpd_info_agent{uuid}" WHERE id = 1')
    path = keyless(built, "rocpd_track", 1).write(tmp_path / "a.db")
    with rocpd.connect(path) as session:
        strings = session.execute("SELECT COUNT(DISTINCT id) FROM rocpd_string").fetchall()[0][0]
    said = cli("info", path, "--only", "problems", "-f", "csv")
    problems = said.out.splitlines()[1:]
    assert [line for line in problems if "more than once" in line] == [
        "0,rocpd_info_agent: 1 id occurs more than once",
        f"0,rocpd_string: {strings} ids occur more than once",
    ]


def test_tables_with_a_primary_key_are_joined_as_they_are(tmp_path: Path) -> None:
    (rank,) = identify(opening_of(trace().write(tmp_path / "a.db")))
    assert rank.keyless == frozenset()
    odd = trace().sql('CREATE TABLE "rocpd_a{uuid}" (ID INT, x, PRIMARY KEY (x, id)) WITHOUT ROWID')
    odd.sql('CREATE TABLE "rocpd_b{uuid}" (x)').sql('CREATE TABLE "rocpd_c{uuid}" (id, x, PRIMARY KEY (id, x))')
    (rank,) = identify(opening_of(keyless(odd, "rocpd_string").write(tmp_path / "b.db")))
    assert rank.keyless == {"rocpd_string", "rocpd_c"}
    assert rank.by_id == {*rank.tables} - {"rocpd_string", "rocpd_a", "rocpd_b", "rocpd_c"}
    assert "rocpd_string" in TABLES
