"""Writes a report as PDF: pages in A4, charts as vectors, a font of its own, bookmarks for sections.

The font is Roboto, for code Courier: characters that it lacks are written as `\\uNNNN`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import XPos, YPos
from PIL import Image

from rocpd.base import amount
from rocpd.chart.draw import SIZE, Dot, Drawing, Pixels, Rect, Stroke, Word
from rocpd.report import model
from rocpd.report.writers.cells import heads, rest, shown, word
from rocpd.table.cell import one_line, shorten, shorten_apart
from rocpd.table.human import readable
from rocpd.table.palette import GREEN, GREY, RED

_MADE = datetime(2000, 1, 1, tzinfo=UTC)  # a fixed date, so that bytes are the same each time
_MARGIN, _LINE = 12.0, 4.2  # mm
_MOST_ROWS = 40
_SMALLEST = 0.75  # least share of its size to which a chart is shrunk, before it starts a page
_SHARP = 8  # times the resolution of pictures: readers blur pixels
_LONGEST, _LONGEST_CELL = 800, 96  # characters of a paragraph, of a cell
_CODE = 0.9  # size of code relative to the text around it
_OF_CODE = ("command", "change")  # columns
_TOGETHER = 12  # rows of a table that stay on one page
_SQUEEZED = 1.25  # times the width of the page: columns that need more can't be read
_WIDE = 32.0  # mm: width in which a name in a squeezed column can be read
_FEW = 3  # columns that have room for long cells
_LEAST = 12  # least length of names that are shortened together [characters]
_WIDEST_HEAD = 26.0  # mm
_SCALED = ("", "ns", "bytes", "%", "GB/s", "GiB/s", "GiB", "MHz", "ppm")  # units without which numbers say nothing
_INK, _DIM = (28, 30, 33), (86, 91, 98)


def write_pdf(report: model.Report, path: Path) -> None:
    """Write the pages."""
    pages = _Pages(report.title)
    pages.about(report)
    for section in report.sections:
        pages.section(section)
    pages.output(str(path))


class _Pages(FPDF):
    """Pages on which text, tables and drawings follow each other."""

    def __init__(self, name: str) -> None:
        import font_roboto

        super().__init__(format="A4")
        self.add_font("roboto", "", font_roboto.Roboto)
        self.add_font("roboto", "B", font_roboto.RobotoBold)
        self._known = self.fonts["roboto"].cmap  # type: ignore[union-attr]
        self.set_creation_date(_MADE)
        self.set_title(one_line(name))
        self.set_lang("en")
        self.set_margin(_MARGIN)
        self.set_auto_page_break(True, 15)
        self.add_page()

    def footer(self) -> None:
        """Number the pages."""
        self.set_y(-10)
        self._font(8, _DIM)
        self.cell(0, 4, str(self.page_no()), align="R")

    def about(self, report: model.Report) -> None:
        """Write the title, the inputs and the version."""
        self._paragraph(report.title, 15, 7, is_bold=True)
        self._paragraph(f"{report.inputs} · made by {report.made_by}")

    def section(self, section: model.Section) -> None:
        """Write a section; it is a bookmark."""
        self._room(15 + max(map(self._least, section.blocks[:1]), default=15))
        self.ln(5)
        self.start_section(self._shown(section.title))
        self._paragraph(section.title, 12, 6, is_bold=True)
        self.set_draw_color(*GREY)
        self.line(_MARGIN, self.y, self.w - _MARGIN, self.y)
        self.ln(1.5)
        for block in section.blocks:
            self._block(block)

    def _least(self, block: model.Block) -> float:
        """Return the height of the start of a block that must not be divided [mm]."""
        match block:
            case model.Figure():
                return _SMALLEST * block.drawing.height * self._scale(block.drawing) + 15
            case model.Table():
                rows = len(block.rows)
                return 20 + _LINE * (rows if rows <= _TOGETHER else 2)
            case _:
                return 12

    def _block(self, block: model.Block) -> None:
        match block:
            case model.Text():
                self._font(9.5)
                self._indented(block.text, 0, 4.6)
            case model.Folded():
                self._room(self._least(block))
                self._paragraph(f"{block.title}:")
                for line in block.lines:
                    self._indented(line, 3, 4)
                self.ln(2)
            case model.Findings():
                for conclusion in block.conclusions:
                    self._conclusion(conclusion)
            case model.Table():
                self._table(block)
            case model.Figure():
                self._room(self._least(block))
                self._paragraph(block.chart.title, 9.5, 5, is_bold=True)
                self._paragraph(block.description)
                self._draw(block.drawing)
                self._table(block.table)

    def _conclusion(self, conclusion: model.Conclusion) -> None:
        before = word(conclusion.finding)
        colour = RED if before.startswith("Problem") else GREEN if before.startswith("Fine") else GREY
        self._room(12 + 5 * len(conclusion.notes))
        top, page = self.y, self.page
        self._font(9.5)
        self._indented(before + conclusion.finding.text, 3, 4.8)
        for name, text in conclusion.notes:
            self._font(8, _DIM)
            self.set_x(_MARGIN + 3)
            self.cell(12, 4, name)
            self._font(8)
            self._indented(f"`{text}`" if name in model.COMMANDS else text, 15, 4)
        self.set_fill_color(*colour)
        if self.page == page:
            self.rect(_MARGIN, top, 1.2, self.y - top, style="F")
        self.ln(1)

    def _indented(self, text: str, left: float, height: float) -> None:
        """Write a paragraph; parts in backquotes are code."""
        self.set_x(_MARGIN + left)
        if "`" in text:
            self._with_code(self._shown(text).split("`"), left, height)
            return
        self.multi_cell(0, height, self._shown(text), new_x=XPos.LMARGIN, new_y=YPos.NEXT, align="L")

    def _with_code(self, parts: Sequence[str], left: float, height: float) -> None:
        """Write parts of which every second one is code, in a fixed-width font if it has the characters."""
        size = self.font_size_pt
        self.set_left_margin(_MARGIN + left)
        for number, part in enumerate(parts):
            is_code = number % 2 and part.isascii()
            self.set_font("courier" if is_code else "roboto", size=size * (_CODE if is_code else 1))
            self.write(height, part)
        self.set_font("roboto", size=size)
        self.set_left_margin(_MARGIN)
        self.ln(height)

    def _paragraph(self, text: str, size: float = 8, height: float = 4, *, is_bold: bool = False) -> None:
        self._font(size, _INK if is_bold else _DIM, is_bold=is_bold)
        self._indented(text, 0, height)

    def _font(self, size: float, colour: Sequence[int] = _INK, *, is_bold: bool = False) -> None:
        self.set_font("roboto", "B" if is_bold else "", size)
        self.set_text_color(*colour)

    def _shown(self, text: str) -> str:
        """Return a text in characters that the font has."""
        line = shorten(one_line(text), _LONGEST)
        return "".join(char if ord(char) in self._known else f"\\u{ord(char):04x}" for char in line)

    def _room(self, height: float) -> None:
        """Start a page if less than `height` [mm] is left."""
        if self.y + height > self.h - 15:
            self.add_page()

    def _table(self, table: model.Table) -> None:
        self._room(self._least(table))
        self.ln(1.5)
        self._paragraph(table.title, 9.5, 5, is_bold=True)
        self._paragraph(table.doc)
        rows = [list(row) for row in table.rows[:_MOST_ROWS]]
        texts = [[self._cell_text(cell, place, table) for place, cell in enumerate(row)] for row in rows]
        names = [self._shown(name) for name in heads(table.columns)]
        widths = self._widths(names, texts, table.columns)
        left_out = len(widths) - self._readable(widths)
        if left_out:
            table, names = replace(table, columns=table.columns[:-left_out]), names[:-left_out]
            rows, texts = [row[:-left_out] for row in rows], [cells[:-left_out] for cells in texts]
        widths = self._squeezed(widths[: len(names)])
        for place in range(len(names)):
            if any(isinstance(row[place], model.Name) for row in rows):
                column = self._apart([cells[place] for cells in texts], widths[place])
                texts = [[*cells[:place], text, *cells[place + 1 :]] for cells, text in zip(texts, column, strict=True)]
        self._heads(names, widths, table)
        for row, cells in zip(rows, texts, strict=True):
            if self.y + _LINE > self.h - 15:
                self.add_page()
                self._heads(names, widths, table)
            self._row(row, cells, widths, table)
        more = rest(table, len(rows))
        for note in (more, f"{amount(left_out, 'more column')}, which HTML and xlsx have" if left_out else ""):
            self._paragraph(note) if note else None
        self.ln(2)

    def _cell_text(self, cell: object, place: int, table: model.Table) -> str:
        column = table.columns[place]
        if column.unit not in _SCALED and isinstance(cell, (int, float)):
            return readable(cell)  # the unit of a counter is longer than the number
        text = "" if isinstance(cell, model.Counts) else shown(cell, column)
        return self._shown(shorten(text, _LONGEST if len(table.columns) <= _FEW else _LONGEST_CELL))

    def _widths(
        self, names: Sequence[str], texts: Sequence[Sequence[str]], columns: Sequence[model.Column]
    ) -> list[float]:
        """Return how wide each column would be [mm]."""
        self._font(7.5, is_bold=True)
        widths = [min(_WIDEST_HEAD, self.get_string_width(name) + 2.5) for name in names]
        for place, column in enumerate(columns):
            for cells in texts:
                self._font_of(cells[place], column)
                widths[place] = max(widths[place], self.get_string_width(cells[place]) + 2.5)
        return widths

    def _readable(self, widths: Sequence[float]) -> int:
        """Return the number of columns that can be read on a page."""
        room = _SQUEEZED * (self.w - 2 * _MARGIN)
        return sum(taken <= room for taken in accumulate(min(width, _WIDE) for width in widths))

    def _squeezed(self, widths: list[float]) -> list[float]:
        """Return the width of each column on the page [mm]; wide ones shrink if all together are too wide."""
        room = self.w - 2 * _MARGIN
        while sum(widths) > room:
            widest = max(widths)
            second = max((width for width in widths if width < widest - 0.5), default=0.0)
            number = sum(width >= widest - 0.5 for width in widths)
            cut = max(second, widest - (sum(widths) - room) / number)
            widths = [min(width, cut) for width in widths]
        return [width * room / sum(widths) if sum(widths) > room * 0.6 else width for width in widths]

    def _heads(self, names: Sequence[str], widths: Sequence[float], table: model.Table) -> None:
        self._font(7.5, is_bold=True)
        self.set_fill_color(240, 241, 243)
        for name, width, column in zip(names, widths, table.columns, strict=True):
            self.cell(width, _LINE + 0.6, self._fitting(name, width), align="R" if column.is_number else "L", fill=True)
        self.ln(_LINE + 0.6)

    def _row(self, row: Sequence[object], cells: Sequence[str], widths: Sequence[float], table: model.Table) -> None:
        self._font(7.5)
        for cell, text, width, column in zip(row, cells, widths, table.columns, strict=True):
            if isinstance(cell, model.Counts):
                self._spark(cell.counts)
            self._font_of(text, column, width)
            self.cell(width, _LINE, self._fitting(text, width), align="R" if column.is_number else "L")
        self.ln(_LINE)
        self.set_draw_color(225, 227, 230)
        self.line(_MARGIN, self.y, _MARGIN + sum(widths), self.y)

    def _font_of(self, text: str, column: model.Column, width: float = math.inf) -> None:
        """Set the font of a cell: the font of code, if it has the characters and `width` [mm] is enough."""
        self.set_font("courier", size=7.5 * _CODE)
        is_code = column.name in _OF_CODE and text.isascii()
        if not is_code or self.get_string_width(text) > width - 1.5:
            self.set_font("roboto", size=7.5)

    def _apart(self, texts: Sequence[str], width: float) -> Sequence[str]:
        """Return texts shortened together to a width [mm], so that no two are equal."""
        self._font(7.5)
        short, length = texts, max(map(len, texts), default=0)
        while length > _LEAST and any(self.get_string_width(text) > width - 1.5 for text in short):
            length -= 1
            short = shorten_apart(texts, length)
        return short

    def _fitting(self, text: str, width: float) -> str:
        """Return a text shortened to a width [mm]."""
        length = len(text)
        while length > 2 and self.get_string_width(shorten(text, length)) > width - 1.5:
            length -= 1
        return shorten(text, length)

    def _spark(self, counts: Sequence[int]) -> None:
        most = max(counts, default=0) or 1
        self.set_fill_color(*_DIM)
        for place, count in enumerate(counts):
            height = max(0.2, count / most * (_LINE - 1)) if count else 0.0
            self.rect(self.x + 1 + place * 0.9, self.y + _LINE - 0.5 - height, 0.7, height, style="F")

    def _scale(self, drawing: Drawing) -> float:
        """Return the size of a px of a drawing on the page [mm]."""
        return (self.w - 2 * _MARGIN) / drawing.width

    def _draw(self, drawing: Drawing) -> None:
        """Draw a chart at the place of the next text, somewhat smaller if it then fits the page."""
        scale = self._scale(drawing)
        self._room(_SMALLEST * drawing.height * scale + 2)
        scale = min(scale, (self.h - 15 - self.y - 2) / drawing.height)
        left, top = _MARGIN, self.y
        self.set_auto_page_break(False)
        with self.local_context():
            for shape in drawing.shapes:
                self._shape(shape, left, top, scale)
        self.set_auto_page_break(True, 15)
        self.set_xy(_MARGIN, top + drawing.height * scale + 1)

    def _shape(self, shape: object, left: float, top: float, scale: float) -> None:
        match shape:
            case Rect():
                colour = [round(255 + (part - 255) * shape.opacity) for part in shape.colour]
                self.set_fill_color(*colour)
                place = (left + shape.x * scale, top + shape.y * scale)
                self.rect(*place, shape.width * scale, shape.height * scale, style="F")
            case Stroke():
                self.set_draw_color(*(shape.colour if shape.colour != GREY else (225, 227, 230)))
                self.set_line_width(shape.width * scale)
                if len(shape.points) > 1:
                    self.polyline([(left + x * scale, top + y * scale) for x, y in shape.points])
            case Dot():
                self.set_fill_color(*shape.colour)
                self.circle(left + shape.x * scale, top + shape.y * scale, shape.radius * scale, style="F")
            case Word():
                self._font(SIZE * scale / 25.4 * 72, shape.colour or (_DIM if shape.is_faint else _INK))
                text = self._shown(shape.text)
                share = {"start": 0.0, "middle": 0.5, "end": 1.0}[shape.anchor]
                x = left + (shape.x + shape.aside) * scale - share * self.get_string_width(text)
                self.text(x, top + shape.y * scale, text)
            case Pixels():
                place = (left + shape.x * scale, top + shape.y * scale)
                picture = Image.open(io.BytesIO(shape.png)).convert("RGBA")
                sharp = picture.resize((shape.columns, shape.rows * _SHARP), Image.Resampling.NEAREST)
                self.image(sharp, *place, shape.width * scale, shape.height * scale)
