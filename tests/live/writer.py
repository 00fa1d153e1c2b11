"""Writes files of a job row by row, as a recorder does while the job runs: for tests of what reads them meanwhile.

Rows come in the order in which they were over, each with its event; ids grow as rows are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

_HAPPENED = ("region", "sample", "kernel_dispatch", "memory_copy", "memory_allocate", "graph_launch")
_OF_EVENT = ("arg", "pmc_event")

Row = dict[str, Any]


class GrowingFile:
    """A file that grows.

    Args:
        whole: the file that it grows to.
        path: the file.
        journal: the journal mode of its writer.
    """

    def __init__(self, whole: Path, path: Path, journal: str = "delete") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._source = apsw.Connection(str(whole), flags=apsw.SQLITE_OPEN_READONLY)
        self.connection = apsw.Connection(str(path))
        self.connection.set_busy_timeout(60_000)
        self.connection.pragma("journal_mode", journal)
        self.connection.pragma("synchronous", "off")
        self._next = dict.fromkeys((*_HAPPENED, *_OF_EVENT, "event"), 1)
        self._named: dict[str, str] = {}
        with self.connection:
            for name, sql in list(self._source.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")):
                if not name.startswith("sqlite_"):
                    self._named[name[len("rocpd_") : -37]] = name
                    self.connection.execute(sql)
            for base, name in self._named.items():
                if base not in self._next:
                    self._insert(base, self._rows(f'SELECT * FROM "{name}"'))
            process = self._named["info_process"]
            self._ends = self.connection.execute(f'SELECT id, fini, "end" FROM "{process}"').fetchall()
            self.connection.execute(f'UPDATE "{process}" SET fini = NULL, "end" = NULL')
        events = self._rows(f'SELECT * FROM "{self._named["event"]}"')
        self._events = {row["id"]: row for row in events}
        self._with = {base: self._by_event(base) for base in _OF_EVENT}
        rows = [
            (int(row["end"] if "end" in row else row["timestamp"]), base, row)
            for base in _HAPPENED
            for row in self._all(base)
        ]
        self.rows = sorted(rows, key=lambda each: each[0])
        self.at = 0

    @property
    def first(self) -> int:
        """When its first row is over [ns]."""
        return int(self.rows[0][0])

    def write_until(self, end: float) -> None:
        """Write what is over by a time [ns], in one transaction."""
        new: dict[str, list[Row]] = {}
        while self.at < len(self.rows) and self.rows[self.at][0] <= end:
            _, base, row = self.rows[self.at]
            self.at += 1
            event = self._numbered("event", self._events.pop(row["event_id"], None), new)
            for other in _OF_EVENT if event else ():
                for each in self._with[other].pop(row["event_id"], ()):
                    self._numbered(other, {**each, "event_id": event}, new)
            self._numbered(base, {**row, "event_id": event}, new)
        if new:
            with self.connection:
                for base, rows in new.items():
                    self._insert(base, rows)

    def finish(self) -> None:
        """Write what is left, and that the process has ended."""
        self.write_until(float("inf"))
        sql = f'UPDATE "{self._named["info_process"]}" SET fini = ?2, "end" = ?3 WHERE id = ?1'
        self.connection.executemany(sql, self._ends)

    def close(self) -> None:
        """Close it."""
        self.connection.close()
        self._source.close()

    def _numbered(self, base: str, row: Row | None, new: dict[str, list[Row]]) -> int | None:
        if row is None:
            return None
        number = self._next[base]
        self._next[base] += 1
        new.setdefault(base, []).append({**row, "id": number})
        return number

    def _rows(self, sql: str) -> list[Row]:
        cursor = self._source.execute(sql)
        return [dict(zip((column[0] for column in cursor.description), row, strict=True)) for row in cursor]

    def _all(self, base: str) -> list[Row]:
        return self._rows(f'SELECT * FROM "{self._named[base]}"') if base in self._named else []

    def _by_event(self, base: str) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {}
        for row in self._all(base):
            found.setdefault(row["event_id"], []).append(row)
        return found

    def _insert(self, base: str, rows: Sequence[Row]) -> None:
        if rows:
            columns = ", ".join(f'"{column}"' for column in rows[0])
            marks = ", ".join("?" * len(rows[0]))
            sql = f'INSERT INTO "{self._named[base]}" ({columns}) VALUES ({marks})'
            self.connection.executemany(sql, [tuple(row.values()) for row in rows])
