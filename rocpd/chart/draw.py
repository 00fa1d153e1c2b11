"""What each chart looks like: a chart becomes a drawing, shapes that PDF and pictures are made of, and a drawing SVG.

SVG has a name and a description for those who cannot see it, and a tip for those who point.
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
from operator import itemgetter, mul
from typing import TypeAlias

from rocpd.base.frozen import frozen
from rocpd.base.visible import visible
from rocpd.chart.model import WORK, Bars, Chart, Lines, Matrix, Point, Series, Timeline
from rocpd.table.cell import shorten, shorten_apart
from rocpd.table.human import readable
from rocpd.table.palette import GREY, RED, Colour, colour_of

WIDTH = 860.0
"""Of every chart [px]."""

SIZE = 12.0
"""Of text [px]."""

_NARROW, _WIDE, _LARGE, _USUAL = 0.38, 0.97, 0.68, 0.61  # widths of characters, by the size of the text


@frozen
class Rect:
    """A filled rectangle; `tip` is said where somebody points at it."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour
    tip: str = ""
    opacity: float = 1.0


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
    """Text; `x` and `y` are those of its baseline's start, middle or end.

    One that `is_faint` matters less; one that `is_tick` stands below a time line, and changes where that can be zoomed.
    """

    x: float
    y: float
    text: str
    anchor: str = "start"
    is_faint: bool = False
    is_tick: bool = False


@frozen
class Pixels:
    """A picture as PNG, of so many columns and rows of pixels."""

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
    """Return about how wide a text is [px]; fonts differ."""
    return SIZE * sum(map(_share, text))


def _share(character: str) -> float:
    if character in "iljtf.,:;|!()[]' ":
        return _NARROW
    return _WIDE if character in "mwMW%@" else _LARGE if character.isupper() or character.isdigit() else _USUAL


