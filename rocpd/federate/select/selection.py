"""Owns what of a job counts, as one value: window, filters and clock offsets, resolved to conditions per rank.

Knows no session: whoever has readers of ranks (`MapRanks`) and their time line can make one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from rocpd.errors import RocpdError
from rocpd.federate.select.filters import EVENTS
from rocpd.federate.select.window import Interval, clip_expressions, conditions, dependent_conditions
from rocpd.schema.render import RankTables


@dataclass(frozen=True)
class Selection:
    """The rows of each rank that count; by default all.

    Args:
        window: the part of the time line that counts, None for all of it.
        offsets: rank number -> what alignment adds to its times [ns]; needed with a window only.
        filtered: rank number -> base table -> condition of the filters on its rows.
    """

    window: Interval | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)
    filtered: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def apply(self, rank: int, part: RankTables) -> RankTables:
        """Return the tables of a rank with conditions that let only selected rows count."""
        filters = self._filters_on(rank, part)
        if self.window is None:
            return _with_filters(part, filters)
        offset = self.offsets.get(rank, 0)
        in_window = conditions(part, self.window, offset)
        only = dict(in_window)
        if filters:
            both = {base: f"({condition})" for base, condition in in_window.items() if base not in filters}
            both |= {base: f"({in_window.get(base, '1')}) AND ({condition})" for base, condition in filters.items()}
            only = both | dependent_conditions(part, both)
        return dataclasses.replace(part, only=only, values=clip_expressions(part, self.window, offset))

    def apply_filters(self, rank: int, part: RankTables) -> RankTables:
        """Return the tables of a rank as filters alone let rows count: what was before a window matters too."""
        return _with_filters(part, self._filters_on(rank, part))

    def tables_to_check(self, rank: int, part: RankTables) -> tuple[str, ...]:
        """Tables of which at least one must have rows for the selection to make sense: those that filters name."""
        names = self.filtered.get(rank, {}) if self.filtered else part.only
        return tuple(base for base in names if base in part.only)

    def with_filters(self, filtered: Mapping[int, Mapping[str, str]]) -> Selection:
        """Return the selection in which further filters hold too."""
        merged = {rank: dict(tables) for rank, tables in self.filtered.items()}
        for rank, tables in filtered.items():
            earlier = merged.setdefault(rank, {})
            for base, condition in tables.items():
                earlier[base] = f"({earlier[base]}) AND ({condition})" if base in earlier else condition
        return dataclasses.replace(self, filtered=merged)

    def with_window(self, window: Interval | None, offsets: Mapping[int, int]) -> Selection:
        """Return the selection with this window in place of its own."""
        return dataclasses.replace(self, window=window, offsets=offsets)

    def nothing_left(self) -> RocpdError:
        """Return the error for a selection without rows."""
        passes, lies = "passes the filters", "lies in the window"
        why = passes if self.window is None else f"{lies} and {passes}" if self.filtered else lies
        return RocpdError(f"nothing is left: no event {why}", "rocpd info shows what there is")

    def _filters_on(self, rank: int, part: RankTables) -> dict[str, str]:
        """The filters' conditions as a connection to the rank's tables says them."""
        events = part.name("rocpd_event")
        return {base: text.replace(EVENTS, events) for base, text in self.filtered.get(rank, {}).items()}


def _with_filters(part: RankTables, filters: Mapping[str, str]) -> RankTables:
    return dataclasses.replace(part, only={**filters, **dependent_conditions(part, filters)}) if filters else part
