"""Columns of keys: what ids stand for, each looked up once, numbers for names, and rows by groups of equal keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Flags, Ints
from rocpd.federate.run.rank_reader import RankReader


def distinct(values: Ints) -> Ints:
    """Return the different values in ascending order.

    `numpy.unique` imports `numpy.ma` for that, 15 ms, and takes four times as long.

    >>> distinct(np.array([7, 5, 7])).tolist()
    [5, 7]
    """
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def per_id(ids: Ints, function: Callable[[int], int]) -> Ints:
    """Return `function(id)` for each id; it is called once per distinct id, in ascending order."""
    if not len(ids):
        return np.zeros(0, np.int64)
    low, high = int(ids.min()), int(ids.max())
    if high - low < 4 * len(ids) + 1024:
        # A table by id is ten times faster than sorting, and ids are mostly dense.
        table = np.zeros(high - low + 1, np.int64)
        table[ids - low] = 1
        known = np.flatnonzero(table)
        table[known] = [function(int(i) + low) for i in known]
        return table[ids - low]
    known, inverse = np.unique(ids, return_inverse=True)
    return np.array([function(int(i)) for i in known], np.int64)[inverse]


def find_rows(keys: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Return the first row of `keys` that equals each of `wanted`, and whether there is one.

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
    """Return `known[id]` for each id, NULL where it is not known; for few that are known among many distinct ids."""
    values = np.fromiter(known.values(), np.int64, len(known))
    rows, is_known = find_rows(np.fromiter(known, np.int64, len(known)), ids)
    result = np.full(len(ids), NULL)
    result[is_known] = values[rows[is_known]]
    return result


Text = TypeVar("Text", str, str | None)


class TextCodes(Generic[Text]):
    """Numbers for texts, from 0 in the order in which they come.

    Attributes:
        texts: the text of each number.
    """

    def __init__(self) -> None:
        self.texts: list[Text] = []
        self._codes: dict[Text, int] = {}

    def code(self, text: Text) -> int:
        """Return the number of a text; a new one gets the next."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def codes(self, ids: Ints, text_of: Callable[[int], Text]) -> Ints:
        """Return the numbers of what ids lead to; `text_of` is called once per distinct id."""
        return per_id(ids, lambda number: self.code(text_of(number)))

    def adopt(self, texts: Iterable[Text]) -> list[int]:
        """Return the numbers of a rank's texts, in the order of its own numbers."""
        return [self.code(text) for text in texts]


Names: TypeAlias = TextCodes[str | None]
"""Numbers for names, which may be unknown. Each rank has its own, which those of the job adopt."""


def texts_by_id(reader: RankReader, select: str, ids: Ints) -> dict[int, str | None]:
    """Return id -> text of a rank; not to be changed.

    Args:
        reader: reads the rank.
        select: gives id and text of the ids in `json_each(?)`.
        ids: those that are wanted, in any order, `NULL` among them.
    """
    wanted = tuple(number for number in distinct(ids).tolist() if number != NULL)
    return reader.once((select, wanted), lambda: _texts(reader, select, wanted)) if wanted else {}


def _texts(reader: RankReader, select: str, wanted: Sequence[int]) -> dict[int, str | None]:
    return {number: as_text(text) for number, text in reader.rows(select, (json.dumps(wanted),))}


def all_texts(reader: RankReader, base: str, column: str) -> dict[int, str | None]:
    """Return id -> text of all rows of a table."""
    return {number: as_text(text) for number, text in reader.rows(f"SELECT id, {column} FROM {base}")}


def as_text(value: object) -> str | None:
    """Return a name as text: damaged files hold numbers and blobs where names belong.

    >>> as_text("gemm"), as_text(None), as_text(b"\\xff"), as_text(3)
    ('gemm', None, 'ff', '3')
    """
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


_DENSE = 1 << 12  # numbers this close together are used as they are
_SHORT = 1 << 16  # below this numpy sorts ten times faster


@frozen
class RowGroups:
    """Rows by groups of equal keys.

    Args:
        keys: the keys of each group.
        order: numbers of the rows, group by group, within a group in their order.
        first: where in `order` each group starts.
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
    """Group rows, of which there is at least one, by one column or more."""
    code = _code(keys)
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    heads = order[first]
    return RowGroups(list(zip(*(key[heads].tolist() for key in keys), strict=True)), order, first)


def grouped(keys: Sequence[Ints]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield each combination of keys that occurs, with the numbers of its rows in their order.

    >>> import numpy as np
    >>> [(key, rows.tolist()) for key, rows in grouped([np.array([7, 5, 7]), np.array([0, 0, 0])])]
    [((5, 0), [1]), ((7, 0), [0, 2])]
    """
    if len(keys[0]):
        yield from group_rows(keys)


def _code(keys: Sequence[Ints]) -> Ints:
    """One small number per combination of keys."""
    code, width = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low = int(key.min())
        span = int(key.max()) - low + 1
        if span <= _DENSE:
            small = key - low
        else:
            distinct, small = np.unique(key, return_inverse=True)
            span = len(distinct)
        code, width = code * span + small, width * span
        if width > _SHORT:
            distinct, code = np.unique(code, return_inverse=True)
            width = len(distinct)
    return code.astype(np.uint16).view() if width <= _SHORT else code  # type: ignore[return-value]
