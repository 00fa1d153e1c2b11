"""Owns reading integer columns of one rank as numpy arrays, batch by batch, and cutting batches into groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rocpd.federate.run.rank_reader import RankReader
from rocpd.read.numbers import number, numbers
from rocpd.types import NULL, Ints, Row

_PIECE = 1 << 9  # rows alive as Python objects: few stay in the cache and call no garbage collector
_BATCH = 1 << 17  # rows: a few megabytes, and numpy's overhead per call vanishes
_DENSE = 1 << 12  # numbers this close together are used as they are
_SHORT = 1 << 16  # below this numpy sorts ten times faster


def batches(reader: RankReader, base: str, select: str, names: Sequence[str]) -> Iterator[list[Ints]]:
    """Give columns of whole numbers, many rows at a time; arguments as for `rocpd.read.numbers.numbers`."""
    return _joined(numbers(reader, base, select, names))


def coded(reader: RankReader, select: str, texts: int, code: Callable[[str | None], int]) -> Iterator[list[Ints]]:
    """Give the columns of a SELECT, many rows at a time.

    Args:
        reader: reads the rank.
        select: what to read.
        texts: how many of the first columns hold texts; the others hold whole numbers.
        code: gives the number of a text.
    """
    return _joined(_coded(rows, texts, code) for rows in reader.stream(select, size=_PIECE))


def columns(reader: RankReader, base: str, select: str, names: Sequence[str]) -> list[Ints]:
    """Give columns of whole numbers as a whole."""
    found = list(numbers(reader, base, select, names))
    return _concatenated(found) if found else [np.empty(0, np.int64) for _ in names]


def _joined(found: Iterable[list[Ints]]) -> Iterator[list[Ints]]:
    pieces: list[list[Ints]] = []
    rows = 0
    for piece in found:
        pieces.append(piece)
        rows += len(piece[0])
        if rows >= _BATCH:
            yield _concatenated(pieces)
            pieces, rows = [], 0
    if pieces:
        yield _concatenated(pieces)


def _concatenated(pieces: Iterable[list[Ints]]) -> list[Ints]:
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


def _coded(rows: Sequence[Row], texts: int, code: Callable[[str | None], int]) -> list[Ints]:
    columns = zip(*rows, strict=True)
    turned = (map(code if place < texts else number, column) for place, column in enumerate(columns))
    return [np.fromiter(values, np.int64, len(rows)) for values in turned]


def sound(start: Ints, end: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which events have sound times: a start above 0 and an end that is not before it."""
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (start > 0) & (end >= start)
    return found


@dataclass(frozen=True)
class Cut:
    """Rows cut into groups of equal keys.

    Args:
        keys: the keys of each group.
        order: places of the rows, group by group, within a group in their order.
        first: where in `order` each group begins.
    """

    keys: list[tuple[int, ...]]
    order: Ints
    first: Ints

    def places(self) -> Iterator[tuple[tuple[int, ...], Ints]]:
        """Give each combination of keys with the places of its rows."""
        edges = [*self.first.tolist(), len(self.order)]
        for key, low, high in zip(self.keys, edges, edges[1:], strict=False):
            yield key, self.order[low:high]


def cut(keys: Sequence[Ints]) -> Cut:
    """Cut rows, of which there is at least one, into groups by one column or more."""
    code = _code(keys)
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    heads = order[first]
    return Cut(list(zip(*(key[heads].tolist() for key in keys), strict=True)), order, first)


def grouped(keys: Sequence[Ints]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Give each combination of keys that occurs, with the places where it does, in the order of the rows."""
    if len(keys[0]):
        yield from cut(keys).places()


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


def texts(reader: RankReader, select: str, ids: Iterable[int]) -> dict[int, str | None]:
    """Look ids of a rank up: `select` gives (id, text) for those in `json_each(?)`."""
    wanted = [number for number in ids if number != NULL]
    found = reader.rows(select, (json.dumps(wanted),)) if wanted else []
    return {number: word(text) for number, text in found}


def word(value: object) -> str | None:
    """Give a name as text: damaged files hold numbers and blobs where names belong.

    >>> word("gemm"), word(None), word(b"\\xff"), word(3)
    ('gemm', None, 'ff', '3')
    """
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
