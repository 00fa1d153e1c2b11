"""Owns reading readable views of one rank as Arrow columns, in row order and in batches.

Gives the rows that the view gives in SQL, cell for cell (but `guid`, which is the rank's), several times as fast. A
cell that is no number where numbers belong (a damaged file) is NULL and counted, or with `keep` the text that it is.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rocpd.convert.cells import TYPES, Small, array, documents, from_ints
from rocpd.convert.read import Tables
from rocpd.schema.load import Kind, Lookup, ViewColumn
from rocpd.schema.load import view as view_of
from rocpd.schema.render import rank_select
from rocpd.types import NULL, Flags, Ints

BATCH = 1 << 17
"""Rows of a batch, and of a row group in Parquet."""

Values: TypeAlias = "Ints | pa.Array"

_CHUNK = 4096
"""Rows turned from Python values into Arrow at once: with more of them alive, Python's garbage collector takes over."""


class Rows:
    """Some rows of a view; columns become Arrow arrays when asked for."""

    def __init__(self, reader: Reader, found: Mapping[str, Values], count: int) -> None:
        self._reader = reader
        self._found = found
        self.count = count

    @property
    def tangled(self) -> bool:
        """Whether some column holds texts where numbers belong."""
        return self._reader.tangled

    def ints(self, name: str) -> Ints:
        """Give the numbers that were read for a column: its values or, where it is looked up, the ids."""
        values = self._found[_source(self._reader.view.column(name))]
        return values if isinstance(values, np.ndarray) else np.full(self.count, NULL)

    def column(self, name: str) -> pa.Array:
        """Give one column; looked-up texts are dictionary-encoded."""
        if name == "guid":
            return pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(self.count, np.int32)), pa.array([self._reader.guid])
            )
        item = self._reader.view.column(name)
        values = self._found[_source(item)]
        if item.lookup:
            return self._reader.small(item.lookup, item.kind).find(values)
        return from_ints(values) if isinstance(values, np.ndarray) else values

    def take(self, which: Ints | Flags) -> Rows:
        """Give the rows of these numbers or flags."""
        rows = np.flatnonzero(which) if which.dtype == np.bool_ else which
        index = pa.array(rows)
        found = {
            sql: values[rows] if isinstance(values, np.ndarray) else values.take(index)
            for sql, values in self._found.items()
        }
        return Rows(self._reader, found, len(rows))


