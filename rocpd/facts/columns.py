"""Reads columns of one rank: numbers as numpy arrays, texts as lists; texts by their ids; rows by equal keys.

Works on the rows that a `RankReader` sees: those of the rank's tables and views that window and filters select. Never
interprets a value: one that should be a number but is not becomes NULL, and is counted by column if the caller asks.

SQLite packs a column of some thousand rows into one JSON text, which numpy or `json` read as a whole. Rows that apsw
makes one by one (`numpy.fromiter` over their values, `pyarrow.array` over their texts) take equally long when they are
wide, longer when they are narrow, and twice as long when they hold texts. Measured on 32,626 dispatches, 67,374 regions
and their 109,785 events and 189,052 arguments, CPU time [ms]:

| columns | rows | packed |
|---|---|---|
| 19 whole numbers of a dispatch and its event | 58 | 60 |
| 7 whole numbers of a region and its event | 59 | 53 |
| 2 whole numbers of a dispatch | 14 | 12 |
| 2 whole numbers of a region | 28 | 22 |
| 3 texts of an argument | 274 | 158 |
| 3 JSON documents of an event | 151 | 71 |

Whole numbers of large tables come from the pages of the file in a third of that time (`large_tables`).
SQLite also packs outside of Python's lock, so that threads need not wait for each other. Values that can't be packed
are still read as rows: reals (a JSON text need not hold all their bits), rows without a key, and damaged values.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, QueryError, Row, frozen
from rocpd.base.sqlite import apsw
from rocpd.facts.large_tables import read_large
from rocpd.federate.result import Cursor
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.run.shares import ShareDatabase
from rocpd.schema.load import strip_comments
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables
from rocpd.schema.rules import categories
from rocpd.schema.rules.events import IS_SCRATCH, NO_SENTINEL, NOT_SCRATCH, OWN_SAMPLE, VALID_TIMES, copy_agent_sql


class EqualColumns:
    """Base of values whose fields are columns of equal length."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.columns()[0])

    def columns(self) -> tuple[Any, ...]:
        """Return all columns, in the order of the arguments."""
        return tuple(map(vars(self).__getitem__, self.__dataclass_fields__))

    def take(self, rows: Ints | Flags | slice) -> Self:
        """Return some of the rows, in the order of their numbers."""
        return self._of(column[rows] for column in self.columns())

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of several values, one after the other."""
        return cls._of(map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))

    @classmethod
    def _of(cls, columns: Iterable[Any]) -> Self:
        made: Callable[..., Self] = cls
        return made(*columns)


_FEW = 48
"""So many numbers Python sorts and looks up in less time than numpy's calls take."""

_MOST = np.iinfo(np.int32).max

_SOME = 1 << 10
"""So many rows numpy sorts by several columns in less time than numbering their keys first takes."""


def distinct(values: Ints) -> Ints:
    """Return the different values in ascending order.

    `numpy.unique` imports `numpy.ma` for that, 15 ms, and is four times slower.

    >>> distinct(np.array([7, 5, 7])).tolist()
    [5, 7]
    """
    if len(values) <= _FEW:
        return np.array(sorted(set(values.tolist())), np.int64)
    if (dense := _dense(values)) is not None:
        low, is_known = dense
        return is_known.nonzero()[0] + low
    ordered = np.sort(values)
    return ordered[runs(ordered)[0]]


def different(values: Ints) -> tuple[Ints, Ints]:
    """Return the different values in ascending order, and the index among them of each value.

    >>> [column.tolist() for column in different(np.array([7, 5, 7]))]
    [[5, 7], [1, 0, 1]]
    """
    if len(values) <= _FEW:
        listed = values.tolist()
        known = {value: number for number, value in enumerate(sorted(set(listed)))}
        return np.array([*known], np.int64), np.array([known[value] for value in listed], np.int64)
    if (dense := _dense(values)) is not None:
        low, is_known = dense
        number = is_known.cumsum(dtype=np.int32 if len(is_known) <= _MOST else np.int64)  # longer than the values
        number -= 1
        return is_known.nonzero()[0] + low, number[values - low].astype(np.int64)
    order, which = values.argsort(kind="stable"), np.empty(len(values), np.int64)
    first, count = runs(values[order])
    which[order] = np.arange(len(first)).repeat(count)
    return values[order[first]], which


