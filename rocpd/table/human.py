"""Owns tables for people: times, sizes and shares in suitable units; fewer columns on narrow terminals.

csv, json and parquet, which programs read, keep every digit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TextIO

from rocpd.table.cell import one_line, shorten_apart
from rocpd.table.console import all_numbers, draw, fit, write_plain
from rocpd.types import Row

_SCALES = {
    "ns": (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)),
    "bytes": (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40)),
}
_LONGEST = 60  # characters of a text in a pipe: names of kernels reach thousands
_GAP = 2  # between columns
_SHORTEST = 16  # texts are not cut below this
_WHOLE = 36  # texts that matter stay as long as this while other columns can go
_SUFFIXES = {"ns": "_ns", "bytes": "_bytes"}


class Head(NamedTuple):
    """The head of a column: name, unit (`ns`, `bytes`, `%` … or nothing), whether it can be left out, or matters most.

    A column that matters is cut only where leaving out all others that can be is not enough.
    """

    name: str
    unit: str = ""
    minor: bool = False
    matters: bool = False


class LeftOut(NamedTuple):
    """What is not shown: whether there are more rows, and the names of columns that did not fit."""

    rows: bool
    columns: tuple[str, ...]


def write_readable(
    columns: Sequence[Head],
    rows: Iterator[Row],
    out: TextIO,
    limit: int = 0,
    width: int | None = None,
) -> LeftOut:
    """Write up to `limit` rows (0: all).

    Args:
        columns: their heads.
        rows: values as they are; times in ns.
        out: text file.
        limit: most rows to show; 0 shows all.
        width: columns of the terminal, None for a pipe: then no column is left out.

    Returns:
        what is not shown.
    """
    shown = list(itertools.islice(rows, limit)) if limit else list(rows)
    more = bool(limit) and next(rows, None) is not None
    most = _LONGEST if width is None else width
    by_column = list(zip(columns, zip(*shown, strict=True) if shown else [()] * len(columns), strict=True))
    texts = [shorten_apart([readable(value, column.unit) for value in values], most) for column, values in by_column]
    right = [bool(column.unit) or all_numbers(values) for column, values in by_column]
    names = [heading(column) for column in columns]
    chosen = list(range(len(columns))) if width is None else _fitting(columns, names, texts, width)
    cells = [list(row) for row in zip(*(texts[i] for i in chosen), strict=True)]
    _draw([names[i] for i in chosen], cells, [right[i] for i in chosen], out, width)
    return LeftOut(more, tuple(column.name for i, column in enumerate(columns) if i not in chosen))


def _draw(names: list[str], cells: list[list[str]], right: list[bool], out: TextIO, width: int | None) -> None:
    """Write the table with its texts shortened to fit; one that is still too wide is drawn in blocks."""
    natural = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    room = sum(natural) if width is None else width - _GAP * (len(names) - 1)
    widths = fit(natural, [len(name) for name in names], room, _SHORTEST)
    if widths is None:
        draw(names, cells, right, out, width)
        return
    columns = zip(zip(*cells, strict=True), widths, strict=bool(cells))
    fitted = [list(row) for row in zip(*(shorten_apart(texts, most) for texts, most in columns), strict=True)]
    write_plain(names, fitted, right, out)


def heading(column: Head) -> str:
    """Return the name of a column without its unit, which the cells have.

    >>> heading(Head("total_ns", "ns")), heading(Head("bytes", "bytes"))
    ('total', 'bytes')
    """
    return one_line(column.name.removesuffix(_SUFFIXES.get(column.unit, "\0")))


def readable(value: Any, unit: str = "") -> str:
    """Return a value with three significant digits, in a suitable unit; NULL is a dash.

    >>> readable(1234567, "ns"), readable(3 * 2**30, "bytes"), readable(12.345, "%"), readable(1234567), readable(None)
    ('1.23 ms', '3.00 GiB', '12.3 %', '1234567', '-')
    """
    if value is None:
        return "-"
    if not isinstance(value, (int, float)):
        return one_line(value)
    if unit in _SCALES:
        return _scaled(value, _SCALES[unit])
    if unit:
        return f"{_three(value)} {unit}"
    return _three(value) if isinstance(value, float) else str(value)


def _scaled(value: float, scale: Sequence[tuple[str, float]]) -> str:
    name, size = scale[0]
    for name, size in scale:  # noqa: B007 (the last one stays when none is large enough)
        if abs(value) / size < 999.5:
            break
    if size == 1 and float(value).is_integer():
        return f"{int(value)} {name}"
    return f"{_three(value / size)} {name}"


def _three(value: float) -> str:
    """Three significant digits, without an exponent below a million million."""
    size = abs(value)
    if size >= 1e12 or 0 < size < 0.0005:
        return f"{value:.3g}"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{3 if size < 0.1 and size else digits}f}"


def _fitting(columns: Sequence[Head], names: Sequence[str], texts: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the indices of columns: minor ones go, the last first, until the others fit with shortened texts."""
    least = []
    for column, name, cells in zip(columns, names, texts, strict=True):
        widest = max(map(len, (name, *cells)))
        shortest = _WHOLE if column.matters else _SHORTEST
        least.append(widest if column.unit else min(widest, max(shortest, len(name))))
    chosen = list(range(len(columns)))
    for index in reversed(range(len(columns))):
        if sum(least[i] for i in chosen) + _GAP * (len(chosen) - 1) <= width:
            break
        if columns[index].minor:
            chosen.remove(index)
    return chosen
