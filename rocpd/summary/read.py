"""Owns reading integer columns of one rank as numpy arrays, batch by batch, and cutting batches into groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from rocpd.federate.session import Session
from rocpd.summary.spread import Ints

NULL = -(1 << 62)
"""Stands for NULL, and for text where a number belongs; no id, time or size is that small."""

_BATCH = 1 << 17  # rows: a few megabytes, and numpy's overhead per call vanishes


def batches(session: Session, rank: int, select: str) -> Iterator[list[Ints]]:
    """Give the columns of a SELECT over one rank, some rows at a time; all columns are integers or NULL."""
    for rows in session.stream_in(rank, select, size=_BATCH):
        yield _columns(rows)


def columns(session: Session, rank: int, select: str, count: int) -> list[Ints]:
    """Give the `count` columns of a SELECT over one rank as a whole."""
    found = list(batches(session, rank, select))
    if not found:
        return [np.empty(0, np.int64) for _ in range(count)]
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _columns(rows: Sequence[tuple[object, ...]]) -> list[Ints]:
    width = len(rows[0])
    try:
        flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * width)
    except (TypeError, ValueError):
        flat = np.fromiter(map(_number, chain.from_iterable(rows)), np.int64, len(rows) * width)
    return list(np.ascontiguousarray(flat.reshape(-1, width).T))


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else NULL


def sound(start: Ints, end: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which events have sound times: a start above 0 and an end that is not before it."""
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (start > 0) & (end >= start)
    return found


def grouped(keys: Sequence[Ints]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Give each combination of keys that occurs, with the places where it does, in the order of the rows."""
    if not len(keys[0]):
        return
    code = _code(keys)
    order = np.argsort(code, kind="stable")
    sorted_code = code[order]
    first = np.flatnonzero(np.concatenate([[True], sorted_code[1:] != sorted_code[:-1]]))
    for low, high in zip(first, [*first[1:], len(order)], strict=True):
        places = order[low:high]
        yield tuple(int(key[places[0]]) for key in keys), places


def _code(keys: Sequence[Ints]) -> Ints:
    """One small number per combination of keys: below 2**16 numpy sorts ten times faster."""
    code, width = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low = int(key.min())
        span = int(key.max()) - low + 1
        small = key - low
        if span > 1 << 12:
            distinct, small = np.unique(key, return_inverse=True)
            span = len(distinct)
        code, width = code * span + small, width * span
        if width > 1 << 16:
            distinct, code = np.unique(code, return_inverse=True)
            width = len(distinct)
    return code.astype(np.uint16).view() if width <= 1 << 16 else code  # type: ignore[return-value]


def texts(session: Session, rank: int, select: str, ids: Iterable[int]) -> dict[int, str | None]:
    """Look ids of a rank up: `select` gives (id, text) for those in `json_each(?)`."""
    import json

    wanted = [number for number in ids if number != NULL]
    return dict(session.rows_in(rank, select, (json.dumps(wanted),))) if wanted else {}
