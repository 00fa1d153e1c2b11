"""Owns rows for people: an aligned table on a terminal or in a pipe, cut to a number of rows.

A row that is wider than the terminal even with shortened names is shown as a block, one column a line.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO, TypeAlias

from rocpd.base.types import Row
from rocpd.table.cell import one_line, shorten
from rocpd.table.screen import Screen

Paint: TypeAlias = Callable[[str, int, int], str]
"""Colours the text of a cell, by the number of its row (-2: the names, -1: the rule below them) and its column."""

SHORTEST = 24
"""Cells are not cut below this to make a table fit."""


def write_console(
    columns: Sequence[str], rows: Iterator[Row], out: TextIO, limit: int = 0, screen: Screen | None = None
) -> bool:
    """Write up to `limit` rows (0: all) as text.

    Args:
        columns: names.
        rows: values.
        out: where to; rich draws the table when `screen` is given.
        limit: most rows to show; 0 shows all.
        screen: the terminal, None for a pipe: then nothing is shortened.

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


def draw(columns: Sequence[str], cells: list[list[str]], right: list[bool], out: TextIO, screen: Screen | None) -> None:
    """Write cells that are text already; `right` says which columns are right-aligned, `screen` as above."""
    if screen is None:
        write_plain(columns, cells, right, out)
    else:
        _write_terminal(columns, cells, right, out, screen)


def all_numbers(values: Iterable[Any]) -> bool:
    """Whether values are numbers or NULL: they are right-aligned."""
    return all(value is None or isinstance(value, (int, float)) for value in values)


def _readable(value: Any) -> str:
    """On a terminal reals get four decimals: eyes compare them; pipes and files get every digit."""
    if isinstance(value, float) and 0.001 <= abs(value) < 1e15:
        return f"{value:.4f}"
    return one_line(value)


def write_plain(
    columns: Sequence[str],
    cells: list[list[str]],
    right: list[bool],
    out: TextIO,
    paint: Paint | None = None,
) -> None:
    """Write an aligned table in plain text, two spaces between columns; `paint` colours what has its width already."""
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for number, line in enumerate((list(columns), ["-" * w for w in widths], *cells), -2):
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)]
        if paint:
            padded = [paint(text, number, column) if text.strip() else text for column, text in enumerate(padded)]
        out.write("  ".join(padded).rstrip() + "\n")


def _write_terminal(
    columns: Sequence[str], cells: list[list[str]], right: list[bool], out: TextIO, screen: Screen
) -> None:
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
