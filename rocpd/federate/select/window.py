"""Owns windows: what part of the time line counts, from `30%`, nanoseconds or marker names to conditions on rows.

Resolves on the aligned time line and gives conditions in each rank's own clock. Never changes a timestamp.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rocpd.errors import RocpdError, UsageError
from rocpd.schema.render import RankTables
from rocpd.trace.tables import BELONGING, EVENTS, SPANS
from rocpd.trace.times import VALID_TIMES

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import MapRanks, RankReader
    from rocpd.federate.select.align import TimeLine
    from rocpd.types import Row

_POINT = re.compile(r"(?P<sign>[+-]?)(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>%|ns|us|µs|ms|s)?")
_NS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_MARKERS = f'SELECT name, start, "end" FROM markers WHERE {VALID_TIMES} ORDER BY start'
_FORMS = "such as 30%, 12.5ms or +5ms (from the start), -90ms (from the end), or nanoseconds"


@dataclass(frozen=True)
class Window:
    """What the user asks for; None leaves that side open.

    Args:
        start, end: `30%` of the trace, absolute nanoseconds (`1071040913789950`), a time from the start (`12.5ms`,
            `+5ms`) or from the end (`-90ms`).
        start_marker, end_marker: text of a marker, or `/regular expression/`; `#2` behind it takes the second one.
            The window runs from the start of the one to the end of the other, over all ranks that have it.
        inclusive: an event counts when its start or its end lies in the window; else only when both do.
        kernel: regular expression: from the first start to the last end of the kernels that match, over all ranks.
        auto_roi: the same for the kernel that takes most time.
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


@dataclass(frozen=True)
class Interval:
    """A resolved window on the aligned time line [ns]; None: open on that side."""

    start: int | None
    end: int | None
    inclusive: bool = True
    clip: bool = False


def resolve(window: Window, line: TimeLine | None, map_ranks: MapRanks, note: Callable[[str], None]) -> Interval | None:
    """Turn what the user asked for into times; None when that is the whole trace.

    Args:
        window: what the user asked for.
        line: all ranks on one time line; None when there are no events.
        map_ranks: reads ranks, as filters let their rows count.
        note: called with what the user should know.

    Raises:
        UsageError: a side that cannot be read, is given twice, an unknown or ambiguous marker, end before start.
        RocpdError: the window lies outside the trace, or there are no events.
    """
    if line is None:
        raise RocpdError("no events to take a window of")
    whole = line.start, line.end
    if window.kernel is None and not window.auto_roi:
        start = _side(window.start, window.start_marker, line, map_ranks, at_start=True)
        end = _side(window.end, window.end_marker, line, map_ranks, at_start=False)
    else:
        start, end = _kernels(window, line, map_ranks, note)
    if start is not None and end is not None and end <= start:
        raise UsageError(f"the window ends before it starts ({end} <= {start} ns)")
    if (start is not None and start > whole[1]) or (end is not None and end < whole[0]):
        raise RocpdError(
            f"the window lies outside the trace, which runs from {whole[0]} to {whole[1]} ns", f"give times {_FORMS}"
        )
    start = None if start is not None and start <= whole[0] else start
    end = None if end is not None and end >= whole[1] else end
    return None if start is None and end is None else Interval(start, end, window.inclusive, window.clip)


def _kernels(window: Window, line: TimeLine, map_ranks: MapRanks, note: Callable[[str], None]) -> tuple[int, int]:
    sides = (window.start, window.end, window.start_marker, window.end_marker)
    if any(side is not None for side in sides) or (window.kernel is not None and window.auto_roi):
        raise UsageError("--window-kernel and --auto-roi give both sides of the window", "give one of them alone")
    from rocpd.federate.select.region import hottest, of_kernels

    if window.kernel is not None:
        return of_kernels(window.kernel, line, map_ranks)
    return hottest(line, map_ranks, note)


def conditions(part: RankTables, interval: Interval, offset: int) -> dict[str, str]:
    """Give the conditions that keep the rows of one rank that lie in `interval`.

    Starts count in [start, end), ends in (start, end], so that adjoining windows share an event only when it crosses
    the border. Arguments and counter values go with their event.

    Args:
        part: the rank's tables.
        interval: on the aligned time line [ns].
        offset: what alignment adds to this rank's times [ns].
    """
    low = None if interval.start is None else interval.start - offset
    high = None if interval.end is None else interval.end - offset
    found = {}
    for base in SPANS:
        if {"start", "end"} <= set(part.tables.get(base, ())):
            found[base] = _overlap(low, high) if interval.clip else _span_condition(low, high, interval.inclusive)
    if "timestamp" in part.tables.get("rocpd_sample", ()):
        found["rocpd_sample"] = _starts('"timestamp"', low, high)
    return found | dependent_conditions(part, found)


def dependent_conditions(part: RankTables, found: Mapping[str, str]) -> dict[str, str]:
    """Give the conditions of arguments and counter values, which go with their event."""
    owners = [
        f"SELECT event_id FROM {part.name(base)} WHERE {found.get(base, '1')}"
        for base in EVENTS
        if "event_id" in part.tables.get(base, ())
    ]
    if not owners:
        return {}
    among = f"event_id IN ({' UNION ALL '.join(owners)})"
    return {base: among for base in BELONGING if "event_id" in part.tables.get(base, ())}


