"""Charts as data, before they are drawn. Values are exact, and have a unit."""

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
        title: description of the chart.
        labels: labels of the bars, from the top.
        parts: from the left.
        unit: unit of the values.
        kinds: kind of each bar, if it determines the colour; empty: parts have colours.
        starts: start of each bar; empty: 0.
        notes: text beside each bar; empty: its value, if it has one part.
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
        """The end of each bar."""
        lengths = [sum(values) for values in zip(*(part.values for part in self.parts), strict=True)]
        starts = self.starts or (0,) * len(lengths)
        return tuple(start + length for start, length in zip(starts, lengths, strict=True))


@frozen
class MarkedPoint:
    """A point with a name; `weight` determines the area of its dot."""

    x: float
    y: float
    text: str
    weight: float = 0.0


@frozen
class Series:
    """One line: its name, colour and points, in order. Points in `marked` get a dot and their text."""

    name: str
    colour: Colour
    points: tuple[Point, ...]
    marked: tuple[MarkedPoint, ...] = ()


@frozen
class Lines:
    """Values over time, or over another quantity, by `x_unit`.

    Args:
        title: description of the chart.
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
    """A column for each element of a sequence, such as steps.

    Args:
        title: description of the chart.
        names: names of the columns, from the left.
        values: heights of the columns.
        tops: end of the line above each column; empty: there are no lines.
        unit: unit of both.
        axis: name of the elements.
        legend: names of values and tops.
        marked: emphasized columns -> their text.
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
        title: description of the chart.
        rows: names of the rows, from the top.
        columns: names of the columns, from the left.
        values: values of each row; None: missing.
        unit: unit of the values.
        axes: names of rows and columns.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    unit: str = ""
    axes: tuple[str, str] = ("", "")


@frozen
class Mark:
    """A place on a time line: its start and end [ns], its text, its first row and the row after its last (None: all),
    and the id of the element of the page that describes it.
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
        title: description of the chart.
        rows: names of the rows, from the top.
        start: start of the first slice [ns].
        slice: length of a slice [ns].
        shares: for each row and each of `WORK` its share of each slice, from 0 to 1; their sum is the busy share.
        groups: group of each row, such as its host; empty: rows have no groups.
        steps: name, start and end [ns] of each step.
        marks: marked places.
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
        """The number of slices."""
        return len(self.shares[0][0]) if self.shares else 0

    @property
    def end(self) -> int:
        """The end of the last slice [ns]."""
        return self.start + self.slice * self.slices

    def folded(self, most: int) -> tuple[list[int], Iterator[list[float]]]:
        """Return the starts [ns] of up to `most` equal parts, and the busy share of each row in them, from 0 to 1."""
        fold = max(1, -(-self.slices // most))
        at = range(0, self.slices, fold)
        rows = ([sum(shares) for shares in zip(*row, strict=True)] for row in self.shares)
        folded = ([fmean(busy[n : n + fold]) for n in at] for busy in rows)
        return [self.start + first * self.slice for first in at], folded


@frozen
class FlameFrame:
    """One frame of a flame graph: its name, the number of frames around it, its start and width, and its own part of
    the width.
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
        title: its subject.
        unit: unit of values: `ns`, or empty for samples.
        total: sum of the outermost frames.
        frames: outer ones first; narrow ones are left out.
        functions: names of all frames, with total and own value; most own value first.
        is_gpu: whether values are times of GPUs.
    """

    title: str
    unit: str
    total: int
    frames: tuple[FlameFrame, ...]
    functions: tuple[tuple[str, int, int], ...] = ()
    is_gpu: bool = False


WORK = ("compute", "hidden communication", "exposed communication", "exposed copies")
"""The states of a slice of a `Timeline`, in the colours of these names and in the order of stacking in pictures; hidden
communication runs during computation, and this time counts only as hidden communication.
"""

Chart: TypeAlias = Bars | Columns | Lines | Matrix | Timeline | Flames
