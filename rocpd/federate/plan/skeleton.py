"""The skeleton of a job: its tables and views without rows, to ask SQLite about names and affinities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import apsw

from rocpd.federate.plan.gathered import create_table
from rocpd.federate.plan.steps import Scatter
from rocpd.schema.keyed import keyed_text, keyed_views
from rocpd.schema.load import TABLES, VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named, relations, select_text
from rocpd.schema.versions import LATEST
from rocpd.schema.write import create_table_text, create_view_text, tables_of


class Skeleton:
    """A database with all tables and views of a job and no rows: SQLite resolves names, columns and affinities in it.

    It holds two ranks, so that base tables and views are compounds, as in a job.
    """

    def __init__(self, ranks: Sequence[RankTables]) -> None:
        further = ranks[0].further if ranks else {}
        tables = {base: (*columns, *further.get(base, ())) for base, columns in tables_of(LATEST).items()}
        self.further: Mapping[str, tuple[str, ...]] = {base: names for base, names in further.items() if names}
        tables |= {base: columns for base, columns in self.further.items() if base not in tables}
        self._ranks = [RankTables(f"_{i}", tables, rank=i, hostname="", further=further) for i in range(2)]
        self.relations = relations(self._ranks)
        self._connection = apsw.Connection(":memory:")
        self._created: set[str] = set()

    def columns(self, sql: str, parameters: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the result columns of a statement.

        Raises:
            apsw.Error: SQLite refuses the statement.
        """
        self._prepare(sql)
        columns: list[tuple[str, ...]] = []
        cursor = self._connection.cursor()

        def note_columns_and_stop(c: apsw.Cursor, _sql: str, _bindings: object) -> bool:
            columns.append(tuple(column[0] for column in c.get_description()))
            return False

        cursor.exec_trace = note_columns_and_stop
        try:
            cursor.execute(sql, parameters or _AnyParameter())
        except apsw.ExecTraceAbort:
            pass
        finally:
            cursor.exec_trace = None
        return columns[0] if columns else ()

    def add(self, table: str, columns: Sequence[str], select: str) -> tuple[str, ...]:
        """Create an empty gathered table for the result of `select`; return the types of its columns.

        SQLite compares a column of a subquery by the affinity of its expression; the gathered table must do the same.
        """
        self._prepare(select)
        connection = self._connection
        connection.execute(f"CREATE TEMP TABLE probe AS {select}", _AnyParameter())
        types = tuple(row[0] for row in connection.execute("SELECT type FROM pragma_table_info('probe')"))
        connection.execute("DROP TABLE probe")
        create_table(connection, Scatter(table, tuple(columns), types, select), "TEMP ")
        return types

    def _prepare(self, sql: str) -> None:
        for name in named(sql, self.relations):
            if name not in self._created:
                self._created.add(name)
                for base in {each.table for each in view(name).tables} if name in VIEWS else {name}:
                    self._create_tables(base)
                self._connection.execute(create_view_text(name, select_text(name, self._ranks), temporary=True))
        for name in keyed_views(sql):
            self._prepare(name.split("__")[1])
            text = create_view_text(name, keyed_text(name, self._ranks[0], sql), temporary=True)
            self._connection.execute(f"DROP VIEW IF EXISTS temp.{quote_name(name)}")
            self._connection.execute(text)

    def _create_tables(self, base: str) -> None:
        if f"{base}_0" in self._created:
            return
        self._created.add(f"{base}_0")
        further = ", ".join(map(quote_name, self.further.get(base, ())))
        for tables in self._ranks:
            if base not in TABLES:
                self._connection.execute(f"CREATE TABLE {tables.name(base)} ({further})")
                continue
            self._connection.execute(create_table_text(base, tables.suffix, ""))
            for column in self.further.get(base, ()):
                self._connection.execute(f"ALTER TABLE {tables.name(base)} ADD COLUMN {quote_name(column)}")


class _AnyParameter(Mapping[str, int]):
    """Binds 0 to every parameter: the statement runs over no rows."""

    def __getitem__(self, key: str) -> int:
        return 0

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
