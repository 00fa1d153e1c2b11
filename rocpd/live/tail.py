"""Follows the files of a running job: finds them, notices their changes, and keeps copies of their newest rows.

Readers of the job read the copies: small, complete in themselves, and without locks. `federate.open.opening` decides
each time how files are opened, so nothing is written or created beside them.

A copy takes the newest rows of a file piece by piece into a private database. A piece is one statement, and so one
short read transaction on the file. Referenced tables are read after the tables that refer to them, so that no row lacks
its references. Rows with times are known by their row ids, which grow as they are written; times grow roughly with row
ids, so the row for a time is found by bisection.

New rows with times wait in memory. The rows of a rank are released up to one time of its program, and forgotten before
another: GPU work goes with the call that launched it, so that the communication of ranks is complete in the same way in
all of them, though each writes at its own pace. Marker ranges are released at once, since they determine these times.
Events, and the rows that belong to them, have no meaning of their own: they are copied once, and go with their rows.
Derives nothing else.
"""

from __future__ import annotations

import enum
import os
import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rocpd.base import ForeignError, InputError, RocpdError, frozen, leftovers
from rocpd.base.identity import JOURNALS
from rocpd.base.sqlite import apsw
from rocpd.federate.open.opening import Opening, opening_of
from rocpd.federate.open.source import find_sources
from rocpd.schema.live_state import ENDED, flags_of, state_file
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.rules.categories import marker_categories
from rocpd.schema.versions import foreign_kind, split_suffix

PIECE_S = 0.025
"""Pieces that take longer are made smaller: in rollback mode a writer waits for the end of a piece [s]."""

_ROWS, _SMALLEST_PIECE, _LARGEST_PIECE = 4096, 256, 65536  # of a piece
_KEPT = 400_000  # rows of a table: older ones go, even if the copy is being read
_FEW = 64  # rows of a table that is copied again each time, since its rows change
_CACHE_KIB = 256
_SLACK = 1024  # rows that may come before others that ended earlier
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


class _Kind(enum.IntEnum):
    """The ways in which rows of a table are copied, in the order in which tables are read."""

    HAPPENED = 0  # the newest are kept, by their times; new ones wait
    HELD = 1  # all are kept, for the memory held; new ones wait
    OF_EVENT = 2  # kept with their events
    EVENT = 3  # kept with the rows of the event
    TEXT = 4  # all are kept
    THING = 5  # all are kept, and change: processes, threads, agents, whose ids are not in order


_REGION, _EVENT, _STRING, _ARGUMENT = "rocpd_region", "rocpd_event", "rocpd_string", "rocpd_arg"
_KINDS = {
    "rocpd_memory_allocate": _Kind.HELD,
    _ARGUMENT: _Kind.OF_EVENT,
    "rocpd_pmc_event": _Kind.OF_EVENT,
    _EVENT: _Kind.EVENT,
    "rocpd_track": _Kind.TEXT,
    _STRING: _Kind.TEXT,
    "rocpd_metadata": _Kind.THING,
}
_WORK = ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_graph_launch")
"""The work that calls launch."""
_MADE = "SELECT id FROM {} WHERE string GLOB 'ncclComm*'"  # calls that make communicators, whose sizes are needed later


_ENDLESS = 2**63 - 1
_PICKED = "rowid IN (SELECT row FROM fresh.picked)"
_FREED = """{0} WHERE start < ?1 AND rowid NOT IN (SELECT row FROM (
    SELECT rowid AS row, type, row_number() OVER (
        PARTITION BY level, address, iif(address IS NULL, agent_id, 0), iif(address IS NULL, queue_id, 0)
        ORDER BY start DESC) AS number FROM {0} WHERE start < ?1) WHERE number = 1 AND type = 'ALLOC')"""
"""Allocations that were freed before a time are no longer needed."""


@frozen
class _Table:
    """A table: its name, its base name, the suffix of its rank, the way it is copied, the columns of times."""

    name: str
    base: str
    suffix: str
    kind: _Kind
    start: str = ""
    end: str = ""

    def of(self, schema: str) -> str:
        """Return its name in statements."""
        return f"{schema}.{quote_name(self.name)}"


