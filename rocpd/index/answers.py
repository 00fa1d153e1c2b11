"""Answers steps of plans in DuckDB, from the entries of the ranks in question. SQLite answers what DuckDB refuses."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from weakref import WeakSet

import duckdb

from rocpd.base import InputError, Row, Value, by_key, process
from rocpd.federate.plan.steps import Unfaithful
from rocpd.federate.run.shares import RankQuestion, Share
from rocpd.index.entries import VIEWS, IndexEntry, ValueKind
from rocpd.index.expressions import MOST_OF_64_BITS, Typed, constant
from rocpd.index.order import RankOrders
from rocpd.index.selects import StoredSource, Translation, condition_of, gathered_source, translated
from rocpd.schema.load import view
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import RankTables, identity

_MEMORY = "1500MB"  # of DuckDB; more data goes to $TMPDIR
_CHUNK = 10_000  # rows
_ALL = "true"
_MOST_CONDITIONS = 64  # ranks of one machine have the same window


class StoredAnswers:
    """Answers from entries.

    Args:
        entries: rank number -> its entry.
        threads: number of threads.
    """

    def __init__(self, entries: Mapping[int, IndexEntry], threads: int) -> None:
        self._entries = entries
        self._orders = RankOrders(entries)
        self._lock = threading.Lock()
        # A caller that insists on the index first asks whether it can answer: both calls share one translation.
        self._last: tuple[str, Sequence[Share], Translation] | None = None
        self._threads = threads
        self._database: duckdb.DuckDBPyConnection | None = None
        self._cursors: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()
        _OPEN.add(self)
        process.renew_when_forked(self)

    def rest(self) -> None:
        """Close the database before a fork, unless it is being read: its threads are missing in the child."""
        with self._lock:
            if self._database and not self._cursors:
                self._database.close()
                self._database = None

    def renew(self) -> None:
        """Leave to the parent a database that was not closed before the fork."""
        process.abandon(self._database, *self._cursors)

    def answer(self, question: RankQuestion, shares: Sequence[Share]) -> Iterator[list[Row]] | str:
        """Return the rows of an answer, as `rocpd.federate.run.shares.Columnar.rows`, or why ranks must be asked."""
        try:
            translation = self._translation(question, shares)
            cursor = self._cursor()
            _execute(cursor, translation.sql)
            if translation.is_short:
                return iter([cursor.fetchall()])
        except (Unfaithful, duckdb.Error) as reason:
            return str(reason)
        return _chunks(cursor)

    def why_not(self, question: RankQuestion, shares: Sequence[Share]) -> str:
        """Return why the ranks have to be asked; empty: they need not be."""
        try:
            self._translation(question, shares)
        except Unfaithful as reason:
            return str(reason)
        return ""

    def close(self) -> None:
        """Close the database, and the connections that explain statements; idempotent."""
        self._orders.close()
        with self._lock:
            database, self._database = self._database, None
        if database:
            database.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            self._database = self._database or duckdb.connect(
                config={
                    "threads": self._threads,
                    "memory_limit": _MEMORY,
                    "temp_directory": tempfile.gettempdir(),
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                }
            )
            cursor = self._database.cursor()
            self._cursors.add(cursor)
            return cursor

    def _translation(self, question: RankQuestion, shares: Sequence[Share]) -> Translation:
        last, step = self._last, question.step
        key = "" if question.gathered else repr(question)  # 7 and 7.0 are equal, but not the same to SQLite
        if last and key == last[0] and last[1] is shares:
            return last[2]
        gathered = {each.table: gathered_source(each.columns, rows) for each, rows in question.gathered}
        catalog = _StoredViews(self._entries, [each for share in shares for each in share.tables], gathered)
        translation = translated(step.by_name or step.select, catalog.find, question.bindings, by_rank=not step.merges)
        if translation.order and not self._orders.is_kept(translation.order, question, shares):
            raise Unfaithful("SQLite chooses another order of its rows")
        if key:
            self._last = key, shares, translation
        return translation


_OPEN: WeakSet[StoredAnswers] = WeakSet()


def _before_fork() -> None:
    for answers in list(_OPEN):
        answers.rest()


os.register_at_fork(before=_before_fork)


class _StoredViews:
    """The Parquet files of each view of the ranks in question, listed when a statement names it; gathered tables."""

    def __init__(
        self, entries: Mapping[int, IndexEntry], tables: Sequence[RankTables], gathered: Mapping[str, StoredSource]
    ) -> None:
        self._entries = [entries[each.rank] for each in tables if each.rank is not None]
        self._tables = tables
        self._gathered = gathered

    def find(self, name: str) -> StoredSource | None:
        """Return the source with a name in lower case, None if nothing is stored under it."""
        if name in self._gathered:
            return self._gathered[name]
        if name in VIEWS:
            return self._view(name)
        return self._base_table(name, _views_by_base()[name]) if name in _views_by_base() else None

    def _view(self, name: str) -> StoredSource:
        of_rank = {column: _of_rank(values) for column, values in self._constants(name).items()}
        names = (*(each.name for each in view(name).columns), *identity(view(name), self._tables[0]))
        stored = self._stored(name)
        columns = {each.lower(): of_rank.get(each) or stored[each] for each in names if each in {*of_rank, *stored}}
        is_whole, where = len(columns) == len(names), self._selected(name, columns)
        tables = view(name).tables if self._is_by_id(name) else ()
        return StoredSource(self._files(name), columns, frozenset(of_rank), is_whole, where, tables=tables)

    def _base_table(self, base: str, name: str) -> StoredSource:
        """Return a base table, read from the view with a row for each of its rows: the columns that the view shows."""
        if not self._is_by_id(name):
            raise Unfaithful(f"{base}: the index does not have one row for each of its rows")
        of_rank, stored = {"guid": _of_rank(self._constants(name)["guid"])}, self._stored(name)
        shown = {column.lower(): stored[each] for each, column in _shown(name).items() if each in stored}
        named = {each.lower(): column for each, column in stored.items()}
        columns, where = {**shown, **of_rank}, self._selected(name, named)
        main = view(name).tables[:1]
        return StoredSource(self._files(name), columns, frozenset(of_rank), is_whole=False, where=where, tables=main)

    def _is_by_id(self, name: str) -> bool:
        return all(entry.views[name].is_by_id for entry in self._entries)

    def _stored(self, name: str) -> dict[str, Typed]:
        """Return the columns of a view with values of one kind in every rank."""
        views = [entry.views[name] for entry in self._entries]
        columns = {}
        for column, kind in views[0].columns.items():
            if all(column in each.columns for each in views):
                is_ascii = all(column in each.ascii for each in views)
                most = sum(each.rows * each.greatest.get(column, MOST_OF_64_BITS) for each in views)
                has_sum = most <= MOST_OF_64_BITS
                columns[column] = Typed(quote_name(column), kind, is_ascii=is_ascii, has_sum=has_sum)
        return columns

    def _files(self, name: str) -> str:
        return f"read_parquet([{', '.join(quote_text(entry.path(name)) for entry in self._entries)}])"

    def _selected(self, name: str, columns: Mapping[str, Typed]) -> str:
        """Return the condition on the rows of a view that window and filters select; empty: all rows.

        Raises:
            Unfaithful: a condition needs columns that are not stored, or rows are cut.
        """
        main, *others = view(name).tables
        touched = {base for each in self._tables for base in (*each.only, *each.values)}
        if touched & {other.table for other in others} or any(main.table in each.values for each in self._tables):
            raise Unfaithful("a window that cuts, or a filter of what belongs to events")
        files = by_key((each.only.get(main.table, ""), number) for number, each in enumerate(self._tables))
        if len(files) > _MOST_CONDITIONS:
            raise Unfaithful("windows of very many clocks")
        shown = _shown(name).items()
        stored = {base.lower(): columns[each.lower()] for each, base in shown if each.lower() in columns}
        conditions: dict[str, list[int]] = {}
        for text, numbers in files.items():
            conditions.setdefault(condition_of(text, stored) if text else _ALL, []).extend(numbers)
        if len(conditions) == 1:
            (condition,) = conditions
            return "" if condition == _ALL else condition
        return f"({' OR '.join(f'({_one_of(sorted(numbers))} AND {text})' for text, numbers in conditions.items())})"

    def _constants(self, name: str) -> dict[str, list[Value]]:
        """Return column -> its value in each rank, for columns with a single value per rank."""
        constants: dict[str, list[Value]] = {"guid": [each.guid for each in self._tables]}
        for column in identity(view(name), self._tables[0]):
            constants[column] = [each.rank if column == "rank" else each.hostname for each in self._tables]
        return constants


@functools.cache
def _views_by_base() -> Mapping[str, str]:
    """Return base table -> the view with a row for each of its rows: its joins by id add one row or none."""
    views = {name: view(name) for name in VIEWS}
    return {
        each.tables[0].table: name
        for name, each in views.items()
        if not each.where and all(joined.key and joined.join == "LEFT JOIN" for joined in each.tables[1:])
    }


def _shown(name: str) -> dict[str, str]:
    """Return column of a view -> the column of its main table that it shows."""
    main = view(name).tables[0].alias
    parts = {each.name: each.expression.partition(".") for each in view(name).columns}
    return {each: base for each, (alias, _, base) in parts.items() if alias == main and base.isidentifier()}


def _of_rank(values: Sequence[Value]) -> Typed:
    """Return a column with one value in each rank, chosen by the number of the rank's file."""
    first = values[0]
    if isinstance(first, int) and list(values) == list(range(first, first + len(values))):
        return Typed(f"(CAST(file_index AS BIGINT) + {first})", ValueKind.INT)
    kind = ValueKind.INT if isinstance(first, int) else ValueKind.TEXT
    listed = ", ".join(constant(value).sql for value in values)
    each = f"CAST([{listed}] AS {'BIGINT' if kind is ValueKind.INT else 'VARCHAR'}[])"
    is_ascii = all(isinstance(value, str) and value.isascii() for value in values)
    return Typed(f"({each})[CAST(file_index AS BIGINT) + 1]", kind, is_ascii=is_ascii)


def _execute(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        cursor.execute(sql)
    except duckdb.InternalException:
        # DuckDB 2.0 fails to read further columns of the first rows of an order after it found them, where a condition
        # is on the file or the place in it.
        cursor.execute("SET late_materialization_max_rows = 0")
        cursor.execute(sql)


def _one_of(files: Sequence[int]) -> str:
    """Return the condition that a row belongs to one of some files, given by their ascending places.

    Not by IN: DuckDB turns a long list into a join, which gives rows in any order.
    """
    starts = [number for before, number in zip((-2, *files), files, strict=False) if number != before + 1]
    ends = [number for number, after in zip(files, (*files[1:], -2), strict=True) if after != number + 1]
    ranges = (f"file_index BETWEEN {first} AND {last}" for first, last in zip(starts, ends, strict=True))
    return f"({' OR '.join(ranges)})"


def _chunks(cursor: duckdb.DuckDBPyConnection) -> Iterator[list[Row]]:
    with contextlib.closing(cursor):
        try:
            while rows := cursor.fetchmany(_CHUNK):
                yield rows
        except duckdb.Error as error:  # a file of the index that is gone, or no memory
            raise InputError(f"the index cannot be read: {error}", "--index off reads the databases") from error