def clip_expressions(part: RankTables, interval: Interval, offset: int) -> dict[str, dict[str, str]]:
    """Give base table -> column -> expression that cuts events at the edges of `interval`; nothing unless it clips.

    Invalid times (start 0, end before start) stay as they are.
    """
    if not interval.clip:
        return {}
    texts = {"start": '"start"', "end": '"end"'}
    if interval.start is not None:
        low = interval.start - offset
        texts["start"] = f'CASE WHEN {VALID_TIMES} THEN MAX("start", {low}) ELSE "start" END'
    if interval.end is not None:
        high = interval.end - offset
        texts["end"] = f'CASE WHEN {VALID_TIMES} THEN MIN("end", {high}) ELSE "end" END'
    return {base: texts for base in SPANS if {"start", "end"} <= set(part.tables.get(base, ()))}


def _overlap(low: int | None, high: int | None) -> str:
    sides = [*([f'"end" > {low}'] if low is not None else []), *([f'"start" < {high}'] if high is not None else [])]
    # An event without length overlaps nothing: its start counts.
    point = _starts('"start"', low, high)
    return f'("end" > "start" AND {" AND ".join(sides)}) OR ("end" <= "start" AND {point})'


def _span_condition(low: int | None, high: int | None, inclusive: bool) -> str:
    starts = _starts('"start"', low, high)
    ends = " AND ".join(
        [*([f'"end" > {low}'] if low is not None else []), *([f'"end" <= {high}'] if high is not None else [])]
    )
    # An event without length has one time only, its start.
    if inclusive:
        return f'({starts}) OR ("end" > "start" AND {ends})'
    return f'({starts}) AND ("end" <= "start" OR ({ends}))'


def _starts(column: str, low: int | None, high: int | None) -> str:
    return " AND ".join(
        [*([f"{column} >= {low}"] if low is not None else []), *([f"{column} < {high}"] if high is not None else [])]
    )


def _side(
    point: str | int | None, marker: str | None, line: TimeLine, map_ranks: MapRanks, *, at_start: bool
) -> int | None:
    name = "start" if at_start else "end"
    if point is not None and marker is not None:
        raise UsageError(f"--{name} and --{name}-marker say the same thing twice", "give one of them")
    if marker is not None:
        return _marker_time(marker, line, map_ranks, at_start=at_start)
    return None if point is None else parse_point(point, (line.start, line.end))


def parse_point(point: str | int, whole: tuple[int, int]) -> int:
    """Turn one side of a window into a time on the time line [ns].

    >>> parse_point("50%", (1000, 2000)), parse_point("+5us", (1000, 9000)), parse_point("-1us", (1000, 9000))
    (1500, 6000, 8000)

    Raises:
        UsageError: it is none of the known forms.
    """
    match = _POINT.fullmatch(str(point).strip())
    if not match:
        raise UsageError(f"{point}: not a time", f"give times {_FORMS}")
    number = Fraction(match["number"] if not match["number"].endswith(".") else match["number"] + "0")
    if match["unit"] == "%":
        if match["sign"] or number > 100:
            raise UsageError(f"{point}: not a percentage from 0% to 100%")
        return whole[0] + round(number * (whole[1] - whole[0]) / 100)
    amount = round(number * _NS[match["unit"] or "ns"])
    if match["sign"] == "-":
        return whole[1] - amount
    if match["sign"] == "+" or match["unit"]:
        return whole[0] + amount
    return amount


def _marker_time(wanted: str, line: TimeLine, map_ranks: MapRanks, *, at_start: bool) -> int:
    """Find a marker on all ranks that have it: its earliest start, or its latest end."""
    name, _, ordinal = wanted.rpartition("#") if re.search(r"#\d+$", wanted) else (wanted, "", "")
    _matcher(name)
    pool = {rank.number: rows for rank, rows in map_ranks(functools.partial(_markers, wanted, name))}
    if ordinal and any(row[0] == wanted for rows in pool.values() for row in rows):
        # A marker's own text ends in #2.
        name, ordinal = wanted, ""
        pool = {number: [row for row in rows if row[0] == wanted] for number, rows in pool.items()}
    times: list[int] = []
    for number, found in pool.items():
        offset = line.offsets.get(number, 0)
        if len(found) > 1 and not ordinal:
            raise UsageError(f"{len(found)} markers match {wanted}: {_listed(found, offset)}", f"say which: '{name}#2'")
        index = int(ordinal) - 1 if ordinal else 0
        if 0 <= index < len(found):
            times.append(found[index][1 if at_start else 2] + offset)
    if not times:
        raise UsageError(f"no marker matches {wanted}", 'rocpd query "select name, start from markers" lists them')
    return min(times) if at_start else max(times)


def _markers(wanted: str, name: str, reader: RankReader) -> list[Row]:
    """Give the markers of a rank that are meant, whatever filters say: here they tell when, not what."""
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


def _listed(rows: Iterable[tuple[str, int, int]], offset: int, most: int = 5) -> str:
    pool = list(rows)
    listed = ", ".join(f"#{i} {name} at {start + offset} ns" for i, (name, start, _) in enumerate(pool[:most], 1))
    return listed + (f" and {len(pool) - most} more" if len(pool) > most else "")