class FreshCopy:
    """The copy.

    Args:
        path: its path; an existing file is replaced.
        busy_ms: time for which a piece waits for a writer's lock [ms].
        newest: rows of a table with which a copy begins, as earlier hours do not matter here.
        arguments: names of the arguments of calls that are copied; None: all.

    Attributes:
        newest: the same, for the next time that it begins anew.
        since: suffix of a rank -> end before which rows were too old to be copied [ns].
    """

    def __init__(self, path: Path, busy_ms: int, newest: int, arguments: Collection[str] | None = None) -> None:
        self.newest = newest
        self._arguments = None if arguments is None else ", ".join(map(quote_text, arguments))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.since: dict[str, int] = {}
        self._piece, self._is_attached = _ROWS, False
        self._linked: dict[_Table, int] = {}
        self._tables: dict[_Table, int] = {}
        self._firsts: dict[_Table, int] = {}
        self._connection = apsw.Connection(os.fspath(path), _FLAGS, statementcachesize=256)
        self._connection.set_busy_timeout(busy_ms)
        for pragma, value in (("journal_mode", "memory"), ("synchronous", "off"), ("foreign_keys", "off")):
            self._connection.pragma(pragma, value)
        self._run("ATTACH '' AS fresh")  # a temporary file of SQLite, once it is large
        self._run("PRAGMA fresh.journal_mode = off")
        for schema in ("main", "fresh"):  # of hundreds of copies
            self._run(f"PRAGMA {schema}.cache_size = {-_CACHE_KIB}")
        self._run(
            "CREATE TABLE fresh.launches (suffix TEXT, stack INT, start INT, PRIMARY KEY (suffix, stack)) WITHOUT ROWID"
        )
        self._run("CREATE TABLE fresh.picked (row INTEGER PRIMARY KEY)")
        self._run("CREATE TABLE fresh.events (event INTEGER PRIMARY KEY)")

    @property
    def has_tables(self) -> bool:
        """Whether there are tables with rows to read."""
        return any(table.kind < _Kind.TEXT for table in self._tables)

    def has_ended(self) -> bool:
        """Whether the file has the ends of all its processes."""
        processes = [table for table in self._of(_Kind.THING) if table.base == "rocpd_info_process" and table.end]
        ends = [
            f"SELECT count(*), count(nullif({quote_name(table.end)}, 0)) FROM {table.of('main')}" for table in processes
        ]
        counts = [self._connection.execute(sql).fetchall()[0] for sql in ends]
        return bool(counts) and all(every and every == known for every, known in counts)

    def is_far_behind(self) -> bool:
        """Whether so many rows are waiting that the copy should skip to the newest."""
        behind = (
            self._last(table) - max(0, last)
            for table, last in self._tables.items()
            if table.kind is _Kind.HAPPENED and last
        )
        return max(behind, default=0) > self.newest

    def skip_ahead(self) -> None:
        """Forget the rows with times, and go on with the newest."""
        for suffix in {table.suffix for table in self._tables}:
            for table in self._of(_Kind.HAPPENED, suffix=suffix):
                self._note_events(table.of("fresh"))
                self._run(f"DELETE FROM {table.of('fresh')}")
            self.forget_before(suffix, None)
            self._skip_what_is_old(self._of(_Kind.HAPPENED, _Kind.OF_EVENT, _Kind.EVENT, suffix=suffix))

    def kept(self) -> int:
        """Return the number of released rows of the largest table with times."""
        counts = (self._value(f"SELECT count(*) FROM {table.of('main')}") or 0 for table in self._of(_Kind.HAPPENED))
        return max(counts, default=0)

    def attach(self, uri: str) -> None:
        """Copy from this file from now on.

        Raises:
            apsw.Error: the file cannot be opened.
        """
        self._connection.execute("ATTACH ? AS source", (uri,))
        self._is_attached = True

    def detach(self) -> None:
        """Detach the file."""
        if self._is_attached:
            with suppress(apsw.Error):
                self._run("DETACH source")
        self._is_attached = False

    def close(self) -> None:
        """Close the copy."""
        self._connection.close()

    def update(self) -> int:
        """Copy the new rows; return their number.

        Raises:
            apsw.Error: the file cannot be read, or is another one.
            ForeignError: its schema cannot be followed.
        """
        self._add_tables()
        tables = sorted(self._tables, key=lambda table: table.kind)
        count = sum(self._things(table) if table.kind is _Kind.THING else self._copied(table) for table in tables)
        for table in self._of(_Kind.HAPPENED):
            if count and table.base == _REGION:
                self._note_launches(table)
                self._free_markers(table)
        return count

    def complete(self) -> None:
        """Copy the arguments that were left out, for the events that are kept.

        Raises:
            apsw.Error: the file cannot be read.
        """
        for table in self._of(_Kind.OF_EVENT) if self._arguments is not None else ():
            if table.base == _ARGUMENT and (events := self._named(table.suffix, _EVENT)):
                where = f" AND event_id IN (SELECT id FROM {events.of('main')})"
                deque(self._pieces(table, self._firsts.get(table, 0), where), maxlen=0)

    def free_until(self, suffix: str, end: int | None) -> None:
        """Release the rows of a rank that belong before a time of its program [ns]; None: all."""
        for table in self._of(_Kind.HAPPENED, _Kind.HELD, suffix=suffix):
            self._pick("fresh", table, end)
            self._move(table)

    def forget_before(self, suffix: str, start: int | None) -> None:
        """Forget the released rows of a rank that belong before a time of its program [ns]; None: all."""
        for table in self._of(_Kind.HAPPENED, suffix=suffix):
            self._pick("main", table, start)
            oldest = self._tables[table] - _KEPT
            strings = self._named(suffix, _STRING)
            made = _MADE.format(strings.of("main")) if table.base == _REGION and strings else ""
            stays = f" AND name_id NOT IN ({made})" if made else ""
            rows = f"{table.of('main')} WHERE ({_PICKED} OR rowid < {oldest}){stays}"
            self._note_events(rows)
            self._run(f"DELETE FROM {rows}")
        before = _ENDLESS if start is None else start
        self._run("DELETE FROM fresh.launches WHERE suffix = ? AND start < ?", suffix, before)
        for table in self._of(_Kind.HELD, suffix=suffix):
            rows = _FREED.format(table.of("main"))
            self._note_events(rows, before)
            self._run(f"DELETE FROM {rows}", before)
        self._forget_events(suffix)

    def _of(self, *kinds: _Kind, suffix: str | None = None) -> list[_Table]:
        return [each for each in self._tables if each.kind in kinds and suffix in (None, each.suffix)]

    def _named(self, suffix: str, base: str) -> _Table | None:
        return next((table for table in self._tables if (table.suffix, table.base) == (suffix, base)), None)

    def _add_tables(self) -> None:
        """Create the tables that the copy lacks, and find the first row to copy of each."""
        known = {table.name for table in self._tables}
        sql = "SELECT name, sql FROM source.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
        tables = [(str(name), str(text)) for name, text in self._connection.execute(sql) if name not in known]
        if foreign := foreign_kind([name for name, _ in tables]):
            raise ForeignError(f"{foreign}: it is read once the job is over, not while it runs")
        new = []
        for name, text in tables:
            base, suffix = split_suffix(name) or (name, "")
            kind = _KINDS.get(base, _Kind.THING if base.startswith("rocpd_info") else _Kind.HAPPENED)
            self._run(text)
            columns = {str(row[1]) for row in self._connection.execute(f"PRAGMA main.table_info({quote_name(name)})")}
            start, end = ("start", "end") if "end" in columns else ("timestamp",) * 2
            times = (start, end) if start in columns else ("", "")
            if kind < _Kind.OF_EVENT:  # as it is, except for its references to other tables, which do not exist here
                self._run(f"CREATE TABLE fresh.{quote_name(name)} AS SELECT * FROM main.{quote_name(name)}")
                if "id" in columns:
                    self._run(f"CREATE INDEX fresh.{quote_name(f'by_{name}')} ON {quote_name(name)} (id)")
            new.append(_Table(name, base, suffix, kind, *times))
        self._tables |= dict.fromkeys(new, 0)
        for suffix in {table.suffix for table in new}:
            self._skip_what_is_old([table for table in new if table.suffix == suffix])

    def _skip_what_is_old(self, tables: Iterable[_Table]) -> None:
        """Begin with the newest rows of the largest tables of a rank."""
        timed = [table for table in tables if table.kind is _Kind.HAPPENED and table.end]
        ends = []
        for table in timed:
            last = self._last(table)
            if last > self.newest:
                ends.append(self._at(table, "end", last - self.newest) or 0)
        if not ends:
            return
        self.since[timed[0].suffix] = since = max(ends)
        firsts = {table: self._first(table, "end", since) for table in timed}
        # The events of a table with few rows are old, and would make all later ones be copied.
        largest = max(timed, key=self._last)
        rows = f"SELECT event_id FROM {largest.of('source')} WHERE rowid >= ? LIMIT {_SLACK}"
        event = self._value(f"SELECT min(event_id) FROM ({rows})", firsts[largest]) or 0
        for table in tables:
            if table.kind is _Kind.EVENT:
                firsts[table] = event
            elif table.kind is _Kind.OF_EVENT:
                firsts[table] = self._first(table, "event_id", event)
        begins = {table: max(0, first - 1) for table, first in firsts.items()}
        self._firsts |= begins
        self._tables |= begins

    def _last(self, table: _Table) -> int:
        return self._value(f"SELECT max(rowid) FROM {table.of('source')}") or 0

    def _things(self, table: _Table) -> int:
        """Copy all rows of a table if it has new ones or is small; return the number of new rows."""
        before, now = (self._value(f"SELECT count(*) FROM {table.of(schema)}") or 0 for schema in ("main", "source"))
        if now > before or now <= _FEW:
            self._tables[table] = -1
            self._copied(table)
        return max(0, now - before)

    def _copied(self, table: _Table) -> int:
        """Copy the new rows of a table; return the number of rows read."""
        count = 0
        where = f" AND name IN ({self._arguments})" if table.base == _ARGUMENT and self._arguments is not None else ""
        for read, last in self._pieces(table, self._tables[table], where):
            count, self._tables[table] = count + read, last
        return count

    def _pieces(self, table: _Table, last: int, where: str) -> Iterator[tuple[int, int]]:
        """Copy the rows after `last`, or some of them; yield the number of rows read and the last row of each piece."""
        newest = self._last(table)
        target = table.of("fresh" if table.kind < _Kind.OF_EVENT else "main")
        rows = f"FROM {table.of('source')} WHERE rowid > ? AND rowid <= ?"
        while last < newest:
            edge, begun = min(newest, last + self._piece), time.perf_counter()
            self._run(f"INSERT OR REPLACE INTO {target} SELECT * {rows}{where}", last, edge)
            took, changed = time.perf_counter() - begun, self._connection.changes()
            if took > PIECE_S:
                self._piece = max(_SMALLEST_PIECE, self._piece // 2)
            elif took < PIECE_S / 4 and edge < newest:
                self._piece = min(_LARGEST_PIECE, self._piece * 2)
            read = edge - last if where else changed
            last = edge if changed else (self._value(f"SELECT min(rowid) {rows}", edge, newest) or newest + 1) - 1
            yield read, last

    def _note_launches(self, regions: _Table) -> None:
        """Note the starts of calls that launched work, by stack id."""
        events = self._named(regions.suffix, _EVENT)
        if events:
            joined = f"{regions.of('fresh')} R CROSS JOIN {events.of('main')} E ON E.id = R.event_id"  # in this order
            calls = f"SELECT ?, E.stack_id, min(R.start) FROM {joined} WHERE R.id > ? AND E.stack_id > 0"
            sql = f"{calls} GROUP BY E.stack_id"
            self._run(f"INSERT OR IGNORE INTO fresh.launches {sql}", regions.suffix, self._linked.get(regions, 0))
            self._linked[regions] = self._tables[regions]

    def _free_markers(self, regions: _Table) -> None:
        strings, events = (self._named(regions.suffix, base) for base in (_STRING, _EVENT))
        if strings and events:
            categories = marker_categories(strings.of("main"))
            joined = f"{regions.of('fresh')} R CROSS JOIN {events.of('main')} E ON E.id = R.event_id"
            self._run("DELETE FROM fresh.picked")  # rows of other tables that were forgotten
            self._run(f"INSERT INTO fresh.picked SELECT R.rowid FROM {joined} WHERE E.category_id IN ({categories})")
            self._move(regions)

    def _pick(self, schema: str, table: _Table, before: int | None) -> None:
        """Pick the rows of a table that belong before a time."""
        self._run("DELETE FROM fresh.picked")
        events = self._named(table.suffix, _EVENT)
        if before is None or not table.start:
            self._run(f"INSERT INTO fresh.picked SELECT rowid FROM {table.of(schema)}")
        elif table.base in _WORK and events:
            event = f"LEFT JOIN {events.of('main')} E ON E.id = O.event_id"
            call = "LEFT JOIN fresh.launches L ON L.suffix = ? AND L.stack = E.stack_id"
            sql = f"SELECT O.rowid FROM {table.of(schema)} O {event} {call} WHERE coalesce(L.start, O.start) < ?"
            self._run(f"INSERT INTO fresh.picked {sql}", table.suffix, before)
        else:
            sql = f"SELECT rowid FROM {table.of(schema)} WHERE {quote_name(table.start)} < ?"
            self._run(f"INSERT INTO fresh.picked {sql}", before)

    def _move(self, table: _Table) -> None:
        """Release the picked rows of a table."""
        rows = f"FROM {table.of('fresh')} WHERE {_PICKED}"
        self._run(f"INSERT OR REPLACE INTO {table.of('main')} SELECT * {rows}")
        self._run(f"DELETE {rows}")
        self._run("DELETE FROM fresh.picked")

    def _note_events(self, rows: str, *bindings: int) -> None:
        """Note the events of rows that go."""
        self._run(f"INSERT OR IGNORE INTO fresh.events SELECT event_id FROM {rows}", *bindings)

    def _forget_events(self, suffix: str) -> None:
        """Remove the noted events, except those of rows that stay."""
        for table in self._of(_Kind.HAPPENED, _Kind.HELD, suffix=suffix):
            for schema in ("main", "fresh"):
                self._run(f"DELETE FROM fresh.events WHERE event IN (SELECT event_id FROM {table.of(schema)})")
        for table in self._of(_Kind.EVENT, _Kind.OF_EVENT, suffix=suffix):
            column = "id" if table.kind is _Kind.EVENT else "event_id"
            self._run(f"DELETE FROM {table.of('main')} WHERE {column} IN (SELECT event FROM fresh.events)")
        self._run("DELETE FROM fresh.events")

    def _at(self, table: _Table, column: str, row: int) -> int | None:
        column = quote_name(table.end if column == "end" else column)
        return self._value(f"SELECT {column} FROM {table.of('source')} WHERE rowid >= ? LIMIT 1", row)

    def _first(self, table: _Table, column: str, value: int) -> int:
        """Return a row before which all values of a column are below `value`."""
        low = self._value(f"SELECT min(rowid) FROM {table.of('source')}") or 0
        high = self._last(table) + 1
        while low < high:
            middle = (low + high) // 2
            at_middle = self._at(table, column, middle)
            if at_middle is not None and at_middle < value:
                low = middle + 1
            else:
                high = middle
        return max(0, low - _SLACK)

    def _run(self, sql: str, *bindings: int | str) -> None:
        self._connection.execute(sql, bindings)

    def _value(self, sql: str, *bindings: int) -> int | None:
        """Return the only value in the result of a statement."""
        row = self._connection.execute(sql, bindings).fetchone()
        return row[0] if row and isinstance(row[0], int) else None


_NEWEST, _FEWEST, _MOST = 400_000, 4_000, 50_000  # first rows of a table: of all files, of a file
_LEAST = 1_000  # rows of a table to go on with
_BUSY_MS = 200  # for a writer's lock: comparisons need rows of each rank
_SETTLED_S = 2.0  # a journal beside a file that was written to since then may belong to a live writer


class FileSignature(NamedTuple):
    """Values that change when rows come: the file's identity, and size and time of it and of its journals."""

    inode: tuple[int, int]
    size: int
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, path: Path) -> FileSignature | None:
        """Return the signature of a file; None if it does not exist."""
        real = os.path.realpath(path)
        try:
            first = os.stat(real)  # noqa: PTH116 (quick)
        except OSError:
            return None
        parts = [(first.st_size, first.st_mtime_ns)]
        for ending in JOURNALS[:2]:
            with suppress(OSError):
                status = os.stat(real + ending)  # noqa: PTH116 (quick)
                parts.append((status.st_size, status.st_mtime_ns))
        return cls((first.st_dev, first.st_ino), first.st_size, tuple(parts))

    @property
    def written_s(self) -> float:
        """Time of the last write [s since 1970]."""
        return max(when for _, when in self.parts) / 1e9


