"""The look of each chart: a chart becomes a drawing, whose shapes PDF, pictures and SVG are made of.

SVG has a name and a description for people who cannot see it, and tips for pointers.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from rocpd.base import frozen
from rocpd.base.texts import visible
from rocpd.chart.model import WORK, Bars, Chart, Columns, Flames, Lines, MarkedPoint, Matrix, Point, Series, Timeline
from rocpd.table.cell import shorten, shorten_apart
from rocpd.table.human import brief, readable, scale_of
from rocpd.table.palette import BLUE, GREY, ORANGE, RED, SKY, Colour, colour_of

WIDTH, NARROW = 860.0, 372.0
"""Width of every chart [px]: on a screen or paper, and on a telephone, where text keeps its size."""

SIZE = 12.0
"""Size of text [px]."""

_NARROW, _WIDE, _LARGE, _USUAL = 0.38, 0.97, 0.68, 0.61  # widths of characters relative to the size of the text


@frozen
class Rect:
    """A filled rectangle; `tip` is shown to pointers, `span` is its part of a time line, in slices."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour
    tip: str = ""
    opacity: float = 1.0
    span: tuple[float, float] | None = None


@frozen
class Stroke:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: Colour
    width: float = 1.0
    tip: str = ""


@frozen
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    colour: Colour
    tip: str = ""


@frozen
class Word:
    """Text; `x` and `y` are the start, middle or end of its baseline.

    A word that `is_faint` matters less, one with a `colour` more; a word that `is_tick` belongs to a time line, and
    changes when that is zoomed; a word with a `link` leads to the element of the page with this id; a word that
    `is_above` lines has cleared space around it; `aside` is the distance from its place [px].
    """

    x: float
    y: float
    text: str
    anchor: str = "start"
    is_faint: bool = False
    is_tick: bool = False
    colour: Colour | None = None
    link: str = ""
    span: tuple[float, float] | None = None
    is_above: bool = False
    aside: float = 0.0


@frozen
class Pixels:
    """A picture as PNG, with its numbers of columns and rows of pixels."""

    x: float
    y: float
    width: float
    height: float
    png: bytes
    columns: int
    rows: int


Shape: TypeAlias = Rect | Stroke | Dot | Word | Pixels


@frozen
class Drawing:
    """A chart as shapes, from the back to the front; sizes in px."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def width_of(text: str) -> float:
    """Return the approximate width of a text [px]; fonts differ."""
    return SIZE * sum(map(_share, text))


def _share(character: str) -> float:
    if character in "iljtf.,:;|!()[]' ":
        return _NARROW
    return _WIDE if character in "mwMW%@" else _LARGE if character.isupper() or character.isdigit() else _USUAL


_STEPS = (1, 2, 2.5, 5, 10)
_BINARY = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@frozen
class Scale:
    """Maps values from `low` to `high` to places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        span = self.high - self.low
        return self.start + (self.end - self.start) * ((value - self.low) / span if span else 0.0)

    def ticks(self, unit: str, most: int) -> list[float]:
        """Return up to `most` round values from `low` to `high`; round in the unit: 256 MiB, 20 ms.

        >>> Scale(0, 95e6, 0, 1).ticks("ns", 6)
        [0.0, 20000000.0, 40000000.0, 60000000.0, 80000000.0]
        """
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = span / most
        base = 1024.0 if unit == "bytes" else 10.0
        size = base ** math.floor(math.log(rough, base))
        step = next(size * times for times in (_BINARY if unit == "bytes" else _STEPS) if size * times >= rough)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + number) * step for number in range(count)]


