"""A file's newest rows, copied piece by piece into a file of one's own.

A piece is one statement, and so one short read transaction on the file. Tables that others refer to are read after
these, so that no row lacks what it refers to. Rows of what happened are known by their row ids, which grow as they are
written; times grow about as row ids do, so where a time begins is found by halving. Derives nothing of a row.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rocpd.base.frozen import frozen
from rocpd.base.sqlite import apsw
from rocpd.schema.quote import quote_name

PIECE_S = 0.025
"""Pieces are made smaller where they take longer: in rollback mode a writer waits for the end of one [s]."""

_ROWS, _FEWEST, _MOST = 4096, 256, 65536  # of a piece
_NEWEST = 50_000  # rows of a table that a copy begins with: what happened hours ago is nobody's question here
_KEPT = 400_000  # rows of a table: those before them go, whoever reads the copy
_FEW = 64  # things, which are copied again each time: what is known of a process grows
_SLACK = 1024  # rows that may stand before others that ended earlier
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


class _Kind(enum.IntEnum):
    """What becomes of the rows of a table; in the order in which tables are read."""

    HAPPENED = 0  # the newest are kept, by their times
    HELD = 1  # all are kept: what memory is held
    OF_EVENT = 2  # kept with their events
    EVENT = 3
    TEXT = 4  # all are kept
    THING = 5  # all are kept, and change: processes, threads, agents, whose ids are not in order


_KINDS = {
    "rocpd_memory_allocate": _Kind.HELD,
    "rocpd_arg": _Kind.OF_EVENT,
    "rocpd_pmc_event": _Kind.OF_EVENT,
    "rocpd_event": _Kind.EVENT,
    "rocpd_track": _Kind.TEXT,
    "rocpd_string": _Kind.TEXT,
    "rocpd_metadata": _Kind.THING,
    "rocpd_info": _Kind.THING,
}
_ENDS = ("end", "timestamp")  # columns that say when something was over


@frozen
class _Table:
    """A table: its name with the suffix of its rank, what becomes of its rows, the column of its times or events."""

    name: str
    kind: _Kind
    column: str = ""

    @property
    def quoted(self) -> str:
        return quote_name(self.name)


class Copy:
    """The copy.

    Args:
        path: where it lies; made anew.
        busy_ms: how long a piece waits for a writer's lock [ms].
    """

    def __init__(self, path: Path, busy_ms: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.piece = _ROWS
        self.is_attached = False
        self._tables: dict[_Table, int] = {}
        self._connection = apsw.Connection(os.fspath(path), _FLAGS, statementcachesize=64)
        self._connection.set_busy_timeout(busy_ms)
        for pragma, value in (("journal_mode", "memory"), ("synchronous", "off"), ("foreign_keys", "off")):
            self._connection.pragma(pragma, value)

    @property
    def has_tables(self) -> bool:
        """Whether there is something to read."""
        return any(table.kind < _Kind.TEXT for table in self._tables)

    def attach(self, uri: str) -> None:
        """Let a file be what is copied.

        Raises:
            apsw.Error: it cannot be opened.
        """
        self._connection.execute("ATTACH ? AS source", (uri,))
        self.is_attached = True

    def detach(self) -> None:
        """Let go of the file."""
        if self.is_attached:
            with suppress(apsw.Error):
                self._connection.execute("DETACH source")
        self.is_attached = False

    def close(self) -> None:
        """Let go of all."""
        self._connection.close()

    def update(self) -> int:
        """Copy the rows that have come; return how many.

        Raises:
            apsw.Error: the file cannot be read, or is another one.
        """
        self._add_tables()
        tables = sorted(self._tables, key=lambda table: table.kind)
        return sum(self._things(table) if table.kind is _Kind.THING else self._copied(table) for table in tables)

    def forget_before(self, end: int) -> None:
        """Let rows of what was over before a time go [ns of the file's clock]."""
        firsts = {table: self._first("main", table, end) for table in self._of(_Kind.HAPPENED)}
        for table, first in firsts.items():
            firsts[table] = max(first, self._tables[table] - _KEPT)
            self._delete(table, firsts[table])
        event = self._first_event("main", firsts)
        for table in self._of(_Kind.OF_EVENT, _Kind.EVENT) if event else ():
            self._delete(table, event if table.kind is _Kind.EVENT else self._first("main", table, event))

    def _of(self, *kinds: _Kind) -> list[_Table]:
        return [table for table in self._tables if table.kind in kinds]

    def _add_tables(self) -> None:
        """Make the tables that the copy lacks, and find where each begins."""
        known = {table.name for table in self._tables}
        sql = "SELECT name, sql FROM source.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
        found = [(str(name), str(text)) for name, text in self._connection.execute(sql) if name not in known]
        for _, text in found:
            self._connection.execute(text)
        new = {self._described(name): 0 for name, _ in found}
        if new:
            self._tables |= new
            self._skip_what_is_old(list(new))

    def _described(self, name: str) -> _Table:
        kind = next((kind for base, kind in _KINDS.items() if name.startswith(base)), _Kind.HAPPENED)
        columns = {str(row[1]) for row in self._connection.execute(f"PRAGMA main.table_info({quote_name(name)})")}
        if kind is _Kind.HAPPENED:
            return _Table(name, kind, next((column for column in _ENDS if column in columns), ""))
        return _Table(name, kind, "event_id" if kind is _Kind.OF_EVENT else "")

    def _skip_what_is_old(self, tables: Iterable[_Table]) -> None:
        """Begin where the newest rows of the largest tables do."""
        timed = [table for table in tables if table.kind is _Kind.HAPPENED and table.column]
        since = None
        for table in timed:
            last = self._value(f"SELECT max(rowid) FROM source.{table.quoted}") or 0  # noqa: S608 (quoted)
            if last > _NEWEST:
                end = self._end("source", table, last - _NEWEST)
                since = end if since is None else max(since, end or since)
        if since is None:
            return
        firsts = {table: self._first("source", table, since) for table in timed}
        event = self._first_event("source", firsts)
        for table in tables if event else ():
            if table.kind is _Kind.EVENT:
                firsts[table] = event or 0
            elif table.kind is _Kind.OF_EVENT:
                firsts[table] = self._first("source", table, event or 0)
        self._tables |= {table: max(0, first - 1) for table, first in firsts.items()}

    def _things(self, table: _Table) -> int:
        """Copy all rows of a table, where there are more of them or few; return how many are new."""
        before, now = (self._value(f"SELECT count(*) FROM {of}.{table.quoted}") or 0 for of in ("main", "source"))  # noqa: S608 (quoted)
        if now > before or now <= _FEW:
            self._tables[table] = -1
            self._copied(table)
        return max(0, now - before)

    def _copied(self, table: _Table) -> int:
        """Copy the new rows of a table, piece by piece; return how many."""
        count, last = 0, self._tables[table]
        columns = f"SELECT * FROM source.{table.quoted} WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608 (quoted)
        sql = f"INSERT OR REPLACE INTO main.{table.quoted} {columns}"
        while True:
            size, begun = self.piece, time.perf_counter()
            self._connection.execute(sql, (last, size))
            took, changed = time.perf_counter() - begun, self._connection.changes()
            if took > PIECE_S:
                self.piece = max(_FEWEST, size // 2)
            elif took < PIECE_S / 4 and changed == size:
                self.piece = min(_MOST, size * 2)
            if changed:
                self._tables[table] = last = self._connection.last_insert_rowid()
                count += changed
            if changed < size:
                return count

    def _delete(self, table: _Table, before: int) -> None:
        self._connection.execute(f"DELETE FROM main.{table.quoted} WHERE rowid < ?", (before,))  # noqa: S608 (quoted)

    def _first_event(self, schema: str, firsts: dict[_Table, int]) -> int | None:
        """Return the first event of what begins with some rows, which may stand in any order."""
        events = []
        for table, first in firsts.items():
            rows = f"SELECT event_id FROM {schema}.{table.quoted} WHERE rowid >= ? LIMIT {_SLACK}"  # noqa: S608 (quoted)
            events.append(self._value(f"SELECT min(event_id) FROM ({rows})", first))  # noqa: S608 (quoted)
        return min((event for event in events if event is not None), default=None)

    def _end(self, schema: str, table: _Table, row: int) -> int | None:
        sql = f"SELECT {quote_name(table.column)} FROM {schema}.{table.quoted} WHERE rowid >= ? LIMIT 1"  # noqa: S608 (quoted)
        return self._value(sql, row)

    def _first(self, schema: str, table: _Table, value: int) -> int:
        """Return a row before which none is needed, if only those count of which the column is at least a value."""
        if not table.column:
            return 0
        edges = f"SELECT min(rowid), max(rowid) FROM {schema}.{table.quoted}"  # noqa: S608 (quoted)
        first, last = self._connection.execute(edges).fetchall()[0]
        if first is None:
            return 0
        low, high = int(first), int(last) + 1
        while low < high:
            middle = (low + high) // 2
            found = self._end(schema, table, middle)
            if found is not None and found < value:
                low = middle + 1
            else:
                high = middle
        return max(0, low - _SLACK)

    def _value(self, sql: str, *bindings: int) -> int | None:
        """Return the only value that a statement finds."""
        row = self._connection.execute(sql, bindings).fetchone()
        return int(row[0]) if row and row[0] is not None else None
