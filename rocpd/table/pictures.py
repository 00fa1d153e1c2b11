"""Draws pictures of characters, of Unicode's block elements (U+2581 to U+2593), as small as a word or of several lines.

Heat maps, matrices, curves for a screen: knows values and labels, and no table. What is too wide is put together, never
cut: a cell then stands for several columns, a line for several rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from rocpd.table.cell import shorten
from rocpd.table.palette import Colour, Screen, on_scale

_ACROSS = " ▏▎▍▌▋▊▉█"
_UP = " ▁▂▃▄▅▆▇█"
_SHADES = ((0.875, "█"), (0.625, "▓"), (0.375, "▒"), (0.1, "░"), (0.0, "·"))  # above which share


def bar(share: float, width: int) -> str:
    """Return a bar of up to `width` characters; whatever is not 0 is seen.

    >>> bar(0.55, 10), bar(0.0001, 10), bar(0, 10), bar(7, 4)
    ('█████▌', '▏', '', '████')
    """
    eighths = round(min(share, 1.0) * width * 8)
    if eighths <= 0:
        return _ACROSS[1] if share > 0 else ""
    whole, part = divmod(eighths, 8)
    return _ACROSS[8] * whole + (_ACROSS[part] if part else "")


def spark(values: Sequence[float | None]) -> str:
    """Return values as columns of one line; whatever is not 0 is seen.

    Args:
        values: none below 0; None: there is none. The largest fills a column.

    >>> spark([1, 0, 5, 100]), spark([]), spark([0, None])
    ('▁ ▁█', '', '  ')
    """
    top = max((value for value in values if value), default=0.0)
    return "".join(_UP[min(8, max(1, round(value * 8 / top)))] if value and top else " " for value in values)


def columns(values: Sequence[float], most: float, height: int) -> list[str]:
    """Return values as columns of several lines, from the top; whatever is not 0 is seen.

    >>> columns([1, 8, 16], 16, 2)
    ['  █', '▁██']
    """
    eighths = [max(1, round(value * 8 * height / most)) if value and most else 0 for value in values]
    rows = ([min(8, max(0, each - 8 * row)) for each in eighths] for row in reversed(range(height)))
    return ["".join(_UP[each] for each in row) for row in rows]


def shade(share: float) -> str:
    """Return a cell of a heat map; whatever is not 0 is seen.

    >>> [shade(share) for share in (0, 0.01, 0.25, 0.5, 0.75, 1)]
    [' ', '·', '░', '▒', '▓', '█']
    """
    return next((character for least, character in _SHADES if share > least), " ")


LONGEST = 24
"""Characters of a label."""

MOST_LINES = 32
"""Lines of a heat map or matrix; beyond, one line stands for several rows."""

_WIDEST = 3  # characters of a cell
_LINES_OF_CURVES, _HIGHEST = 12, 4  # of all together, and of one

Value = TypeVar("Value")


class Curve(NamedTuple):
    """A curve: its label, values from the left, and what stands at its right end."""

    label: str
    values: Sequence[float]
    says: str = ""


class Shade(NamedTuple):
    """A cell of a heat map: how dark it is, 0 to 1, and its colour."""

    share: float
    colour: Colour


def heat_map(lines: Sequence[tuple[str, Sequence[Shade]]], below: tuple[str, str], screen: Screen) -> Iterator[str]:
    """Yield a heat map, and what stands below its left and right end.

    Args:
        lines: a label, and cells from the left: as many in each line.
        below: where it starts and ends.
        screen: what it is for.
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
    """Yield a matrix of who does what to whom; the darkest cell is the largest value.

    Args:
        labels: of rows and of columns.
        values: of each row, from the left.
        corner: what rows and columns are.
        screen: what it is for.
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
    """Yield a curve for each line, all on one scale, which starts at 0; the fewer there are, the higher they are.

    Args:
        lines: a label, values from the left, and what stands at the right end.
        below: where they start and end.
        screen: what it is for.
        colour: of the curves.
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
    """Yield values in so many parts, as even as can be.

    >>> list(parts([1, 2, 3, 4, 5], 2)), list(parts([1, 2], 5))
    ([[1, 2], [3, 4, 5]], [[1], [2]])
    """
    count = min(count, len(values))
    for number in range(count):
        yield values[number * len(values) // count : (number + 1) * len(values) // count]


def mixed(cells: Sequence[Shade]) -> Shade:
    """Return what stands for several cells: the mean, in the colour of the darkest."""
    return Shade(sum(cell.share for cell in cells) / len(cells), max(cells, key=lambda cell: cell.share).colour)


def _repeated(text: str, times: int) -> str:
    return "".join(character * times for character in text)


def _axis(ends: tuple[str, str], front: int, width: int) -> str:
    start, end = ends
    return f"{'':{front}} {start}{end.rjust(max(width - len(start), len(end) + 3))}"


def _width(labels: Iterable[str]) -> int:
    return min(max(map(len, labels), default=0), LONGEST)
