"""Writes a report as a workbook: a sheet for each section, numbers in ms and MB with every digit, charts as pictures.

The verdict comes first, then kernels. The tables of a section are below each other, its charts beside them.

Texts stay texts: nothing in a trace becomes a formula or a link. Limits are those of Excel: names of sheets have
up to 31 characters without `[]:*?/\\`, cells up to 32,767, whole numbers 15 digits.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xlsxwriter

from rocpd.report.model import Block, Counts, Figure, Findings, Folded, Name, Report, Table, Text
from rocpd.report.writers.cells import word
from rocpd.report.writers.pictures import ZOOM, png_of
from rocpd.table.cell import one_line, shorten
from rocpd.table.human import CHANCE, spark

_MADE = datetime(2000, 1, 1, tzinfo=UTC)  # a fixed date, so that bytes are the same each time
_LONGEST = 32_000  # characters
_EXACT = 10**15
_UNITS = {"ns": ("ms", 1e6), "bytes": ("MB", 1e6)}  # units for people
_FORMATS = {"%": "0.00", CHANCE: "0.000000", "GiB/s": "0.00", "GB/s": "0.00", "ns": "#,##0.000", "bytes": "#,##0.0"}
_FIRST = ("kernels", "budget", "collectives", "idle", "steps")  # sheets after the verdict
_MOST_SHEETS = 12
_LINE = 20  # px: height of a row
_WIDEST = 60  # characters of a column
_NAME = 31  # characters of the name of a sheet


def write_xlsx(report: Report, path: Path) -> None:
    """Write the workbook; it is built in memory, since xlsxwriter would leave temporary files behind an error."""
    content = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = xlsxwriter.Workbook(content, {**options, "nan_inf_to_errors": True, "in_memory": True})
    book.set_properties({"title": one_line(report.title), "created": _MADE, "comments": report.made_by})
    _about(book, report)
    filled = [each for each in report.sections if any(isinstance(block, Figure | Table) for block in each.blocks)]
    places = {name: number for number, name in enumerate(_FIRST)}
    filled.sort(key=lambda section: places.get(section.name, len(places)))
    rest = filled[_MOST_SHEETS - 2 :] if len(filled) >= _MOST_SHEETS else []
    for section in filled[: len(filled) - len(rest)]:
        _blocks(book, section.title, section.blocks)
    if rest:
        _blocks(book, "More", [block for section in rest for block in section.blocks])
    book.close()
    path.write_bytes(content.getvalue())  # no view of it, which would live on after an error of a full disk


def _blocks(book: Any, title: str, blocks: Iterable[Block]) -> None:
    """Write a sheet with tables below each other, and charts beside them."""
    sheet, row, charts = _sheet(book, title), 0, 1
    known = [block for block in blocks if isinstance(block, Figure | Table)]
    tables = [block.table if isinstance(block, Figure) else block for block in known]
    right = max(len(table.columns) for table in tables) + 2
    for table in tables:
        row = _table(book, sheet, table, row)
    for place in range(right - 1):
        texts = [_width(row[place]) for table in tables for row in table.rows[:100] if place < len(row)]
        names = [len(table.columns[place].name) + 3 for table in tables if place < len(table.columns)]
        sheet.set_column(place, place, min(_WIDEST, max([8, *names, *texts])))
    for figure in known:
        if isinstance(figure, Figure):
            scale = {"x_scale": 1 / ZOOM, "y_scale": 1 / ZOOM, "description": figure.chart.title}
            sheet.insert_image(charts, right, f"{figure.name}.png", {"image_data": io.BytesIO(png_of(figure)), **scale})
            charts += int(figure.drawing.height / _LINE) + 3


def _sheet(book: Any, title: str) -> Any:
    """Add a sheet that is printed as wide as a page, under a unique name that Excel takes."""
    plain = re.sub(r"[\[\]:*?/\\']+", " ", one_line(title)).strip() or "table"
    taken = {"history", *map(str.lower, book.sheetnames)}
    ends = (f" {number}" if number else "" for number in (0, *range(2, 1000)))
    cut = plain[: _NAME + 1].rpartition(", " if ", " in plain[:_NAME] else " ")[0]  # at a comma, or at a word
    short = plain if len(plain) <= _NAME else cut or plain
    names = (short[: _NAME - len(end)].rstrip() + end for end in ends)
    sheet = book.add_worksheet(next(name for name in names if name.lower() not in taken))
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    return sheet


def _about(book: Any, report: Report) -> None:
    """Write the first sheet: the findings, and sections without tables."""
    sheet = _sheet(book, "Verdict")
    bold, wrapped = (book.add_format({look: True, "valign": "top"}) for look in ("bold", "text_wrap"))
    sheet.set_column(0, 0, 14)
    sheet.set_column(1, 1, 110, wrapped)
    rows: list[tuple[str, str]] = [("", report.title), ("made by", report.made_by), ("inputs", report.inputs)]
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Findings):
                for conclusion in block.conclusions:
                    rows.append((word(conclusion.finding).removesuffix(": "), conclusion.finding.text))
                    rows += conclusion.notes
            elif isinstance(block, Text):
                rows.append((section.title, block.text))
            elif isinstance(block, Folded):
                rows += (("", text) for text in (f"{block.title}:", *block.lines))
    for number, (head, text) in enumerate(rows):
        sheet.write_string(number, 0, one_line(head), bold)
        sheet.write_string(number, 1, _short(text))
        sheet.set_row(number, 15 * -(-max(1, len(text)) // 110))


def _table(book: Any, sheet: Any, table: Table, top: int) -> int:
    """Write a table from row `top` on: title, units, heads, rows; full names of kernels are in a last column.

    Returns:
        the first row after it.
    """
    dim, bold = book.add_format({"italic": True, "font_color": "#666666"}), book.add_format({"bold": True, "bottom": 1})
    full = [[cell.full for cell in row if isinstance(cell, Name)] for row in table.rows]
    scales = [_UNITS.get(column.unit, (column.unit, 1)) for column in table.columns]
    heads = [(column.name, unit, column.doc) for column, (unit, _) in zip(table.columns, scales, strict=True)]
    heads += [("full name", "", "of the kernel")] if any(full) else []
    formats = [book.add_format({"num_format": _FORMATS.get(column.unit, "#,##0")}) for column in table.columns]
    real = book.add_format({"num_format": "#,##0.00"})
    sheet.write_string(top, 0, _short(table.title), book.add_format({"bold": True, "font_size": 12}))
    for place, (name, unit, doc) in enumerate(heads):
        sheet.write_string(top + 1, place, unit, dim)
        sheet.write_string(top + 2, place, one_line(name), bold)
        sheet.write_comment(top + 2, place, _short(doc), {"x_scale": 2}) if doc else None
    for number, row in enumerate(table.rows):
        for place, (cell, (unit, size)) in enumerate(zip(row, scales, strict=True)):
            is_scaled = size != 1 and isinstance(cell, (int, float))
            form = real if isinstance(cell, float) and not unit else formats[place]
            _cell(sheet, top + 3 + number, place, cell / size if is_scaled else cell, form)
        if full[number]:
            sheet.write_string(top + 3 + number, len(row), _short(", ".join(full[number])))
    end = top + 3 + len(table.rows)
    if table.rows and not top:  # a sheet has one filter
        sheet.freeze_panes(3, 1)
        sheet.autofilter(2, 0, end - 1, len(heads) - 1)
    if table.total > len(table.rows):
        sheet.write_string(end, 0, _short(f"{table.total} rows in all: {table.command}"), dim)
    return end + 2


def _cell(sheet: Any, row: int, place: int, cell: object, form: Any) -> None:
    is_number = isinstance(cell, (int, float)) and not isinstance(cell, bool) and abs(cell) < _EXACT
    if cell is None:
        sheet.write_blank(row, place, None)
    elif is_number and cell == cell:
        sheet.write_number(row, place, cell, form)
    else:
        sheet.write_string(row, place, _short(_text(cell)))


def _text(cell: object) -> str:
    if isinstance(cell, Counts):
        return spark(cell.counts)
    return cell.short if isinstance(cell, Name) else "" if cell is None else one_line(cell)


def _width(cell: object) -> int:
    """Return the approximate length of a cell [characters]."""
    return len(f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else _text(cell)) + 1


def _short(text: str) -> str:
    return shorten(one_line(text), _LONGEST)
