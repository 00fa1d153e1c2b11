"""Owns pictures that are as small as a word, of Unicode's block elements (U+2581 to U+2593). Knows no colour."""

from __future__ import annotations

from collections.abc import Sequence

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


def spark(values: Sequence[float | None], most: float | None = None) -> str:
    """Return values as columns of one line; whatever is not 0 is seen.

    Args:
        values: none below 0; None: there is none.
        most: what fills a column; None: the largest of them.

    >>> spark([1, 0, 5, 100]), spark([]), spark([0, None]), spark([5, 5], 10)
    ('▁ ▁█', '', '  ', '▄▄')
    """
    top = most or max((value for value in values if value), default=0.0)
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
