"""Windows: from `30%`, nanoseconds or marker names to conditions on the rows of each rank.

Sides are resolved on the aligned time line; conditions use each rank's own clock. Never changes a timestamp.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rocpd.errors import RocpdError, UsageError
from rocpd.frozen import frozen
from rocpd.schema.render import RankTables
from rocpd.trace.tables import BELONGING, EVENTS, SPANS
from rocpd.trace.times import VALID_TIMES

if TYPE_CHECKING:
    from fractions import Fraction

    from rocpd.federate.run.rank_reader import MapRanks, RankReader
    from rocpd.federate.select.timeline import Shift, TimeLine
    from rocpd.types import Row

_POINT = r"(?P<sign>[+-]?)(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(?P<unit>%|ns|us|µs|ms|s)?"
_NS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_MARKERS = f'SELECT name, start, "end" FROM markers WHERE {VALID_TIMES} ORDER BY start'
_FORMS = "such as 30%, 12.5ms or +5ms (from the start), -90ms (from the end), or nanoseconds"


@frozen
class Window:
    """The part of the time line that counts, as the user gives it; None leaves that side open.

    Args:
        start, end: `30%` of the trace, absolute nanoseconds (`1071040913789950`), a time from the start (`12.5ms`,
            `+5ms`) or from the end (`-90ms`).
        start_marker, end_marker: text of a marker, or `/regular expression/`; append `#2` for the second match.
            The window runs from the start of the first to the end of the other, over all ranks that have them.
        inclusive: an event counts if its start or its end lies in the window; otherwise only if both do.
        kernel: regular expression: from the first start to the last end of the kernels that match, over all ranks.
        auto_roi: the same for the kernel with the largest total time.
        clip: every event that overlaps the window counts, and is cut at its edges.
    """

    start: str | int | None = None
    end: str | int | None = None
    start_marker: str | None = None
    end_marker: str | None = None
    inclusive: bool = True
    kernel: str | None = None
    auto_roi: bool = False
    clip: bool = False

    def __bool__(self) -> bool:
        return self.auto_roi or any(
            side is not None for side in (self.start, self.end, self.start_marker, self.end_marker, self.kernel)
        )


@frozen
class Interval:
    """A resolved window on the aligned time line [ns]; None: open on that side."""

    start: int | None
    end: int | None
    inclusive: bool = True
    clip: bool = False

    def on_clock(self, shift: Shift) -> Interval:
        """Return the window by the clock of a rank, to whose times alignment adds `shift`."""
        start, end = (None if side is None else shift.to_clock(side) for side in (self.start, self.end))
        return Interval(start, end, self.inclusive, self.clip)


def resolve(window: Window, line: TimeLine | None, map_ranks: MapRanks, note: Callable[[str], None]) -> Interval | None:
    """Return the window as times; None if it covers the whole trace.

    Args:
        window: what the user asked for.
        line: all ranks on one time line; None if there are no events.
        map_ranks: reads the rows of ranks that pass the filters.
        note: called with what the user should know.

    Raises:
        UsageError: a side that cannot be parsed or is given twice, an unknown or ambiguous marker, end before start.
        RocpdError: the window lies outside the trace, or there are no events.
    """
    if line is None:
        raise RocpdError("no events, so there is no time line to take a window of")
    if window.kernel is None and not window.auto_roi:
        _note_clamped((window.start, window.end), note)
        start = _side(window.start, window.start_marker, line, map_ranks, at_start=True)
        end = _side(window.end, window.end_marker, line, map_ranks, at_start=False)
    else:
        start, end = _kernels(window, line, map_ranks, note)
    if start is not None and end is not None and end <= start:
        raise UsageError(f"the window ends before it starts ({end} <= {start} ns)")
    if (start is not None and start > line.end) or (end is not None and end < line.start):
        raise RocpdError(
            f"the window lies outside the trace, which runs from {line.start} to {line.end} ns", f"give times {_FORMS}"
        )
    start = None if start is not None and start <= line.start else start
    end = None if end is not None and end >= line.end else end
    return None if start is None and end is None else Interval(start, end, window.inclusive, window.clip)


def _note_clamped(points: Iterable[str | int | None], note: Callable[[str], None]) -> None:
    for point in points:
        match = re.fullmatch(_POINT, str(point).strip())
        if match and match["unit"] == "%" and not 0 <= _number(match) <= 100:
            note(f"{point}: outside of the trace, taken as {'100%' if _number(match) > 0 else '0%'}")


def _kernels(window: Window, line: TimeLine, map_ranks: MapRanks, note: Callable[[str], None]) -> tuple[int, int]:
    sides = (window.start, window.end, window.start_marker, window.end_marker)
    if any(side is not None for side in sides) or (window.kernel is not None and window.auto_roi):
        raise UsageError("--window-kernel and --auto-roi set both sides of the window", "give one of them alone")
    from rocpd.federate.select.region import hottest, of_kernels

    if window.kernel is not None:
        return of_kernels(window.kernel, line, map_ranks)
    return hottest(line, map_ranks, note)


def window_conditions(tables: RankTables, interval: Interval) -> dict[str, str]:
    """Return base table -> condition that the rows in `interval` meet, for one rank.

    Starts count in [start, end), ends in (start, end], so that adjoining windows share an event only if it crosses
    the border. Arguments and counter values go with their event.

    Args:
        tables: the rank's tables.
        interval: by the clock of the rank [ns].
    """
    low, high = interval.start, interval.end
    spans = _overlap(low, high) if interval.clip else _span_condition(low, high, interval.inclusive)
    conditions = {base: spans for base in SPANS if {"start", "end"} <= set(tables.columns.get(base, ()))}
    if "timestamp" in tables.columns.get("rocpd_sample", ()):
        conditions["rocpd_sample"] = _between('"timestamp" >=', low, '"timestamp" <', high)
    return conditions | dependent_conditions(tables, conditions)


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


def clip_expressions(tables: RankTables, interval: Interval) -> dict[str, dict[str, str]]:
    """Return base table -> column -> expression that cuts events at the edges of `interval`; empty unless it clips.

    Invalid times (start 0, end before start) stay as they are.
    """
    if not interval.clip:
        return {}
    clipped = {"start": '"start"', "end": '"end"'}
    if interval.start is not None:
        clipped["start"] = f'CASE WHEN {VALID_TIMES} THEN MAX("start", {interval.start}) ELSE "start" END'
    if interval.end is not None:
        clipped["end"] = f'CASE WHEN {VALID_TIMES} THEN MIN("end", {interval.end}) ELSE "end" END'
    return {base: clipped for base in SPANS if {"start", "end"} <= set(tables.columns.get(base, ()))}


def _overlap(low: int | None, high: int | None) -> str:
    overlaps = _between('"end" >', low, '"start" <', high)
    # An event without length overlaps nothing: its start counts.
    starts = _between('"start" >=', low, '"start" <', high)
    return f'("end" > "start" AND {overlaps}) OR ("end" <= "start" AND {starts})'


def _span_condition(low: int | None, high: int | None, inclusive: bool) -> str:
    starts = _between('"start" >=', low, '"start" <', high)
    ends = _between('"end" >', low, '"end" <=', high)
    # An event without length has only one time, its start.
    if inclusive:
        return f'({starts}) OR ("end" > "start" AND {ends})'
    return f'({starts}) AND ("end" <= "start" OR ({ends}))'


def _between(above: str, low: int | None, below: str, high: int | None) -> str:
    """Return a condition such as `"start" >= 3 AND "end" < 7`; a side that is None is left out."""
    return " AND ".join(f"{words} {side}" for words, side in ((above, low), (below, high)) if side is not None)


def _side(
    point: str | int | None, marker: str | None, line: TimeLine, map_ranks: MapRanks, *, at_start: bool
) -> int | None:
    name = "start" if at_start else "end"
    if point is not None and marker is not None:
        raise UsageError(f"--{name} and --{name}-marker both set the {name}", "give one of them")
    if marker is not None:
        return _marker_time(marker, line, map_ranks, at_start=at_start)
    if point is None:
        return None
    time = parse_point(point, (line.start, line.end))
    return line.of_view(time) if _is_as_recorded(point) else time


def parse_point(point: str | int, trace: tuple[int, int]) -> int:
    """Return the time of one side of a window on the time line [ns]; `trace` is the first and last time on it.

    A percentage outside of 0 to 100 is the end of the trace on that side.

    >>> parse_point("50%", (1000, 2000)), parse_point("+5us", (1000, 9000)), parse_point("-1us", (1000, 9000))
    (1500, 6000, 8000)

    Raises:
        UsageError: not one of the known forms.
    """
    match = re.fullmatch(_POINT, str(point).strip())
    if not match:
        raise UsageError(f"{point}: not a time", f"give times {_FORMS}")
    number = _number(match)
    if match["unit"] == "%":
        if not 0 < number < 100:
            return trace[0] if number <= 0 else trace[1]
        return trace[0] + round(number * (trace[1] - trace[0]) / 100)
    ns = round(number * _NS[match["unit"] or "ns"])
    if match["sign"] == "-":
        return trace[1] + ns
    if match["sign"] == "+" or match["unit"]:
        return trace[0] + ns
    return ns


def _is_as_recorded(point: str | int) -> bool:
    """Whether a point is bare nanoseconds, as views show them."""
    match = re.fullmatch(_POINT, str(point).strip())
    return bool(match and not match["sign"] and not match["unit"])


def _number(match: re.Match[str]) -> Fraction:
    """Return the number of a point with its sign."""
    from fractions import Fraction

    # Not every Python's Fraction takes a point without a digit after it.
    number = Fraction(re.sub(r"\.(?!\d)", "", match["number"]))
    return -number if match["sign"] == "-" else number


def _marker_time(wanted: str, line: TimeLine, map_ranks: MapRanks, *, at_start: bool) -> int:
    """Return the earliest start, or the latest end, of a marker over all ranks that have it [ns]."""
    name, _, ordinal = wanted.rpartition("#") if re.search(r"#\d+$", wanted) else (wanted, "", "")
    _matcher(name)
    by_rank = {rank.number: rows for rank, rows in map_ranks(functools.partial(_markers, wanted, name))}
    if ordinal and any(row[0] == wanted for rows in by_rank.values() for row in rows):
        # A marker's own text ends in #2.
        name, ordinal = wanted, ""
        by_rank = {number: [row for row in rows if row[0] == wanted] for number, rows in by_rank.items()}
    times: list[int] = []
    for number, rows in by_rank.items():
        shift = line.shift(number)
        if len(rows) > 1 and not ordinal:
            raise UsageError(f"{len(rows)} markers match {wanted}: {_listed(rows, shift)}", f"choose one: '{name}#2'")
        index = int(ordinal) - 1 if ordinal else 0
        if 0 <= index < len(rows):
            times.append(shift.to_line(rows[index][1 if at_start else 2]))
    if not times:
        raise UsageError(f"no marker matches {wanted}", 'rocpd query "select name, start from markers" lists them')
    return min(times) if at_start else max(times)


def _markers(wanted: str, name: str, reader: RankReader) -> list[Row]:
    """Return the markers of a rank that match, filtered out or not: here they mark a time, they are not the subject."""
    matches = _matcher(name)
    rows = reader.whole().rows(_MARKERS)
    return [row for row in rows if row[0] and (row[0] == wanted or matches(row[0]))]


def _matcher(name: str) -> Callable[[str], object]:
    if not (len(name) > 2 and name.startswith("/") and name.endswith("/")):
        return name.__eq__
    try:
        return re.compile(name[1:-1]).search
    except re.error as error:
        raise UsageError(f"{name}: not a regular expression: {error}") from error


def _listed(rows: Sequence[Row], shift: Shift, most: int = 5) -> str:
    listed = ", ".join(f"#{i} {name} at {shift.to_line(start)} ns" for i, (name, start, _) in enumerate(rows[:most], 1))
    return listed + (f" and {len(rows) - most} more" if len(rows) > most else "")
