"""Tables for people: aligned on a terminal or in a pipe, cut to a number of rows.

Tables of analyses show times, sizes and shares in suitable units, and fewer columns on narrow terminals. A row that is
wider than the terminal even with shortened names is shown as a block, one column per line. csv, json and parquet, which
programs read, keep every digit.

Pictures consist of Unicode's block elements (U+2581 to U+2593), from the size of a word to several lines: heat maps,
matrices, curves; they know values and labels, but no tables. Pictures that are too wide are condensed, never cut: a
cell then stands for several columns, a line for several rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TextIO, TypeAlias, TypeVar

from rocpd.base import Row
from rocpd.table.cell import one_line, shorten, shorten_apart
from rocpd.table.palette import BLUE, Colour, Screen, on_scale

Paint: TypeAlias = Callable[[str, int, int], str]
"""Colours the text of a cell, by the number of its row (-2: the names, -1: the rule below them) and of its column."""

SHORTEST = 24
"""Cells are not cut below this length to make a table fit."""


def write_console(
    columns: Sequence[str], rows: Iterator[Row], out: TextIO, limit: int = 0, screen: Screen | None = None
) -> bool:
    """Write up to `limit` rows (0: all) as text.

    Args:
        columns: names.
        rows: values.
        out: text file; rich draws the table if `screen` is given.
        limit: most rows to show; 0 shows all.
        screen: the terminal, None for a pipe: nothing is shortened.

    Returns:
        whether there were more rows than shown.
    """
    names = [one_line(name) for name in columns]
    shown = list(itertools.islice(rows, limit)) if limit else list(rows)
    more = bool(limit) and next(rows, None) is not None
    text = one_line if screen is None else _readable
    cells = [[text(value) for value in row] for row in shown]
    right = [all_numbers(column) for column in zip(*shown, strict=True)]
    draw(names, cells, right or [False] * len(names), out, screen)
    return more


def all_numbers(values: Iterable[Any]) -> bool:
    """Whether values are numbers or NULL, and so right-aligned."""
    return all(value is None or isinstance(value, (int, float)) for value in values)


def _readable(value: Any) -> str:
    """Return a value for a terminal: reals get four decimals, so that eyes can compare them."""
    return f"{value:.4f}" if isinstance(value, float) and 0.001 <= abs(value) < 1e15 else one_line(value)


def write_plain(
    columns: Sequence[str], cells: list[list[str]], right: list[bool], out: TextIO, paint: Paint | None = None
) -> None:
    """Write an aligned table in plain text, two spaces between columns; `paint` colours padded cells."""
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for number, line in enumerate((list(columns), ["-" * w for w in widths], *cells), -2):
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)]
        if paint:
            padded = [paint(text, number, column) if text.strip() else text for column, text in enumerate(padded)]
        out.write("  ".join(padded).rstrip(" ") + "\n")


def draw(columns: Sequence[str], cells: list[list[str]], right: list[bool], out: TextIO, screen: Screen | None) -> None:
    """Write cells that are text already; `right`: whether each column is right-aligned; `screen` as above."""
    if screen is None:
        write_plain(columns, cells, right, out)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = screen.width
    natural = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    widths = fit(natural, [len(name) for name in columns], width - 3 * len(columns) - 1)
    colours = "truecolor" if screen.colours else None
    console = Console(
        file=out,
        width=width,
        highlight=False,
        soft_wrap=widths is None,
        force_terminal=bool(colours),
        color_system=colours,  # type: ignore[arg-type]
        no_color=not colours,
    )
    if widths is None:
        name_width = max(map(len, columns))
        for number, row in enumerate(cells, 1):
            console.print(Text(f"── row {number} " + "─" * max(0, width - len(str(number)) - 8), style="dim"))
            for name, cell in zip(columns, row, strict=True):
                value = shorten(cell, max(width - name_width - 2, SHORTEST))
                console.print(Text.assemble((name.ljust(name_width), "bold"), "  ", value))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name, is_right, most in zip(columns, right, widths, strict=True):
        table.add_column(Text(name), justify="right" if is_right else "left", no_wrap=True, max_width=most)
    for row in cells:
        table.add_row(*(Text(shorten(cell, most)) for cell, most in zip(row, widths, strict=True)))
    console.print(table)


def fit(natural: list[int], heads: list[int], room: int, shortest: int = SHORTEST) -> list[int] | None:
    """Shorten the widest columns until all fit into `room`; None when they can't."""
    widths = list(natural)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda i: widths[i])
        least = max(shortest, heads[widest])
        if widths[widest] <= least:
            return None
        widths[widest] = max(least, widths[widest] - (sum(widths) - room))
    return widths


