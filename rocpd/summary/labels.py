"""Adds up what totals are made of: durations of kernels, copies, allocations, API calls and markers, by name.

Joins stay inside a rank; ranks are added up in Python. Reads batch by batch; never arranges tables for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.columns import Select, batches, read_before
from rocpd.read.groups import group_rows
from rocpd.read.names import Names, as_text
from rocpd.summary.ops import COPY, KERNEL, kernel_forms, string_texts
from rocpd.summary.options import LANES, LAUNCHES
from rocpd.summary.reading import Key, RankReading
from rocpd.summary.statements import statement
from rocpd.summary.sums import Sum, merge
from rocpd.trace.categories import domain_of
from rocpd.trace.markers import is_marker
from rocpd.trace.times import VALID_TIMES, valid_times
from rocpd.types import NULL, Ints

if TYPE_CHECKING:
    from rocpd.summary.origins import Origins

_DURATION = f'CASE WHEN {VALID_TIMES} THEN "end" - start ELSE -1 END'


@frozen
class _Layout:
    """What the `.sql` file of a kind gives besides `start` and `end`.

    Args:
        keys: columns by which events are counted.
        base: table with these events, whose `id` is given too; None: they come from several.
        by_text: whether the keys are texts; else they are ids.
        has_lanes: whether there are columns `agent` and `stream`.
        has_sizes: whether there is a column `size` [bytes].
    """

    keys: tuple[str, ...]
    base: str | None = None
    by_text: bool = False
    has_lanes: bool = True
    has_sizes: bool = False


_CATEGORISED = ("name", "category")
_TIMES = ("start", "end")

_LAYOUTS = {
    "kernels": _Layout(("name",), "rocpd_kernel_dispatch"),
    "memory_copies": _Layout(("name",), "rocpd_memory_copy", has_sizes=True),
    "memory_allocations": _Layout(("name", "detail"), "rocpd_memory_allocate", by_text=True, has_sizes=True),
    "scratch_memory": _Layout(("name", "detail"), "rocpd_memory_allocate", by_text=True, has_sizes=True),
    "regions": _Layout(_CATEGORISED, "rocpd_region", has_lanes=False),
    "markers": _Layout(("name",), by_text=True, has_lanes=False),
}

KINDS = tuple(_LAYOUTS)
"""Kinds of events that AMD's tables hold; each has a `.sql` file."""

_LAYOUTS |= {
    "graph_launches": _Layout(_CATEGORISED, "rocpd_graph_launch"),
    "samples": _Layout(_CATEGORISED, "rocpd_sample", has_lanes=False),
}

ALL_KINDS = tuple(_LAYOUTS)
"""Kinds of all events that have a time."""


class Label(NamedTuple):
    """What events are counted by.

    Args:
        category: event category, or the kind's own (`KERNELS`).
        name: kernel, direction, operation, function or message.
        detail: level of an allocation, else None.
        division: values of the columns of the division.
        full: of a kernel the name by which it is known, in whatever form `name` is; else None.
    """

    category: str | None
    name: str | None
    detail: str | None
    division: Key
    full: str | None = None

    @property
    def domain(self) -> str:
        """The domain of the category."""
        return domain_of(self.category)


class EventsByGroup(NamedTuple):
    """Events, those of a group next to each other.

    Args:
        durations: [ns]; -1 with invalid timestamps.
        sizes: [bytes], None where the kind has none.
        first: where each group starts.
    """

    durations: Ints
    sizes: Ints | None
    first: Ints


def totals_by_label(
    reading: RankReading, kind: str, add_up: Callable[[EventsByGroup], Sequence[Sum]]
) -> dict[Label, Sum]:
    """Return the sums of the events of one rank by what they are counted by.

    Args:
        reading: reads the rank.
        kind: one of `ALL_KINDS`.
        add_up: returns the sum of each group of some events.
    """
    origins = _origins(reading)
    lane = reading.options.by if reading.options.by in (*LANES, *LAUNCHES) else None
    names, sums = reading.reader.once((kind, add_up, lane), lambda: _sums_by_key(reading, kind, add_up, origins))
    totals: dict[Label, Sum] = {}
    for label, total in zip(_labels(reading, kind, names, list(sums), origins), sums.values(), strict=True):
        if _LAYOUTS[kind].keys != _CATEGORISED or not is_marker(label.category):  # markers are a kind of their own
            merge(totals, {label: total})
    return totals


