"""Writes a report as Markdown, GitHub's form: tables, and of charts what text can show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rocpd.chart.model import MOST, Timeline
from rocpd.report.model import COMMANDS, Block, Conclusion, Figure, Findings, Folded, Report, Table, Text
from rocpd.report.writers.cells import MOST_ROWS, heads, lines, rest, word
from rocpd.table import markdown
from rocpd.table.cell import one_line
from rocpd.table.pictures import shade

_WIDTH, _MOST_RANKS = 100, 64  # of a time line in characters


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
        case Text():
            out.write(f"{markdown.inline(block.text)}\n\n")
        case Folded():
            out.writelines(f"{line}\n" for line in folded_lines(block))
            out.write("\n")
        case Findings():
            out.writelines(f"{line}\n" for conclusion in block.conclusions for line in conclusion_lines(conclusion))
            out.write("\n")
        case Table():
            _table(block, out)
        case Figure():
            out.write(f"**{markdown.inline(block.chart.title)}.** {markdown.inline(block.description)}\n\n")
            if isinstance(block.chart, Timeline):
                out.writelines(["```text\n", *_timeline(block.chart), "```\n\n"])
            _table(block.table, out)


def folded_lines(folded: Folded) -> Iterator[str]:
    """Yield the title, and each line as an item of a list."""
    yield f"{markdown.inline(folded.title)}:"
    yield ""
    yield from (f"- {markdown.inline(line)}" for line in folded.lines)


def conclusion_lines(conclusion: Conclusion) -> Iterator[str]:
    """Yield a finding as an item of a list, and what is said below it as items of its own."""
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
    """Yield how busy each row is over time, a line each."""
    width = max(map(len, chart.rows), default=0)
    fold = max(1, -(-chart.slices // _WIDTH))
    for name, busy in list(zip(chart.rows, chart.busy, strict=True))[:_MOST_RANKS]:
        parts = (busy[at : at + fold] for at in range(0, len(busy), fold))
        shades = "".join(shade(sum(part) / len(part) / MOST) for part in parts)
        yield f"{name:{width}} {shades.rstrip()}\n"
