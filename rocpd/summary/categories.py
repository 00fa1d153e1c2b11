"""Time by what kernels do, and the names that no category knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rocpd.errors import RocpdError
from rocpd.summary.labels import EventsByGroup, totals_by_label
from rocpd.summary.reading import PERCENT, STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread, counts_of, spreads_by_group
from rocpd.summary.sums import merge
from rocpd.trace.kernel_categories import is_communication, load
from rocpd.types import Row

TABLES = by_name(
    TableDefinition(
        "categories",
        "Kernels by what they do, as a file of regular expressions says.",
        (
            Field("category", "", "category", has_colour=True),
            Field("kernels", "", "different kernels"),
            *STATISTICS,
            PERCENT,
        ),
    ),
    TableDefinition(
        "unmatched",
        "Kernels that no expression matches.",
        (
            Field("name", "", "kernel", is_kernel=True),
            Field("calls", "", "dispatches"),
            Field("total_ns", "ns", "sum of durations"),
            Field("percent", "%", "share of the time of all kernels", is_share=True),
        ),
    ),
)


class _Name(NamedTuple):
    shown: str | None
    full: str | None


def categories(reading: Reading) -> Iterator[Summary]:
    """Return time by category, and the names that no category knows.

    Raises:
        RocpdError: there are no kernels.
        UsageError: the file of categories cannot be used.
    """
    known = load(reading.options.categories)
    names: dict[Key, dict[_Name, Spread]] = {}
    for _, names_of_rank in reading.each(_of_rank):
        for key, spreads in names_of_rank.items():
            merge(names.setdefault(key, {}), spreads)
    if not names:
        raise RocpdError("no kernels in the selection")
    if not any(is_communication(known.of(name.full)) for spreads in names.values() for name in spreads):
        reading.session.note("no communication kernels found")
    rows: list[Row] = []
    shown: list[Spread] = []
    missing: list[Row] = []
    for key in sorted(names, key=order_of):
        groups: dict[str, dict[_Name, Spread]] = {}
        for name, spread in names[key].items():
            groups.setdefault(known.of(name.full), {})[name] = spread
        total = sum(spread.moments.total for spread in names[key].values())
        merged = _most_first({category: sum(of_names.values(), Spread()) for category, of_names in groups.items()})
        shown += merged.values()
        kernels = {category: len({name.full for name in of_names}) for category, of_names in groups.items()}
        rows += [
            (*key, category, kernels[category], *statistics(spread), _percent(spread.moments.total, total))
            for category, spread in merged.items()
        ]
        missing += _unmatched(key, groups.get(known.other, {}), total)
    table = reading.summary(TABLES["categories"], rows)
    table.counts = counts_of(shown)
    yield table
    yield reading.summary(TABLES["unmatched"], missing)


def _of_rank(reading: RankReading) -> dict[Key, dict[_Name, Spread]]:
    """Return the durations of the kernels of one rank, by division and name."""
    divisions: dict[Key, dict[_Name, Spread]] = {}
    for label, spread in totals_by_label(reading, "kernels", _spreads).items():
        merge(divisions.setdefault(label.division, {}), {_Name(label.name, label.full): spread})
    return divisions


def _spreads(events: EventsByGroup) -> list[Spread]:
    return spreads_by_group(events.durations, events.first)


def _most_first(merged: dict[str, Spread]) -> dict[str, Spread]:
    return {name: merged[name] for name in sorted(merged, key=lambda name: (-merged[name].moments.total, name))}


def _percent(time: int, total: int) -> float | None:
    return time * 100 / total if total else None


def _unmatched(key: Key, kernels: dict[_Name, Spread], total: int) -> list[Row]:
    spreads: dict[str | None, Spread] = {}
    for name, spread in kernels.items():
        merge(spreads, {name.shown: spread})
    sums = [(shown, spread.moments) for shown, spread in spreads.items()]
    sums.sort(key=lambda item: (-item[1].total, item[0] or ""))
    return [(*key, name, m.calls, m.total, _percent(m.total, total)) for name, m in sums]