def _dense(values: Ints) -> tuple[int, Flags] | None:
    """Return the least value, and whether each number from it on is a value; None: the values lie too far apart.

    This table is ten times faster than sorting, and ids are mostly dense.
    """
    if not len(values):
        return None
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span >= 8 * len(values) + 1024:
        return None
    is_known = np.zeros(span, bool)
    is_known[values - low] = True
    return low, is_known


def numbered(*keys: Ints) -> Ints:
    """Return for each row the number of its combination of keys, from 0 in the order of keys.

    >>> numbered(np.array([7, 5, 7]), np.array([0, 0, 1])).tolist()
    [1, 0, 2]
    """
    if len(keys[0]) > _SOME:
        return different(_code(keys)[0])[1]
    if len(keys) == 1:
        return different(keys[0])[1]
    numbers = np.empty(len(keys[0]), np.int64)
    order = np.lexsort(keys[::-1])
    first, count = runs(*(key[order] for key in keys))
    numbers[order] = np.arange(len(first)).repeat(count)
    return numbers


def filled(count: int, value: int, kind: Any = np.int64) -> Any:
    """Return a column of one number, not to be changed; for few rows `numpy.full` takes several times as long."""
    return _block(value, kind)[:count] if count <= _SOME else np.full(count, value, kind)


@functools.cache
def _block(value: int, kind: Any) -> Any:
    block = np.full(_SOME, value, kind)
    block.flags.writeable = False
    return block


def first_of(numbers: Ints) -> Ints:
    """Return the first row of each number, from 0."""
    first = np.full(int(numbers.max(initial=-1)) + 1, len(numbers))
    np.minimum.at(first, numbers, np.arange(len(numbers)))
    return first


