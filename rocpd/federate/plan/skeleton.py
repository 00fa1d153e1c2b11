"""Owns the skeleton of a job: all its tables and views without rows, to ask SQLite about names and affinities."""

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
    """A database with all tables and views of a job and no rows: SQLite's own word on names, columns and affinities.

    It holds two ranks, so that base tables and views are the compounds that they are in a job.
    """

    def __init__(self, parts: Sequence[RankTables]) -> None:
        further = parts[0].further if parts else {}
        tables = {base: (*columns, *further.get(base, ())) for base, columns in tables_of(LATEST).items()}
        self.further: Mapping[str, tuple[str, ...]] = {base: names for base, names in further.items() if names}
        tables |= {base: columns for base, columns in self.further.items() if base not in tables}
        self._parts = [RankTables(f"_{i}", tables, rank=i, hostname="", further=further) for i in range(2)]
        self.relations = relations(self._parts)
        self._connection = apsw.Connection(":memory:")
        self._done: set[str] = set()

    def columns(self, sql: str, parameters: Sequence[int] = ()) -> tuple[str, ...]:
        """Give the result columns of a statement.

        Raises:
            apsw.Error: SQLite refuses the statement.
        """
        self._prepare(sql)
        found: list[tuple[str, ...]] = []
        cursor = self._connection.cursor()

        def note(c: apsw.Cursor, _sql: str, _bindings: object) -> bool:
            found.append(tuple(column[0] for column in c.get_description()))
            return False

        cursor.exec_trace = note
        try:
            cursor.execute(sql, parameters or _AnyParameter())
        except apsw.ExecTraceAbort:
            pass
        finally:
            cursor.exec_trace = None
        return found[0] if found else ()

    def add(self, table: str, columns: Sequence[str], select: str) -> tuple[str, ...]:
        """Create an empty gathered table for the result of `select`; give the columns' types.

        SQLite compares a column of a subquery by the affinity of its expression: so must the gathered table.
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
            if name not in self._done:
                self._done.add(name)
                for base in {each.table for each in view(name).tables} if name in VIEWS else {name}:
                    self._create_tables(base)
                self._connection.execute(create_view_text(name, select_text(name, self._parts), temporary=True))
        for name in keyed_views(sql):
            self._prepare(name.split("__")[1])
            text = create_view_text(name, keyed_text(name, self._parts[0], sql), temporary=True)
            self._connection.execute(f"DROP VIEW IF EXISTS temp.{quote_name(name)}")
            self._connection.execute(text)

    def _create_tables(self, base: str) -> None:
        if f"{base}_0" in self._done:
            return
        self._done.add(f"{base}_0")
        further = ", ".join(map(quote_name, self.further.get(base, ())))
        for part in self._parts:
            if base not in TABLES:
                self._connection.execute(f"CREATE TABLE {part.name(base)} ({further})")
                continue
            self._connection.execute(create_table_text(base, part.suffix, ""))
            for column in self.further.get(base, ()):
                self._connection.execute(f"ALTER TABLE {part.name(base)} ADD COLUMN {quote_name(column)}")


class _AnyParameter(Mapping[str, int]):
    """Binds 0 to every parameter of a statement that is run over no rows."""

    def __getitem__(self, key: str) -> int:
        return 0

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