def _sums_by_key(
    reading: RankReading, kind: str, add_up: Callable[[EventsByGroup], Sequence[Sum]], origins: Origins | None
) -> tuple[Names, dict[tuple[int, ...], Sum]]:
    """Return the sums of the events of one rank by their keys, and the names that stand for texts among these."""
    names = Names()
    sums: dict[tuple[int, ...], Sum] = {}
    for keys, durations, sizes in _batches(reading, kind, names, origins):
        groups = group_rows(keys)
        events = EventsByGroup(durations[groups.order], None if sizes is None else sizes[groups.order], groups.first)
        merge(sums, dict(zip(groups.keys, add_up(events), strict=True)))
    return names, sums


def _origins(reading: RankReading) -> Origins | None:
    """Return where operations were launched, if that divides."""
    if reading.options.by not in LAUNCHES:
        return None
    from rocpd.summary.origins import read_origins

    return read_origins(reading, reading.options.by)


def _batches(
    reading: RankReading, kind: str, names: Names, origins: Origins | None
) -> Iterator[tuple[list[Ints], Ints, Ints | None]]:
    """Yield columns to count by, durations and sizes, some rows at a time; texts are numbered in `names`."""
    layout, by = _LAYOUTS[kind], reading.options.by
    lane = [by.value] if layout.has_lanes and by in LANES else ["id"] if origins else []
    keys = [*layout.keys, *lane]
    sizes = ("size",) if layout.has_sizes else ()
    if not origins and (known := read_before(reading.reader, layout.base, statement(kind), (*keys, *_TIMES, *sizes))):
        yield from _known(known, len(keys))
        return
    every = f"SELECT *, {_DURATION} AS duration FROM ({statement(kind)})"  # noqa: S608
    if layout.by_text:
        select = Select(every, (*keys[len(layout.keys) :], "duration", *sizes), texts=layout.keys, base=layout.base)
    else:
        select = Select(every, (*keys, "duration", *sizes), base=layout.base)
    for batch in batches(reading.reader, select):
        codes = (np.fromiter(map(names.code, map(as_text, column)), np.int64, batch.count) for column in batch.texts)
        columns = [*codes, *batch.numbers]
        if origins:
            columns[len(layout.keys)] = origins.of(KERNEL if kind == "kernels" else COPY, columns[len(layout.keys)])
        yield columns[: len(keys)], columns[len(keys)], columns[-1] if sizes else None


def _known(columns: list[Ints], keys: int) -> Iterator[tuple[list[Ints], Ints, Ints | None]]:
    """Yield what `_batches` does of columns that were read: keys, start, end, and the size where there is one."""
    start, end, *sizes = columns[keys:]
    if len(start):
        yield columns[:keys], np.where(valid_times(start, end), end - start, -1), sizes[0] if sizes else None


def _labels(
    reading: RankReading, kind: str, names: Names, keys: Sequence[tuple[int, ...]], origins: Origins | None
) -> list[Label]:
    """Return what each key stands for. Ids are looked up here: once per rank, not once per row."""
    layout = _LAYOUTS[kind]
    count = len(layout.keys)
    ids = np.array([number for key in keys for number in key[:count]], np.int64)
    full: dict[int, str | None] = {}
    if layout.by_text:
        known = dict(enumerate(names.texts))
    elif kind == "kernels":
        known, full = kernel_forms(reading, ids)
    else:
        known = string_texts(reading.reader, ids)
    labels = []
    for key in keys:
        name, more = known.get(key[0]), known.get(key[1]) if count > 1 else None
        category, detail = (more, None) if layout.keys == _CATEGORISED else (kind.upper(), more)
        lane = key[count] if len(key) > count else NULL
        division = origins.key(lane) if origins else reading.key(lane)
        labels.append(Label(category, name, detail, division, full.get(key[0])))
    return labels
