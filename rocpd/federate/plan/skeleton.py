"""The skeleton of a job: its tables and views without rows, to ask SQLite about names and affinities."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping, Sequence

from rocpd.base.sqlite import apsw
from rocpd.federate.plan.steps import Scatter, create_table
from rocpd.federate.unify import Unifier
from rocpd.schema.keyed import keyed_views
from rocpd.schema.load import TABLES, VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named
from rocpd.schema.versions import LATEST
from rocpd.schema.write import create_table_text, tables_of


class Skeleton(Unifier):
    """A database with all tables and views of a job and no rows: SQLite resolves names, columns and affinities in it.

    It holds two ranks, so that base tables and views are compounds, as in a job.

    Attributes:
        further: base table -> columns beyond the contract, whose types are not known.
    """

    def __init__(self, ranks: Sequence[RankTables]) -> None:
        further = ranks[0].further if ranks else {}
        tables = {base: (*columns, *further.get(base, ())) for base, columns in tables_of(LATEST).items()}
        self.further: Mapping[str, tuple[str, ...]] = {base: names for base, names in further.items() if names}
        tables |= {base: columns for base, columns in self.further.items() if base not in tables}
        two_ranks = [RankTables(f"_{i}", tables, rank=i, hostname="", further=further, guid="") for i in range(2)]
        super().__init__(apsw.Connection(":memory:"), two_ranks, keyed=True)
        self._tables_created: set[str] = set()

    def columns(self, sql: str, parameters: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the result columns of a statement.

        Raises:
            apsw.Error: SQLite refuses the statement.
        """
        self.prepare(sql)
        columns: list[tuple[str, ...]] = []
        cursor = self.connection.cursor()

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
        self.prepare(select)
        connection = self.connection
        connection.execute(f"CREATE TEMP TABLE probe AS {select}", _AnyParameter())
        types = tuple(row[0] for row in connection.execute("SELECT type FROM pragma_table_info('probe')"))
        connection.execute("DROP TABLE probe")
        create_table(connection, Scatter(table, tuple(columns), types, select), "TEMP ")
        return types

    def prepare(self, sql: str) -> None:
        """Create the tables and views that `sql` names and that do not exist yet."""
        keyed = (name.split("__")[1] for name in keyed_views(sql))
        for name in named(" ".join((sql, *keyed)), self.relations):
            for base in {each.table for each in view(name).tables} if name in VIEWS else {name}:
                if base not in self._tables_created:
                    self._tables_created.add(base)
                    self._create_tables(base)
        super().prepare(sql)

    def _create_tables(self, base: str) -> None:
        columns = [quote_name(column) for column in self.further.get(base, ())]
        for tables in self.tables:
            if base not in TABLES:
                self.connection.execute(f"CREATE TABLE {tables.name(base)} ({', '.join(columns)})")
                continue
            self.connection.execute(create_table_text(base, tables.suffix, ""))
            for column in columns:
                self.connection.execute(f"ALTER TABLE {tables.name(base)} ADD COLUMN {column}")


class _AnyParameter(UserDict[str, int]):
    """Binds 0 to every parameter: the statement runs over no rows."""

    def __missing__(self, key: str) -> int:
        return 0