def runs(*columns: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each run of equal values in ordered columns, and the number of its rows."""
    first, *others = columns
    if not len(first):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    changes = first[1:] != first[:-1]
    for column in others:
        changes |= column[1:] != column[:-1]
    (at,) = changes.nonzero()
    edges = np.zeros(len(at) + 2, np.int64)
    edges[1:-1], edges[-1] = at + 1, len(first)
    return edges[:-1], edges[1:] - edges[:-1]


def nth_of(keys: Sequence[Ints], time: Ints | None = None) -> Ints:
    """Return the place of each row among the rows with its keys, from 0, by time; None: rows are in order of time.

    >>> nth_of([np.array([7, 5, 7, 7])]).tolist(), nth_of([np.array([7, 5, 7, 7])], np.array([3, 1, 9, 2])).tolist()
    ([0, 0, 1, 2], [1, 0, 2, 0])
    """
    group = numbered(*keys)
    order = np.argsort(group, kind="stable") if time is None else np.lexsort((time, group))
    first, count = runs(group[order])
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - first.repeat(count)
    return nth


def per_id(ids: Ints, function: Callable[[int], int]) -> Ints:
    """Return `function(id)` for each id; it is called once per distinct id, in ascending order."""
    if len(ids) <= _FEW:
        numbers = ids.tolist()
        value_of = {number: function(number) for number in sorted(set(numbers))}
        return np.array([value_of[number] for number in numbers], np.int64)
    if (dense := _dense(ids)) is None:
        known, which = different(ids)
        return np.array([function(number) for number in known.tolist()], np.int64)[which]
    low, is_known = dense
    values = np.zeros(len(is_known), np.int64)
    values[is_known] = [function(low + place) for place in is_known.nonzero()[0].tolist()]
    return values[ids - low]


def find_rows(keys: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Return for each of `wanted` the first row of `keys` that equals it, and whether there is one.

    >>> rows, known = find_rows(np.array([7, 5, 7]), np.array([5, 6, 7]))
    >>> rows[known].tolist(), known.tolist()
    ([1, 0], [True, False, True])
    """
    if not len(keys):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    order = np.argsort(keys, kind="stable")
    rows = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return rows, keys[rows] == wanted


def look_up(known: Mapping[int, int], ids: Ints) -> Ints:
    """Return `known[id]` for each id, NULL if it is unknown; meant for few known ids among many distinct ones."""
    values = np.fromiter(known.values(), np.int64, len(known))
    rows, is_known = find_rows(np.fromiter(known, np.int64, len(known)), ids)
    result = np.full(len(ids), NULL)
    result[is_known] = values[rows[is_known]]
    return result


def at_rows(column: Ints, rows: Ints, otherwise: int = NULL) -> Ints:
    """Return the values of a column at some rows, and `otherwise` where a row is below 0, which means no row.

    >>> at_rows(np.array([7, 5]), np.array([1, -1])).tolist() == [5, NULL]
    True
    """
    values, known = np.full(len(rows), otherwise), (rows >= 0).nonzero()[0]
    values[known] = column[rows[known]]
    return values


Text = TypeVar("Text", str, str | None)


class TextCodes(Generic[Text]):
    """Numbers for texts, from 0 in the order in which they come.

    Args:
        texts: different texts that have numbers already.

    Attributes:
        texts: the text of each number.
    """

    def __init__(self, texts: Sequence[Text] = ()) -> None:
        self.texts: list[Text] = list(texts)
        self._codes: dict[Text, int] = dict(zip(texts, range(len(texts)), strict=True))

    def parts(self) -> tuple[list[Text]]:
        """Return the arguments of an equal object."""
        return (self.texts,)

    def code(self, text: Text) -> int:
        """Return the number of a text; a new text gets the next number."""
        if (code := self._codes.get(text)) is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def codes(self, ids: Ints, text_of: Callable[[int], Text]) -> Ints:
        """Return the number of each id's text; `text_of` is called once per distinct id."""
        return per_id(ids, lambda number: self.code(text_of(number)))

    def adopt(self, texts: Iterable[Text]) -> list[int]:
        """Return the numbers of a rank's texts, in the order of the rank's own numbers."""
        return [self.code(text) for text in texts]


Names: TypeAlias = TextCodes[str | None]
"""Numbers for names, which may be unknown. Each rank has numbers of its own; the names of the job adopt them."""


def texts_by_id(reader: RankReader, select: str, ids: Ints) -> dict[int, str | None]:
    """Return id -> text of a rank; not to be changed.

    Args:
        reader: reads the rank.
        select: SELECT of id and text for the ids in `json_each(?)`.
        ids: the wanted ids, in any order; `NULL` is ignored.
    """
    wanted = tuple(number for number in distinct(ids).tolist() if number != NULL)
    return reader.once((select, wanted), lambda: _texts(reader, select, wanted)) if wanted else {}


def _texts(reader: RankReader, select: str, wanted: Sequence[int]) -> dict[int, str | None]:
    return {number: shared(text) for number, text in reader.rows(select, (json.dumps(wanted),))}


def all_texts(reader: RankReader) -> dict[int, str | None]:
    """Return id -> text of all strings of a rank."""
    return {number: as_text(text) for number, text in reader.rows("SELECT id, string FROM rocpd_string")}


def as_text(value: object) -> str | None:
    """Return a name as text: damaged files hold numbers and blobs where names belong.

    >>> as_text("gemm"), as_text(None), as_text(b"\\xff"), as_text(3)
    ('gemm', None, 'ff', '3')
    """
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def shared(value: object) -> str | None:
    """Return `as_text` of a value as one object for equal texts of all ranks, which saves memory and pickled bytes.

    >>> shared("gem" + str("m")) is shared("gemm")
    True
    """
    text = as_text(value)
    return text if text is None else sys.intern(text)


_DENSE = 1 << 12  # numbers within this range are used as they are
_SHORT = 1 << 16  # numbers below this numpy sorts ten times faster


@frozen
class RowGroups:
    """Rows by groups of equal keys.

    Args:
        keys: the keys of each group.
        order: numbers of the rows, group by group, ascending within a group.
        first: start of each group in `order`.
    """

    keys: list[tuple[int, ...]]
    order: Ints
    first: Ints

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Ints]]:
        """Yield the keys of each group with the numbers of its rows."""
        edges = [*self.first.tolist(), len(self.order)]
        for key, low, high in zip(self.keys, edges, edges[1:], strict=False):
            yield key, self.order[low:high]


