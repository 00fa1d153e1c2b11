"""Owns time by what kernels do, and the names that no category knows."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.errors import RocpdError
from rocpd.summary.kernel_categories import is_communication, load
from rocpd.summary.labels import EventsByGroup, totals_by_label
from rocpd.summary.reading import PERCENT, STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.summary.spread import Spread, spreads_by_group
from rocpd.summary.sums import merge
from rocpd.types import Row

TABLES = {
    table.name: table
    for table in (
        TableDefinition(
            "categories",
            "Kernels by what they do, as a file of regular expressions says.",
            (
                Field("category", "", "category"),
                Field("kernels", "", "different kernels"),
                *STATISTICS,
                PERCENT,
            ),
        ),
        TableDefinition(
            "unmatched",
            "Kernels that no expression matches.",
            (
                Field("name", "", "kernel"),
                Field("calls", "", "dispatches"),
                Field("total_ns", "ns", "sum of durations"),
                Field("percent", "%", "share of the time of all kernels"),
            ),
        ),
    )
}


def categories(reading: Reading) -> Iterator[Summary]:
    """Give time by category, and the names that none knows.

    Raises:
        RocpdError: there are no kernels.
        UsageError: the file of categories cannot be used.
    """
    known = load(reading.options.categories)
    names: dict[Key, dict[str | None, Spread]] = {}
    for _, own in reading.each(_one):
        for key, spreads in own.items():
            merge(names.setdefault(key, {}), spreads)
    if not names:
        raise RocpdError("no kernels in the selection")
    every = {name for own in names.values() for name in own}
    if not any(is_communication(known.of(name)) for name in every):
        reading.session.note("no communication kernels found")
    rows: list[Row] = []
    missing: list[Row] = []
    for key in sorted(names, key=order_of):
        groups: dict[str, list[tuple[str | None, Spread]]] = {}
        for name, spread in names[key].items():
            groups.setdefault(known.of(name), []).append((name, spread))
        whole = sum(spread.moments.total for spread in names[key].values())
        rows += _rows(key, groups, whole)
        missing += _unmatched(key, groups.get(known.other, []), whole)
    yield reading.summary(TABLES["categories"], rows)
    yield reading.summary(TABLES["unmatched"], missing)


def _one(mine: RankReading) -> dict[Key, dict[str | None, Spread]]:
    """Give the durations of the kernels of one rank, by division and name."""
    found: dict[Key, dict[str | None, Spread]] = {}
    for label, spread in totals_by_label(mine, "kernels", _spreads).items():
        merge(found.setdefault(mine.key(label.lane), {}), {label.name: spread})
    return found


def _spreads(events: EventsByGroup) -> list[Spread]:
    return spreads_by_group(events.durations, events.first)


def _rows(key: Key, groups: dict[str, list[tuple[str | None, Spread]]], whole: int) -> list[Row]:
    merged: dict[str, Spread] = {}
    for category, members in groups.items():
        for _, spread in members:
            merge(merged, {category: spread})
    ordered = sorted(groups, key=lambda category: (-merged[category].moments.total, category))
    return [
        (
            *key,
            category,
            len(groups[category]),
            *statistics(merged[category]),
            merged[category].moments.total * 100 / whole if whole else None,
        )
        for category in ordered
    ]


def _unmatched(key: Key, members: list[tuple[str | None, Spread]], whole: int) -> list[Row]:
    sums = [(name, spread.moments) for name, spread in members]
    sums.sort(key=lambda item: (-item[1].total, item[0] or ""))
    return [(*key, name, m.calls, m.total, m.total * 100 / whole if whole else None) for name, m in sums]
