"""Windows: resolves `30%`, nanoseconds, kernels or markers to the part of each rank that counts.

Times and kernels give one interval on the aligned time line; markers cut each rank at its own marker. These landmarks
are found in the whole trace of each rank, regardless of filters: markers, steps, kernels, calls that launched work. A
rank without the marker is cut where the others are. Here a marker only marks a time, and is not selected itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rocpd.base import RocpdError, Row, UsageError, few, frozen
from rocpd.base.option import regular_expression
from rocpd.federate.select.align import Shift, TimeLine
from rocpd.federate.select.selection import Counting, Cut, Launches, Part, of_launching_stacks
from rocpd.schema.rules.events import OPERATIONS, VALID_TIMES
from rocpd.schema.rules.kernel_names import matches, names_of_kernels
from rocpd.schema.rules.steps import STEP_MARKER, MarkerRange, is_step, step_times

if TYPE_CHECKING:
    from fractions import Fraction

    from rocpd.federate.run.rank_reader import MapRanks, RankReader


@frozen
class WholeTrace:
    """The whole trace that a window is resolved in.

    Args:
        line: all ranks on one time line.
        ranks: numbers of the ranks.
        map_ranks: reads the rows of ranks that pass the filters.
        note: called with notes for the user.
    """

    line: TimeLine
    ranks: Sequence[int]
    map_ranks: MapRanks
    note: Callable[[str], None]

    def on_clocks(self, time: int) -> Sides:
        """Return a time of the common line by the clock of each rank [ns]."""
        return {rank: self.line.shift(rank).to_clock(time) for rank in self.ranks}


Sides: TypeAlias = dict[int, int | None]
"""Rank number -> time by its clock [ns], None: open."""

_MARKERS = f'SELECT name, start, "end", tid FROM markers WHERE {VALID_TIMES} ORDER BY start, id'
_LIST = 'rocpd query "select name, start from markers" lists them'


def of_marker(wanted: str, trace: WholeTrace, *, at_start: bool) -> dict[int, int]:
    """Return the start or end of a marker on each rank [ns by its clock].

    Args:
        wanted: text of the marker, or `/regular expression/`; with `#2` the second match.
        trace: the trace to search.
        at_start: return its start, else its end.

    Raises:
        UsageError: no marker matches, or several do on one rank.
    """
    side = 0 if at_start else 1
    times = {rank: marker[side] for rank, marker in _one_of_each(wanted, trace).items()}
    return _completed(times, wanted, trace, min if at_start else max)


def of_step(wanted: str, pattern: re.Pattern[str], trace: WholeTrace) -> tuple[Sides, Sides]:
    """Return start and end of a step on each rank [ns by its clock]; a numbered step lasts to the start of the next.

    Args:
        wanted: number of the step, or first and last of several as 8-23, or its marker as for `of_marker`.
        pattern: pattern of the texts of steps.
        trace: the trace to search.

    Raises:
        UsageError: no rank has the step.
    """
    if numbers := re.fullmatch(r"(\d+)(?:-(\d+))?", wanted):
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if first > last:
            raise UsageError(f"steps {wanted}: the last comes before the first", f"--step {last}-{first}")
        times = _steps(first, last, pattern, trace)
        wanted = f"step {wanted}"
    else:
        times = _one_of_each(wanted, trace)
    starts = _completed({rank: start for rank, (start, _) in times.items()}, wanted, trace, min)
    ends = _completed({rank: end for rank, (_, end) in times.items()}, wanted, trace, max)
    return dict(starts), dict(ends)


def _steps(first: int, last: int, pattern: re.Pattern[str], trace: WholeTrace) -> dict[int, tuple[int, int]]:
    """Return rank -> start of the first step and end of the last, for ranks with both [ns by its clock]."""
    times = {}
    known: set[int] = set()
    for rank, steps in trace.map_ranks(functools.partial(steps_of_rank, pattern)):
        known |= steps.keys()
        if first in steps and last in steps:
            start, end = steps[last]
            following = min((other for other, _ in steps.values() if other > start), default=end)
            # A marker with a longer gap behind it does not span most of a loop, or the loop was left: its end stays.
            times[rank.number] = steps[first][0], following if end < following < 2 * end - start else end
    if not times:
        number = last if first in known else first
        have = f"steps run from {min(known)} to {max(known)}" if known else f"no marker names a step; {_LIST}"
        raise UsageError(f"there is no step {number}", have)
    return times


def steps_of_rank(pattern: re.Pattern[str], reader: RankReader) -> dict[int, tuple[int, int]]:
    """Return step number -> its start and end [ns by the rank's clock], in the whole trace of a rank."""
    return step_times([marker for marker in _markers(reader) if marker.end > marker.start], pattern)


def _one_of_each(wanted: str, trace: WholeTrace) -> dict[int, tuple[int, int]]:
    """Return rank -> start and end of the wanted marker."""
    name, _, ordinal = wanted.rpartition("#") if re.search(r"#\d+$", wanted) else (wanted, "", "")
    _matcher(name)
    by_rank = {rank.number: rows for rank, rows in trace.map_ranks(functools.partial(_matching, wanted, name))}
    if ordinal and any(marker.text == wanted for rows in by_rank.values() for marker in rows):
        # The text of a marker itself ends in #2.
        name, ordinal = wanted, ""
        by_rank = {number: [m for m in rows if m.text == wanted] for number, rows in by_rank.items()}
    times = {}
    for number, rows in by_rank.items():
        if len(rows) > 1 and not ordinal:
            listed = _listed(rows, trace.line.shift(number))
            raise UsageError(f"{len(rows)} markers match {wanted}: {listed}", f"choose one: '{name}#2'")
        index = int(ordinal) - 1 if ordinal else 0
        if 0 <= index < len(rows):
            times[number] = rows[index].start, rows[index].end
    if not times:
        raise UsageError(f"no marker matches {wanted}", _LIST)
    return times


def _completed(
    times: Mapping[int, int], wanted: str, trace: WholeTrace, outermost: Callable[[Sequence[int]], int]
) -> dict[int, int]:
    """Return the times, completed for ranks without the marker by the start or end of the window of all others."""
    if lacking := [rank for rank in trace.ranks if rank not in times and rank in trace.line.spans]:
        some = ", ".join(map(str, lacking[:4])) + (" …" if len(lacking) > 4 else "")
        what = "rank" if len(lacking) == 1 else f"{len(lacking)} ranks"
        trace.note(f"window: {what} without {wanted} ({some}), cut where the others are on the common time line")
    other = outermost([trace.line.shift(rank).to_line(time) for rank, time in times.items()])
    return {rank: times.get(rank, trace.line.shift(rank).to_clock(other)) for rank in trace.ranks}


def _matching(wanted: str, name: str, reader: RankReader) -> list[MarkerRange]:
    matches = _matcher(name)
    return [marker for marker in _markers(reader) if marker.text == wanted or matches(marker.text)]


def _markers(reader: RankReader) -> list[MarkerRange]:
    return [MarkerRange(*row) for row in reader.whole().rows(_MARKERS) if isinstance(row[0], str) and row[0]]


def _matcher(name: str) -> Callable[[str], object]:
    if not (len(name) > 2 and name.startswith("/") and name.endswith("/")):
        return name.__eq__
    try:
        return re.compile(name[1:-1]).search
    except re.error as error:
        raise UsageError(f"{name}: not a regular expression: {error}") from error


def _listed(markers: Sequence[MarkerRange], shift: Shift) -> str:
    return few([f"#{i} {each.text} at {shift.to_line(each.start)} ns" for i, each in enumerate(markers, 1)])


# Sums as reals: sums of a damaged trace can exceed 64 bits, and only the order counts.
_KERNELS = f"""
SELECT S.name, TOTAL(K."end" - K.start), MIN(K.start), MAX(K."end")
FROM rocpd_kernel_dispatch K LEFT JOIN ({names_of_kernels()}) S ON S.id = K.kernel_id
WHERE {VALID_TIMES}
GROUP BY K.kernel_id"""


def of_kernels(text: str, trace: WholeTrace) -> tuple[int, int]:
    """Return the region of all kernels whose name matches, on the aligned time line [ns].

    Raises:
        UsageError: not a regular expression.
        RocpdError: no kernel matches.
    """
    pattern = regular_expression(text, "--window-kernel")
    regions = [times for name, _, *times in _kernels(trace, filtered=False) if matches(pattern, name)]
    if not regions:
        raise RocpdError(f"no kernel that ran matches {text}", "`rocpd summary kernels --full-names` lists them")
    return min(start for start, _ in regions), max(end for _, end in regions)


def hottest(trace: WholeTrace) -> tuple[int, int]:
    """Return the region of the kernel with the largest total time, on the aligned time line [ns]; note its name.

    Raises:
        RocpdError: no kernel ran.
    """
    sums: dict[str | None, float] = {}
    times: dict[str | None, list[int]] = {}
    for name, total, start, end in _kernels(trace, filtered=True):
        sums[name] = sums.get(name, 0.0) + total
        times.setdefault(name, []).extend((start, end))
    if not sums:
        raise RocpdError("no kernel ran: there is no hottest region")
    name = max(sums, key=lambda name: (sums[name], name or ""))
    trace.note(f"hottest region: first to last {name}")
    return min(times[name]), max(times[name])


def _kernels(trace: WholeTrace, *, filtered: bool) -> Iterator[tuple[str | None, float, int, int]]:
    """Yield name, total time, first start and last end of each kernel, per rank; `filtered`: of selected rows only."""
    for rank, rows in trace.map_ranks(functools.partial(_kernels_of_rank, filtered)):
        shift = trace.line.shift(rank.number)
        for name, total, start, end in rows:
            yield name, total, shift.to_line(start), shift.to_line(end)


def _kernels_of_rank(filtered: bool, reader: RankReader) -> list[Row]:
    return (reader if filtered else reader.whole()).rows(_KERNELS)


_READ = ("rocpd_region", "rocpd_event", "rocpd_string", *OPERATIONS)


def known_launches(trace: WholeTrace) -> dict[int, Launches]:
    """Return rank -> which of its launches are known; note in one line how much GPU work does not count by launch."""
    known = {}
    in_all = unknown = 0
    for rank, (operations, launched) in trace.map_ranks(_count):
        in_all, unknown = in_all + operations, unknown + operations - launched
        known[rank.number] = Launches.ALL if launched == operations else Launches.SOME if launched else Launches.NONE
    if unknown and set(known.values()) == {Launches.NONE}:
        trace.note("no launching call is in the trace: GPU work counts by when it ran")
    elif unknown:
        trace.note(f"{unknown} of {in_all} operations have no launching call in the trace: they count by when they ran")
    return known


def _count(reader: RankReader) -> tuple[int, int]:
    """Return the number of operations of a rank, and of those with a launching call in the trace."""
    tables = reader.whole().tables
    if not all(base in tables.columns for base in _READ):
        return 1, 0
    condition = of_launching_stacks(tables)
    select = f"SELECT COUNT(*), COUNT(CASE WHEN {condition} THEN 1 END) FROM"
    (kernels, launched), (copies, also_launched) = (reader.whole().rows(f"{select} {base}")[0] for base in OPERATIONS)
    return kernels + copies, launched + also_launched


_POINT = r"(?P<sign>[+-]?)(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(?P<unit>%|ns|us|µs|ms|s)?"
_NS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_FORMS = "such as 30%, 12.5ms or +5ms (from the start), -90ms (from the end), or nanoseconds"


@frozen
class Window:
    """The part of the time line that counts, as the user gives it; None leaves that side open.

    Args:
        start, end: `30%` of the trace, absolute nanoseconds (`1071040913789950`), a time from the start (`12.5ms`,
            `+5ms`) or from the end (`-90ms`).
        start_marker, end_marker: text of a marker, or `/regular expression/`; append `#2` for the second match.
            The window of each rank runs from the start of its own start marker to the end of its own end marker.
        inclusive: an event counts if any part of its time lies in the window; otherwise only if all of it does.
        kernel: regular expression: from the first start to the last end of the kernels that match, over all ranks.
        auto_roi: the same for the kernel with the largest total time.
        clip: every event that overlaps the window counts, and is cut at its edges.
        step: number of a step, or of several as "8-23", or text of a marker as above: each rank from the start to the
            end of its own step (a numbered step lasts to the start of the next), and GPU work counts by its launch.
        launched: GPU work counts if a call in the window launched it, from any thread, not if it ran in the window.
        step_marker: regular expression for the text of markers that are steps, where `step` is a number;
            None: `step 5`, `iter 5`, `batch 5` …
    """

    start: str | int | None = None
    end: str | int | None = None
    start_marker: str | None = None
    end_marker: str | None = None
    inclusive: bool = True
    kernel: str | None = None
    auto_roi: bool = False
    clip: bool = False
    step: int | str | None = None
    launched: bool = False
    step_marker: str | None = None

    def __bool__(self) -> bool:
        return bool(self.ways)

    @property
    def ways(self) -> frozenset[str]:
        """The ways in which the window is given, one or more of: times, markers, kernels, step."""
        used = {
            "times": self.start is not None or self.end is not None,
            "markers": self.start_marker is not None or self.end_marker is not None,
            "kernels": self.kernel is not None or self.auto_roi,
            "step": self.step is not None,
        }
        return frozenset(way for way, is_used in used.items() if is_used)

    @property
    def counting(self) -> Counting:
        """The rule by which events lie in the window."""
        if self.clip:
            return Counting.CUT
        return Counting.OVERLAP if self.inclusive else Counting.INSIDE


def resolve(window: Window, trace: WholeTrace) -> Cut | None:
    """Return the part of each rank that counts; None if that is the whole trace.

    Raises:
        UsageError: a side cannot be parsed or is given twice, a marker is unknown or ambiguous, or the end is before
            the start.
        RocpdError: the window lies outside the trace.
    """
    if (parts := _parts(*_sides(window, trace), trace.line)) is None:
        return None
    if not (window.launched or window.step is not None):
        return Cut(parts, window.counting)
    return Cut(parts, window.counting, known_launches(trace))


def _sides(window: Window, trace: WholeTrace) -> tuple[Sides, Sides]:
    """Return start and end of the window on each rank."""
    if "step" in window.ways:
        _refuse_others(window, "step", "--step sets both sides of the window")
        return of_step(str(window.step), is_step(window.step_marker or STEP_MARKER), trace)
    if "kernels" in window.ways:
        _refuse_others(window, "kernels", "--window-kernel and --auto-roi set both sides of the window")
        start, end = hottest(trace) if window.kernel is None else of_kernels(window.kernel, trace)
        return trace.on_clocks(start), trace.on_clocks(end)
    for point in (window.start, window.end):
        match = re.fullmatch(_POINT, str(point).strip())
        if match and match["unit"] == "%" and not 0 <= _number(match) <= 100:
            trace.note(f"{point}: outside of the trace, taken as {'100%' if _number(match) > 0 else '0%'}")
    return (
        _side(window.start, window.start_marker, trace, at_start=True),
        _side(window.end, window.end_marker, trace, at_start=False),
    )


def _refuse_others(window: Window, way: str, message: str) -> None:
    if window.ways != {way} or (window.kernel is not None and window.auto_roi):
        raise UsageError(message, "give one of them alone")


def _parts(starts: Sides, ends: Sides, line: TimeLine) -> dict[int, Part] | None:
    """Return the part of each rank by its own clock; None if it is the whole trace of all ranks."""
    outside = True
    parts: dict[int, Part] = {}
    for rank, start in starts.items():
        end = ends[rank]
        on_line = Part(start, end).on_line(line.shift(rank))
        low, high = on_line.start, on_line.end
        if low is not None and high is not None and high <= low:
            first, last = ((side - line.start) / 1e6 for side in (low, high))
            raise UsageError(f"the window ends before it starts: start {first:.9g} ms, end {last:.9g} ms of the trace")
        outside &= (low is not None and low > line.end) or (high is not None and high < line.start)
        is_open = low is None or low <= line.start, high is None or high >= line.end
        parts[rank] = Part(None if is_open[0] else start, None if is_open[1] else end)
    if outside:
        raise RocpdError(
            f"the window lies outside the trace, which runs from {line.start} to {line.end} ns", f"give times {_FORMS}"
        )
    return parts if any(part != Part(None, None) for part in parts.values()) else None


def _side(point: str | int | None, marker: str | None, trace: WholeTrace, *, at_start: bool) -> Sides:
    name = "start" if at_start else "end"
    if point is not None and marker is not None:
        raise UsageError(f"--{name} and --{name}-marker both set the {name}", "give one of them")
    if marker is not None:
        return dict(of_marker(marker, trace, at_start=at_start))
    if point is None:
        return dict.fromkeys(trace.ranks)
    time = parse_point(point, (trace.line.start, trace.line.end))
    return dict(trace.on_clocks(trace.line.of_view(time) if _is_as_recorded(point) else time))


def parse_point(point: str | int, trace: tuple[int, int]) -> int:
    """Return the time of one side of a window on the time line [ns]; `trace` is the first and last time on it.

    A percentage outside of 0 to 100 is the end of the trace on that side.

    >>> parse_point("50%", (1000, 2000)), parse_point("+5us", (1000, 9000)), parse_point("-1us", (1000, 9000))
    (1500, 6000, 8000)

    Raises:
        UsageError: the point has none of the known forms.
    """
    if not (match := re.fullmatch(_POINT, str(point).strip())):
        raise UsageError(f"{point}: not a time", f"give times {_FORMS}")
    number = _number(match)
    if match["unit"] == "%":
        if not 0 < number < 100:
            return trace[0] if number <= 0 else trace[1]
        return trace[0] + round(number * (trace[1] - trace[0]) / 100)
    ns = round(number * _NS[match["unit"] or "ns"])
    if match["sign"] == "-":
        return trace[1] + ns
    return trace[0] + ns if match["sign"] == "+" or match["unit"] else ns


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