def group_rows(keys: Sequence[Ints]) -> RowGroups:
    """Return rows grouped by one or more columns; there is at least one row."""
    if len(keys[0]) <= _SOME:
        order = np.lexsort(keys[::-1])
        first, _ = runs(*(key[order] for key in keys))
    else:
        code, width = _code(keys)
        order = (code.astype(np.uint16) if width <= _SHORT else code).argsort(kind="stable")
        first, _ = runs(code[order])
    heads = order[first]
    return RowGroups(list(zip(*(key[heads].tolist() for key in keys), strict=True)), order, first)


def grouped(keys: Sequence[Ints]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield each combination of keys that occurs, with the numbers of its rows in ascending order.

    >>> import numpy as np
    >>> [(key, rows.tolist()) for key, rows in grouped([np.array([7, 5, 7]), np.array([0, 0, 0])])]
    [((5, 0), [1]), ((7, 0), [0, 2])]
    """
    if len(keys[0]):
        yield from group_rows(keys)


def _code(keys: Sequence[Ints]) -> tuple[Ints, int]:
    """Return a small number for each row's combination of keys, in the order of keys, and a bound above all of them."""
    code, width = np.zeros(0, np.int64), 0
    for key in keys:
        low = int(key.min())
        span = int(key.max()) - low + 1
        if span <= _DENSE:
            small = np.subtract(key, low, dtype=np.int64)
        else:
            small = different(key.astype(np.int64, copy=False))[1]
            span = int(small.max()) + 1
        if width:
            code *= span
            code += small
        else:
            code = small
        width = max(width, 1) * span
        if width > _SHORT:
            code = different(code)[1]
            width = int(code.max()) + 1
    return code, width


BATCH = 1 << 17
"""Rows of a batch: a column takes a few megabytes, and numpy's overhead per call is negligible."""

PIECE = 1 << 13
"""Rows that are packed at once: their texts stay in the processor's cache. Divides `BATCH`."""

_JSON = json.JSONDecoder()
_NO_INTS, _NO_REALS = np.empty(0, np.int64), np.empty(0, np.float64)
_ROWS = 1 << 9  # rows alive as Python objects: so few stay in the cache and call no garbage collector; divides PIECE
_NOT_PACKABLE = (apsw.SQLError, apsw.TooBigError)  # JSON holds no blobs; many long texts exceed the longest value


@frozen
class Select:
    """A statement that reads a rank, with the types of its columns.

    Args:
        sql: a SELECT over tables and views of one rank, with the columns below.
        numbers: names of its columns of whole numbers.
        reals: names of its columns of floating-point numbers.
        texts: names of its columns of texts.
        base: table of which the SELECT returns each row at most once, with the table's `id`: rows come in order of ids.
            None: they come in the order of the SELECT.
        reals_are_whole: most reals are whole numbers, like values of counters: these are packed; without `mixed`.
    """

    sql: str
    numbers: tuple[str, ...] = ()
    reals: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    base: str | None = None
    reals_are_whole: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.numbers, *self.reals, *self.texts)