@frozen
class LogScale(Scale):
    """Maps values by their logarithms; all are above 0."""

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        return Scale(math.log10(self.low), math.log10(self.high), self.start, self.end)(math.log10(value))

    def ticks(self, unit: str, most: int) -> list[float]:
        """Return up to `most` powers of ten.

        >>> LogScale(0.2, 5000, 0, 1).ticks("", 5)
        [1.0, 10.0, 100.0, 1000.0]
        """
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = -(-(last - first + 1) // most) or 1
        return [10.0**power for power in range(first, last + 1, step)]


Rgba = tuple[int, int, int, int]


def png(width: int, rows: Sequence[bytes], palette: Iterable[Rgba]) -> bytes:
    """Return a picture as PNG.

    Args:
        width: pixels of a row.
        rows: from the top, one index into the palette per pixel.
        palette: up to 256 colours: red, green, blue and opacity, each 0 to 255.
    """
    colours = list(palette)
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"PLTE", bytes(value for colour in colours for value in colour[:3])),
        (b"tRNS", bytes(colour[3] for colour in colours)),
        (b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9)),
        (b"IEND", b""),
    )
    framed = (struct.pack(">I", len(b)) + a + b + struct.pack(">I", zlib.crc32(a + b)) for a, b in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


_HEIGHT = 150.0  # of lines
_ROW, _GAP = 16.0, 4.0  # height of a bar, space between two
_LABEL, _SHORT = 27.0, 18  # px of the width for each character of a label; characters that all labels may have
_MARGIN = 70.0  # px: for the text beside a bar
_TICK_ROOM = 95.0  # px: of the width for each tick
_MOST_POINTS = 600  # of a line
_LEAST_ROW = 0.6  # of a time line
_TICK = 16.0  # height of the numbers below an axis
_CELL = 21.0  # height of a row of a matrix
_GRID = GREY
_TALL, _TALLEST = 360.0, 22.0  # px: of a time line, of one of its rows
_LEVELS = 4, 16  # least and most pixels of a row of its picture
_COLUMNS, _HIGH, _WIDEST = 240, 120.0, 80.0  # how many columns, how high, and how wide one is at most
_EDGE, _TITLE = 12.0, 24.0  # px: around a chart in a file of its own, and for its title
_FLAME = 16.0  # height of a frame


def draw(chart: Chart, width: float = WIDTH) -> Drawing:
    """Return the drawing of a chart of this width [px]."""
    match chart:
        case Bars():
            return _bars(chart, width)
        case Columns():
            return _columns(chart, width)
        case Lines():
            return _lines(chart, width)
        case Matrix():
            return _matrix(chart, width)
        case Timeline():
            return _timeline(chart, width)
        case Flames():
            return _flames(chart, width)


def _legend(names: Iterable[tuple[str, Colour | None]], width: float, top: float = 0.0) -> tuple[list[Shape], float]:
    """Return names, each behind its colour if it has one, on as many lines as necessary, and the end of these [px]."""
    x, y = 0.0, top
    shapes: list[Shape] = []
    for name, colour in names:
        before = 14 if colour else 0
        room = before + width_of(name) + 16
        if name and x and x + room - 16 > width:
            x, y = 0.0, y + 18
        shapes += [Rect(x, y + 3, 10, 10, colour)] if name and colour else []
        shapes += [Word(x + before, y + 12, name)] if name else []
        x += room if name else 0
    return shapes, y + 22 if shapes else top + 2.0


def _room(labels: Iterable[str]) -> float:
    """Return the width for labels on the left [px]."""
    return max((width_of(label) for label in labels), default=0.0) + 8


def _longest(width: float) -> int:
    """Return the largest length of a label [characters]."""
    return max(_SHORT, int(width / _LABEL))


def _bars(chart: Bars, width: float) -> Drawing:
    labels = shorten_apart(chart.labels, _longest(width))
    names = [(part.name, part.colour) for part in chart.parts if any(part.values)] if len(chart.parts) > 1 else []
    names += [(kind, colour_of(kind)) for kind in dict.fromkeys(chart.kinds)]
    shapes, top = _legend(names, width)
    left = _room(labels)
    across = Scale(min(chart.starts, default=0.0), max(chart.ends, default=0.0) or 1.0, left, width - _MARGIN)
    bottom = top + len(labels) * (_ROW + _GAP)
    shapes += [*_ticks_below(across, chart.unit, top, bottom), *_rows(chart, labels, across, top)]
    is_plain = len(chart.parts) == 1
    notes = chart.notes or [brief(end, chart.unit) if is_plain else "" for end in chart.ends]
    for number, (label, end, note) in enumerate(zip(labels, chart.ends, notes, strict=True)):
        y = top + number * (_ROW + _GAP) + _ROW / 2 + 4
        shapes.append(Word(left - 6, y, label, "end"))
        shapes += [Word(across(end) + 5, y, note, is_faint=True)] if note else []
    return Drawing(width, bottom + _TICK + 4, tuple(shapes))


def _rows(chart: Bars, labels: Sequence[str], across: Scale, top: float) -> Iterator[Shape]:
    for number, label in enumerate(labels):
        done = chart.starts[number] if chart.starts else 0.0
        for part in chart.parts:
            value = part.values[number]
            x, width = across(done), across(done + value) - across(done)
            name = f"{label}: {part.name}" if len(chart.parts) > 1 else label
            if width > 0:
                y = top + number * (_ROW + _GAP)
                colour = colour_of(chart.kinds[number]) if chart.kinds else part.colour
                yield Rect(x, y, width, _ROW, colour, f"{name} {brief(value, chart.unit)}")
            done += value


def _ticks_below(across: Scale, unit: str, top: float, bottom: float) -> Iterator[Shape]:
    for value, text in _ticks(across, unit):
        x = across(value)
        yield Stroke(((x, top), (x, bottom)), _GRID)
        yield Word(x, bottom + 13, text, "middle", is_faint=True)


def _grid(levels: Iterable[tuple[float, str]], up: Scale, left: float, width: float) -> Iterator[Shape]:
    for value, text in levels:
        yield Stroke(((left, up(value)), (width - 20, up(value))), _GRID)
        yield Word(left - 6, up(value) + 4, text, "end", is_faint=True)


def _ticks(scale: Scale, unit: str, most: int | None = None) -> list[tuple[float, str]]:
    """Return values beside an axis with their texts, which share a unit: only the last text contains it.

    >>> [text for _, text in _ticks(Scale(0, 3e7, 0, 400), "ns")]
    ['0', '10', '20', '30 ms']
    """
    values = scale.ticks(unit, most or max(2, int(abs(scale.end - scale.start) / _TICK_ROOM)))
    name, size = scale_of(max(map(abs, values)), unit)
    texts = [f"{value / size:.6g}" for value in values]
    return [*zip(values[:-1], texts[:-1], strict=True), (values[-1], f"{texts[-1]} {name}".rstrip())]


def _columns(chart: Columns, width: float) -> Drawing:
    """Draw columns; if there are many, each stands for the highest of several."""
    fold = -(-len(chart.values) // max(1, min(_COLUMNS, int(width / 3.5))))
    first = range(0, len(chart.values), max(1, fold))
    legend = [*zip(chart.legend, (BLUE, ORANGE), strict=True)] if chart.tops else []
    shapes, top = _legend([*legend, *([("slow", RED)] if chart.marked else [])], width)
    top += 16.0 if chart.marked else 4.0
    bottom = top + _HIGH
    up = Scale(0.0, max((*chart.values, *chart.tops), default=0.0) or 1.0, bottom, top)
    levels = _ticks(up, chart.unit, 4)
    left = _room(text for _, text in levels)
    shapes += _grid(levels, up, left, width)
    apart = (width - 20 - left) / max(1, len(first))
    every = max(1, math.ceil((max(map(width_of, chart.names), default=0.0) + 8) / apart))
    free = 0.0
    for number, at in enumerate(first):
        folded = range(at, min(at + fold, len(chart.values)))
        place = max(folded, key=lambda place: (place in chart.marked, (chart.tops or chart.values)[place]))
        x, wide = left + number * apart, min(_WIDEST, apart - min(3.0, apart / 4))
        shapes += _column(chart, place, (x, wide), up)
        text = chart.marked.get(place, "")
        start = min(max(free, x), width - width_of(text))
        if text and start >= free:
            shapes.append(Word(start, top - 5, text))
            free = start + width_of(text) + 8
        if number % every == 0:
            shapes.append(Word(x + wide / 2, bottom + 13, chart.names[at], "middle", is_faint=True))
    shapes.append(Word(width, bottom + 27, chart.axis, "end", is_faint=True))
    return Drawing(width, bottom + 32, tuple(shapes))


def _column(chart: Columns, place: int, across: tuple[float, float], up: Scale) -> Iterator[Shape]:
    x, wide = across
    value, name = chart.values[place], f"{chart.axis} {chart.names[place]}".strip()
    tip = f"{name}: {f'{chart.legend[0]} {brief(value, chart.unit)}'.strip()}"
    if chart.tops:
        most, middle = chart.tops[place], x + wide / 2
        tip += f", {chart.legend[1]} {brief(most, chart.unit)}"
        yield Stroke(((middle, up(value)), (middle, up(most))), ORANGE, min(3.0, max(1.0, wide / 4)))
        yield Stroke(((x, up(most)), (x + wide, up(most))), ORANGE, 2.0)
    yield Rect(x, up(value), wide, up(0.0) - up(value), RED if place in chart.marked else BLUE, tip)


def _lines(chart: Lines, width: float) -> Drawing:
    marked = [(mark.x, mark.y) for series in chart.series for mark in series.marked]
    points = [point for series in chart.series for point in series.points] + (marked if chart.is_log else [])
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    kind = LogScale if chart.is_log and points else Scale
    least = min(0.0, *ys) if chart.has_zero and not chart.is_log else min(ys)
    shown = [series for series in chart.series if series.points or series.marked]
    shapes, top = _legend(((series.name, series.colour) for series in shown), width)
    up = kind(least, max(ys) or 1.0, top + _HEIGHT, top + 4)
    levels = _ticks(up, chart.y_unit, 5)
    left = _room(text for _, text in levels)
    across = kind(min(xs), max(xs), left, width - 20)
    shapes += _grid(levels, up, left, width)
    for value, text in _ticks(across, chart.x_unit):
        is_last = across(value) + width_of(text) / 2 > width
        x = width if is_last else across(value)
        shapes.append(Word(x, top + _HEIGHT + 14, text, "end" if is_last else "middle", is_faint=True))
    for series in chart.series:
        shapes += _line(series, chart, across, up)
    bottom = top + _HEIGHT + _TICK + 4
    marks = sorted((mark for series in chart.series for mark in series.marked), key=lambda mark: -mark.weight)
    texts = [shorten(mark.text, _longest(2 * width)) for mark in marks]
    if chart.is_log:  # names would cover the lines above them
        numbers = [*map(str, range(1, len(marks) + 1))]
        names, bottom = _legend(((" ".join(pair), None) for pair in zip(numbers, texts, strict=True)), width, bottom)
        shapes, texts = [*shapes, *names], numbers
    shapes += _marked([*zip(marks, texts, strict=True)], chart, (across, up), width)
    return Drawing(width, bottom, tuple(shapes))


def _line(series: Series, chart: Lines, across: Scale, up: Scale) -> Iterator[Shape]:
    places = [(across(x), up(y)) for x, y in _highest(series.points)]
    if chart.is_stepped:
        places = [place for a, b in pairwise(places) for place in (a, (b[0], a[1]))] + places[-1:]
    if places:
        yield Stroke(tuple(places), series.colour, 1.5, series.name)
    if len(series.points) == 1:
        yield Dot(*places[0], 3.0, series.colour, series.name)


def _marked(
    marks: Sequence[tuple[MarkedPoint, str]], chart: Lines, scales: tuple[Scale, Scale], width: float
) -> Iterator[Shape]:
    """Yield the dots of marked points, larger with their weight, and their texts, one above the other."""
    across, up = scales
    heaviest = max((mark.weight for mark, _ in marks), default=0.0) or 1.0
    radii = [4.0 + 7.0 * math.sqrt(mark.weight / heaviest) for mark, _ in marks]
    for (mark, _), radius in zip(marks, radii, strict=True):
        tip = f"{mark.text}: {brief(mark.y, chart.y_unit)}"
        yield Dot(across(mark.x), up(mark.y), radius, RED, tip)
    lowest = math.inf
    for (mark, text), radius in sorted(zip(marks, radii, strict=True), key=lambda dot: dot[0][0].y):
        x, y = across(mark.x), up(mark.y)
        lowest = min(lowest - SIZE - 2, y + 4)
        is_late = x + radius + 3 + width_of(text) > width
        edge = x + (-radius - 3 if is_late else radius + 3)
        if abs(lowest - 4 - y) > SIZE:
            yield Stroke(((x, y), (edge, lowest - 4)), RED, 0.7)
        yield Word(edge, lowest, text, "end" if is_late else "start", is_above=True)


def _highest(points: Sequence[Point]) -> Sequence[Point]:
    """Return the highest of every few neighbouring points, if there are more than can be seen."""
    fold = -(-len(points) // _MOST_POINTS)
    return [max(points[at : at + fold], key=itemgetter(1)) for at in range(0, len(points), fold)] if points else []


def _matrix(chart: Matrix, room: float) -> Drawing:
    rows, columns = ([shorten(name, _longest(room)) for name in names] for names in (chart.rows, chart.columns))
    left, top = max(_room(rows), _room([chart.axes[0]])), 36.0
    most = max((value for row in chart.values for value in row if value), default=0.0) or 1.0
    width = min(72.0, (room - left - 20) / max(1, len(columns)))
    has_texts = width >= 48
    shapes: list[Shape] = [
        Word(left, 12, chart.axes[1], is_faint=True),
        Word(left - 6, top - 6, chart.axes[0], "end", is_faint=True),
    ]
    every = -(-int(max(map(width_of, columns), default=0) + 4) // max(1, int(width)))
    for number, name in enumerate(columns):
        if number % max(1, every) == 0:
            shapes.append(Word(left + (number + 0.5) * width, top - 6, name, "middle"))
    for row, (name, values) in enumerate(zip(rows, chart.values, strict=True)):
        y = top + row * _CELL
        shapes.append(Word(left - 6, y + _CELL / 2 + 4, name, "end"))
        for column, value in enumerate(values):
            x = left + column * width
            if value:
                text = brief(value, chart.unit)
                tip = f"{chart.axes[0]} {name}, {chart.axes[1]} {columns[column]}: {text}"
                shade = 0.12 + 0.6 * value / most
                shapes.append(Rect(x + 1, y + 1, width - 2, _CELL - 2, RED, tip, round(shade, 2)))
                shapes += [Word(x + width / 2, y + _CELL / 2 + 4, text, "middle")] if has_texts else []
            else:
                shapes.append(Rect(x + 1, y + 1, width - 2, _CELL - 2, _GRID, opacity=0.3))
    return Drawing(room, top + len(rows) * _CELL + 6, tuple(shapes))


def _timeline(chart: Timeline, width: float) -> Drawing:
    """Draw a time line as `rocpd view` does: the axis and steps above, then a row per rank, beside its host."""
    labels = [shorten(row, _longest(width)) for row in chart.rows]
    row = min(_TALLEST, max(_LEAST_ROW, _TALL / max(1, len(labels))))
    groups = [*dict.fromkeys(chart.groups)] if len(set(chart.groups)) > 1 else []
    texts = [shorten(group, _longest(width) - 4) for group in groups]
    inner = _room(labels)
    left = inner + (_room(texts) if groups else 0.0)
    occurring = [name for place, name in enumerate(WORK) if any(any(parts[place]) for parts in chart.shares)]
    shapes, top = _legend([*((name, colour_of(name)) for name in occurring), ("idle", GREY)], width)
    across = Scale(chart.start, chart.end, left, width - 20)
    shapes += _axis(chart, across, top + 12)
    top += 18 + (16 if chart.steps else 0) + (14 if chart.marks else 0)
    bottom = top + row * len(labels)
    height = bottom - top
    shapes.append(Rect(left, top, width - 20 - left, height, GREY, opacity=0.25))
    levels = int(min(_LEVELS[1], max(_LEVELS[0], round(row))))
    size = chart.slices, len(chart.rows) * levels
    shapes.append(Pixels(left, top, width - 20 - left, height, picture(chart, levels), *size))
    marked = {range(*mark.rows) for mark in chart.marks if mark.rows}
    odd = {rows.start for rows in marked if len(rows) == 1}
    every = math.ceil(14 / row)
    chosen = sorted(odd)
    chosen += [at for at in range(0, len(labels), every) if all(abs(at - other) >= every for other in chosen)]
    for at in chosen:
        colour = RED if at in odd else None
        shapes.append(Word(left - 6, top + (at + 0.5) * row + 4, labels[at], "end", colour=colour))
    for group, text in zip(groups, texts, strict=True):
        first = chart.groups.index(group)
        y = top + first * row
        shapes += [Stroke(((start, y), (end, y)), _GRID) for start, end in ((0.0, left - inner), (left, width - 20))]
        colour = RED if range(first, first + chart.groups.count(group)) in marked else None
        shapes += [Word(0, y + 12, text, colour=colour)] if chart.groups.count(group) * row >= SIZE else []
    shapes += _marks(chart, across, top, row)
    return Drawing(width, bottom + 4, tuple(shapes))


def _axis(chart: Timeline, across: Scale, y: float) -> Iterator[Shape]:
    """Yield the times above a time line, and its steps."""
    for value in across.ticks("ns", max(2, int((across.end - across.start) / _TICK_ROOM))):
        yield Word(across(value), y, readable(value, "ns"), "middle", is_faint=True, is_tick=True)
    slice_ = chart.slice or 1
    for name, start, end in chart.steps:
        x, wide = across(max(start, chart.start)), across(min(end, chart.end)) - across(max(start, chart.start))
        span = (start - chart.start) / slice_, (end - chart.start) / slice_
        yield Rect(x, y + 6, max(0.5, wide - 1), 14, colour_of("MARKERS"), f"step {name}", 0.45, span=span)
        if wide > width_of(name) + 6:
            yield Word(x + 3, y + 17, name, span=span)


def _marks(chart: Timeline, across: Scale, top: float, row: float) -> Iterator[Shape]:
    """Yield frames around marks, and the number of each above it, which links to its description."""
    slice_ = chart.slice or 1
    free = 0.0
    for number, mark in sorted(enumerate(chart.marks, 1), key=lambda mark: mark[1].start + mark[1].end):
        start, end = (min(max(at, chart.start), chart.end) for at in (mark.start, mark.end))
        low, high = mark.rows or (0, len(chart.rows))
        x, wide = across(start), max(2.0, across(end) - across(start))
        span = (start - chart.start) / slice_, (end - chart.start) / slice_
        y, tall = top + low * row, (high - low) * row
        for side in ((x, y, wide, 1.5), (x, y + tall - 1.5, wide, 1.5)):
            yield Rect(*side, RED, mark.text, span=span)
        middle = x + wide / 2
        aside = max(0.0, free - middle)
        free = middle + aside + width_of(f"{number} ")
        yield Word(middle, top - 4, str(number), "middle", colour=RED, link=mark.link, span=span, aside=aside)


def picture(chart: Timeline, levels: int = _LEVELS[1]) -> bytes:
    """Return a time line as PNG, one pixel per slice, and `levels` per row: states are stacked, the first of `WORK` at
    the bottom, and every state has a pixel if there is room; idle time is transparent.
    """
    import numpy as np

    palette: list[Rgba] = [(0, 0, 0, 0), *((*colour_of(name), 255) for name in WORK)]
    shares = np.array(chart.shares, np.float64).reshape(len(chart.rows), len(WORK), chart.slices)
    before = np.zeros((len(chart.rows), chart.slices), np.int64)
    pixels = np.zeros((len(chart.rows), levels, chart.slices), np.uint8)
    height = np.arange(levels)[None, :, None]
    for part, until in enumerate(np.rint(shares.cumsum(1) * levels).astype(np.int64).swapaxes(0, 1), 1):
        least = before + (shares[:, part - 1] > 0)
        edge = np.minimum(np.maximum(until, least), levels)
        pixels[(height >= before[:, None]) & (height < edge[:, None])] = part
        before = edge
    rows = pixels[:, ::-1].reshape(-1, chart.slices)
    return png(chart.slices, [line.tobytes() for line in rows], palette)


def _flames(chart: Flames, width: float) -> Drawing:
    """Draw frames below their callers; frames that are too narrow to be seen are left out."""
    across = Scale(0, chart.total or 1, 0.0, width)
    colour = BLUE if chart.is_gpu else SKY
    shapes: list[Shape] = []
    for frame in chart.frames:
        x, wide = across(frame.start), across(frame.start + frame.value) - across(frame.start)
        if wide < 1.0:
            continue
        y = frame.depth * _FLAME
        share = brief(100 * frame.value / (chart.total or 1), "%")
        tip = f"{frame.name}: {brief(frame.value, chart.unit)}, {share}; own {brief(frame.own_value, chart.unit)}"
        shade = 0.75 if chart.is_gpu else 1.0
        opacity = shade * (0.45 if frame.depth % 2 else 0.6)
        shapes.append(Rect(x, y, max(0.5, wide - 0.7), _FLAME - 1, colour, tip, opacity))
        if wide > 30:
            shapes.append(Word(x + 3, y + 12, _cut(frame.name, wide - 6)))
    deepest = max((shape.y for shape in shapes if isinstance(shape, Rect)), default=0.0)
    return Drawing(width, deepest + _FLAME + 2, tuple(shapes))


def _cut(text: str, room: float) -> str:
    """Return the part of a text for which there is room [px]."""
    if width_of(text) <= room:
        return text
    ends = itertools.accumulate(SIZE * _share(character) for character in text)
    fitting = sum(end <= room - SIZE for end in ends)
    return f"{text[:fitting]}…" if fitting else ""


_ABOVE = ' class="above" paint-order="stroke" stroke="#fff" stroke-width="4"'  # pages have another background
_FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


def svg(drawing: Drawing, title: str, description: str = "", *, shown: str = "") -> str:
    """Return a drawing as an SVG element.

    Args:
        drawing: the chart.
        title: its name.
        description: its description.
        shown: class of the element in a page, where it inherits font and colour of the text around it; empty: a file of
            its own, on white, with a font, a title and an edge.
    """
    width, height = _n(drawing.width), _n(drawing.height)
    box, look = f"0 0 {width} {height}", f' class="{shown}"'
    if not shown:
        size = drawing.width + 2 * _EDGE, drawing.height + 2 * _EDGE + _TITLE
        box = " ".join(map(_n, (-_EDGE, -_EDGE - _TITLE, *size)))
        look = f' xmlns="http://www.w3.org/2000/svg" width="{_n(size[0])}" height="{_n(size[1])}" color="#222"'
        look += f' font-family="{_FONT}" font-size="{_n(SIZE)}"'
    role = "group" if any(isinstance(shape, Word) and shape.link for shape in drawing.shapes) else "img"
    parts = [f'<svg role="{role}" viewBox="{box}" fill="currentColor"{look} aria-label="{_text(title)}">']
    parts.append(f"<title>{_text(title)}</title>")
    parts += [f"<desc>{_text(description)}</desc>"] if description else []
    parts += [] if shown else _alone(title, box, drawing.width)
    parts += map(_shape, drawing.shapes)
    return "\n".join([*parts, "</svg>\n"])


def _alone(title: str, box: str, width: float) -> Iterator[str]:
    """Yield the surroundings of a chart in a file of its own: paper, its title, and the styles that pages have."""
    x, y, wide, high = box.split()
    yield f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" fill="#fff"/>'
    yield f'<g font-weight="700">{_shape(Word(0, -_TITLE / 2, _cut(title, width * 0.9)))}</g>'


def _shape(shape: Shape) -> str:
    match shape:
        case Rect():
            opacity = f' opacity="{shape.opacity}"' if shape.opacity < 1 else ""
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            return _with_tip(f'<rect {place} fill="{shape.colour.hex}"{opacity}{_span(shape.span)}', "rect", shape.tip)
        case Stroke():
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
            look = f'fill="none" stroke="{shape.colour.hex}" stroke-width="{_n(shape.width)}"'
            look += ' opacity="0.4"' if shape.colour == GREY else ""  # lines of a grid
            return _with_tip(f'<polyline points="{points}" {look}', "polyline", shape.tip)
        case Dot():
            place = f'cx="{_n(shape.x)}" cy="{_n(shape.y)}" r="{_n(shape.radius)}"'
            return _with_tip(f'<circle {place} fill="{shape.colour.hex}"', "circle", shape.tip)
        case Word():
            anchor = f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
            faint = ' opacity="0.8"' if shape.is_faint else ""
            tick = ' data-tick=""' if shape.is_tick else ""
            odd = f' class="odd" fill="{shape.colour.hex}"' if shape.colour else _ABOVE if shape.is_above else ""
            aside = f' dx="{_n(shape.aside)}"' if shape.aside else ""
            look = f"{anchor}{faint}{tick}{odd}{aside}{_span(shape.span)}"
            text = f'<text x="{_n(shape.x)}" y="{_n(shape.y)}"{look}>{_text(shape.text)}</text>'
            return f'<a href="#{_text(shape.link)}">{text}</a>' if shape.link else text
        case Pixels():
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            size = f'width="{shape.columns}" height="{shape.rows}" preserveAspectRatio="none"'
            data = b64encode(shape.png).decode()
            image = f'<image {size} image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
            box = f'viewBox="0 0 {shape.columns} {shape.rows}" preserveAspectRatio="none"'
            return f"<svg {place} {box}>{image}</svg>"


def _span(span: tuple[float, float] | None) -> str:
    """Return the part of a time line that a shape covers, for the script that zooms it."""
    return f' data-span="{_n(span[0])} {_n(span[1])}"' if span else ""


def _with_tip(start: str, element: str, tip: str) -> str:
    return f"{start}><title>{_text(tip)}</title></{element}>" if tip else f"{start}/>"


def _text(text: str) -> str:
    return escape(visible(text))


def _n(value: float) -> str:
    """Return a number with one digit after the point, none where it is 0."""
    return f"{value:.1f}".removesuffix(".0")


_BAR, _SPARK = 4, 16  # px


def spark_svg(counts: Sequence[int], title: str) -> str:
    """Return counts as a small SVG element; `title` contains no markup."""
    most = max(counts, default=0) or 1
    heights = [max(1, round(count * _SPARK / most)) if count else 0 for count in counts]
    data = "".join(f"M{x * _BAR} {_SPARK - h}h3v{h}h-3z" for x, h in enumerate(heights) if h)
    size = f'width="{len(counts) * _BAR}" height="{_SPARK}"'
    return f'<svg role="img" class="spark" aria-label="{title}" {size}><title>{title}</title><path d="{data}"/></svg>'