CHANCE = "chance"
"""Unit of a probability: small values are shown as less than a thousandth."""

OF_ROW = "unit of the row"
"""Unit of values whose unit is in the column `unit` of their row."""

_LEAST_CHANCE = 0.001
_SCALES = {
    "ns": (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)),
    "bytes": (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40)),
}
_LONGEST = 60  # characters of a text in a pipe: names of kernels reach thousands
_GAP = 2  # between columns
_NAMES = -2  # the row of the names of columns
_SHORTEST = 16  # texts are not cut below this length
_BAR = 20  # characters of a bar for 100 %
_WHOLE = 36  # texts that matter keep this length while other columns can go
_SUFFIXES = {"ns": "_ns", "bytes": "_bytes"}


class Head(NamedTuple):
    """The head of a column: name, unit (`ns`, `bytes`, `%` … or nothing), whether it may be left out, or matters most.

    A column that matters is cut only if leaving out all minor ones is not enough. A column that `is_share` has percents
    of a whole, with bars beside it on a screen; a column that `is_drawn` holds pictures, which are never cut.
    """

    name: str
    unit: str = ""
    minor: bool = False
    matters: bool = False
    is_share: bool = False
    is_drawn: bool = False


class Pictures(NamedTuple):
    """Pictures beside the values of rows, row by row; none for further rows.

    `colours` are the colours of bars; `counts` are the numbers of the events behind a row by duration, from the
    shortest to the longest.
    """

    colours: Sequence[Colour] = ()
    counts: Sequence[Sequence[int]] = ()


class LeftOut(NamedTuple):
    """The parts that are not shown: whether there are more rows, and the names of columns that did not fit."""

    rows: bool
    columns: tuple[str, ...]


def write_readable(
    columns: Sequence[Head],
    rows: Iterator[Row],
    out: TextIO,
    limit: int = 0,
    screen: Screen | None = None,
    pictures: Pictures | None = None,
) -> LeftOut:
    """Write up to `limit` rows (0: all).

    Args:
        columns: their heads.
        rows: exact values; times in ns.
        out: text file.
        limit: most rows to show; 0 shows all.
        screen: the terminal, None for a pipe: no column is left out.
        pictures: pictures beside the values on a screen.

    Returns:
        the parts that are not shown.
    """
    shown = [with_unit(columns, row) for row in (itertools.islice(rows, limit) if limit else rows)]
    more = bool(limit) and next(rows, None) is not None
    by_column = list(zip(columns, zip(*shown, strict=True) if shown else [()] * len(columns), strict=True))
    most = screen.width if screen else _LONGEST
    prepared = [_column(head, values, most) for head, values in by_column]
    if screen is None:
        _draw(prepared, out, None, ())
        return LeftOut(more, ())
    drawn = pictures or Pictures()
    with_bars = (_with_bar(column, values) for column, (_, values) in zip(prepared, by_column, strict=True))
    chosen = _fitting([*itertools.chain.from_iterable(with_bars), *_spark(drawn.counts, len(shown))], screen.width)
    _draw(chosen, out, screen, drawn.colours)
    return LeftOut(more, tuple(column.head.name for column in prepared if not (column in chosen or column.is_picture)))


class _Column(NamedTuple):
    """A column as text; without room pictures are left out, after minor columns."""

    head: Head
    name: str
    cells: Sequence[str]
    is_right: bool
    is_picture: bool = False

    @property
    def widest(self) -> int:
        return max(map(len, (self.name, *self.cells)))

    @property
    def least(self) -> int:
        """The smallest width to which it can be cut."""
        if self.head.unit or self.is_picture:
            return self.widest
        return min(self.widest, max(_WHOLE if self.head.matters else _SHORTEST, len(self.name)))


def with_unit(columns: Sequence[Head], row: Row) -> Row:
    """Return a row in which values with the unit in its column `unit` become texts with this unit."""
    if all(column.unit != OF_ROW for column in columns):
        return row
    unit = next((value for column, value in zip(columns, row, strict=True) if column.name == "unit"), None)
    return tuple(
        readable(value, str(unit or "")) if column.unit == OF_ROW else value
        for column, value in zip(columns, row, strict=True)
    )


def _column(head: Head, values: Sequence[Any], most: int) -> _Column:
    texts = [readable(value, head.unit) for value in values]
    if head.is_drawn:
        return _Column(head, head.name, texts, False, is_picture=True)
    texts = shorten_apart(texts, most)
    return _Column(head, heading(head), texts, bool(head.unit) or all_numbers(values))


