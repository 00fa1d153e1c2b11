"""Links the rows of one process: ids, strings, events, and the things that rows refer to.

Importers, the simulator and the tests describe a trace by the classes of `infos` and `events`; only this module knows
the tables that it goes to. Never judges the values that it writes: times, links and texts stay as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import NoneType
from typing import Any, Protocol, TypeAlias

from rocpd.base import UsageError, frozen
from rocpd.base.sqlite import apsw
from rocpd.schema.load import OPTIONAL_TABLES, Kind, kinds_of
from rocpd.schema.trace.columns import check_types, count_rows, is_single, plain, values_of
from rocpd.schema.trace.events import Arguments, Batch, CounterValues, Events, KernelDispatches, message_json
from rocpd.schema.trace.infos import REFERENCES, Info, NodeInfo, ProcessInfo

Described: TypeAlias = Batch | Events | Arguments | CounterValues
"""Rows as the writer of a trace describes them."""


class Sink(Protocol):
    """The receiver of rows: `schema.write.Writer`, or another object that collects them."""

    tables: dict[str, tuple[str, ...]]

    def insert(self, base: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Insert rows into table `base`: for each column the values of all rows."""


@frozen
class TableRows:
    """Rows of one table in the form for the file: for each column the values of all rows."""

    base: str
    columns: Mapping[str, Sequence[Any]]

    @property
    def ids(self) -> Sequence[Any]:
        """Ids of the rows."""
        return self.columns["id"]

    @property
    def events(self) -> Sequence[Any]:
        """Ids of their events."""
        return self.columns["event_id"]

    def with_columns(self, columns: Mapping[str, Any]) -> TableRows:
        """Return the rows with columns replaced or added, unchecked; a single value is for all rows, None is NULL."""
        count = len(next(iter(self.columns.values())))
        filled = {name: values_of(plain(column), count) for name, column in columns.items()}
        return replace(self, columns={**self.columns, **filled})


class TraceWriter:
    """Writes the trace of one process.

    Registering is idempotent: the same id, or the same description, gives the same id and is written once. Rows may
    name unregistered things (a thread, an agent, a stream): each gets a row with its number only.

    Args:
        sink: the file, as `schema.write.create` makes it.
        node: machine on which the process ran.
        process: the process.
    """

    def __init__(self, sink: Sink, node: NodeInfo, process: ProcessInfo) -> None:
        self._sink = sink
        self._next: dict[str, int] = {}
        self._strings = _Strings()
        self._same: dict[Info, int] = {}
        self._known: dict[type[Info], set[int]] = {}
        self._common: dict[str, Any] = {}
        # The region name of work outside all markers: profilers write it as their first string.
        self.string("")
        self._common["nid"] = self.register(node)
        self._common["pid"] = self.register(process)
        self._common["ppid"] = process.ppid

    def holds(self, base: str) -> bool:
        """Whether the file can have a table: one of its schema version, or an optional one."""
        return base in self._sink.tables or base in OPTIONAL_TABLES

    def note(self, tag: str, value: str) -> None:
        """Add a line to the metadata."""
        self._sink.insert("rocpd_metadata", {"tag": [tag], "value": [value]})

    def string(self, text: str) -> int:
        """Return the id of a text, which is stored once."""
        chosen: int = self._strings[text]
        self._store_strings()
        return chosen

    def register(self, info: Info) -> int:
        """Return the id of a thing; a new thing is written, a known one keeps its first description."""
        known = self._known.setdefault(type(info), set())
        if info.chosen_id is None and info in self._same:
            return self._same[info]
        chosen = self._take(info.TABLE, 1)[0] if info.chosen_id is None else info.chosen_id
        if chosen not in known:
            known.add(chosen)
            self._same[info] = chosen
            self._insert_described(info, self._lowered(info, _filled(info.described(chosen)), 1))
        return chosen

    def write(self, rows: Described) -> TableRows:
        """Write rows and their events; return them as they were stored, with their ids.

        Raises:
            UsageError: columns differ in length, a value has another type than the table declares or is refused by the
                table, or the schema version of the file lacks the table.
        """
        return self._insert_described(rows, self.prepare(rows))

    def prepare(self, rows: Described) -> TableRows:
        """Return rows ready for `insert`, after writing their events and the things that they refer to.

        Use it for rows that no profiler should write: columns can be replaced before they are inserted.
        """
        filled = _filled(rows)
        count = count_rows(filled, type(rows).__name__)
        prepared = self._lowered(rows, filled, count)
        if isinstance(rows, Batch) and rows.event is not None:
            prepared = prepared.with_columns({"event_id": self._event_ids(rows, count)})
        if isinstance(rows, KernelDispatches) and rows.dispatch_id is None:
            prepared = prepared.with_columns({"dispatch_id": prepared.ids})
        return prepared

    def insert(self, rows: TableRows) -> TableRows:
        """Insert rows unchanged, with the next free ids if they have none; return them."""
        columns = rows.columns
        if "id" not in columns:
            columns = {"id": self._take(rows.base, len(next(iter(columns.values())))), **columns}
        else:
            self._note_ids(rows.base, rows.ids)
        self._store_strings()
        self._sink.insert(rows.base, columns)
        return replace(rows, columns=columns)

    def _event_ids(self, rows: Batch, count: int) -> Sequence[Any]:
        if (events := rows.events()) is None:
            return values_of(plain(rows.event), count)
        filled = _filled(events)
        count_rows({"rows": range(count), **filled}, f"events of {type(rows).__name__}")
        return self._insert_described(events, self._lowered(events, filled, count)).ids

    def _insert_described(self, described: Described | Info, rows: TableRows) -> TableRows:
        """Insert rows; errors of SQLite are reported in the words of the class that describes the rows."""
        try:
            return self.insert(rows)
        except (apsw.ConstraintError, OverflowError) as error:
            raise _refusal(type(described).__name__, rows, error) from error

    def _lowered(self, described: Described | Info, filled: Mapping[str, Any], count: int) -> TableRows:
        """Return described rows in the columns of the table in this file."""
        base = described.TABLE
        if not self.holds(base):
            raise UsageError(f"{base}: not a table of this file's schema version", "write a later version")
        here = self._sink.tables[base]
        columns: dict[str, Sequence[Any]] = {}
        for name, column in {"id": None, **self._common, **filled}.items():
            if name == "id" and column is None:
                columns["id"] = self._take(base, count)
                continue
            try:
                target, value = self._translated(base, name, column)
            except TypeError:
                check_types(column, (str, int), f"{type(described).__name__}: {name}")
                raise
            if target in here and value is not None:
                columns[target] = values_of(value, count)
        return TableRows(base, columns)

    def _translated(self, base: str, name: str, column: Any) -> tuple[str, Any]:
        """Return the column of a field and its value there: texts become ids, messages become JSON."""
        if name in kinds_of(base) or name in self._common:
            info = REFERENCES.get(name)
            if info is not None and base != info.TABLE:
                self._register_unknown(info, column)
            return name, column
        if name == "message":
            return "extdata", _mapped(_extdata_of, column)
        return f"{name}_id", _mapped(self._strings.__getitem__, column)

    def _register_unknown(self, info: type[Info], column: Any) -> None:
        ids = {column} if is_single(column) else set(column)
        for number in sorted(ids - self._known.get(info, set()) - {None}):
            self.register(info(number))

    def _take(self, base: str, count: int) -> range:
        first = self._next.get(base, 1)
        self._next[base] = first + count
        return range(first, first + count)

    def _note_ids(self, base: str, ids: Sequence[Any]) -> None:
        last = ids[-1] if isinstance(ids, range) and ids else max((i for i in ids if i is not None), default=0)
        self._next[base] = max(self._next.get(base, 1), last + 1)

    def _store_strings(self) -> None:
        if new := self._strings.new:
            ids = range(self._strings.last - len(new) + 1, self._strings.last + 1)
            self._sink.insert("rocpd_string", {"id": ids, "string": new})
            self._strings.new = []


