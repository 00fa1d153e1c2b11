"""Owns reading what totals are made of: durations of kernels, copies, allocations, API calls and markers, by name.

Joins stay inside a rank; ranks are added up in Python. Reads batch by batch; never arranges tables for people.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from rocpd.federate.identify import Rank
from rocpd.schema.load import strip_comments
from rocpd.summary.ops import Names, kernel_texts, string_texts
from rocpd.summary.options import By
from rocpd.summary.read import NULL, batches, grouped, sound
from rocpd.summary.reading import Reading
from rocpd.summary.result import Row
from rocpd.summary.spread import Ints

KINDS = ("kernels", "memory_copies", "memory_allocations", "scratch_memory", "regions", "markers")
"""Kinds of events; each has a `.sql` file that gives ids, start, end, agent, stream and size."""

_FIXED = {"memory_copies": "MEMORY_COPIES", "kernels": "KERNELS"}


@dataclass(frozen=True)
class Events:
    """Events of one rank and batch with one category, name, agent or stream.

    Args:
        category: event category, or the kind's own (`KERNELS`).
        name: kernel, direction, operation, function or message.
        detail: level of an allocation, else None.
        lane: agent or stream id as `--by` asks, else `NULL`.
        calls: events, those without sound times too.
        durations: of events with sound times [ns].
        size: bytes of events with sound times.
    """

    category: str | None
    name: str | None
    detail: str | None
    lane: int
    calls: int
    durations: Ints
    size: int


@functools.cache
def sql(name: str) -> str:
    """Give the text of a `.sql` file of this package, without comments."""
    return strip_comments((files("rocpd.summary") / "sql" / f"{name}.sql").read_text(encoding="utf-8"))


def survey(reading: Reading, rank: Rank, kind: str) -> Iterator[Events]:
    """Read the events of one of `KINDS` of one rank, grouped within each batch."""
    if kind in ("kernels", "memory_copies", "regions"):
        yield from _by_ids(reading, rank, kind)
    else:
        yield from _by_texts(reading, rank, kind)


def _by_ids(reading: Reading, rank: Rank, kind: str) -> Iterator[Events]:
    """Names and categories are ids of the rank: looked up once per group, not once per row."""
    lane_at = {By.AGENT: 4, By.STREAM: 5}.get(reading.by) if reading.by else None
    for batch in batches(reading.session, rank.number, sql(kind)):
        category, name, start, end = batch[:4]
        lane = batch[lane_at] if lane_at and kind != "regions" else None
        known = _names(reading, rank, kind, name)
        categories = string_texts(reading.session, rank.number, category) if kind == "regions" else {}
        keys = [category, name, *([] if lane is None else [lane])]
        for key, events in _groups(keys, start, end, batch[6] if kind == "memory_copies" else None):
            text = _FIXED.get(kind) or categories.get(key[0])
            if kind != "regions" or not is_marker(text):
                yield Events(text, known.get(key[1]), None, key[2] if lane is not None else NULL, *events)


def _names(reading: Reading, rank: Rank, kind: str, ids: Ints) -> dict[int, str | None]:
    if kind == "kernels":
        return kernel_texts(reading.session, rank.number, reading.options.kernel_names, ids)
    return string_texts(reading.session, rank.number, ids)


def is_marker(category: str | None) -> bool:
    """Whether a category is one of markers, which are counted by message."""
    return category is not None and category.startswith(("MARKER_", "rocm_marker"))


def _by_texts(reading: Reading, rank: Rank, kind: str) -> Iterator[Events]:
    """Names are texts: numbered as they come."""
    names = Names()
    lane_at = {By.AGENT: 4, By.STREAM: 5}.get(reading.by) if reading.by else None
    for rows in reading.session.stream_in(rank.number, sql(kind)):
        codes = [np.array([names.code(row[at]) for row in rows], np.int64) for at in (0, 1)]
        start, end, lane, size = (_integers(rows, at) for at in (2, 3, lane_at or 6, 6))
        for key, events in _groups([*codes, *([lane] if lane_at else [])], start, end, size):
            name, detail = names.texts[key[0]], names.texts[key[1]]
            yield Events(kind.upper(), name, detail, key[2] if lane_at else NULL, *events)


def _integers(rows: Sequence[Row], at: int) -> Ints:
    return np.array([row[at] if isinstance(row[at], int) else NULL for row in rows], np.int64)


def _groups(
    keys: Sequence[Ints], start: Ints, end: Ints, size: Ints | None
) -> Iterator[tuple[tuple[int, ...], tuple[int, Ints, int]]]:
    good = sound(start, end)
    duration = np.where(good, end - np.where(good, start, end), -1)
    for key, places in grouped(keys):
        mine = duration[places]
        timed = mine >= 0
        bytes_ = 0
        if size is not None:
            sizes = size[places][timed]
            bytes_ = int(sizes[sizes > 0].sum())
        yield key, (len(places), mine[timed], bytes_)