@frozen
class Piece:
    """Some rows as columns, in the order of the names in `Select`.

    Args:
        count: number of rows.
        numbers: whole numbers, `NULL` for NULL and for values that are no numbers; fractions are cut off.
        reals: NaN for NULL and for values that are no numbers; SQLite has no other NaN.
        texts: texts and None; in a damaged file also other values of SQLite.
        mixed: names of columns with values of another type than asked for, which were converted.
    """

    count: int
    numbers: list[Ints]
    reals: list[Floats]
    texts: list[list[Any]]
    mixed: frozenset[str] = frozenset()


def columns(reader: RankReader, base: str, sql: str, names: Sequence[str]) -> list[Ints]:
    """Read columns of whole numbers, all rows at once; arguments as for `Select`.

    A reader that keeps its results reads each column of a SELECT once, so callers that need the same rows should pass
    the same SELECT. Copy the columns before you change them. Columns of one call have the same rows, even if the file
    grows.
    """
    known = _known_columns(reader, base, sql)
    rows = len(next(iter(known.values()))) if known else None
    if lacking := tuple(name for name in names if name not in known):
        read = read_large(reader, sql, lacking) or _joined_pieces(reader, Select(sql, lacking, base=base), None).numbers
        if rows not in (None, len(read[0])):
            known.clear()
            return columns(reader, base, sql, names)
        known.update(zip(lacking, read, strict=True))
    return [known[name] for name in names]


def read_before(reader: RankReader, base: str | None, sql: str, names: Sequence[str]) -> list[Ints] | None:
    """Return the result of `columns` if all of it was read before and kept, else None."""
    known = _known_columns(reader, base, sql)
    return [known[name] for name in names] if known.keys() >= set(names) else None


def _known_columns(reader: RankReader, base: str | None, sql: str) -> dict[str, Ints]:
    """Return the columns of a SELECT that were read before, by name."""
    return reader.once(("columns", base, sql), dict)


def read_all(reader: RankReader, select: Select, damaged: Counter[str] | None = None) -> Piece:
    """Read all rows at once; arguments as for `pieces`. Copy the columns before you change them."""
    if damaged is None:
        return reader.once(select, lambda: _joined_pieces(reader, select, None))
    return _joined_pieces(reader, select, damaged)


def _joined_pieces(reader: RankReader, select: Select, damaged: Counter[str] | None) -> Piece:
    parts = list(pieces(reader, select, damaged))
    return parts[0] if len(parts) == 1 else joined([_nothing(select), *parts])


def _nothing(select: Select) -> Piece:
    return Piece(0, [_NO_INTS] * len(select.numbers), [_NO_REALS] * len(select.reals), [[]] * len(select.texts))


def batches(reader: RankReader, select: Select, damaged: Counter[str] | None = None) -> Iterator[Piece]:
    """Read rows, up to `BATCH` at a time; arguments as for `pieces`."""
    waiting: list[Piece] = []
    for piece in pieces(reader, select, damaged):
        waiting.append(piece)
        if sum(each.count for each in waiting) >= BATCH:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)


def joined(parts: Sequence[Piece]) -> Piece:
    """Return pieces, at least one, joined to one."""
    return Piece(
        sum(part.count for part in parts),
        [np.concatenate(column) for column in zip(*(part.numbers for part in parts), strict=True)],
        [np.concatenate(column) for column in zip(*(part.reals for part in parts), strict=True)],
        [list(chain.from_iterable(column)) for column in zip(*(part.texts for part in parts), strict=True)],
        frozenset().union(*(part.mixed for part in parts)),
    )