class TailedFile:
    """A file of a running job, and the copy of its newest rows.

    Args:
        path: the file.
        copy: path of the copy.
        newest: rows of a table that it begins with.
        arguments: names of the arguments of calls that are copied; None: all.

        Attributes:
        rows: rows copied so far.
        grown_at: time of the last new rows; before the first, time of the last write to the file [s since 1970].
        has_grown: whether rows have come since the first look.
        problem: reason why it can't be read now; empty: it can.
        begun_again: number of times that it was replaced or cut.
    """

    def __init__(self, path: Path, copy: Path, newest: int = _MOST, arguments: Collection[str] | None = None) -> None:
        self.path, self.copy, self._newest, self._arguments = path, copy, newest, arguments
        self.rows, self.grown_at, self.has_grown = 0, 0.0, False
        self.problem, self.begun_again = "", 0
        self._had_state = False  # a process that ends by itself removes its state file
        self._signature: FileSignature | None = None
        self._noticed: FileSignature | None = None
        self._opening: Opening | None = None
        self._copy: FreshCopy | None = None

    @property
    def written_s(self) -> float:
        """Time of the last write; 0: the file does not exist [s since 1970]."""
        signature = FileSignature.of(self.path)
        return signature.written_s if signature else 0.0

    @property
    def is_live(self) -> bool:
        """Whether it has grown while watched, or its process has left its state file, or still writes it."""
        return self.has_grown or state_file(self.path).exists()

    @property
    def may_grow(self) -> bool:
        """Whether its process has not reported its end, by its state file or by its rows."""
        with suppress(OSError):
            return not flags_of(state_file(self.path)) & ENDED
        return not (self._had_state or (self._copy and self._copy.has_ended()))

    @property
    def has_rows(self) -> bool:
        """Whether there is a readable copy."""
        return self._copy is not None and self._copy.has_tables

    @property
    def fresh(self) -> FreshCopy:
        """The copy, for a file that has rows."""
        assert self._copy
        return self._copy

    def notice(self) -> None:
        """Note whether the file was written to since the last look; `poll` reads the rows."""
        if (signature := self._marks()) is None:
            self.problem = "it is gone"
        elif signature != self._noticed:
            self._noticed, self.grown_at, self.has_grown = signature, time.time(), True

    def catch_up(self) -> None:
        """Skip rows if too many have come to be worth copying."""
        signature = FileSignature.of(self.path)
        if not self._copy or not signature or signature == self._signature or self._is_another(signature):
            return
        try:
            with self._attached(signature) as copy:
                if copy.is_far_behind():
                    copy.skip_ahead()
        except (InputError, apsw.Error):  # `poll` reports the reason
            self._let_go()

    def poll(self) -> int:
        """Copy the new rows; return their number."""
        signature = self._noticed = self._marks()
        if signature is None:
            self.problem = "it is gone"
            return 0
        if signature == self._signature:
            return 0
        if self._is_another(signature):
            self._begin_again()
        try:
            with self._attached(signature) as copy:
                count = copy.update()
        except (InputError, apsw.Error) as error:
            self._let_go()
            message = error.message if isinstance(error, RocpdError) else str(error)
            self.problem = message if str(self.path) in message else f"{self.path}: {message}"
            self._signature = signature if isinstance(error, ForeignError) else self._signature
            return 0
        if count:
            self.has_grown = self._signature is not None
            self.grown_at = time.time() if self.has_grown else signature.written_s
        self.rows += count
        self.problem, self._signature = "", signature
        return count

    def complete(self) -> None:
        """Copy the arguments that were left out, for the kept rows, as far as the file can be read."""
        signature = FileSignature.of(self.path)
        if self._copy and signature and not self._is_another(signature):
            with suppress(InputError, apsw.Error), self._attached(signature) as copy:
                copy.complete()

    def expect(self, share: float) -> None:
        """Continue with `share` times the rows that are kept now, once too many have come to copy all."""
        self.fresh.newest = min(self._newest, max(_LEAST, round(share * self.fresh.kept())))

    def close(self) -> None:
        """Close the file and the copy."""
        self._let_go()
        if self._copy:
            self._copy.close()
            self._copy = None

    def _marks(self) -> FileSignature | None:
        self._had_state |= state_file(self.path).exists()
        return FileSignature.of(self.path)

    def _begin_again(self) -> None:
        self.close()
        self._had_state = False
        self.copy.unlink(missing_ok=True)
        self._signature = None
        self.begun_again += 1

    def _is_another(self, signature: FileSignature) -> bool:
        known = self._signature
        return known is not None and (signature.inode != known.inode or signature.size < known.size)

    @contextmanager
    def _attached(self, signature: FileSignature) -> Iterator[FreshCopy]:
        """Attach the file to the copy for the duration of a block.

        Raises:
            InputError, apsw.Error: the file cannot be read now.
        """
        was_open = self._opening is not None
        self._opening = self._opening or self._opened(signature)
        if self._copy is None:
            self._copy, was_open = FreshCopy(self.copy, _BUSY_MS, self._newest, self._arguments), False
        if not was_open:
            self._copy.attach(self._opening.uri)
        try:
            yield self._copy
        finally:
            if not self._may_stay_open(self._opening):
                self._let_go()

    def _opened(self, signature: FileSignature) -> Opening:
        opening = opening_of(self.path, _BUSY_MS)
        if opening.copy and time.time() - signature.written_s < _SETTLED_S:
            opening.discard()
            raise InputError(f"{self.path}: a journal beside it is being written")
        return opening

    def _may_stay_open(self, opening: Opening) -> bool:
        """Whether an open file is harmless: without locks new rows stay unseen; WAL's files go with their last user."""
        return "mode=ro" in opening.uri and not Path(os.path.realpath(self.path) + JOURNALS[1]).exists()

    def _let_go(self) -> None:
        if self._copy:
            self._copy.detach()
        if self._opening:
            self._opening.discard()
        self._opening = None


