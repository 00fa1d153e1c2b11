"""The `.sql` files: everything is documented, and the documentation is what SQLite makes of the text."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from rocpd.federate.unify import Unifier
from rocpd.schema.load import OPTIONAL_TABLES, RPDS, TABLES, UNITS, VIEWS, BaseTable, View, table, view
from rocpd.schema.render import RankTables
from rocpd.schema.versions import LATEST, suffix_of
from rocpd.schema.write import tables_of
from tests.build import TraceBuilder, guid_of
from tests.published import PUBLISHED


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> apsw.Connection:
    """A file of the newest version, with the optional tables, and RPD's views over it."""
    trace = TraceBuilder()
    for base in OPTIONAL_TABLES:
        trace.row(base, id=1)
    path = trace.write(tmp_path_factory.mktemp("schema") / "empty.db", views=True)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    Unifier(connection, [RankTables(suffix_of(guid_of(0)), tables_of(LATEST))]).prepare(" ".join(RPDS))
    return connection


def columns_of(database: apsw.Connection, name: str) -> list[str]:
    return [str(row[0]) for row in database.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (name,))]


def check_columns(relation: BaseTable | View, expected: list[str]) -> None:
    """Make sure that each column of a table or view is there, has a meaning and a unit that is known."""
    for column in relation.columns:
        what = f"{relation.name}.{column.name}"
        assert column.doc, f"{what}: no meaning after `--`"
        known = column.unit == "" or column.unit in UNITS
        assert known, f"{what}: [{column.unit}] is not in UNITS of rocpd/schema/load.py: take one of these, or add it"
    assert [column.name for column in relation.columns] == expected


@pytest.mark.parametrize("name", TABLES)
def test_every_table_and_column_is_documented(name: str, database: apsw.Connection) -> None:
    chosen = table(name)
    assert chosen.doc.endswith(".")
    check_columns(chosen, columns_of(database, name + suffix_of(guid_of(0))))


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_and_column_is_documented(name: str, database: apsw.Connection) -> None:
    chosen = view(name)
    assert chosen.doc.rstrip().endswith(".")
    check_columns(chosen, columns_of(database, name))


@pytest.mark.parametrize(("name", "columns"), PUBLISHED.items())
def test_views_of_amd_begin_with_their_columns_in_order(name: str, columns: list[str]) -> None:
    assert [column.name for column in view(name).columns][: len(columns)] == columns


@pytest.mark.parametrize("name", VIEWS)
def test_times_and_sizes_have_units(name: str) -> None:
    timed = {"start", "end", "END", "timestamp", "duration", "total_ns", "mean_ns", "min_ns", "max_ns", "std_ns"}
    for column in view(name).columns:
        if column.name in timed:
            assert column.unit == "ns", column.name
        if column.name in {"size", "bytes"}:
            assert column.unit == "bytes", column.name


def test_table_of_contents_is_what_lies_in_the_folders() -> None:
    folder = Path(__file__).parent.parent.parent / "rocpd" / "schema" / "sql"
    assert sorted(TABLES) == sorted(path.stem for path in folder.glob("tables/*.sql"))
    assert sorted(VIEWS) == sorted(path.stem for path in folder.glob("views/*.sql"))


def test_a_view_comes_after_those_it_reads() -> None:
    for index, name in enumerate(VIEWS):
        assert set(view(name).reads) <= {*TABLES, *VIEWS[:index]}, name


def test_since_tells_what_a_version_added() -> None:
    assert table("rocpd_graph_launch").since == "3.0.2"
    added = {
        (later, name, column)
        for earlier, later in (("3.0.0", "3.0.1"), ("3.0.1", "3.0.2"), ("3.0.2", "3.0.3"))
        for name, columns in tables_of(later).items()
        for column in columns
        if name in tables_of(earlier) and column not in tables_of(earlier)[name]
    }
    assert added == {
        ("3.0.2", "rocpd_kernel_dispatch", "graph_exec_id"),
        ("3.0.2", "rocpd_kernel_dispatch", "graph_node_id"),
        ("3.0.2", "rocpd_memory_copy", "graph_exec_id"),
        ("3.0.2", "rocpd_memory_copy", "graph_node_id"),
        ("3.0.3", "rocpd_info_pmc", "spm_support"),
        ("3.0.3", "rocpd_pmc_event", "sample_id"),
        ("3.0.3", "rocpd_pmc_event", "xcc"),
        ("3.0.3", "rocpd_pmc_event", "shader_engine"),
        ("3.0.3", "rocpd_pmc_event", "instance"),
    }