def _with_bar(column: _Column, values: Sequence[Any]) -> Iterator[_Column]:
    """Yield a column, and one with the bars of its shares."""
    yield column
    if column.head.is_share:
        yield _Column(Head(""), "", [bar((value or 0) / 100, _BAR) for value in values], False, is_picture=True)


def _spark(counts: Sequence[Sequence[int]], rows: int) -> Iterator[_Column]:
    """Yield the column of distributions, if there are any."""
    if any(counts):
        cells = [spark(of_row) for of_row in counts[:rows]] + [""] * (rows - len(counts))
        yield _Column(Head(""), "distribution", cells, False, is_picture=True)


def _fitting(columns: Sequence[_Column], width: int) -> list[_Column]:
    """Return the columns that fit: minor ones go, the last first, then pictures, until the rest fits with cut texts."""
    chosen = list(columns)
    minor = [column for column in reversed(columns) if column.head.minor]
    for column in (*minor, *(column for column in reversed(columns) if column.is_picture)):
        if sum(column.least for column in chosen) + _GAP * (len(chosen) - 1) <= width:
            break
        chosen.remove(column)
    return chosen


def _draw(columns: Sequence[_Column], out: TextIO, screen: Screen | None, colours: Sequence[Colour]) -> None:
    """Write the table with its texts shortened to fit; a table that is still too wide is drawn in blocks."""
    names, right = [column.name for column in columns], [column.is_right for column in columns]
    natural = [column.widest for column in columns]
    room = screen.width - _GAP * (len(names) - 1) if screen else sum(natural)
    widths = fit(natural, [len(name) for name in names], room, _SHORTEST)
    if widths is None:
        draw(names, [list(row) for row in zip(*(column.cells for column in columns), strict=True)], right, out, screen)
        return
    texts = (
        column.cells if column.is_picture else shorten_apart(column.cells, most)
        for column, most in zip(columns, widths, strict=True)
    )
    rows = [list(row) for row in zip(*texts, strict=True)]
    write_plain(names, rows, right, out, _painter(columns, screen, colours) if screen else None)


def _painter(columns: Sequence[_Column], screen: Screen, colours: Sequence[Colour]) -> Paint:
    """Return a function that emphasizes the names of columns, and colours pictures."""

    def paint(text: str, row: int, column: int) -> str:
        if row < 0:
            return (screen.bold if row == _NAMES else screen.faint)(text if columns[column].name else "")
        return screen.paint(text, colours[row] if row < len(colours) else BLUE) if columns[column].is_picture else text

    return paint


def heading(column: Head) -> str:
    """Return the name of a column without its unit, which the cells show.

    >>> heading(Head("total_ns", "ns")), heading(Head("bytes", "bytes"))
    ('total', 'bytes')
    """
    return one_line(column.name.removesuffix(_SUFFIXES.get(column.unit, "\0")))


def readable(value: Any, unit: str = "") -> str:
    """Return a value with three significant digits, in a suitable unit; NULL is a dash.

    >>> readable(1234567, "ns"), readable(3 * 2**30, "bytes"), readable(12.345, "%"), readable(1234567), readable(None)
    ('1.23 ms', '3.00 GiB', '12.3 %', '1234567', '-')
    >>> readable(0.0, "chance"), readable(0.0183, "chance")
    ('< 0.001', '0.018')
    """
    if value is None:
        return "-"
    if not isinstance(value, (int, float)):
        return one_line(value)
    if unit in _SCALES:
        return _scaled(value, _SCALES[unit])
    if unit == CHANCE:
        return "< 0.001" if value < _LEAST_CHANCE else _three(value)
    if unit:
        return f"{_three(value)} {one_line(unit)}"  # counters have their units from the file
    return _three(value) if isinstance(value, float) else str(value)