_STEPS = (1, 2, 2.5, 5, 10)
_BINARY = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@frozen
class Scale:
    """Lays values from `low` to `high` on places from `start` to `end`."""

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
    """Lays values by their logarithms; all are above 0."""

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
    """Return a picture.

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
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


_HEIGHT = 220.0  # of lines
_ROW, _GAP = 16.0, 4.0  # height of a bar, space between two
_LONGEST = 32  # characters of a label
_MOST_POINTS = 600  # of a line
_LEAST_ROW = 0.6  # of a time line
_TICK = 16.0  # height of the numbers below an axis
_CELL = 26.0  # height of a row of a matrix
_GRID = GREY
_LEVELS, _MIXES = 7, 5  # of busy, and steps from one colour to another, in the picture of a time line


def draw(chart: Chart) -> Drawing:
    """Return the drawing of a chart."""
    match chart:
        case Bars():
            return _bars(chart)
        case Lines():
            return _lines(chart)
        case Matrix():
            return _matrix(chart)
        case Timeline():
            return _timeline(chart)


def _legend(names: Iterable[tuple[str, Colour]], x: float) -> Iterator[Shape]:
    """Yield the names of colours, on one line from `x` on; further to the left where it would be too long."""
    known = [(name, colour) for name, colour in names if name]
    x = max(0.0, min(x, WIDTH - sum(30 + width_of(name) for name, _ in known)))
    for name, colour in known:
        yield Rect(x, 3, 10, 10, colour)
        yield Word(x + 14, 12, name)
        x += 14 + width_of(name) + 16


def _room(labels: Iterable[str]) -> float:
    """Return the width that labels on the left take."""
    return max((width_of(label) for label in labels), default=0.0) + 8


def _bars(chart: Bars) -> Drawing:
    labels = shorten_apart(chart.labels, _LONGEST)
    names = [(part.name, part.colour) for part in chart.parts] if len(chart.parts) > 1 else []
    names += [(kind, colour_of(kind)) for kind in dict.fromkeys(chart.kinds)]
    left, top = _room(labels), 22.0 if names else 2.0
    across = Scale(min(chart.starts, default=0.0), max(chart.ends, default=0.0) or 1.0, left, WIDTH - 70)
    bottom = top + len(labels) * (_ROW + _GAP)
    shapes = [*_legend(names, left), *_ticks_below(across, chart.unit, top, bottom), *_rows(chart, labels, across, top)]
    is_plain = len(chart.parts) == 1
    notes = chart.notes or [readable(end, chart.unit) if is_plain else "" for end in chart.ends]
    for number, (label, end, note) in enumerate(zip(labels, chart.ends, notes, strict=True)):
        y = top + number * (_ROW + _GAP) + _ROW / 2 + 4
        shapes.append(Word(left - 6, y, label, "end"))
        shapes += [Word(across(end) + 5, y, note, is_faint=True)] if note else []
    return Drawing(WIDTH, bottom + _TICK + 4, tuple(shapes))


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
                yield Rect(x, y, width, _ROW, colour, f"{name} {readable(value, chart.unit)}")
            done += value


def _ticks_below(across: Scale, unit: str, top: float, bottom: float) -> Iterator[Shape]:
    for value in across.ticks(unit, 8):
        x = across(value)
        yield Stroke(((x, top), (x, bottom)), _GRID)
        yield Word(x, bottom + 13, _tick(value, unit), "middle", is_faint=True)


def _tick(value: float, unit: str) -> str:
    """Return a value beside an axis; counts have no decimals.

    >>> _tick(12.0, ""), _tick(0.5, ""), _tick(2e6, "ns")
    ('12', '0.50', '2.00 ms')
    """
    return str(int(value)) if not unit and float(value).is_integer() else readable(value, unit)


def _lines(chart: Lines) -> Drawing:
    marked = [(x, y) for series in chart.series for x, y, _ in series.marked]
    points = [point for series in chart.series for point in series.points] + (marked if chart.is_log else [])
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    kind = LogScale if chart.is_log and points else Scale
    least = min(0.0, *ys) if chart.has_zero and not chart.is_log else min(ys)
    up = kind(least, max(ys) or 1.0, 22.0 + _HEIGHT, 26.0)
    levels = [(value, _tick(value, chart.y_unit)) for value in up.ticks(chart.y_unit, 5)]
    left = _room(text for _, text in levels)
    across = kind(min(xs), max(xs), left, WIDTH - 20)
    shapes: list[Shape] = []
    for value, text in levels:
        shapes += [Stroke(((left, up(value)), (WIDTH - 20, up(value))), _GRID)]
        shapes += [Word(left - 6, up(value) + 4, text, "end", is_faint=True)]
    for value in across.ticks(chart.x_unit, 8):
        shapes.append(Word(across(value), 22 + _HEIGHT + 14, _tick(value, chart.x_unit), "middle", is_faint=True))
    shapes += _legend(((series.name, series.colour) for series in chart.series), left)
    for series in chart.series:
        shapes += _line(series, chart, across, up)
    return Drawing(WIDTH, 22 + _HEIGHT + _TICK + 4, tuple(shapes))


def _line(series: Series, chart: Lines, across: Scale, up: Scale) -> Iterator[Shape]:
    places = [(across(x), up(y)) for x, y in _highest(series.points)]
    if chart.is_stepped:
        places = [place for a, b in pairwise(places) for place in (a, (b[0], a[1]))] + places[-1:]
    if places:
        yield Stroke(tuple(places), series.colour, 1.5, series.name)
    if len(series.points) == 1:
        yield Dot(*places[0], 3.0, series.colour, series.name)
    for x, y, text in series.marked:
        yield Dot(across(x), up(y), 4.0, RED, f"{text}: {readable(y, chart.y_unit)}")
        is_late = across(x) > WIDTH * 0.8
        yield Word(across(x) + (-7 if is_late else 7), up(y) + 4, text, "end" if is_late else "start")


def _highest(points: Sequence[Point]) -> Sequence[Point]:
    """Return the highest of each few points that lie next to each other, where there are more than can be seen."""
    fold = -(-len(points) // _MOST_POINTS)
    return [max(points[at : at + fold], key=itemgetter(1)) for at in range(0, len(points), fold)] if points else []


def _matrix(chart: Matrix) -> Drawing:
    rows, columns = ([shorten(name, _LONGEST) for name in names] for names in (chart.rows, chart.columns))
    left, top = max(_room(rows), _room([chart.axes[0]])), 36.0
    most = max((value for row in chart.values for value in row if value), default=0.0) or 1.0
    width = min(72.0, (WIDTH - left - 20) / max(1, len(columns)))
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
                text = readable(value, chart.unit)
                tip = f"{chart.axes[0]} {name}, {chart.axes[1]} {columns[column]}: {text}"
                shade = 0.12 + 0.6 * value / most
                shapes.append(Rect(x + 1, y + 1, width - 2, _CELL - 2, RED, tip, round(shade, 2)))
                shapes += [Word(x + width / 2, y + _CELL / 2 + 4, text, "middle")] if has_texts else []
            else:
                shapes.append(Rect(x + 1, y + 1, width - 2, _CELL - 2, _GRID, opacity=0.3))
    return Drawing(WIDTH, top + len(rows) * _CELL + 6, tuple(shapes))


def _timeline(chart: Timeline) -> Drawing:
    labels = [shorten(row, _LONGEST) for row in chart.rows]
    row = min(20.0, max(_LEAST_ROW, 512.0 / max(1, len(labels))))
    left, top = _room(labels), 22.0
    bottom = top + row * len(labels)
    across = Scale(chart.start, chart.end, left, WIDTH - 20)
    shapes: list[Shape] = list(_legend(((name, colour_of(name)) for name in WORK), left))
    size = chart.slices, len(chart.rows)
    shapes.append(Pixels(left, top, WIDTH - 20 - left, bottom - top, picture(chart), *size))
    every = math.ceil(14 / row)
    for number in range(0, len(labels), every):
        shapes.append(Word(left - 6, top + (number + 0.5) * row + 4, labels[number], "end"))
    for value in across.ticks("ns", 8):
        shapes.append(Word(across(value), bottom + 13, readable(value, "ns"), "middle", is_faint=True, is_tick=True))
    return Drawing(WIDTH, bottom + _TICK + 4, tuple(shapes))


def picture(chart: Timeline) -> bytes:
    """Return a time line as PNG, one pixel a slice and row: the more work the less transparent, idle alone entirely."""
    import numpy as np

    colours = [colour_of(name) for name in WORK]
    palette: list[Rgba] = [(0, 0, 0, 0)]
    for level, first, second in itertools.product(range(_LEVELS), range(_MIXES + 1), range(_MIXES + 1)):
        parts = first, max(0, second - first), _MIXES - max(first, second)
        mixed = (round(sum(map(mul, parts, of_colours)) / _MIXES) for of_colours in zip(*colours, strict=True))
        palette.append((*mixed, round(255 * (level + 1) / _LEVELS)))
    shares = np.array(chart.shares, np.float64).reshape(len(chart.rows), len(WORK), chart.slices)
    busy = shares.sum(1)
    levels = np.clip(np.ceil(busy * _LEVELS), 1, _LEVELS) - 1
    first, second, _ = np.rint(_MIXES * shares.cumsum(1) / np.where(busy > 0, busy, 1)[:, None]).swapaxes(0, 1)
    pixels = np.where(busy > 0, 1 + (levels * (_MIXES + 1) + first) * (_MIXES + 1) + second, 0)
    return png(chart.slices, [row.tobytes() for row in pixels.astype(np.uint8)], palette)


_FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


def svg(drawing: Drawing, title: str, description: str = "", *, is_alone: bool = True) -> str:
    """Return a drawing as an SVG element.

    Args:
        drawing: the chart.
        title: its name.
        description: what it says.
        is_alone: whether it is a file of its own: on white, with a font of its own; else it has the font and the colour
            of the text around it.
    """
    width, height = _n(drawing.width), _n(drawing.height)
    alone = (
        f' xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" color="#222"'
        f' font-family="{_FONT}" font-size="{_n(SIZE)}"'
        if is_alone
        else ""
    )
    parts = [f'<svg role="img" viewBox="0 0 {width} {height}" fill="currentColor"{alone} aria-label="{_text(title)}">']
    parts.append(f"<title>{_text(title)}</title>")
    parts += [f"<desc>{_text(description)}</desc>"] if description else []
    parts += ['<rect width="100%" height="100%" fill="#fff"/>'] if is_alone else []
    parts += map(_shape, drawing.shapes)
    return "\n".join([*parts, "</svg>\n"])


def _shape(shape: Shape) -> str:
    match shape:
        case Rect():
            opacity = f' opacity="{shape.opacity}"' if shape.opacity < 1 else ""
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            return _with_tip(f'<rect {place} fill="{shape.colour.hex}"{opacity}', "rect", shape.tip)
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
            return f'<text x="{_n(shape.x)}" y="{_n(shape.y)}"{anchor}{faint}{tick}>{_text(shape.text)}</text>'
        case Pixels():
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            size = f'width="{shape.columns}" height="{shape.rows}" preserveAspectRatio="none"'
            data = b64encode(shape.png).decode()
            image = f'<image {size} image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
            box = f'viewBox="0 0 {shape.columns} {shape.rows}" preserveAspectRatio="none"'
            return f"<svg {place} {box}>{image}</svg>"


def _with_tip(start: str, element: str, tip: str) -> str:
    return f"{start}><title>{_text(tip)}</title></{element}>" if tip else f"{start}/>"


def _text(text: str) -> str:
    return escape(visible(text))


def _n(value: float) -> str:
    """Return a number with one digit after the point, none where it is 0."""
    return f"{value:.1f}".removesuffix(".0")


_BAR, _TALL = 4, 16  # px


def spark_svg(counts: Sequence[int], title: str) -> str:
    """Return counts as a small SVG element; `title` has no markup in it."""
    most = max(counts, default=0) or 1
    heights = [max(1, round(count * _TALL / most)) if count else 0 for count in counts]
    data = "".join(f"M{x * _BAR} {_TALL - h}h3v{h}h-3z" for x, h in enumerate(heights) if h)
    size = f'width="{len(counts) * _BAR}" height="{_TALL}"'
    return f'<svg role="img" class="spark" aria-label="{title}" {size}><title>{title}</title><path d="{data}"/></svg>'
