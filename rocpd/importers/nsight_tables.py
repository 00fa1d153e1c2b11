"""The tables of an Nsight Systems export as it has them: which there are, their columns, texts and times."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rocpd.sqlite import apsw

_BATCH = 1 << 14
_NOT_EVENTS = ("ENUM_", "TARGET_INFO_", "META_DATA_", "EXPORT_", "sqlite_", "NVTX_PAYLOAD", "ANALYSIS_", "PROFILER_")


class NsightTables:
    """An open export.

    Args:
        connection: reads it.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._columns: dict[str, tuple[str, ...]] = {
            str(name): tuple(
                str(row[0]) for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
            )
            for (name,) in names
        }

    def query(self, sql: str, bindings: Sequence[Any] = ()) -> apsw.Cursor:
        """Run a SELECT."""
        return self._connection.execute(sql, tuple(bindings))

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with these columns."""
        return table in self._columns and set(columns) <= set(self._columns[table])

    def rows(self, table: str, columns: Sequence[str], where: str = "1", bindings: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield rows of a table, in order; columns that it lacks are NULL, a table that is absent has no rows."""
        if table in self._columns:
            yield from self.query(f"SELECT {self._listed(table, columns)} FROM {table} WHERE {where}", bindings)

    def batches(
        self, table: str, columns: Sequence[str], where: str = "1", bindings: Sequence[Any] = ()
    ) -> Iterator[tuple[Sequence[Any], ...]]:
        """Yield columns of a table, some thousand rows at a time."""
        if table not in self._columns:
            return
        cursor = self.query(f"SELECT {self._listed(table, columns)} FROM {table} WHERE {where}", bindings)
        while rows := tuple(itertools.islice(cursor, _BATCH)):
            yield tuple(zip(*rows, strict=True))

    def _listed(self, table: str, columns: Sequence[str]) -> str:
        there = self._columns[table]
        return ", ".join(f'"{name}"' if name in there else "NULL" for name in columns)

    @functools.cached_property
    def texts(self) -> Mapping[int, str]:
        """Number of a text -> the text."""
        return dict(self.rows("StringIds", ("id", "value")))

    @functools.cached_property
    def has_utc(self) -> bool:
        """Whether it says when the session began."""
        return self.shift != 0

    @functools.cached_property
    def shift(self) -> int:
        """What is added to times [ns]: then they count from 1970; 0 where nobody knows when the session began.

        Times count from the session's start, or are those of the system's clock, which stands beside it.
        """
        columns = ("utcEpochNs", "systemClockNs")
        for utc, system in self.rows("TARGET_INFO_SESSION_START_TIME", columns):
            if isinstance(utc, int):
                return utc - (system or 0)
        return 0

    @functools.cached_property
    def session(self) -> tuple[int | None, int | None]:
        """Start and end of the session [ns], shifted; None where it does not say."""
        for start, end in self.rows("ANALYSIS_DETAILS", ("startTime", "stopTime")):
            if isinstance(start, int) and isinstance(end, int) and start + self.shift > 0:
                return start + self.shift, end + self.shift
        return None, None

    def left_out(self, read: Collection[str], processes: Collection[int]) -> dict[str, int]:
        """Return the tables of events that nothing reads, and how many rows they have or have of other processes."""
        counts = {}
        listed = ", ".join(map(str, processes))
        for name, columns in self._columns.items():
            times = {"start", "timestamp", "rawTimestamp"} & set(columns)
            if not times or name.startswith(_NOT_EVENTS):
                continue
            key = next((column for column in ("globalPid", "globalTid") if column in columns), None)
            where = f"{key} >> 24 & 0xFFFFFF NOT IN ({listed})" if name in read and key else "1"
            if name in read and not key:
                continue
            count = int(self.query(f"SELECT COUNT(*) FROM {name} WHERE {where}").get)
            if count:
                counts[name if name not in read else f"{name} of processes without a GPU"] = count
        return counts
