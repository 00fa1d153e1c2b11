"""The selected rows of a job as one value: window and filters as conditions on the rows of each rank.

A window defines the part of a rank's own time that counts, and the events that lie in it. Knows no session and no
option, and reads nothing: `filters` and `window` resolve the user's input, with readers passed to them. Never changes
a timestamp.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from rocpd.base import RocpdError, frozen
from rocpd.federate.select.align import Alignment, Shift
from rocpd.schema.render import RankTables
from rocpd.schema.rules.events import BELONGING, EVENTS, LAUNCHED, PC_SAMPLES, SPANS, VALID_TIMES

if TYPE_CHECKING:
    from rocpd.federate.open.identify import StoredWindow


class Counting(enum.Enum):
    """The rule by which events with a start and an end lie in a part of the time line."""

    INSIDE = "both its start and its end do"
    EDGE = "its start or its end does: AMD's rule"
    OVERLAP = "any of its time does"
    CUT = "any of its time does, and only that counts"


class Launches(enum.Enum):
    """The launching calls of a rank's GPU work, as far as they are known."""

    ALL = "the call of every operation"
    SOME = "the calls of some operations: others count by their start"
    NONE = "no call: operations count by when they ran"


@frozen
class Part:
    """Start and end of the part of a rank's time that counts [ns]; None: open on that side."""

    start: int | None
    end: int | None

    def on_line(self, shift: Shift) -> Part:
        """Return the part on the common time line, for a clock with this shift."""
        start, end = (None if side is None else shift.to_line(side) for side in (self.start, self.end))
        return Part(start, end)


@frozen
class Cut:
    """A resolved window.

    Args:
        parts: rank number -> the part of its time that counts, by its own clock.
        counting: the rule by which events lie in it.
        launches: rank number -> how many of its launches are known, where GPU work counts by the time of its launch.
    """

    parts: Mapping[int, Part]
    counting: Counting = Counting.OVERLAP
    launches: Mapping[int, Launches] = field(default_factory=dict)

    def part(self, rank: int) -> Part:
        """Return the part of a rank."""
        return self.parts.get(rank, Part(None, None))

    def edges(self, rank: int, alignment: Alignment, trace: tuple[int, int] | None) -> tuple[int, int]:
        """Return start and end of the part of a rank [ns of its clock]; an open side is the edge of the trace.

        Args:
            rank: its number.
            alignment: alignment of its clock.
            trace: first start and last end on the common time line.
        """
        part, shift = self.part(rank), alignment.shift(rank)
        first, last = map(shift.to_clock, trace or (0, 0))
        return first if part.start is None else part.start, last if part.end is None else part.end

    def as_amd_counts(self) -> Cut:
        """Return the window in which an event counts if its start or end lies in it, unless the user chose a rule."""
        is_default = self.counting is Counting.OVERLAP
        return dataclasses.replace(self, counting=Counting.EDGE) if is_default else self

    def is_by_launch(self, rank: int) -> bool:
        """Whether the GPU work of a rank counts by the time of its launch."""
        return self.launches.get(rank, Launches.NONE) is not Launches.NONE

    def conditions(self, rank: int, tables: RankTables) -> dict[str, str]:
        """Return base table -> condition on the rows of a rank in the window.

        Starts count in [start, end), ends in (start, end], so that adjoining windows share an event only if it crosses
        the border. Arguments and counter values go with their event. Samples of program counters count by their own
        time where parts of a dispatch count, and else go with their dispatch.

        Args:
            rank: its number.
            tables: its tables.
        """
        part = self.part(rank)
        spans = _spans(part, self.counting)
        if spans and self.is_by_launch(rank):
            launched = _launched(tables, part, self.launches[rank])
            conditions = {base: launched if base in LAUNCHED else spans for base in _with_times(tables)}
        else:
            conditions = dict.fromkeys(_with_times(tables), spans) if spans else {}
        conditions |= of_dispatches(tables, conditions)
        has_shares = self.counting in (Counting.OVERLAP, Counting.CUT) and not self.is_by_launch(rank)
        for base in ("rocpd_sample", *(PC_SAMPLES if has_shares else ())):
            if spans and "timestamp" in tables.columns.get(base, ()):
                conditions[base] = _within('"timestamp"', part)
        return conditions | (dependent_conditions(tables, conditions) if conditions else {})

    def clipped(self, rank: int, tables: RankTables) -> dict[str, dict[str, str]]:
        """Return base table -> column -> expression that cuts events at the edges; empty unless events are cut.

        Invalid times (start 0, end before start) stay as they are, and so does work that counts by its launch.
        """
        if self.counting is not Counting.CUT:
            return {}
        part = self.part(rank)
        clipped = {"start": '"start"', "end": '"end"'}
        if part.start is not None:
            clipped["start"] = f'CASE WHEN {VALID_TIMES} THEN MAX("start", {part.start}) ELSE "start" END'
        if part.end is not None:
            clipped["end"] = f'CASE WHEN {VALID_TIMES} THEN MIN("end", {part.end}) ELSE "end" END'
        stay = LAUNCHED if self.is_by_launch(rank) else ()
        return {base: clipped for base in _with_times(tables) if base not in stay}


