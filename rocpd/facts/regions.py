"""Reads the regions of one rank, calls and marker ranges, as columns, outer ones before those inside.

Memory: one rank at a time, about 50 bytes per region. Rows with invalid timestamps are left out and counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocpd.base.types import NULL, Ints
from rocpd.facts.columns import Piece, Select, columns, read_all
from rocpd.facts.groups import grouped
from rocpd.facts.links import launching_rows
from rocpd.facts.names import Names, as_text
from rocpd.facts.nesting import nest_times
from rocpd.facts.operations import string_texts
from rocpd.facts.rank import RankReading
from rocpd.facts.statements import statement
from rocpd.facts.timeline import Course
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.markers import is_marker
from rocpd.schema.rules.times import valid_times

_NO_TIMES = np.zeros(0, np.int64)
_COLUMNS = ("stack", "start", "end", "id", "thread", "name", "category")


class RankRegions(NamedTuple):
    """The regions of one rank.

    Args:
        thread: id, `NULL` where unknown.
        start, end: [ns].
        name: number in `Names`: of a marker its message, of others the function.
        category: number in `Names`.
        stack: stack id by which it may launch operations, `NULL` where it launches none.
        id: of its row.
    """

    thread: Ints
    start: Ints
    end: Ints
    name: Ints
    category: Ints
    stack: Ints
    id: Ints

    def take(self, rows: Ints) -> RankRegions:
        """Return some of the regions, in the order of their numbers in `rows`."""
        return RankRegions(*(column[rows] for column in self))


def read_regions(reading: RankReading) -> tuple[RankRegions, Names]:
    """Read the regions of a rank, and the names that their numbers stand for; neither is to be changed."""
    regions, names, invalid = reading.reader.once("regions", lambda: _read(reading))
    reading.left_out["regions"] += invalid
    return regions, names


def read_markers(reader: RankReader) -> Piece:
    """Read the marker ranges of a rank: ids, in order, threads, starts and ends [ns]; messages."""
    select = Select(statement("marker_ranges"), ("id", "thread", "start", "end"), texts=("name",), base="rocpd_region")
    return read_all(reader, select)


def _read(reading: RankReading) -> tuple[RankRegions, Names, int]:
    """Return regions, names, and how many regions have invalid timestamps."""
    names = Names()
    selected = columns(reading.reader, "rocpd_region", statement("regions"), _COLUMNS)
    stack, start, end, row, thread, name, category = selected
    valid = valid_times(start, end)
    if not valid.all() or reading.reader.selects("rocpd_region"):
        # The launching region may be left out: then no other launches in its place.
        stack = np.where(np.isin(row, launching_rows(reading.reader)), stack, NULL)
    texts = string_texts(reading.reader, np.concatenate([name, category]))
    codes = names.codes(name, texts.get)
    markers = read_markers(reading.reader)
    if markers.count:
        marker, messages = markers.numbers[0], np.array([names.code(as_text(text)) for text in markers.texts[0]])
        at = np.maximum(np.searchsorted(marker, row, side="right") - 1, 0)
        codes = np.where(marker[at] == row, messages[at], codes)
    order = np.lexsort((row, stack, -np.where(valid, end, 0), start))  # of equal ranges the lower id is outside
    order = order[valid[order]]
    every = (thread, start, end, codes, names.codes(category, texts.get), stack, row)
    return RankRegions(*(column[order] for column in every)), names, int((~valid).sum())


def marked_threads(regions: RankRegions, names: Names) -> dict[int, Course]:
    """Return thread -> number of the message of its innermost marker at any time, `NULL` outside of markers."""
    codes = [code for code in np.unique(regions.category).tolist() if is_marker(names.texts[code] or "")]
    markers = regions.take(np.flatnonzero(np.isin(regions.category, codes)))
    return {thread: innermost(markers.take(rows)) for (thread,), rows in grouped([markers.thread])}


def innermost(ranges: RankRegions) -> Course:
    """Return, for the ranges of one thread, the number of the name of the one that is open and started last."""
    since, rows = nest_times(ranges.start, ranges.end).segments.get(None, (_NO_TIMES, _NO_TIMES))
    return Course.of(since, np.where(rows >= 0, ranges.name[rows], NULL), NULL)
