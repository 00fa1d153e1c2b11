"""Tells ranks that occur in two inputs from ranks that only share a table suffix.

Reads the tables of such ranks, and of no others. Never drops a rank whose rows differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from rocpd.base.types import Row
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import as_input_error
from rocpd.schema.quote import quote_name
from rocpd.schema.versions import suffix_of

_TIMES_AND_VALUES = frozenset({"start", "end", "timestamp", "value", "size"})


def without_duplicates(ranks: Iterable[Rank]) -> tuple[tuple[Rank, ...], tuple[str, ...]]:
    """Return each rank once, and a note on each that is dropped or gets another GUID.

    Ranks with one suffix are the same if all tables but the metadata have equal numbers of rows and equal sums of
    ids, times, sizes, values and lengths of strings. If not, the later one is a rank of its own: its GUID gets `#2`.

    Raises:
        InputError: a file that has to be compared is damaged or locked.
    """
    by_suffix: dict[str, list[Rank]] = {}
    comparison = _Comparison()
    all_ranks: list[Rank] = []
    notes = []
    for rank in ranks:
        guid = rank.plain_guid
        others = by_suffix.setdefault(suffix_of(guid), [])
        same = next((other for other in others if comparison.are_equal(rank, other)), None)
        if same:
            notes.append(f"{rank.opening.path}: GUID {rank.guid} counts once, it is also in {same.opening.path}")
            continue
        distinct = dataclasses.replace(rank, guid=_unused(rank.guid, guid, {other.guid for other in others}))
        if distinct.guid != rank.guid:
            notes.append(
                f"{rank.opening.path}: the table suffix is that of {others[0].opening.path}, the rows are not: "
                f"a rank of its own, with the GUID {distinct.guid}"
            )
        others.append(distinct)
        all_ranks.append(distinct)
    return tuple(all_ranks), tuple(notes)


def _unused(guid: str, base: str, used: set[str]) -> str:
    number = 1
    while guid in used:
        number += 1
        guid = f"{base}#{number}"
    return guid


class _Comparison:
    """Compares the rows of ranks; each rank is read once."""

    def __init__(self) -> None:
        self._sums: dict[tuple[object, str], Mapping[str, Row]] = {}

    def are_equal(self, rank: Rank, other: Rank) -> bool:
        """Whether two ranks hold the same rows, as far as numbers of rows and sums say."""
        return self._of(rank) == self._of(other)

    def _of(self, rank: Rank) -> Mapping[str, Row]:
        key = (rank.opening, rank.suffix)
        if key not in self._sums:
            self._sums[key] = _sums(rank)
        return self._sums[key]


def _sums(rank: Rank) -> Mapping[str, Row]:
    """Return table -> number of rows and sums over them, of tables with rows."""
    connection = rank.opening.connect()
    try:
        with as_input_error(rank.opening.path):
            selects = {base: _select(rank, base) for base in rank.tables if base != "rocpd_metadata"}
            rows = {base: tuple(connection.execute(sql).fetchall()[0]) for base, sql in selects.items()}
            return {base: row for base, row in rows.items() if row[0]}
    finally:
        connection.close()


def _select(rank: Rank, base: str) -> str:
    items = ["COUNT(*)"]
    for column in sorted(rank.tables[base], key=str.lower):
        name = quote_name(column)
        if column.lower() == "string":
            items.append(f"SUM(LENGTH(CAST({name} AS BLOB)))")
        elif column.lower() in _TIMES_AND_VALUES or (column.lower().endswith("id") and column.lower() != "guid"):
            # In halves, which no number of rows makes overflow.
            items += [f"COUNT({name})", f"SUM({name} & 4294967295)", f"SUM({name} >> 32)"]
    return f"SELECT {', '.join(items)} FROM {quote_name(base + rank.suffix)}"
