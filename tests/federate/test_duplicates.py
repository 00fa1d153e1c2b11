"""Ranks with one table suffix: the same rank twice, or two ranks; in SQL, merged files and packages alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rocpd
from rocpd.federate.package import FilePlacement, package
from rocpd.schema.load import VIEWS
from rocpd.schema.versions import guid_of as guid_of_suffix
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.conftest import Cli, Shell

GUID = guid_of(0)
IDENTITY = "SELECT tag, value FROM rocpd_metadata WHERE tag IN ('uuid', 'guid') ORDER BY 1, 2"
HEX = "1cf7d1f031340596bfab7b59c8d5f015"
BY_GUID = "SELECT guid, rank, COUNT(*), SUM(duration) FROM kernels GROUP BY guid ORDER BY 1, 2"


def trace(duration: int = 10, host: str = "node0") -> TraceBuilder:
    return (
        TraceBuilder(host=host).region("hipLaunchKernel", 1, 2).kernel("gemm", 30, 30 + duration).kernel("add", 50, 55)
    )


def pair(folder: Path) -> list[Path]:
    """Two files of one suffix whose rows differ in one end."""
    return [trace(10).write(folder / "a.db"), trace(11, host="node1").write(folder / "b.db")]


@pytest.mark.parametrize("guid", [GUID, f"{GUID}#2", HEX, f"{HEX}#11"])
def test_a_suffix_says_which_guid_it_stands_for(guid: str) -> None:
    assert guid_of_suffix(suffix_of(guid)) == guid


CHANGES: list[Callable[[TraceBuilder], TraceBuilder]] = [
    lambda built: built.sql('UPDATE "rocpd_kernel_dispatch{uuid}" SET "end" = "end" + 1 WHERE id = 2'),
    lambda built: built.sql('UPDATE "rocpd_region{uuid}" SET start = 0'),
    lambda built: built.sql('DELETE FROM "rocpd_region{uuid}"'),
    lambda built: built.sql('UPDATE "rocpd_event{uuid}" SET stack_id = stack_id + 4294967296 WHERE id = 1'),
    lambda built: built.sql("""UPDATE "rocpd_string{uuid}" SET string = 'hip' WHERE string = 'hipLaunchKernel'"""),
    lambda built: built.kernel("gemm", 1, 2),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_every_difference_makes_a_rank_of_its_own(number: int, tmp_path: Path) -> None:
    paths = [trace().write(tmp_path / "a.db"), CHANGES[number](trace()).write(tmp_path / "b.db")]
    with rocpd.connect(paths) as session:
        assert [rank.guid for rank in session.ranks] == [GUID, f"{GUID}#2"]
        assert session.notes == [
            f"{paths[1]}: the table suffix is that of {paths[0]}, the rows are not: "
            f"a rank of its own, with the GUID {GUID}#2"
        ]


def test_equal_rows_under_other_metadata_and_guid_columns_are_one_rank(tmp_path: Path) -> None:
    again = trace().sql("""UPDATE "rocpd_metadata{uuid}" SET value = '{{guid}}' WHERE tag = 'guid'""")
    again = again.sql("""UPDATE "rocpd_string{uuid}" SET guid = 'another'""")
    paths = [trace().write(tmp_path / "a.db"), again.write(tmp_path / "b.db")]
    with rocpd.connect(paths) as session:
        assert [rank.opening.path for rank in session.ranks] == paths[:1]
        assert session.notes == [f"{paths[1]}: GUID {GUID} counts once, it is also in {paths[0]}"]


def test_the_later_one_has_its_guid_in_every_table_and_view(tmp_path: Path) -> None:
    with rocpd.connect(pair(tmp_path)) as session:
        assert session.execute(BY_GUID, strategy="attached").fetchall() == [
            (GUID, 0, 2, 15),
            (f"{GUID}#2", 1, 2, 16),
        ]
        for name in session.tables:
            columns = session.execute(f"SELECT * FROM {name} LIMIT 0", strategy="attached").columns
            if "guid" in columns:
                sql = f"SELECT COUNT(*), COUNT(DISTINCT guid), MIN(typeof(guid)) FROM {name}"
                rows, guids, kind = session.execute(sql, strategy="attached").fetchall()[0]
                assert (guids, kind) in ((2, "text"), (0, None)), name
                assert len(session.execute(f"SELECT guid FROM {name}", strategy="attached").fetchall()) == rows
        joined = (
            "SELECT rank, display_name FROM rocpd_kernel_dispatch D JOIN kernels K ON K.guid = D.guid AND K.id = D.id "
            "JOIN rocpd_info_kernel_symbol S ON S.guid = D.guid AND S.id = D.kernel_id ORDER BY 1, 2"
        )
        assert session.execute(joined, strategy="attached").fetchall() == [
            (0, "add"), (0, "gemm"), (1, "add"), (1, "gemm"),
        ]  # fmt: skip


def test_planned_and_attached_agree_on_guids(tmp_path: Path) -> None:
    statements = (
        "SELECT guid, name, duration FROM kernels",
        "SELECT guid, COUNT(*) FROM kernels GROUP BY guid",
        f"SELECT COUNT(*), MAX(guid) FROM kernels WHERE guid = '{GUID}#2'",
        f"SELECT name, rank FROM kernels WHERE guid > '{GUID}'",
        "SELECT E.guid, COUNT(*) FROM rocpd_event E JOIN rocpd_region R ON R.guid = E.guid AND R.event_id = E.id "
        "GROUP BY 1",
        "SELECT guid || '' AS g, MIN(typeof(guid)), SUM(guid < 1) FROM regions GROUP BY g",
    )
    with rocpd.connect(pair(tmp_path)) as session:
        for sql in statements:
            expected = session.execute(sql, strategy="attached").fetchall()
            strategy = session.explain(sql).fetchall()[0][1]
            assert strategy in ("rows", "aggregates")
            assert sorted(session.execute(sql, strategy=strategy).fetchall()) == sorted(expected), sql


def test_a_merged_file_keeps_them_apart(tmp_path: Path, sqlite3_shell: Shell) -> None:
    out = tmp_path / "all.sqlite"
    with rocpd.connect(pair(tmp_path)) as session:
        expected = {name: sorted(session.sql(f"SELECT * FROM {name}").fetchall(), key=repr) for name in VIEWS}
        session.merge(out)
    with rocpd.connect(out) as session:
        assert session.notes == []
        assert [(rank.guid, rank.suffix) for rank in session.ranks] == [
            (GUID, suffix_of(GUID)),
            (f"{GUID}#2", f"{suffix_of(GUID)}_2"),
        ]
        assert {n: sorted(session.sql(f"SELECT * FROM {n}").fetchall(), key=repr) for n in VIEWS} == expected
        session.merge(tmp_path / "again.sqlite")
    for path in (out, tmp_path / "again.sqlite"):
        assert sqlite3_shell(path, f"{BY_GUID}; PRAGMA integrity_check; PRAGMA foreign_key_check") == (
            f"{GUID}|0|2|15\n{GUID}#2|1|2|16\nok"
        )
        assert sqlite3_shell(path, IDENTITY) == (
            f"guid|{GUID}\nguid|{GUID}#2\nuuid|{suffix_of(GUID)}\nuuid|{suffix_of(GUID)}_2"
        )


def test_a_merged_file_beside_its_sources_adds_nothing(tmp_path: Path) -> None:
    sources = pair(tmp_path)
    with rocpd.connect(sources) as session:
        session.merge(tmp_path / "all.sqlite")
    for inputs in ([*sources, tmp_path / "all.sqlite"], [tmp_path / "all.sqlite", *reversed(sources)]):
        with rocpd.connect(inputs) as session:
            assert session.execute(BY_GUID).fetchall() == [(GUID, 0, 2, 15), (f"{GUID}#2", 1, 2, 16)]


@pytest.mark.parametrize("placement", [FilePlacement.STAY, FilePlacement.COPY])
def test_a_package_keeps_which_is_the_later_one(placement: FilePlacement, tmp_path: Path) -> None:
    """The later input comes first by host."""
    paths = [trace(10, host="z").write(tmp_path / "a.db"), trace(11, host="a").write(tmp_path / "b.db")]
    with rocpd.connect(paths) as session:
        expected = session.execute(BY_GUID).fetchall()
        assert expected == [(GUID, 1, 2, 15), (f"{GUID}#2", 0, 2, 16)]
        package(session, tmp_path / "job.rpdb", placement)
    with rocpd.connect(tmp_path / "job.rpdb") as session:
        assert session.execute(BY_GUID).fetchall() == expected


def test_exports_name_both(tmp_path: Path, cli: Cli) -> None:
    pair(tmp_path)
    said = cli("convert", "-f", "csv", "-d", tmp_path / "out", tmp_path / "a.db", tmp_path / "b.db")
    assert said.code == 0
    text = (tmp_path / "out" / "out_kernel_trace.csv").read_text()
    assert text.count(f'"{GUID}#2"') == text.count(f'"{GUID}"') == 2


def test_tables_without_metadata_are_a_rank(tmp_path: Path) -> None:
    path = trace().sql('DELETE FROM "rocpd_metadata{uuid}"')
    with rocpd.connect(path.write(tmp_path / "a.db")) as session:
        assert [(rank.guid, rank.version) for rank in session.ranks] == [(GUID, "3.0.0")]
        assert session.execute(BY_GUID).fetchall() == [(GUID, 0, 2, 15)]


@pytest.mark.parametrize("literal", ["{{guid}}", "something else", ""])
def test_a_guid_that_does_not_agree_with_the_suffix_is_made_from_it(literal: str, tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        built = TraceBuilder(number).kernel("gemm", 1, 3 + number)
        built.sql(f"""UPDATE "rocpd_metadata{{uuid}}" SET value = '{literal}' WHERE tag = 'guid'""")
        for base in ("rocpd_kernel_dispatch", "rocpd_event", "rocpd_info_node"):
            built.sql(f"""UPDATE "{base}{{uuid}}" SET guid = '{literal}'""")
        paths.append(built.write(tmp_path / f"{number}.db"))
    with rocpd.connect(paths) as session:
        expected = [(guid_of(0), 0, 1, 2), (guid_of(1), 1, 1, 3)]
        assert session.execute(BY_GUID).fetchall() == expected
        session.merge(tmp_path / "all.sqlite")
    with rocpd.connect(tmp_path / "all.sqlite") as session:
        assert session.execute(BY_GUID).fetchall() == expected