_BRIEF_SCALES = {
    "GB/s": (("B/s", 1e-9), ("kB/s", 1e-6), ("MB/s", 1e-3), ("GB/s", 1), ("TB/s", 1e3)),
    "GiB/s": (("B/s", 2**-30), ("KiB/s", 2**-20), ("MiB/s", 2**-10), ("GiB/s", 1), ("TiB/s", 2**10)),
    "GFLOP/s": (("MFLOP/s", 1e-3), ("GFLOP/s", 1), ("TFLOP/s", 1e3), ("PFLOP/s", 1e6)),
    "KB": (("KB", 1), ("MB", 1e3), ("GB", 1e6), ("TB", 1e9)),
}
_LARGE = (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
_LEAST_SHARE = 0.01  # %: smaller values are shown as less than this
_MOST_COUNT = 10_000


def brief(value: Any, unit: str = "") -> str:
    """Return a value as `readable` does, with at most four digits: counts without decimals, large ones by thousands.

    >>> brief(43.0), brief(1046112), brief(1.3e-5, "%"), brief(3.12e-6, "GB/s"), brief(2.5e6, "cycles"), brief(0.5)
    ('43', '1.05 M', '<0.01 %', '3.12 kB/s', '2.50 M cycles', '0.50')
    """
    if not isinstance(value, (int, float)) or unit in _SCALES or not math.isfinite(value):
        return readable(value, unit)
    if not value:
        return f"0 {one_line(unit)}".rstrip()
    if unit in _BRIEF_SCALES:
        return _scaled(value, _BRIEF_SCALES[unit])
    if unit == "%" and 0 < abs(value) < _LEAST_SHARE:
        return f"<{_LEAST_SHARE} %"
    if abs(value) >= _MOST_COUNT:
        return " ".join(filter(None, (_scaled(value, _LARGE), one_line(unit))))
    return readable(int(value) if float(value).is_integer() and unit != "%" else value, unit)


def scale_of(most: float, unit: str) -> tuple[str, float]:
    """Return the unit for values up to `most`, and its size, for axes with one unit.

    >>> scale_of(3e7, "ns"), scale_of(2e6, "GFLOP/s"), scale_of(40, "")
    (('ms', 1000000.0), ('PFLOP/s', 1000000.0), ('', 1))
    """
    scale = _SCALES.get(unit) or _BRIEF_SCALES.get(unit) or ()
    if not scale and abs(most) >= _MOST_COUNT:
        return next((f"{name} {unit}".rstrip(), size) for name, size in reversed(_LARGE) if abs(most) >= size)
    fitting = [known for known in scale if known[1] <= abs(most)]
    return fitting[-1] if fitting else scale[0] if scale else (unit, 1)


def _scaled(value: float, scale: Sequence[tuple[str, float]]) -> str:
    name, size = next((known for known in scale if abs(value) / known[1] < 999.5), scale[-1])
    return f"{int(value)} {name}" if size == 1 and float(value).is_integer() else f"{_three(value / size)} {name}"


def _three(value: float) -> str:
    """Return three significant digits, without an exponent below a million million."""
    size = abs(value)
    if size >= 1e12 or 0 < size < 0.0005:
        return f"{value:.3g}"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{3 if size < 0.1 and size else digits}f}"


_ACROSS = " ▏▎▍▌▋▊▉█"
_UP = " ▁▂▃▄▅▆▇█"
_SHADES = ((0.875, "█"), (0.625, "▓"), (0.375, "▒"), (0.1, "░"), (0.0, "·"))  # least share of each


def bar(share: float, width: int) -> str:
    """Return a bar of up to `width` characters; only 0 is invisible.

    >>> bar(0.55, 10), bar(0.0001, 10), bar(0, 10), bar(7, 4)
    ('█████▌', '▏', '', '████')
    """
    eighths = round(min(share, 1.0) * width * 8)
    if eighths <= 0:
        return _ACROSS[1] if share > 0 else ""
    whole, part = divmod(eighths, 8)
    return _ACROSS[8] * whole + (_ACROSS[part] if part else "")


def spark(values: Sequence[float | None]) -> str:
    """Return values as columns of one line; only 0 is invisible.

    Args:
        values: at least 0; None: missing. The largest fills a column.

    >>> spark([1, 0, 5, 100]), spark([]), spark([0, None])
    ('▁ ▁█', '', '  ')
    """
    top = max((value for value in values if value), default=0.0)
    return "".join(_UP[min(8, max(1, round(value * 8 / top)))] if value and top else " " for value in values)


def columns(values: Sequence[float], most: float, height: int) -> list[str]:
    """Return values as columns of several lines, from the top; only 0 is invisible.

    >>> columns([1, 8, 16], 16, 2)
    ['  █', '▁██']
    """
    eighths = [max(1, round(value * 8 * height / most)) if value and most else 0 for value in values]
    rows = ([min(8, max(0, each - 8 * row)) for each in eighths] for row in reversed(range(height)))
    return ["".join(_UP[each] for each in row) for row in rows]


def shade(share: float) -> str:
    """Return a cell of a heat map; only 0 is invisible.

    >>> [shade(share) for share in (0, 0.01, 0.25, 0.5, 0.75, 1)]
    [' ', '·', '░', '▒', '▓', '█']
    """
    return next((character for least, character in _SHADES if share > least), " ")


LONGEST = 24
"""Characters of a label."""

MOST_LINES = 32
"""Lines of a heat map or matrix; with more rows, one line stands for several."""

