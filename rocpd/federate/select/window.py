"""Windows: resolves `30%`, nanoseconds, kernels or markers to the part of each rank that counts.

Times and kernels give one interval on the aligned time line; markers cut each rank at its own marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rocpd.base import RocpdError, UsageError, frozen
from rocpd.federate.select.align import TimeLine
from rocpd.federate.select.selection import Counting, Cut, Part
from rocpd.schema.rules.steps import STEP_MARKER, is_step

if TYPE_CHECKING:
    from fractions import Fraction

    from rocpd.federate.select.landmarks import Sides, WholeTrace

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
    parts = _parts(*_sides(window, trace), trace.line)
    if parts is None:
        return None
    if not (window.launched or window.step is not None):
        return Cut(parts, window.counting)
    from rocpd.federate.select.landmarks import known_launches

    return Cut(parts, window.counting, known_launches(trace))


def _sides(window: Window, trace: WholeTrace) -> tuple[Sides, Sides]:
    """Return start and end of the window on each rank."""
    from rocpd.federate.select.landmarks import hottest, of_kernels, of_step

    if "step" in window.ways:
        _refuse_others(window, "step", "--step sets both sides of the window")
        return of_step(str(window.step), is_step(window.step_marker or STEP_MARKER), trace)
    if "kernels" in window.ways:
        _refuse_others(window, "kernels", "--window-kernel and --auto-roi set both sides of the window")
        start, end = hottest(trace) if window.kernel is None else of_kernels(window.kernel, trace)
        return trace.on_clocks(start), trace.on_clocks(end)
    _note_clamped((window.start, window.end), trace.note)
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


def _note_clamped(points: Iterable[str | int | None], note: Callable[[str], None]) -> None:
    for point in points:
        match = re.fullmatch(_POINT, str(point).strip())
        if match and match["unit"] == "%" and not 0 <= _number(match) <= 100:
            note(f"{point}: outside of the trace, taken as {'100%' if _number(match) > 0 else '0%'}")


def _side(point: str | int | None, marker: str | None, trace: WholeTrace, *, at_start: bool) -> Sides:
    name = "start" if at_start else "end"
    if point is not None and marker is not None:
        raise UsageError(f"--{name} and --{name}-marker both set the {name}", "give one of them")
    if marker is not None:
        from rocpd.federate.select.landmarks import of_marker

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
