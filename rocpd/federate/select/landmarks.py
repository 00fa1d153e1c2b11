"""Landmarks of windows, found in the whole trace of each rank: markers, steps, kernels, calls that launched work.

Each rank is cut at its own marker, regardless of filters; a rank without the marker is cut where the others are. Here a
marker only marks a time, and is not selected itself. Kernels set one region over all ranks.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rocpd.base import RocpdError, Row, UsageError, few, frozen
from rocpd.base.option import regular_expression
from rocpd.federate.select.align import Shift, TimeLine
from rocpd.federate.select.selection import Launches, of_launching_stacks
from rocpd.schema.rules.events import OPERATIONS, VALID_TIMES
from rocpd.schema.rules.kernel_names import matches, names_of_kernels
from rocpd.schema.rules.steps import MarkerRange, step_times

if TYPE_CHECKING:
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
            _, end = _period(steps[last], (start for start, _ in steps.values()))
            times[rank.number] = steps[first][0], end
    if not times:
        number = last if first in known else first
        have = f"steps run from {min(known)} to {max(known)}" if known else f"no marker names a step; {_LIST}"
        raise UsageError(f"there is no step {number}", have)
    return times


def _period(step: tuple[int, int], starts: Iterable[int]) -> tuple[int, int]:
    """Return start and end of a step that lasts to the start of the next step [ns].

    Where the gap is longer than the step, its marker does not span most of a loop, or the loop was left: its end stays.
    """
    start, end = step
    following = min((other for other in starts if other > start), default=end)
    return start, following if end < following < 2 * end - start else end


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
    rows = reader.whole().rows(_MARKERS)
    return [MarkerRange(*row) for row in rows if isinstance(row[0], str) and row[0]]


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
