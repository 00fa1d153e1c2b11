"""Writes a report as a Jupyter notebook, with outputs: it shows all without a kernel, and runs again where one is.

Format: nbformat 4.5, whose JSON is written here: the package of that name, with its schema, checks it in tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rocpd.chart.draw import draw
from rocpd.chart.svg import svg
from rocpd.report.model import Block, Figure, Findings, Folded, Report, Table, Text
from rocpd.report.writers.cells import heads, lines, rest
from rocpd.report.writers.html import table_html
from rocpd.report.writers.markdown import conclusion_lines, folded_lines
from rocpd.table.markdown import inline


def write_notebook(report: Report, path: Path) -> None:
    """Write the notebook."""
    cells = [_text(f"# {inline(report.title)}\n\nMade by {inline(report.made_by)}.")]
    imports = "import rocpd" + ("\nfrom rocpd.compare.tables import tables_of" if "tables_of" in report.connect else "")
    cells.append(_code(f"{imports}\n\nsession = {report.connect}"))
    for section in report.sections:
        cells.append(_text(f"## {inline(section.title)}"))
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
        case Text():
            yield _text(inline(block.text))
        case Folded():
            yield _text("\n".join(folded_lines(block)))
        case Findings():
            yield _text("\n".join(line for conclusion in block.conclusions for line in conclusion_lines(conclusion)))
        case Table():
            yield from _table(block)
        case Figure():
            title = f"**{inline(block.chart.title)}.** {inline(block.description)}"
            picture = {"image/svg+xml": svg(draw(block.chart), block.chart.title, block.description)}
            yield _text(title)
            yield _code(block.code, {**picture, "text/plain": f"<chart: {block.chart.title}>"})
            yield from _table(block.table)


def _table(table: Table) -> Iterator[dict[str, Any]]:
    more = rest(table, len(lines(table)))
    yield _text(f"**{inline(table.title)}.** {inline(table.doc)} {inline(more)}".rstrip())
    plain = "\n".join("\t".join(cells) for cells in [heads(table.columns), *lines(table)])
    data = {"text/html": "".join(table_html(table)), "text/plain": plain}
    if table.code:
        yield _code(table.code, data)
    else:
        yield _text(data["text/html"])


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str, data: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a cell of code, with its output where there is one."""
    output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
    outputs, count = ([output], 1) if data else ([], None)
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": outputs, "execution_count": count}