class _Strings(dict[Any, Any]):
    """Ids of texts, assigned in order; an id stands for itself."""

    def __init__(self) -> None:
        super().__init__({None: None})
        self.new: list[str] = []
        self.last = 0

    def __missing__(self, text: str | int) -> int:
        if not isinstance(text, (str, int)):
            raise TypeError(text)
        if isinstance(text, str):
            self.last += 1
            self.new.append(text)
        self[text] = self.last if isinstance(text, str) else text
        chosen: int = self[text]
        return chosen


def _filled(rows: Described | Info) -> dict[str, Any]:
    """Return the fields that are not None, without numpy; events are written separately.

    Raises:
        UsageError: a value has another type than the table declares.
    """
    named = {f.name: getattr(rows, f.name) for f in fields(rows) if f.name != "event"}
    filled = {name: column for name, column in named.items() if column is not None}
    kinds = kinds_of(rows.TABLE)
    for name, column in filled.items():
        if name in kinds:
            check_types(column, _TYPES[kinds[name]], f"{type(rows).__name__}: {name}")
    return {name: plain(column) for name, column in filled.items()}


def _refusal(what: str, rows: TableRows, error: Exception) -> UsageError:
    """Return the error for rows that SQLite refuses; it names the first NULL, or number beyond 64 bits."""
    _, is_null, column = str(error).partition("NOT NULL constraint failed: ")
    column = column.rpartition(".")[2]
    if is_null:
        row = next((row for row, value in enumerate(rows.columns.get(column, ())) if value is None), 0)
        return UsageError(f"{what}: {column} is missing in row {row}", "the table demands a value")
    for name, values in rows.columns.items():
        for row, value in enumerate(values):
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                return UsageError(f"{what}: {name} is {value} in row {row}", "SQLite's integers have 64 bits")
    return UsageError(f"{what}: {error}")


def _mapped(change: Any, column: Any) -> Any:
    return change(column) if is_single(column) else list(map(change, column))


@functools.lru_cache(4096)
def _extdata_of(message: str | None) -> str:
    if not isinstance(message, (str, NoneType)):
        raise TypeError(message)
    return "{}" if message is None else message_json(message)


_TYPES: Mapping[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.REAL: (float, int),
    Kind.TEXT: (str,),
    Kind.JSON: (str,),
}
