"""Owns statements over more files than SQLite can attach: the tables they name are copied into a temporary database.

Only tables, columns and rows that a statement can see are copied. The temporary database is SQLite's own: on disk in
`$SQLITE_TMPDIR` or `$TMPDIR`, deleted by the system even when the process is killed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import apsw

from rocpd.federate.open.guard import guard
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.run.pool import Share
from rocpd.federate.run.unify import Unifier
from rocpd.schema.load import VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named


class CopiedDatabase:
    """One connection that holds copies of what statements name, for any number of ranks."""

    def __init__(self, shares: Sequence[Share], note: Callable[[str], None], busy_ms: int) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        self.connection = apsw.Connection("", flags=flags)
        self.connection.set_busy_timeout(busy_ms)
        self._shares = shares
        self._note = note
        self._copied: dict[str, set[str]] = {}
        # The rows that do not count are not copied, so the copies need no conditions.
        numbered = {n: part for share in shares for n, part in zip(share.ranks, share.parts, strict=True)}
        self.parts = tuple(dataclasses.replace(numbered[number], only={}) for number in sorted(numbered))
        self._unifier = Unifier(self.connection, self.parts)
        self.relations = self._unifier.relations
        guard(self.connection)

    def prepare(self, sql: str) -> None:
        """Copy what `sql` names and is not there yet, and create its views.

        Raises:
            InputError: a file cannot be read.
        """
        missing = {
            base: columns
            for base, columns in self._needs(sql).items()
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
        self._unifier.prepare(sql)

    def _needs(self, sql: str) -> dict[str, set[str]]:
        """Base table -> columns that a statement can see; all of them when it names the table itself."""
        found: dict[str, set[str]] = {}
        for name in named(sql, self.relations):
            if name not in VIEWS:
                found[name] = {column for part in self.parts for column in part.tables.get(name, ())}
            for each in view(name).tables if name in VIEWS else ():
                found.setdefault(each.table, set()).update(each.columns)
        return found

    def _copy(self, needs: dict[str, set[str]]) -> None:
        connection = self.connection
        connection.authorizer = None
        try:
            for base, columns in needs.items():
                self._copied[base] = columns | self._copied.get(base, set())
            for share in self._shares:
                with as_input_error(share.opening.path):
                    try:
                        connection.execute("ATTACH ? AS source", (share.opening.uri,))
                        with connection:
                            for part in share.parts:
                                for base in needs:
                                    self._copy_table(part, base)
                    finally:
                        if "source" in connection.db_names():
                            connection.execute("DETACH source")
        except BaseException:
            self._copied.clear()
            raise
        finally:
            guard(connection)

    def _copy_table(self, part: RankTables, base: str) -> None:
        if base not in part.tables:
            return
        name = quote_name(base + part.suffix)
        info = self.connection.execute(f"PRAGMA source.table_info({name})").fetchall()
        wanted = self._copied[base]
        columns = [(column, kind, key) for _, column, kind, _, _, key in info if column in wanted or column == "id"]
        # An id stays a primary key: views join by it.
        declared = ", ".join(
            f"{quote_name(column)} {kind}{' PRIMARY KEY' if key and column == 'id' else ''}"
            for column, kind, key in columns
        )
        items = ", ".join(quote_name(column) for column, _, _ in columns)
        condition = f" WHERE {part.only[base]}" if base in part.only else ""
        self.connection.execute(f"DROP TABLE IF EXISTS main.{name}")  # of a copy that was interrupted, or lacks columns
        self.connection.execute(f"CREATE TABLE main.{name} ({declared})")
        self.connection.execute(f"INSERT INTO main.{name} SELECT {items} FROM source.{name}{condition}")
