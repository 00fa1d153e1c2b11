"""Charts as data: what they show, before anybody draws it. Values are exact, and have a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from statistics import fmean
from typing import TypeAlias

from rocpd.base import frozen
from rocpd.table.palette import Colour

Point: TypeAlias = tuple[float, float]


@frozen
class BarPart:
    """One part of each bar: its name, its colour, and its value in each bar."""

    name: str
    colour: Colour
    values: tuple[float, ...]


@frozen
class Bars:
    """Horizontal bars, each made of parts that add up.

    Args:
        title: what the chart shows.
        labels: of the bars, from the top.
        parts: from the left.
        unit: of the values.
        kinds: what each bar is, where the colour says that; none: the colour is that of the part.
        starts: where each bar starts; none: at 0.
        notes: what stands beside each bar; none: its value, where it has one part.
    """

    title: str
    labels: tuple[str, ...]
    parts: tuple[BarPart, ...]
    unit: str = ""
    kinds: tuple[str, ...] = ()
    starts: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[float, ...]:
        """Where each bar ends."""
        lengths = [sum(values) for values in zip(*(part.values for part in self.parts), strict=True)]
        starts = self.starts or (0,) * len(lengths)
        return tuple(start + length for start, length in zip(starts, lengths, strict=True))


@frozen
class MarkedPoint:
    """A point with a name; `weight`: how much it counts beside others, and so the area of its dot."""

    x: float
    y: float
    text: str
    weight: float = 0.0


@frozen
class Series:
    """One line: its name, colour and points, in order. What is `marked` gets a dot and its text."""

    name: str
    colour: Colour
    points: tuple[Point, ...]
    marked: tuple[MarkedPoint, ...] = ()


@frozen
class Lines:
    """Values over time, or over whatever `x_unit` says.

    Args:
        title: what the chart shows.
        series: the lines.
        x_unit: unit of the first coordinate.
        y_unit: unit of the second.
        is_stepped: whether a value holds until the next point, so that no slope is drawn.
        is_log: whether both axes are logarithmic; all coordinates are above 0.
        has_zero: whether the second axis begins at 0, so that heights compare.
    """

    title: str
    series: tuple[Series, ...]
    x_unit: str = "ns"
    y_unit: str = ""
    is_stepped: bool = False
    is_log: bool = False
    has_zero: bool = True


@frozen
class Columns:
    """A column for each of what follows each other, such as steps.

    Args:
        title: what the chart shows.
        names: of the columns, from the left.
        values: how high they are.
        tops: of each, up to where a line goes on; none: there are no lines.
        unit: of both.
        axis: what the columns are.
        legend: what values are, and tops.
        marked: columns that stand out, with what is said of them.
    """

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    tops: tuple[float, ...] = ()
    unit: str = ""
    axis: str = ""
    legend: tuple[str, str] = ("", "")
    marked: Mapping[int, str] = field(default_factory=dict)


@frozen
class Matrix:
    """A value for each pair.

    Args:
        title: what the chart shows.
        rows: names of the rows, from the top.
        columns: names of the columns, from the left.
        values: of each row; None: there is none.
        unit: of the values.
        axes: what rows and columns are.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    unit: str = ""
    axes: tuple[str, str] = ("", "")


@frozen
class Mark:
    """A place on a time line: its start and end [ns], what is there, from which row to before which other (None: all),
    and where that is said: the id of an element of the page.
    """

    start: int
    end: int
    text: str
    rows: tuple[int, int] | None = None
    link: str = ""


@frozen
class Timeline:
    """The states of each row in each slice of time.

    Args:
        title: what the chart shows.
        rows: names of the rows, from the top.
        start: of the first slice [ns].
        slice: length of a slice [ns].
        shares: of each row, for each of `WORK`, its share of each slice, from 0 to 1; they add up to how busy it is.
        groups: what each row belongs to, such as its host; none: rows have no groups.
        steps: name, start and end [ns] of each.
        marks: what is to be seen where.
    """

    title: str
    rows: tuple[str, ...]
    start: int
    slice: int
    shares: tuple[tuple[Sequence[float], ...], ...]
    groups: tuple[str, ...] = ()
    steps: tuple[tuple[str, int, int], ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def slices(self) -> int:
        """How many slices there are."""
        return len(self.shares[0][0]) if self.shares else 0

    @property
    def end(self) -> int:
        """The end of the last slice [ns]."""
        return self.start + self.slice * self.slices

    def folded(self, most: int) -> tuple[list[int], Iterator[list[float]]]:
        """Return the starts [ns] of up to `most` equal parts, and how busy each row is in them, from 0 to 1."""
        fold = max(1, -(-self.slices // most))
        at = range(0, self.slices, fold)
        rows = ([sum(shares) for shares in zip(*row, strict=True)] for row in self.shares)
        return [self.start + first * self.slice for first in at], (
            [fmean(busy[n : n + fold]) for n in at] for busy in rows
        )


@frozen
class FlameFrame:
    """One frame of a flame graph: its name, how many are around it, where it starts, how wide it is, and how much of
    that is its own.
    """

    name: str
    depth: int
    start: int
    value: int
    own_value: int


@frozen
class Flames:
    """A flame graph.

    Args:
        title: whose it is.
        unit: of values: `ns`, or nothing for samples.
        total: of all frames at the bottom.
        frames: those around others first; narrow ones are left out.
        functions: names of all frames, with all that they have and what is their own; most of their own first.
        is_gpu: whether values are time of GPUs.
    """

    title: str
    unit: str
    total: int
    frames: tuple[FlameFrame, ...]
    functions: tuple[tuple[str, int, int], ...] = ()
    is_gpu: bool = False


WORK = ("compute", "hidden communication", "exposed communication", "exposed copies")
"""The states of a slice of a `Timeline`, in the colours of these names and in the order in which pictures stack them;
what is hidden runs while something computes, and counts as that alone.
"""

Chart: TypeAlias = Bars | Columns | Lines | Matrix | Timeline | Flames