_WIDEST = 3  # characters of a cell
_LINES_OF_CURVES, _HIGHEST = 12, 4  # of all curves together, and of one

Value = TypeVar("Value")


class Curve(NamedTuple):
    """A curve: its label, values from the left, and the text at its right end."""

    label: str
    values: Sequence[float]
    says: str = ""


class Shade(NamedTuple):
    """A cell of a heat map: its darkness, 0 to 1, and its colour."""

    share: float
    colour: Colour


def heat_map(lines: Sequence[tuple[str, Sequence[Shade]]], below: tuple[str, str], screen: Screen) -> Iterator[str]:
    """Yield a heat map, and the texts below its left and right end.

    Args:
        lines: a label, and cells from the left: equally many in each line.
        below: texts for start and end.
        screen: the terminal.
    """
    front = _width(label for label, _ in lines)
    count = len(lines[0][1])
    room = max(screen.width - front - 1, 1)
    width = min(count, room)
    times = min(max(room // width, 1), _WIDEST)
    for label, cells in lines:
        drawn = [mixed(part) for part in parts(cells, width)]
        runs = groupby(drawn, key=lambda cell: cell.colour)
        text = "".join(screen.paint("".join(shade(c.share) * times for c in cells), colour) for colour, cells in runs)
        yield f"{shorten(label, LONGEST):{front}} {text}".rstrip()
    yield screen.faint(_axis(below, front, width * times))


def matrix(labels: Sequence[str], values: Sequence[Sequence[float]], corner: str, screen: Screen) -> Iterator[str]:
    """Yield a matrix of pairs; the darkest cell is the largest value.

    Args:
        labels: labels of rows and of columns.
        values: values of each row, from the left.
        corner: words for rows and columns.
        screen: the terminal.
    """
    front = max(_width(labels), len(corner))
    cell = max(map(len, labels)) + 1
    most = max((value for row in values for value in row), default=0.0) or 1.0
    yield screen.faint(corner.rjust(front) + "".join(label.rjust(cell) for label in labels))
    for label, row in zip(labels, values, strict=True):
        shades = (shade(value / most) * min(cell - 1, _WIDEST) for value in row)
        cells = (
            screen.paint(text.rjust(cell), on_scale(value / most)) for text, value in zip(shades, row, strict=True)
        )
        yield f"{label.rjust(front)}{''.join(cells)}".rstrip()


def curves(lines: Sequence[Curve], below: tuple[str, str], screen: Screen, colour: Colour) -> Iterator[str]:
    """Yield a curve for each line, all on one scale from 0; the fewer there are, the higher they are.

    Args:
        lines: a label, values from the left, and the text at the right end.
        below: texts for start and end.
        screen: the terminal.
        colour: colour of the curves.
    """
    front, back = _width(line.label for line in lines), max(len(line.says) for line in lines)
    most = max((value for line in lines for value in line.values), default=0.0)
    room = max(screen.width - front - back - 2, 1)
    width = min(max(len(line.values) for line in lines), room)
    times = min(max(room // width, 1), _WIDEST)
    height = min(max(_LINES_OF_CURVES // len(lines), 1), _HIGHEST)
    for line in lines:
        *above, lowest = columns([max(part) for part in parts(line.values, width)], most, height)
        for text in above:
            yield f"{'':{front}} {screen.paint(_repeated(text, times), colour)}".rstrip()
        label = f"{shorten(line.label, LONGEST):{front}}"
        yield f"{label} {screen.paint(_repeated(lowest, times), colour)} {line.says}".rstrip()
    yield screen.faint(_axis(below, front, width * times))


def parts(values: Sequence[Value], count: int) -> Iterator[Sequence[Value]]:
    """Yield values in `count` parts of nearly equal size.

    >>> list(parts([1, 2, 3, 4, 5], 2)), list(parts([1, 2], 5))
    ([[1, 2], [3, 4, 5]], [[1], [2]])
    """
    count = min(count, len(values))
    for number in range(count):
        yield values[number * len(values) // count : (number + 1) * len(values) // count]


def mixed(cells: Sequence[Shade]) -> Shade:
    """Return the cell that stands for several cells: the mean, in the colour of the darkest."""
    return Shade(sum(cell.share for cell in cells) / len(cells), max(cells, key=lambda cell: cell.share).colour)


def _repeated(text: str, times: int) -> str:
    return "".join(character * times for character in text)


def _axis(ends: tuple[str, str], front: int, width: int) -> str:
    start, end = ends
    return f"{'':{front}} {start}{end.rjust(max(width - len(start), len(end) + 3))}"


def _width(labels: Iterable[str]) -> int:
    return min(max(map(len, labels), default=0), LONGEST)