def stored_cut(windows: Mapping[int, StoredWindow]) -> Cut | None:
    """Return the windows that files were merged from, by rank, as one resolved window; None where no file was cut."""
    parts = {rank: Part(window.start, window.end) for rank, window in windows.items()}
    by_launch = {rank: Launches.ALL for rank, window in windows.items() if window.by_launch}
    return Cut(parts, launches=by_launch) if parts else None


def dependent_conditions(tables: RankTables, conditions: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions on arguments and counter values, which go with their event, from those on events."""
    owners = [
        f"SELECT event_id FROM {tables.name(base)} WHERE {conditions.get(base, '1')}"
        for base in EVENTS
        if "event_id" in tables.columns.get(base, ())
    ]
    if not owners:
        return {}
    among = f"event_id IN ({' UNION ALL '.join(owners)})"
    return {base: among for base in BELONGING if "event_id" in tables.columns.get(base, ())}


def of_dispatches(tables: RankTables, conditions: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions on samples of program counters, which go with their dispatch, from those on dispatches."""
    dispatches = "rocpd_kernel_dispatch"
    if dispatches not in conditions:
        return {}
    among = f"dispatch_id IN (SELECT dispatch_id FROM {tables.name(dispatches)} WHERE {conditions[dispatches]})"
    return {base: among for base in PC_SAMPLES if "dispatch_id" in tables.columns.get(base, ())}


def of_launching_stacks(tables: RankTables, having: str = "") -> str:
    """Return the condition on GPU work of a rank whose launching call is in the trace and meets `having`, if given."""
    from rocpd.schema.rules.launch import LAUNCHING_STACKS  # imports numpy

    stacks = re.sub(r"\brocpd_\w+", lambda match: tables.every_row(match[0]), LAUNCHING_STACKS)
    among = f"{stacks} HAVING {having}" if having else stacks
    return f"event_id IN (SELECT id FROM {tables.name('rocpd_event')} WHERE stack_id IN ({among}))"


def _launched(tables: RankTables, part: Part, known: Launches) -> str:
    by_call = of_launching_stacks(tables, _within("MAX(R.start)", part))
    if known is Launches.ALL:
        return by_call
    return f"{by_call} OR (({of_launching_stacks(tables)}) IS NOT 1 AND {_within('start', part)})"


def _with_times(tables: RankTables) -> list[str]:
    return [base for base in SPANS if {"start", "end"} <= set(tables.columns.get(base, ()))]


def _spans(part: Part, counting: Counting) -> str:
    """Return the condition on events with start and end; empty where all lie in the part."""
    if not (starts := _within('"start"', part)):
        return ""
    # An event without length has only one time, its start.
    if counting is Counting.INSIDE:
        return f'({starts}) AND ("end" <= "start" OR ({_ends(part)}))'
    if counting is Counting.EDGE:
        return f'({starts}) OR ("end" > "start" AND {_ends(part)})'
    overlaps = _sides('"end" >', part.start, '"start" <', part.end)
    return f'("end" > "start" AND {overlaps}) OR ("end" <= "start" AND {starts})'


def _within(time: str, part: Part) -> str:
    return _sides(f"{time} >=", part.start, f"{time} <", part.end)


def _ends(part: Part) -> str:
    return _sides('"end" >', part.start, '"end" <=', part.end)


def _sides(above: str, low: int | None, below: str, high: int | None) -> str:
    """Return a condition such as `"start" >= 3 AND "end" < 7`; a side that is None is left out."""
    return " AND ".join(f"{words} {side}" for words, side in ((above, low), (below, high)) if side is not None)


RANK_EVENTS = "{events}"
"""Stands for the rank's table of events in a condition of filters."""

_WHAT_THERE_IS = (
    "agents: `rocpd summary gpu-time`, streams: with --by stream; kernels: `rocpd summary kernels --full-names`; "
    "categories: `rocpd summary --list-categories`"
)


@frozen
class Selection:
    """The rows of each rank that count; by default all rows.

    Args:
        window: the part of each rank's time that counts, None for all of it.
        filtered: rank number -> base table -> condition of the filters on its rows.
    """

    window: Cut | None = None
    filtered: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def apply(self, rank: int, tables: RankTables) -> RankTables:
        """Return the tables of a rank with the conditions on selected rows."""
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
        """Return the tables of which one must have rows: those that filters name, else all with conditions."""
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
        """Return the selection with this window in place of its current one."""
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
        filters = {base: text.replace(RANK_EVENTS, events) for base, text in self.filtered.get(rank, {}).items()}
        return filters | of_dispatches(tables, filters)
