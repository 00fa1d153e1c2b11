"""The connection that sees all ranks: with their files attached, or with copies of the tables that a statement names.

SQLite attaches a limited number of files. For statements over more files, the tables, columns and rows that they can
see are copied into a temporary database of SQLite: on disk in `$SQLITE_TMPDIR` or `$TMPDIR`, deleted by the system even
when the process is killed. Never renders views (`unify` does) and never decides how a file is opened (`opening` did).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rocpd.base.sqlite import READWRITE, apsw
from rocpd.federate.open.guard import guard
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import Opening, as_input_error
from rocpd.federate.run.shares import Share
from rocpd.federate.unify import Unifier
from rocpd.schema.load import VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named

if TYPE_CHECKING:
    from fractions import Fraction

ATTACH_LIMIT = apsw.Connection(":memory:").limit(apsw.SQLITE_LIMIT_ATTACHED)
"""Number of files that this SQLite can attach to one connection."""


def schemas_of(ranks: Iterable[Rank]) -> dict[Opening, str]:
    """Return the schema name of each file on the attached connection."""
    return {opening: f"f{index}" for index, opening in enumerate(dict.fromkeys(rank.opening for rank in ranks))}


def attached(ranks: Sequence[Rank], tables: Sequence[RankTables], busy_ms: int) -> Unifier:
    """Return the views over `tables` on an in-memory connection with the files of all ranks attached read-only."""
    connection = _opened(":memory:", busy_ms)
    try:
        for opening, schema in schemas_of(ranks).items():
            with as_input_error(opening.path):
                connection.execute(f"ATTACH ? AS {schema}", (opening.uri,))
        guard(connection)
    except BaseException:
        connection.close()
        raise
    return Unifier(connection, tables)


class CopiedDatabase(Unifier):
    """One connection with copies of the tables that statements name, for any number of ranks."""

    def __init__(self, shares: Sequence[Share], note: Callable[[str], None], busy_ms: int) -> None:
        # Only selected rows are copied, so the copies need no conditions.
        by_rank = {n: tables for share in shares for n, tables in zip(share.ranks, share.tables, strict=True)}
        tables_of_ranks = tuple(dataclasses.replace(by_rank[number], only={}) for number in sorted(by_rank))
        super().__init__(_opened("", busy_ms), tables_of_ranks)
        guard(self.connection)
        self._shares = shares
        self._note = note
        self._copied: dict[str, set[str]] = {}

    def prepare(self, sql: str) -> None:
        """Copy the tables that `sql` names, unless copied before, and create its views.

        Raises:
            InputError: a file cannot be read.
        """
        missing = {
            base: columns
            for base, columns in self._visible_columns(sql).items()
            if base not in self._copied or not columns <= self._copied[base]
        }
        if missing:
            openings = {share.opening for share in self._shares}
            size = sum(opening.size for opening in openings)
            self._note(
                f"{len(openings)} files are more than SQLite can attach: copying {', '.join(sorted(missing))}"
                f" to a temporary database (less than {size / 1e9:.1f} GB)"
            )
            self._copy(missing)
        super().prepare(sql)

    def _visible_columns(self, sql: str) -> dict[str, set[str]]:
        """Return base table -> columns that a statement can see; all columns if it names the table itself."""
        columns: dict[str, set[str]] = {}
        for name in named(sql, self.relations):
            if name not in VIEWS:
                columns[name] = {column for tables in self.tables for column in tables.columns.get(name, ())}
            for each in view(name).tables if name in VIEWS else ():
                columns.setdefault(each.table, set()).update(each.columns)
        return columns

    def _copy(self, missing: dict[str, set[str]]) -> None:
        connection = self.connection
        connection.authorizer = None
        try:
            for base, columns in missing.items():
                self._copied[base] = columns | self._copied.get(base, set())
            for share in self._shares:
                with as_input_error(share.opening.path):
                    try:
                        connection.execute("ATTACH ? AS source", (share.opening.uri,))
                        with connection:
                            for tables in share.tables:
                                for base in missing:
                                    self._copy_table(tables, base)
                    finally:
                        if "source" in connection.db_names():
                            connection.execute("DETACH source")
        except BaseException:
            self._copied.clear()
            raise
        finally:
            guard(connection)

    def _copy_table(self, tables: RankTables, base: str) -> None:
        if base not in tables.columns:
            return
        name = quote_name(base + tables.suffix)
        info = self.connection.execute(f"PRAGMA source.table_info({name})").fetchall()
        wanted = self._copied[base]
        columns = [(column, kind, key) for _, column, kind, _, _, key in info if column in wanted or column == "id"]
        # An id stays a primary key: views join by it.
        declared = ", ".join(
            f"{quote_name(column)} {kind}{' PRIMARY KEY' if key and column == 'id' else ''}"
            for column, kind, key in columns
        )
        items = ", ".join(quote_name(column) for column, _, _ in columns)
        condition = f" WHERE {tables.only[base]}" if base in tables.only else ""
        self.connection.execute(f"DROP TABLE IF EXISTS main.{name}")  # of an interrupted copy, or without some columns
        self.connection.execute(f"CREATE TABLE main.{name} ({declared})")
        self.connection.execute(f"INSERT INTO main.{name} SELECT {items} FROM source.{name}{condition}")


def _opened(name: str, busy_ms: int) -> apsw.Connection:
    """Return a connection to which files can be attached by their URI.

    It has the aggregate `stddev(x)`: the sample deviation (n - 1), NULL for fewer than two numbers.
    """
    connection = apsw.Connection(name, flags=READWRITE)
    connection.set_busy_timeout(busy_ms)
    connection.create_aggregate_function("stddev", SampleDeviation, 1)
    return connection


class SampleDeviation:
    """Collects numbers; sums are exact, so that their order does not matter."""

    def __init__(self) -> None:
        self._count = 0
        self._sum: int | Fraction = 0
        self._squares: int | Fraction = 0
        self._is_finite = True

    def step(self, *values: apsw.SQLiteValue) -> None:
        """Add one value; only numbers count."""
        (value,) = values
        if isinstance(value, float) and not math.isfinite(value):
            self._is_finite = False
        elif isinstance(value, (int, float)):
            number = value if isinstance(value, int) else _fraction(value)
            self._count += 1
            self._sum += number
            self._squares += number * number

    def final(self) -> float | None:
        """Return the deviation."""
        count = self._count
        if count < 2 or not self._is_finite:
            return None
        return math.sqrt((count * self._squares - self._sum * self._sum) / _fraction(count * (count - 1)))


def _fraction(number: float) -> Fraction:
    from fractions import Fraction  # with decimal: 3 ms, which most processes need not spend

    return Fraction(number)
