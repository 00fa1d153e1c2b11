"""Rows as a Markdown table (GitHub's form)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rocpd.base import Row
from rocpd.table import Sheet
from rocpd.table.cell import one_line

_ENTITY = re.compile(r"&(?=#?\w+;)")
_EMPHASIS = re.compile(r"[*~]|(?<!\w)_+|_+(?!\w)")  # within a word _ has no effect


def write_markdown(
    columns: Sequence[str], rows: Iterator[Row], out: TextIO, right: Sequence[bool] | None = None
) -> None:
    """Write a header and all rows; `right`: whether each column is right-aligned, by default columns of numbers."""
    first = next(rows, None)
    numeric = right or ([isinstance(value, (int, float)) for value in first] if first else [False] * len(columns))
    _line(list(columns), out)
    _line(["---:" if right else "---" for right in numeric], out)
    if first:
        _line(first, out)
    for row in rows:
        _line(row, out)


def write_markdown_page(sheets: Iterable[Sheet], out: TextIO) -> None:
    """Write for each sheet its heading, its description, and its table."""
    for number, sheet in enumerate(sheets):
        out.write("\n" if number else "")
        out.writelines(f"**{inline(line)}**\n\n" for line in sheet.lines)
        out.write(f"## {one_line(sheet.title)}\n\n{sheet.doc}\n\n")
        write_markdown(sheet.columns, sheet.rows, out, sheet.right)


def _line(values: Sequence[object], out: TextIO) -> None:
    out.write(f"| {' | '.join(map(inline, values))} |\n")


def inline(value: object) -> str:
    """Return a value as text on one line in which no character is markup, except backticks."""
    text = _ENTITY.sub("&amp;", one_line(value))
    text = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    text = _EMPHASIS.sub(lambda marks: "".join(f"\\{mark}" for mark in marks[0]), text)
    return text.replace("](", "]\\(")  # no link and no picture, which a page would load