class Tail:
    """All files of a running job, and the copies of their newest rows; files may appear at any time.

    Args:
        inputs: files, globs and folders, as `rocpd.connect` takes them.
        arguments: names of the arguments of calls that are copied; None: all.

        Attributes:
        files: path -> file.
        waits_for: reason why there is no file yet; empty: there are files.
    """

    def __init__(self, inputs: Sequence[str], arguments: Collection[str] | None = None) -> None:
        self.inputs, self.waits_for, self._arguments = tuple(inputs), "", arguments
        self.files: dict[Path, TailedFile] = {}
        self._folder = leftovers.make_folder(Path(tempfile.gettempdir()))

    def poll(self) -> int:
        """Copy the new rows; return their number."""
        for file in self.files.values():  # before any copy, which takes a while: all skip to about the same time
            file.catch_up()
        return sum(file.poll() for file in self.files.values())

    def notice(self) -> None:
        """Note which files were written to, without copying."""
        for file in self.files.values():
            file.notice()

    def readable(self) -> dict[Path, TailedFile]:
        """Return path of the copy -> file, for files with copied rows."""
        return {file.copy: file for file in self.files.values() if file.has_rows}

    def complete(self) -> None:
        """Copy the arguments that were left out, for the kept rows."""
        for file in self.files.values():
            file.complete()

    def close(self) -> None:
        """Close the files, and remove the copies."""
        for file in self.files.values():
            file.close()
        leftovers.remove(self._folder)

    def find(self) -> None:
        """Find new files."""
        try:
            paths = find_sources(self.inputs).paths
        except InputError as error:
            paths, self.waits_for = (), error.message
        if paths:
            self.waits_for = ""
        newest = min(_MOST, max(_FEWEST, _NEWEST // max(1, len(paths))))
        for path in paths:
            if path not in self.files:
                copy = self._folder / str(len(self.files)) / path.name
                self.files[path] = TailedFile(path, copy, newest, self._arguments)
