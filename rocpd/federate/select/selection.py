"""The selection: which rows of a job count, as one value: window, filters and clock offsets as conditions per rank.

Knows no session and reads nothing: `filters` and `window` resolve what the user gives, with readers passed to them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.federate.select.filters import EVENTS
from rocpd.federate.select.part import Cut, dependent_conditions, of_dispatches
from rocpd.schema.render import RankTables

_WHAT_THERE_IS = (
    "agents: `rocpd summary gpu-time`, streams: with --by stream; kernels: `rocpd summary kernels --full-names`; "
    "categories: `rocpd summary --list-categories`"
)


@frozen
class Selection:
    """The rows of each rank that count; by default all.

    Args:
        window: the part of each rank's time that counts, None for all of it.
        filtered: rank number -> base table -> condition of the filters on its rows.
    """

    window: Cut | None = None
    filtered: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def apply(self, rank: int, tables: RankTables) -> RankTables:
        """Return the tables of a rank with conditions that only selected rows meet."""
        filters = self._filters_on(rank, tables)
        if self.window is None and not filters:
            return tables
        alone = {**filters, **dependent_conditions(tables, filters)} if filters else {}
        if self.window is None:
            return dataclasses.replace(tables, only=alone, filtered=alone)
        in_window = self.window.conditions(rank, tables)
        only = dict(in_window)
        if filters:
            both = {base: f"({condition})" for base, condition in in_window.items() if base not in filters}
            both |= {base: f"({in_window.get(base, '1')}) AND ({condition})" for base, condition in filters.items()}
            only = both | dependent_conditions(tables, both)
        return dataclasses.replace(tables, only=only, values=self.window.clipped(rank, tables), filtered=alone)

    def tables_to_check(self, rank: int, tables: RankTables) -> tuple[str, ...]:
        """Return the tables of which one must have rows: those that filters name, if any, else all with conditions."""
        names = self.filtered.get(rank, {}) if self.filtered else tables.only
        return tuple(base for base in names if base in tables.only)

    def with_filters(self, filtered: Mapping[int, Mapping[str, str]]) -> Selection:
        """Return the selection with further filters."""
        merged = {rank: dict(tables) for rank, tables in self.filtered.items()}
        for rank, tables in filtered.items():
            of_rank = merged.setdefault(rank, {})
            for base, condition in tables.items():
                of_rank[base] = f"({of_rank[base]}) AND ({condition})" if base in of_rank else condition
        return dataclasses.replace(self, filtered=merged)

    def with_window(self, window: Cut | None) -> Selection:
        """Return the selection with this window in place of its own."""
        return dataclasses.replace(self, window=window)

    def empty_error(self) -> RocpdError:
        """Return the error for a selection without rows."""
        passes, lies = "passes the filters", "lies in the window"
        why = passes if self.window is None else f"{lies} and {passes}" if self.filtered else lies
        return RocpdError(
            f"no event {why}", _WHAT_THERE_IS if self.filtered else "`rocpd info` shows what the files hold"
        )

    def _filters_on(self, rank: int, tables: RankTables) -> dict[str, str]:
        """Return base table -> condition of the filters, with the names of tables on this connection."""
        events = tables.name("rocpd_event")
        filters = {base: text.replace(EVENTS, events) for base, text in self.filtered.get(rank, {}).items()}
        return filters | of_dispatches(tables, filters)
