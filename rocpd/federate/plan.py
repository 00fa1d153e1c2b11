"""Owns deciding how a statement runs: rows per rank, partial aggregates per rank, or attached as written.

Takes a SELECT apart only when every rank can answer its share alone and the shares add up to SQLite's own answer;
when in doubt the statement runs attached. Never runs anything but empty statements on a skeleton without rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import apsw

from rocpd.federate.lower import Lowered, Lowering, Sharded
from rocpd.federate.sqltext import Unfaithful, name_parameters, read_select, text_of
from rocpd.federate.steps import Plan, Strategy
from rocpd.schema.quote import quote_name
from rocpd.schema.render import Part, named, relations, select_text
from rocpd.schema.write import create_view_text


class Skeleton:
    """A database with all tables and views of a job and no rows: SQLite's own word on names and columns."""

    def __init__(self, parts: Sequence[Part]) -> None:
        further = parts[0].further if parts else {}
        self._parts = [Part("", {}, rank=0, hostname="", further=further)]
        self.relations = tuple(dict.fromkeys((*relations(self._parts), *further)))
        self._connection = apsw.Connection(":memory:")
        self._done: set[str] = set()

    def columns(self, sql: str) -> tuple[str, ...]:
        """Give the result columns of a statement.

        Raises:
            apsw.SQLError: SQLite refuses the statement.
        """
        for name in named(sql, self.relations):
            if name not in self._done:
                self._done.add(name)
                self._connection.execute(create_view_text(name, select_text(name, self._parts), temporary=True))
        found: list[tuple[str, ...]] = []
        cursor = self._connection.cursor()

        def note(c: apsw.Cursor, _sql: str, _bindings: object) -> bool:
            found.append(tuple(column[0] for column in c.get_description()))
            return False

        cursor.exec_trace = note
        try:
            cursor.execute(sql, _AnyParameter())
        except apsw.ExecTraceAbort:
            pass
        finally:
            cursor.exec_trace = None
        return found[0] if found else ()

    def add(self, table: str, columns: Sequence[str]) -> None:
        """Create an empty gathered table."""
        self._connection.execute(f"CREATE TEMP TABLE {quote_name(table)} ({', '.join(map(quote_name, columns))})")


class _AnyParameter(Mapping[str, None]):
    """Binds NULL to every parameter of a statement that is never run."""

    def __getitem__(self, key: str) -> None:
        return None

    def __iter__(self):  # type: ignore[no-untyped-def]
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
        named_sql, parameters = name_parameters(sql)
        if parameters != positional:
            raise Unfaithful("parameters and values differ in number")
        tree = read_select(named_sql)
        skeleton = Skeleton(parts)
        columns = skeleton.columns(named_sql)
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
