"""Reads the regions of one rank, calls and marker ranges, as columns, outer ones before those inside.

Memory: one rank at a time, about 50 bytes per region. Rows with invalid timestamps are left out and counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocpd.read.columns import columns
from rocpd.read.names import Names, as_text
from rocpd.summary.links import launching_rows
from rocpd.summary.ops import string_texts
from rocpd.summary.reading import RankReading
from rocpd.summary.statements import statement
from rocpd.trace.times import valid_times
from rocpd.types import NULL, Ints

_COLUMNS = ("stack", "start", "end", "id", "thread", "name", "category")


class RankRegions(NamedTuple):
    """The regions of one rank.

    Args:
        thread: id, `NULL` where unknown.
        start, end: [ns].
        name: number in `Names`: of a marker its message, of others the function.
        category: number in `Names`.
        stack: stack id by which it may launch operations, `NULL` where it launches none.
    """

    thread: Ints
    start: Ints
    end: Ints
    name: Ints
    category: Ints
    stack: Ints

    def take(self, rows: Ints) -> RankRegions:
        """Return some of the regions, in the order of their numbers in `rows`."""
        return RankRegions(*(column[rows] for column in self))


def read_regions(reading: RankReading, names: Names) -> RankRegions:
    """Read the regions of a rank."""
    selected = columns(reading.reader, "rocpd_region", statement("regions"), _COLUMNS)
    stack, start, end, row, thread, name, category = selected
    valid = valid_times(start, end)
    reading.left_out["regions"] += int((~valid).sum())
    if not valid.all() or reading.reader.selects("rocpd_region"):
        # The launching region may be left out: then no other launches in its place.
        stack = np.where(np.isin(row, launching_rows(reading.reader)), stack, NULL)
    texts = string_texts(reading.reader, np.concatenate([name, category]))
    codes = names.codes(name, texts.get)
    rows = reading.reader.rows(statement("marker_messages"))
    messages = {number: names.code(as_text(text)) for number, text in rows}
    if messages:
        codes = np.array([messages.get(r, c) for r, c in zip(row.tolist(), codes.tolist(), strict=True)], np.int64)
    order = np.lexsort((row, stack, -np.where(valid, end, 0), start))  # of equal ranges the lower id is outside
    order = order[valid[order]]
    every = (thread, start, end, codes, names.codes(category, texts.get), stack)
    return RankRegions(*(column[order] for column in every))
