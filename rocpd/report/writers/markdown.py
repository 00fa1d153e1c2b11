"""Writes a report as Markdown, in GitHub's form, with charts as far as text can show them; and as a Jupyter notebook.

A notebook holds outputs: it shows all without a kernel, and runs again with one. Its format is nbformat 4.5, whose JSON
is written here; tests check it with the schema of the package of this name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from rocpd.chart.draw import svg
from rocpd.chart.model import Timeline
from rocpd.report.model import COMMANDS, Block, Conclusion, Figure, Findings, Folded, Report, Table, Text
from rocpd.report.writers.cells import MOST_ROWS, heads, lines, rest, word
from rocpd.report.writers.html import table_html
from rocpd.table import markdown
from rocpd.table.cell import one_line
from rocpd.table.human import shade

_WIDTH, _MOST_RANKS = 100, 64  # of a time line: characters, ranks


def write_markdown(report: Report, path: Path) -> None:
    """Write the text."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
        out.write(f"# {markdown.inline(report.title)}\n\n")
        for section in report.sections:
            out.write(f"## {markdown.inline(section.title)}\n\n")
            for block in section.blocks:
                _block(block, out)
        out.write(f"Made by {markdown.inline(report.made_by)}.\n")


def _block(block: Block, out: TextIO) -> None:
    match block:
        case Text() | Folded() | Findings():
            out.write(f"{_plain(block)}\n\n")
        case Table():
            _table(block, out)
        case Figure():
            out.write(f"**{markdown.inline(block.chart.title)}.** {markdown.inline(block.description)}\n\n")
            if isinstance(block.chart, Timeline):
                out.writelines(["```text\n", *_timeline(block.chart), "```\n\n"])
            _table(block.table, out)


def _plain(block: Text | Folded | Findings) -> str:
    """Return a block that is neither table nor chart, as Markdown: findings and folded lines are lists."""
    match block:
        case Text():
            return markdown.inline(block.text)
        case Folded():
            items = (f"- {markdown.inline(line)}" for line in block.lines)
            return "\n".join([f"{markdown.inline(block.title)}:", "", *items])
        case Findings():
            return "\n".join(line for conclusion in block.conclusions for line in _conclusion_lines(conclusion))


def _conclusion_lines(conclusion: Conclusion) -> Iterator[str]:
    """Yield a finding as an item of a list, and the lines below it as items of their own."""
    before = f"**{word(conclusion.finding).rstrip()}** " if word(conclusion.finding) else ""
    yield f"- {before}{markdown.inline(conclusion.finding.text)}"
    for name, text in conclusion.notes:
        yield f"  - {name}: {f'`{one_line(text)}`' if name in COMMANDS else markdown.inline(text)}"


def _table(table: Table, out: TextIO) -> None:
    out.write(f"### {markdown.inline(table.title)}\n\n{markdown.inline(table.doc)}\n\n")
    rows = lines(table)
    markdown.write_markdown(heads(table.columns), map(tuple, rows), out, [column.is_number for column in table.columns])
    more = rest(table, min(len(rows), MOST_ROWS))
    out.write(f"\n{markdown.inline(more)}\n\n" if more else "\n")


def _timeline(chart: Timeline) -> Iterator[str]:
    """Yield the busy share of each row over time, one line per row."""
    width = max(map(len, chart.rows), default=0)
    _, rows = chart.folded(_WIDTH)
    for name, busy in islice(zip(chart.rows, rows, strict=True), _MOST_RANKS):
        yield f"{name:{width}} {''.join(map(shade, busy)).rstrip()}\n"


def write_notebook(report: Report, path: Path) -> None:
    """Write the notebook."""
    cells = [_text_cell(f"# {markdown.inline(report.title)}\n\nMade by {markdown.inline(report.made_by)}.")]
    imports = "import rocpd" + ("\nfrom rocpd.compare.tables import tables_of" if "tables_of" in report.connect else "")
    cells.append(_code_cell(f"{imports}\n\nsession = {report.connect}"))
    for section in report.sections:
        cells.append(_text_cell(f"## {markdown.inline(section.title)}"))
        cells += [cell for block in section.blocks for cell in _cells(block)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def _cells(block: Block) -> Iterator[dict[str, Any]]:
    match block:
        case Text() | Folded() | Findings():
            yield _text_cell(_plain(block))
        case Table():
            yield from _table_cells(block)
        case Figure():
            title = f"**{markdown.inline(block.chart.title)}.** {markdown.inline(block.description)}"
            picture = {"image/svg+xml": svg(block.drawing, block.chart.title, block.description)}
            yield _text_cell(title)
            yield _code_cell(block.code, {**picture, "text/plain": f"<chart: {block.chart.title}>"})
            yield from _table_cells(block.table)


def _table_cells(table: Table) -> Iterator[dict[str, Any]]:
    more = rest(table, len(lines(table)))
    about = f"**{markdown.inline(table.title)}.** {markdown.inline(table.doc)} {markdown.inline(more)}"
    yield _text_cell(about.rstrip())
    plain = "\n".join("\t".join(cells) for cells in [heads(table.columns), *lines(table)])
    data = {"text/html": "".join(table_html(table)), "text/plain": plain}
    if table.code:
        yield _code_cell(table.code, data)
    else:
        yield _text_cell(data["text/html"])


def _text_cell(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code_cell(source: str, data: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a cell of code, with its output if there is one."""
    output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
    outputs, count = ([output], 1) if data else ([], None)
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": outputs, "execution_count": count}