def pieces(
    reader: RankReader, select: Select, damaged: Counter[str] | None = None, size: int = PIECE
) -> Iterator[Piece]:
    """Read rows, up to `size` at a time; nothing when there are none.

    Args:
        reader: reads the rank.
        select: the statement.
        damaged: gets, by column, the number of values that should be numbers but are not.
        size: number of rows that are packed at once.

    Raises:
        QueryError, InputError: as for `RankReader.rows`.
    """
    with reader.lend() as database:
        is_packable = select.reals_are_whole or not select.reals
        base, tables = select.base, reader.tables
        # Without the table there are no rows; in every file that a profiler wrote, its id is the primary key.
        if base and is_packable and (base in tables.by_id or base not in tables.columns):
            yield from _by_key(database, tables, select, damaged, size)
        else:
            order = "ORDER BY id" if select.base else ""
            sql = f"SELECT {_listed(select.names)} FROM ({select.sql}) {order}"
            yield from _by_rows(database.execute(sql, None, (tables,)), select, damaged)


def _by_key(
    database: ShareDatabase, tables: RankTables, select: Select, damaged: Counter[str] | None, size: int
) -> Iterator[Piece]:
    """Read rows packed, `size` at a time; from the first piece that can't be packed on, one by one."""
    packing, rows_sql, rest = _texts_of_packing(select, size)
    run, first = partial(database.execute, tables=(tables,)), -1 << 63
    while packed := _packed(partial(database.rows, packing, (first,), tables), first, select):
        last, piece = packed
        if any((column == NULL).any() for column in piece.reals):  # fractions, or no numbers
            rows = run(f"SELECT {_listed(select.reals)} FROM ({rows_sql}) LIMIT {piece.count}", (first,))
            piece = replace(piece, reals=joined([*_by_rows(rows, Select("", reals=select.reals), damaged)]).reals)
        if piece.count:
            yield piece
        if piece.count < size or last + 1 == 1 << 63:
            return
        first = last + 1
    yield from _by_rows(run(f"SELECT {_listed(select.names)} {rest}", (first,)), select, damaged)


@functools.lru_cache(256)  # rank after rank
def _texts_of_packing(select: Select, size: int) -> tuple[str, str, str]:
    """Return the statement that packs up to `size` rows from an id on, the one that selects them, and its clauses."""
    numbers = (f"json_group_array(COALESCE({quote_name(name)}, {NULL}))" for name in select.numbers)
    reals = (f"json_group_array({_whole(name)})" for name in select.reals)
    texts = (f"json_group_array({quote_name(name)})" for name in select.texts)
    rest = f"FROM ({select.sql}) WHERE id >= ? ORDER BY id"
    rows_sql = f"SELECT {_listed(('id', *select.names))} {rest} LIMIT {size}"
    return f"SELECT {', '.join(('MAX(id)', 'COUNT(*)', *numbers, *reals, *texts))} FROM ({rows_sql})", rows_sql, rest


def _packed(read: Callable[[], list[Row]], first: int, select: Select) -> tuple[int, Piece] | None:
    """Read some rows from an id on, and return the last id with them; None if a value can't be packed."""
    try:
        ((last, count, *columns),) = read()
        if not count:
            return first, _nothing(select)
        numbers = [_unpacked_numbers(column, count) for column in columns[: len(select.numbers)]]
        edge = len(select.numbers) + len(select.reals)
        reals = [_unpacked_numbers(column, count).astype(np.float64) for column in columns[len(select.numbers) : edge]]
        texts = [_unpacked_texts(column, count) for column in columns[edge:]]
    except (QueryError, ValueError) as error:
        if isinstance(error, ValueError) or isinstance(error.__cause__, _NOT_PACKABLE):
            return None
        raise
    return last, Piece(count, numbers, reals, texts)


def _whole(name: str) -> str:
    """Return SQL for a real as a whole number; `NULL` if it is not whole."""
    column = quote_name(name)
    return f"CASE WHEN {column} = CAST({column} AS INTEGER) THEN CAST({column} AS INTEGER) ELSE {NULL} END"


