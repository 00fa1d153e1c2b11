"""Owns deciding how a statement runs: rows per rank, partial aggregates per rank, or attached as written.

Takes a SELECT apart only when every rank can answer its share alone and the shares add up to SQLite's own answer;
when in doubt the statement runs attached. Never runs anything but empty statements on a skeleton without rows.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

import apsw

from rocpd.federate.lower import Lowered, Lowering, Sharded
from rocpd.federate.request import create_table
from rocpd.federate.sqltext import Unfaithful, name_parameters, read_select, text_of
from rocpd.federate.steps import Plan, Scatter, Strategy
from rocpd.schema.keyed import keyed_text, keyed_views
from rocpd.schema.load import TABLES, VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import Part, named, relations, select_text
from rocpd.schema.versions import LATEST
from rocpd.schema.write import create_table_text, create_view_text, tables_of

_OWN = re.compile(r"\b(?:gathered_|keyed__|lookup__|rows_of_share|rocpd_p\d)", re.I)


class Skeleton:
    """A database with all tables and views of a job and no rows: SQLite's own word on names, columns and affinities.

    It holds two ranks, so that base tables and views are the compounds that they are in a job.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        further = parts[0].further if parts else {}
        tables = {base: (*columns, *further.get(base, ())) for base, columns in tables_of(LATEST).items()}
        self.further: Mapping[str, tuple[str, ...]] = {base: names for base, names in further.items() if names}
        tables |= {base: columns for base, columns in self.further.items() if base not in tables}
        self._parts = [Part(f"_{i}", tables, rank=i, hostname="", further=further) for i in range(2)]
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
                for base in {place[0] for place in view(name).places} if name in VIEWS else {name}:
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


def plan(sql: str, parts: Sequence[Part], positional: int = 0) -> Plan:
    """Decide how `sql` runs over `parts`.

    Args:
        sql: what the user wrote.
        parts: the ranks.
        positional: how many positional parameters were given with it.
    """
    try:
        if _OWN.search(sql):
            raise Unfaithful("a name that plans use for themselves")
        named_sql, parameters = name_parameters(sql)
        if parameters != positional:
            raise Unfaithful("parameters and values differ in number")
        tree = read_select(named_sql)
        skeleton = Skeleton(parts)
        columns = skeleton.columns(sql, (0,) * positional)
        lowering = Lowering(skeleton)
        result = lowering.lower(tree, {})
    except Unfaithful as reason:
        return Plan(Strategy.ATTACHED, str(reason), sql)
    except (apsw.Error, RecursionError) as error:
        return Plan(Strategy.ATTACHED, f"SQLite: {error}", sql)
    return _finish(Plan(Strategy.AUTO, "", named_sql, parameters, columns), lowering, result)


def _finish(begun: Plan, lowering: Lowering, result: Lowered) -> Plan:
    if isinstance(result, Sharded):
        return dataclasses.replace(
            begun,
            strategy=Strategy.ROWS,
            reason="every rank answers with its own rows",
            steps=tuple(lowering.steps),
            final=text_of(result.tree),
            reads=tuple(sorted(result.reads)),
        )
    *steps, last = lowering.steps
    return dataclasses.replace(
        begun,
        strategy=Strategy.AGGREGATES,
        reason="every rank answers with its share, and the shares are put together",
        steps=tuple(steps),
        final=last.select,
    )
