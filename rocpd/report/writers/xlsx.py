"""Writes a report as a workbook: a sheet for each table, exact numbers with their unit, charts of Excel's own.

Texts stay texts: no formula and no link is made of what a trace holds. Limits are those of Excel: names of sheets have
up to 31 characters without `[]:*?/\\`, cells up to 32,767, whole numbers 15 digits.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xlsxwriter

from rocpd.chart.model import Bars, Lines, Matrix, Timeline
from rocpd.report.model import Counts, Figure, Findings, Folded, Name, Report, Table, Text
from rocpd.report.writers.cells import word
from rocpd.table.cell import one_line, shorten
from rocpd.table.human import CHANCE
from rocpd.table.pictures import spark

_MADE = datetime(2000, 1, 1, tzinfo=UTC)  # the same bytes each time
_LONGEST = 32_000  # characters
_EXACT = 10**15
_FORMATS = {"%": "0.00", CHANCE: "0.000000", "GiB/s": "0.00", "GB/s": "0.00"}
_AXES = {"ns": '0.00,," ms"', "bytes": '0.0,,," GB"'}  # a comma divides by a thousand
_WIDEST = 60  # characters of a column
_SLICES = 250  # columns of a time line


def write_xlsx(report: Report, path: Path) -> None:
    """Write the workbook; it is put together in memory, where xlsxwriter would leave temporary files if it failed."""
    content = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = xlsxwriter.Workbook(content, {**options, "nan_inf_to_errors": True, "in_memory": True})
    book.set_properties({"title": one_line(report.title), "created": _MADE, "comments": report.made_by})
    _about(book, report)
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Figure):
                _figure(book, block)
            if isinstance(block, Figure | Table):
                _table(book, block.table if isinstance(block, Figure) else block)
    book.close()
    path.write_bytes(content.getvalue())  # no view of it, which would outlive a disk that is full


def _sheet(book: Any, title: str) -> Any:
    """Add a sheet that is printed as wide as a page, with a name of its own that Excel takes."""
    plain = re.sub(r"[\[\]:*?/\\']+", " ", one_line(title)).strip() or "table"
    taken = {"history", *map(str.lower, book.sheetnames)}
    ends = (f" {number}" if number else "" for number in (0, *range(2, 1000)))
    names = (plain[: 31 - len(end)].rstrip() + end for end in ends)
    sheet = book.add_worksheet(next(name for name in names if name.lower() not in taken))
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    return sheet


def _about(book: Any, report: Report) -> None:
    """Write the first sheet: what was found, and what has no table."""
    sheet = _sheet(book, "About")
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


def _table(book: Any, table: Table) -> None:
    """Write a sheet: units, heads, rows; full names of kernels stand in a last column."""
    sheet = _sheet(book, table.title)
    dim, bold = book.add_format({"italic": True, "font_color": "#666666"}), book.add_format({"bold": True, "bottom": 1})
    full = [[cell.full for cell in row if isinstance(cell, Name)] for row in table.rows]
    heads = [(column.name, column.unit, column.doc) for column in table.columns]
    heads += [("full name", "", "of the kernel")] if any(full) else []
    formats = [book.add_format({"num_format": _FORMATS.get(column.unit, "#,##0")}) for column in table.columns]
    real = book.add_format({"num_format": "#,##0.00"})
    for place, (name, unit, doc) in enumerate(heads):
        sheet.write_string(0, place, unit, dim)
        sheet.write_string(1, place, one_line(name), bold)
        sheet.write_comment(1, place, _short(doc), {"x_scale": 2}) if doc else None
    for number, row in enumerate(table.rows, 2):
        for place, cell in enumerate(row):
            is_real = isinstance(cell, float) and not table.columns[place].unit
            _cell(sheet, number, place, cell, real if is_real else formats[place])
        if full[number - 2]:
            sheet.write_string(number, len(row), _short(", ".join(full[number - 2])))
    for place, (name, _, _) in enumerate(heads):
        texts = [_width(row[place]) for row in table.rows[:100] if place < len(row)]
        sheet.set_column(place, place, min(_WIDEST, max(len(name) + 3, *texts, 8)))
    sheet.freeze_panes(2, 1)
    if table.rows:
        sheet.autofilter(1, 0, len(table.rows) + 1, len(heads) - 1)
    if table.total > len(table.rows):
        sheet.write_string(len(table.rows) + 3, 0, _short(f"{table.total} rows in all: {table.command}"), dim)


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
    """Return about how many characters a cell takes."""
    return len(f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else _text(cell)) + 1


def _short(text: str) -> str:
    return shorten(one_line(text), _LONGEST)


def _figure(book: Any, figure: Figure) -> None:
    """Write a sheet with what a chart shows, and the chart."""
    chart = figure.chart
    sheet = _sheet(book, f"{figure.name} chart")
    sheet.write_string(0, 0, _short(figure.description))
    match chart:
        case Bars():
            _bars(book, sheet, chart)
        case Lines():
            _lines(book, sheet, chart)
        case Matrix():
            head = f"{chart.axes[0]} \\ {chart.axes[1]} [{chart.unit}]"
            _heat(book, sheet, [[head, *chart.columns], *map(_named, chart.rows, chart.values)])
        case Timeline():
            starts, busy = chart.folded(_SLICES)
            percents = ([round(share * 100) for share in row] for row in busy)
            _heat(book, sheet, [["busy [%] at [ns]", *starts], *map(_named, chart.rows, percents)], are_hidden=True)


def _grid(sheet: Any, rows: Sequence[Sequence[object]], form: Any = None, left: int = 0) -> None:
    """Write rows from the third line on; `left`: the first column."""
    for number, row in enumerate(rows, 2):
        for place, cell in enumerate(row, left):
            _cell(sheet, number, place, cell, form)


def _bars(book: Any, sheet: Any, chart: Bars) -> None:
    series: list[tuple[str, dict[str, object], Sequence[float]]] = []
    series += [("from", {"none": True}, chart.starts)] if chart.starts else []
    series += [(part.name, {"color": part.colour.hex}, part.values) for part in chart.parts]
    heads = ["", *(f"{name} [{chart.unit}]" if chart.unit else name for name, *_ in series)]
    values = [(label, *(numbers[row] for *_, numbers in series)) for row, label in enumerate(chart.labels)]
    _grid(sheet, [heads, *values])
    drawn = book.add_chart({"type": "bar", "subtype": "stacked"})
    last = len(values) + 2
    for place, (_, fill, _) in enumerate(series, 1):
        drawn.add_series({**_series(sheet, 0, place, last), "fill": fill, "gap": 40})
    drawn.set_x_axis({"num_format": _AXES.get(chart.unit, "General"), "min": min(chart.starts, default=None)})
    drawn.set_y_axis({"reverse": True})
    drawn.set_legend({"position": "bottom", "delete_series": [0] if chart.starts else None})
    sheet.set_column(0, 0, min(_WIDEST, max(map(len, chart.labels), default=8)))
    _insert(sheet, drawn, chart, len(series) + 2, max(320, 20 * len(values)))


def _lines(book: Any, sheet: Any, chart: Lines) -> None:
    drawn = book.add_chart({"type": "scatter", "subtype": "straight"})
    for number, series in enumerate(chart.series):
        left, last = number * 2, len(series.points) + 2
        _grid(sheet, [(f"[{chart.x_unit}]", f"{series.name} [{chart.y_unit}]"), *series.points], left=left)
        line = {"color": series.colour.hex, "width": 1.5}
        drawn.add_series({**_series(sheet, left, left + 1, last), "line": line})
    drawn.set_x_axis({"num_format": _AXES.get(chart.x_unit, "General")})
    drawn.set_y_axis({"num_format": _AXES.get(chart.y_unit, "General")})
    drawn.set_legend({"position": "bottom"})
    _insert(sheet, drawn, chart, len(chart.series) * 2 + 1, 360)


def _series(sheet: Any, front: int, place: int, last: int) -> dict[str, object]:
    """Return where a series stands: its name and values in a column, what these belong to in the column `front`."""
    categories, values = ([sheet.name, 3, column, last, column] for column in (front, place))
    return {"name": [sheet.name, 2, place], "categories": categories, "values": values}


def _insert(sheet: Any, drawn: Any, chart: Bars | Lines, place: int, height: int) -> None:
    if not drawn.series:  # Excel takes no empty chart
        return
    drawn.set_title({"name": chart.title, "name_font": {"size": 12}})
    drawn.set_size({"width": 900, "height": height})
    sheet.insert_chart(1, place, drawn, {"description": chart.title})


def _named(name: str, values: Iterable[object]) -> list[object]:
    return [name, *values]


def _heat(book: Any, sheet: Any, rows: Sequence[Sequence[object]], *, are_hidden: bool = False) -> None:
    """Write values with colours that say how large they are; `are_hidden`: the colours alone are seen."""
    _grid(sheet, rows, book.add_format({"num_format": ";;;"}) if are_hidden else None)
    if len(rows) > 1:
        colours = {"type": "2_color_scale", "min_color": "#ffffff", "max_color": "#d55e00"}
        sheet.conditional_format(3, 1, len(rows) + 1, len(rows[0]) - 1, colours)
    if are_hidden:  # numbers stand in the cells
        sheet.set_column(1, len(rows[0]) - 1, 1)
    sheet.freeze_panes(3, 1)
