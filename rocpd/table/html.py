"""Rows as HTML: a complete page, or only the table for notebooks. It has no scripts and loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from rocpd.base import Row
from rocpd.table import Sheet
from rocpd.table.cell import one_line

_QUOTED = re.compile("`([^`]+)`")
_OPTION = re.compile(r"(?<!\S)--?\w[\w-]*")


def style() -> str:
    """Return the style of all pages: light and dark, for screens and paper."""
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def page_head(title: str) -> str:
    """Return the start of a page, up to its body, which ends with `PAGE_END`."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>\n{style()}</style></head><body>'
    )


def quoted(escaped: str) -> str:
    """Return escaped text with markup for commands in backquotes.

    >>> quoted("`rocpd info` says more")
    '<code>rocpd info</code> says more'
    """
    return _QUOTED.sub(lambda match: command(match[1]), escaped)


def command(escaped: str) -> str:
    """Return an escaped command with markup; its options are not broken after their dashes.

    >>> command("rocpd summary --by rank")
    '<code>rocpd summary <span>--by</span> rank</code>'
    """
    words = _OPTION.sub(r"<span>\g<0></span>", escaped)
    return f"<code>{words}</code>"


PAGE_END = "</main></body></html>\n"


def write_html(columns: Sequence[str], rows: Iterator[Row], out: TextIO) -> None:
    """Write one page with one table; memory stays flat."""
    write_html_page([Sheet("", "", columns, rows)], out)


def write_html_page(sheets: Iterable[Sheet], out: TextIO) -> None:
    """Write one page with a heading and a table for each sheet."""
    out.write(f'{page_head("rocpd")}<main class="wide">\n')
    for sheet in sheets:
        write_html_lines(sheet.lines, out)
        title = escape(one_line(sheet.title))
        out.write(f"<h2>{title}</h2>\n" if title else "")
        out.write(f'<div class="across" tabindex="0" role="region" aria-label="{title or "table"}">\n')
        write_html_table(sheet.columns, sheet.rows, out, sheet.right)
        out.write("</div>\n")
    out.write(PAGE_END)


def write_html_lines(lines: Iterable[str], out: TextIO) -> None:
    """Write sentences above a table."""
    out.writelines(f"<p><strong>{escape(one_line(line))}</strong></p>\n" for line in lines)


def write_html_table(
    columns: Sequence[str], rows: Iterator[Row], out: TextIO, right: Sequence[bool] | None = None
) -> None:
    """Write only the table; `right`: whether each column is right-aligned, by default columns of numbers."""
    first = list(islice(rows, 1))
    numbers = right or [isinstance(value, (int, float)) for row in first for value in row] or [False] * len(columns)
    heads = "".join(_cell(name, is_right, "th") for name, is_right in zip(columns, numbers, strict=True))
    out.write(f"<table><thead><tr>{heads}</tr></thead><tbody>\n")
    for row in chain(first, rows):
        aligned = right or [isinstance(value, (int, float)) for value in row]
        out.write(f"<tr>{''.join(map(_cell, row, aligned))}</tr>\n")
    out.write("</tbody></table>\n")


def _cell(value: object, is_right: bool, element: str = "td") -> str:
    kind = ' class="n"' if is_right else ""
    return f"<{element}{kind}>{escape(one_line(value))}</{element}>"