def _unpacked_numbers(column: str, count: int) -> Ints:
    body = column[1:-1]
    if '"' in body or "." in body or "e" in body or "[" in body or "{" in body:
        raise ValueError("not only whole numbers")  # also text, fractions, over 64 bits, JSON
    return np.fromstring(body, np.int64, count, sep=",")


def _unpacked_texts(column: str, count: int) -> list[str | None]:
    value, end = _JSON.raw_decode(column, 1)  # bytes that are no UTF-8 came as `\\xNN`, which JSON doesn't know
    item = column[1:end]
    is_one = len(column) == 1 + (len(item) + 1) * count and column == f"[{','.join([item] * count)}]"
    values: list[str | None] = [value] if is_one else json.loads(column)  # documents are mostly empty: read once
    if not {str, NoneType}.issuperset(map(type, values)):
        raise ValueError("not only texts")
    return values * count if is_one else values


def _by_rows(cursor: Cursor, select: Select, damaged: Counter[str] | None) -> Iterator[Piece]:
    edge = len(select.numbers), len(select.numbers) + len(select.reals)
    while rows := cursor.fetchmany(_ROWS):
        named = list(zip(select.names, zip(*rows, strict=True), strict=True))
        yield Piece(
            len(rows),
            [_numbers(*column, damaged) for column in named[: edge[0]]],
            [_reals(*column, damaged) for column in named[edge[0] : edge[1]]],
            [list(values) for _, values in named[edge[1] :]],
            frozenset(
                name
                for part, kind in ((named[: edge[0]], int), (named[edge[0] : edge[1]], float), (named[edge[1] :], str))
                for name, values in part
                if not {kind, NoneType}.issuperset(map(type, values))
            ),
        )


def _numbers(name: str, values: Sequence[object], damaged: Counter[str] | None) -> Ints:
    if {int}.issuperset(map(type, values)):
        return np.fromiter(values, np.int64, len(values))
    numbers = np.fromiter(map(number, values), np.int64, len(values))
    _count(damaged, name, numbers == NULL, values)
    return numbers


def _reals(name: str, values: Sequence[object], damaged: Counter[str] | None) -> Floats:
    reals = np.array([value if isinstance(value, (int, float)) else np.nan for value in values], np.float64)
    _count(damaged, name, np.isnan(reals), values)
    return reals


def _count(damaged: Counter[str] | None, name: str, missing: Flags, values: Sequence[object]) -> None:
    wrong = int(np.count_nonzero(missing)) - values.count(None)
    if damaged is not None and wrong:
        damaged[name] += wrong


def number(value: object) -> int:
    """Return a value of SQLite as a whole number, `NULL` for other values; fractions are cut off.

    >>> number(7), number(-2.75), number("12") == NULL, number(9e999) == NULL
    (7, -2, True, True)
    """
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and abs(value) < 1 << 63 else NULL


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quote_name, names))


_RULES = {
    "marker_categories": categories.marker_categories(),
    "copy_agent": copy_agent_sql(),
    "is_scratch": IS_SCRATCH,
    "not_scratch": NOT_SCRATCH,
    "valid_times": VALID_TIMES,
    "is_call": categories.IS_CALL,
    "operator": categories.TORCH_OPERATOR,
    "own_sample": OWN_SAMPLE,
    "no_sentinel": NO_SENTINEL,
    "python_function": categories.PYTHON_FUNCTION,
    "sampled_categories": categories.SAMPLED_CATEGORIES,
    "samplers": categories.SAMPLERS,
}


@functools.cache
def statement(name: str) -> str:
    """Return the text of a `.sql` file without comments; rules and other statements replace `{{…}}`."""
    text = strip_comments(Path(__file__).with_name("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8"))
    for rule, condition in _RULES.items():
        text = text.replace(f"{{{{{rule}}}}}", condition)
    return re.sub(r"\{\{(\w+)\}\}", lambda named: statement(named[1]), text)