class Reader:
    """Reads one view of one rank.

    Args:
        tables: the rank.
        view: name of a view that is one SELECT per rank.
        guid: of the rank.
        columns: those to read, all when empty.
        where: SQL condition over the aliases of the view, or empty.
        keep: keep text where numbers belong.

    Attributes:
        lost: cells that are no numbers where numbers belong, by column.
    """

    def __init__(
        self, tables: Tables, view: str, guid: str, columns: Sequence[str] = (), *, where: str = "", keep: bool = False
    ) -> None:
        self._tables = tables
        self.view = view_of(view)
        self.guid = guid
        self._where = where
        self._keep = keep
        self.lost = Counter[str]()
        items = [item for item in self.view.columns if not columns or item.name in columns]
        self.columns = tuple(item.name for item in items)
        self._items = {_source(item): item for item in items if item.name != "guid"}
        self._numbers = [sql for sql, item in self._items.items() if item.lookup or item.kind is Kind.INTEGER]
        # Most JSON documents are '{}': a flag says so, and only the others are read as text.
        documents = {sql for sql, item in self._items.items() if item.kind is Kind.JSON and not item.lookup}
        self._documents = [sql for sql in self._items if sql in documents and not self.view.group_by]
        self._others = [sql for sql in self._items if sql not in (*self._numbers, *self._documents)]
        self._filled = dict.fromkeys(self._documents, 0)
        self._raw: set[str] = set()
        self._checked = False

    def batches(self, size: int | None = BATCH) -> Iterator[Rows]:
        """Give all rows, at most `size` at a time (None: all at once); nothing when there are none."""
        if self.view.tables[0].table not in self._tables.part.tables:
            return
        done = 0
        while True:
            try:
                for rows in self._batches(size, done):
                    yield rows
                    done += rows.count
            except (TypeError, ValueError, OverflowError):
                if self._checked:
                    raise
                self._look()
            else:
                return

    @property
    def tangled(self) -> bool:
        """Whether some column holds texts where numbers belong, and they are kept."""
        return bool(self._raw)

    def small(self, lookup: Lookup, kind: Kind) -> Small:
        """Give a column of a small table, read once."""
        return self._small(lookup, kind)

    @functools.cache  # noqa: B019 (a reader lives as long as its rank)
    def _small(self, lookup: Lookup, kind: Kind) -> Small:
        rows = sorted(
            (i, value) for i, value in self._tables.rows(lookup.table, ("id", lookup.column)) if isinstance(i, int)
        )
        return Small([i for i, _ in rows], [value for _, value in rows], kind)

    def _batches(self, size: int | None, done: int) -> Iterator[Rows]:
        expressions = [*map(self._number, self._numbers), *(f"{sql} IS '{{}}'" for sql in self._documents)]
        numbers = iter(self._tables.connection.execute(self._select(expressions, done)))
        others = self._run(self._select(self._others, done)) if self._others else None
        texts = {sql: itertools.chain.from_iterable(self._filled_documents(sql)) for sql in self._documents}
        width = max(1, len(expressions))
        while True:
            flat = np.fromiter(itertools.chain.from_iterable(itertools.islice(numbers, size)), np.int64)
            table = np.ascontiguousarray(flat.reshape(-1, width).T)
            count = table.shape[1]
            if not count:
                return
            found: dict[str, Any] = dict(zip(self._numbers, table, strict=False))
            if others:
                found |= zip(self._others, self._cells(others, count), strict=True)
            flags = dict(zip(self._documents, table[len(self._numbers) :], strict=False))
            found |= {sql: documents(empty, texts[sql]) for sql, empty in flags.items()}
            yield Rows(self, found, count)
            for sql, empty in flags.items():
                self._filled[sql] += count - int(np.count_nonzero(empty))

    def _cells(self, rows: Iterator[tuple[Any, ...]], count: int) -> list[pa.Array]:
        kinds = [Kind.TEXT if sql in self._raw else self._items[sql].kind for sql in self._others]
        pieces: list[list[pa.Array]] = [[] for _ in kinds]
        for first in range(0, count, _CHUNK):
            cells = zip(*itertools.islice(rows, min(_CHUNK, count - first)), strict=True)
            for column, values, kind in zip(pieces, cells, kinds, strict=True):
                column.append(array(values, kind))
        return [pa.concat_arrays(column) for column in pieces]

    def _filled_documents(self, sql: str) -> Iterator[Iterator[tuple[Any, ...]]]:
        # A generator: the statement runs only when there is a document to read.
        yield self._run(self._select([sql], self._filled[sql], f"{sql} IS NOT '{{}}'"))

    def _run(self, sql: str) -> Iterator[tuple[Any, ...]]:
        return self._tables.run(sql) if self._checked else iter(self._tables.connection.execute(sql))

    def _select(self, expressions: Sequence[str], skip: int, where: str = "") -> str:
        items = {f"c{i}": expression for i, expression in enumerate(expressions or ("0",))}
        conditions = " AND ".join(f"({condition})" for condition in (self._where, where) if condition)
        text = rank_select(self.view, self._tables.part, items, where=conditions)
        first = self.view.tables[0]
        order = f"MIN({first.alias}.id)" if self.view.group_by else f"{first.alias}.id"
        if "id" not in self._tables.part.tables[first.table]:
            order = "1"
        return f"{text}\nORDER BY {order} LIMIT -1 OFFSET {skip}"

    def _number(self, sql: str) -> str:
        if not self._checked:
            return f"IFNULL({sql}, {NULL})"
        return f"CASE typeof({sql}) WHEN 'integer' THEN {sql} WHEN 'real' THEN CAST({sql} AS INTEGER) ELSE {NULL} END"

    def _look(self) -> None:
        """Find out which columns hold no numbers where numbers belong, after one was met."""
        self._checked = True
        tests = [f"SUM(typeof({sql}) NOT IN ('integer', 'real', 'null'))" for sql in self._numbers]
        if self.view.group_by:
            return
        counts = next(self._tables.run(self._select(tests, 0).rsplit("\nORDER BY", 1)[0]))
        for sql, count in zip(list(self._numbers), counts, strict=True):
            if not count:
                continue
            self.lost[self._items[sql].name] += int(count)
            if self._keep and not self._items[sql].lookup:
                self._raw.add(sql)
                self._numbers.remove(sql)
                self._others.append(sql)


def _source(item: ViewColumn) -> str:
    """What is read for a column: its expression, or the id that it is looked up by."""
    return item.lookup.key if item.lookup else item.expression


def field(item: ViewColumn) -> pa.Field:
    """Give name, type, unit and meaning of a column."""
    kind = (
        pa.dictionary(pa.int32(), pa.string())
        if item.kind.is_text and (item.lookup or item.name == "guid")
        else TYPES[item.kind]
    )
    about = {"description": item.doc} | ({"unit": item.unit} if item.unit else {})
    return pa.field(item.name, kind, metadata=about)
